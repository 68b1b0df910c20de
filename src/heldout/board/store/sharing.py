"""A vault that several organisers share: each has a clone, and a private git remote is between.

An event counts when its push has succeeded. Its commit is made beside the branch, with all files
that belong to it, and pushed without force; only then do branch and `events.jsonl` here follow. So
a crash or a lost connection leaves nothing half done: the next call asks the remote, and the event
is there or it never was. A push is accepted only on top of what its sender knew, so of two
organisers at once one is first, and the other has to look at the new history before it decides.

What comes from the remote is data: its files are read by their ids and written by us, nothing is
checked out. A history that is not ours with events added is refused, and ours stays as it is.

Whoever can write to the remote can put any bytes there. So a file is sent and taken over only as
far as something else says what it has to be: its name, which is its digest, or an event that holds
its digest. Held-out labels wait for the event that commits to them, true scores and signatures for
the one that was logged with them. Private keys never go into git: each organiser's own lies in
`identities/`, outside it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Literal

from heldout.board.log.events import Entry, parse_log
from heldout.board.log.history import History, read_history
from heldout.board.log.reading import read_log, unneeded_runs
from heldout.board.rules.changes import held_out_file, held_out_name
from heldout.board.store.git import AS_IT_IS, ATTRIBUTES, Author, Change, Git
from heldout.errors import StoreError, printable, quote
from heldout.files.durable import Folder
from heldout.ids import digest_bytes

EVENTS = "events.jsonl"
"""The vault's log."""

GITIGNORE = ".gitignore"
"""Where a vault keeps `IGNORED`."""

REMEMBERED = "remembered"
"""The folder of a vault with what this machine has verified before."""

DERIVED_FOLDERS = ("comparisons", REMEMBERED, "sketches")
"""The folders of a vault that are made of the others, at each machine for itself."""

IGNORED = (
    b"identities/\nfounding\nlock\nrefused\nrunning/\nsketches/\ncomparisons/\nremembered/\n"
    b".writing-*\n"
)
"""A vault's .gitignore: private keys, and what is about this machine alone."""

RESULTS: Mapping[str, str] = {"scores": ".json", "signatures": ".npz"}
"""Folder of what opening a submission gave -> how the name of its file there ends."""

SHARED_FOLDERS = ("labels", "sealed", *RESULTS)
"""The folders of a vault that every organiser has alike."""

Standing = Literal["logged", "unlogged", "wrong"]
"""`logged`: what it has to be. `unlogged`: nothing says what it has to be, or it could be made
again from what does. `wrong`: something else than what it has to be."""

_SHARED = re.compile(
    rf"{re.escape(GITIGNORE)}|{re.escape(ATTRIBUTES)}|{re.escape(EVENTS)}"
    rf"|({'|'.join(SHARED_FOLDERS)})(/[^/.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*)+"
)
_PLAIN = "100644"


def result_path(folder: str, submission: str) -> str:
    """Path in the vault of what is kept of a submission; `folder` is a key of `RESULTS`."""
    return f"{folder}/{submission}{RESULTS[folder]}"


def logged_files(history: History) -> dict[str, str]:
    """Path in the vault -> SHA-256, of every file that the log has the digest of.

    Args:
        history: what the vault's log says.
    """
    labels = {f"labels/{held_out_file(name)}": digest for name, digest in history.labels.items()}
    results = {
        result_path(folder, submission.id): digest
        for submission in history.submissions.values()
        for folder, digest in submission.stored.items()
    }
    return {**labels, **results}


def judge_file(path: str, data: bytes, logged: Mapping[str, str]) -> Standing:
    """Hold a file against what it has to be.

    Args:
        path: in the vault, in one of `SHARED_FOLDERS`, or its `.gitattributes`.
        data: its bytes.
        logged: as `logged_files` gives it.
    """
    if path == ATTRIBUTES:
        return "logged" if data == AS_IT_IS else "wrong"
    folder, _, name = path.partition("/")
    if folder == "labels" and held_out_name(name) is None:
        return "logged"  # it decides no score
    expected = name if folder == "sealed" else logged.get(path)
    if expected == digest_bytes(data):
        return "logged"
    return "unlogged" if expected is None or folder in RESULTS else "wrong"


