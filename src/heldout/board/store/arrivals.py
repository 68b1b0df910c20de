"""Where submissions and registrations arrive: branches, requests, the main branch, or a folder.

Everything here is somebody else's data, read and never checked out. Names are checked before they
are used, sizes before bytes are read. A branch `submission/ID` may bring the sealed files of its
own submission, a branch `registration/TEAM` the one file `registrations/TEAM.json`; a branch that
touches anything else is refused. What was taken in before is recognised by its commit, so that git
is asked about new commits only.
"""

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heldout.board.rules.spec_file import is_private
from heldout.board.store.git import Change, Git
from heldout.board.store.uploads import DELIVERY
from heldout.envelope.bundle import file_names
from heldout.envelope.keys import METADATA_LIMIT, Form
from heldout.errors import InputError, Problem, StoreError, quote
from heldout.files.durable import File, Folder
from heldout.ids import SubmissionId, digest_bytes, is_submission_id

ARRIVALS = ("registrations", "submissions")
"""The folders of the board that strangers may add files to."""

IN_FOLDER = "a folder"
"""The source of what lies in a folder; its name, which may be a team's, is not said."""

MAIN_BRANCH = "the main branch"
"""The source of what was merged before it was taken in."""

Taken = tuple[str, str]
"""Id and fingerprint of an arrival that was taken in."""

