"""Released scores are what printf prints, and the Ladders tell no more than they should."""

import math
import statistics
import subprocess
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from itertools import pairwise
from random import Random

import msgspec
import numpy as np
import pytest
from boardlog import BoardLog, make_manifest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from heldout.board.rules.release import (
    JITTER,
    Released,
    ReleaseRule,
    RuleName,
    Told,
    best_released,
    check_rule,
    draw_jitter,
    not_above,
    release,
    release_score,
    score_vector,
)

ROUNDED = ReleaseRule()
LADDER = ReleaseRule(rule="ladder", z=1.0)
STEP = ReleaseRule(rule="step", step=0.05)


@settings(deadline=None, max_examples=50)
@given(st.floats(0, 1) | st.floats(0, 1000), st.integers(1, 6))
def test_the_exact_binary_value_is_rounded(score: float, decimals: int) -> None:
    step = Decimal(1).scaleb(-decimals)
    expected = Decimal(score).quantize(step, rounding=ROUND_HALF_EVEN)
    assert Decimal(release_score(score, decimals=decimals)) == expected


@pytest.mark.parametrize(
    ("score", "decimals", "text"),
    [
        (0.0625, 3, "0.062"),  # an exact half goes to the even digit
        (0.1875, 3, "0.188"),
        (0.4025, 3, "0.403"),  # the float lies above the half
        (0.4065, 3, "0.406"),  # and here below
        (1.0, 3, "1.000"),
        (0.0, 4, "0.0000"),
        (0.9999, 3, "1.000"),
        (1e-9, 3, "0.000"),
        (0.5, 1, "0.5"),
    ],
)
def test_known_roundings(score: float, decimals: int, text: str) -> None:
    assert release_score(score, decimals=decimals) == text


def test_as_the_program_prints_it(program: Callable[[str], str]) -> None:
    scores = [n / 997 for n in range(997)] + [(2 * n + 1) / 2000 for n in range(1000)]
    # printf reads decimals into a wider float than ours: 17 digits bring the same double, and the
    # exact halves above it are covered by Decimal
    exact = [format(Decimal(score), "f") for score in scores]
    command = [program("printf"), "%.3f\n" * len(exact), *exact]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert printed.split() == [release_score(score, decimals=3) for score in scores]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_what_is_no_score_is_not_released(score: float) -> None:
    with pytest.raises(ValueError, match=r"nan|inf"):
        release_score(score, decimals=3)


def test_numpy_floats_are_floats() -> None:
    assert release_score(np.float64(0.4025), decimals=3) == "0.403"


def reciprocal_ranks(queries: int) -> st.SearchStrategy[list[float]]:
    one = st.sampled_from([0.0, *(1 / rank for rank in range(1, 11))])
    return st.lists(one, min_size=queries, max_size=queries)


@st.composite
def sequences(draw: st.DrawFn) -> list[list[float]]:
    """Several submissions' scores on the same queries."""
    queries = draw(st.integers(1, 12))
    return draw(st.lists(reciprocal_ranks(queries), min_size=1, max_size=8))


ladders = st.sampled_from(
    [
        LADDER,
        STEP,
        ReleaseRule(rule="ladder"),
        ReleaseRule(rule="ladder", z=0.0),
        ReleaseRule(rule="step", step=0.5),
        ReleaseRule(rule="step", step=0.01),
    ]
)


def play(runs: Iterable[ArrayLike], rule: ReleaseRule, *, decimals: int = 3) -> list[Released]:
    """What a team is told of its submissions, one after the other."""
    told: Told | None = None
    answers = []
    for values in runs:
        answers.append(release(values, told, rule, decimals=decimals))
        told = answers[-1].told
    return answers


def raised(scores: ArrayLike, rule: ReleaseRule, before: ArrayLike) -> str | None:
    return release(scores, release(before, None, rule, decimals=3).told, rule, decimals=3).text


@given(sequences(), st.integers(1, 6))
def test_rounded_always_tells(runs: list[list[float]], decimals: int) -> None:
    for values, answer in zip(runs, play(runs, ROUNDED, decimals=decimals), strict=True):
        mean = math.fsum(values) / len(values)
        assert answer.text == release_score(mean, decimals=decimals) == answer.told.text


@given(sequences(), ladders, st.integers(2, 6))
def test_what_a_team_is_told_rises_strictly(
    runs: list[list[float]], rule: ReleaseRule, decimals: int
) -> None:
    texts = [a.text for a in play(runs, rule, decimals=decimals) if a.text is not None]
    numbers = [Decimal(text) for text in texts]
    assert numbers
    assert all(low < high for low, high in pairwise(numbers))


