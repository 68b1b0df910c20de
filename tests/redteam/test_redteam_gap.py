"""How far the best baseline lies below the best known run, and what that lets leak."""

import math
from statistics import stdev

import pytest

from heldout.redteam.gap import LEAKS, Gap, describe_gap, find_gap, list_gaps

DEV, RANKING = 100, 400
QUERIES = [f"q{number}" for number in range(DEV)]
KNOWN = {
    "dense": {query: float(i % 2) for i, query in enumerate(QUERIES)},
    "sparse": {query: float(i % 4 > 1) for i, query in enumerate(QUERIES)},
    "bm25": {query: 0.3 * (i % 2) for i, query in enumerate(QUERIES)} | {"undefined": 1.0},
}


def test_the_gap_is_counted_in_u_of_the_queries_that_rank() -> None:
    gap = find_gap(KNOWN, ["bm25"], queries=RANKING)
    assert gap is not None
    apart = [KNOWN["dense"][query] - KNOWN["sparse"][query] for query in QUERIES]
    u = stdev(apart) / math.sqrt(RANKING)
    assert gap.baseline == "bm25"
    assert gap.scores == pytest.approx((0.15, 0.5))
    assert gap.unit.size == pytest.approx(u)
    assert {gap.unit.a, gap.unit.b} == {"dense", "sparse"}
    assert gap.size == pytest.approx((0.5 - 0.15) / u)


def test_the_best_of_several_baselines_counts() -> None:
    gap = find_gap(KNOWN, ["bm25", "dense"], queries=RANKING)
    assert gap is not None
    assert (gap.baseline, gap.best, gap.size, gap.leak) == ("dense", "dense", 0, LEAKS[0.0])
    assert "dense is the best known run" in describe_gap(gap, subject="dense", measure="RR@10")


def test_a_gap_needs_a_baseline_and_two_runs_that_differ() -> None:
    assert find_gap(KNOWN, [], queries=RANKING) is None
    assert find_gap({"bm25": KNOWN["bm25"]}, ["bm25"], queries=RANKING) is None
    assert find_gap({}, [], queries=RANKING) is None


def test_each_run_but_the_best_is_taken_as_the_baseline_nearest_first() -> None:
    known = KNOWN | {"weak": dict.fromkeys(QUERIES, 0.1)}
    assert [gap.baseline for gap in list_gaps(known, queries=RANKING)] == ["bm25", "weak"]


def make_gap(u: float) -> Gap:
    """A gap of so many u between two runs, of which one is a constant."""
    spread = math.sqrt((DEV - 1) / DEV)
    best = {query: 0.5 + spread * (-1) ** i for i, query in enumerate(QUERIES)}
    low = dict.fromkeys(QUERIES, 0.5 - u / math.sqrt(DEV))
    gap = find_gap({"best": best, "low": low}, ["low"], queries=DEV)
    assert gap is not None
    return gap


@pytest.mark.parametrize(
    ("u", "said"),
    [
        (4, "lies 4.0 u below best (RR@10 0.100 against 0.500 on dev; u = 0.1000 of"),
        (8, f"up to about {LEAKS[8.0]:.2f} u"),
        (12, f"up to about {(LEAKS[8.0] + LEAKS[16.0]) / 2:.2f} u"),
        (60, f"more than about {LEAKS[48.0]:.2f} u; more, in the u of two equal systems"),
    ],
)
def test_what_can_leak_is_said_with_the_gap(u: float, said: str) -> None:
    text = describe_gap(make_gap(u), subject="low", measure="RR@10")
    assert said in text
    assert ("name a run about as good as best" in text) == (u > 3)
