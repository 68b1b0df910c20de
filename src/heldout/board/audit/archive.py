"""Writes everything that a closed board's results follow from into one archive.

What may be opened when a board has ended (docs/how-to/close-a-board.md gives the reasons):

- of the log: what the public log shows on the day, the digests of the held-out labels and of the
  baselines' runs. All else stays sealed: metadata before publication, identities under an embargo
  that still runs, everything of a submission that was rejected or withdrawn;
- labels of every view that released scores, as they are and as they ever were; a set that only
  private views use stays closed;
- the scores by query, in these views, of everything published, under an embargo too; what each was
  told for, and what it was held against; on the final view those of the finalists alone;
- under `clear` which run each score was held against, which no public log ever says;
- runs as the rules and the teams have it (`board.consent`): the closing event names them in public,
  and none is opened before the end of its embargo.

An archive of a board in a folder of its own: its files are those listed, its log is whole. It is
laid out as a board and its vault are, so that both are read from it as from the real ones. Whoever
made it may be an enemy: no file is used before it was held against the list, and no id from the log
names a file that is not on it.
"""

import hashlib
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path
from string import Template

import msgspec

from heldout.board.audit.audit import audit_board
from heldout.board.log.events import Entry, format_entry, parse_log, redact
from heldout.board.log.history import History, read_history
from heldout.board.log.reading import LOG
from heldout.board.log.submission import Submission
from heldout.board.rules.changes import (
    held_out_file,
    is_commitment,
    names_of_board,
    open_labels,
    parse_key,
    rules_told_by,
    stem_of,
)
from heldout.board.rules.days import one_shot_deadline
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.kept import (
    Evidence,
    ScoreFile,
    find_mixed,
    parse_evidence,
    read_scores,
    say_mixed,
)
from heldout.board.scores.rescoring import open_published_runs
from heldout.board.scores.session import Session
from heldout.board.scores.sets import SetData, load_sets
from heldout.board.standings.overdue import list_due_ends, say_season
from heldout.board.standings.standings import project
from heldout.board.store.repository import Repository, refuse_private
from heldout.board.store.vault import Vault
from heldout.errors import StoreError, quote
from heldout.files.zipped import unpack_zip, write_zip
from heldout.ids import Digest, digest_bytes, query_set_of

AGREED = "agreed"
"""Field of `closed-board`: ids of entries whose teams agreed otherwise than by their metadata."""

EARLIER = "labels/earlier/"
"""Where an archive has earlier versions of held-out files, each by its SHA-256."""

OPEN_RUNS = "open_runs"
"""Field of `closed-board`: ids of the entries and baselines whose runs are opened."""

