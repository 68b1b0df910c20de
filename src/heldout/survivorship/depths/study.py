"""All that is asked of depths of annotation, in one answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from heldout.scoring.measures import Measure
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depths.extrapolation import Outlook, extrapolate
from heldout.survivorship.depths.scores import (
    SHOWN,
    DepthScores,
    pick_depths,
    score_depths,
    shown_places,
)
from heldout.survivorship.depths.tests import (
    DepthTest,
    OrderAtDepth,
    ScoreChange,
    compare_nested,
    compare_steps,
    compare_survivors,
    nested_error,
    order_of_systems,
    split_change,
)
from heldout.trec.tops import Places

NO_QUERY = "no query has a label at this depth"
"""Why a score is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthQuestion:
    """What is asked.

    Attributes:
        measure: of the runs.
        depths: those that are shown, beside the last; empty for all. What is corrected, and which
            depth is the next, does not depend on them.
        first_only: keep of each query the first selected document alone.
        to: depths beyond the last to extrapolate to; empty for none.
        level: of intervals; 1 - level is what p is compared with.
        trials: draws of queries, for the extrapolation.
    """

    measure: Measure
    depths: Sequence[int] = ()
    first_only: bool = False
    to: Sequence[int] = ()
    level: float = 0.95
    trials: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthStudy:
    """What came out.

    Attributes:
        question: what was asked.
        source: where the annotations were read.
        discarded: queries without a label; `None` where the source leaves them out.
        of_shown: whether the one system is the order that annotators saw.
        compared: depths of which each has a test, shown or not: all but the last; by so many tests
            p is multiplied.
        scores: at the depths that were asked for.
        added: queries that each of them adds to the depth before it, shown or not.
        nested: the paper's test.
        survivors: queries with a label against those that have one only deeper.
        steps: queries with a label against those that the next depth adds.
        changes: what makes a score differ.
        orders: Kendall's tau between each depth and all labels.
        outlook: what deeper annotation might show; `None` where nobody asked.
    """

    question: DepthQuestion
    source: str
    discarded: int | None
    of_shown: bool
    compared: int
    scores: DepthScores
    added: tuple[int, ...]
    nested: tuple[DepthTest, ...]
    survivors: tuple[DepthTest, ...]
    steps: tuple[DepthTest, ...]
    changes: tuple[ScoreChange, ...]
    orders: tuple[OrderAtDepth, ...]
    outlook: Outlook | None

    @property
    def adds_labels(self) -> bool:
        """Whether more labels of the same queries change a score."""
        return any(one.labels for one in self.changes)

    @property
    def why_last(self) -> str:
        """Why the last depth is compared with nothing."""
        return (
            "this is the depth that the others are compared with"
            if self.compared
            else "there is one depth alone"
        )

    def nested_error(self, depth: int) -> tuple[float | None, str]:
        """How often the paper's test errs where depth means nothing.

        Args:
            depth: place of the depth among those of `scores`.

        Returns:
            The share of samples with p below 1 - level, uncorrected, and ""; or `None`, and the
            reason why it is not known.
        """
        counts = self.scores.counts
        if depth == len(counts) - 1:
            return None, self.why_last
        if self.adds_labels:
            return None, "queries have several labels, and more of them change scores"
        if not counts[depth]:
            return None, NO_QUERY
        if counts[depth] == counts[-1]:
            return None, "the last depth has the same queries"
        return nested_error(counts[depth] / counts[-1], alpha=1 - self.question.level), ""


def study_depths(
    annotations: Annotations,
    runs: Mapping[str, Places] | None,
    question: DepthQuestion,
    rng: Generator,
) -> DepthStudy:
    """Score runs at each depth, and compare the depths.

    Args:
        annotations: what was selected, and where.
        runs: by name, where each lists the selected documents; `None` for the order shown.
        question: what is asked.
        rng: where the extrapolation's draws come from.

    Raises:
        InputError: codes `no-survivor`, `depth-beyond-list`, `missing-scores`; without runs
            `no-shown`.
    """
    scored = {SHOWN: shown_places(annotations)} if runs is None else runs
    every = score_depths(annotations, scored, question.measure, first_only=question.first_only)
    scores = pick_depths(every, question.depths or every.depths)
    level = question.level
    added = np.diff((0, *every.counts)).tolist()
    places = {every.depths.index(depth): at for at, depth in enumerate(scores.depths)}

    def shown(tests: tuple[DepthTest, ...]) -> tuple[DepthTest, ...]:
        return tuple(replace(one, depth=places[one.depth]) for one in tests if one.depth in places)

    outlook = None
    if question.to:
        outlook = extrapolate(
            every,
            rng,
            discarded=annotations.discarded,
            to=question.to,
            trials=question.trials,
            level=level,
        )
    return DepthStudy(
        question=question,
        source=annotations.source,
        discarded=annotations.discarded,
        of_shown=runs is None,
        compared=len(every.depths) - 1,
        scores=scores,
        added=tuple(added[place] for place in places),
        nested=shown(compare_nested(every, level=level)),
        survivors=shown(compare_survivors(every, level=level)),
        steps=shown(compare_steps(every, level=level)),
        changes=split_change(scores),
        orders=order_of_systems(scores),
        outlook=outlook,
    )
