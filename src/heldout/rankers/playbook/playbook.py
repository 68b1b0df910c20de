"""Is a ranker better than BM25 on a new collection, as far as its labels can tell?

A new collection has few labels or none, so a difference of means says little: what counts is
which gains the labels rule out and which they cannot see. Two intervals are taken, since neither
is right for every small sample, and a verdict needs both. Source: Craswell et al. 2021,
§6, asks for such a playbook; the rules are ours.

Labels that annotators chose from one system's top results leave out what that system missed
(Gupta and MacAvaney 2022), and any comparison on them favours it. A run's own ranks of the labels
are a hint of that: no relevant document stands where nobody looked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.ids import DocId, QueryId, find_near, say_near
from heldout.rankers.run import Hit, Run, Task
from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import Measure
from heldout.stats import exact
from heldout.stats.power import detectable_difference, queries_needed
from heldout.stats.resampling import mean_interval
from heldout.stats.tests import run_test
from heldout.trec.ranking import JudgedRanking

Labels = Mapping[QueryId, Mapping[DocId, int]]
"""Grade by query and document."""


TOP = 10
"""Places in which a document counts as found, and labels as standing at a run's top."""

_AT_TOP = 0.9
_FEWEST_LABELS = 20
_MOST_COMPARED = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedLabels:
    """Labels of the queries that are asked.

    Attributes:
        labels: at least one query.
        unasked: labelled queries that are not asked.
        unknown: relevant documents of asked queries that the collection does not have.
        near: which of the unknown documents, and which labelled queries, would match if both
            files wrote their ids alike; "" where none would.
    """

    labels: Labels
    unasked: int
    unknown: int
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelPlaces:
    """Where a run puts the relevant documents.

    Attributes:
        top: within the first `TOP`.
        below: further down.
        missed: not in the run.
    """

    top: int
    below: int
    missed: int

    @property
    def labels(self) -> int:
        """All of them."""
        return self.top + self.below + self.missed

    @property
    def at_top(self) -> bool:
        """Whether nine of ten stand at the top, as where annotators saw nothing else."""
        return self.labels >= _FEWEST_LABELS and self.top >= _AT_TOP * self.labels


def fit_labels(labels: Labels, task: Task) -> FittedLabels:
    """Keep the labels of the queries that are asked.

    Raises:
        InputError: code `labels-match-nothing`: no labelled query is asked, or the collection has
            no document that a label calls relevant.
    """
    asked = {query: grades for query, grades in labels.items() if query in task.queries and grades}
    if not asked:
        raise _mismatch(labels, task.queries, "query", "queries")
    relevant = {
        document: grade
        for grades in asked.values()
        for document, grade in grades.items()
        if grade > 0
    }
    if relevant and not task.documents.keys() & relevant.keys():
        raise _mismatch(relevant, task.documents, "document", "documents")
    unknown = [
        document
        for grades in asked.values()
        for document, grade in grades.items()
        if grade > 0 and document not in task.documents
    ]
    near = (_say_near(set(unknown), task.documents), _say_near(labels, task.queries))
    return FittedLabels(
        labels=asked,
        unasked=len(labels) - len(asked),
        unknown=len(unknown),
        near="; ".join(filter(None, near)),
    )


def _say_near(labelled: Iterable[str], known: Collection[str]) -> str:
    """What would match under another spelling; not looked for in millions of documents."""
    lost = [name for name in labelled if name not in known]
    return say_near(find_near(lost, islice(known, _MOST_COMPARED))) if lost else ""


def find_places(run: Run, labels: Labels) -> LabelPlaces:
    """Count where a run puts the relevant documents of labelled queries."""
    top = below = labelled = 0
    for query, grades in labels.items():
        relevant = [grades.get(hit.document, 0) > 0 for hit in run.get(query, ())]
        top += sum(relevant[:TOP])
        below += sum(relevant[TOP:])
        labelled += sum(grade > 0 for grade in grades.values())
    return LabelPlaces(top=top, below=below, missed=labelled - top - below)