_MOST_BYTES = 1 << 30
_MOST_KEY = 1 << 16
_MOST_PROBLEMS = 10
_CHUNK = 1 << 20
_SHA1_DIGITS = 40
_REFS = (
    *("refs/heads/submission/", "refs/heads/registration/", "refs/remotes/"),
    *("refs/pull/", "refs/merge-requests/"),
)
_MEMORY = "heldout-arrivals.json"  # commit -> id and fingerprint of what it brings
_Tip = tuple[str, str, str]  # ref, where it comes from, commit
_REQUEST = re.compile(r"refs/(pull|merge-requests)/(\d{1,18})/head", re.ASCII)
_PLAIN = "100644"
_DELIVERY = re.compile(rf"{DELIVERY}[0-9a-f]{{16}}", re.ASCII)
_NO_COMMON_COMMIT = "no commit in common with the board's main branch"
_KINDS = {"D": "a deletion", "T": "a change of type"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """Sealed files that wait somewhere, or what is wrong with them.

    Attributes:
        source: where they came from: `branch submission/ID`, `pull request 31`, `a folder`,
            `the main branch`; public, so a folder's name, which may be a team's, is not said.
        id: the submission, `None` where not even that is clear.
        fingerprint: changes when any of the files does; compared before anything is read.
        problems: why it is refused.
        core: the same for the same runs and key, whatever the metadata; "" where there are none.
        read: gives base name -> bytes: all three files, or the metadata alone for an update.
        waits: whether it was not fetched yet: there was no time left for it.
    """

    source: str
    id: SubmissionId | None
    fingerprint: str
    problems: tuple[Problem, ...]
    read: Callable[[], Mapping[str, bytes]]
    core: str = ""
    waits: bool = False


def branch_name(submission: SubmissionId) -> str:
    """The branch on which `submit` puts a submission."""
    return f"submission/{submission}"


def find_in_git(
    git: Git,
    form: Form,
    *,
    main: str,
    unread: Mapping[str, str] | None = None,
    waiting: Iterable[str] = (),
    only: Container[str] | None = None,
    taken: Container[Taken] | None = None,
) -> Iterator[Arrival]:
    """Submissions on branches `submission/*`, here or on a remote, and on pull-request refs.

    Of two with the same files the first: branches, which not everybody may push, and then requests
    by their numbers, for a copy is made later than what it is a copy of.

    Args:
        git: the board's repository; blobs are read, nothing is checked out.
        form: the board's envelope.
        main: the commit that branches are compared with.
        unread: ref -> why it was not fetched; each of them is refused.
        waiting: refs that wait to be fetched.
        only: the refs that are looked at; `None` for all.
        taken: what was taken in before. Commits that brought just that are left out, and git is
            not asked about them again; `None` leaves nothing out.
    """
    for ref, why in (unread or {}).items():
        if (source := _source_of_any(ref)) is not None:
            yield _unread(source, why)
    sources = dict.fromkeys(_source_of_any(ref) for ref in waiting)
    for source in filter(None, sources):
        sum_ = digest_bytes(source.encode())
        yield Arrival(source=source, id=None, fingerprint=sum_, problems=(), read=dict, waits=True)
    tips = _arrival_tips(git, only=only, commits=False)
    brought = {} if taken is None else recall(git, _MEMORY)
    known = {tip for tip, one in brought.items() if tuple(one.split(" ", 1)) in (taken or ())}
    new = [one for one in tips if one[2] not in known]
    if new:  # git opens every object to say which are commits
        new = [one for one in _arrival_tips(git, only=only) if one[2] not in known]
    seen: set[tuple[str, bool]] = set()
    clean = {tip: brought[tip] for _, _, tip in tips if tip in brought}
    for (_, _, tip), arrival in _read_tips(git, form, new, main=main):
        # What is refused hides nothing: a fingerprint knows no modes, and a name with a line end
        # in it can make several files look like one.
        mark = (arrival.fingerprint, bool(arrival.problems))
        if not arrival.problems and arrival.id is not None:
            clean[tip] = f"{arrival.id} {arrival.fingerprint}"
        if mark not in seen:
            seen.add(mark)
            yield arrival
    if taken is not None and clean != brought:
        git.remember(_MEMORY, json.dumps(clean, indent=0).encode())


def recall(git: Git, name: str) -> dict[str, str]:
    """Return what is remembered by commit; a file that cannot be read remembers nothing."""
    try:
        stored = json.loads(git.remembered(name) or b"{}")
    except (ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in stored.items()} if isinstance(stored, dict) else {}


def find_foreign(git: Git, form: Form, tips: Iterable[str], *, main: str) -> str:
    """Find what one of some commits changes that no arrival may change, "" for nothing.

    Only names are looked at: git may lack the files.

    Args:
        git: the board's repository.
        form: the board's envelope.
        tips: the commits.
        main: the commit that they are compared with.

    Raises:
        StoreError: git could not look at one of them.
    """
    for changes in git.changes(main, *tips, within=ARRIVALS).values():
        if isinstance(changes, StoreError):
            raise changes
        if changes is None:
            return _NO_COMMON_COMMIT
        if next(_check_registration(changes), None) is not None:  # else it is a registration
            owners = {_owner_of_path(change.path, form) for change in changes} - {None}
            for problem in _check_changes(changes, len(owners), form):
                return f"{problem.path}: {problem.found}"
    return ""


def find_request(git: Git, form: Form, *, base: str, head: str) -> Arrival | None:
    """Return what a pull request brings: paths, modes, sizes and id are checked.

    Args:
        git: a clone of the board.
        form: the board's envelope.
        base: the commit that it is compared with.
        head: `refs/pull/N/head` or `refs/merge-requests/N/head`, fetched before.

    Returns:
        `None` where it changes nothing.

    Raises:
        StoreError: there is no such ref here, or it is none of a pull request.
    """
    request_number(git, head)
    return next(find_in_git(git, form, main=base, only=[head]), None)


def fingerprints(git: Git, form: Form, *, base: str, heads: Container[str]) -> Mapping[str, str]:
    """Ref -> fingerprint of what it brings, of those refs that are here and bring something."""
    tips = _arrival_tips(git, only=heads)
    return {ref: found.fingerprint for (ref, _, _), found in _read_tips(git, form, tips, main=base)}


def request_number(git: Git, head: str) -> str:
    """The number of the pull request that a ref here is the head of.

    Raises:
        StoreError: there is no such ref here, or it is none of a pull request.
    """
    known = re.fullmatch(r"refs/(?:pull|merge-requests)/([1-9]\d{0,17})/head", head, re.ASCII)
    if known is None or head not in git.refs(head):
        raise StoreError(f"no pull request at {quote(head)}; fetch refs/pull/N/head first")
    return known[1]


def _arrival_tips(
    git: Git, *, only: Container[str] | None, kind: str = "submission", commits: bool = True
) -> list[_Tip]:
    """The refs that something may arrive on: branches first, then requests by their numbers."""

    def order(ref: str) -> tuple[bool, str, int]:
        request = _REQUEST.fullmatch(ref)
        return (False, ref, 0) if request is None else (True, request[1], int(request[2]))

    refs = git.refs(*_REFS, commits=commits)
    return [
        (ref, source, refs[ref])
        for ref in sorted(refs, key=order)
        if (only is None or ref in only) and (source := _source(ref, kind=kind)) is not None
    ]


def _read_tips(
    git: Git, form: Form, tips: Sequence[_Tip], *, main: str
) -> Iterator[tuple[_Tip, Arrival]]:
    """Yield what commits bring; those that change nothing bring nothing."""
    every = git.changes(main, *(commit for _, _, commit in tips), within=ARRIVALS)
    sizes = _sizes(git, form, every.values())
    for tip in tips:
        _, source, commit = tip
        changes = every[commit]
        if changes is None:
            yield tip, _unread(source, _NO_COMMON_COMMIT, "foreign-history", commit)
        elif isinstance(changes, StoreError):
            yield tip, _unread(source, str(changes))
        elif changes:
            yield tip, _from_changes(git, form, changes, source, sizes)


def _sizes(
    git: Git, form: Form, every: Iterable[tuple[Change, ...] | StoreError | None]
) -> Mapping[str, int]:
    """Bytes of the sealed files among all changes, by blob; those that git lacks are left out."""
    changes = (change for one in every if isinstance(one, tuple) for change in one)
    ours = (c for c in changes if c.mode == _PLAIN and _owner_of_path(c.path, form) is not None)
    return sizes_of(git, (change.blob for change in ours))


def sizes_of(git: Git, blobs: Iterable[str]) -> Mapping[str, int]:
    """Bytes of each blob; those that git lacks are left out."""
    asked = dict.fromkeys(blobs)
    with suppress(StoreError):
        return dict(zip(asked, git.blob_sizes(*asked), strict=True))
    found: dict[str, int] = {}
    for blob in asked:
        with suppress(StoreError):
            found[blob] = git.blob_sizes(blob)[0]
    return found


def blob_id(data: bytes, *, like: str) -> str:
    """The id that git gives to a file's bytes, in a repository that has the id `like`."""
    algorithm = hashlib.sha1 if len(like) == _SHA1_DIGITS else hashlib.sha256
    return algorithm(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def list_metadata(files: Iterable[Change], form: Form) -> Mapping[str, SubmissionId]:
    """The sealed metadata among some files: blob -> whose it is."""
    ending = file_names(form, SubmissionId("")).metadata
    return {
        file.blob: owner
        for file in files
        if file.path.endswith(ending) and (owner := _owner_of_path(file.path, form)) is not None
    }


def find_merged(
    git: Git,
    form: Form,
    merged: Iterable[Change],
    *,
    known: Container[str],
    published: Container[str],
) -> Iterator[Arrival]:
    """Submissions that were merged into the main branch before the log knew of them.

    Args:
        git: the board's repository.
        form: the board's envelope.
        merged: what lies in `submissions` on its main branch.
        known: the blobs of sealed metadata that the log names.
        published: ids whose files the board itself put there: of those only the metadata may be
            new.
    """
    owned: defaultdict[SubmissionId, list[Change]] = defaultdict(list)
    for file in merged:
        owner = _owner_of_path(file.path, form)
        if owner is not None:
            owned[owner].append(file)
    for submission, files in owned.items():
        metadata = [f for f in files if f.path.endswith(file_names(form, submission).metadata)]
        if not any(file.blob in known for file in metadata):
            new = metadata if submission in published else files
            yield _from_changes(git, form, new, MAIN_BRANCH, _sizes(git, form, [tuple(new)]))


def find_in_folder(folder: Path, form: Form) -> Iterator[Arrival]:
    """Submissions whose files lie in a folder, or in a delivery there, the three side by side.

    Raises:
        StoreError: there is no such folder.
    """
    named: dict[tuple[str, SubmissionId], dict[str, File]] = {}
    for source, file in plain_files(folder):
        submission = sealed_owner(file.name, form)
        if submission is not None:
            named.setdefault((source, submission), {})[file.name] = file
    for (source, submission), files in named.items():
        yield _from_files(form, submission, files, source)


def plain_files(folder: Path) -> Iterator[tuple[str, File]]:
    """The plain files that lie in a folder which others can write to, sorted; links are left out.

    Those in the folder itself first, then those of each delivery that was uploaded.

    Returns:
        Where each comes from, `a folder` or `upload DIGITS`, and the file.

    Raises:
        StoreError: there is no such folder.
    """
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a folder")
    here = Folder(folder)
    names = here.names()
    deliveries = [name for name in names if _DELIVERY.fullmatch(name)]
    for source, name in ((IN_FOLDER, ""), *((_upload_source(d), f"{d}/") for d in deliveries)):
        with suppress(StoreError, OSError):  # a symlink is nobody's delivery
            for inner in here.names(name) if name else names:
                with suppress(StoreError):  # nor anybody's submission
                    if here.is_file(f"{name}{inner}"):
                        yield source, here.file(f"{name}{inner}")


def remove_deliveries(folder: Path, sources: Container[str]) -> None:
    """Remove uploads that an inbox is done with; where it may not, they stay."""
    here = Folder(folder)
    for name in here.names():
        if _DELIVERY.fullmatch(name) and _upload_source(name) in sources:
            with suppress(StoreError, OSError):
                here.delete_tree(name)


def _upload_source(delivery: str) -> str:
    return f"upload {delivery.removeprefix(DELIVERY)}"


@dataclass(frozen=True, slots=True)
class Seen:
    """A file that others can write to, as it was once: what is read later is the same, or nothing.

    Attributes:
        file: where it lies.
        size: its bytes.
        digest: of them; "" where it is larger than is read.
    """

    file: File
    size: int
    digest: str

    @staticmethod
    def look(file: File, *, most: int) -> "Seen | None":
        """Look at a file; `None` where it is no plain file any more. One handle says it all."""
        try:
            with file.open() as source:
                left = size = os.fstat(source.fileno()).st_size
                sums = hashlib.sha256()  # of a file that grows meanwhile no more is read
                while size <= most and left and (data := source.read(min(left, _CHUNK))):
                    sums.update(data)
                    left -= len(data)
                digest = sums.hexdigest() if size <= most else ""
        except (OSError, StoreError):
            return None
        return Seen(file=file, size=size, digest=digest)

    def read(self) -> bytes:
        """Its bytes.

        Raises:
            InputError: code `changed-file`: they are others now.
        """
        try:
            data = self.file.folder.read(self.file.path, limit=self.size)
        except (OSError, StoreError):
            data = None
        if data is None or digest_bytes(data) != self.digest:
            raise InputError.of(
                code="changed-file",
                path=self.file.name,
                found="another file than a moment before",
                expected="a file that stays as it is while heldout reads it",
                hint="call again when nobody writes to the folder",
            )
        return data


def _source(ref: str, *, kind: str = "submission") -> str | None:
    """Return where what a ref brings comes from; `None` for a ref of another kind."""
    if request := _REQUEST.fullmatch(ref):
        return f"pull request {request[2]}"
    branch = re.fullmatch(rf"refs/(?:heads|remotes/[^/]+)/{kind}/(.+)", ref)
    if branch is None:
        return None
    # The log is public and for good: of a name that is no id it says only that it was a branch.
    known = is_team(branch[1]) if kind == "registration" else is_submission_id(branch[1])
    return f"branch {kind}/{branch[1] if known else '…'}"


def _source_of_any(ref: str) -> str | None:
    return _source(ref) or _source(ref, kind="registration")


def _unread(source: str, why: str, code: str = "not-fetched", mark: str = "") -> Arrival:
    problem = Problem.of(code, source, why)
    mark = mark or digest_bytes(f"{source} {why}".encode())
    return Arrival(source=source, id=None, fingerprint=mark, problems=(problem,), read=dict)


def _from_files(
    form: Form, submission: SubmissionId, files: Mapping[str, File], source: str
) -> Arrival:
    looks = {name: Seen.look(file, most=_MOST_BYTES) for name, file in files.items()}
    seen = {name: one for name, one in looks.items() if one is not None}
    sizes = {name: one.size for name, one in seen.items()}
    problems = tuple(_check_files(submission, form, sizes))
    marks = {} if problems else {name: one.digest for name, one in seen.items()}
    return Arrival(
        source=source,
        id=submission,
        fingerprint=_fingerprint(marks or {n: str(size) for n, size in sizes.items()}),
        core=_core(marks, form, submission),
        problems=problems,
        read=lambda: {name: one.read() for name, one in seen.items()},
    )


def _from_changes(
    git: Git, form: Form, changes: Sequence[Change], source: str, known: Mapping[str, int]
) -> Arrival:
    owners = {_owner_of_path(change.path, form) for change in changes} - {None}
    blobs = {change.path.rpartition("/")[2]: change.blob for change in changes}
    problems = list(_check_changes(changes, len(owners), form))
    submission = next(iter(owners)) if len(owners) == 1 else None
    if not problems and submission is not None:
        lacking = [name for name, blob in blobs.items() if blob not in known]
        problems += [_lacking_file(name) for name in lacking]
        if not lacking:
            sizes = {name: known[blob] for name, blob in blobs.items()}
            problems += _check_files(submission, form, sizes)
    return Arrival(
        source=source,
        id=submission,
        fingerprint=_fingerprint({change.path: change.blob for change in changes}),
        core="" if problems or submission is None else _core(blobs, form, submission),
        problems=tuple(problems[:_MOST_PROBLEMS]),
        read=lambda: dict(
            zip(blobs, git.read_blobs(*blobs.values(), limit=_MOST_BYTES), strict=True)
        ),
    )


def _lacking_file(name: str) -> Problem:
    return Problem.of("missing-file", name)


def _core(marks: Mapping[str, str], form: Form, submission: SubmissionId) -> str:
    metadata = file_names(form, submission).metadata
    rest = {name: mark for name, mark in marks.items() if name != metadata}
    return _fingerprint(rest) if rest else ""


def _fingerprint(marks: Mapping[str, str]) -> str:
    text = "\n".join(f"{name} {mark}" for name, mark in sorted(marks.items()))
    return digest_bytes(text.encode())


def _check_changes(changes: Sequence[Change], owners: int, form: Form) -> Iterator[Problem]:
    if owners > 1:
        yield Problem.of("foreign-change", "the branch", owners=owners)
    for change in changes:
        plain = change.mode == _PLAIN and change.status in "AM"
        if not plain or _owner_of_path(change.path, form) is None:
            code = "private-path" if is_private(change.path) else "foreign-change"
            kind = "a folder" if change.mode == "040000" else f"a file of mode {change.mode}"
            found = _KINDS.get(change.status) or kind
            expected = "nothing but the sealed files of its own submission, plain files"
            hint = "branch off the board's main branch and add those files only"
            yield Problem(code, quote(change.path), found, expected, hint)


def _check_files(
    submission: SubmissionId, form: Form, sizes: Mapping[str, int]
) -> Iterator[Problem]:
    names = file_names(form, submission)
    missing = sorted(set(names.all) - set(sizes))
    if missing and set(sizes) != {names.metadata}:
        found = "no " + " and no ".join(missing)
        expected = "all three sealed files, or the metadata alone for an update"
        hint = f"heldout submit {submission}"
        yield Problem("missing-file", str(submission), found, expected, hint)
    limits = {names.metadata: METADATA_LIMIT + _MOST_KEY, names.key: _MOST_KEY}
    for name, size in sizes.items():
        most = min(limits.get(name, _MOST_BYTES), _MOST_BYTES)
        if size > most:
            yield _too_large(name, size, most)


def _owner_of_path(path: str, form: Form) -> SubmissionId | None:
    folder, _, name = path.rpartition("/")
    return sealed_owner(name, form) if folder == "submissions" else None


def sealed_owner(name: str, form: Form) -> SubmissionId | None:
    """The submission that a sealed file's name belongs to; `None` for another file's name."""
    for ending in file_names(form, SubmissionId("")).all:
        head = name.removesuffix(ending)
        if head != name and is_submission_id(head):
            return SubmissionId(head)
    return None


_MOST_REGISTRATION_BYTES = 1 << 16
_REGISTRATIONS = "registrations/"
_MOST_TOGETHER = 1 << 26
_REGISTRATION_NAME = re.compile(r"team-[0-9a-f]{16}\.json", re.ASCII)


def registration_branch(team: str) -> str:
    """The branch on which `register` puts a registration."""
    return f"registration/{team}"


def is_team(name: str) -> bool:
    """Check whether a name is the handle of a team, which no submission's id can be."""
    return _REGISTRATION_NAME.fullmatch(f"{name}.json") is not None


def arrival_branch(name: str) -> str:
    """The branch on which a submission comes, or the registration of a team."""
    return registration_branch(name) if is_team(name) else branch_name(SubmissionId(name))


def registration_path(team: str) -> str:
    """Path of a registration on its branch."""
    return f"{_REGISTRATIONS}{team}.json"


def find_registrations_in_git(
    git: Git, *, main: str, requests: Container[str], only: Container[str] | None = None
) -> Iterator[Arrival]:
    """Registrations on branches `registration/*`, here or on a remote, and in pull requests.

    Args:
        git: the board's repository.
        main: the commit that branches are compared with.
        requests: `pull request N` of those that are open; a closed one keeps its ref.
        only: the refs that are looked at; `None` for all.
    """
    seen: set[tuple[str, bool]] = set()
    wanted = [
        (source, commit)
        for _, source, commit in _arrival_tips(git, kind="registration", only=only)
        if not source.startswith("pull request ") or source in requests
    ]
    every = git.changes(main, *(commit for _, commit in wanted), within=ARRIVALS)
    # A request may as well bring a submission: only what touches the folder is meant for us. What
    # git cannot look at is refused among the submissions, with the reason.
    ours = [
        (source, changes)
        for source, commit in wanted
        if isinstance(changes := every[commit], tuple)
        and changes
        and (
            source.startswith("branch ") or any(c.path.startswith(_REGISTRATIONS) for c in changes)
        )
    ]
    for arrival in _read_registrations(git, ours):
        mark = (arrival.fingerprint, bool(arrival.problems))  # what is refused hides nothing
        if mark not in seen:
            seen.add(mark)
            yield arrival


def find_registration(git: Git, *, base: str, head: str) -> Arrival | None:
    """The registration that a pull request brings: one file, its name, mode and size are checked.

    Args:
        git: a clone of the board.
        base: the commit that it is compared with.
        head: `refs/pull/N/head` or `refs/merge-requests/N/head`, fetched before.

    Returns:
        `None` where it touches no registration.

    Raises:
        StoreError: there is no such ref here, or it is none of a pull request.
    """
    requests = [f"pull request {request_number(git, head)}"]
    found = find_registrations_in_git(git, main=base, requests=requests, only=[head])
    return next(found, None)


def find_merged_registrations(git: Git, *, main: str) -> Iterator[Arrival]:
    """Registrations that were merged into the main branch, whether they are in the log or not.

    Args:
        git: the board's repository.
        main: the commit of its main branch.
    """
    named = [
        (MAIN_BRANCH, (file,))
        for file in git.files(main, "registrations")
        if file.path.startswith(_REGISTRATIONS)
        and _REGISTRATION_NAME.fullmatch(file.path.removeprefix(_REGISTRATIONS))
    ]
    yield from _read_registrations(git, named)


def find_registrations_in_folder(folder: Path) -> Iterator[Arrival]:
    """Registrations that lie in a folder as `TEAM.json`.

    Raises:
        StoreError: there is no such folder.
    """
    for source, file in plain_files(folder):
        if not _REGISTRATION_NAME.fullmatch(file.name):
            continue
        seen = Seen.look(file, most=_MOST_REGISTRATION_BYTES)
        if seen is not None:
            problems = _check_registration_size(file.name, seen.size)
            mark = digest_bytes(str(seen.size).encode()) if problems else seen.digest
            yield Arrival(
                source=source,
                id=None,
                fingerprint=mark,
                problems=problems,
                read=partial(lambda seen: {seen.file.name: seen.read()}, seen),
            )


def _read_registrations(
    git: Git, found: Sequence[tuple[str, Sequence[Change]]]
) -> Iterator[Arrival]:
    """Yield what each source brings; git is asked for all at once."""
    problems = [tuple(_check_registration(changes)) for _, changes in found]
    plain = [one[0].blob for (_, one), wrong in zip(found, problems, strict=True) if not wrong]
    files = _FilesTogether(git, sizes_of(git, plain))
    for (source, changes), wrong in zip(found, problems, strict=True):
        yield _registration_from_changes(files, changes, source, wrong)


class _FilesTogether:
    """Small files in git: whoever asks for one gets those behind it read with it."""

    def __init__(self, git: Git, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self._git = git
        self._read: Mapping[str, bytes] = {}

    def read(self, blob: str) -> bytes:
        if blob not in self._read:
            together: list[str] = []
            total = 0
            for other in list(self.sizes)[list(self.sizes).index(blob) :]:
                total += self.sizes[other]
                if together and total > _MOST_TOGETHER:
                    break
                if self.sizes[other] <= _MOST_REGISTRATION_BYTES:
                    together.append(other)
            read = self._git.read_blobs(*together, limit=_MOST_REGISTRATION_BYTES)
            self._read = dict(zip(together, read, strict=True))
        return self._read[blob]


def _registration_from_changes(
    files: _FilesTogether, changes: Sequence[Change], source: str, problems: tuple[Problem, ...]
) -> Arrival:
    first = changes[0]
    size = files.sizes.get(first.blob)
    if not problems and size is None:
        problems = (_lacking_file(quote(first.path)),)
    marks = {change.path: change.blob for change in changes}
    # By its name too: a copy under another name is refused, and may not stand for the team's own.
    return Arrival(
        source=source,
        id=None,
        fingerprint=_fingerprint(marks),
        problems=problems or _check_registration_size(quote(first.path), size or 0),
        read=lambda: {first.path: files.read(first.blob)},
    )


def _check_registration(changes: Sequence[Change]) -> Iterator[Problem]:
    for change in changes:
        folder, _, name = change.path.rpartition("/")
        ours = f"{folder}/" == _REGISTRATIONS and _REGISTRATION_NAME.fullmatch(name)
        if not ours or change.mode != "100644" or change.status not in "AM" or len(changes) > 1:
            code = "private-path" if is_private(change.path) else "foreign-change"
            found = f"one of {len(changes)} changes" if ours else "a change of another file"
            expected = f"nothing but one plain file {_REGISTRATIONS}TEAM.json"
            hint = "heldout register makes such a branch"
            yield Problem(code, quote(change.path), found, expected, hint)
            return


def _check_registration_size(path: str, size: int) -> tuple[Problem, ...]:
    if size <= _MOST_REGISTRATION_BYTES:
        return ()
    return (_too_large(path, size, _MOST_REGISTRATION_BYTES),)


def _too_large(path: str, size: int, most: int) -> Problem:
    found, expected = f"{size:,} bytes", f"at most {most:,} bytes"
    return Problem(code="too-large", path=path, found=found, expected=expected)
