"""Restores a backup into a new folder, and says what the board has that the backup lacks.

Everything is written aside, and gets its name when every byte was checked. git checks its own
objects, and checks no file out: each is written by a path that was looked at.

A vault that is older than its board has lost the sealed fields of the later events: nobody else has
them. Their public part is in the board's log. `take_over` adds these events to the vault, so that
the log goes on where everybody knows it to be, and says by submission what is lost and which
command makes it again.
"""

import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import msgspec

from heldout.backup import sealed
from heldout.backup.backing_up import list_schemas
from heldout.board.audit.audit import Audit, audit_board
from heldout.board.log.events import Entry, format_entry, parse_log
from heldout.board.log.history import History, read_history
from heldout.board.log.reading import LOG
from heldout.board.store.git import Git
from heldout.board.store.repository import Repository
from heldout.board.store.sharing import EVENTS
from heldout.errors import InputError, quote
from heldout.files.durable import ASIDE, Folder
from heldout.ids import digest_bytes

_OWN = ".git/heldout"
_MOST_SEALED = 1 << 30
_ADDRESS_BEGINS = ("https://", "http://", "ssh://", "git://", "file://", "/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was restored.

    Attributes:
        folder: where; each folder of the backup lies in it under its name.
        manifest: of the backup.
        taken: number of events that were taken over from the board's newer log.
        lost: what the vault lacks of these, and what to do about each, in sentences.
        notes: what a person should know besides.
    """

    folder: Path
    manifest: sealed.BackupManifest
    taken: int = 0
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def restore(
    path: Path,
    folder: Path,
    *,
    identities: Sequence[str],
    database: str | None = None,
    newer: Repository | None = None,
) -> Restored:
    """Restore a backup into a folder that is new or empty: everything, or nothing.

    Args:
        path: the backup.
        folder: where to.
        identities: private keys (age), as the text of their files.
        database: address of an empty one; without it a SQLite file in the folder.
        newer: the board of today: what its log has and the vault lacks is taken over.

    Raises:
        InputError: codes of `unpack`, and `restore-place`; `restore-log` for a log that does not go
            on from that of the backup.
        StoreError: the disk has no room for it.
        DatabaseError: the database cannot be written, or its tables are of a later heldout.
    """
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise InputError.of("restore-place", str(folder))
    aside = folder.absolute().parent / f"{ASIDE}restore-{folder.name}"
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(aside, ignore_errors=True)  # what a killed call left: a vault in the clear
    try:
        aside.mkdir(mode=0o700)  # ours alone, and no link
    except FileExistsError:
        found = "something that cannot be removed, where the backup is written first"
        raise InputError.of("restore-place", str(aside), found) from None
    try:
        manifest, root = sealed.unpack(path, identities, aside), aside / "files"
        if manifest.database is None and database is not None:
            raise InputError.of("restore-place", "--database", "no database in it", "no --database")
        notes = tuple(_finish_folders(manifest, aside))
        taken, lost = (0, ()) if newer is None else take_over(root / sealed.VAULT, newer)
        _move_into(aside, folder, manifest.database, database)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return Restored(
        folder=folder,
        manifest=manifest,
        taken=taken,
        lost=lost,
        notes=notes,
    )


def _finish_folders(manifest: sealed.BackupManifest, aside: Path) -> Iterator[str]:
    """Make folders repositories again; yields what a person should know of it."""
    (aside / "files").mkdir(mode=0o700, exist_ok=True)
    for name, state in manifest.folders.items():
        root, own = aside / "files" / name, aside / "own" / name
        root.mkdir(mode=0o700, exist_ok=True)
        if state.git is not None:
            yield from _restore_git(root, state.git, aside / "git" / name / sealed.BUNDLE)
            if own.exists():  # keys and tokens, which nobody else may read
                own.rename(root / _OWN)
                _make_private(root / _OWN)
        root.chmod(0o755)
        if state.private:
            _make_private(root)


def _move_into(
    aside: Path, folder: Path, state: sealed.DatabaseState | None, database: str | None
) -> None:
    """Load the database and give the folder its name; if one fails, neither is there."""
    root, rows = aside / "files", aside / "rows" / sealed.DATABASE
    if database is not None:
        _use_copying().check_empty(database)
    elif state is not None:
        from heldout.database.database import sqlite_url  # noqa: PLC0415 - needs the extra

        _load(sqlite_url(root / f"{sealed.DATABASE}.sqlite"), state, rows)
    os.sync()
    root.rename(folder.absolute())
    if database is not None and state is not None:
        try:
            _load(database, state, rows)
        except BaseException:
            shutil.rmtree(folder)
            raise


def _load(url: str, state: sealed.DatabaseState, rows: Path) -> None:
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - needs the extra

    with ExitStack() as files:
        tables = {one.name: files.enter_context(one.open("rb")) for one in rows.iterdir()}
        try:
            _use_copying().load_database(url, list_schemas(), known=state.versions, tables=tables)
        except (SQLAlchemyError, ValueError, msgspec.MsgspecError) as error:
            first, *_ = str(error).splitlines()
            raise sealed.damaged("database", quote(first)) from None


def _use_copying() -> ModuleType:
    from heldout.database import copying  # noqa: PLC0415 - needs the extra

    return copying


def _restore_git(root: Path, state: sealed.GitState, bundle: Path) -> Iterator[str]:
    """Make a folder a repository again; no file of it is checked out."""
    git = Git(root)
    git.init(state.branch)
    if bundle.exists():
        git.unbundle(bundle, state.branch)
    for name, address in state.remotes.items():
        # Others would run a program: ext::, an option.
        if address.startswith(_ADDRESS_BEGINS) or _is_host(address):
            git.add_remote(name, address)
        else:
            yield f"the remote {quote(name)} was left out: {quote(address)}"


def _is_host(address: str) -> bool:
    """Check whether it is git@example.org:board.git."""
    host, colon, rest = address.partition(":")
    plain = host.replace("@", "").replace(".", "").replace("-", "").replace("_", "")
    return bool(colon) and plain.isalnum() and host[0].isalnum() and not rest.startswith(":")


def _make_private(root: Path) -> None:
    """Let nobody but their owner read a folder and its files."""
    root.chmod(0o700)
    for path in root.rglob("*"):
        path.chmod(0o700 if stat.S_ISDIR(path.lstat().st_mode) else 0o600)


def take_over(vault: Path, board: Repository) -> tuple[int, tuple[str, ...]]:
    """Add the events to a restored vault that the board's public log has and it lacks.

    Of a published submission the sealed files are copied from the board.

    Args:
        vault: its folder.
        board: as it is today.

    Returns:
        The number of events, and what the vault lacks of them, in sentences.

    Raises:
        InputError: code `restore-log`: the two are not one history.
        StoreError: one of the logs is damaged.
    """
    files, public = Folder(vault), board.log()
    data = files.read_lines(EVENTS)
    ours = parse_log(data, path=EVENTS)
    common = min(len(ours), len(public))
    if [entry.hash for entry in ours[:common]] != [entry.hash for entry in public[:common]]:
        raise InputError.of("restore-log", LOG)
    later = public[common:]
    if not later:
        return 0, ()
    whole = data + b"".join(map(format_entry, later))
    history = read_history(parse_log(whole, path=EVENTS))
    for name in sorted({str(entry.event.submission) for entry in later} & {*history.submissions}):
        for file, digest in history.submissions[name].files.items():
            if not files.is_file(f"sealed/{digest}"):
                found = _find_sealed(board, f"submissions/{file}", digest)
                if found is not None:
                    files.write_whole(f"sealed/{digest}", found, mode=0o600)
    files.write_whole(EVENTS, whole, mode=0o600)
    return len(later), tuple(_list_lost(later, history, files))


def _find_sealed(board: Repository, path: str, digest: str) -> bytes | None:
    """A sealed file as it was received, from the board or from the branch that brought it."""
    found = board.files.find(path)
    if found is not None and digest_bytes(found) == digest:
        return found
    git = board.git
    if not git.is_repository():
        return None
    stem = path.rpartition("/")[2].partition(".")[0].removesuffix("-metadata")
    for ref, commit in git.refs().items():
        if stem in ref:
            data = git.read_path(commit, path, limit=_MOST_SEALED)
            if data is not None and digest_bytes(data) == digest:
                return data
    return None


def _list_lost(later: Sequence[Entry], history: History, files: Folder) -> Iterator[str]:
    """Yield what is sealed in events whose vault is gone, and how to get it again."""
    withheld: dict[str | None, set[str]] = {}
    for entry in later:
        names = entry.event.sealed.keys() - entry.opened.keys()
        withheld.setdefault(entry.event.submission, set()).update(names)
    for name, fields in withheld.items():
        if name is None:
            if "labels" in fields:
                yield "held-out labels changed after the backup: put today's files into labels/"
            continue
        submission = history.submissions[name]
        lacking = [d for d in submission.files.values() if not files.is_file(f"sealed/{d}")]
        if submission.baseline:
            yield f"{name}: a baseline's runs and scores: heldout board baseline adds it again"
        elif lacking and submission.pending:
            yield f"{name}: its sealed files; the team sends them again under a new id"
        elif submission.pending:
            yield f"{name}: its findings and scores: heldout review {name}"
        elif submission.status == "published":
            yield f'{name}: its scores by query: heldout correct {name} --why "restored"'
            if "identity" in fields and submission.identity is None:
                yield (
                    f"{name}: the name that its embargo hides; the team changes a field of its "
                    f"metadata and sends them again before that day: heldout amend {name}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """What a drill found.

    Attributes:
        created_at: time of the backup, UTC.
        program: version of heldout that wrote it.
        files: how many are in it.
        rows: of the database, `None` without one.
        events: of the log in it.
        behind: how many of the board's events it lacks.
        lost: what the vault would lack of these, and what to do.
        audit: of the restored board and vault, `None` where there is no board in it.
        notes: what could not be restored as it was.
        seconds: of each step.
    """

    created_at: str
    program: str
    files: int
    rows: int | None
    events: int
    behind: int
    lost: tuple[str, ...]
    audit: Audit | None
    notes: tuple[str, ...]
    seconds: Mapping[str, float]


def check_backup(
    path: Path,
    *,
    identities: Sequence[str],
    newer: Repository | None,
    timer: Callable[[], float] = time.monotonic,
) -> Drill:
    """Restore a backup into a temporary folder, audit what came out, and remove it.

    Args:
        path: the backup.
        identities: private keys (age), as the text of their files.
        newer: the board of today, whose log is compared; `None` for none.
        timer: seconds.

    Raises:
        InputError, StoreError: as `restore`.
    """
    began = timer()
    with TemporaryDirectory(prefix="heldout-drill-") as parent:
        folder = Path(parent) / "restored"
        done = restore(path, folder, identities=identities, newer=None)
        restored = timer()
        audit = None
        if sealed.BOARD in done.manifest.folders:
            vault = folder / sealed.VAULT if sealed.VAULT in done.manifest.folders else None
            audit = audit_board(Repository(folder / sealed.BOARD), vault)
        audited = timer()
        taken, lost = 0, tuple[str, ...]()
        if newer is not None and sealed.VAULT in done.manifest.folders:
            taken, lost = take_over(folder / sealed.VAULT, newer)
    manifest = done.manifest
    return Drill(
        created_at=manifest.created_at,
        program=manifest.program,
        files=sum(one.files for one in manifest.folders.values()),
        rows=None if manifest.database is None else sum(manifest.database.rows.values()),
        events=0 if manifest.log is None else manifest.log.events,
        behind=taken,
        lost=lost,
        audit=audit,
        notes=done.notes,
        seconds={"restore": restored - began, "audit": audited - restored},
    )
