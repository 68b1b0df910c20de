"""Uploads that can be resumed: begun with digests, sent in parts, complete, handed over.

An upload is begun with the name, size and digest of each file. The parts lie in a folder of the
server's own, and what is acknowledged of a part is on the disk: a sender goes on where the server
says. When all is here the upload is complete: from that moment it uses quota, and it is handed over
to the folder that `heldout inbox --from` reads (`worker.hand_over`). One that fails uses no quota.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, case, func, insert, select, update

from heldout.board.policy.checks import QuotaState
from heldout.board.store.uploads import UploadFolder, UploadKind, list_sums
from heldout.database.database import Database, exclude_others
from heldout.errors import InputError, StoreError, quote
from heldout.files.durable import Folder
from heldout.ids import Digest, digest_bytes
from heldout.intake.quota import Quota, check_quota, quota_state
from heldout.intake.tables import NAMED, upload_files, uploads

UploadState = Literal["open", "complete", "accepted", "failed", "cancelled"]

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UNDER_WAY = ("open", "complete")
_MODE = 0o600
_STEP = 16 << 20
"""Bytes of a file for which room is set apart beyond those that are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeLimits:
    """How much is taken; of single files see `UploadFolder.limits`.

    Attributes:
        of_team: uploads under way of one team.
        of_address: of one address; the first one of a team is taken in any case.
        at_once: of all; as above.
        of_team_a_day: uploads that a team begins in 24 hours.
        bytes: most that waits for the inbox and is set apart for uploads under way; a team gets
            no more of it than it leaves to the others.
        deliveries: most that wait for the inbox.
        free_bytes: the disk keeps at least so many free.
        unbegun: how long an upload stays open of which no byte has come.
        idle: how long one stays open without a new byte.
        longest: how long in any case: who sends a byte a day keeps no room for ever.
    """

    of_team: int = 4
    of_address: int = 8
    at_once: int = 256
    of_team_a_day: int = 50
    bytes: int = 20 << 30
    deliveries: int = 10_000
    free_bytes: int = 1 << 30
    unbegun: timedelta = timedelta(minutes=15)
    idle: timedelta = timedelta(days=2)
    longest: timedelta = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadStore:
    """Where uploads are stored.

    Attributes:
        database: open, with the tables of the intake.
        parts: folder of what is under way; it belongs to the server alone.
        folder: that takes what is complete, for the inbox.
        limits: how much is taken.
        notifies: whether teams are told by mail what became of an upload.
    """

    database: Database
    parts: Path
    folder: UploadFolder
    limits: IntakeLimits = field(default_factory=IntakeLimits)
    notifies: bool = False

    def part(self, upload: str, name: str) -> Path:
        """Return where the bytes of a file lie while the upload is under way."""
        return self.parts / upload / name


class UploadFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of an upload.

    Attributes:
        name: its base name.
        size: bytes that it has.
        digest: SHA-256 of them.
        received: bytes that are here; the sender goes on from there.
    """

    name: str
    size: int
    digest: Digest
    received: int = 0


class Upload(msgspec.Struct, frozen=True, kw_only=True, rename=NAMED):
    """An upload.

    Attributes:
        id: of it.
        team: id of the team that sends it.
        kind: what it brings.
        owner: id of the submission, or handle of the team that registers.
        state: `open` while files come; `complete` once all are here; `accepted` where the inbox
            takes them; `failed`; `cancelled` by the team.
        files: sorted by name.
        created: when it was begun, UTC.
        changed: when the last byte came, or its state changed.
        completed: when all was here, which counts for the quota; `None` before.
        ended: when it was accepted, failed or was cancelled; `None` before.
        code: of the problem it failed for; "" for none.
        why: the problem in words.
    """

    id: str
    team: int
    kind: UploadKind
    owner: str
    state: UploadState
    files: tuple[UploadFile, ...] = ()
    created: datetime
    changed: datetime
    completed: datetime | None
    ended: datetime | None
    code: str
    why: str

    @property
    def digests(self) -> dict[str, str]:
        """Name of each file -> SHA-256."""
        return {file.name: file.digest for file in self.files}

    @property
    def digest(self) -> Digest:
        """Digest of the lines that `sha256sum` writes of the files."""
        return digest_bytes(list_sums(self.digests).encode())


# Beginning


def begin_upload(
    store: UploadStore,
    team: int,
    files: Sequence[UploadFile],
    *,
    address: str,
    quota: Quota | None,
    now: datetime,
) -> Upload:
    """Begin an upload, or find the one of the same files that the team has begun or ended.

    Args:
        store: where it goes.
        team: id of the team.
        files: all that will come.
        address: who sends it; "" is not counted.
        quota: of the board for the team; `None` where there is none.
        now: the time, UTC.

    Raises:
        InputError: codes `upload-name`, `upload-set`, `upload-too-large`, `upload-digest`: what is
            declared; `upload-taken`: the id is in use; `upload-quota`; `upload-limit`: too many
            under way or on one day; `upload-full`: no room.
        DatabaseError: see `ErrorCode`.
    """
    if len({file.name for file in files}) < len(files):
        raise InputError.of("upload-set", "upload", "a name twice", "each file once")
    owner, kind = store.folder.check_set({file.name: file.size for file in files})
    for file in files:
        if not _DIGEST.fullmatch(file.digest):
            found = f"{file.name}: {quote(file.digest)}"
            raise InputError.of("upload-digest", "upload", found, "the SHA-256 in hexadecimal")
    name = secrets.token_hex(16)

    def begin(connection: Connection) -> Upload:
        exclude_others(connection)
        same = _find_same(connection, team, owner, files)
        if same is not None:
            return same
        own = _is_own(connection, team, owner, "complete", "accepted")
        brings: UploadKind = "update" if own else kind
        if brings == "submission":
            _check_new(connection, team, owner, quota, now=now)
        _check_limits(connection, store, team, address, files, now=now)
        row = {"id": name, "team": team, "kind": brings, "owner": owner, "state": "open"}
        row |= {"address": address, "created_at": now, "changed_at": now, "code": "", "why": ""}
        connection.execute(insert(uploads).values(row))
        rows = [{"upload": name, **msgspec.to_builtins(file)} for file in files]
        connection.execute(insert(upload_files), rows)
        return _read_upload(connection, name)

    return store.database.write(begin)


def _find_same(
    connection: Connection, team: int, owner: str, files: Collection[UploadFile]
) -> Upload | None:
    """The team's upload of the same files that goes on or was accepted."""
    states = (*_UNDER_WAY, "accepted")
    wanted = (
        select(uploads.c.id)
        .where(uploads.c.team == team, uploads.c.owner == owner, uploads.c.state.in_(states))
        .order_by(uploads.c.created_at.desc())
    )
    declared = {(file.name, file.size, file.digest) for file in files}
    for name in connection.execute(wanted).scalars().all():
        found = _read_upload(connection, name)
        if {(file.name, file.size, file.digest) for file in found.files} == declared:
            return found
    return None


def _is_own(connection: Connection, team: int, owner: str, *states: UploadState) -> bool:
    """Check whether the team has sent this id before: all of it again is an update."""
    before = select(uploads.c.id).where(
        uploads.c.team == team,
        uploads.c.owner == owner,
        uploads.c.kind == "submission",
        uploads.c.state.in_(states),
    )
    return connection.execute(before).first() is not None


def _check_new(
    connection: Connection, team: int, owner: str, quota: Quota | None, *, now: datetime
) -> None:
    """Refuse a submission whose id is in use, or that is one too many.

    An id that the log knows is somebody's: under it the upload would count as that submission does,
    which may have been refused, or be older than the quota's window.
    """
    taken = select(uploads.c.id).where(
        uploads.c.owner == owner,
        uploads.c.kind == "submission",
        uploads.c.state.in_(("complete", "accepted")),
    )
    logged = quota is not None and owner in quota.received
    if logged or connection.execute(taken).first() is not None:
        raise InputError.of("upload-taken", "upload", owner)
    if quota is not None:
        check_quota(connection, team, quota, now=now)


