"""Whole lists of a run: every document of a query by its id, best first.

Measures of our own need the judged documents alone, and a scan keeps no others. Other libraries
want the whole list; this is the second reading of a file that a scan has found without errors.
"""

from collections.abc import Collection, Mapping
from typing import BinaryIO

import numpy as np

from heldout.trec.orders import Order
from heldout.trec.ranking import order_by_rank, order_by_score, sort_keys
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.rows import COLUMNS, Form

_RANK: Mapping[Form, int] = {"msmarco": 2, "trec": 3}
_DOCUMENT: Mapping[Form, int] = {"msmarco": 1, "trec": 2}
_SCORE = 4


def read_lists(
    source: BinaryIO,
    *,
    path: str,
    form: Form,
    order: Order,
    queries: Collection[str],
    limits: Limits | None = None,
) -> Mapping[str, tuple[str, ...]]:
    """Read a run that was scanned without errors.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        form: how its lines are laid out, as the scan says.
        order: how documents are ordered, as the scan says.
        queries: whose lists are wanted.
        limits: how much is read.

    Returns:
        Query -> documents, best first; only queries that it answers.

    Raises:
        InputError: those of `TextReader`.
    """
    wanted = {query.encode() for query in queries}
    rows: dict[bytes, tuple[list[bytes], list[bytes]]] = {}
    document, columns = _DOCUMENT[form], COLUMNS[form]
    key = _RANK[form] if order == "msmarco" else _SCORE
    with TextReader(source, path=path, limits=limits or Limits()) as reader:
        for _, line in read_lines(reader):
            tokens = line.split()
            if len(tokens) != columns or tokens[0] not in wanted or line.startswith(b"#"):
                continue  # of a query that nobody asks for; an empty line, a comment
            documents, keys = rows.setdefault(tokens[0], ([], []))
            documents.append(tokens[document])
            keys.append(tokens[key])
    return {query.decode(): _sort(*lists, order) for query, lists in rows.items()}


def _sort(documents: list[bytes], keys: list[bytes], order: Order) -> tuple[str, ...]:
    if order == "msmarco":
        rows = order_by_rank(np.array([int(key) for key in keys], np.int64))
    else:
        scores = np.array([float(key) for key in keys], np.float64)
        rows = order_by_score(sort_keys(scores, order), documents)
    return tuple(documents[row].decode() for row in rows.tolist())
