"""Where registrations arrive: branches `registration/*`, pull requests, main branch, or a folder.

A registration is one file, `registrations/TEAM.json`. As with submissions, it is read as data:
nothing is checked out, and a branch that brings anything else is refused.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from heldout.errors import Problem, quote
from heldout.ids import SubmissionId, digest_bytes
from heldout.store.arrivals import (
    ARRIVALS,
    MAIN_BRANCH,
    Arrival,
    Seen,
    arrival_tips,
    branch_name,
    lacking_file,
    plain_files,
    request_number,
    sizes_of,
)
from heldout.store.git import Change, Git

_MOST_BYTES = 1 << 16
_FOLDER = "registrations/"
_MOST_TOGETHER = 1 << 26
_NAME = re.compile(r"team-[0-9a-f]{16}\.json", re.ASCII)


def registration_branch(team: str) -> str:
    """The branch on which `register` puts a registration."""
    return f"registration/{team}"


def is_team(name: str) -> bool:
    """Whether a name is the handle of a team, which no submission's id can be."""
    return _NAME.fullmatch(f"{name}.json") is not None


def arrival_branch(name: str) -> str:
    """The branch on which a submission comes, or the registration of a team."""
    return registration_branch(name) if is_team(name) else branch_name(SubmissionId(name))


def registration_path(team: str) -> str:
    """Path of a registration on its branch."""
    return f"{_FOLDER}{team}.json"


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
        for _, source, commit in arrival_tips(git, _source, only=only)
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
        and (source.startswith("branch ") or any(c.path.startswith(_FOLDER) for c in changes))
    ]
    for arrival in _read_all(git, ours):
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
        if file.path.startswith(_FOLDER) and _NAME.fullmatch(file.path.removeprefix(_FOLDER))
    ]
    yield from _read_all(git, named)


def find_registrations_in_folder(folder: Path) -> Iterator[Arrival]:
    """Registrations that lie in a folder as `TEAM.json`.

    Raises:
        StoreError: there is no such folder.
    """
    for source, file in plain_files(folder):
        seen = Seen.look(file, most=_MOST_BYTES) if _NAME.fullmatch(file.name) else None
        if seen is not None:
            yield _from_file(seen, source)


def _source(ref: str) -> str | None:
    if number := re.fullmatch(r"refs/(?:pull|merge-requests)/(\d{1,18})/head", ref, re.ASCII):
        return f"pull request {number[1]}"
    branch = re.fullmatch(r"refs/(?:heads|remotes/[^/]+)/registration/(.+)", ref)
    if branch is None:
        return None
    # The log is public and for good: of a name that is no team's it says only that it was a branch.
    team = branch[1] if is_team(branch[1]) else "…"
    return f"branch {registration_branch(team)}"


def _read_all(git: Git, found: Sequence[tuple[str, Sequence[Change]]]) -> Iterator[Arrival]:
    """What each source brings; git is asked for all sizes at once, and for the files together."""
    problems = [tuple(_check_changes(changes)) for _, changes in found]
    plain = [one[0].blob for (_, one), wrong in zip(found, problems, strict=True) if not wrong]
    files = _Files(git, sizes_of(git, plain))
    for (source, changes), wrong in zip(found, problems, strict=True):
        yield _from_changes(files, changes, source, wrong)


class _Files:
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
                if self.sizes[other] <= _MOST_BYTES:
                    together.append(other)
            read = self._git.read_blobs(*together, limit=_MOST_BYTES)
            self._read = dict(zip(together, read, strict=True))
        return self._read[blob]


def _from_changes(
    files: _Files, changes: Sequence[Change], source: str, problems: tuple[Problem, ...]
) -> Arrival:
    first = changes[0]
    size = files.sizes.get(first.blob)
    if not problems and size is None:
        problems = (lacking_file(quote(first.path)),)
    elif not problems and size is not None and size > _MOST_BYTES:
        problems = (_too_large(quote(first.path), size),)
    marks = "\n".join(sorted(f"{change.path} {change.blob}" for change in changes))
    # By its name too: a copy under another name is refused, and may not stand for the team's own.
    return Arrival(
        source=source,
        id=None,
        fingerprint=digest_bytes(marks.encode()),
        problems=problems,
        read=lambda: {first.path: files.read(first.blob)},
    )


def _check_changes(changes: Sequence[Change]) -> Iterator[Problem]:
    for change in changes:
        folder, _, name = change.path.rpartition("/")
        ours = f"{folder}/" == _FOLDER and _NAME.fullmatch(name)
        if not ours or change.mode != "100644" or change.status not in "AM" or len(changes) > 1:
            yield Problem(
                code="foreign-change",
                path=quote(change.path),
                found=f"one of {len(changes)} changes" if ours else "a change of another file",
                expected=f"nothing but one plain file {_FOLDER}TEAM.json",
                hint="heldout register makes such a branch",
            )
            return


def _from_file(seen: Seen, source: str) -> Arrival:
    size = seen.size
    problems = (_too_large(seen.file.name, size),) if size > _MOST_BYTES else ()
    mark = digest_bytes(str(size).encode()) if problems else seen.digest
    return Arrival(
        source=source,
        id=None,
        fingerprint=mark,
        problems=problems,
        read=lambda: {seen.file.name: seen.read()},
    )


def _too_large(path: str, size: int) -> Problem:
    return Problem(
        code="too-large",
        path=path,
        found=f"{size:,} bytes",
        expected=f"at most {_MOST_BYTES:,} bytes",
    )