def _check_limits(
    connection: Connection,
    store: UploadStore,
    team: int,
    address: str,
    files: Collection[UploadFile],
    *,
    now: datetime,
) -> None:
    limits = store.limits
    under_way = uploads.c.state.in_(_UNDER_WAY)
    of_team = uploads.c.team == team
    own = _count(connection, under_way & of_team)
    day = of_team & (uploads.c.created_at > now - timedelta(days=1))
    same = under_way & (uploads.c.address == address) & (uploads.c.address != "")
    counts = [
        ("uploads of your team under way", limits.of_team, own),
        ("uploads of your team in 24 hours", limits.of_team_a_day, _count(connection, day)),
    ]
    if own:  # what others have under way never keeps out a team that has nothing
        of_address = _count(connection, same)
        counts += [
            ("uploads from your address under way", limits.of_address, of_address),
            ("uploads under way", limits.at_once, _count(connection, under_way)),
        ]
    for what, most, found in counts:
        if found >= most:
            raise InputError.of("upload-limit", "upload", f"{found} {what}", most=most)
    check_room(connection, store, team, coming=sum(file.size for file in files))


def _count(connection: Connection, which: ColumnElement[bool]) -> int:
    return int(connection.execute(select(func.count()).where(which)).scalar_one())


def check_room(connection: Connection, store: UploadStore, team: int, *, coming: int = 0) -> None:
    """Refuse what leaves less room to the others than the team has.

    Room is set apart for bytes that are here and the next `_STEP` of each file, not for what is
    only declared.

    Args:
        connection: of a transaction.
        store: where uploads go.
        team: id of the team.
        coming: bytes that the team asks for besides.
    """
    size, here = upload_files.c.size, upload_files.c.received
    apart = case((here < size - _STEP, here + _STEP), else_=size)
    rows = connection.execute(
        select(uploads.c.team, func.sum(apart), func.sum(apart - here))
        .select_from(upload_files.join(uploads, uploads.c.id == upload_files.c.upload))
        .where(uploads.c.state.in_(_UNDER_WAY))
        .group_by(uploads.c.team)
    )
    shares = {row[0]: (int(row[1]), int(row[2])) for row in rows}
    try:
        store.parts.mkdir(mode=0o700, exist_ok=True)
        free = shutil.disk_usage(store.parts).free
    except OSError as error:
        raise StoreError(f"{store.parts} cannot be written: {error.strerror}") from error
    deliveries, waiting = store.folder.count_deliveries()
    limits, mine = store.limits, shares.get(team, (0, 0))[0] + coming
    left = min(
        limits.bytes - waiting - sum(share for share, _ in shares.values()),
        free - limits.free_bytes - sum(rest for _, rest in shares.values()),
    )
    if mine > left - coming or deliveries >= limits.deliveries:
        raise _full()


def find_room(store: UploadStore, team: int, *, coming: int = 0) -> None:
    """Refuse what there is no room for; see `check_room`.

    Raises:
        InputError: code `upload-full`.
        DatabaseError: see `ErrorCode`.
    """
    store.database.read(lambda connection: check_room(connection, store, team, coming=coming))


# Looking


def get_upload(store: UploadStore, team: int, upload: str) -> Upload:
    """An upload of a team.

    Raises:
        InputError: code `upload-unknown`: the team has none of this id.
        DatabaseError: see `ErrorCode`.
    """
    return store.database.read(lambda connection: _own_upload(connection, team, upload))


def read_upload(store: UploadStore, upload: str) -> Upload:
    """An upload of whatever team, that is there.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return store.database.read(lambda connection: _read_upload(connection, upload))


def list_complete(store: UploadStore) -> tuple[str, ...]:
    """Return the ids of uploads that are complete and not handed over, the oldest first.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    wanted = select(uploads.c.id).where(uploads.c.state == "complete")
    oldest = wanted.order_by(uploads.c.completed_at, uploads.c.id)
    return tuple(store.database.read(lambda connection: connection.execute(oldest).scalars().all()))


