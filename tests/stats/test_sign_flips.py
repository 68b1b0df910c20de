"""Sign flips of all pairs: against every flip, against a plain step-down, under the null."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats

from heldout.stats import sign_flips
from heldout.stats.exact import whole_numbers
from heldout.stats.resampling import block_size
from heldout.stats.sign_flips import flip_test, max_t

Scores = NDArray[np.float64]
RR = st.sampled_from([0.0, *(1 / rank for rank in range(1, 11))])
ANY = st.floats(0, 1, allow_subnormal=False)


def two(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return values[0], values[1]


def tables(cells: st.SearchStrategy[float], least: int = 1) -> st.SearchStrategy[Scores]:
    shape = st.tuples(st.integers(least, 5), st.integers(1, 12))
    return arrays(np.float64, shape, elements=cells)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def correlated(source: np.random.Generator, systems: int, queries: int) -> Scores:
    """Systems that are equally good on queries of different difficulty."""
    return np.asarray(source.normal(size=queries) + source.normal(size=(systems, queries)))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["reciprocal ranks", "many values"])
def test_p_is_near_that_of_every_flip(seed: int, kind: str) -> None:
    source = rng(seed)
    values = (
        1 / source.integers(1, 11, (3, 9)) if kind == "reciprocal ranks" else source.random((3, 9))
    )
    for a, b in combinations(range(3), 2):
        exact = stats.permutation_test(
            # A denominator in common: scipy's own tolerance then sees every tie.
            ((values[b] - values[a]) * (2520 if kind == "reciprocal ranks" else 1),),
            lambda d, axis: d.sum(axis=axis).round(9),
            permutation_type="samples",
            vectorized=True,
            n_resamples=np.inf,
        ).pvalue
        found = flip_test(values[a], values[b], rng(seed), flips=20_000)
        assert found == pytest.approx(exact, abs=4 * (0.25 / 20_000) ** 0.5)


def plain_step_down(values: Scores, signs: NDArray[np.int64]) -> Scores:
    """The definition, one hypothesis after the other, in whole numbers of 2520ths."""
    units = np.rint(values * 2520).astype(np.int64)
    n = len(units)
    ordered = [(a, b) for a in range(n) for b in range(n) if a != b]
    squares = {(a, b): int(((units[b] - units[a]) ** 2).sum()) for a, b in ordered}
    family = [pair for pair in ordered if squares[pair]]

    def t(pair: tuple[int, int], sign: NDArray[np.int64]) -> float:
        a, b = pair
        total = int(((units[b] - units[a]) * sign).sum())
        return float(round(total / math.sqrt(squares[pair]), 9))

    found = {pair: t(pair, np.ones_like(signs[0])) for pair in family}
    drawn = {pair: np.array([t(pair, sign) for sign in signs]) for pair in family}
    table, so_far = np.full((n, n), np.nan), 0.0
    left = sorted(family, key=lambda pair: -found[pair])
    while left:
        pair = left[0]
        most = np.max([drawn[other] for other in left], axis=0)
        so_far = max(so_far, (1 + int((most >= found[pair]).sum())) / (1 + len(signs)))
        a, b = pair
        if found[pair] > 0:
            table[a, b] = table[b, a] = so_far
        left = left[1:]
    return table


@given(tables(RR, least=2))
@example(np.array([[0.2, 0.2, 0, 0, 0], [1 / 9, 0, 0, 0, 0], [0] * 5, [1, 0, 1, 0, 0]], float))
def test_step_down_is_that_of_its_definition(values: Scores) -> None:
    flips = 40
    (child,) = rng().spawn(1)
    queries = values.shape[1]
    bits = np.unpackbits(np.frombuffer(child.bytes(-(-queries * flips // 8)), np.uint8))
    signs = 2 * bits[: queries * flips].reshape(queries, flips).T.astype(np.int64) - 1

    found, plain = max_t(values, rng(), flips=flips), plain_step_down(values, signs)

    better = np.isfinite(plain)
    np.testing.assert_allclose(found[better], plain[better])


def dense_max_t(values: Scores, *, flips: int, step_down: bool) -> Scores:
    """The same with the t of all pairs in all flips at once, in double precision."""
    whole = whole_numbers(values, summed=values.shape[1])
    wide, n = whole.values.astype(np.float64), len(values)
    first, second = np.triu_indices(n, 1)
    apart = np.stack([wide[b] - wide[a] for a, b in zip(first, second, strict=True)])
    apart[np.abs(apart) <= whole.nothing] = 0
    squares = (apart**2).sum(axis=1)
    family = np.flatnonzero(squares)
    table = np.full((n, n), np.nan)
    if not len(family):
        return table
    size = block_size(len(family))
    counts = [min(size, flips - start) for start in range(0, flips, size)]
    signs = []
    for child, count in zip(rng().spawn(len(counts)), counts, strict=True):
        parts = []
        for start in range(0, values.shape[1], 512):
            queries = min(512, values.shape[1] - start)
            bits = np.unpackbits(np.frombuffer(child.bytes(-(-queries * count // 8)), np.uint8))
            parts.append(bits[: queries * count].reshape(queries, count))
        signs.append(np.concatenate(parts))
    kept = wide @ np.concatenate(signs, axis=1)
    sums = wide.sum(axis=1)
    flipped = 2 * kept - sums[:, np.newaxis]

    up = sums[second] >= sums[first]
    better, worse = np.where(up, second, first)[family], np.where(up, first, second)[family]
    scale = 1 / np.sqrt(squares[family])
    found = (sums[better] - sums[worse]) * scale
    rising = np.argsort(found, kind="stable")
    t = ((flipped[better] - flipped[worse]) * scale[:, np.newaxis])[rising]
    slack = 0 if whole.exact else values.shape[1]
    least = (found * (1 - 1e-12) - slack * scale)[rising]
    largest = np.maximum.accumulate(t, axis=0) if step_down else t.max(axis=0)
    hits = (np.maximum(largest, -t.min(axis=0)) >= least[:, np.newaxis]).sum(axis=1)
    p = np.maximum.accumulate(((1 + hits) / (1 + flips))[::-1])[::-1]
    table[better[rising], worse[rising]] = table[worse[rising], better[rising]] = p
    return table


def rare(values: Scores) -> NDArray[np.bool_]:
    return rng(8).random(values.shape) < 0.05


# Scores of some kind, from scores between 0 and 1.
KINDS: dict[str, Callable[[Scores], Scores]] = {
    "many values": lambda values: values,
    "reciprocal ranks": lambda values: 1 / np.ceil(10 * values),
    "0 and 1": lambda values: (values > 0.6).astype(np.float64),
    "nearly alike": lambda values: (
        values[np.arange(len(values)) % 5] + 1e-6 * values * rare(values)
    ),
    "few differences": lambda values: np.where(rare(values), values, values[0]),
    "one differs": lambda values: np.where(
        np.arange(len(values))[:, np.newaxis] == 1, values, values[0]
    ),
    "rounding": lambda values: 0.5 + 1e-13 * values,
}


@pytest.mark.parametrize("step_down", [True, pytest.param(False, marks=pytest.mark.night)])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_that_are_passed_over_change_no_bit(kind: str, *, step_down: bool) -> None:
    """More systems than a tile has, more queries than are multiplied at once, several groups."""
    source = rng(7)
    for systems, queries, flips in ((150, 30, 100), (30, 600, 700), (2, 5, 30)):
        values = KINDS[kind](1 / (1 + np.exp(-correlated(source, systems, queries))))
        expected = dense_max_t(values, flips=flips, step_down=step_down).tobytes()
        found = max_t(values, rng(), flips=flips, step_down=step_down)
        assert found.tobytes() == expected


@given(tables(RR | ANY))
def test_corrected_p_is_larger_than_plain_and_smaller_with_steps(values: Scores) -> None:
    stepped = max_t(values, rng(), flips=50)
    single = max_t(values, rng(), flips=50, step_down=False)

    tested = np.isfinite(single)
    assert (tested == np.isfinite(stepped)).all()
    assert (stepped[tested] <= single[tested]).all()
    for p in (stepped, single):
        assert ((p[tested] >= 1 / 51) & (p[tested] <= 1)).all()


@given(tables(RR | ANY))
def test_equal_systems_have_no_p_and_p_is_symmetric(values: Scores) -> None:
    p = max_t(values, rng(), flips=30)
    assert np.isnan(np.diag(p)).all()
    np.testing.assert_array_equal(p, p.T)
    for a, b in combinations(range(len(values)), 2):
        if (values[a] == values[b]).all():
            assert np.isnan(p[a, b])
            assert flip_test(values[a], values[b], rng(), flips=30) is None


@given(tables(RR | ANY), st.randoms(use_true_random=False))
def test_the_order_of_systems_changes_nothing(values: Scores, random: object) -> None:
    order = list(range(len(values)))
    random.shuffle(order)  # type: ignore[attr-defined] # hypothesis gives a random.Random

    found = max_t(values, rng(), flips=40)
    shuffled = max_t(values[order], rng(), flips=40)
    np.testing.assert_array_equal(shuffled, found[np.ix_(order, order)])


def test_a_constant_difference_is_tested_and_a_single_query_says_nothing() -> None:
    many = np.array([np.zeros(20), np.full(20, 0.25)])
    assert flip_test(many[0], many[1], rng(), flips=999) == 1 / 1000
    one = np.array([[0.0], [1.0]])
    assert flip_test(one[0], one[1], rng(), flips=999) == 1
    # a direction of one query's sign: half of the flips have it
    assert max_t(one, rng(), flips=999, step_down=True)[0, 1] > 0.4


def test_differences_below_rounding_spoil_no_other_pair() -> None:
    values = rng(3).random((3, 40))
    values[1] = values[0] + 1e-15 * rng(4).random(40)
    values[2] = values[0] + 0.5

    found = max_t(values, rng(), flips=999)

    assert found[0, 2] == found[1, 2] == 1 / 1000


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_the_same_seed_gives_the_same_flips_whoever_works(lanes: int) -> None:
    values = rng(2).random((8, 600))
    here = max_t(values, rng(), flips=2000).tobytes()
    with ThreadPoolExecutor(lanes) as executor:
        assert max_t(values, rng(), flips=2000, executor=executor).tobytes() == here


def test_p_is_uniform_where_systems_are_equal() -> None:
    source = rng(11)
    p = [flip_test(*two(correlated(source, 2, 30)), source, flips=199) for _ in range(1000)]

    # p takes 200 values; a discrete uniform is at most 1/200 away from the continuous one
    assert stats.kstest(p, "uniform").statistic < 1.63 / 1000**0.5 + 1 / 200
    for alpha in (0.01, 0.05, 0.1):
        error = (alpha * (1 - alpha) / 1000) ** 0.5
        assert abs(np.mean(np.array(p) <= alpha) - alpha) < 3 * error


def false_words(source: np.random.Generator, shifts: Scores, *, step_down: bool) -> float:
    """Share of samples in which some pair is called in a direction that is not true."""
    wrong = 0
    for _ in range(400):
        values = correlated(source, len(shifts), 40) + shifts[:, np.newaxis]
        p = max_t(values, source, flips=199, step_down=step_down)
        means = values.mean(axis=1)
        called = (p <= 0.05) & (means[:, np.newaxis] > means)  # row over column
        wrong += bool((called & ~(shifts[:, np.newaxis] > shifts)).any())
    return wrong / 400


@pytest.mark.parametrize("step_down", [False, True])
@pytest.mark.parametrize(
    "shifts",
    [
        pytest.param(np.zeros(8), marks=pytest.mark.night),
        np.array([0, 0, 0, 0, 0, 3.0, 3.0, 6.0]),
        pytest.param(np.arange(8) * 0.01, marks=pytest.mark.night),
    ],
    ids=["all equal", "some far better", "all close"],
)
def test_family_wise_error_is_held(shifts: Scores, *, step_down: bool) -> None:
    # three standard errors of a share of 0.05 in 400
    assert false_words(rng(5), shifts, step_down=step_down) <= 0.05 + 3 * 0.0109


def test_steps_find_more_where_some_are_far_apart() -> None:
    source = rng(9)
    shifts = np.array([0, 0.45, 3, 3.45, 6, 6.45])[:, np.newaxis]
    single, stepped = 0, 0
    for _ in range(60):
        values = correlated(source, 6, 40) + shifts
        single += int((max_t(values, rng(), flips=499, step_down=False) <= 0.05).sum())
        stepped += int((max_t(values, rng(), flips=499) <= 0.05).sum())

    assert stepped > single


@pytest.mark.parametrize("noise", [1e-13, 1e-14, 1e-16])
def test_rounding_is_no_difference(noise: float) -> None:
    rng = np.random.default_rng(0)
    shifts = np.array([[0.0], [1.0], [-1.0]])
    values = 0.5 + noise * (shifts + 0.1 * rng.random((3, 60)))

    assert np.isnan(max_t(values, rng, flips=99)).all()
    assert flip_test(values[0], values[1], rng, flips=99) is None


def test_a_difference_among_rounding_is_tested() -> None:
    values = 1 / 3 + 1e-14 * np.random.default_rng(0).random((2, 40))
    values[1] += 1e-6

    assert max_t(values, np.random.default_rng(1), flips=99)[0, 1] == 1 / 100


def test_numba_marks_the_pairs_that_numpy_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    values = np.random.default_rng(5).normal(size=(300, 60))
    fast = max_t(values, np.random.default_rng(1), flips=200)
    monkeypatch.setattr(sign_flips, "load_compiled", lambda: None)
    assert max_t(values, np.random.default_rng(1), flips=200).tobytes() == fast.tobytes()
