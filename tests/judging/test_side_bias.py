"""Side and length bias: planted effects are found, and sides have to be known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import binomtest

from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.judging.studies.judges import SPREAD, SimulatedJudge, measure_bias, text_lengths
from heldout.stats.regression import Choices, _cost, _derivatives, fit_effects


def judge_all(
    rng: np.random.Generator, *, left: float, length: float, queries: int, votes: int = 1
) -> tuple[list[Judgment], dict[tuple[str, str], int]]:
    """Every pair of four passages of each query, by judges with habits."""
    found: list[Judgment] = []
    lengths: dict[tuple[str, str], int] = {}
    for query in range(queries):
        names = [f"{query}-{n}" for n in range(4)]
        logs = rng.normal(6, 0.5, 4)
        own = {(str(query), doc): round(np.exp(one)) for doc, one in zip(names, logs, strict=True)}
        strengths = {
            place: float(rng.normal(0, SPREAD) + length * np.log(chars))
            for place, chars in own.items()
        }
        lengths |= own
        judge = SimulatedJudge(strengths=strengths, rng=rng, left=left)
        for a in range(4):
            for b in range(a):
                for _ in range(votes):
                    one, other = rng.permutation([names[a], names[b]]).tolist()
                    found.append(
                        Judgment(
                            query=str(query),
                            left=one,
                            right=other,
                            preferred=judge.choose(str(query), one, other),
                            worker=f"w{rng.integers(30)}",
                            task="t",
                            position=len(found) + 1,
                        )
                    )
    return found, lengths


@pytest.mark.slow
@pytest.mark.parametrize(
    ("left", "length"), [pytest.param(0.0, 0.0, marks=pytest.mark.night), (0.4, 0.6)]
)
def test_intervals_hold_planted_effects(left: float, length: float) -> None:
    held, trials, values = np.zeros(2), 40, []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        judged, lengths = judge_all(rng, left=left, length=length, queries=40)
        found = measure_bias(judged, lengths=lengths)
        for place, (effect, truth) in enumerate(((found.position, left), (found.length, length))):
            assert effect.low is not None
            assert effect.high is not None
            held[place] += effect.low <= truth <= effect.high
        values.append([found.position.value, found.length.value])
    assert (held >= 0.87 * trials).all()
    np.testing.assert_allclose(np.mean(np.array(values, float), axis=0), [left, length], atol=0.1)


def test_the_exact_test_of_sides_is_a_binomial_one() -> None:
    rng = np.random.default_rng(1)
    judged, _ = judge_all(rng, left=0.5, length=0, queries=30)
    found = measure_bias(judged)
    oracle = binomtest(found.left, found.judgments)
    assert found.p == pytest.approx(oracle.pvalue)
    interval = oracle.proportion_ci(0.95, "exact")
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.length.value is None
    assert found.length.why == "no judged pair has both its texts"


def test_four_columns_do_not_say_what_stood_left() -> None:
    columns = [Judgment(query="q", left="a", right="b", preferred="a")] * 9
    found = measure_bias(columns)
    assert (found.judgments, found.unknown, found.p, found.share) == (0, 9, None, None)
    assert found.position.value is None
    assert found.position.why == "no judgment has known sides"


def shown(
    left: str, right: str, preferred: str, *, query: str = "q", worker: str = "w"
) -> Judgment:
    return Judgment(
        query=query,
        left=left,
        right=right,
        preferred=preferred,
        worker=worker,
        task="t",
        shown_at="2026-01-01T00:00:00.000Z",
    )


def test_a_judge_who_always_takes_the_left_one_has_no_finite_effect() -> None:
    found = measure_bias([shown(f"a{n}", "b", f"a{n}") for n in range(20)])
    assert found.share == 1
    assert found.p is not None
    assert found.p < 1e-4
    assert found.position.value is None
    assert found.position.why is not None


def test_one_query_and_one_worker_have_no_interval() -> None:
    found = measure_bias([shown("a", "b", "a"), shown("b", "a", "a"), shown("a", "c", "c")])
    assert found.position.value is not None
    assert found.position.low is None


def test_passages_of_one_length_say_nothing_of_length() -> None:
    judged = [shown("a", "b", "a"), shown("b", "a", "a", query="r")]
    lengths = dict.fromkeys((("q", "a"), ("q", "b"), ("r", "a"), ("r", "b")), 5)
    assert measure_bias(judged, lengths=lengths).length.value is None


def test_lengths_are_of_normalised_texts_and_known_by_every_id() -> None:
    pools = [
        Pool(
            query="q",
            candidates=(
                Candidate(doc="a", text=" Aye   aye ", same=("z",)),
                Candidate(doc="b"),
            ),
        )
    ]
    assert text_lengths(pools) == {("q", "a"): 7, ("q", "z"): 7}


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_slopes_and_curves_are_what_small_steps_say(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 30))
    choices = Choices(
        columns=np.column_stack([np.ones(count), rng.normal(size=count)]),
        pair=rng.integers(0, 6, count),
        turned=rng.random(count) < 0.5,
        chose_left=rng.random(count) < 0.5,
    )
    at = rng.normal(size=2)
    _, slope = _cost(at, choices, 0.8)
    np.testing.assert_allclose(
        slope, approx_fprime(at, lambda x: _cost(x, choices, 0.8)[0], 1e-6), atol=1e-4
    )
    said, curve = _derivatives(at, choices, 0.8)
    np.testing.assert_allclose(-said.sum(axis=0) / count, slope, atol=1e-9)
    for column in range(2):
        step = np.zeros(2)
        step[column] = 1e-5
        ahead, behind = (_cost(at + side * step, choices, 0.8)[1] for side in (1, -1))
        np.testing.assert_allclose(curve[column] / count, (ahead - behind) / 2e-5, atol=1e-4)


def test_effects_that_cannot_be_told_apart_are_none() -> None:
    both = Choices(
        columns=np.ones((6, 2)),
        pair=np.arange(6),
        turned=np.zeros(6, bool),
        chose_left=np.arange(6) < 3,
    )
    assert fit_effects(both, [np.arange(6)]) is None