def _mismatch(
    labelled: Collection[str],
    known: Collection[str],
    one: str,
    many: str,
) -> InputError:
    first, other = next(iter(labelled), ""), next(iter(known), "")
    return InputError.of(
        "labels-match-nothing",
        "labels",
        found=f"{len(labelled):,} {many} in the labels, such as {first[:40]!r}, and none of "
        "them in the collection",
        expected=f"ids of the collection, such as {other[:40]!r}",
        hint=_say_near(labelled, known)
        or f"labels and collection number their {many} differently, or belong to another {one} set",
    )


Verdict = Literal["better", "not better", "worse", "cannot tell"]
"""`better`, `worse`: both intervals lie on that side of 0. `not better`: both rule out a gain that
is worth having. `cannot tell`: everything else."""

FEWEST = 10
"""Labelled queries below which nothing is concluded: no interval holds what it says there."""

DEVIATIONS: Mapping[str, Sequence[float]] = {
    "zero-shot-hybrid": (0.15, 0.17, 0.23),
    "zero-shot-lexical": (0.11, 0.09, 0.15),
}
"""Ranker -> standard deviations of its difference to BM25 by query, nDCG@10, on Cranfield,
Vaswani and the embedded collection: what to expect where nothing is labelled. Other rankers were
not measured. Source: docs/results/zero-shot.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finders:
    """Labelled queries by who has a relevant document among the first `TOP`.

    Attributes:
        both, ranker, baseline, neither: how many; `ranker` and `baseline` alone.
    """

    both: int
    ranker: int
    baseline: int
    neither: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A ranker against BM25 on labelled queries.

    Attributes:
        measure: what was measured.
        queries: labelled and asked.
        without_relevant: how many of them have no relevant document, and so say nothing.
        ranker, baseline: mean scores.
        difference: ranker less baseline.
        t: ends of the paired t interval, `None` where undefined.
        bootstrap: ends of the BCa bootstrap interval, likewise.
        level: of both.
        p: of the paired t test, two-sided.
        deviation: standard deviation of the differences by query; `None` for one query.
        wins, ties, losses: queries that the ranker wins, by score.
        found: who finds something.
        places: of the relevant documents in the baseline's run.
        gain: the smallest gain that is worth having, as given.
        verdict: see `Verdict`.
        why: the reason where the verdict is `cannot tell`, else "".
        queries_for_gain: labelled queries that find a true gain of `gain` with power 0.8 at level
            1 - `level`, by the deviation found; `None` where undefined.
        detectable: the smallest true gain that `queries` find so; `None` where undefined.
    """

    measure: Measure
    queries: int
    without_relevant: int
    ranker: float
    baseline: float
    difference: float
    t: tuple[float, float] | None
    bootstrap: tuple[float, float] | None
    level: float
    p: float | None
    deviation: float | None
    wins: int
    ties: int
    losses: int
    found: Finders
    places: LabelPlaces
    gain: float
    verdict: Verdict
    why: str
    queries_for_gain: int | None
    detectable: float | None


