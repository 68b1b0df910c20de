"""Every pair in both halves of every split, against scipy and against one test at a time."""

from fractions import Fraction
from itertools import combinations
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from heldout.stats import all_pairs
from heldout.stats.all_pairs import (
    HalfTests,
    PairedTest,
    compare_pairs,
    find_medians,
    split_scores,
    tile_pairs,
)
from heldout.stats.exact import differences
from heldout.stats.rank_tests import rank_differences
from heldout.stats.results import AskedTest
from heldout.stats.tests import run_test

CLOSE = 1e-11
Floats = NDArray[np.float64]


def draw_halves(random: np.random.Generator, queries: int, splits: int) -> NDArray[np.bool_]:
    first = np.zeros((splits, queries), np.bool_)
    for row in first:
        row[random.permutation(queries)[: queries // 2]] = True
    return first


def reciprocal_ranks(
    random: np.random.Generator, systems: int, queries: int, depth: int = 20
) -> Floats:
    """Ranks of systems that agree on what is hard; some queries are not answered."""
    ease = random.normal(size=queries)
    ranks = np.exp(1.5 - 2 * (0.8 * ease + 0.6 * random.normal(size=(systems, queries))))
    ranks = np.floor(np.minimum(ranks, 10 * depth)) + 1
    return np.where(ranks <= depth, 1 / ranks, 0.0)


def whole_numbers(values: Floats) -> NDArray[np.int64]:
    """Reciprocal ranks to 20, times what makes all of them whole: their ties are exact."""
    common = int(np.lcm.reduce(np.arange(1, 21)))
    return np.array(
        [[int(Fraction(v).limit_denominator(20) * common) for v in row] for row in values]
    )


def one_p(name: str, x: Floats, y: Floats) -> float | None:
    """The p of one test; that of signed-rank by its normal approximation, however few there are."""
    if name != "signed-rank":
        return run_test(name, x, y).p
    ask = AskedTest(alternative="two-sided", level=0.95)
    return rank_differences(differences(x, y), ask, exact_at_most=0).p


def compare_all(
    values: Floats, first: NDArray[np.bool_]
) -> dict[tuple[int, int], tuple[HalfTests, int]]:
    halves = split_scores(values, first)
    found: dict[tuple[int, int], tuple[HalfTests, int]] = {}
    for a, b in tile_pairs(len(values), size=3):
        tests = compare_pairs(halves, a, b)
        found |= {
            (int(i), int(j)): (tests, place) for place, (i, j) in enumerate(zip(a, b, strict=True))
        }
    return found


@pytest.mark.parametrize("queries", [40, 41, 240])
@pytest.mark.parametrize("kind", ["few values", "many values", "tied"])
def test_every_p_is_that_of_one_test_at_a_time(queries: int, kind: str) -> None:
    random = np.random.default_rng(queries)
    values = reciprocal_ranks(random, 4, queries)
    if kind == "tied":
        values = np.float64(np.pi) * random.integers(0, queries // 3, values.shape).astype(
            np.float64
        )
    if kind == "many values":
        values = np.where(values > 0, values + 0.01 * random.random(values.shape), 0)
    first = draw_halves(random, queries, 3)
    for (a, b), (tests, place) in compare_all(values, first).items():
        for split, inside in enumerate(first):
            for half, members in enumerate((inside, ~inside)):
                x, y = values[a, members], values[b, members]
                for name in get_args(PairedTest):
                    found = tests.p[name][half, place, split]
                    assert found == pytest.approx(one_p(name, x, y), rel=0, abs=CLOSE), name
                mean = np.round(np.mean(y - x), 12)
                assert tests.means[half, place, split] == pytest.approx(mean, abs=2e-12)


@pytest.mark.parametrize("queries", [90, 901])
def test_numba_and_numpy_give_the_same_bytes(queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    random = np.random.default_rng(3)
    values = reciprocal_ranks(random, 5, queries)
    tied = np.pi * random.integers(0, queries // 3, values.shape)
    drawn = np.sqrt(values + 0.1 * random.random(values.shape))
    for some in (values, drawn, tied):
        scores = some.astype(np.float64)
        first = draw_halves(random, queries, 5)
        fast = compare_all(scores, first)
        with monkeypatch.context() as patched:
            patched.setattr(all_pairs, "load_compiled", lambda: None)
            plain = compare_all(scores, first)
        for pair, (tests, place) in fast.items():
            for name in get_args(PairedTest):
                ours, theirs = tests.p[name][:, place], plain[pair][0].p[name][:, plain[pair][1]]
                assert ours.tobytes() == theirs.tobytes()


tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 5), st.integers(4, 14)),
    elements=st.sampled_from([0.0, 0.1, 0.2, 0.25, 1 / 3, 0.5, 1.0]),
)


@given(tables, st.integers(0, 2**32 - 1))
def test_p_is_a_probability_or_undefined_just_where_one_test_is(values: Floats, seed: int) -> None:
    first = draw_halves(np.random.default_rng(seed), values.shape[1], 2)
    for (a, b), (tests, place) in compare_all(values, first).items():
        for split, inside in enumerate(first):
            for half, members in enumerate((inside, ~inside)):
                x, y = values[a, members], values[b, members]
                for name in get_args(PairedTest):
                    p = tests.p[name][half, place, split]
                    assert np.isnan(p) == (one_p(name, x, y) is None), name
                    assert np.isnan(p) or 0 < p <= 1


def test_a_constant_difference_has_no_t_and_a_nearly_constant_one_an_exact_t() -> None:
    random = np.random.default_rng(5)
    base = random.random(40)
    values = np.stack((base, base + 0.25, base + 0.25 + 1e-7 * random.random(40)))
    first = draw_halves(random, 40, 4)
    found = compare_all(values, first)
    tests, place = found[0, 1]
    assert np.isnan(tests.p["t"][:, place]).all()
    tests, place = found[0, 2]
    for split, inside in enumerate(first):
        expected = run_test("t", values[0, inside], values[2, inside]).p
        assert tests.p["t"][0, place, split] == pytest.approx(expected, rel=1e-3)


def test_one_query_that_differs_makes_a_half_undefined_and_no_noise() -> None:
    random = np.random.default_rng(6)
    values = np.repeat(random.choice([0.0, 0.5, 1.0], 30)[None], 2, axis=0)
    values[1, 7] += 1 / 3
    first = draw_halves(random, 30, 6)
    tests, place = compare_all(values, first)[0, 1]
    for name in ("sign", "signed-rank", "t"):
        defined = ~np.isnan(tests.p[name][:, place])
        np.testing.assert_array_equal(defined, np.stack((first[:, 7], ~first[:, 7])))
    np.testing.assert_array_equal(tests.means[:, place] == 0, np.stack((~first[:, 7], first[:, 7])))


@given(tables, st.integers(0, 2**32 - 1), st.booleans())
def test_medians_are_those_of_numpy(values: Floats, seed: int, many: bool) -> None:  # noqa: FBT001 - drawn
    random = np.random.default_rng(seed)
    scores = values + (1e-3 * random.random(values.shape) if many else 0)
    first = draw_halves(random, values.shape[1], 3)
    medians = find_medians(split_scores(scores, first))
    for half, sides in enumerate((first, ~first)):
        for split, members in enumerate(sides):
            expected = np.round(np.median(scores[:, members], axis=1), 12)
            np.testing.assert_array_equal(medians[half, :, split], expected)


@pytest.mark.parametrize("systems", [0, 1, 2, 11, 12, 13, 30])
def test_tiles_hold_every_pair_once(systems: int) -> None:
    pairs = [pair for a, b in tile_pairs(systems) for pair in zip(a, b, strict=True)]
    assert sorted(pairs) == list(combinations(range(systems), 2))


def test_a_half_needs_two_queries() -> None:
    with pytest.raises(ValueError, match="fewer than two"):
        split_scores(np.zeros((2, 4)), [[True, False, False, False]])
