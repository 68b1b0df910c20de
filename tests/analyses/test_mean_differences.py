"""Means of two sides by a measure: the same as scipy's paired t, and nothing out of a failure."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import ttest_rel
from simulated_boards import rng, table
from statsmodels.stats.multitest import multipletests

from heldout.analyses.outcomes.comparison import (
    MeanDifference,
    MeanDifferences,
    compare_means,
    mean_headline,
    mean_summary,
    mean_tables,
)
from heldout.analyses.outcomes.options import Correction, DeclaredRules
from heldout.answers.table import list_notes, to_latex, to_markdown
from heldout.scoring.first_ranks import MethodSide
from heldout.scoring.sources import Scores
from heldout.scoring.table import Better, table_of

A = MethodSide(name="a", runs=("a",))
B = MethodSide(name="b", runs=("b",))
Row = Sequence[float] | NDArray[np.float64]


def measured(name: str, a: Row, b: Row, better: Better = "higher") -> Scores:
    return Scores(measure=name, table=table({"a": a, "b": b}), better=better)


def compare(a: Row, b: Row, *, better: Better = "higher") -> MeanDifference:
    (found,) = compare_means(
        [measured("M", a, b, better)], A, B, rng(), DeclaredRules()
    ).differences
    return found


def notes(found: MeanDifferences) -> str:
    return "\n".join(list_notes(mean_tables(found)[0]))


shares = st.integers(0, 1000).map(lambda n: n / 1000)
ranks = st.integers(0, 12).map(lambda n: 1 / n if n else 0.0)
pairs = st.lists(st.tuples(shares, shares), min_size=2, max_size=40) | st.lists(
    st.tuples(ranks, ranks), min_size=2, max_size=40
)


@given(pairs)
def test_t_its_interval_and_the_means_are_those_of_scipy(scores: list[tuple[float, float]]) -> None:
    a, b = (np.array(row) for row in zip(*scores, strict=True))
    found = compare(a.tolist(), b.tolist())
    assert found.a == pytest.approx(a.mean(), abs=1e-15)
    assert found.b == pytest.approx(b.mean(), abs=1e-15)
    assert found.wins + found.ties + found.losses == found.queries == len(scores)
    if np.ptp(np.round(b - a, 12)) == 0:
        assert (found.test.p, found.test.low, found.corrected) == (None, None, None)
        return
    peer = ttest_rel(b, a)
    low, high = peer.confidence_interval(0.95)
    assert found.test.difference == pytest.approx((b - a).mean(), abs=1e-12)
    assert found.test.p == pytest.approx(peer.pvalue, rel=1e-6, abs=1e-300)
    assert (found.test.low, found.test.high) == pytest.approx((low, high), abs=1e-9)


@given(pairs)
def test_who_is_called_a_does_not_matter(scores: list[tuple[float, float]]) -> None:
    a, b = (list(row) for row in zip(*scores, strict=True))
    one, other = compare(a, b), compare(b, a)
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert (one.test.p, one.flips_p) == (other.test.p, other.flips_p)
    assert (one.a, one.b) == (other.b, other.a)


@given(pairs)
def test_a_measure_of_which_less_is_better_turns_wins_and_nothing_else(
    scores: list[tuple[float, float]],
) -> None:
    a, b = (list(row) for row in zip(*scores, strict=True))
    high, low = compare(a, b), compare(a, b, better="lower")
    assert (high.wins, high.losses) == (low.losses, low.wins)
    assert (high.test, high.flips_p, high.ties) == (low.test, low.flips_p, low.ties)


@pytest.mark.parametrize("seed", range(4))
def test_sign_flips_give_the_p_of_all_sets_of_queries(seed: int) -> None:
    scores = np.random.default_rng(seed).integers(0, 20, (2, 12)) / 20
    difference = scores[1] - scores[0]
    sums = np.array([difference @ signs for signs in product((-1, 1), repeat=12)])
    exact = np.mean(np.abs(sums) >= abs(difference.sum()) - 1e-9)
    drawn = compare(*scores).flips_p
    assert drawn == pytest.approx(exact, abs=5 * math.sqrt(exact * (1 - exact) / 10_000) + 1e-4)


def test_no_p_depends_on_the_measures_beside_it() -> None:
    draw = np.random.default_rng(1)
    three = [measured(name, draw.random(50), draw.random(50)) for name in "LMN"]
    alone = [compare_means([one], A, B, rng(), DeclaredRules()).differences[0] for one in three]
    together = compare_means(
        three[::-1], A, B, rng(), DeclaredRules(correction="none")
    ).differences[::-1]
    assert list(together) == alone


@pytest.mark.parametrize("correction", get_args(Correction))
def test_the_family_is_every_measure_asked_for_the_undefined_ones_too(
    correction: Correction,
) -> None:
    noise = np.random.default_rng(2).normal(0, 1, 30)
    gains = {"L": 0.5, "M": 1.0, "N": 0.3}
    asked = [measured(name, noise * 0, noise + gain) for name, gain in gains.items()]
    asked.append(measured("S", noise, noise))
    found = compare_means(asked, A, B, rng(), DeclaredRules(correction=correction))
    raw = [1.0 if one.test.p is None else one.test.p for one in found.differences]
    peer = raw if correction == "none" else multipletests(raw, method=correction)[1].tolist()
    assert [one.corrected for one in found.differences[:3]] == pytest.approx(peer[:3])
    assert found.differences[3].corrected is None
    assert ("no correction" in notes(found)) == (correction == "none")


@pytest.mark.parametrize(
    ("a", "b", "t", "flips"),
    [
        ([0.2], [0.7], "a single query", "a single query"),
        ([0.2, 0.5], [0.2, 0.5], "no standard error", "every difference is 0"),
        ([0.1] * 30, [0.3] * 30, "no standard error", None),
        ([0.1, 0.2, 0.3], [0.1 + 1e-14, 0.2, 0.3], "no standard error", "every difference is 0"),
    ],
    ids=["one query", "the same run", "a constant difference", "rounding"],
)
def test_what_is_undefined_has_a_reason_and_no_number(
    a: Row, b: Row, t: str, flips: str | None
) -> None:
    found = compare_means([measured("M", a, b)], A, B, rng(), DeclaredRules())
    (one,) = found.differences
    assert (one.test.p, one.corrected, one.test.low, one.test.high) == (None,) * 4
    assert t in (one.test.why or "")
    assert (one.flips_p is None) == (flips is not None)
    assert (flips or "") in one.flips_why
    (shown,) = mean_tables(found)
    assert shown.notes[0].startswith("M: ")
    assert (flips or t) in shown.notes[0]
    assert shown.rows[0][5:8] == (None, None, None)
    assert "nan" not in to_markdown(shown) + to_latex(shown)


def test_a_difference_of_rounding_is_called_neither_higher_nor_lower() -> None:
    found = compare_means([measured("M", [0.1 + 0.2, 0], [0.3, 0])], A, B, rng(), DeclaredRules())
    (shown,) = mean_tables(found)
    assert shown.rows[0][3] == ""
    assert found.differences[0].ties == 2


def test_of_groups_too_a_difference_of_rounding_is_none() -> None:
    found = of_seeds([[0.1 + 0.2, 0.5], [0.3, 0.5]], [[0.3, 0.5]])
    (shown,) = mean_tables(found)
    assert found.differences[0].test.difference != 0
    assert (shown.rows[0][3], found.differences[0].ties) == ("", 2)
    assert shown.notes[0] == "M: every difference is the same: there is no standard error"


def test_a_table_that_lacks_a_score_or_has_none_is_refused() -> None:
    lacking = Scores(measure="M", table=table_of({"a": {"q": 1.0}, "b": {"q": None}}))
    for one in (lacking, measured("M", [], [])):
        with pytest.raises(ValueError, match="M"):
            compare_means([one], A, B, rng(), DeclaredRules())


def test_without_a_measure_nothing_is_said() -> None:
    found = compare_means([], A, B, rng(), DeclaredRules())
    assert (mean_tables(found), mean_summary(found)) == ((), ())


@pytest.mark.parametrize(
    ("better", "gain", "said", "favoured"),
    [
        ("higher", 0.3, "b (B) is better than a (A) on M: B - A is +0.", "B"),
        ("higher", -0.3, "a (A) is better than b (B) on M: B - A is -0.", "A"),
        ("lower", 0.3, "a (A) is better than b (B) on M, where lower is better: B - A is +0.", "A"),
        ("higher", 0.0, "No significant difference between a (A) and b (B) on M: B - A is ", None),
    ],
)
def test_the_answer_names_the_better_run_its_interval_and_its_p(
    better: Better, gain: float, said: str, favoured: str | None
) -> None:
    first, noise = np.random.default_rng(8).normal(0.5, 0.1, (2, 60))
    found = compare_means(
        [measured("M", first, noise + gain, better)], A, B, rng(), DeclaredRules()
    )
    text, test = mean_headline(found), found.differences[0].test
    assert mean_summary(found) == ()
    assert text.startswith(said)
    assert test.low is not None
    assert f"(95% interval {test.low:+.4f} to {test.high:+.4f}), p " in text
    assert text.endswith(".")
    assert found.differences[0].winner == favoured


def test_what_is_not_significant_once_corrected_has_no_better_run() -> None:
    draw = np.random.default_rng(12)
    first = draw.normal(0, 1, 40)
    second = first + draw.normal(0, 1, 40)
    second += 0.34 - (second - first).mean()
    one, pair = ([measured(name, first, second) for name in names] for names in ("M", "MN"))
    alone, both = (compare_means(asked, A, B, rng(), DeclaredRules()) for asked in (one, pair))
    raw: Any = alone.differences[0].test.p
    assert 0.025 < raw < 0.05
    assert mean_headline(alone).startswith("b (B) is better than a (A) on M")
    assert mean_headline(both) == "a (A) and b (B): no significant difference on M and N."
    assert mean_summary(both)[0][1].startswith("no significant difference on M")


def of_seeds(seeds_a: Sequence[Row], seeds_b: Sequence[Row]) -> MeanDifferences:
    first = {f"a{n}": row for n, row in enumerate(seeds_a)}
    second = {f"b{n}": row for n, row in enumerate(seeds_b)}
    one = Scores(measure="M", table=table(first | second))
    a, b = (MethodSide(name=name, runs=tuple(rows)) for name, rows in (("a", first), ("b", second)))
    return compare_means([one], a, b, rng(), DeclaredRules())


def test_seeds_that_score_alike_leave_the_paired_t_test() -> None:
    a, b = np.random.default_rng(3).random((2, 40))
    (grouped,) = of_seeds([a, a, a], [b, b]).differences
    paired = compare(a, b)
    assert grouped.test.test == "crossed-t"
    assert grouped.test.p == pytest.approx(paired.test.p)
    assert (grouped.test.low, grouped.test.high) == pytest.approx(
        (paired.test.low, paired.test.high)
    )
    assert (grouped.a, grouped.b) == pytest.approx((paired.a, paired.b))
    assert (grouped.wins, grouped.losses) == (paired.wins, paired.losses)


def test_the_luck_of_a_seed_widens_the_interval() -> None:
    draw = np.random.default_rng(4)
    b = draw.random(60)
    lucky, unlucky = b + 0.1 + draw.normal(0, 0.01, 60), b - 0.05 + draw.normal(0, 0.01, 60)
    (group,) = of_seeds([lucky, unlucky], [b]).differences
    alone, p = compare(lucky, b).test.p, group.test.p
    assert alone is not None
    assert alone < 1e-6
    assert p is not None
    assert p > 0.05


def test_groups_have_no_sign_flips_and_say_so() -> None:
    found = of_seeds([[0.1, 0.5, 0.3], [0.2, 0.5, 0.4]], [[0.4, 0.9, 0.3]])
    (one,) = found.differences
    assert one.flips_p is None
    assert one.test.test == "crossed-t"
    assert one.corrected == one.test.p is not None
    assert "no sign flips" in notes(found)
    (shown,) = mean_tables(found)
    assert [column.name for column in shown.columns][7] == "p (crossed t)"
    assert shown.method[0].startswith("crossed-t: ")


def test_the_table_says_where_lower_is_better_and_that_the_verdict_is_another_matter() -> None:
    rows = np.random.default_rng(5).random((2, 20))
    found = compare_means(
        [
            measured("Unjudged@10", rows[0], rows[0] / 2, "lower"),
            measured("P@10", rows[0], rows[1]),
        ],
        A,
        B,
        rng(),
        DeclaredRules(),
    )
    (shown,) = mean_tables(found)
    assert shown.title == "Means over all 20 queries"
    assert [column.name for column in shown.columns][7:] == ["p (t)", "p (sign flips)", "corrected"]
    assert shown.rows[0][3] == "lower"
    assert "lower is better: Unjudged@10\n" in notes(found)
    assert "Holm over 2 measures" in notes(found)
    assert "the verdict on outcomes ignores these means" in notes(found)
    assert found.differences[0].better == "lower"
    assert found.differences[0].wins == 20