@given(sequences(), ladders)
def test_a_score_that_is_not_told_changes_nothing(
    runs: list[list[float]], rule: ReleaseRule
) -> None:
    answers = play(runs, rule)
    for before, after in pairwise(answers):
        if after.text is None:
            assert after.told is before.told
        else:
            assert after.told.text == after.text


@given(sequences(), ladders)
def test_the_same_run_again_is_never_told_again(runs: list[list[float]], rule: ReleaseRule) -> None:
    for values, answer in zip(runs, play(runs, rule), strict=True):
        assert release(values, answer.told, rule, decimals=3).text is None


@given(sequences(), ladders, st.randoms(use_true_random=False))
def test_the_order_of_queries_means_nothing(
    runs: list[list[float]], rule: ReleaseRule, random: Random
) -> None:
    order = list(range(len(runs[0])))
    random.shuffle(order)
    moved = [[values[place] for place in order] for values in runs]
    assert [a.text for a in play(moved, rule)] == [a.text for a in play(runs, rule)]


@given(sequences(), st.one_of(st.just(ROUNDED), ladders), st.integers(2, 6))
def test_no_text_has_more_digits_than_the_board_shows(
    runs: list[list[float]], rule: ReleaseRule, decimals: int
) -> None:
    for answer in play(runs, rule, decimals=decimals):
        assert len(answer.told.text.partition(".")[2]) == decimals


@given(sequences(), st.sampled_from([2, 4, 5, 8, 20, 40, 100, 125, 500, 1000]))
def test_a_fixed_step_tells_multiples_and_asks_for_more_than_one(
    runs: list[list[float]], steps: int
) -> None:
    rule = ReleaseRule(rule="step", step=1 / steps)
    best = Fraction(-1)
    for values, answer in zip(runs, play(runs, rule), strict=True):
        mean = Fraction(math.fsum(values) / len(values))
        assert (answer.text is not None) == (mean > best + Fraction(1, steps))
        best = Fraction(answer.told.text)
        assert (best * steps).denominator == 1
        if answer.text is not None:
            assert abs(best - mean) <= Fraction(1, 2 * steps)


@given(reciprocal_ranks(30), reciprocal_ranks(30), st.floats(0, 5))
def test_the_ladder_is_the_paired_z_test(first: list[float], second: list[float], z: float) -> None:
    rise = [b - a for a, b in zip(first, second, strict=True)]
    bar = z * statistics.stdev(rise) / math.sqrt(30)
    if abs(statistics.fmean(rise) - bar) < 1e-9:
        return
    shown = [release_score(math.fsum(v) / 30, decimals=3) for v in (first, second)]
    expected = statistics.fmean(rise) > bar and float(shown[1]) > float(shown[0])
    told = raised(second, ReleaseRule(rule="ladder", z=z), first)
    assert told == (shown[1] if expected else None)


def test_the_threshold_follows_from_the_declared_number() -> None:
    normal = statistics.NormalDist()
    for submissions in (1, 20, 300, 1_000_000):
        threshold = ReleaseRule(submissions=submissions).threshold
        assert threshold == pytest.approx(normal.inv_cdf(1 - 0.05 / submissions), abs=1e-6)
    assert round(ReleaseRule().threshold, 2) == 3.59
    shown = [k for k in range(250, 350) if round(ReleaseRule(submissions=k).threshold, 2) == 3.59]
    assert (shown[0], shown[-1]) == (297, 308)
    assert ReleaseRule(z=1.5).threshold == 1.5


def test_the_threshold_holds_over_all_views_that_are_published() -> None:
    normal = statistics.NormalDist()
    for views in (0, 1, 2, 6):
        threshold = ReleaseRule(submissions=300).over(views).threshold
        chances = 300 * max(views, 1)
        assert threshold == pytest.approx(normal.inv_cdf(1 - 0.05 / chances), abs=1e-6)
    assert ReleaseRule(z=1.5).over(6) == ReleaseRule(z=1.5)


@pytest.mark.parametrize("queries", [3, 4, 11, 37, 1000])
def test_a_flip_of_one_query_is_one_standard_error_and_not_above_one(queries: int) -> None:
    before = np.linspace(0, 0.1, queries)
    for query in range(queries):
        flipped = before.copy()
        flipped[query] += 0.9
        assert raised(flipped, ReleaseRule(rule="ladder", z=1.0), before) is None
        assert raised(flipped, ReleaseRule(rule="ladder", z=0.999), before) is not None


