"""Scores of runs on the labels that a shallower annotation would have left, and what tests say.

At depth k only what was selected among the first k documents shown is a label, and a query without
one drops out. Queries are counted from the labels: one that a run does not answer scores 0 and
counts. (Table 4 of the paper has 5 to 36 queries fewer than its own labels; it seems to leave out
what its runs do not answer.) The order in which annotators saw documents is scored as a system too.

The queries of a shallow annotation are part of those of a deep one. The paper compares both by an
unpaired t test, as if they were two samples; then half of the standard error is counted that is not
there, and the test hardly ever errs (`nested_error`). Queries that survive at a depth and queries
that do not are two samples, and may be compared so, where both are large enough for a t test: most
queries have one score, 0, and with few others on a side Welch's t errs in up to 29% of studies.

Source: Gupta and MacAvaney 2022, §4.1 and table 4.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from heldout.errors import InputError, plural
from heldout.ids import DocId, QueryId
from heldout.judging.labels.rescoring import score_each
from heldout.scoring.measures import Measure
from heldout.stats import rank_correlation, student
from heldout.stats.results import AskedTest
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.trec.tops import RunPositions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DepthScores:
    """Scores of runs at each depth.

    Attributes:
        systems: names of the runs.
        depths: rising; the last one has all labels.
        open_ended: whether the last depth means "this deep or deeper".
        measure: what was computed.
        queries: those with a label at the last depth.
        values: float64, shape (systems, queries, depths); 0 where not `known`.
        known: bool, shape (queries, depths): whether the query has a label at this depth.
        unanswered: int64, shape (systems, depths): queries with a label that the run does not
            answer; each scores 0.
    """

    systems: tuple[str, ...]
    depths: tuple[int, ...]
    open_ended: bool
    measure: Measure
    queries: tuple[str, ...]
    values: NDArray[np.float64]
    known: NDArray[np.bool_]
    unanswered: NDArray[np.int64]

    @property
    def counts(self) -> tuple[int, ...]:
        """Queries with a label at each depth (NumQ)."""
        return tuple(self.known.sum(axis=0).tolist())

    @property
    def names(self) -> tuple[str, ...]:
        """The depths as they are written: `1`, `2`, `10+`."""
        last = f"{self.depths[-1]}{'+' if self.open_ended else ''}"
        return (*map(str, self.depths[:-1]), last)

    def scores(self, system: int, depth: int) -> NDArray[np.float64]:
        """Scores of a system on the queries with a label, by the places of both in the tables."""
        found: NDArray[np.float64] = self.values[system, self.known[:, depth], depth]
        return found

    def means(self) -> tuple[tuple[float | None, ...], ...]:
        """A row for each depth with the mean of each system; `None` where no query has a label."""
        every = [
            [self.scores(system, depth).tolist() for system in range(len(self.systems))]
            for depth in range(len(self.depths))
        ]
        return tuple(
            tuple(math.fsum(one) / len(one) if one else None for one in row) for row in every
        )


def score_depths(
    annotations: Annotations,
    runs: Mapping[str, RunPositions],
    measure: Measure,
    *,
    first_only: bool = False,
) -> DepthScores:
    """Score runs on the labels of every depth from 1 to the last.

    Equal labels of a query are measured once.

    Args:
        annotations: with at least one selected document.
        runs: by name, where each lists the selected documents.
        measure: what is computed.
        first_only: of each query the first selected document alone is a label; then a deeper
            annotation adds queries, and no label to the queries there are.

    Raises:
        InputError: code `no-survivor`: no query has a selected document; as `score_each`: code
            `missing-scores` where the measure has no value.

    Source: Gupta and MacAvaney 2022, §4.1; `first_only` is the control of its footnote 6.
    """
    survivors = [record for record in annotations.records if record.selected]
    if not survivors:
        annotated = plural(len(annotations.records), "query", "queries")
        raise InputError.of("no-survivor", annotations.source, queries=annotated)
    depths = tuple(range(1, annotations.depth + 1))
    queries = tuple(record.query for record in survivors)
    first = np.array([record.first for record in survivors], np.int64)
    known = first[:, np.newaxis] <= np.array(depths)
    labels = [_sets(record, depths, first_only=first_only) for record in survivors]
    # A query without a label yet is measured on all of its labels, and not looked at
    filled = [[one or sets[-1] for one in sets] for sets in labels]
    values = score_each(runs, filled, measure, queries=queries) * known
    missing = np.array(
        [[query not in listed.found for query in queries] for listed in runs.values()]
    )
    return DepthScores(
        systems=tuple(runs),
        depths=depths,
        open_ended=annotations.open_ended,
        measure=measure,
        queries=queries,
        values=values,
        known=known,
        unanswered=missing.astype(np.int64) @ known.astype(np.int64),
    )


def pick_depths(scores: DepthScores, depths: Sequence[int]) -> DepthScores:
    """Some of the depths, and the last, which has all labels.

    Args:
        scores: at each depth.
        depths: those that are wanted.

    Raises:
        InputError: code `depth-beyond-list`: annotators did not look so deep.
    """
    beyond = [depth for depth in depths if depth not in scores.depths]
    if beyond:
        last, found = scores.depths[-1], f"depth {beyond[0]}"
        raise InputError.of("depth-beyond-list", "--depth", found, last=last)
    wanted = sorted({*depths, scores.depths[-1]})
    columns = [scores.depths.index(depth) for depth in wanted]
    return replace(
        scores,
        depths=tuple(wanted),
        values=scores.values[:, :, columns],
        known=scores.known[:, columns],
        unanswered=scores.unanswered[:, columns],
    )


def _sets(
    record: Annotation, depths: Sequence[int], *, first_only: bool
) -> list[Mapping[str, int]]:
    """The labels at each depth; the same dict at depths that have the same labels."""
    ordered = sorted(record.selected.items(), key=lambda item: item[1])
    sets: list[Mapping[str, int]] = []
    for depth in depths:
        docs = [doc for doc, rank in ordered if rank <= depth]
        docs = docs[:1] if first_only else docs
        grades: Mapping[str, int] = dict.fromkeys(docs, 1)
        sets.append(sets[-1] if sets and len(sets[-1]) == len(docs) else grades)
    return sets


SHOWN = "shown"
"""The name of this system."""

SHOWN_IS_FAVOURED = (
    "the order that annotators saw: a ranking only if a system made it, and favoured by labels "
    "that were chosen from it; at depth 1 it is perfect by construction"
)
"""What is said wherever it is scored."""


def shown_documents(annotations: Annotations) -> Mapping[QueryId, tuple[DocId, ...]]:
    """Return what was shown for each query, best first.

    That annotators saw documents in this order says nothing of what the order means: it is a
    ranking only where a system ranked them, and nobody mixed them.

    Args:
        annotations: of a source that says what was shown.

    Raises:
        InputError: code `no-shown`: the source says only what was selected.
    """
    shown = {record.query: record.shown for record in annotations.records if record.shown}
    if not shown:
        queries = plural(len(annotations.records), "query", "queries")
        raise InputError.of("no-shown", annotations.source, queries=queries)
    return shown


def shown_ranks(annotations: Annotations) -> RunPositions:
    """Return where the order shown has what was selected.

    Args:
        annotations: as in `shown_documents`.

    Raises:
        InputError: as `shown_documents`.
    """
    shown = shown_documents(annotations)
    selected = {record.query: record.selected for record in annotations.records}
    return RunPositions(
        found={
            query: {doc: at for at, doc in enumerate(docs, 1) if doc in selected[query]}
            for query, docs in shown.items()
        },
        retrieved={query: len(docs) for query, docs in shown.items()},
    )


_FEWEST = 2
_FEWEST_OTHER = 12
"""Queries with another score than the most common one that a side should have for Welch's t: then
the chance of an error over nine depths, at .05, is near 5% (benchmarks/depth_coverage.py); another
simulation, of other worlds, had up to 8.4%."""
_FEWEST_SYSTEMS = 3
_NONE_ADDED = "no query is added"
_FEW = "fewer than two queries on a side"
_TOO_FEW = (
    f"too few queries for a t test: fewer than {_FEWEST_OTHER} on a side are expected to have "
    "another score than the most common one"
)
_CONSTANT = "all scores on each side are the same: there is no standard error"

_Sides = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Scores at a depth, and on the other side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthTest:
    """One system at one depth, against other queries.

    Attributes:
        system: its name.
        depth: place of the depth among `DepthScores.depths`.
        queries: of the depth.
        others: queries on the other side.
        difference: mean of the other side minus that of the depth; `None` without a query.
        low, high: interval of `difference`; `None` where undefined.
        p: two-sided, `None` where undefined.
        p_corrected: by Bonferroni over the depths of the system, as the paper's stars seem to be.
        why: the reason where p is undefined, else "".
    """

    system: str
    depth: int
    queries: int
    others: int
    difference: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreChange:
    """Why a system's score with all labels differs from that at a depth.

    The two parts add up to `score with all labels - score at the depth`.

    Attributes:
        system: its name.
        depth: place of the depth.
        labels: what more labels of the same queries add; `None` without a query at the depth.
        queries: what the queries add that have labels only deeper; the same.
    """

    system: str
    depth: int
    labels: float | None
    queries: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderAtDepth:
    """How alike a depth and all labels order the systems.

    Attributes:
        depth: place of the depth.
        tau: Kendall's tau-b; `None` where undefined.
        why: the reason there, else "".
    """

    depth: int
    tau: float | None
    why: str = ""


def compare_nested(scores: DepthScores, *, level: float = 0.95) -> tuple[DepthTest, ...]:
    """The paper's test: each depth against all labels, unpaired, though all holds the depth.

    Args:
        scores: of the systems at each depth.
        level: of the intervals.

    Returns:
        A test for each depth but the last and each system.

    Source: Gupta and MacAvaney 2022, table 4.
    """

    def sides(system: int, depth: int) -> _Sides:
        return scores.scores(system, depth), scores.scores(system, -1)

    return _compare(scores, sides, "student", level)


def compare_survivors(scores: DepthScores, *, level: float = 0.95) -> tuple[DepthTest, ...]:
    """Queries with a label at a depth against those that have one only deeper, by Welch's t.

    Both sides are scored with all labels, so they differ in their queries and in nothing else.

    Args:
        scores: of the systems at each depth.
        level: of the intervals.
    """

    def sides(system: int, depth: int) -> _Sides:
        last, known = scores.values[system, :, -1], scores.known[:, depth]
        return last[known], last[~known]

    return _compare(scores, sides, "welch", level)


def split_change(scores: DepthScores) -> tuple[ScoreChange, ...]:
    """Return how far more labels of the same queries, and how far other queries, change a score."""
    changes = []
    for depth in range(len(scores.depths) - 1):
        known = scores.known[:, depth]
        for index, system in enumerate(scores.systems):
            labels = queries = None
            if known.any():
                last = scores.values[index, :, -1]
                labels = float((last[known] - scores.values[index, known, depth]).mean())
                queries = float(last.mean() - last[known].mean())
            changes.append(ScoreChange(system=system, depth=depth, labels=labels, queries=queries))
    return tuple(changes)


def order_of_systems(scores: DepthScores) -> tuple[OrderAtDepth, ...]:
    """Kendall's tau between the order of the systems at each depth but the last, and by all."""
    *shallow, deep = scores.means()
    why = f"tau says nothing of fewer than {_FEWEST_SYSTEMS} systems"
    if len(scores.systems) >= _FEWEST_SYSTEMS:
        return tuple(_order(depth, row, deep) for depth, row in enumerate(shallow))
    return tuple(OrderAtDepth(depth=depth, tau=None, why=why) for depth in range(len(shallow)))


