"""Kappa and alpha: their laws, their intervals, and where there is none."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.errors import InputError
from heldout.stats.agreement import (
    Scale,
    cohen_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    krippendorff_interval,
)
from trials import choose_trials

SCALES: tuple[Scale, ...] = get_args(Scale)


def test_a_category_between_counts_for_weights_though_nobody_chose_it() -> None:
    first, second = "aadbd", "abdbb"
    found = cohen_kappa(first, second, weights="linear")
    assert found == cohen_kappa([1, 1, 3, 2, 3], [1, 2, 3, 2, 2], weights="linear")
    assert found != cohen_kappa(first, second, weights="linear", categories="abcd")
    assert found == cohen_kappa(first, second, weights="linear", categories="abdxyz")


def test_one_category_alone_is_undefined_and_not_perfect() -> None:
    one = "all ratings are in one category"
    assert cohen_kappa([1, 1], [1, 1]).why == one
    assert fleiss_kappa([[3, 0], [3, 0]]).why == one
    assert krippendorff_alpha([[1, 1], [1, 1]]).why == one
    # 3 stands alone in its unit: what is compared is all in one category
    assert krippendorff_alpha([[1.0, 1.0, 3.0], [1.0, 1.0, np.nan]]).why == one


def test_without_ratings_it_is_undefined() -> None:
    none = "no unit has two ratings"
    assert cohen_kappa([], []).why == none
    assert fleiss_kappa(np.zeros((0, 3))).why == none
    assert krippendorff_alpha([[1.0, np.nan], [np.nan, 2.0]]).why == none
    assert krippendorff_alpha(np.zeros((2, 0))).why == none
    assert cohen_kappa([], []).units == fleiss_kappa(np.zeros((0, 3))).units == 0


def test_units_are_counted_that_two_have_rated() -> None:
    assert cohen_kappa("aab", "abb").units == 3
    assert fleiss_kappa([[2, 1], [0, 3]]).units == 2
    assert krippendorff_alpha([[1.0, 1.0, 3.0], [1.0, 2.0, np.nan]]).units == 2


@pytest.mark.parametrize("scale", SCALES)
def test_the_interval_is_about_the_value_and_follows_the_seed(scale: Scale) -> None:
    rng = np.random.default_rng(7)
    truth = rng.integers(1, 5, 60)
    ratings = np.where(rng.random((3, 60)) < 0.8, truth, rng.integers(1, 5, (3, 60))).astype(float)
    value: Any = krippendorff_alpha(ratings, scale=scale).value
    found: list[Any] = [
        krippendorff_interval(ratings, Generator(PCG64(seed)), scale=scale, trials=200)
        for seed in (0, 0, 1)
    ]
    assert found[0] == found[1] != found[2]
    assert found[0][0] < value < found[0][1]


def test_the_interval_holds_about_as_often_as_it_says_on_fifty_units() -> None:
    shares = [0.5, 0.3, 0.15, 0.05]

    def rate(rng: Generator, units: int) -> NDArray[np.float64]:
        truth = rng.choice(4, units, p=shares)
        guessed = rng.choice(4, (3, units), p=shares)
        return np.where(rng.random((3, units)) < 0.6, truth, guessed).astype(float)

    value: Any = krippendorff_alpha(rate(np.random.default_rng(1), 100_000)).value
    assert value == pytest.approx(0.36, abs=0.01)
    rng, held = np.random.default_rng(2), 0
    trials = choose_trials(push=80, night=150)
    for _ in range(trials):
        found: Any = krippendorff_interval(rate(rng, 50), rng, trials=150)
        held += found[0] <= value <= found[1]
    # 94% of 300 with more draws; three standard errors of 80 below that
    assert held >= 0.86 * trials


def test_an_interval_that_no_draw_can_tell_is_none() -> None:
    rng = Generator(PCG64(0))
    assert krippendorff_interval([[1, 2, 3, 4], [1, 2, 3, 4]], rng) is None
    assert krippendorff_interval([[1, 1], [1, 1]], rng) is None
    assert krippendorff_interval([[1.0, np.nan], [2.0, np.nan]], rng) is None
    assert krippendorff_interval([[1, 2], [1, 1]], rng) is None


def test_what_is_no_rating_is_refused() -> None:
    nan = float("nan")
    with pytest.raises(InputError, match="unequal-ratings"):
        cohen_kappa([1], [1, 2])
    with pytest.raises(InputError, match="bad-rating"):
        cohen_kappa([1, nan], [1, nan])
    with pytest.raises(InputError, match="bad-rating"):
        cohen_kappa(["a"], ["b"], categories=["a"])
    with pytest.raises(InputError, match="unequal-ratings"):
        fleiss_kappa([[2, 0], [1, 2]])
    for counts in ([[1, 0]], [[3, -1]], [[1.5, 0.5]], [[nan, 2]]):
        with pytest.raises(InputError, match="unequal-ratings"):
            fleiss_kappa(counts)
    with pytest.raises(InputError, match="bad-rating"):
        krippendorff_alpha([[1.0, float("inf")], [1.0, 2.0]])
    with pytest.raises(InputError, match="bad-rating"):
        krippendorff_alpha([[-1, 2], [1, 2]], scale="ratio")


def test_units_that_are_drawn_together_tell_as_much_as_one() -> None:
    rng = np.random.default_rng(4)
    ratings = rng.integers(0, 3, (2, 30)).astype(float)
    many, groups = np.repeat(ratings, 5, axis=1), np.repeat(np.arange(30), 5)

    for scale in SCALES:
        alone = krippendorff_interval(ratings, Generator(PCG64(0)), scale=scale, trials=99)
        drawn: Any = krippendorff_interval(
            many, Generator(PCG64(0)), scale=scale, groups=groups, trials=99
        )
        free: Any = krippendorff_interval(many, Generator(PCG64(0)), scale=scale, trials=99)
        assert alone is not None
        assert free[1] - free[0] < 0.7 * (drawn[1] - drawn[0])
    (a, b), (many_a, many_b) = ratings.tolist(), many.tolist()
    one = cohen_interval(a, b, Generator(PCG64(0)), trials=99)
    assert one is not None
    assert one == pytest.approx(
        cohen_interval(many_a, many_b, Generator(PCG64(0)), groups=groups, trials=99)
    )


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=30))
def test_the_interval_of_kappa_lies_in_its_range(pairs: list[tuple[int, int]]) -> None:
    first, second = (list(column) for column in zip(*pairs, strict=True))
    found = cohen_interval(first, second, Generator(PCG64(0)), weights="linear", trials=50)

    assert found is None or -1 <= found[0] < found[1] <= 1


def test_without_a_second_group_or_another_value_kappa_has_no_interval() -> None:
    for first, second, groups in (
        ([], [], None),
        ([1], [0], None),
        ([0, 1, 1], [0, 1, 0], [7, 7, 7]),
        ([1, 1], [1, 1], None),
    ):
        assert cohen_interval(first, second, Generator(PCG64(0)), groups=groups) is None