@pytest.mark.parametrize(("queries", "told"), [(12, None), (13, "0.013")])
def test_at_300_submissions_thirteen_queries_have_to_gain_alike(
    queries: int, told: str | None
) -> None:
    better = np.zeros(1000)
    better[:queries] = 1.0
    assert raised(better, ReleaseRule(rule="ladder"), np.zeros(1000)) == told


def test_one_query_never_shows_a_rise() -> None:
    assert raised([1.0], ReleaseRule(rule="ladder", z=0.0), [0.0]) is None
    assert raised([1.0], STEP, [0.0]) == "1.000"


def test_a_rise_by_the_same_everywhere_has_no_standard_error_and_is_told() -> None:
    assert raised([0.75, 0.5, 1.0], ReleaseRule(rule="ladder", z=10.0), [0.5, 0.25, 0.75]) == (
        "0.750"
    )


def test_a_rise_below_the_shown_digits_is_not_told() -> None:
    low, high = np.full(10_000, 0.5), np.full(10_000, 0.5)
    high[:8] += 0.5
    assert raised(high, ReleaseRule(rule="ladder", z=1.0), low) is None
    high[:20] += 0.5
    assert raised(high, ReleaseRule(rule="ladder", z=1.0), low) == "0.501"


def test_a_tie_with_the_fixed_step_is_not_above_it() -> None:
    rule = ReleaseRule(rule="step", step=0.25)
    assert raised([0.5, 0.5], rule, [0.25, 0.25]) is None
    assert raised([0.5, 0.5625], rule, [0.25, 0.25]) == "0.500"
    assert raised([0.625, 0.625], rule, [0.25, 0.25]) == "0.500"  # a half goes to the even multiple


def test_probing_single_queries_by_hill_climbing_gets_no_number() -> None:
    """Each probe raises one query from 0 to 1: every bit of it is one standard error."""
    labels = np.zeros(1000)
    told = release(labels, None, ReleaseRule(rule="ladder"), decimals=3).told
    for query in range(200):
        probe = labels.copy()
        probe[query] = 1.0
        assert release(probe, told, ReleaseRule(rule="ladder"), decimals=3).text is None
        assert release(probe, told, ROUNDED, decimals=3).text == "0.001"


def test_what_was_told_cannot_be_changed_from_outside() -> None:
    values = np.array([0.5, 0.25])
    told = release(values, None, LADDER, decimals=3).told
    values[:] = 0
    assert told.values.tolist() == [0.5, 0.25]
    with pytest.raises(ValueError, match="read-only"):
        told.values[0] = 1.0


@pytest.mark.parametrize("values", [[], [math.nan], [0.5, math.inf], [[0.5], [0.5]], 0.5])
def test_what_is_no_row_of_scores_is_refused(values: ArrayLike) -> None:
    with pytest.raises(ValueError, match="finite numbers"):
        release(values, None, ROUNDED, decimals=3)


def test_scores_on_other_queries_are_not_compared() -> None:
    told = release([0.5, 0.25], None, LADDER, decimals=3).told
    with pytest.raises(ValueError, match="3 queries now, 2 before"):
        release([0.5, 0.25, 1.0], told, LADDER, decimals=3)


def test_the_jitter_is_half_a_standard_error_in_the_mean_and_varies_as_much() -> None:
    """As the exponential distribution has it: mean and standard deviation are the same."""
    scores, baseline = [0.1, 0.4, 0.4, 0.9], [0.1, 0.2, 0.3, 0.4]
    scale = JITTER * statistics.stdev([0.0, 0.2, 0.1, 0.5]) / math.sqrt(4)
    keys = [number.to_bytes(32) for number in range(4000)]
    draws = [draw_jitter(key, "eval", scores, baseline) / scale for key in keys]
    assert statistics.fmean(draws) == pytest.approx(1, abs=0.06)
    assert statistics.stdev(draws) == pytest.approx(1, abs=0.1)


def test_undefined_queries_are_left_out_and_those_that_do_not_count_score_zero() -> None:
    scores = {"q2": 1.0, "q10": 0.5, "q1": None}
    assert score_vector(scores, n=2).tolist() == [0.5, 1.0]
    assert score_vector(scores, n=4).tolist() == [0.5, 1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="1"):
        score_vector(scores, n=1)


