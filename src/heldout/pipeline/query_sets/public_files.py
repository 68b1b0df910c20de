"""The board's own files that decide scores, held against the digests in the log.

Queries, public labels, candidates and the public files of views lie in git, where whoever may push
can change them. The log has their digests from the founding on. A file with other bytes is an edit
of the rules: nothing is scored by it until an organiser has said yes to it.
"""

import shlex
from collections import Counter
from dataclasses import dataclass

from heldout.board.log.history import History
from heldout.board.rules.held_out import list_open
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError, Problem, StoreError, plural
from heldout.ids import digest_bytes
from heldout.store.repository import Repository

__all__ = [
    "EditedFile",
    "check_unedited",
    "digest_public",
    "find_edited",
    "find_version",
    "restore_public",
    "say_lines",
]

_MOST_VERSIONS = 200
_MOST_BYTES = 1 << 30
_MOST_COUNTED = 1 << 25


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedFile:
    """A public file that is not what the log has.

    Attributes:
        path: in the board.
        logged: its SHA-256 in the log, `None` where the log has none.
        found: that of the file, `None` where there is none.
    """

    path: str
    logged: str | None
    found: str | None

    def __str__(self) -> str:
        """What is wrong, in a sentence."""
        if self.found is None:
            return f"{self.path} is missing: the log has its digest"
        if self.logged is None:
            return f"{self.path} is not in the log"
        return f"{self.path} is not the file that the log has"


def digest_public(repository: Repository, spec: BoardSpec) -> dict[str, str]:
    """Path -> SHA-256 of the public files that decide scores; the record of an old board has none.

    Raises:
        StoreError: one is reached by a symlink.
    """
    found = {path: repository.files.find(path) for path in list_open(spec)}
    return {path: str(digest_bytes(data)) for path, data in found.items() if data is not None}


def find_edited(
    repository: Repository, history: History, spec: BoardSpec
) -> tuple[EditedFile, ...]:
    """The public files that differ from the log; none where the log has no digests of them.

    Args:
        repository: the board.
        history: what the log says.
        spec: names the files.

    Raises:
        StoreError: one is reached by a symlink.
    """
    if history.files is None:
        return ()
    now, named = digest_public(repository, spec), list_open(spec)
    return tuple(
        EditedFile(path=path, logged=history.files.get(path), found=now.get(path))
        for path in named
        if now.get(path) != history.files.get(path)
    )


def find_version(repository: Repository, edited: EditedFile) -> tuple[str, bytes] | None:
    """The newest commit whose file has the digest in the log, and its bytes; `None` without one."""
    git = repository.git
    if edited.logged is None or not git.is_repository() or git.head() is None:
        return None
    for commit in git.versions(edited.path, most=_MOST_VERSIONS):
        data = git.read_path(commit, edited.path, limit=_MOST_BYTES)
        if data is not None and digest_bytes(data) == edited.logged:
            return commit, data
    return None


def say_lines(repository: Repository, edited: EditedFile) -> str:
    """How many lines differ, as far as git has the file of before."""
    known = find_version(repository, edited)
    now = repository.files.find(edited.path)
    if now is None or edited.logged is None:
        return "missing" if now is None else f"new, {plural(len(now.splitlines()), 'line')}"
    if known is None or max(len(now), len(known[1])) > _MOST_COUNTED:
        return "another file than the log has"
    before, after = Counter(known[1].splitlines()), Counter(now.splitlines())
    gone, come = (before - after).total(), (after - before).total()
    if not gone and not come:
        return "the same lines in another order, or with other line ends"
    return f"{plural(gone, 'line')} of {before.total():,} gone, {come:,} new"


def restore_public(
    repository: Repository, history: History, spec: BoardSpec
) -> tuple[tuple[str, str], ...]:
    """Write the files that the log has over edited ones, from the board's git; paths and commits.

    Raises:
        StoreError: git has no version with the digest in the log; no such file was written.
    """
    edited = find_edited(repository, history, spec)
    # A file that the log lacks cannot be told from one that is about to be added: it stays.
    found = {one: find_version(repository, one) for one in edited if one.logged is not None}
    lost = [one for one, version in found.items() if version is None]
    if lost or len(found) < len(edited):
        lines = [f"{one.path} (SHA-256 {(one.logged or 'none')[:12]}…)" for one in lost]
        lines += [f"{one.path} (not in the log: remove it)" for one in edited if not one.logged]
        raise StoreError(
            f"the log has digests only, and git here has no such version: put {', '.join(lines)} "
            "right by hand"
        )
    restored = [(one.path, *version) for one, version in found.items() if version is not None]
    for path, _, data in restored:
        repository.write_file(path, data)
    return tuple((path, commit) for path, commit, _ in restored)


def check_unedited(repository: Repository, history: History, spec: BoardSpec) -> None:
    """Refuse to work with a file that the log does not have.

    Raises:
        InputError: code `edited-file`, one for each.
        StoreError: one is reached by a symlink.
    """
    problems = []
    for one in find_edited(repository, history, spec):
        version = find_version(repository, one)
        problems.append(
            Problem(
                code="edited-file",
                path=one.path,
                found="no file" if one.found is None else f"a file of SHA-256 {one.found[:12]}…",
                expected="no file: the log has none"
                if one.logged is None
                else f"the file in the board's log, SHA-256 {one.logged[:12]}…",
                hint="no organiser has accepted this edit; ask them, or get the file of the log: "
                + (
                    "a new clone"
                    if version is None
                    else f"git checkout {version[0][:12]} -- {shlex.quote(one.path)}"
                ),
            )
        )
    if problems:
        raise InputError(problems)
