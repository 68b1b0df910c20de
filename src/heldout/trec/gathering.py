"""Rows of a query that stand apart in a file, brought together in bounded memory.

What does not fit goes to a temporary database of SQLite, which nobody else can open and which is
gone when it is closed.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from heldout.errors import InputError, Problem

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Gathered"]

_IN_MEMORY = 1 << 22
_CACHE_KIB = 4096
_NUMBER = 8


class Gathered:
    """Lines by query, in the order in which they were added.

    Args:
        in_memory: bytes of text that are kept in memory.
        path: the file, for messages.
    """

    def __init__(self, in_memory: int = _IN_MEMORY, *, path: str) -> None:
        self._in_memory = in_memory
        self._path = path
        self._size = 0
        self._texts: dict[bytes, bytearray] = {}
        self._numbers: dict[bytes, array[int]] = {}
        self._queries: dict[bytes, None] = {}
        self._database: sqlite3.Connection | None = None

    def add(self, query: bytes, text: bytes, numbers: Sequence[int]) -> None:
        """Keep lines of a query; `numbers` are their 1-based numbers in the file.

        Raises:
            InputError: code `no-scratch`.
        """
        if query not in self._texts:
            self._queries[query] = None
            self._texts[query] = bytearray()
            self._numbers[query] = array("q")
        self._texts[query] += text
        if len(numbers) == 1:
            self._numbers[query].append(numbers[0])  # much faster, and the usual case
        else:
            self._numbers[query].extend(numbers)
        self._size += len(text) + _NUMBER * len(numbers)
        if self._size > self._in_memory:
            self._spill()

    def __len__(self) -> int:
        """Number of queries."""
        return len(self._queries)

    def queries(self) -> Iterator[tuple[bytes, list[int]]]:
        """The lines of each query, first come first, and their numbers.

        Raises:
            InputError: code `no-scratch`.
        """
        if self._database is not None:
            self._spill()
            with _scratch(self._path):
                self._database.execute("CREATE INDEX by_query ON lines (query)")
        for query in self._queries:
            yield self._fetch(query)

    def close(self) -> None:
        """Forget everything."""
        if self._database is not None:
            self._database.close()
            self._database = None
        self._texts.clear()
        self._numbers.clear()

    def _spill(self) -> None:
        with _scratch(self._path):
            database = self._open()
            database.execute("BEGIN")
            database.executemany(
                "INSERT INTO lines VALUES (?, ?, ?)",
                (
                    (query, self._numbers[query].tobytes(), text)
                    for query, text in self._texts.items()
                ),
            )
            database.execute("COMMIT")
        self._texts.clear()
        self._numbers.clear()
        self._size = 0

    def _open(self) -> "sqlite3.Connection":
        if self._database is None:
            import sqlite3  # noqa: PLC0415 - few runs come here, and each call would pay for it

            self._database = sqlite3.connect("", isolation_level=None)  # "": a temporary file
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._database.execute("CREATE TABLE lines (query BLOB, numbers BLOB, text BLOB)")
        return self._database

    def _fetch(self, query: bytes) -> tuple[bytes, list[int]]:
        if self._database is None:
            return bytes(self._texts.pop(query)), self._numbers.pop(query).tolist()
        pieces = []
        numbers = array("q")
        rows = "SELECT numbers, text FROM lines WHERE query = ? ORDER BY rowid"
        with _scratch(self._path):
            for some, text in self._database.execute(rows, (query,)):
                numbers.frombytes(some)
                pieces.append(text)
        return b"".join(pieces), numbers.tolist()


@contextmanager
def _scratch(path: str) -> Iterator[None]:
    """What the database cannot do is told of the run that needs it: others may need none."""
    import sqlite3  # noqa: PLC0415 - as above

    try:
        yield
    except sqlite3.Error as error:
        raise InputError(
            Problem(
                code="no-scratch",
                path=path,
                found=f"no room for a temporary file: {error}",
                expected="room for the run's rows, whose queries stand apart in the file",
                hint="make room there, or name another folder with SQLITE_TMPDIR; "
                "a run sorted by query needs none",
            )
        ) from error