def test_not_above_names_the_text_that_was_told() -> None:
    assert not_above("0.412") == "not above 0.412"


def test_the_rule_is_read_from_toml_values() -> None:
    table = {"rule": "step", "step": 0.02, "submissions": 50}
    assert msgspec.convert(table, ReleaseRule) == ReleaseRule(
        rule="step", step=0.02, submissions=50
    )
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"rules": "ladder"}, ReleaseRule)
    with pytest.raises(msgspec.ValidationError, match="enum"):
        msgspec.convert({"rule": "thresholdout"}, ReleaseRule)


def mistakes(rule: ReleaseRule, decimals: int = 3) -> list[str]:
    return [key for key, *_ in check_rule(rule, decimals=decimals)]


@pytest.mark.parametrize("rule", ["rounded", "ladder", "step"])
def test_the_defaults_are_right(rule: RuleName) -> None:
    assert not mistakes(ReleaseRule(rule=rule))


@pytest.mark.parametrize("submissions", [0, -1, 1_000_001])
def test_an_absurd_number_of_submissions_is_told(submissions: int) -> None:
    assert mistakes(ReleaseRule(submissions=submissions)) == ["release.submissions"]


@pytest.mark.parametrize("z", [-0.1, 10.1, math.nan, math.inf])
def test_an_absurd_threshold_is_told(z: float) -> None:
    assert mistakes(ReleaseRule(z=z)) == ["release.z"]


@pytest.mark.parametrize("step", [0.0, -0.01, 0.51, math.nan, math.inf])
@pytest.mark.parametrize("rule", ["rounded", "step"])
def test_an_absurd_step_is_told(step: float, rule: RuleName) -> None:
    assert mistakes(ReleaseRule(rule=rule, step=step)) == ["release.step"]


@pytest.mark.parametrize("step", [0.03, 0.3, 0.4, 0.0125, 1 / 3, 5e-324, 1e-7])
def test_a_step_that_the_digits_cannot_show_is_told(step: float) -> None:
    assert mistakes(ReleaseRule(rule="step", step=step)) == ["release.step"]
    assert not mistakes(ReleaseRule(rule="ladder", step=step))


@pytest.mark.parametrize("decimals", [-5, 0, 7, 10**9])
def test_wrong_decimals_are_not_told_as_a_wrong_step(decimals: int) -> None:
    assert not mistakes(STEP, decimals)


@given(st.integers(1, 6), st.integers(0, 6), st.integers(0, 6))
def test_every_step_that_is_let_through_is_shown_exactly(
    decimals: int, twos: int, fives: int
) -> None:
    steps = 2 ** (twos + 1) * 5**fives
    rule = ReleaseRule(rule="step", step=1 / steps)
    assert bool(mistakes(rule, decimals)) == bool(10**decimals % steps)
    if not mistakes(rule, decimals):
        some = range(0, steps + 1, 1 + steps // 100)
        shown = [Fraction(release_score(k / steps, decimals=decimals)) for k in some]
        assert shown == [Fraction(k, steps) for k in some]


def test_a_new_name_does_not_begin_a_new_ladder() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest("Lighthouse"), "0.400")
    log.wait(days=1).submit("20261102-b", make_manifest("Lighthouse"), "0.412")
    log.wait(days=1).submit("20261103-c", make_manifest("Harbour"), "0.500")
    log.amend("20261102-b", make_manifest("Beacon"))
    log.update("20261103-c", make_manifest("Lighthouse"))
    log.propose("20261103-c", make_manifest("Lighthouse"))
    for names in (["Lighthouse"], ["  LIGHTHOUSE "], ["Beacon"], ["New", "Beacon"]):
        found = best_released(log.history, names, "eval")
        assert found is not None
        assert found.id == "20261102-b"
    assert best_released(log.history, ["New"], "eval") is None
    assert best_released(log.history, ["Lighthouse"], "season-2") is None


def test_baselines_are_nobodys_best() -> None:
    log = BoardLog().open()
    log.baseline("bm25", "0.300")
    assert best_released(log.history, ["Us"], "eval") is None


def test_the_best_is_the_highest_that_stands_after_corrections() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).submit("20261102-b", make_manifest(), "0.500")
    log.wait(days=1).correct("20261102-b", "0.390")
    found = best_released(log.history, ["Lighthouse"], "eval")
    assert found is not None
    assert (found.id, found.scores["eval"]) == ("20261101-a", "0.400")
