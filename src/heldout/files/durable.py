"""Files that are whole or absent, and folders in which no symlink leads astray.

`Folder` is for heldout's own folders: a board, a vault, uploads, a campaign, a report. What lies in
them may have come from a stranger, with a clone or a pull. So every path is opened part by part,
relative to the handle of the folder above, and a symlink in any part is an error (`O_NOFOLLOW`).
The root may be reached by a symlink: the user names it. Names are relative, with `/`.

    folder = Folder(root)             # Folder(root, read_only=True) raises where it would write
    folder.read("a/b.json")           # bytes, at most `limit=`, 4 GiB; `find`: None where absent
    folder.open("a/b.json")           # a stream of a plain file: fstat and read the same handle
    folder.write_whole("a/b", data)   # aside, fsync, rename; makes missing folders
    folder.create("a/b")              # a stream into a file that must not exist yet
    folder.append_line("log", line)   # one line, on disk when it returns
    folder.change("a/b")              # a stream to read and write
    folder.delete("a/b"); folder.delete_tree("a")
    folder.stats("a")                 # the state of each plain file in a folder
    folder.names("a")                 # what lies in a folder; folder.walk("a"): all below
    folder.is_file("a/b"); folder.is_folder("a"); folder.exists("a"); folder.stat("a/b")
    with folder.lock("lock"): ...     # one writer at a time; lock_and_sweep: after a kill, too
    folder.below("a")                 # the same, inside `a`, which is not followed either
    folder.file("a/b.json")           # a `File`: named here, opened where it is needed

`write_whole(path, ...)` alone is for files that a user names, such as `--out`.
"""

import errno
import fcntl
import os
import secrets
import shutil
import stat
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO, TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal

from heldout.errors import HeldoutError, StoreError, quote

ASIDE = ".writing-"
"""What the names of files begin with that are being written."""

MOST_BYTES = 1 << 32
"""Of a file that is read at once: 4 GiB, so that a huge one takes no memory."""

Mark = bytes
"""What is another one after a file has changed: where it lies, its length and its times."""

_MARK = struct.Struct("<3Q2q")
_IN_ORDER = b"in order\n"

_CHUNK = 1 << 20
_CLOCK_STEP = 50_000_000  # nanoseconds; more than any file system's

