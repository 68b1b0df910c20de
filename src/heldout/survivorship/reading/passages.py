"""Ids for passages that are known by their text alone.

MS MARCO QnA names no passages. A collection gives its ids to passages of the same text; without one
the id is a digest of the text. The passage collection of MS MARCO spells some texts wrongly, UTF-8
that was read as Latin-1 or Windows-1252 (`Ã©` for `é`), so both are compared as they were before.
Gupta and MacAvaney 2022, §2, found a unique match for every passage that way.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import BinaryIO

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.records import LIMITS, id_fault
from heldout.trec.reading.streams import TextReader, read_lines
from heldout.trec.text import ProblemLog, show

_DIGITS = 16
_ROUNDS = 3


def _read_as_windows(byte: int) -> str:
    """The character that a byte becomes, Latin-1 where Windows-1252 has none."""
    try:
        return bytes([byte]).decode("cp1252")
    except UnicodeDecodeError:
        return chr(byte)


_WINDOWS = {_read_as_windows(byte): byte for byte in range(0x80, 0xA0)}
_NEXT = "[\x80-\xbf" + "".join(re.escape(char) for char in _WINDOWS) + "]"
_WRONG = re.compile(f"[\xc2-\xdf]{_NEXT}|[\xe0-\xef]{_NEXT}{{2}}|[\xf0-\xf4]{_NEXT}{{3}}")


def passage_id(text: str) -> DocId:
    """The id of a passage: the first 16 hexadecimal digits of the SHA-256 of its text.

    Spellings of one text have one id: wrong encodings are repaired, runs of blanks count once.
    """
    repaired = " ".join(repair_encoding(text).split())
    return DocId(hashlib.sha256(repaired.encode(errors="surrogatepass")).hexdigest()[:_DIGITS])


def repair_encoding(text: str) -> str:
    """The text with what is UTF-8 read as Latin-1 or Windows-1252 read as UTF-8.

    Each character is repaired by itself, so that right and wrong ones may stand side by side, and
    what was read wrongly twice is repaired twice. A text may be meant as it is written: this is for
    comparing texts, never for showing them.
    """
    for _ in range(_ROUNDS):
        if text.isascii():
            return text
        repaired = _WRONG.sub(_repair, text)
        if repaired == text:
            return text
        text = repaired
    return text


def _repair(match: re.Match[str]) -> str:
    wrong = match[0]
    raw = bytes(_WINDOWS.get(char, ord(char)) for char in wrong)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return wrong


def seen_documents(annotations: Annotations) -> frozenset[DocId]:
    """Every document that was shown or selected."""
    return frozenset(
        doc for record in annotations.records for doc in (*record.shown, *record.selected)
    )


def missing_texts(annotations: Annotations) -> frozenset[DocId]:
    """Those of `seen_documents` whose text is not known."""
    return frozenset(
        doc
        for record in annotations.records
        for doc in (*record.shown, *record.selected)
        if doc not in record.texts
    )


def read_names(source: BinaryIO, wanted: AbstractSet[DocId], *, path: str) -> Mapping[DocId, DocId]:
    """Ids that a collection has for passages known by their text alone.

    Args:
        source: rows of `id<TAB>text`, plain or compressed.
        wanted: ids by text, of `passage_id`; of several documents with one text the first counts.
        path: its name for messages.

    Returns:
        Id by text -> id in the collection, for those that are there.

    Raises:
        InputError: codes `collection-row`, `collection-id`, `collection-encoding`, and those of
            `TextReader`.
    """
    return match_names(_rows(source, path), wanted)


def match_names(
    documents: Iterable[tuple[DocId, str]], wanted: AbstractSet[DocId]
) -> Mapping[DocId, DocId]:
    """The same of documents in hand: each is looked at once, and no text is stored.

    Args:
        documents: id and text of each.
        wanted: as for `read_names`.
    """
    names: dict[DocId, DocId] = {}
    for doc, text in documents:
        by_text = passage_id(text)
        if by_text in wanted:
            names.setdefault(by_text, doc)
    return names


def name_passages(
    annotations: Annotations, names: Mapping[DocId, DocId], *, path: str
) -> Annotations:
    """The same with the ids of a collection; passages that it lacks keep theirs, and are counted.

    Args:
        annotations: whose documents are known by their text.
        names: of `read_names`.
        path: the collection, for messages.

    Returns:
        With the note `unmatched-passage` where the collection lacks some.

    Raises:
        InputError: code `no-common-document`: it has none of them.
    """
    seen = seen_documents(annotations)
    lost = seen - names.keys()
    found = plural(len(lost), "passage")
    if not names:
        expected = "each passage that was shown, with the same words"
        raise InputError.of("no-common-document", path, f"none of {found}", expected)
    note = Problem.of("unmatched-passage", path, lost=found, seen=len(seen))
    unmatched = [note] if lost else []
    return replace(
        annotations,
        records=tuple(_named(record, names) for record in annotations.records),
        notes=(*annotations.notes, *unmatched),
    )


def drop_unknown(
    annotations: Annotations, documents: AbstractSet[DocId], *, path: str
) -> Annotations:
    """The same without the selected passages that a collection lacks, which has no text of them.

    What was shown stays, and so do the places of the others.

    Args:
        annotations: whose documents have the ids of the collection, as far as it has them.
        documents: ids of the collection.
        path: the collection, for messages.

    Returns:
        With the note `selected-not-there` where passages were left out.
    """
    records = tuple(
        replace(
            record,
            selected={doc: at for doc, at in record.selected.items() if doc in documents},
        )
        for record in annotations.records
    )
    before = sum(len(record.selected) for record in annotations.records)
    lost = before - sum(len(record.selected) for record in records)
    passages = plural(before, "selected passage")
    note = Problem.of("selected-not-there", path, lost=lost, passages=passages)
    notes = [note] if lost else []
    return replace(annotations, records=records, notes=(*annotations.notes, *notes))


def _named(record: Annotation, names: Mapping[DocId, DocId]) -> Annotation:
    return replace(
        record,
        shown=tuple(names.get(doc, doc) for doc in record.shown),
        selected={names.get(doc, doc): rank for doc, rank in record.selected.items()},
        texts={names.get(doc, doc): text for doc, text in record.texts.items()},
    )


def _rows(source: BinaryIO, path: str) -> Iterator[tuple[DocId, str]]:
    log = ProblemLog(LIMITS.problems)
    with TextReader(source, path=path, limits=LIMITS) as reader:
        for number, line in read_lines(reader):
            doc, tab, text = line.rstrip(b"\r").partition(b"\t")
            code, found, expected = "", line, ""
            try:
                row = DocId(doc.decode()), text.decode()
            except UnicodeDecodeError:
                code, expected = "collection-encoding", "UTF-8 text"
            else:
                if not tab:
                    code, expected = "collection-row", "id, tab, text"
                elif id_fault(row[0]):
                    code, found, expected = "collection-id", doc, "an id without white space"
                else:
                    yield row
            if code:
                log.add(Problem.of(code, path, show(found), expected, line=number))
    log.raise_errors()
