"""The first documents of each query of a run, by id: what pools are made of.

The scan decides what comes first; it keeps hashes. A second reading finds the ids they belong to.
"""

from collections.abc import Iterator, Mapping
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.trec.answers import SIGNATURE_DEPTH
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import Block, Limits, TextReader
from heldout.trec.rows import COLUMNS, Form
from heldout.trec.runs import scan_run
from heldout.trec.scanning.hashing import hash_documents
from heldout.trec.scans import Signature
from heldout.trec.text import check_line, is_regular

__all__ = ["Tops", "read_tops"]

Tops = Mapping[str, tuple[str, ...]]
"""Query -> its first documents, best first."""

_DOCUMENT: Mapping[Form, int] = {"msmarco": 1, "trec": 2}
_NEWLINE = ord("\n")


def read_tops(
    source: BinaryIO,
    *,
    path: str,
    depth: int,
    order: Order | None = None,
    limits: Limits | None = None,
) -> Tops:
    """Read a run and keep the first documents of each query.

    Args:
        source: a file or `BytesIO`, at its start; read twice.
        path: its name for messages.
        depth: 1 to 100 documents of a query; a query may have fewer.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError: all errors of the run, as `scan_run` finds them; `changed-file` if it changed
            between the readings.
        ValueError: a depth that is not kept.
    """
    if not 1 <= depth <= SIGNATURE_DEPTH:
        raise ValueError(depth)
    start = source.tell()
    scan = scan_run(source, path=path, order=order, limits=limits, signature_depth=depth)
    signature = scan.signature
    source.seek(start)
    form: Form = scan.form or "trec"
    with TextReader(source, path=path, limits=limits or Limits()) as reader:
        ids = _find_ids(reader, signature, form)
    return {
        query: tuple(_known(ids, int(document), path) for document in row if document)
        for query, row in zip(signature.queries, signature.documents, strict=True)
    }


def _find_ids(reader: TextReader, wanted: Signature, form: Form) -> dict[int, str]:
    """Hash -> id, of every document that is wanted anywhere."""
    hashes = np.unique(wanted.documents)
    ids: dict[int, str] = {}
    for block in reader.blocks():
        documents = _documents(block, form, reader.path)
        found = hash_documents(documents)
        for place in _first_places(found, hashes):
            ids.setdefault(int(found[place]), documents[place].decode())
    return ids


def _first_places(found: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> list[int]:
    distinct, places = np.unique(found, return_index=True)
    return places[np.isin(distinct, hashes, assume_unique=True)].tolist()  # type: ignore[no-any-return]  # ints


def _documents(block: Block, form: Form, path: str) -> list[bytes]:
    columns, text = COLUMNS[form], block.text
    tokens = text.split()
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _NEWLINE)
    if b"#" in text or not is_regular(text, ends, len(tokens), columns):
        tokens = [token for line in _rows(block, path) for token in line.split()]
    return tokens[_DOCUMENT[form] :: columns]


def _rows(block: Block, path: str) -> Iterator[bytes]:
    for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
        if check_line(line, path=path, number=number) is None:
            yield line


def _known(ids: Mapping[int, str], document: int, path: str) -> str:
    if document not in ids:
        raise InputError(
            Problem(
                code="changed-file",
                path=path,
                found="another run than a moment ago",
                expected="a file that stays as it is while it is read",
            )
        )
    return ids[document]
