"""Which public files are still as the last rebuild left them, and what each was made from.

A file is known by a digest of all that it is made from, and by its mark (`Folder.marks`): as long
as both are the same, it is neither made nor read again. The vault remembers them. A file that
somebody else changed has another mark, and is written again.
"""

from collections.abc import Mapping

import msgspec

from heldout.board.store.vault import Vault
from heldout.files.durable import Folder, Mark

_MEMORY = "files"
_MANY = 100


class _Known(msgspec.Struct, frozen=True, array_like=True):
    """What a file was made from, and its mark then."""

    made_of: bytes
    mark: Mark


class _Memory(msgspec.Struct, frozen=True):
    files: dict[str, _Known]


class KnownFiles:
    """The public files of a board in one rebuild."""

    def __init__(self, files: Folder, vault: Vault) -> None:
        """Recall what the last rebuild left.

        Args:
            files: the board's folder.
            vault: remembers.
        """
        self._files, self._vault = files, vault
        self._before = _recall(vault)
        self._marks: dict[str, Mapping[str, Mark]] = {}
        self._made: dict[str, bytes] = {}
        self.same: set[str] = set()

    def is_same(self, path: str, made_of: bytes) -> bool:
        """Whether a file needs not be made again; notes what it is made from.

        Args:
            path: in the board.
            made_of: digest of everything that its bytes depend on.
        """
        self._made[path] = made_of
        known = self._before.get(path)
        same = known is not None and known.made_of == made_of and known.mark == self._mark_of(path)
        if same:
            self.same.add(path)
        return same

    def _mark_of(self, path: str) -> Mark | None:
        folder, _, name = path.rpartition("/")
        if folder not in self._marks:
            self._marks[folder] = self._files.marks(folder)
        return self._marks[folder].get(name)

    def remember(self) -> None:
        """Remember every file that was asked about; once all of them are written.

        One that was written just now is left out, and made again at the next call.
        """
        found = {path: self._before[path] for path in self.same}
        for path in self._made.keys() - self.same:
            if (mark := self._files.mark(path)) is not None:
                found[path] = _Known(self._made[path], mark)
        if found != self._before and len(found) >= _MANY:
            self._vault.remember(_MEMORY, msgspec.msgpack.encode(_Memory(found)))


def _recall(vault: Vault) -> Mapping[str, _Known]:
    try:
        data = vault.recall(_MEMORY)
        return {} if data is None else msgspec.msgpack.decode(data, type=_Memory).files
    except (msgspec.MsgspecError, ValueError):
        return {}
