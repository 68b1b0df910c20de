"""MS MARCO QnA v2.1: the published object of columns, or the same as JSON lines.

Each query has the passages that annotators saw, in order, and which they selected. Passages have no
ids there: `passages.passage_id` makes them out of the text. The published file is one object of
columns, `{"query": {"0": …}, "answers": {"0": …}}`, gigabytes in one line. It is read as a stream
that holds one value at a time; a larger value than any record is refused while it is read.

Source: the README of microsoft/MSMARCO-Question-Answering: `is_selected` is 1 where the passage was
used for an answer; a query without an answer has `No Answer Present.`
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, NamedTuple

import msgspec

from heldout.errors import InputError, Problem, SetupError, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.passages import passage_id
from heldout.survivorship.reading.records import LIMITS, Fault, RecordLog, read_record_lines
from heldout.trec.reading.streams import TextReader
from heldout.trec.text import show

_DEEPEST = 8
_OPENING = frozenset({"start_array", "start_map"})

Event = tuple[str, Any]
"""Kind and value, as ijson has them."""


class ColumnReader:
    """Reads one file once.

    Attributes:
        path: its name for messages.
        notes: how it was read, where that is worth reporting: code `byte-order-mark`.
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

    def values(self) -> Iterator[tuple[str, str, Any]]:
        """Column, key and value, in the order of the file.

        Raises:
            InputError: code `broken-json`: no JSON, no UTF-8, cut short, or followed by something;
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
        if next(events)[0] != "start_map":
            raise self._not_columns(found, at, "one JSON object of columns, each an object")

    def _not_columns(self, found: str, at: str, expected: str) -> InputError:
        path = f"{self.path}:{at}" if at else self.path
        return InputError.of("not-columns", path, found=found, expected=expected)

    def _build(self, events: Iterator[Event], kind: str, value: Any, *, depth: int) -> Any:
        """The value that begins with this event."""
        if kind not in _OPENING:
            return value
        if depth > _DEEPEST:
            found = f"a value nested more than {_DEEPEST} deep"
            raise self._not_columns(found, self._last, "text, numbers, and lists of passages")
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
        with TextReader(self._source, path=self.path, limits=LIMITS) as reader:
            self.notes = reader.notes
            for piece in chain(reader.pieces(), [b""]):
                self._begin, self._end = self._end, self._end + len(piece)
                if self._end - self._value > LIMITS.line_bytes:
                    raise InputError.of(
                        "line-too-long",
                        f"{self.path}:{self._last}",
                        found=f"a value of more than {LIMITS.line_bytes:,} bytes",
                        expected=f"at most {LIMITS.line_bytes:,} bytes for one query",
                    )
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
                    raise self._broken(error) from error

    def _broken(self, error: Exception) -> InputError:
        raw = error.args[0] if error.args else ""
        text = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else str(raw)
        what, _, rest = text.strip().partition("\n")
        context = rest.partition("\n")[0].strip()
        return InputError.of(
            "broken-json",
            f"{self.path}:{self._last}" if self._last else self.path,
            found=f"{what or 'no JSON'} between bytes {self._begin:,} and {self._end:,}"
            + (f": {show(context)}" if context else ""),
            expected="one JSON object to its end",
            hint="copy the file again, or write it with a program that writes JSON",
        )


def _import_ijson() -> Any:
    try:
        import ijson  # noqa: PLC0415 - of the extra `data`
    except ImportError as error:
        raise SetupError(
            "one JSON object of columns is read with ijson: pip install 'heldout[data]'"
        ) from error
    return ijson


_NO_ANSWER = "No Answer Present."
_NOTHING: Mapping[DocId, int] = MappingProxyType({})
_NO_TEXT: Mapping[DocId, str] = MappingProxyType({})


class QnaPassage(msgspec.Struct, frozen=True):
    """A passage as it was shown; its URL is not stored.

    Attributes:
        is_selected: 1 where it was used for an answer.
        passage_text: the passage.
    """

    is_selected: Literal[0, 1]
    passage_text: str


class QnaRow(msgspec.Struct, frozen=True, kw_only=True):
    """A query as one line has it.

    Attributes:
        query_id: its id.
        query: its words.
        query_type: its type.
        answers: what annotators wrote.
        passages: in the order shown.
    """

    query_id: int | str
    query: str
    query_type: str
    answers: list[str]
    passages: list[QnaPassage]


class SeenPassages(NamedTuple):
    """What annotators saw of one query.

    Attributes:
        shown: ids by the text, in order; a text that was shown twice is there once.
        selected: id -> place at which it was selected, the first of several.
        texts: id -> text, where texts are stored.
        places: how many passages were shown.
    """

    shown: tuple[DocId, ...]
    selected: Mapping[DocId, int]
    texts: Mapping[DocId, str]
    places: int


def _see(passages: Sequence[QnaPassage], texts: bool) -> SeenPassages:  # noqa: FBT001 - a `Store`
    ids = [passage_id(one.passage_text) for one in passages]
    selected: dict[DocId, int] = {}
    stored: dict[DocId, str] = {}
    for place, (doc, one) in enumerate(zip(ids, passages, strict=True), 1):
        if one.is_selected:
            selected.setdefault(doc, place)
        if texts:
            stored.setdefault(doc, one.passage_text)
    return SeenPassages(
        tuple(dict.fromkeys(ids)), selected or _NOTHING, stored or _NO_TEXT, len(ids)
    )


def _is_answered(answers: Sequence[str], texts: bool) -> bool:  # noqa: ARG001, FBT001 - the same
    return any(answer.strip() not in {"", _NO_ANSWER} for answer in answers)


Store = Callable[[Any, bool], Any]
"""Value, and whether texts are stored -> what is stored of it."""

_STORE: Mapping[str, tuple[Store, str]] = {
    "query_id": (lambda value, _: str(value), "a query's id"),
    "query": (lambda value, texts: value if texts else None, "a query's text"),
    "query_type": (lambda value, _: sys.intern(value), "a type, such as DESCRIPTION"),
    "answers": (_is_answered, "a list of texts"),
    "passages": (
        _see,
        "a list of passages, each with is_selected, 0 or 1, and passage_text",
    ),
}
"""Of each field that is read what is stored of it, and its values in words."""

_TYPES: Mapping[str, Any] = {one.name: one.type for one in msgspec.structs.fields(QnaRow)}


def annotate(values: Mapping[str, Any], notes: "QnaNotes") -> Annotation | Fault:
    """The record of a query, or what is wrong with it.

    Args:
        values: by field, what is stored of them.
        notes: counts it.

    Returns:
        Or code `no-passages`.
    """
    seen: SeenPassages = values["passages"]
    query = QueryId(values["query_id"])
    if not seen.places:
        return "no-passages", f"no passage for query {show(query)}", "what annotators were shown"
    notes.add(seen, answered=values["answers"])
    return Annotation(
        query=query,
        text=values["query"],
        kind=values["query_type"],
        shown=seen.shown,
        selected=seen.selected,
        texts=seen.texts,
    )


class QnaNotes:
    """Counts what is odd in a file, one query after another.

    Attributes:
        depth: most passages that a query was shown.
    """

    def __init__(self) -> None:
        self.depth = 0
        self._counts: Counter[str] = Counter()

    def add(self, seen: SeenPassages, *, answered: bool) -> None:
        """Count a query.

        Args:
            seen: what annotators saw.
            answered: whether they found an answer.
        """
        self.depth = max(self.depth, seen.places)
        self._counts["repeated-passage"] += len(seen.shown) < seen.places
        self._counts["answer-not-selected"] += answered and not seen.selected
        self._counts["selected-without-answer"] += bool(seen.selected) and not answered

    def notes(self, path: str) -> list[Problem]:
        """A note of each code that was counted."""
        return [
            Problem(
                code,
                path,
                found=f"{plural(count, 'query', 'queries')} {found}",
                expected=expected,
                hint=hint,
                severity="note",
            )
            for code, (found, expected, hint) in _NOTES.items()
            if (count := self._counts[code])
        ]


_NOTES: Mapping[str, tuple[str, str, str]] = {
    "repeated-passage": (
        "that were shown the same text twice",
        "each text once in a list",
        "it counts where it was shown first, or selected first",
    ),
    "answer-not-selected": (
        "with an answer, and no passage selected",
        "the passages that the answer was taken from",
        "for ranking these were discarded too",
    ),
    "selected-without-answer": (
        "with a passage selected, and no answer",
        "no passage selected where no answer is present",
        "these survived, since a passage is labelled",
    ),
}


_NAMES = ", ".join(_STORE)
_ABSENT = object()


def read_qna_lines(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read JSON lines, one query each, plain or compressed.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts are stored.

    Raises:
        InputError: code `bad-annotation`: a line of another kind, or `is_selected` neither 0 nor
            1; `no-passages`: a query that was shown nothing; `no-query-id`, `repeated-query`, and
            those of `TextReader`.
    """
    decode = msgspec.json.Decoder(QnaRow).decode
    notes = QnaNotes()

    def make(line: bytes) -> Annotation | Fault:
        row = decode(line)
        values = {name: store(getattr(row, name), texts) for name, (store, _) in _STORE.items()}
        return annotate(values, notes)

    log = read_record_lines(source, path=path, make=make, expected=f"a JSON object with {_NAMES}")
    return _annotations(log, notes, path)


