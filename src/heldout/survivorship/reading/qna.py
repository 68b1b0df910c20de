"""MS MARCO QnA v2.1: the published object of columns.

Each query has the passages that annotators saw, in order, and which they selected. Passages have no
ids there: `passages.passage_id` makes them out of the text. The file is one object of columns,
`{"query": {"0": …}, "answers": {"0": …}}`, gigabytes in one line. It is read as a stream that holds
one value at a time; a larger value than any record is refused while it is read.

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
from heldout.survivorship.reading.records import LIMITS, RecordLog
from heldout.trec.reading.streams import TextReader
from heldout.trec.text import show

_DEEPEST = 8
_DEEP = "a value nested more than 8 deep"
_NO_ANSWER = "No Answer Present."
_ABSENT = object()
_NOTHING: Mapping[Any, Any] = MappingProxyType({})


class QnaPassage(msgspec.Struct, frozen=True):
    """A passage as it was shown; its URL is not stored.

    Attributes:
        is_selected: 1 where it was used for an answer.
        passage_text: the passage.
    """

    is_selected: Literal[0, 1]
    passage_text: str


class SeenPassages(NamedTuple):
    """What annotators saw of one query.

    Attributes:
        shown: ids by the text, in order; a text that was shown twice is there once.
        selected: id -> place at which it was selected, the first of several.
        texts: id -> text, where texts are stored.
        length: how many passages were shown.
    """

    shown: tuple[DocId, ...]
    selected: Mapping[DocId, int]
    texts: Mapping[DocId, str]
    length: int


def _see(passages: Sequence[QnaPassage], texts: bool) -> SeenPassages:  # noqa: FBT001 - a `Store`
    ids = [passage_id(one.passage_text) for one in passages]
    selected: dict[DocId, int] = {}
    stored: dict[DocId, str] = {}
    for rank, (doc, one) in enumerate(zip(ids, passages, strict=True), 1):
        if one.is_selected:
            selected.setdefault(doc, rank)
        if texts:
            stored.setdefault(doc, one.passage_text)
    return SeenPassages(
        tuple(dict.fromkeys(ids)), selected or _NOTHING, stored or _NOTHING, len(ids)
    )


def _is_answered(answers: Sequence[str], texts: bool) -> bool:  # noqa: ARG001, FBT001 - the same
    return any(answer.strip() not in {"", _NO_ANSWER} for answer in answers)


Store = Callable[[Any, bool], Any]
"""Value, and whether texts are stored -> what is stored of it."""

_COLUMNS: Mapping[str, tuple[Any, Store, str]] = {
    "query_id": (int | str, lambda value, _: str(value), "a query's id"),
    "query": (str, lambda value, texts: value if texts else None, "a query's text"),
    "query_type": (str, lambda value, _: sys.intern(value), "a type, such as DESCRIPTION"),
    "answers": (list[str], _is_answered, "a list of texts"),
    "passages": (
        list[QnaPassage],
        _see,
        "a list of passages, each with is_selected, 0 or 1, and passage_text",
    ),
}
"""Of each column that is read its type, what is stored of a value, and its values in words."""

_NOTES = ("repeated-passage", "answer-not-selected", "selected-without-answer")


def read_qna(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
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
            `repeated-query`; `broken-json`: no JSON, no UTF-8, cut short, or followed by something;
            `not-columns`: a column that is no object, or no object at all; `line-too-long`: a
            value of more than 64 MiB; and those of archives.
        SetupError: ijson is not installed.
    """
    log, reader = RecordLog(), _ValueReader(path)
    rows: dict[str, list[Any]] = {}
    index = {name: at for at, name in enumerate(_COLUMNS)}
    with TextReader(source, path=path, limits=LIMITS) as text:
        for column, key, value in reader.read(text):
            if column in _COLUMNS:
                row = rows.setdefault(key, [_ABSENT] * len(_COLUMNS))
                if row[index[column]] is not _ABSENT:
                    fault = ("repeated-record", f"key {show(key)} again", "each key once")
                    log.refuse(fault, path=f"{path}:{column}.{key}")
                row[index[column]] = _store(column, key, value, log, path, texts=texts)
        log.problems.extend(text.notes)
    _check_columns(rows, log, path)
    counts: Counter[str] = Counter()
    depth = 0
    for key, (name, words, kind, answered, seen) in rows.items():
        query = QueryId(name)
        if not seen.length:
            found = f"no passage for query {show(query)}"
            fault = ("no-passages", found, "what annotators were shown")
            log.refuse(fault, path=f"{path}:passages.{key}")
            continue
        depth = max(depth, seen.length)
        counts["repeated-passage"] += len(seen.shown) < seen.length
        counts["answer-not-selected"] += answered and not seen.selected
        counts["selected-without-answer"] += bool(seen.selected) and not answered
        record = Annotation(
            query=query,
            text=words,
            kind=kind,
            shown=seen.shown,
            selected=seen.selected,
            texts=seen.texts,
        )
        log.add(record, path=f"{path}:query_id.{key}")
    log.problems.raise_errors()
    return Annotations(
        source=path,
        records=tuple(log.records),
        depth=depth,
        by_text=True,
        notes=(*log.problems.notes(), *_list_notes(counts, path)),
    )


