"""Which public files are still as the last rebuild left them, and what each was made from.

A file is known by a digest of all that it is made from, and by its mark (`Folder.marks`): as long
as both are the same, it is neither made nor read again. The vault remembers them. A file that
somebody else changed has another mark, and is written again.
"""

import msgspec

from heldout.board.store.vault import Vault
from heldout.files.durable import Folder, Mark

_MEMORY = "files"
_MANY = 100


class _Memory(msgspec.Struct, frozen=True):
    """File -> what it was made from, and its mark then."""

    files: dict[str, bytes]


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
        self._folder, self._marks = "", dict[str, Mark]()
        self._made: dict[str, bytes] = {}
        self.same: set[str] = set()

    def is_same(self, path: str, made_of: bytes) -> bool:
        """Whether a file needs not be made again; notes what it is made from.

        Args:
            path: in the board.
            made_of: digest of everything that its bytes depend on.
        """
        known, mark = self._before.get(path), self._mark_of(path)
        same = known is not None and mark is not None and known == made_of + mark
        if same:
            self.same.add(path)
        else:
            self._made[path] = made_of
        return same

    def _mark_of(self, path: str) -> Mark | None:
        folder, _, name = path.rpartition("/")
        if folder != self._folder:  # files are asked about folder by folder
            self._folder, self._marks = folder, self._files.marks(folder)
        return self._marks.get(name)

    def remember(self) -> None:
        """Remember every file that was asked about; once all of them are written.

        One that was written just now is left out, and made again at the next call.
        """
        found = {path: self._before[path] for path in self.same}
        for path, made_of in self._made.items():
            if (mark := self._files.mark(path)) is not None:
                found[path] = made_of + mark
        if found != self._before and len(found) >= _MANY:
            self._vault.remember(_MEMORY, msgspec.msgpack.encode(_Memory(found)))


def _recall(vault: Vault) -> dict[str, bytes]:
    try:
        data = vault.recall(_MEMORY)
        return {} if data is None else msgspec.msgpack.decode(data, type=_Memory).files
    except (msgspec.MsgspecError, ValueError):
        return {}
