"""Annotations as a file of our own, `annotations.jsonl`: a line that says what it is, then records.

The first line is `{"annotations":1,"source":…,"depth":…,"open_ended":…,"counts_discarded":…}`, and
each further line is one query. 1 is the version of the form.
"""

from dataclasses import replace
from typing import Annotated, BinaryIO, Literal

import msgspec

from heldout.errors import InputError, Problem
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.records import Fault, id_fault, read_record_lines, shown_fault
from heldout.trec.text import show

_FORM: Literal[1] = 1
_HEAD = '{"annotations":1,"source":…,"depth":…,"open_ended":…,"counts_discarded":…}'
_EXPECTED = "a JSON object with query and perhaps text, kind, shown, selected, texts, answers"

Place = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class _Head(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: what is said of all."""

    annotations: Literal[1] = 1
    source: str
    depth: Place
    open_ended: bool
    counts_discarded: bool


class _Version(msgspec.Struct, frozen=True, kw_only=True):
    """Of the first line, whatever else it has."""

    annotations: int


class _Row(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One query; fields as in `Annotation`."""

    query: str
    text: str | None = None
    kind: str | None = None
    shown: tuple[str, ...] = ()
    selected: dict[str, Place] = {}
    texts: dict[str, str] = {}
    answers: tuple[str, ...] = ()


def read_annotation_file(source: BinaryIO, *, path: str, texts: bool = True) -> Annotations:
    """Read a file that `format_annotations` made, plain or compressed.

    Args:
        source: its bytes.
        path: its name for messages.
        texts: whether texts and answers are stored.

    Raises:
        InputError: code `bad-annotation`: a first line of another kind or version, after which
            nothing is read; a line of another kind, or a query discarded in a file that has none;
            `not-shown`, `repeated-document`, `bad-place` as `shown_fault`; `no-query-id`,
            `no-document-id`, `repeated-query`, and those of `TextReader`.
    """
    lines = _Lines(texts=texts)
    log = read_record_lines(source, path=path, make=lines.read, expected=_EXPECTED)
    head = lines.head
    if head is None:
        raise InputError(
            Problem(code="empty-file", path=path, found="no text", expected="a first line")
        )
    return Annotations(
        source=head.source,
        records=tuple(log.records),
        depth=head.depth,
        open_ended=head.open_ended,
        counts_discarded=head.counts_discarded,
        notes=log.problems.notes(),
    )


def format_annotations(annotations: Annotations) -> bytes:
    """The bytes of a file; notes are not in it."""
    head = msgspec.convert(annotations, _Head, from_attributes=True)
    encode = msgspec.json.Encoder().encode
    rows = (
        encode(msgspec.convert(record, _Row, from_attributes=True))
        for record in annotations.records
    )
    return b"\n".join([encode(head), *rows, b""])


class _Lines:
    """Reads the lines of one file, of which the first is the head."""

    def __init__(self, *, texts: bool) -> None:
        self.head: _Head | None = None
        self._headless = False
        self._texts = texts
        self._decode_head = msgspec.json.Decoder(_Head).decode
        self._decode = msgspec.json.Decoder(_Row).decode

    def read(self, line: bytes) -> Annotation | Fault | None:
        if self.head is None:
            return self._read_head(line)
        record = msgspec.convert(self._decode(line), Annotation, from_attributes=True)
        if not self._texts:
            record = replace(record, text=None, texts={}, answers=())
        head = self.head
        fault = shown_fault(record, depth=head.depth, open_ended=head.open_ended)
        fault = fault or _doc_fault(record)
        if fault is None and not record.selected and not head.counts_discarded:
            found = f"query {record.query}, for which nothing was selected"
            fault = ("bad-annotation", found, "a selected document, or counts_discarded")
        return fault or record

    def _read_head(self, line: bytes) -> Fault | None:
        """The first line; what follows one that is broken is not read."""
        if self._headless:
            return None
        try:
            self.head = self._decode_head(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._headless = True
            try:
                version = msgspec.json.decode(line, type=_Version).annotations
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                version = _FORM
            if version != _FORM:
                return "bad-annotation", f"version {version} of this form", f"version {_FORM}"
            return "bad-annotation", f"first line {show(line)}: {error}", f"as first line {_HEAD}"
        return None


def _doc_fault(record: Annotation) -> Fault | None:
    faults = (id_fault(doc) for doc in (*record.shown, *record.selected))
    found = next((fault for fault in faults if fault is not None), None)
    return None if found is None else ("no-document-id", *found[1:])
