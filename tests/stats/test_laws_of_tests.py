"""What holds for every test of the table, whatever the scores."""

import math
import pickle
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.stats.results import SMALLEST, Alternative, TestResult
from heldout.stats.tests import TESTS, run_test

Scores = NDArray[np.float64]

reciprocal_ranks = st.integers(0, 12).map(lambda rank: 1 / rank if rank else 0.0)
many_values = st.floats(-2, 2, allow_subnormal=False)


def pairs_of(cell: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[Scores, Scores]]:
    rows = st.lists(st.tuples(cell, cell), min_size=1, max_size=25)
    return rows.map(lambda found: (np.array(found)[:, 0], np.array(found)[:, 1]))


pairs = st.one_of(pairs_of(reciprocal_ranks), pairs_of(many_values))


def run(name: str, a: Scores, b: Scores, **more: Any) -> TestResult:
    return run_test(name, a, b, **more)


def variants() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every test in every direction."""
    for name in TESTS:
        for alternative in get_args(Alternative):
            yield name, {"alternative": alternative}


every_variant = pytest.mark.parametrize(("name", "options"), list(variants()))
every_test = pytest.mark.parametrize("name", TESTS)


@every_variant
@settings(max_examples=12)
@given(pair=pairs)
def test_p_is_in_range_or_none_with_a_reason(
    name: str, options: dict[str, Any], pair: tuple[Scores, Scores]
) -> None:
    result = run(name, *pair, **options)
    assert result.p is None or SMALLEST <= result.p <= 1
    assert (result.low is None) == (result.high is None)
    assert (result.why is not None) == (result.p is None or result.low is None)
    assert 0 <= result.used <= result.n
    numbers = (result.difference, result.low, result.high, result.statistic, result.p)
    assert all(number is None or math.isfinite(number) for number in numbers)
    if result.low is not None and result.high is not None and result.difference is not None:
        assert result.low <= result.difference + 1e-9
        assert result.difference <= result.high + 1e-9


@every_variant
@settings(max_examples=10)
@given(pair=pairs, order=st.randoms(use_true_random=False))
def test_the_order_of_queries_does_not_matter(
    name: str, options: dict[str, Any], pair: tuple[Scores, Scores], order: Any
) -> None:
    places = list(range(len(pair[0])))
    order.shuffle(places)
    assert_close(
        run(name, *pair, **options), run(name, pair[0][places], pair[1][places], **options)
    )


def assert_close(one: TestResult, other: TestResult) -> None:
    for field in ("p", "difference", "low", "high"):
        first, second = getattr(one, field), getattr(other, field)
        assert (first is None) == (second is None), field
        assert first is None or first == pytest.approx(second, rel=1e-9, abs=1e-12), field
    assert one.why == other.why


TURNED = {"greater": "less", "less": "greater", "two-sided": "two-sided"}


@every_variant
@settings(max_examples=10)
@given(pair=pairs)
def test_swapping_the_systems_turns_the_difference_and_the_direction(
    name: str, options: dict[str, Any], pair: tuple[Scores, Scores]
) -> None:
    one = run(name, *pair, **options)
    turned = {**options, "alternative": TURNED[one.alternative]}
    other = run(name, pair[1], pair[0], **turned)
    assert (one.p is None) == (other.p is None)
    assert one.p is None or one.p == pytest.approx(other.p, rel=1e-9)
    assert [one.difference, one.low, one.high] == pytest.approx(
        [None if x is None else -x for x in (other.difference, other.high, other.low)], abs=1e-11
    )


@every_test
@settings(max_examples=12)
@given(
    seed=st.integers(0, 10_000), size=st.integers(6, 40), shift=st.floats(0.01, 2, exclude_min=True)
)
def test_a_larger_difference_is_not_less_evidence(
    name: str, *, seed: int, size: int, shift: float
) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=size), rng.normal(size=size)
    near, far = (run(name, a, b + moved, alternative="greater") for moved in (0, shift))
    assert near.p is None or far.p is None or far.p <= near.p + 1e-12


@every_test
def test_p_is_the_smallest_float_where_it_is_too_small_for_one(name: str) -> None:
    rng = np.random.default_rng(0)
    a = rng.random(5000) / 100
    b = a + 1 + rng.random(5000) / 100
    p = run(name, np.where(name == "binomial", 0, a), b).p
    assert p == SMALLEST


@every_test
def test_a_result_can_travel_between_processes_and_become_a_dict(name: str) -> None:
    result = run(name, np.arange(9) / 10, np.arange(9)[::-1] ** 2 / 100)
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own bytes
    assert asdict(result)["options"] == result.options


@pytest.mark.parametrize("name", ["t", "sign", "rank-sum"])
@settings(max_examples=10)
@given(pair=pairs_of(reciprocal_ranks), factor=st.sampled_from((1e-6, 0.125, 3, 1e6)))
def test_the_unit_of_the_scores_does_not_matter(
    name: str, pair: tuple[Scores, Scores], factor: float
) -> None:
    one, other = run(name, *pair), run(name, pair[0] * factor, pair[1] * factor)
    assert (one.p is None) == (other.p is None)
    assert one.p is None or one.p == pytest.approx(other.p, rel=1e-4)
