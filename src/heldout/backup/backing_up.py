"""Makes a backup: of a board, its vault, a database and further folders, as of one moment.

Vault and board are locked while they are read, so no command is half done in what is stored. The
database is read first, in one transaction, while its server goes on: what the server moves
afterwards, from the parts of an upload to its delivery, is found at one place or at both.

The vault's private keys are in it, so it is encrypted always, and never for a key alone that lies
in the vault: where its disk dies, that key is gone with it.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING

from heldout.backup import sealed
from heldout.board.log.events import Entry, format_time
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.commitments import own_recipients, plain
from heldout.board.store.git import Git, find_common
from heldout.board.store.repository import Repository, find_state
from heldout.board.store.vault import Vault
from heldout.errors import InputError, StoreError, quote
from heldout.files.durable import ASIDE, Folder

if TYPE_CHECKING:
    from heldout.database.database import Schema

_LOCK = "lock"  # of a vault, and of a clone's own files
_SQLITE = b"SQLite format 3\0"
_SQLITE_LOGS = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What is backed up.

    Attributes:
        repository: the board, `None` for none.
        vault: the folder of that board's vault, `None` for none.
        database: address of a database, `None` for none.
        folders: further ones, as uploads that wait, or a campaign; each keeps its name.
    """

    repository: Repository | None = None
    vault: Path | None = None
    database: str | None = None
    folders: Sequence[Path] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedUp:
    """A backup that was made.

    Attributes:
        bytes: of the file.
        files: how many it holds, beside what git has.
        rows: of the database, `None` without one.
        log: how far the log had come, `None` without a board and a vault.
        recipients: the public keys that it was encrypted for.
        left_out: what lies in the folders and is not in it, with the reason.
    """

    bytes: int
    files: int
    rows: int | None
    log: sealed.LogState | None
    recipients: tuple[str, ...]
    left_out: tuple[str, ...]


def back_up(
    path: Path, sources: Sources, *, recipients: Sequence[str], now: datetime, program: str
) -> BackedUp:
    """Write a backup: the whole file, or none.

    Args:
        path: the file; nothing may lie there.
        sources: what is backed up. It waits for a command that works there.
        recipients: public keys (age) that can open it, beside those of the board.
        now: the time, UTC.
        program: version of heldout.

    Raises:
        InputError: codes `backup-own-key`, `backup-nothing`, `backup-folder`, `changed-file`.
        StoreError: the file exists, or something cannot be read.
        DatabaseError: the database cannot be read.
    """
    _check_sources(sources, path)
    vault = _open_vault(sources)
    everybody = choose_recipients(sources.repository, vault, recipients)
    collected = _Collected()
    with _locked(sources.repository, vault), sealed.new_backup(path, everybody) as writer:
        rows = _add_database(writer, sources.database, aside=path.parent)
        manifest = sealed.BackupManifest(
            created_at=format_time(now),
            program=program,
            folders=collected.add_folders(writer, sources),
            database=rows,
            log=_log_state(sources.repository, vault),
        )
        writer.finish(manifest)
    database = manifest.database
    return BackedUp(
        bytes=path.stat().st_size,
        files=sum(folder.files for folder in manifest.folders.values()),
        rows=None if database is None else sum(database.rows.values()),
        log=manifest.log,
        recipients=tuple(everybody),
        left_out=tuple(dict.fromkeys(collected.left_out)),
    )


def _open_vault(sources: Sources) -> Vault | None:
    if sources.vault is None:
        return None
    if sources.repository is None:
        raise ValueError("a vault is backed up with its board")
    return Vault.open(sources.vault, board=sources.repository.root, read_only=True)


@contextmanager
def _locked(repository: Repository | None, vault: Vault | None) -> Iterator[None]:
    """Wait for commands that work there, and keep others out."""
    with ExitStack() as locks:
        if vault is not None:
            locks.enter_context(Folder(vault.root).lock(_LOCK, wait=True))
        if repository is not None:
            locks.enter_context(repository.state.lock(_LOCK, wait=True))
        yield


def _check_sources(sources: Sources, path: Path) -> None:
    names = [folder.resolve().name for folder in sources.folders]
    given = (sources.repository, sources.vault, sources.database, *names)
    if not any(one is not None for one in given):
        raise InputError.of("backup-nothing", path.name)
    for name in names:
        if (
            name in (sealed.BOARD, sealed.VAULT, sealed.DATABASE)
            or not sealed.is_part(name)
            or names.count(name) > 1
        ):
            raise InputError.of(
                "backup-folder",
                quote(name),
                "a name that a backup uses itself, or that two folders have",
                "folders of different names",
                "rename it, or back it up into another file",
            )
    roots = [] if sources.repository is None else [sources.repository.root]
    roots += [*([] if sources.vault is None else [sources.vault]), *sources.folders]
    inside = next((one for one in roots if one.resolve() in path.resolve().parents), None)
    if inside is not None:
        raise InputError.of("backup-folder", str(path), inside=inside)


def choose_recipients(
    repository: Repository | None, vault: Vault | None, given: Sequence[str]
) -> tuple[str, ...]:
    """The public keys that a backup is encrypted for.

    Args:
        repository: the board, whose recipients can open it, where they are age's.
        vault: its own keys alone are not enough: they lie in what may be lost.
        given: keys that a person named, who has the private halves elsewhere.

    Raises:
        InputError: code `backup-own-key`: nobody else could open it.
    """
    spec = None
    if vault is not None:
        spec = vault.history().rules[-1][1]
    elif repository is not None:
        spec = repository.rules()
    known: list[str] = []
    if spec is not None:
        parsed = parse_spec(spec.encode())
        known = [plain(key) for key in parsed.recipients] if parsed.envelope == "age" else []
    own = set() if vault is None else set(map(plain, own_recipients("age", vault)))
    named = [plain(key) for key in given]
    everybody = tuple(dict.fromkeys([*named, *known]))
    if not named and set(everybody) <= own:
        raise InputError.of("backup-own-key", "vault" if vault is not None else "backup")
    return everybody


