"""What a backup holds, and what may stand in such a list."""

from collections.abc import Iterator, Mapping

import msgspec

from heldout.errors import InputError, quote
from heldout.files.durable import ASIDE

BOARD = "board"
VAULT = "vault"
DATABASE = "database"

_LONGEST = 4096
_LONGEST_PART = 255


class Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A content: its size in bytes and its SHA-256."""

    bytes: int
    sha256: str


class GitState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder's git.

    Attributes:
        branch: that is checked out.
        remotes: name -> address.
        bundle: every ref with its objects, as `git bundle` has it, in pieces.
    """

    branch: str
    remotes: dict[str, str]
    bundle: tuple[Stored, ...]


class FolderState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder.

    Attributes:
        files: path in it -> content.
        git: `None` of a folder that is no repository.
        own: path in `.git/heldout` -> content: keys and drafts of this clone; none without git.
        private: whether nobody else may read it.
    """

    files: dict[str, Stored]
    git: GitState | None
    own: dict[str, Stored]
    private: bool


class DatabaseState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A database.

    Attributes:
        versions: name of each schema -> its version.
        tables: name -> its rows as lines of JSON, in pieces.
        rows: name -> number of rows.
    """

    versions: dict[str, int]
    tables: dict[str, tuple[Stored, ...]]
    rows: dict[str, int]


class LogState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far the log had come: number of events, hash and time of the last one."""

    events: int
    head: str
    at: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a backup holds.

    Attributes:
        created_at: time, UTC.
        program: version of heldout that wrote it.
        folders: name -> folder; `board` and `vault` are those.
        database: `None` where none was asked for.
        log: of the vault, else of the board; `None` without either.
    """

    created_at: str
    program: str
    folders: dict[str, FolderState]
    database: DatabaseState | None
    log: LogState | None

    def contents(self) -> Iterator[Stored]:
        """Every content that it names."""
        for folder in self.folders.values():
            yield from folder.files.values()
            yield from folder.own.values()
            if folder.git is not None:
                yield from folder.git.bundle
        for pieces in () if self.database is None else self.database.tables.values():
            yield from pieces


def check_manifest(manifest: Manifest, found: Mapping[str, int], path: str) -> None:
    """Hold a list against the contents that came with it, and refuse names that lead astray.

    Args:
        manifest: the list.
        found: SHA-256 -> bytes, of every content.
        path: name of the backup, for errors.

    Raises:
        InputError: code `backup-damaged`.
    """
    named = {stored.sha256: stored.bytes for stored in manifest.contents()}
    if named != dict(found) or any(
        stored.bytes != named[stored.sha256] for stored in manifest.contents()
    ):
        raise damaged(path, "files that are listed or stored, but not both")
    tables = () if manifest.database is None else manifest.database.tables
    if wrong_table := next((name for name in tables if not is_part(name)), None):
        raise damaged(path, f"a table {quote(wrong_table)}")
    for name, folder in manifest.folders.items():
        if not is_part(name) or "/" in name:
            raise damaged(path, f"a folder {quote(name)}")
        if folder.own and folder.git is None:
            raise damaged(path, f"files of a clone in {quote(name)}, which has no git")
        for files in (folder.files, folder.own):
            wrong = next((one for one in files if not is_path(one)), None)
            if wrong is not None:
                raise damaged(path, f"the path {quote(wrong)}")
            above = {parent for one in files for parent in list_parents(one)}
            if twice := above & files.keys():
                raise damaged(path, f"{quote(min(twice))} as a file and as a folder")


def is_path(path: str) -> bool:
    """Whether a path stays inside its folder, and is none of git's own."""
    return len(path) <= _LONGEST and all(is_part(part) for part in path.split("/"))


def is_part(part: str) -> bool:
    """Whether a name can be that of a file or folder in a backup."""
    return (
        part not in ("", ".", "..")
        and part.casefold() != ".git"
        and not part.startswith(ASIDE)
        and "/" not in part
        and len(part.encode("utf-8", "surrogatepass")) <= _LONGEST_PART
        and all(char.isprintable() for char in part)
    )


def list_parents(path: str) -> Iterator[str]:
    """The folders that a path names."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        yield "/".join(parts[:count])


def damaged(path: str, found: str) -> InputError:
    """The error of a backup that is not as it was written."""
    return InputError.of(
        "backup-damaged",
        path,
        found,
        "a backup as heldout backup has written it",
        "nothing was restored; copy it again, or take an earlier one",
    )
