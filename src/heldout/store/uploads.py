"""Uploads of sealed files and registrations into a folder that `heldout inbox --from` reads.

Files are stored as they come and never opened. They are written aside; a whole submission then gets
its names at once, under a lock, and nothing that lies there is ever replaced.
"""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from heldout.errors import InputError, Problem, StoreError, quote
from heldout.ids import Digest, parse_submission_id
from heldout.store.files import Folder
from heldout.store.upload_receipts import Received, UploadReceipt

__all__ = ["Delivery", "Limits", "UploadFolder"]

_ASIDE = ".uploading-"
_LOCK = ".uploading.lock"
_STALE = timedelta(days=1)
_MODE = 0o640
_CHUNK = 1 << 20
_REGISTRATION = ".json"
_HEAD = re.compile(r"[A-Za-z0-9._-]{1,120}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken.

    Attributes:
        file_bytes: most of one sealed file; the inbox takes no larger one.
        registration_bytes: most of a registration; the inbox takes no larger one.
        folder_bytes: most that lies in the folder, uploads under way included.
        free_bytes: the disk keeps at least so many free.
        at_once: uploads under way.
    """

    file_bytes: int = 1 << 30
    registration_bytes: int = 1 << 16
    folder_bytes: int = 20 << 30
    free_bytes: int = 1 << 30
    at_once: int = 8


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
    def deliver(self, *, now: datetime) -> Iterator["Delivery"]:
        """Take one upload; what was not finished at the end is removed.

        Args:
            now: the time, UTC; what a killed server left a day ago is removed.

        Raises:
            StoreError: there is no such folder.
            InputError: code `upload-busy`: too many uploads at once; `upload-full`: no room.
        """
        if not self.path.is_dir():
            raise StoreError(f"{self.path} is not a folder")
        self._sweep(now)
        if sum(1 for _ in self.path.glob(f"{_ASIDE}*")) >= self.limits.at_once:
            raise _problem(
                "upload-busy",
                f"{self.limits.at_once} uploads under way",
                "fewer",
                hint="try again in a few minutes; nothing was stored",
            )
        room = self._room()
        try:
            aside = Path(tempfile.mkdtemp(dir=self.path, prefix=_ASIDE))
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
        delivery = Delivery(folder=self, aside=aside, room=room)
        try:
            yield delivery
        finally:
            delivery.close()
            shutil.rmtree(aside, ignore_errors=True)

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
            if head != name and _HEAD.fullmatch(head):
                try:
                    return parse_submission_id(head)
                except InputError:
                    continue
        forms = [f"yyyymmdd-NAME{ending}" for ending in self.endings]
        forms += [f"team-HANDLE{_REGISTRATION}"] * (self.is_team is not None)
        raise _problem(
            "upload-name",
            quote(name),
            " or ".join(forms),
            hint="send the files as `heldout pack` or `heldout register --to` named them",
        )

    def _room(self) -> int:
        """Bytes that one more upload may have."""
        used = sum(
            _bytes_of(found)
            for place in (self.path, *self.path.glob(f"{_ASIDE}*"))
            for found in _entries(place)
        )
        free = shutil.disk_usage(self.path).free
        room = min(self.limits.folder_bytes - used, free - self.limits.free_bytes)
        if room <= 0:
            raise _full()
        return room

    def _sweep(self, now: datetime) -> None:
        for left in self.path.glob(f"{_ASIDE}*"):
            try:
                touched = datetime.fromtimestamp(left.stat().st_mtime, UTC)
            except FileNotFoundError:
                continue
            if now - touched > _STALE:
                shutil.rmtree(left, ignore_errors=True)


class Delivery:
    """One upload under way: files one after the other, then `finish`."""

    def __init__(self, *, folder: UploadFolder, aside: Path, room: int) -> None:
        self._folder = folder
        self._aside = aside
        self._room = room
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
        self._room -= len(data)
        limits = self._folder.limits
        registers = self._name == f"{self._owner}{_REGISTRATION}"
        most = limits.registration_bytes if registers else limits.file_bytes
        if self._size > most:
            raise _problem("upload-too-large", f"{self._name} goes on", f"at most {most:,} bytes")
        if self._room < 0:
            raise _full()
        try:
            self._open.write(data)
        except OSError as error:
            raise _full() from error
        self._hash.update(data)

    def finish(self, *, now: datetime) -> UploadReceipt:
        """Give the files their names, all or, where one cannot have its own, none.

        Args:
            now: the time, UTC.

        Raises:
            InputError: codes `upload-set`: not all three files, nor the metadata or a registration
                alone; `upload-taken`: another file of a name lies there; `upload-full`.
        """
        self._end_file()
        names = self._check_set()
        with Folder(self._folder.path).lock(_LOCK, wait=True):
            known = self._find_known()
            for name in names:
                if not known[name]:
                    (self._aside / name).rename(self._folder.path / name)
            _sync(self._folder.path)
        return UploadReceipt(
            owner=self._owner,
            kind="registration" if f"{self._owner}{_REGISTRATION}" in names else "submission",
            files=tuple(self._files[name] for name in sorted(self._files)),
            received=now,
            known=all(known.values()),
        )

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

    def _check_set(self) -> Sequence[str]:
        """Names of the files, in the order in which they get them."""
        runs, metadata, key = (f"{self._owner}{ending}" for ending in self._folder.endings)
        # Runs and key first: a reader who comes in between finds no metadata, and waits.
        sets = [runs, key, metadata], [metadata], [f"{self._owner}{_REGISTRATION}"]
        found = next((names for names in sets if set(names) == set(self._files)), None)
        empty = [one.name for one in self._files.values() if not one.size]
        if found is None or empty:
            told = f"{empty[0]} is empty" if empty else ", ".join(sorted(self._files)) or "no file"
            raise _problem(
                "upload-set",
                told,
                "all three sealed files of a submission, its metadata alone for an update, or one "
                "registration",
                hint="choose the three together: hold Ctrl or Shift in the dialogue",
            )
        return found

    def _find_known(self) -> Mapping[str, bool]:
        """Which files lie there already, the same; another one is an error."""
        known = {}
        for name, one in self._files.items():
            place = self._folder.path / name
            known[name] = os.path.lexists(place)
            if known[name] and _digest_there(place, one.size) != one.digest:
                raise _problem(
                    "upload-taken",
                    f"another {name} is there already",
                    "a name that is free, or the very same file",
                    hint="nothing was replaced; ask the organiser, or draft another id",
                )
        return known


def _digest_there(place: Path, size: int) -> str | None:
    """The digest of a plain file of this size; `None` for anything else."""
    try:
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            return None
        sums = hashlib.sha256()
        while data := os.read(handle, _CHUNK):
            sums.update(data)
        return sums.hexdigest()
    finally:
        os.close(handle)


def _entries(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except FileNotFoundError:
        return []


def _bytes_of(entry: os.DirEntry[str]) -> int:
    """Size of a file; 0 for what is none, or was moved or removed since it was listed."""
    try:
        return (
            entry.stat(follow_symlinks=False).st_size if entry.is_file(follow_symlinks=False) else 0
        )
    except FileNotFoundError:
        return 0


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _full() -> InputError:
    return _problem(
        "upload-full",
        "no room for it",
        "less than is free",
        hint="nothing was stored; tell the organiser",
    )


def _problem(code: str, found: str, expected: str, *, hint: str = "") -> InputError:
    return InputError(Problem(code=code, path="upload", found=found, expected=expected, hint=hint))
