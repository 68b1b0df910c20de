"""Where registrations arrive: branches `registration/*`, pull requests, main branch, or a folder.

A registration is one file, `registrations/TEAM.json`. As with submissions, it is read as data:
nothing is checked out, and a branch that brings anything else is refused.
"""

import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from heldout.errors import Problem, StoreError, quote
from heldout.ids import SubmissionId, digest_bytes
from heldout.store.arrivals import (
    ARRIVALS,
    MAIN_BRANCH,
    Arrival,
    Seen,
    arrival_order,
    branch_name,
    plain_files,
)
from heldout.store.git import Change, Git

__all__ = [
    "arrival_branch",
    "find_merged_registrations",
    "find_registrations_in_folder",
    "find_registrations_in_git",
    "is_team",
    "registration_branch",
    "registration_path",
]

_MOST_BYTES = 1 << 16
_FOLDER = "registrations/"
_REFS = ("refs/heads/registration/", "refs/remotes/", "refs/pull/", "refs/merge-requests/")
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
    git: Git, *, main: str, requests: Container[str]
) -> Iterator[Arrival]:
    """Registrations on branches `registration/*`, here or on a remote, and in pull requests.

    Args:
        git: the board's repository.
        main: the commit that branches are compared with.
        requests: `pull request N` of those that are open; a closed one keeps its ref.
    """
    seen: set[tuple[str, bool]] = set()
    refs = sorted(git.refs(*_REFS).items(), key=lambda item: arrival_order(item[0]))
    wanted = [
        (source, commit)
        for ref, commit in refs
        if (source := _source(ref)) is not None
        and (not source.startswith("pull request ") or source in requests)
    ]
    every = git.changes(main, *(commit for _, commit in wanted), within=ARRIVALS)
    for source, commit in wanted:
        request = source.startswith("pull request ")
        changes = every[commit]
        if changes is None or isinstance(changes, StoreError):
            continue  # as submissions they are refused, with the reason
        # A request may as well bring a submission: only what touches the folder is meant for us.
        ours = any(change.path.startswith(_FOLDER) for change in changes)
        if not changes or (request and not ours):
            continue
        arrival = _from_changes(git, changes, source)
        mark = (arrival.fingerprint, bool(arrival.problems))  # what is refused hides nothing
        if mark not in seen:
            seen.add(mark)
            yield arrival


def find_merged_registrations(git: Git, *, main: str) -> Iterator[Arrival]:
    """Registrations that were merged into the main branch, whether they are in the log or not.

    Args:
        git: the board's repository.
        main: the commit of its main branch.
    """
    for file in git.files(main, "registrations"):
        folder, _, name = file.path.rpartition("/")
        if f"{folder}/" == _FOLDER and _NAME.fullmatch(name):
            yield _from_changes(git, [file], MAIN_BRANCH)


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


def _from_changes(git: Git, changes: Sequence[Change], source: str) -> Arrival:
    first = changes[0]
    problems = tuple(_check_changes(changes))
    if not problems and git.blob_sizes(first.blob)[0] > _MOST_BYTES:
        problems = (_too_large(quote(first.path), git.blob_sizes(first.blob)[0]),)
    marks = "\n".join(sorted(f"{change.path} {change.blob}" for change in changes))
    # By its name too: a copy under another name is refused, and may not stand for the team's own.
    return Arrival(
        source=source,
        id=None,
        fingerprint=digest_bytes(marks.encode()),
        problems=problems,
        read=lambda: {first.path: git.read_blob(first.blob, limit=_MOST_BYTES)},
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