def read_qna_columns(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read one JSON object of columns, plain or compressed, as a stream.

    Columns may come in any order. Memory is that of the annotations, whatever the file's size.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts are stored.

    Raises:
        InputError: code `bad-annotation`: a value of another kind, or `is_selected` neither 0 nor
            1; `no-passages`: a query that was shown nothing; `missing-column`; `column-lengths`:
            a key that another column lacks; `repeated-record`: a key twice; `no-query-id`,
            `repeated-query`; and those of `ColumnReader`.
        SetupError: ijson is not installed.
    """
    reader = ColumnReader(source, path=path)
    log = RecordLog()
    table = _Table(log, path, texts=texts)
    for column, key, value in reader.values():
        if column in _STORE:
            table.put(column, key, value)
    notes = QnaNotes()
    for key, values in table.rows():
        made = annotate(values, notes)
        if isinstance(made, Annotation):
            log.add(made, path=f"{path}:query_id.{key}")
        else:
            log.refuse(made, path=f"{path}:passages.{key}")
    log.problems.extend(reader.notes)
    log.problems.raise_errors()
    return _annotations(log, notes, path)


def _annotations(log: RecordLog, notes: QnaNotes, path: str) -> Annotations:
    return Annotations(
        source=path,
        records=tuple(log.records),
        depth=notes.depth,
        notes=(*log.problems.notes(), *notes.notes(path)),
    )


class _Table:
    """Columns that come one after another, each in its own order; the first says the keys."""

    def __init__(self, log: RecordLog, path: str, *, texts: bool) -> None:
        self._log = log
        self._path = path
        self._texts = texts
        self._rows: dict[str, int] = {}
        self._first: list[Any] = []
        self._columns: dict[str, list[Any]] = {}

    def put(self, column: str, key: str, value: Any) -> None:
        """Store a value."""
        if not self._columns:
            self._columns[column] = self._first
        values = self._columns.get(column)
        if values is None:
            values = self._columns[column] = [_ABSENT] * len(self._rows)
        if values is self._first and key not in self._rows:
            self._rows[key] = len(values)
            values.append(_ABSENT)
        row = self._rows.get(key)
        if row is None:
            other = f"{show(key)}, which {next(iter(self._columns))} lacks"
            self._refuse("column-lengths", column, key, other, "the same keys in each column")
        elif values[row] is not _ABSENT:
            self._refuse("repeated-record", column, key, show(key), "each key once in a column")
        else:
            values[row] = self._stored(column, key, value)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Key and values of each row.

        Raises:
            InputError: what is wrong with the columns.
        """
        self._check()
        for key, row in self._rows.items():
            yield key, {name: self._columns[name][row] for name in _STORE}

    def _stored(self, column: str, key: str, value: Any) -> Any:
        store, expected = _STORE[column]
        try:
            return store(msgspec.convert(value, _TYPES[column]), self._texts)
        except msgspec.ValidationError as error:
            found = f"{show(str(value))}: {error}"
            self._refuse("bad-annotation", column, key, found, expected)
            return None

    def _check(self) -> None:
        for name in _STORE:
            values = self._columns.get(name)
            if values is None:
                hint = "the queries of the eval set have no answers: take train or dev"
                fault = ("missing-column", f"no {name}", f"columns {_NAMES}")
                self._log.refuse(fault, path=self._path, hint=hint)
            elif lost := values.count(_ABSENT):
                key = next(key for key, row in self._rows.items() if values[row] is _ABSENT)
                found = f"{lost:,} of {len(self._rows):,} keys missing"
                self._refuse("column-lengths", name, key, found, "the same keys in each column")
        if not self._rows and not self._log.problems.errors:
            self._log.refuse(("empty-file", "no query", "at least one"), path=self._path)
        self._log.problems.raise_errors()

    def _refuse(self, code: str, column: str, key: str, found: str, expected: str) -> None:
        self._log.refuse((code, found, expected), path=f"{self._path}:{column}.{key}")
