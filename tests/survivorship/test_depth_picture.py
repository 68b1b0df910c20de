"""The picture of depths: what hides what, and what is said above it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from drawings import boxes, root_of, texts
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.depths.study import DepthOptions, DepthStudy, study_depths
from heldout.survivorship.depths.words import spec
from heldout.trec.tops import RunPositions

QUERIES = 300


@pytest.fixture(scope="module")
def study() -> DepthStudy:
    """Systems that are worse on queries with a deep first label, one of them by very little."""
    rng = np.random.default_rng(8)
    annotations = Annotations(
        source="a test",
        records=[
            Annotation(query=QueryId(f"q{at}"), selected={DocId(f"d{at}"): 1 + at % 4})
            for at in range(QUERIES)
        ]
        + [Annotation(query=QueryId(f"x{at}")) for at in range(100)],
        depth=4,
        open_ended=False,
        counts_discarded=True,
    )
    runs = {}
    for name, fall in (("falls", 2), ("level", 0), ("drops", 3)):
        ranks = {
            f"q{at}": {f"d{at}": 1 + int(rng.integers(0, 2)) + fall * (at % 4)}
            for at in range(QUERIES)
        }
        runs[name] = RunPositions(found=ranks, retrieved=dict.fromkeys(ranks, 100))
    return study_depths(annotations, runs, DepthOptions(trials=100, seed=1))


def test_filled_marks_are_drawn_over_the_hollow_ones_of_all_systems(study: DepthStudy) -> None:
    fills = [
        group.get("fill")
        for group in root_of(spec(study)).iter("g")
        for mark in group.findall("circle")
        if mark.find("title") is not None
    ]
    hollow = fills[0]
    order = [fill == hollow for fill in fills]

    assert sorted(order, reverse=True) == order
    assert any(fill != hollow for fill in fills)
    assert len(fills) == 4 * 3


def test_a_system_whose_scores_are_all_the_same_has_a_line_and_nothing_ahead(
    study: DepthStudy,
) -> None:
    outlook = study.outlook
    assert outlook is not None
    ahead = tuple(replace(one, scores=(*one.scores[:2], None)) for one in outlook.predicted)
    without = spec(replace(study, outlook=replace(outlook, predicted=ahead)))

    assert len(boxes(spec(study))) - len(boxes(without)) == len(ahead)


@pytest.mark.parametrize("of_shown", [False, True])
def test_the_key_says_whether_the_order_is_favoured(study: DepthStudy, *, of_shown: bool) -> None:
    made = spec(replace(study, of_shown=of_shown))

    assert any("shown: labels were chosen" in text for text in texts(made)) == of_shown
    assert {"falls", "level", "drops"} <= {*texts(made, 350)}


def test_depths_of_the_picture_rise(study: DepthStudy) -> None:
    lines = [
        [float(point.split()[0]) for point in path.get("d", "")[1:].split("L")]
        for path in root_of(spec(study)).iter("path")
        if path.get("stroke") == "var(--muted)"
    ]
    assert lines
    assert all(left <= right for xs in lines for left, right in pairwise(xs))