def _log_state(repository: Repository | None, vault: Vault | None) -> sealed.LogState | None:
    entries: Sequence[Entry] = ()
    if vault is not None:
        entries = vault.entries()
    elif repository is not None:
        entries = repository.log()
    if not entries:
        return None
    last = entries[-1]
    return sealed.LogState(events=len(entries), head=str(last.hash), at=last.event.at)


@dataclass(slots=True)
class _Collected:
    """What was left out of the folders so far."""

    left_out: list[str] = field(default_factory=list)

    def add_folders(self, writer: sealed.Writer, sources: Sources) -> dict[str, sealed.FolderState]:
        """Store every folder, by its name in the backup."""
        named = [] if sources.repository is None else [(sealed.BOARD, sources.repository.root)]
        named += [] if sources.vault is None else [(sealed.VAULT, sources.vault)]
        named += [(folder.resolve().name, folder) for folder in sources.folders]
        if (board := sources.repository) is not None and find_common(board.root) is None:
            own = find_state(board.root, board.states)
            if own is not None and any(path != _LOCK for path, _ in own.walk()):
                hint = "keys and drafts of a board that is no clone: back it up by --folder"
                self.left_out.append(f"{own.path()}: {hint}")
        return {name: self.add_folder(writer, name, root) for name, root in named}

    def add_folder(self, writer: sealed.Writer, name: str, root: Path) -> sealed.FolderState:
        """Store what a folder holds."""
        folder, git = Folder(root), _add_git(writer, Git(root), name)
        stored: set[str] = set()
        for _ in range(2):  # the second time what a server has moved since
            for path in self._list(folder, name, lock=_LOCK if name == sealed.VAULT else ""):
                with suppress(FileNotFoundError):
                    if path not in stored:
                        _add_file(writer, "files", name, folder, path)
                        stored.add(path)
        clone = None if git is None else find_state(root)
        if clone is not None:
            for path in self._list(clone, f"{name}/.git/heldout", lock=_LOCK):
                _add_file(writer, "own", name, clone, path)
        found = folder.stat()
        private = found is not None and not found.st_mode & 0o077
        return sealed.FolderState(files=len(stored), git=git, private=private)

    def _list(self, folder: Folder, name: str, *, lock: str) -> Iterator[str]:
        """The files that are stored."""
        for path, is_plain in folder.walk():
            if path.startswith(".git/") or path in (".git", lock):
                continue
            if any(part.startswith(ASIDE) for part in path.split("/")):
                continue  # being written, or left by a killed command: nothing yet
            if not is_plain:
                self.left_out.append(f"{quote(f'{name}/{path}')}: a link, or no file")
            elif not sealed.is_path(path):
                self.left_out.append(f"{quote(f'{name}/{path}')}: a name that cannot be restored")
            elif (found := _find_database(folder, path)) is not None:
                self.left_out.append(f"{quote(f'{name}/{path}')}: {found}")
            else:
                yield path


def _add_file(
    writer: sealed.Writer, kind: sealed.Kind, name: str, folder: Folder, path: str
) -> None:
    with folder.open(path) as source:
        writer.add(kind, name, path, source)


def _find_database(folder: Folder, path: str) -> str | None:
    """Explain why a file of SQLite's is left out: copied while written, it would be damaged."""
    for ending in _SQLITE_LOGS:
        if path.endswith(ending) and folder.is_file(path.removesuffix(ending)):
            path = path.removesuffix(ending)
    try:
        with folder.open(path) as file:
            is_database = file.read(len(_SQLITE)) == _SQLITE
    except FileNotFoundError:  # gone since it was listed
        return None
    return "a database of SQLite; back it up by --database" if is_database else None


def _add_git(writer: sealed.Writer, git: Git, name: str) -> sealed.GitState | None:
    """Store a folder's git; `None` where it has none."""
    if not (git.root / ".git").exists() or not git.is_repository():
        return None
    head = git.head()
    if head is not None:
        with TemporaryDirectory(prefix="heldout-backup-") as aside:
            git.bundle(Path(aside) / sealed.BUNDLE)
            _add_file(writer, "git", name, Folder(Path(aside)), sealed.BUNDLE)
    return sealed.GitState(
        branch=git.main_branch() if head is None else _branch(git),
        remotes={name: git.remote_address(name) for name in git.remotes()},
    )


def _branch(git: Git) -> str:
    try:
        return git.branch()
    except StoreError:  # a commit is checked out, and no branch
        return git.main_branch()


def list_schemas() -> "tuple[Schema, ...]":
    """The schemas whose tables a database of heldout may have."""
    from heldout.intake.tables import INTAKE  # noqa: PLC0415 - needs the extra
    from heldout.judging.database.tables import CAMPAIGN  # noqa: PLC0415 - needs the extra

    return CAMPAIGN, INTAKE


def _add_database(
    writer: sealed.Writer, url: str | None, *, aside: Path
) -> sealed.DatabaseState | None:
    """Store every row, as of one moment; a table lies aside while it is read, without a name."""
    if url is None:
        return None
    from heldout.database.copying import dump_database  # noqa: PLC0415 - needs the extra

    def store(table: str, lines: Iterable[bytes]) -> None:
        with TemporaryFile(dir=aside) as file:
            file.writelines(lines)
            file.flush()
            writer.add("rows", sealed.DATABASE, table, file)

    dump = dump_database(url, list_schemas(), store)
    return sealed.DatabaseState(versions=dict(dump.versions), rows=dict(dump.rows))
