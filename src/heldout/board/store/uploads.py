"""Uploads of sealed files and registrations into a folder that `heldout inbox --from` reads.

Files are stored as they come and never opened. They are written aside; what is whole then becomes a
delivery, a folder of its own that is named by what is in it. So nobody can take anybody's name, and
the same files again are the same delivery. One account, under a lock, has the room of all uploads
that are under way, in whatever process.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

from heldout.errors import InputError, StoreError, quote
from heldout.files.durable import Folder
from heldout.ids import Digest, digest_bytes, is_submission_id

UploadKind = Literal["submission", "update", "registration"]
"""What one upload brings; an update is new metadata of a submission alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A file that lies there.

    Attributes:
        name: its base name.
        size: bytes.
        digest: of them.
    """

    name: str
    size: int
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadReceipt:
    """What somebody is told who has sent files.

    Attributes:
        owner: id of the submission, or handle of the team that registers.
        kind: which of the two came.
        files: that came, sorted.
        received: when, UTC.
        known: the same files were there already.
    """

    owner: str
    kind: Literal["submission", "registration"]
    files: tuple[Received, ...]
    received: datetime
    known: bool

    @property
    def sums(self) -> str:
        """One line for each file, as `sha256sum` writes and checks them."""
        return "".join(f"{one.digest}  {one.name}\n" for one in self.files)

    @property
    def digest(self) -> Digest:
        """One digest for all of it: that of `sums`."""
        return digest_bytes(self.sums.encode())


TEAM_TOKEN = "HELDOUT_TEAM_TOKEN"  # noqa: S105 - the variable's name, no secret
"""Name of the environment variable that holds a team's token."""

DELIVERY = "delivery-"
"""What the name of a delivery's folder begins with; sixteen digits of a digest follow."""

_NAME_DIGITS = 16
UPLOADING = ".uploading"
"""What the names of files begin with that are there only while an upload goes on."""

