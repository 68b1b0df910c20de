"""One JSON object of columns, `{"query": {"0": …}, "answers": {"0": …}}`, read as a stream.

Such files are gigabytes in one line. Nothing is kept but the value at hand, and a value larger than
any record is refused while it is being read.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from heldout.errors import InputError, Problem, SetupError
from heldout.survivorship.reading.json_bytes import CARRIED, find_bad_utf8, find_half_pair
from heldout.survivorship.reading.record_lines import LIMITS
from heldout.survivorship.reading.unpacked import unpack_pieces
from heldout.trec.problems import show
from heldout.trec.reading.sources import refusal

__all__ = ["ColumnReader"]

_DEEPEST = 8
_OPENING = frozenset({"start_array", "start_map"})

Event = tuple[str, Any]
"""Kind and value, as ijson has them."""


class ColumnReader:
    """Reads one file once.

    Attributes:
        path: its name for messages.
        notes: what was read in a way worth telling: code `byte-order-mark`.
    """

    def __init__(self, source: BinaryIO, *, path: str) -> None:
        """Begin; nothing is read yet.

        Args:
            source: its bytes, plain or compressed.
            path: its name for messages.
        """
        self.path = path
        self.notes: list[Problem] = []
        self._source = source
        self._last = ""
        self._begin = self._end = self._value = 0
        self._text = b""  # the piece at hand, and some bytes before it

    def values(self) -> Iterator[tuple[str, str, Any]]:
        """Column, key and value, in the order of the file.

        Raises:
            InputError: code `broken-json`: no JSON, no UTF-8, half of a surrogate pair, cut short,
                or followed by something;
                `not-columns`: a column that is no object, or no object at all; `line-too-long`: a
                value of more than 64 MiB; and those of archives.
            SetupError: ijson is not installed.
        """
        events = chain.from_iterable(self._events())
        self._open(events, "no JSON object", at="")
        for kind, column in events:
            if kind == "end_map":
                continue
            self._open(events, f"column {show(column)} is no object", at=column)
            for inner, key in events:
                if inner == "end_map":
                    break
                self._last = f"{column}.{key}"
                value = self._build(events, *next(events), depth=0)
                self._value = self._end
                yield column, key, value

    def _open(self, events: Iterator[Event], found: str, *, at: str) -> None:
        kind, _ = next(events)
        if kind != "start_map":
            raise refusal(
                "not-columns",
                f"{self.path}:{at}" if at else self.path,
                found=found,
                expected="one JSON object of columns, each an object",
            )

    def _build(self, events: Iterator[Event], kind: str, value: Any, *, depth: int) -> Any:
        """The value that begins with this event."""
        if kind not in _OPENING:
            return value
        if depth > _DEEPEST:
            raise refusal(
                "not-columns",
                f"{self.path}:{self._last}",
                found=f"a value nested more than {_DEEPEST} deep",
                expected="text, numbers, and lists of passages",
            )
        build = self._build_list if kind == "start_array" else self._build_object
        return build(events, depth + 1)

    # Most values are plain, and there are very many: of these `_build` is not called.

    def _build_list(self, events: Iterator[Event], depth: int) -> list[Any]:
        found = []
        for kind, value in events:
            if kind == "end_array":
                break
            plain = kind not in _OPENING
            found.append(value if plain else self._build(events, kind, value, depth=depth))
        return found

    def _build_object(self, events: Iterator[Event], depth: int) -> dict[str, Any]:
        found = {}
        for begin, key in events:
            if begin == "end_map":
                break
            kind, value = next(events)
            plain = kind not in _OPENING
            found[key] = value if plain else self._build(events, kind, value, depth=depth)
        return found

    def _events(self) -> Iterator[list[Event]]:
        ijson = _import_ijson()
        ready: list[Event] = ijson.sendable_list()
        # Without `use_float`, a number of 5,000 digits crashes the C backend of ijson 3.6.
        parser = ijson.basic_parse_coro(ready, use_float=True)
        pieces = unpack_pieces(self._source, path=self.path, limits=LIMITS, notes=self.notes)
        for piece in chain(pieces, [b""]):
            self._begin, self._end = self._end, self._end + len(piece)
            self._text = self._text[-CARRIED:] + piece
            self._check_pairs(ended=not piece)
            if self._end - self._value > LIMITS.line_bytes:
                raise self._too_long()
            error = None
            try:
                if piece:
                    parser.send(piece)
                else:
                    parser.close()
            except (ijson.JSONError, ValueError) as caught:
                error = caught
            yield ready
            del ready[:]
            if error is not None:
                raise self._broken(error, ended=not piece) from error

    def _check_pairs(self, *, ended: bool) -> None:
        at = find_half_pair(self._text, ended=ended)
        if at is not None:
            raise self._refusal(
                f"half of a surrogate pair at byte {self._end - len(self._text) + at:,}: "
                f"{show(self._text[at : at + 12])}"
            )

    def _broken(self, error: Exception, *, ended: bool) -> InputError:
        at = find_bad_utf8(self._text, ended=ended)
        if at is not None:
            place = self._end - len(self._text) + at
            return self._refusal(
                f"byte {self._text[at]:#04x}, which is no UTF-8, at byte {place:,}"
            )
        raw = error.args[0] if error.args else ""
        told = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else str(raw)
        what, _, rest = told.strip().partition("\n")
        context = rest.partition("\n")[0].strip()
        return self._refusal(
            f"{what or 'no JSON'} between bytes {self._begin:,} and {self._end:,}"
            + (f": {show(context)}" if context else "")
        )

    def _refusal(self, found: str) -> InputError:
        return refusal(
            "broken-json",
            f"{self.path}:{self._last}" if self._last else self.path,
            found=found,
            expected="one JSON object to its end",
            hint="copy the file again, or write it with a program that writes JSON",
        )

    def _too_long(self) -> InputError:
        return refusal(
            "line-too-long",
            f"{self.path}:{self._last}",
            found=f"a value of more than {LIMITS.line_bytes:,} bytes",
            expected=f"at most {LIMITS.line_bytes:,} bytes for one query",
        )


def _import_ijson() -> Any:
    try:
        import ijson  # noqa: PLC0415 - of the extra `data`
    except ImportError as error:
        raise SetupError(
            "one JSON object of columns is read with ijson: pip install 'heldout[data]'"
        ) from error
    return ijson