def _store(column: str, key: str, value: Any, log: RecordLog, path: str, *, texts: bool) -> Any:
    """Return what is stored of a value; `None` where it is of another kind, which is logged."""
    wanted, store, expected = _COLUMNS[column]
    try:
        return store(msgspec.convert(value, wanted), texts)
    except msgspec.ValidationError as error:
        fault = ("bad-annotation", f"{show(str(value))}: {error}", expected)
        log.refuse(fault, path=f"{path}:{column}.{key}")
        return None


def _check_columns(rows: Mapping[str, Sequence[Any]], log: RecordLog, path: str) -> None:
    """Refuse columns that are missing or lack a key of another."""
    for index, name in enumerate(_COLUMNS):
        lost = [key for key, row in rows.items() if row[index] is _ABSENT]
        if len(lost) == len(rows):
            hint = "the queries of the eval set have no answers: take train or dev"
            fault = ("missing-column", f"no {name}", f"columns {', '.join(_COLUMNS)}")
            log.refuse(fault, path=path, hint=hint)
        elif lost:
            found = f"{len(lost):,} of {len(rows):,} keys missing"
            fault = ("column-lengths", found, "the same keys in each column")
            log.refuse(fault, path=f"{path}:{name}.{lost[0]}")
    log.problems.raise_errors()


def _list_notes(counts: Mapping[str, int], path: str) -> list[Problem]:
    """A note of each code that was counted."""
    return [
        Problem.of(code, path, queries=plural(counts[code], "query", "queries"))
        for code in _NOTES
        if counts[code]
    ]


class _ValueReader:
    """Gives the values of one file, and knows where it is."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._last = ""
        self._end = self._value = 0

    def read(self, text: TextReader) -> Iterator[tuple[str, str, Any]]:
        """Column, key and value, in the order of the file."""
        ijson = _import_ijson()
        events: Iterator[tuple[str, Any]] = chain.from_iterable(self._parse(text, ijson))
        names = ["", ""]
        depth = 0
        for kind, value in events:
            if kind == "map_key":
                names[depth - 1] = value
                self._last = ".".join(names[:depth])
            elif kind == "end_map":
                depth -= 1
            elif depth == len(names):
                built = value if not kind.startswith("start") else self._build(kind, events, ijson)
                self._value = self._end
                yield names[0], names[1], built
            elif kind == "start_map":
                depth += 1
            else:
                found = f"column {show(names[0])} is no object" if depth else "no JSON object"
                raise self._refuse("not-columns", found, "one object of columns, each an object")

    def _build(self, kind: str, events: Iterator[tuple[str, Any]], ijson: Any) -> Any:
        """A list or object whose beginning was read."""
        builder, depth = ijson.ObjectBuilder(), 1
        builder.event(kind, None)
        for inner, value in events:
            builder.event(inner, value)
            depth += inner.startswith("start") - inner.startswith("end_")
            if depth > _DEEPEST:
                raise self._refuse("not-columns", _DEEP, "text, numbers, and lists of passages")
            if not depth:
                break
        return builder.value

    def _parse(self, text: TextReader, ijson: Any) -> Iterator[list[tuple[str, Any]]]:
        ready = ijson.sendable_list()
        # Without `use_float`, a number of 5,000 digits crashes the C backend of ijson 3.6.
        parser = ijson.basic_parse_coro(ready, use_float=True)
        for piece in chain(text.pieces(), [b""]):
            begin, self._end = self._end, self._end + len(piece)
            if self._end - self._value > LIMITS.line_bytes:
                found = f"a value of more than {LIMITS.line_bytes:,} bytes"
                expected = f"at most {LIMITS.line_bytes:,} bytes for one query"
                raise self._refuse("line-too-long", found, expected)
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
                raw = error.args[0] if error.args else ""
                what = raw.decode(errors="backslashreplace") if isinstance(raw, bytes) else str(raw)
                what = what.strip().partition("\n")[0] or "no JSON"
                found = f"{what} between bytes {begin:,} and {self._end:,}"
                raise self._refuse("broken-json", found, "one JSON object to its end") from error

    def _refuse(self, code: str, found: str, expected: str) -> InputError:
        location = f"{self._path}:{self._last}" if self._last else self._path
        return InputError.of(code, location, found=found, expected=expected)


def _import_ijson() -> Any:
    try:
        import ijson  # noqa: PLC0415 - of the extra `data`
    except ImportError as error:
        raise SetupError("MS MARCO QnA is read with ijson: pip install 'heldout[data]'") from error
    return ijson
