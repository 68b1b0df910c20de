"""MS MARCO QnA v2.1: the published object of columns, or the same as JSON lines.

Of every query it tells the passages that annotators saw, in order, and which they selected.
Passages have no ids there: `passage_ids.passage_id` makes them out of the text.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

import msgspec

from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.json_columns import ColumnReader
from heldout.survivorship.reading.qna_fields import FIELDS, OPTIONAL, QnaNotes, QnaRow, annotate
from heldout.survivorship.reading.record_lines import Fault, RecordLog, read_record_lines
from heldout.trec.problems import show

__all__ = ["read_qna_columns", "read_qna_lines"]

_NAMES = ", ".join(name for name in FIELDS if name not in OPTIONAL)
_ABSENT = object()


def read_qna_lines(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read JSON lines, one query each, plain or compressed.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts and answers are kept.

    Raises:
        InputError: code `bad-annotation`: a line of another kind, or `is_selected` neither 0 nor
            1; `no-passages`: a query that was shown nothing; `no-query-id`, `repeated-query`, and
            those of `TextReader`.
    """
    decode = msgspec.json.Decoder(QnaRow).decode
    notes = QnaNotes()

    def make(line: bytes) -> Annotation | Fault:
        row = decode(line)
        values = {name: field.keep(getattr(row, name), texts) for name, field in FIELDS.items()}
        return annotate(values, notes)

    log = read_record_lines(source, path=path, make=make, expected=f"a JSON object with {_NAMES}")
    return _annotations(log, notes, path)


def read_qna_columns(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read one JSON object of columns, plain or compressed, as a stream.

    Columns may come in any order. Memory is that of the annotations, whatever the file's size.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts and answers are kept.

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
        if column in FIELDS:
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
        open_ended=False,
        counts_discarded=True,
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
        """Keep a value."""
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
            values[row] = self._kept(column, key, value)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Key and values of each row.

        Raises:
            InputError: what is wrong with the columns.
        """
        self._check()
        columns = {name: self._columns.get(name) for name in FIELDS}
        for key, row in self._rows.items():
            values = {name: () if own is None else own[row] for name, own in columns.items()}
            yield key, values

    def _kept(self, column: str, key: str, value: Any) -> Any:
        field = FIELDS[column]
        try:
            return field.keep(msgspec.convert(value, field.type), self._texts)
        except msgspec.ValidationError as error:
            found = f"{show(str(value))}: {error}"
            self._refuse("bad-annotation", column, key, found, field.expected)
            return None

    def _check(self) -> None:
        for name in FIELDS:
            values = self._columns.get(name)
            if values is None and name not in OPTIONAL:
                hint = "the queries of the eval set have no answers: take train or dev"
                fault = ("missing-column", f"no {name}", f"columns {_NAMES}")
                self._log.refuse(fault, path=self._path, hint=hint)
            elif values is not None and (lost := values.count(_ABSENT)):
                key = next(key for key, row in self._rows.items() if values[row] is _ABSENT)
                found = f"{lost:,} of {len(self._rows):,} keys missing"
                self._refuse("column-lengths", name, key, found, "the same keys in each column")
        if not self._rows and not self._log.problems.errors:
            self._log.refuse(("empty-file", "no query", "at least one"), path=self._path)
        self._log.problems.raise_errors()

    def _refuse(self, code: str, column: str, key: str, found: str, expected: str) -> None:
        self._log.refuse((code, found, expected), path=f"{self._path}:{column}.{key}")
