"""The first documents of each query of a run, those with equal scores together.

An order breaks ties by id, as measures need it; whoever compares rankings wants to know of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

import numpy as np

from heldout.trec.ranking import Order, sort_keys
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.rows import COLUMNS, Form
from heldout.trec.text import check_line

__all__ = ["TiedTops", "read_tied_tops"]

TiedTops = Mapping[str, tuple[tuple[str, ...], ...]]
"""Query -> groups of documents with equal scores, the best first, ids sorted within a group."""

Key = tuple[float, int]
_SLACK = 4000


@dataclass(slots=True)
class _Top:
    """The best documents of a query so far: a key, of which lower is better, and an id."""

    rows: list[tuple[Key, str]] = field(default_factory=list)

    def cut(self, depth: int) -> None:
        """Keep the first so many, and those that tie with the last of them."""
        self.rows.sort()
        if len(self.rows) > depth:
            last = self.rows[depth - 1][0]
            self.rows = [row for row in self.rows if row[0] <= last]

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The documents by key."""
        return tuple(
            tuple(document for _, document in rows)
            for _, rows in groupby(self.rows, key=itemgetter(0))
        )


def read_tied_tops(
    source: BinaryIO,
    *,
    path: str,
    form: Form,
    order: Order,
    depth: int,
    limits: Limits | None = None,
) -> TiedTops:
    """Read a run that was scanned without errors, to keep its tops with their ties.

    Args:
        source: its bytes: plain, gzip, bzip2 or zstd.
        path: its name for messages.
        form: how its lines are laid out, as the scan says.
        order: which documents tie: those of equal scores under `trec`, of scores equal as float32
            under `trec9`; none under `msmarco`, where equal ranks stand in the order of the file.
        depth: documents of each query, >= 1; more where some tie with the last.
        limits: how much is read.

    Raises:
        InputError: those of `TextReader`.
    """
    tops: dict[str, _Top] = {}
    document = 2 if form == "trec" else 1
    with TextReader(source, path=path, limits=limits or Limits()) as reader:
        for number, line in read_lines(reader):
            tokens = line.decode().split()
            if len(tokens) != COLUMNS[form] or check_line(line, path=path, number=number):
                continue  # a note of the scan: a blank line, a comment
            top = tops.setdefault(tokens[0], _Top())
            top.rows.append((_key(tokens, order, number), tokens[document]))
            if len(top.rows) > depth + _SLACK:
                top.cut(depth)
    for top in tops.values():
        top.cut(depth)
    return {query: tops[query].groups() for query in sorted(tops)}


def _key(tokens: list[str], order: Order, line: int) -> Key:
    """Equal for documents that tie."""
    if order == "msmarco":
        return float(tokens[2 if len(tokens) == COLUMNS["msmarco"] else 3]), line
    return -float(sort_keys(np.array([float(tokens[4])]), order)[0]), 0