def list_uploads(store: UploadStore, team: int, *, most: int = 200) -> tuple[Upload, ...]:
    """The uploads of a team, the newest first.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    newest = (
        select(uploads)
        .where(uploads.c.team == team)
        .order_by(uploads.c.created_at.desc(), uploads.c.id)
        .limit(most)
    )
    own = (
        select(upload_files)
        .join(uploads, uploads.c.id == upload_files.c.upload)
        .where(uploads.c.team == team)
        .order_by(upload_files.c.name)
    )

    def read(connection: Connection) -> tuple[Upload, ...]:
        files: dict[str, list[Row[Any]]] = {}
        for file in connection.execute(own):
            files.setdefault(file.upload, []).append(file)
        return tuple(_upload(row, files[row.id]) for row in connection.execute(newest))

    return store.database.read(read)


def read_quota(store: UploadStore, team: int, quota: Quota, *, now: datetime) -> QuotaState:
    """Return what a team has used of its quota, and when it may submit again.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    return store.database.read(lambda connection: quota_state(connection, team, quota, now=now))


def _own_upload(connection: Connection, team: int, name: str) -> Upload:
    found = connection.execute(
        select(uploads.c.id).where(uploads.c.id == name, uploads.c.team == team)
    ).first()
    if found is None:
        raise InputError.of("upload-unknown", "upload", quote(name))
    return _read_upload(connection, name)


def _read_upload(connection: Connection, name: str) -> Upload:
    row = connection.execute(select(uploads).where(uploads.c.id == name)).one()
    files = connection.execute(
        select(upload_files).where(upload_files.c.upload == name).order_by(upload_files.c.name)
    )
    return _upload(row, files.all())


def _upload(row: Row[Any], files: Sequence[Row[Any]]) -> Upload:
    own = msgspec.convert(files, tuple[UploadFile, ...], from_attributes=True)
    return msgspec.structs.replace(msgspec.convert(row, Upload, from_attributes=True), files=own)


# Parts


@dataclass(slots=True, kw_only=True)
class Part:
    """The bytes of one file, as they come.

    Attributes:
        store: where they go.
        team: id of the team.
        upload: id of the upload.
        file: as it was declared.
        handle: of the open file, which is locked.
        clock: the time, UTC.
        received: bytes that are here.
        noted: bytes of them that were acknowledged.
    """

    store: UploadStore
    team: int
    upload: str
    file: UploadFile
    handle: int
    clock: Callable[[], datetime]
    received: int
    noted: int

    def write(self, data: bytes) -> None:
        """Go on with the file.

        Raises:
            InputError: codes `upload-too-large`: more than was declared; `upload-full`.
        """
        if self.received + len(data) > self.file.size:
            found, expected = f"{self.file.name} goes on", f"the {self.file.size:,} bytes declared"
            raise InputError.of("upload-too-large", "upload", found, expected)
        try:
            rest = memoryview(data)
            while rest:
                written = os.pwrite(self.handle, rest, self.received)
                self.received += written
                rest = rest[written:]
        except OSError as error:
            raise _full() from error
        if self.received - self.noted >= _STEP:
            self.note()
            find_room(self.store, self.team)

    def note(self) -> None:
        """Flush what has come, and only then acknowledge it."""
        if self.received <= self.noted:
            return
        try:
            os.fsync(self.handle)
        except OSError as error:
            raise _full() from error
        came = update(upload_files).where(
            upload_files.c.upload == self.upload,
            upload_files.c.name == self.file.name,
            upload_files.c.received == self.noted,
        )
        still = update(uploads).where(uploads.c.id == self.upload, uploads.c.state == "open")

        def note(connection: Connection) -> None:
            if connection.execute(still.values(changed_at=self.clock())).rowcount != 1:
                raise _ended(self.upload)
            connection.execute(came.values(received=self.received))

        self.store.database.write(note)
        self.noted = self.received