_ASIDE = f"{UPLOADING}-"
_LOCK = f"{UPLOADING}.lock"
_ACCOUNT = ".account"
_MODE = 0o640
_FOLDER_MODE = 0o750
_STEP = 1 << 24
_REGISTRATION = ".json"
_HEAD = re.compile(r"[A-Za-z0-9._-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken.

    Attributes:
        file_bytes: most of sealed runs; the inbox takes no larger ones.
        metadata_bytes: most of sealed metadata; as above.
        key_bytes: most of a sealed key; as above.
        registration_bytes: most of a registration; the inbox takes no larger one.
        folder_bytes: most that lies in the folder, uploads under way included.
        free_bytes: the disk keeps at least so many free.
        at_once: uploads under way.
        of_one: those of them that one sender may have.
        deliveries: most that wait for the inbox.
    """

    file_bytes: int = 1 << 30
    metadata_bytes: int = (1 << 20) + (1 << 16)
    key_bytes: int = 1 << 16
    registration_bytes: int = 1 << 16
    folder_bytes: int = 20 << 30
    free_bytes: int = 1 << 30
    at_once: int = 32
    of_one: int = 4
    deliveries: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadFolder:
    """Where uploads go.

    Attributes:
        path: the folder.
        endings: what follows an id in the names of the three files: runs, metadata, key.
        is_team: whether a name is the handle of a team, whose registration is then taken as
            HANDLE.json; `None` where no registration is.
        limits: how much is taken.
    """

    path: Path
    endings: tuple[str, str, str]
    is_team: Callable[[str], bool] | None = None
    limits: Limits = field(default_factory=Limits)

    @contextmanager
    def deliver(self, *, size: int | None = None, sender: str = "") -> Iterator["Delivery"]:
        """Take one upload; what was not finished at the end is removed.

        Args:
            size: bytes that it says it has; `None` where it does not. Room is set apart only as
                they come: nobody keeps any by promising much.
            sender: who sends it; "" is not counted.

        Raises:
            StoreError: there is no such folder.
            InputError: code `upload-busy`: too many uploads at once; `upload-full`: no room.
        """
        if not self.path.is_dir():
            raise StoreError(f"{self.path} is not a folder")
        with Folder(self.path).lock(_LOCK, wait=True):
            others = self._under_way()
            self._check_slots(others, sender)
            self._check_room(size or 1, others)
            try:
                aside = Path(tempfile.mkdtemp(dir=self.path, prefix=_ASIDE))
                aside.chmod(_FOLDER_MODE)
                account = _Account.open(aside, sender)
            except OSError as error:
                raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
            account.reserve(0)
        delivery = Delivery(folder=self, aside=aside, account=account)
        try:
            yield delivery
        finally:
            delivery.close()
            shutil.rmtree(aside, ignore_errors=True)
            account.close()

    def _check_slots(self, others: Sequence["_Share"], sender: str) -> None:
        of_one = sum(other.sender == sender for other in others) if sender else 0
        if len(others) < self.limits.at_once and of_one < self.limits.of_one:
            return
        raise _problem(
            "upload-busy",
            f"{len(others)} uploads under way, {of_one} of them yours",
            f"fewer than {self.limits.at_once}, and than {self.limits.of_one} of one team",
            hint="try again in a few minutes; nothing was stored",
        )

    def _check_room(self, wanted: int, others: Sequence["_Share"]) -> None:
        """Refuse more bytes than there is room for, counting what others have set apart."""
        deliveries, stored = self._count_deliveries()
        stored += _bytes_in(self.path)
        apart = sum(max(other.reserved, other.written) for other in others)
        coming = sum(max(0, other.reserved - other.written) for other in others)
        free = shutil.disk_usage(self.path).free - coming
        if (
            deliveries >= self.limits.deliveries
            or stored + apart + wanted > self.limits.folder_bytes
            or free - wanted < self.limits.free_bytes
        ):
            raise _full()

    def _count_deliveries(self) -> tuple[int, int]:
        """Deliveries that wait for the inbox, and their bytes; emptied ones are removed."""
        count = total = 0
        for one in _entries(self.path):
            if not one.name.startswith(DELIVERY):
                continue
            try:
                os.rmdir(one.path)  # noqa: PTH106 - a `Path` for each of thousands of folders costs more
            except OSError:  # it has files, or is no folder
                count, total = count + 1, total + _bytes_in(one.path)
        return count, total

    def _under_way(self) -> list["_Share"]:
        """The uploads under way; what a killed server left behind is removed."""
        shares = []
        names = [one.name for one in _entries(self.path) if one.name.startswith(_ASIDE)]
        for name in sorted(names):
            if name.endswith(_ACCOUNT):
                continue
            share = _Share.read(self.path / name)
            if share is None:
                shutil.rmtree(self.path / name, ignore_errors=True)
                (self.path / f"{name}{_ACCOUNT}").unlink(missing_ok=True)
            else:
                shares.append(share)
        return shares

    def _drop_emptied(self, name: str) -> None:
        """Remove a delivery whose files were taken one by one, as rsync does it."""
        if name.startswith(DELIVERY):
            with suppress(OSError):  # it has files, or is no folder
                (self.path / name).rmdir()

    def has_delivery(self, digests: Mapping[str, str]) -> bool:
        """Whether files lie there and no inbox has taken them yet: name -> SHA-256."""
        return any(_entries(self.path / _delivery_name(digests)))

    def drop_delivery(self, digests: Mapping[str, str]) -> None:
        """Remove a delivery that its sender has replaced; name -> SHA-256."""
        with Folder(self.path).lock(_LOCK, wait=True):
            shutil.rmtree(self.path / _delivery_name(digests), ignore_errors=True)

    def check_name(self, name: str) -> str:
        """The id of the submission that a file belongs to, or the handle of the team, by its name.

        Raises:
            InputError: code `upload-name`: it is no name of a sealed file or a registration.
        """
        head = name.removesuffix(_REGISTRATION)
        if head != name and self.is_team is not None and self.is_team(head):
            return head
        for ending in self.endings:
            head = name.removesuffix(ending)
            if head != name and _HEAD.fullmatch(head) and is_submission_id(head):
                return head
        forms = [f"yyyymmdd-NAME{ending}" for ending in self.endings]
        forms += [f"team-HANDLE{_REGISTRATION}"] * (self.is_team is not None)
        raise _problem(
            "upload-name",
            quote(name),
            " or ".join(forms),
            hint="send the files as `heldout pack` or `heldout register --to` named them",
        )

    def check_set(self, sizes: Mapping[str, int]) -> tuple[str, UploadKind]:
        """What files make together: the id or the handle, and the kind.

        Args:
            sizes: base name -> bytes.

        Raises:
            InputError: codes `upload-name`; `upload-set`: not all three files of one submission,
                nor its metadata or a registration alone; `upload-too-large`.
        """
        owners = {self.check_name(name) for name in sizes}
        owner = min(owners, default="")
        for name, size in sizes.items():
            self.check_size(name, size)
        runs, metadata, key = (f"{owner}{ending}" for ending in self.endings)
        sets: dict[UploadKind, set[str]] = {
            "submission": {runs, key, metadata},
            "update": {metadata},
            "registration": {f"{owner}{_REGISTRATION}"},
        }
        kind = next((kind for kind, names in sets.items() if names == set(sizes)), None)
        empty = [name for name, size in sizes.items() if not size]
        if kind is None or empty:
            told = f"{empty[0]} is empty" if empty else ", ".join(sorted(sizes)) or "no file"
            raise _problem(
                "upload-set",
                told,
                "all three sealed files of a submission, its metadata alone for an update, or one "
                "registration",
                hint="choose the three together: hold Ctrl or Shift in the dialogue",
            )
        return owner, kind

    def check_size(self, name: str, size: int) -> None:
        """Refuse a file that is larger than the inbox takes it.

        Raises:
            InputError: code `upload-too-large`.
        """
        _, metadata, key = self.endings
        of_kind = {
            metadata: self.limits.metadata_bytes,
            key: self.limits.key_bytes,
            _REGISTRATION: self.limits.registration_bytes,
        }
        rest = self.limits.file_bytes
        most = min([rest, *(most for end, most in of_kind.items() if name.endswith(end))])
        if size > most:
            raise _problem(
                "upload-too-large", f"{name} of {size:,} bytes", f"at most {most:,} bytes"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Share:
    """What the account says of an upload under way: who sends it, bytes set apart and written."""

    sender: str
    reserved: int
    written: int

    @staticmethod
    def read(aside: Path) -> "_Share | None":
        """`None` where no process holds it any more."""
        try:
            with Path(f"{aside}{_ACCOUNT}").open("rb") as account:
                try:
                    fcntl.flock(account, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    told = json.loads(account.read() or b"{}")
                    return _Share(
                        sender=told.get("sender", ""),
                        reserved=told.get("reserved", 0),
                        written=_bytes_in(aside),
                    )
        except (OSError, ValueError):
            return None
        return None


class _Account:
    """The line of one upload in the account of all: a file, locked for as long as it goes on."""

    def __init__(self, path: Path, file: BinaryIO, sender: str) -> None:
        self._path, self._file, self._sender = path, file, sender
        self.reserved = 0

    @staticmethod
    def open(aside: Path, sender: str) -> "_Account":
        path = Path(f"{aside}{_ACCOUNT}")
        file = path.open("xb", buffering=0)
        fcntl.flock(file, fcntl.LOCK_EX)
        return _Account(path, file, sender)

    def reserve(self, size: int) -> None:
        """Say that so many bytes are set apart for it; the lock of all is held."""
        self.reserved = size
        told = json.dumps({"sender": self._sender, "reserved": size}).encode()
        os.pwrite(self._file.fileno(), told, 0)
        self._file.truncate(len(told))

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


class Delivery:
    """One upload under way: files one after the other, then `finish`."""

    def __init__(self, *, folder: UploadFolder, aside: Path, account: _Account) -> None:
        self._folder = folder
        self._aside = aside
        self._account = account
        self._written = 0
        self._owner = ""
        self._files: dict[str, Received] = {}
        self._name = ""
        self._open: BinaryIO | None = None
        self._size = 0
        self._hash = hashlib.sha256()

    def begin_file(self, name: str) -> None:
        """Begin the next file.

        Raises:
            InputError: codes `upload-name`; `upload-set`: it is of another submission or team, or
                twice.
        """
        self._end_file()
        owner = self._folder.check_name(name)
        if name in self._files or self._owner not in ("", owner):
            raise _problem(
                "upload-set",
                f"{name} twice" if name in self._files else f"{self._owner} and {owner}",
                "each file of one submission once, or one registration",
            )
        self._owner, self._name, self._size = owner, name, 0
        self._hash = hashlib.sha256()
        self._open = (self._aside / name).open("xb")

    def write(self, data: bytes) -> None:
        """Go on with the file.

        Raises:
            InputError: codes `upload-too-large`, `upload-full`.
            ValueError: no file was begun.
        """
        if self._open is None:
            raise ValueError("no file was begun")
        self._size += len(data)
        self._written += len(data)
        self._folder.check_size(self._name, self._size)
        if self._written > self._account.reserved:
            self._reserve_more()
        try:
            self._open.write(data)
        except OSError as error:
            raise _full() from error
        self._hash.update(data)

    def _reserve_more(self) -> None:
        """Set more room apart: a large step, or where that does not fit what it needs now."""
        folder = self._folder
        with Folder(folder.path).lock(_LOCK, wait=True):
            others = folder._under_way()  # noqa: SLF001 - a class of this module; itself among them
            need = self._written - self._account.reserved
            try:
                folder._check_room(_STEP, others)  # noqa: SLF001 - a class of this module
                need = max(need, _STEP)
            except InputError:
                folder._check_room(need, others)  # noqa: SLF001 - a class of this module
            self._account.reserve(self._account.reserved + need)

    def finish(self, *, now: datetime) -> UploadReceipt:
        """Make a delivery of the files, all in one step.

        Args:
            now: the time, UTC.

        Raises:
            InputError: codes `upload-set`: not all three files, nor the metadata or a registration
                alone; `upload-full`.
        """
        self._end_file()
        sizes = {name: file.size for name, file in self._files.items()}
        _, kind = self._folder.check_set(sizes)
        name = _delivery_name({name: file.digest for name, file in self._files.items()})
        with Folder(self._folder.path).lock(_LOCK, wait=True):
            self._folder._drop_emptied(name)  # noqa: SLF001 - a class of this module
            known = os.path.lexists(self._folder.path / name)
            if not known:
                Folder(self._aside).sync()
                self._aside.rename(self._folder.path / name)
                Folder(self._folder.path).sync()
        return UploadReceipt(
            owner=self._owner,
            kind="registration" if kind == "registration" else "submission",
            files=tuple(self._files[name] for name in sorted(self._files)),
            received=now,
            known=known,
        )

    def files(self) -> tuple[Received, ...]:
        """What came, on the disk below `path`; no more is written."""
        self._end_file()
        return tuple(self._files[name] for name in sorted(self._files))

    @property
    def path(self) -> Path:
        """The folder with what came, until the upload ends."""
        return self._aside

    def close(self) -> None:
        """Let go of the file that is open."""
        if self._open is not None:
            with suppress(OSError):  # a full disk is told where it was met
                self._open.close()
            self._open = None

    def _end_file(self) -> None:
        if self._open is None:
            return
        try:
            self._open.flush()
            os.fchmod(self._open.fileno(), _MODE)
            os.fsync(self._open.fileno())
        except OSError as error:
            raise _full() from error
        self.close()
        digest = Digest(self._hash.hexdigest())
        self._files[self._name] = Received(name=self._name, size=self._size, digest=digest)


def _delivery_name(digests: Mapping[str, str]) -> str:
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return f"{DELIVERY}{digest_bytes(lines.encode())[:_NAME_DIGITS]}"


def _entries(folder: str | Path) -> Iterator["os.DirEntry[str]"]:
    """What lies in a folder, one after the other; nothing where there is none.

    Each upload looks at all that waits for the inbox, which may be ten thousand deliveries. A list
    of them leaves holes in the memory of a server that runs for weeks, and a `Path` puts each name
    into Python's table of names, which only grows.
    """
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        yield from entries


def _bytes_in(folder: str | Path) -> int:
    """Bytes of the files in a folder, but for the accounts; what is gone by now counts not."""
    total = 0
    for one in _entries(folder):
        if not one.name.startswith(_ASIDE):
            with suppress(OSError):
                found = one.stat(follow_symlinks=False)
                total += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return total


def _full() -> InputError:
    return _problem(
        "upload-full",
        "no room for it",
        "less than is free",
        hint="nothing was stored; ask the organiser",
    )


def _problem(code: str, found: str, expected: str, *, hint: str = "") -> InputError:
    return InputError.of(code=code, path="upload", found=found, expected=expected, hint=hint)
