"""What is odd in real run files, and what it does to their scores."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from real_collections import Collection, Entry

from heldout.trec.orders import Order
from heldout.trec.runs import scan_run
from heldout.trec.scans import Facts, Scan

__all__ = ["QUIRKS", "Quirks", "count_quirks", "find_quirks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirks:
    """One run under both orders of the TREC tools.

    Attributes:
        entry: the run.
        double: facts with scores as float64 (`trec`).
        single: facts with scores as float32 (`trec9`).
        depth: how deep its board lets it go.
        topics: how many it should answer.
    """

    entry: Entry
    double: Facts
    single: Facts
    depth: int
    topics: int

    @property
    def collides(self) -> bool:
        """Whether scores that differ as float64 are equal as float32.

        Where none do, both orders are the same, and so is every score.
        """
        return self.single.tied > self.double.tied


def find_quirks(collection: Collection, data: Path) -> tuple[Quirks, ...]:
    """Read every run of a collection under both orders."""
    topics = len(collection.given(data).queries.texts)
    return tuple(
        Quirks(
            entry=entry,
            double=_scan(entry.path, "trec").facts,
            single=_scan(entry.path, "trec9").facts,
            depth=collection.depth,
            topics=topics,
        )
        for entry in collection.entries(data)
    )


def count_quirks(quirks: Sequence[Quirks]) -> Counter[str]:
    """How many runs have each quirk of `QUIRKS`."""
    return Counter(name for name, holds in QUIRKS.items() for run in quirks if holds(run))


QUIRKS: dict[str, Callable[[Quirks], bool]] = {
    "every topic's ranks start at 0": lambda run: set(run.double.first_ranks) == {0},
    "some topics' ranks start at 0, others' do not": lambda run: (
        0 in run.double.first_ranks and len(run.double.first_ranks) > 1
    ),
    "a rank twice in a topic": lambda run: run.double.repeated_ranks > 0,
    "rank column and score order disagree in the top 10": lambda run: run.double.displaced_top > 0,
    "the same, scores as float32": lambda run: run.single.displaced_top > 0,
    "equal scores in a topic": lambda run: run.double.tied > 0,
    "equal scores that begin in the top 10": lambda run: run.double.tied_top > 0,
    "scores that are equal only as float32": lambda run: run.collides,
    "a topic with fewer documents than the board allows": lambda run: (
        run.double.min_depth is not None and run.double.min_depth < run.depth
    ),
    "a topic without an answer": lambda run: run.double.queries < run.topics,
}
"""Quirk -> whether a run has it, in the order of the table in docs/results/real-runs.md."""


def _scan(path: Path, order: Order) -> Scan:
    with path.open("rb") as source:
        return scan_run(source, path=path.name, order=order)