@contextmanager
def open_part(
    store: UploadStore,
    team: int,
    upload: str,
    name: str,
    *,
    offset: int,
    clock: Callable[[], datetime],
) -> Iterator[Part]:
    """Receive bytes of a file. At the end, also after an error, what has come is on the disk.

    Args:
        store: where it goes.
        team: id of the team.
        upload: id of the upload.
        name: of the file.
        offset: position of the first byte; what is here already, no more and no less.
        clock: the time, UTC.

    Raises:
        InputError: codes `upload-unknown`; `upload-ended`: it takes no more files; `upload-offset`:
            other bytes are here; `upload-busy`: another request writes this file; `upload-full`:
            no room to go on now.
        StoreError: the folder cannot be written.
        DatabaseError: see `ErrorCode`; what came is then to be sent again.
    """
    file = _open_file(get_upload(store, team, upload), name)
    handle = _open_handle(store.part(upload, name))
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found, expected = f"{name} is being sent", "one request for it"
            raise InputError.of("upload-busy", "upload", found, expected, "try again") from None
        file = _open_file(get_upload(store, team, upload), name)  # as of now: the lock is ours
        here = _bytes_here(store, upload, file, handle)
        if offset != here:
            found, expected = f"byte {offset:,} of {name}", f"byte {here:,} next"
            raise InputError.of("upload-offset", "upload", found, expected)
        os.ftruncate(handle, offset)
        find_room(store, team)
        part = Part(
            store=store,
            team=team,
            upload=upload,
            file=file,
            handle=handle,
            clock=clock,
            received=offset,
            noted=offset,
        )
        try:
            yield part
        finally:
            part.note()
    finally:
        os.close(handle)


def _bytes_here(store: UploadStore, upload: str, file: UploadFile, handle: int) -> int:
    """Return how many bytes of a file are here: fewer where a disk was lost."""
    found = os.fstat(handle).st_size
    if found >= file.received:
        return file.received
    its = (upload_files.c.upload == upload) & (upload_files.c.name == file.name)
    less = update(upload_files).where(its).values(received=found)
    store.database.write(lambda connection: connection.execute(less))
    return found


def _open_file(upload: Upload, name: str) -> UploadFile:
    if upload.state != "open":
        raise _ended(upload.state)
    for file in upload.files:
        if file.name == name:
            return file
    raise InputError.of("upload-name", "upload", quote(name), "a file of this upload")


