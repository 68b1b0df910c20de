# The compiled scanner, see compiled.py.
from typing import final

INTERFACE: int
MOST_SEGMENTS: int

@final
class Scanner:
    def __new__(
        cls, judgments: dict[str, dict[str, int]], columns: int, order: int, depth: int
    ) -> Scanner: ...
    def scan(self, text: bytes, last: bool, /) -> tuple[int, int, bytes, bytes, bytes]: ...
    def columns(self, first: int, count: int, /) -> bytes: ...