_AS_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TO_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TO_CHANGE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of heldout's own, in which no symlink is followed.

    Every method raises `StoreError` where a part of the name is a symlink, leads out of the folder,
    or is no plain file where one is read or written; `OSError`, with the whole path, for the rest.

    Attributes:
        root: the folder, as the user names it; it may be reached by a symlink.
        inside: the folder below the root that names are relative to; "" for the root itself.
        read_only: whether writing, deleting and locking raise `RuntimeError`.
    """

    root: Path
    inside: str = ""
    read_only: bool = False

    def below(self, name: str) -> "Folder":
        """A folder in this one, which need not exist yet."""
        return replace(self, inside=self._relative(name))

    def path(self, name: str = "") -> Path:
        """Return where a file lies, to be shown: opening it would follow links."""
        return self.root / self._relative(name)

    def file(self, name: str) -> "File":
        """A file in this folder, which need not exist yet."""
        return File(folder=self, path=name)

    def stat(self, name: str = "") -> os.stat_result | None:
        """Return what lies there; `None` where nothing does."""
        try:
            with self._at(name) as (handle, last):
                found = os.stat(last, dir_fd=handle, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(found.st_mode):
            raise self._link(self._relative(name))
        return found

    def exists(self, name: str = "") -> bool:
        """Check whether anything lies there."""
        return self.stat(name) is not None

    def is_file(self, name: str) -> bool:
        """Check whether a plain file lies there."""
        found = self.stat(name)
        return found is not None and stat.S_ISREG(found.st_mode)

    def is_folder(self, name: str = "") -> bool:
        """Check whether a folder lies there."""
        found = self.stat(name)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def marks(self, name: str) -> dict[str, Mark]:
        """The mark of every plain file in a folder that has one; see `mark`."""
        now = time.time_ns()
        found: dict[str, Mark] = {}
        try:
            with self._in(name) as handle, os.scandir(handle) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        mark = _mark(entry.stat(follow_symlinks=False), now)
                        if mark is not None:
                            found[entry.name] = mark
        except FileNotFoundError:
            return {}
        return found

    def mark(self, name: str) -> Mark | None:
        """Return what is another one after a file has changed; `None` where that cannot be known.

        The system's clock for files has steps: of a file that changed just now, a second change in
        the same step would leave no trace.
        """
        found = self.stat(name)
        return None if found is None else _mark(found, time.time_ns())

    def names(self, name: str = "") -> tuple[str, ...]:
        """The names in a folder, sorted, of whatever kind; none where it is missing."""
        try:
            with self._in(name) as handle:
                return tuple(sorted(os.listdir(handle)))  # noqa: PTH208 - of a handle
        except FileNotFoundError:
            return ()

    def stats(self, name: str = "") -> dict[str, os.stat_result]:
        """The plain files in a folder, by name; none where it is missing."""
        try:
            with self._in(name) as handle, os.scandir(handle) as found:
                return {
                    entry.name: entry.stat(follow_symlinks=False)
                    for entry in found
                    if entry.is_file(follow_symlinks=False)
                }
        except FileNotFoundError:
            return {}

    def walk(self, name: str = "") -> Iterator[tuple[str, bool]]:
        """All that lies below a folder but folders: name, whether it is a plain file; sorted.

        A symlink below it is reported as no plain file, and not followed.
        """
        try:
            with self._in(name) as handle, os.scandir(handle) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        for entry in entries:
            path = f"{name}/{entry.name}" if name else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self.walk(path)
            else:
                yield path, entry.is_file(follow_symlinks=False)

    def open(self, name: str) -> BinaryIO:
        """A plain file to read: `os.fstat` of the stream is about the very file that is read."""
        with self._at(name) as (handle, last):
            return self._plain(os.open(last, _TO_READ, dir_fd=handle), name, "rb")

    def read(self, name: str, *, limit: int = MOST_BYTES) -> bytes:
        """The content of a plain file.

        Raises:
            StoreError: it is longer than `limit` bytes; then nothing of it is in memory.
        """
        with self.open(name) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            data = b"" if size > limit else file.read(size + 1)
        if max(size, len(data)) > limit:
            raise self._too_long(name, limit)
        return data

    def check_size(self, name: str) -> None:
        """Refuse a file of more than 4 GiB before it is read line by line: it may be one line."""
        found = self.stat(name)
        if found is not None and found.st_size > MOST_BYTES:
            raise self._too_long(name, MOST_BYTES)

    def _too_long(self, name: str, limit: int) -> StoreError:
        return StoreError(f"{self.path(name)} is longer than {limit:,} bytes")

    def find(self, name: str) -> bytes | None:
        """The content of a plain file, `None` where there is none."""
        return self.read(name) if self.is_file(name) else None

    def read_lines(self, name: str) -> bytes:
        """A file's whole lines; b"" where it is missing. An unfinished last line is left out."""
        data = self.read(name) if self.exists(name) else b""
        return data[: data.rfind(b"\n") + 1]

    def write_whole(self, name: str, data: bytes, *, mode: int = 0o644) -> bool:
        """Write a file so that a crash leaves the old one or the new one, never a part.

        Returns:
            Whether anything was written; a file that holds these bytes already is left alone.
        """
        found = self._check_replaceable(name)
        if found is not None and found.st_size == len(data) and self.read(name) == data:
            return False
        with self._at(name, make=True) as (handle, last), _write_aside(handle, last, mode) as file:
            file.write(data)
        return True

    @contextmanager
    def replacing(self, name: str, *, mode: int = 0o644) -> Iterator[BinaryIO]:
        """As `write_whole`, of what is too long to be in memory at once; it may be read meanwhile.

        Args:
            name: of the file.
            mode: its permissions.

        Yields:
            A stream that takes its content; the file is replaced when the block ends.
        """
        self._check_replaceable(name)
        with self._at(name, make=True) as (handle, last), _write_aside(handle, last, mode) as file:
            yield file

    def create(self, name: str, *, mode: int = 0o644) -> BinaryIO:
        """A stream into a new file.

        Raises:
            FileExistsError: something has this name.
        """
        self._check_writable()
        with self._at(name, make=True) as (handle, last):
            return os.fdopen(os.open(last, _NEW, mode, dir_fd=handle), "wb")

    def append_line(self, name: str, line: bytes, *, mode: int = 0o600) -> None:
        """Append one line and wait until it is on disk; only then has it happened.

        An unfinished line that a crash left behind is cut first: it never counted.
        """
        if not line.endswith(b"\n") or b"\n" in line[:-1]:
            raise ValueError(line)
        with self.change(name, mode=mode) as file:
            file.truncate(_end_of_lines(file))
            file.seek(0, os.SEEK_END)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.sync(str(PurePosixPath(name).parent))

    def change(self, name: str, *, mode: int = 0o600) -> BinaryIO:
        """A stream to read and write a plain file, which is made where there is none."""
        self._check_writable()
        with self._at(name, make=True) as (handle, last):
            return self._plain(os.open(last, _TO_CHANGE, mode, dir_fd=handle), name, "r+b")

    def make_folder(self, name: str = "", *, mode: int = 0o777) -> None:
        """Make a folder and those above it, as far as they are missing."""
        self._check_writable()
        with self._in(name, make=True, mode=mode):
            pass

    def rename(self, old: str, new: str) -> None:
        """Move a file to another name, in the place of a plain file there."""
        self._check_writable()
        for name in (old, new):
            self.stat(name)
        with self._at(old) as (source, before), self._at(new) as (target, after):
            os.replace(before, after, src_dir_fd=source, dst_dir_fd=target)

    def delete(self, name: str) -> None:
        """Remove a file, if it is there."""
        self._check_writable()
        if self.exists(name):
            with self._at(name) as (handle, last), suppress(FileNotFoundError):
                os.unlink(last, dir_fd=handle)

    def delete_tree(self, name: str) -> None:
        """Remove a folder and all in it, if it is there; what links in it point to stays."""
        self._check_writable()
        if self.is_folder(name):
            with self._at(name) as (handle, last):
                shutil.rmtree(last, dir_fd=handle, ignore_errors=True)

    def sync(self, name: str = "") -> None:
        """Wait until the names in a folder are on disk."""
        with self._in(name) as handle:
            os.fsync(handle)

    def free_bytes(self) -> int:
        """Bytes that its disk has free."""
        return shutil.disk_usage(self.root).free

    def sweep(self, *names: str) -> None:
        """Remove what killed writers left aside in these folders; the caller holds their lock."""
        self._check_writable()
        for name in names:
            for left in self.names(name):
                if left.startswith(ASIDE):
                    self.delete(f"{name}/{left}" if name else left)

    @contextmanager
    def lock(self, name: str, *, wait: bool = False) -> Iterator[None]:
        """Hold a lock file: one writer at a time on this machine; freed also by a crash.

        Args:
            name: of the file.
            wait: for whoever holds it.

        Raises:
            StoreError: another process holds it.
        """
        with self.change(name, mode=0o666) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    f"another heldout is at work here ({self.path(name)}); wait for it, then call "
                    "again"
                ) from None
            yield

    @contextmanager
    def lock_and_sweep(self, name: str, sweep: Callable[[], None]) -> Iterator[None]:
        """As `lock`, for work that may leave something aside when it is killed.

        To look through a large folder takes as long as much of the work. So the lock file holds a
        word while all is in order, and is empty from before the work until after it.

        Args:
            name: of the file.
            sweep: removes what was left aside; called unless the work before this one ended well.
        """
        with self.lock(name):
            with self.change(name) as file:
                in_order = file.read(len(_IN_ORDER) + 1) == _IN_ORDER
                file.truncate(0)
                os.fsync(file.fileno())  # on disk before anything is left aside
            if not in_order:
                sweep()
            try:
                yield
            except HeldoutError:  # whoever refuses leaves nothing aside
                self._put_in_order(name)
                raise
            self._put_in_order(name)

    def _put_in_order(self, lock: str) -> None:
        with self.change(lock) as file:
            file.write(_IN_ORDER)

    @contextmanager
    def _at(self, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The handle of the folder that a name lies in, and the last part of the name."""
        relative = self._relative(name)
        above, _, last = relative.rpartition("/")
        handle = self._walk_to(above, make=make)
        try:
            yield handle, last or "."
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise self._link(relative) from None
            raise _with_path(error, self.root / relative) from error
        finally:
            os.close(handle)

    @contextmanager
    def _in(self, name: str, *, make: bool = False, mode: int = 0o777) -> Iterator[int]:
        """The handle of a folder."""
        handle = self._walk_to(self._relative(name), make=make, mode=mode)
        try:
            yield handle
        finally:
            os.close(handle)

    def _walk_to(self, relative: str, *, make: bool, mode: int = 0o777) -> int:
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        done = ""
        for part in relative.split("/") if relative else ():
            done = f"{done}/{part}" if done else part
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, mode, dir_fd=handle)
                following = os.open(part, _AS_FOLDER, dir_fd=handle)
            except OSError as error:
                if _is_link(part, handle):
                    raise self._link(done) from None
                raise _with_path(error, self.root / done) from error
            finally:
                os.close(handle)
            handle = following
        return handle

    def _plain(self, opened: int, name: str, mode: str) -> BinaryIO:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            os.close(opened)
            raise StoreError(f"{self.path(name)} is no plain file")
        os.set_blocking(opened, True)
        file: BinaryIO = os.fdopen(opened, mode)  # type: ignore[assignment]  # both are binary
        return file

    def _relative(self, name: str) -> str:
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/") or "\0" in name:
            raise StoreError(f"{quote(name)} leads out of {self.root}")
        return "/".join([self.inside, *parts] if self.inside else parts)

    def _link(self, relative: str) -> StoreError:
        return StoreError(
            f"{self.root / relative} is a symlink, and nothing is read, written or deleted through "
            f"a symlink inside {self.root}: remove it (git rm and git commit, if git has it), put "
            "the file or folder itself there, then call again"
        )

    def _check_replaceable(self, name: str) -> os.stat_result | None:
        self._check_writable()
        found = self.stat(name)
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise StoreError(f"{self.path(name)} is no file: give another name")
        return found

    def _check_writable(self) -> None:
        if self.read_only:
            raise RuntimeError(f"{self.root} is opened to be read alone")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file in a folder of heldout's own; each use walks to it, and no symlink is followed.

    It is no `os.PathLike`, so that nothing opens it by its path.

    Attributes:
        folder: that it lies in.
        path: relative to it.
    """

    folder: Folder
    path: str

    def __str__(self) -> str:
        """The whole path, to be shown."""
        return str(self.folder.path(self.path))

    @property
    def name(self) -> str:
        """The last part of its path."""
        return PurePosixPath(self.path).name

    def is_file(self) -> bool:
        """Check whether a plain file lies there."""
        return self.folder.is_file(self.path)

    def size(self) -> int:
        """Its bytes.

        Raises:
            FileNotFoundError: it is missing.
        """
        found = self.folder.stat(self.path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return found.st_size

    def open(self, _mode: Literal["rb"] = "rb") -> BinaryIO:
        """As `Folder.open`; the mode is there for what takes a `Path` too."""
        return self.folder.open(self.path)

    def read_bytes(self) -> bytes:
        """As `Folder.read`."""
        return self.folder.read(self.path)

    def read_text(self, encoding: str) -> str:
        """Its text, with plain line ends.

        Raises:
            UnicodeDecodeError: it is no text of this encoding.
        """
        with TextIOWrapper(BytesIO(self.read_bytes()), encoding=encoding) as text:
            return text.read()

    def find(self) -> bytes | None:
        """As `Folder.find`."""
        return self.folder.find(self.path)

    def write_whole(self, data: bytes, *, mode: int = 0o644) -> bool:
        """As `Folder.write_whole`."""
        return self.folder.write_whole(self.path, data, mode=mode)

    def delete(self) -> None:
        """As `Folder.delete`."""
        self.folder.delete(self.path)


def write_whole(path: Path, data: bytes, *, mode: int = 0o644) -> bool:
    """Write a file that a user names, so that a crash leaves the old one or the new one.

    Args:
        path: its folder is made when missing, and may be reached by links; a link of this very
            name is replaced itself, and what it points to is left alone.
        data: the whole content.
        mode: permissions of the new file.

    Returns:
        Whether anything was written; a file that holds these bytes already is left alone.

    Raises:
        StoreError: a device, pipe or folder has this name: a rename would put a file in its place.
        OSError: it cannot be written; `filename` is `path`, not that of the file aside.
    """
    if path.is_file() and path.read_bytes() == data:
        return False
    if path.exists() and not (path.is_file() or path.is_symlink()):
        raise StoreError(f"{path} is no file: give another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _write_aside(handle, path.name, mode) as file:
                file.write(data)
        finally:
            os.close(handle)
    except OSError as error:
        raise _with_path(error, path) from error
    return True


@contextmanager
def _write_aside(handle: int, name: str, mode: int) -> Iterator[BinaryIO]:
    aside = f"{ASIDE}{secrets.token_hex(8)}"
    opened = os.open(aside, _NEW, 0o600, dir_fd=handle)
    try:
        with os.fdopen(opened, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(aside, name, src_dir_fd=handle, dst_dir_fd=handle)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=handle)
        raise
    os.fsync(handle)


def _mark(found: os.stat_result, now: int) -> Mark | None:
    if now - found.st_ctime_ns < _CLOCK_STEP:
        return None
    times = found.st_mtime_ns, found.st_ctime_ns
    return _MARK.pack(found.st_dev, found.st_ino, found.st_size, *times)


def _is_link(part: str, handle: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(part, dir_fd=handle, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _with_path(error: OSError, path: Path) -> OSError:
    """The same error about the whole path, not about a part of it."""
    if error.errno is None:
        return error
    return OSError(error.errno, error.strerror, str(path))


def _end_of_lines(file: BinaryIO) -> int:
    """Return where the last whole line of a file ends; only the end of a long file is read."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(end - _CHUNK, 0)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