def _open_handle(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        there = path.exists()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        if not there:
            for folder in (path.parent, path.parent.parent):
                Folder(folder).sync()
    except OSError as error:
        raise StoreError(f"{path.parent} cannot be written: {error.strerror}") from error
    return handle


# Ending


def complete_upload(
    store: UploadStore, team: int, upload: str, *, quota: Quota | None, now: datetime
) -> Upload:
    """Say that all is here: it then uses quota, and is handed over. Once more changes nothing.

    Args:
        store: where it is.
        team: id of the team.
        upload: id of the upload.
        quota: of the board for the team; `None` where there is none.
        now: the time, UTC.

    Raises:
        InputError: codes `upload-unknown`; `upload-ended`: it failed or was cancelled;
            `upload-incomplete`: bytes are missing; `upload-taken`; `upload-quota`. It stays open.
        DatabaseError: see `ErrorCode`.
    """

    def complete(connection: Connection) -> Upload:
        exclude_others(connection)
        found = _own_upload(connection, team, upload)
        if found.state in ("complete", "accepted"):
            return found
        if found.state != "open":
            raise _ended(found.state)
        for file in found.files:
            if file.received != file.size:
                here = f"{file.received:,} bytes of {file.name}"
                raise InputError.of("upload-incomplete", "upload", here, size=file.size)
        # What it was to update may have failed since, and no other team may take the id meanwhile.
        _, kind = store.folder.check_set({file.name: file.size for file in found.files})
        if kind == "submission" and _is_own(connection, team, found.owner, "accepted"):
            kind = "update"
        if kind == "submission":
            _check_new(connection, team, found.owner, quota, now=now)
        ready = update(uploads).where(uploads.c.id == upload)
        values = {"kind": kind, "state": "complete", "completed_at": now, "changed_at": now}
        connection.execute(ready.values(**values))
        return _read_upload(connection, upload)

    return store.database.write(complete)


def cancel_upload(store: UploadStore, team: int, upload: str, *, now: datetime) -> Upload:
    """Give up an open upload; its parts are removed. Once more changes nothing.

    Raises:
        InputError: codes `upload-unknown`; `upload-ended`: it is complete or has failed.
        DatabaseError: see `ErrorCode`.
    """

    def cancel(connection: Connection) -> Upload:
        exclude_others(connection)
        found = _own_upload(connection, team, upload)
        if found.state == "open":
            end_upload(connection, upload, "cancelled", now=now)
        elif found.state != "cancelled":
            raise _ended(found.state)
        return _read_upload(connection, upload)

    ended = store.database.write(cancel)
    remove_parts(store, upload)
    return ended


def end_upload(
    connection: Connection,
    upload: str,
    state: UploadState,
    *,
    now: datetime,
    code: str = "",
    why: str = "",
) -> None:
    """Write how an upload ended; of whose address it came is then forgotten."""
    ended = update(uploads).where(uploads.c.id == upload)
    values = {"state": state, "changed_at": now, "ended_at": now, "address": ""}
    connection.execute(ended.values(**values, code=code, why=why))


def replaced_uploads(connection: Connection, newest: Upload) -> list[Upload]:
    """List what a team has replaced: of one name the last complete file counts.

    The inbox accepts neither of two deliveries that bring one new id. An upload that was handed
    over after a newer one is itself replaced.

    Args:
        connection: of a transaction that keeps others out.
        newest: was handed over just now.
    """
    if newest.kind == "registration":
        return []
    accepted = select(uploads.c.id).where(
        uploads.c.team == newest.team,
        uploads.c.owner == newest.owner,
        uploads.c.state == "accepted",
    )
    found = [_read_upload(connection, name) for name in connection.execute(accepted).scalars()]
    same = [one for one in found if one.digests.keys() == newest.digests.keys()]
    last = max(same, key=lambda one: (one.completed or one.created, one.id == newest.id))
    return [one for one in same if one.digests != last.digests]


def remove_parts(store: UploadStore, upload: str) -> None:
    """Remove what lies of an upload that has ended."""
    shutil.rmtree(store.parts / upload, ignore_errors=True)


def sweep(store: UploadStore, *, now: datetime) -> int:
    """End uploads that nobody goes on with, and remove parts that nobody needs.

    Args:
        store: where they are.
        now: the time, UTC.

    Returns:
        How many uploads were ended.

    Raises:
        DatabaseError: see `ErrorCode`.
    """
    names: list[str] = []
    with suppress(FileNotFoundError):
        names = [path.name for path in store.parts.iterdir()]  # first: new ones are left alone
    limits = store.limits
    of_it = upload_files.c.upload == uploads.c.id
    unbegun = ~select(of_it).where(of_it, upload_files.c.received > 0).exists()
    silent = (uploads.c.changed_at <= now - limits.idle) | (
        unbegun & (uploads.c.created_at <= now - limits.unbegun)
    )
    old_ones = select(uploads.c.id).where(
        uploads.c.state == "open", silent | (uploads.c.created_at <= now - limits.longest)
    )

    def expire(connection: Connection) -> tuple[int, set[str]]:
        exclude_others(connection)  # none of them is completed meanwhile
        old = connection.execute(old_ones).scalars().all()
        first, silence = (one.total_seconds() / 3600 for one in (limits.unbegun, limits.idle))
        why = (
            f"no byte came for {silence:g} hours, none at all for {first:g}, "
            f"or it took {limits.longest.days} days"
        )
        for name in old:
            end_upload(connection, name, "failed", now=now, code="upload-expired", why=why)
        needed = select(uploads.c.id).where(uploads.c.state.in_(_UNDER_WAY))
        return len(old), set(connection.execute(needed).scalars())

    ended, needed = store.database.write(expire)
    for name in set(names) - needed:
        remove_parts(store, name)
    return ended


def _ended(state: str) -> InputError:
    return InputError.of("upload-ended", "upload", state=state)


def _full() -> InputError:
    return InputError.of("upload-full", "upload")
