"""The worst group of queries, and the gap: against plain means of groups."""

from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.scoring.fairness import Weighting, weigh_facets

QUERIES = [f"q{number}" for number in range(12)]
SCORES = st.dictionaries(st.sampled_from(QUERIES), st.floats(0, 1), min_size=1)
FACETS = st.dictionaries(
    st.sampled_from(["A", "B", "C", "D"]), st.frozensets(st.sampled_from(QUERIES)), max_size=4
)


def mean_of(found: Weighting, scores: dict[str, float]) -> float:
    return sum(weight * scores[q] for q, weight in found.weights.items()) / len(found.weights)


def plain_means(
    scores: dict[str, float], facets: dict[str, frozenset[str]], least: int
) -> dict[str, float]:
    known = {name: [scores[q] for q in qs if q in scores] for name, qs in facets.items()}
    return {name: fmean(values) for name, values in known.items() if len(values) >= least}


@given(scores=SCORES, facets=FACETS, least=st.integers(1, 4))
def test_the_worst_is_the_lowest_mean_of_a_group(
    scores: dict[str, float], facets: dict[str, frozenset[str]], least: int
) -> None:
    found = weigh_facets(scores, facets, summary="worst", least=least)
    means = plain_means(scores, facets, least)
    assert (found is None) == (not means)
    if found is not None:
        assert mean_of(found, scores) == pytest.approx(min(means.values()), abs=1e-9)
        assert means[found.groups[0]] == pytest.approx(min(means.values()), abs=1e-9)


@given(scores=SCORES, facets=FACETS, least=st.integers(1, 4))
def test_the_gap_is_the_highest_less_the_lowest_and_never_below_0(
    scores: dict[str, float], facets: dict[str, frozenset[str]], least: int
) -> None:
    found = weigh_facets(scores, facets, summary="gap", least=least)
    means = plain_means(scores, facets, least)
    assert (found is None) == (len(means) < 2)
    if found is not None:
        gap = max(means.values()) - min(means.values())
        assert mean_of(found, scores) == pytest.approx(gap, abs=1e-9)
        assert f"{mean_of(found, scores):.3f}" != "-0.000"


@given(scores=SCORES, facets=FACETS)
def test_names_and_their_order_do_not_matter(
    scores: dict[str, float], facets: dict[str, frozenset[str]]
) -> None:
    renamed = {f"z{9 - index}": queries for index, queries in enumerate(facets.values())}
    for summary in ("worst", "gap"):
        before = weigh_facets(scores, facets, summary=summary, least=1)
        after = weigh_facets(scores, renamed, summary=summary, least=1)
        assert (before is None) == (after is None)
        if before is not None and after is not None:
            same = pytest.approx(mean_of(before, scores), abs=1e-9)
            assert mean_of(after, scores) == same


def test_a_group_that_is_too_small_is_left_out() -> None:
    facets = {"large": frozenset(QUERIES[:3]), "small": frozenset(QUERIES[3:5])}
    scores = dict.fromkeys(QUERIES[:3], 1.0) | dict.fromkeys(QUERIES[3:5], 0.0)
    found = weigh_facets(scores, facets, summary="worst", least=3)
    assert found is not None
    assert found.groups == ("large",)
    assert weigh_facets(scores, facets, summary="gap", least=3) is None
    assert weigh_facets(scores, facets, summary="worst", least=4) is None


def test_a_query_in_both_groups_counts_in_both() -> None:
    facets = {"A": frozenset({"q0", "q1"}), "B": frozenset({"q1", "q2"})}
    scores = {"q0": 1.0, "q1": 0.5, "q2": 0.0}
    found = weigh_facets(scores, facets, summary="gap", least=2)
    assert found is not None
    assert found.groups == ("A", "B")
    assert found.weights == {"q0": 1.5, "q1": 0.0, "q2": -1.5}
    assert mean_of(found, scores) == 0.5
