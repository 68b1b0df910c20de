"""`Folder` in memory: what lies in a board or a vault, without a disk."""

import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO

from heldout.errors import StoreError
from heldout.files.durable import Folder, Mark

_FILE = stat.S_IFREG
_FOLDER = stat.S_IFDIR


class _Change(BytesIO):
    """A stream that puts what was written into the folder when it is closed."""

    def __init__(self, stored: dict[str, bytes], path: str) -> None:
        super().__init__(stored.get(path, b""))
        self._stored, self._path = stored, path

    def close(self) -> None:
        if not self.closed:
            self._stored[self._path] = self.getvalue()
        super().close()


@dataclass(frozen=True, slots=True)
class MemoryFolder(Folder):
    """A folder of which nothing is on disk. It has no symlinks.

    Attributes:
        stored: path below the root -> content.
        modes: permissions of files and folders; whatever is here and not in `stored` is a folder.
        held: names of the lock files that are held.
    """

    stored: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    def stat(self, name: str = "") -> os.stat_result | None:
        path = self._relative(name)
        if path in self.stored:
            mode = _FILE | self.modes.get(path, 0o644)
            data = self.stored[path]
            return _status(mode, len(data), inode=zlib.crc32(data))
        if not path or path in self.modes or self._below(path):
            return _status(_FOLDER | self.modes.get(path, 0o777), 0)
        return None

    def marks(self, name: str) -> dict[str, Mark]:  # noqa: ARG002 - nothing here has a time
        return {}

    def mark(self, name: str) -> Mark | None:  # noqa: ARG002 - nothing here has a time
        return None

    def names(self, name: str = "") -> tuple[str, ...]:
        path = self._relative(name)
        if path in self.stored:
            raise NotADirectoryError(20, "Not a directory", str(self.path(name)))
        return tuple(sorted({found.split("/", 1)[0] for found in self._below(path)}))

    def stats(self, name: str = "") -> dict[str, os.stat_result]:
        paths = {found: f"{name}/{found}" if name else found for found in self.names(name)}
        every = {found: self.stat(path) for found, path in paths.items()}
        return {n: s for n, s in every.items() if s is not None and stat.S_ISREG(s.st_mode)}

    def walk(self, name: str = "") -> Iterator[tuple[str, bool]]:
        for found in self.names(name):
            path = f"{name}/{found}" if name else found
            if self.is_folder(path):
                yield from self.walk(path)
            else:
                yield path, True

    def open(self, name: str) -> BinaryIO:
        return BytesIO(self.stored[self._plain_path(name)])

    def write_whole(self, name: str, data: bytes, *, mode: int = 0o644) -> bool:
        self._check_writable()
        if self.is_folder(name):
            raise StoreError(f"{self.path(name)} is no file: give another name")
        path = self._in_folder(name)
        if self.stored.get(path) == data:
            return False
        self.stored[path], self.modes[path] = bytes(data), mode
        return True

    @contextmanager
    def replacing(self, name: str, *, mode: int = 0o644) -> Iterator[BinaryIO]:
        stream = BytesIO()
        yield stream
        self.write_whole(name, stream.getvalue(), mode=mode)

    def create(self, name: str, *, mode: int = 0o644) -> BinaryIO:
        self._check_writable()
        if self.exists(name):
            raise FileExistsError(17, "File exists", str(self.path(name)))
        path = self._in_folder(name)
        self.stored[path], self.modes[path] = b"", mode
        return _Change(self.stored, path)

    def append_line(self, name: str, line: bytes, *, mode: int = 0o600) -> None:
        if not line.endswith(b"\n") or b"\n" in line[:-1]:
            raise ValueError(line)
        with self.change(name, mode=mode) as file:
            before = file.read()
            file.seek(before.rfind(b"\n") + 1)
            file.truncate()
            file.write(line)

    def change(self, name: str, *, mode: int = 0o600) -> BinaryIO:
        self._check_writable()
        if self.is_folder(name):
            raise IsADirectoryError(21, "Is a directory", str(self.path(name)))
        path = self._in_folder(name)
        self.stored.setdefault(path, b"")
        self.modes.setdefault(path, mode)
        return _Change(self.stored, path)

    def make_folder(self, name: str = "", *, mode: int = 0o777) -> None:
        self._check_writable()
        path = self._in_folder(name)
        if path in self.stored:
            raise FileExistsError(17, "File exists", str(self.path(name)))
        if path:
            self.modes.setdefault(path, mode)

    def rename(self, old: str, new: str) -> None:
        self._check_writable()
        before, after = self._plain_path(old), self._in_folder(new)
        self.stored[after], self.modes[after] = self.stored.pop(before), self.modes.pop(before)

    def delete(self, name: str) -> None:
        self._check_writable()
        if self.exists(name):
            path = self._plain_path(name)
            del self.stored[path]
            self.modes.pop(path, None)

    def delete_tree(self, name: str) -> None:
        self._check_writable()
        top = self._relative(name)
        if self.is_folder(name):
            for path in [top, *(f"{top}/{below}" for below in self._below(top))]:
                self.stored.pop(path, None)
                self.modes.pop(path, None)

    def free_bytes(self) -> int:
        return 1 << 40

    def sync(self, name: str = "") -> None:
        pass

    @contextmanager
    def lock(self, name: str, *, wait: bool = False) -> Iterator[None]:  # noqa: ARG002 - nobody else is here
        path = self._relative(name)
        self.change(name, mode=0o666).close()
        if path in self.held:
            raise StoreError(
                f"another heldout is at work here ({self.path(name)}); wait for it, then call again"
            )
        self.held.add(path)
        try:
            yield
        finally:
            self.held.discard(path)

    @contextmanager
    def lock_and_sweep(self, name: str, sweep: Callable[[], None]) -> Iterator[None]:
        with self.lock(name):
            sweep()
            yield

    def _below(self, path: str) -> list[str]:
        """What lies below a folder, relative to it."""
        start = f"{path}/" if path else ""
        every = {**self.modes, **self.stored}
        return [p.removeprefix(start) for p in every if p.startswith(start) and p != path]

    def _in_folder(self, name: str) -> str:
        """A path, whose folders are made."""
        path = self._relative(name)
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            above = "/".join(parts[:count])
            if above in self.stored:
                raise NotADirectoryError(20, "Not a directory", str(self.root / above))
            self.modes.setdefault(above, 0o777)
        return path

    def _plain_path(self, name: str) -> str:
        path = self._relative(name)
        if path in self.stored:
            return path
        if self.exists(name):
            raise StoreError(f"{self.path(name)} is no plain file")
        raise FileNotFoundError(2, "No such file or directory", str(self.path(name)))


def _status(mode: int, size: int, inode: int = 0) -> os.stat_result:
    return os.stat_result((mode, inode, 0, 1, os.geteuid(), os.getegid(), size, 0, 0, 0))