def compare(
    ranker: Run,
    baseline: Run,
    labels: Labels,
    measure: Measure,
    rng: Generator,
    *,
    gain: float,
    level: float = 0.95,
    trials: int = 10_000,
) -> Comparison:
    """Compare a ranker's run with that of BM25.

    Args:
        ranker: its run.
        baseline: that of BM25 on the same queries.
        labels: of at least one query; queries that no run answers score 0.
        measure: what to measure; its scores are defined for every query.
        rng: where the bootstrap's draws come from.
        gain: the smallest gain that is worth having, above 0, in the measure's unit.
        level: of the intervals, in (0, 1).
        trials: draws of the bootstrap.

    Raises:
        InputError: as `measures.evaluate`; code `measure-undefined` where a query has no score.
        ValueError: `gain` is not above 0, or there are no labels.
    """
    if not (gain > 0 and labels):
        raise ValueError((gain, len(labels)))
    ours, without_relevant = _score(ranker, labels, measure)
    theirs, _ = _score(baseline, labels, measure)
    differences = exact.differences(theirs, ours)
    tested = run_test("t", theirs, ours, level=level)
    drawn = mean_interval(differences, rng, level=level, trials=trials)
    t, bootstrap = _ends(tested.low, tested.high), _ends(drawn.low, drawn.high)
    verdict, why = _judge(t, bootstrap, queries=len(labels), gain=gain)
    deviation = float(differences.std(ddof=1)) if len(differences) > 1 else None
    known = deviation is not None and deviation > 0
    return Comparison(
        measure=measure,
        queries=len(labels),
        without_relevant=without_relevant,
        ranker=float(ours.mean()),
        baseline=float(theirs.mean()),
        difference=float(differences.mean()),
        t=t,
        bootstrap=bootstrap,
        level=level,
        p=tested.p,
        deviation=deviation,
        wins=int((differences > 0).sum()),
        ties=int((differences == 0).sum()),
        losses=int((differences < 0).sum()),
        found=_finders(ranker, baseline, labels),
        places=find_places(baseline, labels),
        gain=gain,
        verdict=verdict,
        why=why,
        queries_for_gain=queries_needed(gain, deviation, alpha=1 - level)
        if deviation is not None and known
        else None,
        detectable=detectable_difference(len(labels), deviation, alpha=1 - level)
        if deviation is not None and known
        else None,
    )


def likely_detectable(
    queries: int, deviations: Sequence[float], *, alpha: float = 0.05
) -> tuple[float, float]:
    """What labels that do not exist yet would buy, by what other collections were like.

    Args:
        queries: how many would be labelled, at least 2.
        deviations: standard deviations of such differences by query, one for each collection.
        alpha: level of the two-sided paired t test.

    Returns:
        Smallest and largest of the true gains that so many queries find with power 0.8.
    """
    found = [detectable_difference(queries, one, alpha=alpha) for one in deviations]
    return min(found), max(found)


def _judge(
    t: tuple[float, float] | None,
    bootstrap: tuple[float, float] | None,
    *,
    queries: int,
    gain: float,
) -> tuple[Verdict, str]:
    if t is None or bootstrap is None:
        return "cannot tell", "no interval: every labelled query has the same difference"
    low, high = min(t[0], bootstrap[0]), max(t[1], bootstrap[1])
    if queries < FEWEST:
        return "cannot tell", f"fewer than {FEWEST} labelled queries"
    if low > 0:
        return "better", ""
    if high < 0:
        return "worse", ""
    if high < gain:
        return "not better", ""
    return "cannot tell", "the intervals hold both no gain and one worth having"


def _score(run: Run, labels: Labels, measure: Measure) -> tuple[NDArray[np.float64], int]:
    """Score by query, and how many queries have no relevant document."""
    rankings = {
        str(query): _see(run[query], grades) for query, grades in labels.items() if run.get(query)
    }
    found = evaluate(rankings, labels, [measure]).scores[measure]
    if not found.defined.all():
        raise InputError.of(
            "measure-undefined",
            "--measure",
            f"{measure} has no value where nothing is found",
            "a measure that is defined for every query",
            "for example nDCG@10 or RR@10",
        )
    return found.values, found.without_relevant


def _see(hits: Sequence[Hit], grades: Mapping[DocId, int]) -> JudgedRanking:
    judged = [
        (place, grades[hit.document]) for place, hit in enumerate(hits, 1) if hit.document in grades
    ]
    positions, seen = np.array(judged, dtype=np.int64).reshape(-1, 2).T
    return JudgedRanking(positions=positions, grades=seen, retrieved=len(hits))


def _ends(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _finders(ranker: Run, baseline: Run, labels: Labels) -> Finders:
    ours, theirs = _found(ranker, labels), _found(baseline, labels)
    return Finders(
        both=len(ours & theirs),
        ranker=len(ours - theirs),
        baseline=len(theirs - ours),
        neither=len(labels) - len(ours | theirs),
    )


def _found(run: Run, labels: Labels) -> set[QueryId]:
    return {
        query
        for query, grades in labels.items()
        if any(grades.get(hit.document, 0) > 0 for hit in run.get(query, ())[:TOP])
    }