def nested_error(share: float, *, alpha: float = 0.05) -> float:
    """Return how often the paper's test errs where depth means nothing, in large samples.

    With a share of the queries in both samples, the difference of the means has a variance of
    (1 - share) / (1 + share) of what an unpaired test takes it for. This holds where such a query
    has the same score in both: where more labels of a query change no score.

    Args:
        share: queries at the depth, of all; above 0, below 1.
        alpha: the error that is meant.
    """
    return float(2 * ndtr(ndtri(alpha / 2) * np.sqrt((1 + share) / (1 - share))))


def _order(depth: int, row: Sequence[float | None], deep: Sequence[float | None]) -> OrderAtDepth:
    means = [one for one in row if one is not None]
    if len(means) < len(row):
        return OrderAtDepth(depth=depth, tau=None, why="no query has a label at this depth")
    tau = rank_correlation.kendall(means, [one or 0.0 for one in deep])
    why = "" if tau is not None else "all systems have the same score"
    return OrderAtDepth(depth=depth, tau=tau, why=why)


def _compare(
    scores: DepthScores, sides: Callable[[int, int], _Sides], kind: student.Variances, level: float
) -> tuple[DepthTest, ...]:
    depths, ask = range(len(scores.depths) - 1), AskedTest(alternative="two-sided", level=level)
    tests = []
    for depth in depths:
        for system, name in enumerate(scores.systems):
            first, second = sides(system, depth)
            test = DepthTest(
                system=name,
                depth=depth,
                queries=len(first),
                others=len(second),
                difference=float(second.mean() - first.mean())
                if len(first) and len(second)
                else None,
                why=_why((first, second), kind),
            )
            if not test.why:
                found = student.unpaired_t_test(first, second, ask, kind=kind)
                test = replace(
                    test,
                    difference=found.difference,
                    low=found.low,
                    high=found.high,
                    p=found.p,
                    p_corrected=None if found.p is None else min(1.0, found.p * len(depths)),
                )
            tests.append(test)
    return tuple(tests)


def _why(sides: _Sides, kind: student.Variances) -> str:
    if not len(sides[1]):
        return _NONE_ADDED
    if min(map(len, sides)) < _FEWEST:
        return _FEW
    if not any(np.ptp(side) > 0 for side in sides):
        return _CONSTANT
    return _TOO_FEW if kind == "welch" and _too_few(sides) else ""


def _too_few(sides: _Sides) -> bool:
    """Check whether the smaller side is too small, by the share of other scores on both together.

    By the share on both, so that what chance gave the smaller side does not decide.
    """
    _, counts = np.unique(np.concatenate(sides), return_counts=True)
    share = 1 - counts.max() / counts.sum()
    return bool(min(map(len, sides)) * share < _FEWEST_OTHER)