_README = "README.md"
_File = tuple[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedBoard:
    """A board as its archive shows it.

    Attributes:
        session: of the organiser who opens it.
        log: with the fields open that may be.
    """

    session: Session
    log: tuple[Entry, ...]

    @property
    def history(self) -> History:
        """What that log says."""
        return read_history(self.log)

    @property
    def spec(self) -> BoardSpec:
        """The rules at the end."""
        return parse_spec(self.history.rules[-1][1].encode())

    @property
    def entries(self) -> tuple[Submission, ...]:
        """Published entries and baselines, by id."""
        return tuple(sorted(published(self.history), key=lambda s: s.id))

    def shows_runs(self, submission: Submission) -> bool:
        """Check whether its runs are opened: so the closing event says, and no embargo hides it."""
        return submission.identity is not None and submission.id in list_open_runs(self.log)


def list_open_runs(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The ids whose runs a log says are opened; none before the board was closed."""
    closing = [entry for entry in entries if entry.event.kind == "closed-board"]
    return tuple(closing[-1].get(OPEN_RUNS) or ()) if closing else ()


def list_agreed(entries: Sequence[Entry]) -> tuple[str, ...]:
    """The ids of entries for which an organiser vouched when the board was closed."""
    closing = [entry for entry in entries if entry.event.kind == "closed-board"]
    return tuple(closing[-1].get(AGREED) or ()) if closing else ()


def open_part(spec: BoardSpec, told: Collection[str] = ()) -> BoardSpec:
    """The rules without what an archive does not open: private views, sets that only they use.

    Args:
        spec: the rules.
        told: private views whose scores were released after the last day.
    """
    views = tuple(view for view in spec.views if view.public or view.name in told)
    sets = {view.set for view in views}
    return msgspec.structs.replace(
        spec,
        views=views,
        sets={name: files for name, files in spec.sets.items() if name in sets},
    )


def open_specs(history: History) -> Mapping[str, BoardSpec]:
    """Id of everything published -> what is opened of the rules that it was scored by."""
    return {
        submission.id: open_part(
            rules_told_by(history, submission, submission.evidence),
            {*submission.final, *_final_views(history, submission)},
        )
        for submission in published(history)
    }


def _final_views(history: History, submission: Submission) -> tuple[str, ...]:
    """The view on which finalists are scored, of a finalist, once that was opened."""
    final = history.final
    opened = final is not None and final.opened is not None and submission.id in final.finalists
    return (final.view,) if final is not None and opened else ()


def published(history: History) -> list[Submission]:
    """Published entries and baselines; what an old board published has no scores of ours."""
    return [s for s in history.submissions.values() if s.status == "published"]


def open_log(session: Session) -> tuple[Entry, ...]:
    """The log as the archive shows it."""
    whole = session.vault.entries()
    public = project(whole, now=session.now)
    return tuple(
        redact(entry, {*shown.opened, *_NEVER_PUBLIC.get(entry.event.kind, ())})
        for entry, shown in zip(whole, public, strict=True)
    )


_NEVER_PUBLIC = {
    "opened-board": ("labels",),
    "changed-rules": ("labels",),
    "baseline": ("runs", "evidence"),
    "published": ("evidence", "compared", "bars"),
    "corrected": ("evidence", "compared", "bars"),
    "ran": ("runs",),
    "reviewed": ("evidence",),
    "measured": ("table",),
    "opened-final": ("evidence",),
}
"""The fields that the public log keeps sealed and an archive opens, by the kind of event."""


def list_members(opened: OpenedBoard) -> Iterator[_File]:
    """Every file of the archive but the one that lists the others: name and content."""
    specs = open_specs(opened.history)
    every = (open_part(opened.spec), *specs.values())
    yield from _list_texts(opened)
    yield from _list_held_out(opened, every)
    yield from _list_public_files(opened.session, every)
    for submission in opened.entries:
        yield from _list_scores(opened.session, submission, specs[submission.id])
    yield from _list_evidence(opened, specs)
    for submission in filter(opened.shows_runs, opened.entries):
        yield from _list_runs(opened.session, submission, specs[submission.id])


def _list_texts(opened: OpenedBoard) -> Iterator[_File]:
    spec, closed = opened.spec, opened.history.closed
    if closed is None:
        raise ValueError(spec.name)
    text = files("heldout.board.rules").joinpath("templates", "archive.md").read_text("utf-8")
    words = {"title": spec.title, "name": spec.name, "closed": f"{closed:%d %b %Y}"}
    yield _README, Template(text).substitute(words).encode()
    yield LOG, b"".join(map(format_entry, opened.log))


def _list_held_out(opened: OpenedBoard, specs: Sequence[BoardSpec]) -> Iterator[_File]:
    """The held-out files of every opened view: those of today, and all committed to before."""
    vault, history = opened.session.vault, opened.history
    names = frozenset[str]().union(*map(names_of_board, specs))
    now = vault.held_out({*map(stem_of, names)})
    for name in sorted(names & now.keys()):
        file = held_out_file(name)
        yield f"labels/{file}", vault.files.read(f"labels/{file}")
    before = {
        digest
        for commitment in history.commitments
        for name, digest in (commitment.files or {}).items()
        if name in names and now.get(name) != digest and vault.has_sealed(digest)
    }
    for digest in sorted(before):
        yield f"{EARLIER}{digest}", vault.sealed(digest).read_bytes()


def _list_evidence(opened: OpenedBoard, specs: Mapping[str, BoardSpec]) -> Iterator[_File]:
    """Yield what every score of an opened view was told for, and what it was held against."""
    digests = {
        digest
        for entry in opened.log
        if (spec := specs.get(str(entry.event.submission))) is not None
        for field in ("evidence", "compared")
        for view, digest in (entry.get(field) or {}).items()
        if view in {view.name for view in spec.views}
    }
    finals = (entry for entry in opened.log if entry.event.kind == "opened-final")
    digests |= {digest for entry in finals for digest in entry.get("evidence").values()}
    for digest in sorted(digests):
        yield f"evidence/{digest}.json", opened.session.vault.sealed(digest).read_bytes()


def _list_public_files(session: Session, specs: Sequence[BoardSpec]) -> Iterator[_File]:
    """Queries, open labels, candidates, and what views name: what a run is scored with besides."""
    sets = [files for spec in specs for files in spec.sets.values()]
    named = {name for one in sets for name in (one.queries, one.qrels, one.candidates) if name}
    named |= {name for spec in specs for view in spec.views for name in view.files}
    named |= {
        open_labels(view.labels)
        for spec in specs
        for view in spec.views
        if view.labels is not None and not spec.sets[view.set].held_out
    }
    for name in sorted(name for name in named if not name.startswith("labels/")):
        yield name, session.repository.file(name).read_bytes()


def _list_scores(session: Session, submission: Submission, spec: BoardSpec) -> Iterator[_File]:
    """The scores by query in the opened views; what the vault keeps besides is left out."""
    scores = read_scores(session.vault, submission.id)
    if scores is None:
        raise StoreError(
            f"the vault has no scores of {submission.id}; restore them from the backup"
        )
    names = names_of_board(spec)
    opened = ScoreFile(  # by name, so that what the vault may keep one day stays there
        files=scores.files,
        code_version=scores.code_version,
        views={view.name: scores.views[view.name] for view in spec.views},
        labels={k: v for k, v in scores.labels.items() if k.partition("/")[0] in spec.sets},
        held_out={name: d for name, d in scores.held_out.items() if name in names},
    )
    data = msgspec.json.encode(opened, order="deterministic")
    yield f"scores/{submission.id}.json", data


def _list_runs(session: Session, submission: Submission, spec: BoardSpec) -> Iterator[_File]:
    """Run files as they were packed."""
    if not submission.baseline:
        yield from sorted(_unseal_runs(session, submission, spec))
        return
    for name in sorted(n for n in submission.runs if query_set_of(n) in spec.sets):
        data = session.vault.sealed(submission.runs[name]).read_bytes()
        yield f"runs/{submission.id}/{name}", data


def _unseal_runs(session: Session, submission: Submission, part: BoardSpec) -> Iterator[_File]:
    """The runs over the opened sets, out of the envelope: `runs/ID/RUN.suffix` and bytes."""
    sealed = session.history().submissions[submission.id]
    opened = open_published_runs(session, sealed, part.sets, lambda _, stream: stream.read())
    for run in opened.values():
        yield f"runs/{run.member}", run.value


MANIFEST = "MANIFEST.json"


class ArchiveMember(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of an archive: its size in bytes and its SHA-256."""

    bytes: int
    sha256: str


class Contents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`MANIFEST.json`: what an archive holds.

    Attributes:
        board: name of the board.
        events: number of events in the log.
        head: hash of the last of them: whoever knows it from elsewhere knows the whole log.
        files: every other file of the archive.
        schema: version of this format.
    """

    board: str
    events: int
    head: str
    files: dict[str, ArchiveMember]
    schema: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """What an archive holds.

    Attributes:
        bytes: its size.
        digest: its SHA-256.
        entries: published entries and baselines in it.
        runs: ids of those whose runs are in it.
        embargoed: ids of those whose identity is not, for their embargo still runs.
    """

    bytes: int
    digest: Digest
    entries: int
    runs: tuple[str, ...]
    embargoed: tuple[str, ...]


def check_closable(session: Session) -> None:
    """Refuse to close a board on which something is still to be done.

    Raises:
        StoreError: a submission waits, a deadline is to come, the board is not sound, its entries
            are scored with different labels, or it is the record of an old one.
    """
    history = session.history()
    if not published(history) and any(s.status == "imported" for s in history.submissions.values()):
        raise StoreError(
            "this is the record of an old board: there are no labels and no scores by query to "
            "open, and its log is public as it is; nothing was closed"
        )
    waiting = [s.id for s in history.submissions.values() if s.waits_since is not None]
    if waiting:
        raise StoreError(
            f"{', '.join(waiting[:3])} {'wait' if len(waiting) > 1 else 'waits'} for a decision "
            f"({len(waiting)} in all); nothing was closed: decide first, heldout inbox lists them"
        )
    final = history.final
    if final is not None and final.opened is None:
        raise StoreError(
            f"finalists are named, and the final ({final.view}) is not opened; nothing was closed: "
            "heldout board final"
        )
    if due := list_due_ends(history, session.spec(), session.now.date()):
        raise StoreError(
            f"{say_season(due[0].season)} is over, and its exact scores are not published; nothing "
            "was closed: heldout rebuild"
        )
    last = max(_days_to_wait_for(history), default=session.now.date() - timedelta(1))
    if session.now.date() <= last:
        raise StoreError(f"scores are still sealed until {last} is over; nothing was closed")
    found = audit_board(session.repository, session.vault)
    if found.faults:
        told = "; ".join(found.faults[:3])
        raise StoreError(f"the board is not sound, so nothing was archived: {told}")
    mixed = find_mixed(session.vault, history)
    if mixed:
        told, every = "; ".join(map(say_mixed, mixed)), {n for one in mixed for n in one.earlier}
        raise StoreError(
            f"{told}; nothing was archived: heldout correct {' '.join(sorted(every))} --why "
            '"…", or put the earlier labels back and correct the others'
        )


def _days_to_wait_for(history: History) -> Iterator[date]:
    """The days after which scores are released that are sealed until then."""
    deadline = one_shot_deadline(history)
    if deadline is not None:
        yield deadline
    rules = parse_spec(history.rules[-1][1].encode())
    for submission in published(history) if rules.final_views else ():
        last = rules.last_day(submission.received.date())
        if last is not None:
            yield last


def write_archive(session: Session, path: Path) -> Archived:
    """Write the archive of a closed board; equal input gives equal bytes.

    Args:
        session: its lock is held.
        path: a new file; one with just these bytes is left as it is.

    Raises:
        StoreError: the board is not closed or not sound, or the file holds something else.
    """
    check_closable(session)
    opened = OpenedBoard(session=session, log=open_log(session))
    if opened.history.closed is None:
        raise StoreError("the board is not closed yet, so nothing can be opened")
    write_zip(path, list_files(opened))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    shown = opened.entries
    return Archived(
        bytes=path.stat().st_size,
        digest=Digest(digest),
        entries=len(shown),
        runs=tuple(s.id for s in shown if opened.shows_runs(s)),
        embargoed=tuple(s.id for s in shown if s.identity is None),
    )


def list_files(opened: OpenedBoard) -> Iterator[tuple[str, bytes]]:
    """Every file of an archive, name and content; the one that lists the others comes last.

    Raises:
        StoreError: one is missing or damaged, or two would have one name.
    """
    listed: dict[str, ArchiveMember] = {}
    for name, data in list_members(opened):
        if name in listed:
            raise StoreError(f"two files of the archive would be called {name}; rename the board's")
        listed[name] = ArchiveMember(bytes=len(data), sha256=digest_bytes(data))
        yield name, data
    head = opened.log[-1].hash
    told = Contents(board=opened.spec.name, events=len(opened.log), head=head, files=listed)
    data = msgspec.json.encode(told, order="deterministic")
    yield MANIFEST, msgspec.json.format(data, indent=1) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    """An unpacked archive.

    Attributes:
        folder: where.
        names: its files.
        log: verified.
        history: what the log says.
        specs: id of everything published -> the opened part of the rules of its day.
    """

    folder: Path
    names: frozenset[str]
    log: tuple[Entry, ...]
    history: History
    specs: Mapping[str, BoardSpec]
    _loaded: dict[bytes, Mapping[str, SetData]] = field(default_factory=dict)

    @property
    def published(self) -> list[Submission]:
        """Published entries and baselines."""
        return published(self.history)

    @property
    def labels(self) -> frozenset[str]:
        """Names of the held-out files that an opened view depends on, if they are there."""
        return frozenset[str]().union(*map(names_of_board, self.specs.values()))

    def digest(self, name: str) -> Digest:
        """SHA-256 of a file."""
        return digest_bytes((self.folder / name).read_bytes())

    def sets(self, spec: BoardSpec) -> Mapping[str, SetData]:
        """The opened query sets by the rules of a day, with the labels of the end."""
        return self._load(self.folder, spec)

    def sets_of(self, spec: BoardSpec, scores: ScoreFile) -> Mapping[str, SetData] | None:
        """The same with the labels that scores were made with; `None` where they are not here."""
        if not scores.held_out:  # from before every version was kept
            now = self.sets(spec)
            same = all(
                scores.labels.get(f"{view.set}/{view.labels}" if view.labels else view.set)
                == now[view.set].digests.get(view.labels or "")
                for view in spec.views
            )
            return now if same else None
        files = {name: self._version(name, digest) for name, digest in scores.held_out.items()}
        found = {name: file for name, file in files.items() if file is not None}
        if len(found) < len(files):
            return None
        key = digest_bytes(msgspec.json.encode(scores.held_out, order="deterministic"))
        vault = self.folder.with_name("versions") / key
        if not vault.is_dir():
            (vault / "labels").mkdir(parents=True)
            for name, file in found.items():
                shutil.copyfile(file, vault / "labels" / held_out_file(name))
        return self._load(vault, spec)

    def _version(self, name: str, digest: str) -> Path | None:
        """The file of a committed version, if it is here."""
        if not is_commitment({name: digest}):
            return None
        for member in (f"labels/{held_out_file(name)}", f"{EARLIER}{digest}"):
            if member in self.names and self.digest(member) == digest:
                return self.folder / member
        return None

    def _load(self, vault: Path, spec: BoardSpec) -> Mapping[str, SetData]:
        """Each is read once."""
        key = msgspec.json.encode([vault.name, spec.sets, spec.views, spec.release.feedback])
        if key not in self._loaded:
            self._loaded[key] = load_sets(Repository(self.folder), spec, vault=Vault(vault))
        return self._loaded[key]

    def evidence(self, digest: str) -> Evidence:
        """Return what a score was told for.

        Raises:
            StoreError: it is not here, or is none.
        """
        name = f"evidence/{digest}.json"
        if name not in self.names or self.digest(name) != digest:
            raise StoreError(f"{name} is missing, or not what the log names")
        return parse_evidence((self.folder / name).read_bytes(), path=name)

    def key(self, name: str, digest: str) -> bytes:
        """The secret key of a query set.

        Args:
            name: as a commitment names it, `eval.key`.
            digest: as the log has it.

        Raises:
            StoreError: it is not here, or is none.
        """
        file = self._version(name, digest)
        if file is None:
            raise StoreError(f"labels/{name} is missing, or not the key that the log names")
        return parse_key(file.read_bytes(), path=f"labels/{name}")

    def query_ids(self, path: str) -> frozenset[str]:
        """The ids of a query set by its path in board.toml.

        Raises:
            StoreError: it is not here.
            InputError: it is no file of queries.
        """
        return frozenset(Repository(self.folder).queries(path).texts)

    def has_scores(self, submission: Submission) -> bool:
        """Check whether its scores by query are here."""
        return f"scores/{submission.id}.json" in self.names

    def scores(self, submission: Submission) -> ScoreFile:
        """Its scores by query.

        Raises:
            StoreError: they are not here, or damaged.
        """
        kept = (
            read_scores(Vault(self.folder), submission.id) if self.has_scores(submission) else None
        )
        if kept is None:
            raise StoreError(f"the scores by query of {quote(submission.id)} are missing")
        return kept

    def runs(self, submission: Submission) -> Mapping[str, str]:
        """Run -> its file, as far as they are here."""
        folder = f"runs/{submission.id}/"
        names = [name for name in self.names if name.startswith(folder)]
        return {name.removeprefix(folder).partition(".")[0]: name for name in names}

    def shows_runs(self, submission: Submission) -> bool:
        """Check whether its runs should be here."""
        return submission.identity is not None and submission.id in list_open_runs(self.log)


def unpack_archive(path: Path, folder: Path) -> Unpacked:
    """Unpack an archive below an empty folder and check its files and its log.

    Raises:
        InputError: it is no zip file of ours; code `private-path`.
        StoreError: it is no archive of a board, or its log is broken.
    """
    folder = folder / "archive"
    folder.mkdir()
    names = frozenset(unpack_zip(path, folder))
    refuse_private(names, path.name)
    contents = _check_contents(folder, names)
    log = parse_log((folder / LOG).read_bytes(), path=LOG)
    if not log:
        raise StoreError(f"{LOG} is empty")
    if (contents.head, contents.events) != (log[-1].hash, len(log)):
        raise StoreError(f"{MANIFEST} names another last event than {LOG} has")
    history = read_history(log)
    specs = open_specs(history)
    return Unpacked(folder=folder, names=names, log=log, history=history, specs=specs)


def _check_contents(folder: Path, names: frozenset[str]) -> Contents:
    """Hold the files against the list of them.

    Raises:
        StoreError: one is missing, too many, or another.
    """
    if not {MANIFEST, LOG} <= names:
        raise StoreError(f"no archive of a board: {MANIFEST} or {LOG} is not in it")
    try:
        contents = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Contents)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise StoreError(f"{MANIFEST} is not the list of an archive's files") from None
    different = names - {MANIFEST} ^ contents.files.keys()
    if different:
        raise StoreError(f"{quote(min(different))} is listed or here, but not both")
    for name, member in contents.files.items():
        if digest_bytes((folder / name).read_bytes()) != member.sha256:
            raise StoreError(f"{name} is not the file that {MANIFEST} lists")
    return contents
