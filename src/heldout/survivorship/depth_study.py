"""All that is asked of depths of annotation, in one answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from heldout.measures.spec import Measure
from heldout.stats.student import Variances
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depth_tests import (
    Change,
    DepthTest,
    Family,
    OrderAtDepth,
    compare_nested,
    compare_steps,
    compare_survivors,
    order_of_systems,
    split_change,
)
from heldout.survivorship.depths import DepthScores, label_depths, pick_depths, score_depths
from heldout.survivorship.extrapolation import Outlook, extrapolate
from heldout.trec.places import Places

__all__ = ["DepthQuestion", "DepthStudy", "study_depths"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthQuestion:
    """What is asked.

    Attributes:
        measure: of the runs.
        depths: those that are shown and tested, beside the last; empty for all.
        first_only: keep of each query the first selected document alone.
        family: what p is corrected over.
        variances: of the paper's test.
        to: depths beyond the last to extrapolate to; empty for none.
        level: of intervals; 1 - level is what p is compared with.
        trials: draws of queries, for the extrapolation.
    """

    measure: Measure
    depths: Sequence[int] = ()
    first_only: bool = False
    family: Family = "systems"
    variances: Variances = "student"
    to: Sequence[int] = ()
    level: float = 0.95
    trials: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthStudy:
    """What was found.

    Attributes:
        question: what was asked.
        source: where the annotations were read.
        discarded: queries without a label; `None` where the source leaves them out.
        scores: at the depths that were asked for.
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
    scores: DepthScores
    nested: tuple[DepthTest, ...]
    survivors: tuple[DepthTest, ...]
    steps: tuple[DepthTest, ...]
    changes: tuple[Change, ...]
    orders: tuple[OrderAtDepth, ...]
    outlook: Outlook | None


def study_depths(
    annotations: Annotations, runs: Mapping[str, Places], question: DepthQuestion, rng: Generator
) -> DepthStudy:
    """Score runs at each depth, and compare the depths.

    Args:
        annotations: what was selected, and where.
        runs: by name, where each lists the selected documents.
        question: what is asked.
        rng: where the extrapolation's draws come from.

    Raises:
        InputError: codes `no-survivor`, `depth-beyond-list`, `missing-scores`.
    """
    labels = label_depths(annotations, first_only=question.first_only)
    every = score_depths(labels, runs, question.measure)
    scores = pick_depths(every, question.depths or every.depths)
    family, level = question.family, question.level
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
        scores=scores,
        nested=compare_nested(scores, family=family, variances=question.variances, level=level),
        survivors=compare_survivors(scores, family=family, level=level),
        steps=compare_steps(scores, family=family, level=level),
        changes=split_change(scores),
        orders=order_of_systems(scores),
        outlook=outlook,
    )
