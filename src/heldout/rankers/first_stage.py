"""Run files as a first stage: read whole, for a re-ranker to go on with."""

from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

import numpy as np

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Hit, Run
from heldout.trec.ranking import order_by_rank, order_by_score
from heldout.trec.reading.streams import OWN_FILES, TextReader
from heldout.trec.runs import scan_run
from heldout.trec.text import check_line

__all__ = ["read_run"]


def read_run(source: BinaryIO, *, path: str) -> Run:
    """Read a run, every document of every query.

    Args:
        source: a run in MS MARCO or TREC form, plain or compressed;
            held in memory, so that it stays what was checked.
        path: its name for messages.

    Returns:
        Hits best first: by score where the form has scores, else by rank; a hit's score is then
        its rank below zero.

    Raises:
        InputError: all errors of the run, as `heldout validate` finds them.
    """
    content = BytesIO(source.read())
    scan = scan_run(content, path=path, order=None, limits=OWN_FILES)
    if not scan.ok:
        raise InputError(scan.problems, counts=scan.counts)
    content.seek(0)
    queries: dict[QueryId, list[list[bytes]]] = {}
    for tokens in _rows(content, path):
        queries.setdefault(QueryId(tokens[0].decode()), []).append(tokens)
    order = _order_scores if scan.form == "trec" else _order_ranks
    return {query: order(rows) for query, rows in queries.items()}


def _rows(source: BinaryIO, path: str) -> Iterator[list[bytes]]:
    """The tokens of each row; blank lines and comments are left out."""
    with TextReader(source, path=path, limits=OWN_FILES) as reader:
        for block in reader.blocks():
            for number, line in enumerate(block.text[:-1].split(b"\n"), start=block.line):
                if check_line(line, path=path, number=number) is None:
                    yield line.split()


def _order_scores(rows: list[list[bytes]]) -> list[Hit]:
    keys = np.array([float(tokens[4]) for tokens in rows])
    documents = [tokens[2] for tokens in rows]
    order = order_by_score(keys, documents).tolist()
    return [Hit(DocId(documents[row].decode()), float(keys[row])) for row in order]


def _order_ranks(rows: list[list[bytes]]) -> list[Hit]:
    ranks = np.array([int(tokens[2]) for tokens in rows], dtype=np.int64)
    order = order_by_rank(ranks).tolist()
    return [Hit(DocId(rows[row][1].decode()), -float(ranks[row])) for row in order]
