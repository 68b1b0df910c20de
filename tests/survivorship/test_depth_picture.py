"""The picture of depths: what hides what, and what is said above it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from heldout.ids import DocId, QueryId
from heldout.scoring.spec import parse_measure
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.depths.chart import spec
from heldout.survivorship.depths.study import DepthQuestion, DepthStudy, study_depths
from heldout.trec.tops import Places

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
        runs[name] = Places(found=ranks, retrieved=dict.fromkeys(ranks, 100))
    question = DepthQuestion(measure=parse_measure("RR@10"), to=(6, 8), trials=100)
    return study_depths(annotations, runs, question, np.random.default_rng(1))


def test_filled_marks_are_drawn_over_the_hollow_ones_of_all_systems(study: DepthStudy) -> None:
    marks = [one for one in spec(study)["layer"] if one["mark"]["type"] == "point"]
    drawn = [(one["mark"]["fill"], one["data"]["values"]) for one in marks]
    hollow = drawn[0][0]
    order = [fill == hollow for fill, _ in drawn]

    assert sorted(order, reverse=True) == order
    assert any(values for fill, values in drawn if fill != hollow)
    assert sum(len(values) for _, values in drawn) == 4 * 3


def test_a_system_whose_scores_are_all_the_same_has_a_line_and_nothing_ahead(
    study: DepthStudy,
) -> None:
    outlook = study.outlook
    assert outlook is not None
    ahead = tuple(replace(one, scores=(*one.scores[:2], None)) for one in outlook.predicted)
    without = spec(replace(study, outlook=replace(outlook, predicted=ahead)))
    boxes, fewer = (
        [one["mark"]["type"] for one in made["layer"]].count("rect")
        for made in (spec(study), without)
    )

    assert boxes - fewer == len(ahead)


@pytest.mark.parametrize("of_shown", [False, True])
def test_all_that_is_said_stands_within_the_picture(study: DepthStudy, *, of_shown: bool) -> None:
    made = spec(replace(study, of_shown=of_shown))
    above = made["padding"]["top"]
    places = [one["mark"]["y"] for one in made["layer"] if one["mark"]["type"] == "text"]
    texts = [
        one["data"]["values"][0]["text"] for one in made["layer"] if one["mark"]["type"] == "text"
    ]

    assert any("shown: labels were chosen" in text for text in texts) == of_shown
    assert all(10 - above <= y <= made["height"] + made["padding"]["bottom"] for y in places)
    assert len(set(places)) == len(places)


def test_depths_of_the_picture_rise(study: DepthStudy) -> None:
    places = [
        [spot["x"] for spot in one["data"]["values"]]
        for one in spec(study)["layer"]
        if one["mark"]["type"] == "line"
    ]
    assert all(left <= right for xs in places for left, right in pairwise(xs))