def check_plain(files: Sequence[Change], *, whose: str, then: str) -> None:
    """Refuse a commit that holds anything but plain files of a vault.

    Args:
        files: all that it holds.
        whose: who has it, for the error.
        then: what the reader should know besides.

    Raises:
        StoreError: it does.
    """
    for file in files:
        if file.path.startswith("identities/"):
            raise StoreError(
                f"{whose} has {quote(file.path)} in git: a private key never belongs there. Take "
                f"it out, and make a new one (heldout board rekey); {then}"
            )
        if file.mode != _PLAIN or not _SHARED.fullmatch(file.path):
            raise StoreError(f"{whose} has {quote(file.path)}, no plain file of a vault; {then}")


_MOST_BYTES = 1 << 32
_MOST_NAMES = 5
_NO_ADDRESS = "heldout@localhost"
_PUSHES = 3
_SAME = (
    "nothing was done, the vault here is as it was (docs/how-to/organisers.md says how to go on)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """A vault's clone and its remote.

    Attributes:
        git: the clone; its folder is the vault's.
        remote: name of the private remote.
        branch: the branch that every organiser has, the same here and there.
    """

    git: Git
    remote: str
    branch: str

    def synchronise(self) -> tuple[str, ...]:
        """Ask the remote, take over what others did, and send what it lacks; the lock is held.

        Returns:
            What a person should know of it, in sentences.

        Raises:
            StoreError: the remote does not answer, or its history is not ours with events added;
                nothing is changed.
        """
        self.git.disable_attributes()
        self.git.unstage()  # what a killed call left there, a commit made by hand would take up
        self._files.write_whole(GITIGNORE, IGNORED, mode=0o600)
        self._files.write_whole(ATTRIBUTES, AS_IT_IS, mode=0o600)
        tip = self._fetch()
        ours = self._files.read_lines(EVENTS)
        theirs = self._read_log(tip, known=ours)
        self._check_continues(ours, theirs)
        log = max(ours, theirs, key=len)
        taken, left = ([], []) if tip is None else self._meet(tip, log)
        notes = []
        if taken and log == ours:  # files that came with events are told by these
            names = _list_names(taken)
            notes.append(f"taken over from {self.remote} without an event: {names}")
        if left:
            reason = "for no event has their digests"
            notes.append(f"not taken over from {self.remote}, {reason}: {_list_names(left)}")
        if log != ours:
            self._files.write_whole(EVENTS, log, mode=0o600)
            notes.insert(0, f"taken over from {self.remote}: {_say(_since(log, ours))}")
        elif log != theirs:
            entries = parse_log(log, path=EVENTS)
            self.record(log, last=entries[-1], history=read_history(entries))
            notes.append(f"sent to {self.remote}, which lacked it: {_say(_since(log, theirs))}")
        return tuple(notes)

    def record(self, log: bytes, *, last: Entry, history: History) -> None:
        """Make the last event of a log happen: one commit with all that belongs to it, one push.

        Args:
            log: the whole log, verified; `events.jsonl` may still lack its last line.
            last: its last event.
            history: what it says, with that event.

        Raises:
            StoreError: code `overtaken`: another organiser's event came first.
            StoreError: the remote did not take it, or does not say whether it did.
        """
        known = self._tip()
        commit = self.git.make_commit(
            self._paths(history),
            {EVENTS: log},
            message=f"event {last.event.seq}: {last.event.kind} {last.event.submission or ''}",
            author=self.git.configured_author() or Author(name=last.event.by, email=_NO_ADDRESS),
            at=last.time,
        )
        check_plain(self.git.files(commit), whose="the vault", then=_SAME)
        self._push(commit, known, last)
        self.git.move_branch(commit)

    def _push(self, commit: str, known: str | None, last: Entry) -> None:
        """Send a commit; again where the remote refused it and has not moved.

        It is taking another organiser's push just then, which holds the branch's lock, or it takes
        nothing: only asking again tells.
        """
        refused: StoreError | None = None
        for _ in range(_PUSHES):
            try:
                self.git.push(self.remote, f"{commit}:refs/heads/{self.branch}")
            except StoreError as error:
                refused = error
                if self._has_arrived(commit, known, last, error):
                    return
            else:
                return
        raise StoreError(
            f"{self.remote} did not take event {last.event.seq}, so it did not happen ({refused})"
        )

    @property
    def _files(self) -> Folder:
        return Folder(self.git.root)

    def _tip(self) -> str | None:
        """The remote's commit as it was last heard of."""
        ref = f"refs/remotes/{self.remote}/{self.branch}"
        return self.git.refs(ref).get(ref)

    def _fetch(self) -> str | None:
        """The remote's commit now, `None` where it has none yet."""
        remote = self.remote
        try:
            self.git.fetch(remote, f"+refs/heads/*:refs/remotes/{remote}/*", prune=True)
        except StoreError as error:
            raise StoreError(
                f"the vault is shared, and its remote {remote} does not answer ({error}); {_SAME}"
            ) from None
        tip = self._tip()
        others = self.git.refs(f"refs/remotes/{remote}/")
        if tip is None and others:
            other = printable(min(others).rpartition("/")[2])
            raise StoreError(
                f"the vault is on the branch {self.branch}, but its remote has {other}: two "
                f"branches would be two histories; {_SAME}"
            )
        return tip

    def _read_log(self, tip: str | None, *, known: bytes = b"") -> bytes:
        """The log of the remote; empty where there is none yet.

        It is verified, unless it is the known one: whoever uses ours verifies that.
        """
        if tip is None:
            return b""
        data = self.git.read_path(tip, EVENTS, limit=_MOST_BYTES)
        if data is None or not data.endswith(b"\n"):
            raise StoreError(
                f"the remote {self.remote} has no whole {EVENTS}: it must be empty at first, and "
                f"nothing but a vault's then; {_SAME}"
            )
        try:
            if data != known:
                parse_log(data, path=f"{self.remote}:{EVENTS}")
        except StoreError as error:
            raise StoreError(f"{error}; {_SAME}") from None
        return data

    def _check_continues(self, ours: bytes, theirs: bytes) -> None:
        """Refuse a remote whose log is neither the beginning of ours nor ours with events added."""
        pairs = zip(ours.split(b"\n")[:-1], theirs.split(b"\n")[:-1], strict=False)
        for number, (mine, other) in enumerate(pairs):
            if mine != other:
                raise StoreError(
                    f"the remote {self.remote} has another history: its event {number} is not the "
                    f"one in the vault here. Somebody rewrote it, or it is another board's; {_SAME}"
                )

    def _meet(self, tip: str, log: bytes) -> tuple[list[str], list[str]]:
        """Bring the files and the branch here to the remote's commit, where that goes on from us.

        Returns the files that were taken over, and those that were not.
        Commits that were made here by hand stay, and are sent with the next event.
        """
        files, head = self.git.files(tip), self.git.head()
        check_plain(files, whose=f"the remote {self.remote}", then=_SAME)
        if head is not None and self.git.contains(head, tip):
            return [], []
        if head is not None and not self.git.contains(tip, head):
            raise StoreError(
                f"the vault and its remote {self.remote} have the same events, but commits of "
                f"their own: somebody rewrote it, or committed by hand; {_SAME}"
            )
        known = {} if head is None else {file.path: file.blob for file in self.git.files(head)}
        if gone := sorted(known.keys() - {file.path for file in files} - _unneeded(log)):
            raise StoreError(f"the remote {self.remote} has lost {quote(gone[0])}; {_SAME}")
        taken = self._take(files, known, log)
        self.git.move_branch(tip)
        return taken

    def _take(
        self, files: Sequence[Change], known: Mapping[str, str], log: bytes
    ) -> tuple[list[str], list[str]]:
        """Write the files that are new or changed; none before all of them were looked at."""
        logged = logged_files(read_history(parse_log(log, path=EVENTS)))
        own = {EVENTS, GITIGNORE, *_unneeded(log)}
        fresh: list[Change] = []
        left: list[Change] = []
        for file in (f for f in files if f.path not in own and self._is_news(f, known)):
            data = self._read(file.blob)
            standing = judge_file(file.path, data, logged)
            if standing == "wrong":
                ours = file.path == ATTRIBUTES
                right = "heldout's own" if ours else "the file that the log has the digest of"
                raise StoreError(f"{file.path} at the remote {self.remote} is not {right}; {_SAME}")
            (fresh if standing == "logged" else left).append(file)
            if file.path.startswith("labels/") and standing == "logged":
                self._check_unedited(file.path, data, known.get(file.path))
        for file in fresh:
            self._files.write_whole(file.path, self._read(file.blob), mode=0o600)
        return [file.path for file in fresh], [file.path for file in left]

    def _is_news(self, file: Change, known: Mapping[str, str]) -> bool:
        """Check whether it changed there, or is not here."""
        return known.get(file.path) != file.blob or not self._files.is_file(file.path)

    def _read(self, blob: str) -> bytes:
        return self.git.read_blob(blob, limit=_MOST_BYTES)

    def _check_unedited(self, path: str, data: bytes, before: str | None) -> None:
        """Refuse to write over labels that were edited here and not logged."""
        found = self._files.find(path)
        mine = data if found is None else found
        if mine != data and (before is None or mine != self._read(before)):
            raise StoreError(
                f"{self._files.path(path)} was edited here, and another organiser's labels came "
                f"first: move yours out of the vault, call again, and compare; {_SAME}"
            )

    def _paths(self, history: History) -> tuple[str, ...]:
        """List what a commit takes from the folder: what has its event, no edited file."""
        logged = logged_files(history)
        paths = [GITIGNORE, ATTRIBUTES, *(["sealed"] if self._files.is_folder("sealed") else [])]
        for folder in (name for name in SHARED_FOLDERS if name != "sealed"):
            for path in (f"{folder}/{name}" for name in self._files.names(folder)):
                data = self._files.find(path)
                standing = "unlogged" if data is None else judge_file(path, data, logged)
                if standing == "wrong" and self.git.head() is None:
                    raise StoreError(
                        f"{self._files.path(path)} was edited: log it (heldout correct) before the "
                        "vault is shared"
                    )
                if standing == "logged":
                    paths.append(path)
        return tuple(paths)

    def _has_arrived(self, commit: str, known: str | None, last: Entry, error: StoreError) -> bool:
        """Check whether a push that failed had arrived; raise where another came first."""
        number = last.event.seq
        self.git.unstage()
        try:
            tip = self._fetch()
        except StoreError:
            raise StoreError(
                f"{self.remote} did not say whether it took event {number} ({error}); call again "
                "when it answers: the event is there then, or it never happened"
            ) from None
        if tip is not None and self.git.contains(tip, commit):
            return True
        if tip == known:
            return False
        first = parse_log(self._read_log(tip), path=EVENTS)[number:]
        what = _say(first) if first else "the vault's remote changed"
        text = f"another organiser was first: {what}; event {number} did not happen"
        raise StoreError(text, code="overtaken")


def find_sharing(root: Path) -> Sharing | None:
    """Find how a vault that is a clone is shared, `None` where it has no remote.

    Raises:
        StoreError: it has a remote, but no branch to share.
    """
    git = Git(root)
    remotes = git.remotes()
    if not remotes:
        return None
    if "origin" not in remotes and len(remotes) > 1:
        raise StoreError(f"the vault has several remotes; name the one to share origin ({root})")
    remote = "origin" if "origin" in remotes else remotes[0]
    try:
        return Sharing(git=git, remote=remote, branch=git.branch())
    except StoreError:
        raise StoreError(
            f"the vault has no branch checked out: git -C {root} switch main"
        ) from None


def _unneeded(log: bytes) -> frozenset[str]:
    """The runs that are removed from every clone's folder; git's history may still hold them."""
    return frozenset(
        f"sealed/{digest}" for digest in unneeded_runs(read_log(lambda: BytesIO(log), path=EVENTS))
    )


def _since(log: bytes, known: bytes) -> Sequence[Entry]:
    return parse_log(log, path=EVENTS)[known.count(b"\n") :]


def _say(entries: Sequence[Entry]) -> str:
    """Some events in a few words; the last one by name."""
    last = entries[-1].event
    about = f" {last.submission}" if last.submission else ""
    text = f"event {last.seq}, {last.kind}{about}, by {last.by}, {last.at}"
    return text if len(entries) == 1 else f"{len(entries)} events, the last: {text}"


def _list_names(paths: Sequence[str]) -> str:
    """Some names as they stand, and how many there are besides."""
    more = len(paths) - _MOST_NAMES
    names = ", ".join(quote(path) for path in paths[:_MOST_NAMES])
    return names + (f" and {more:,} more" if more > 0 else "")
