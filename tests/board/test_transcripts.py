"""Bits are counted as the transcripts that there are, and never too few."""

import math
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.leaks.transcripts import bits_of, count_texts
from heldout.board.rules.release import ReleaseRule, release

ROUNDED = ReleaseRule()
LADDER = ReleaseRule(rule="ladder")
STEP = ReleaseRule(rule="step", step=0.25)


def ladder_bits(submissions: int, texts: int = 1001) -> float:
    return math.log2(math.comb(texts + submissions - 1, submissions))


def test_a_release_of_three_decimals_carries_ten_bits() -> None:
    assert count_texts(ROUNDED, decimals=3) == 1001
    assert bits_of(ROUNDED, decimals=3, submissions=1) == pytest.approx(9.97, abs=0.005)
    assert bits_of(ROUNDED, decimals=3, submissions=24) == pytest.approx(24 * math.log2(1001))
    assert count_texts(ReleaseRule(rule="step", step=0.01), decimals=3) == 101
    assert bits_of(STEP, decimals=3, submissions=1) == pytest.approx(math.log2(5))


def transcripts(values: int, submissions: int) -> set[tuple[int | None, ...]]:
    """Every row of answers, by playing every row of scores against "tell what is above"."""
    found = set()
    for scores in product(range(values), repeat=submissions):
        best, row = -1, []
        for score in scores:
            row.append(score if score > best else None)
            best = max(best, score)
        found.add(tuple(row))
    return found


@pytest.mark.parametrize("submissions", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("step", "values"), [(0.5, 3), (0.25, 5)])
def test_climbs_are_counted_as_by_enumeration(step: float, values: int, submissions: int) -> None:
    rule = ReleaseRule(rule="step", step=step)
    count = len(transcripts(values, submissions))
    assert count == math.comb(values + submissions - 1, submissions)
    by_releases = sum(
        math.comb(submissions - 1, j - 1) * math.comb(values, j) for j in range(1, submissions + 1)
    )
    assert count == by_releases
    assert bits_of(rule, decimals=2, submissions=submissions) == pytest.approx(math.log2(count))


def test_a_ladder_of_one_decimal_is_counted_as_by_enumeration() -> None:
    rule = ReleaseRule(rule="ladder")
    for submissions in (1, 2, 3, 4):
        count = len(transcripts(11, submissions))
        assert bits_of(rule, decimals=1, submissions=submissions) == pytest.approx(math.log2(count))


@pytest.mark.parametrize("rule", [ROUNDED, ReleaseRule(rule="ladder", z=0.0), STEP])
def test_no_team_is_told_more_than_the_ledger_counts(rule: ReleaseRule) -> None:
    """Every row of three submissions on two queries, played against the release itself."""
    runs = [[a / 8, b / 8] for a, b in product(range(9), repeat=2)]
    heard = set()
    for played in product(runs[::9], runs[::2], runs[::5]):
        told, row = None, []
        for values in played:
            answer = release(values, told, rule, decimals=2)
            told = answer.told
            row.append(answer.text)
        heard.add(tuple(row))
    assert 1 < len(heard) <= 2 ** bits_of(rule, decimals=2, submissions=3)


@given(st.integers(0, 400), st.integers(1, 4))
def test_as_exact_integers_give_it(submissions: int, decimals: int) -> None:
    expected = ladder_bits(submissions, 10**decimals + 1)
    assert bits_of(LADDER, decimals=decimals, submissions=submissions) == pytest.approx(
        expected, rel=1e-9, abs=1e-6
    )


@given(st.integers(0, 2000), st.sampled_from([ROUNDED, LADDER, STEP]), st.integers(2, 6))
def test_one_more_submission_carries_some_bits_and_at_most_those_of_a_free_text(
    submissions: int, rule: ReleaseRule, decimals: int
) -> None:
    bits = [bits_of(rule, decimals=decimals, submissions=submissions + k) for k in (0, 1)]
    free = math.log2(count_texts(rule, decimals=decimals))
    assert -1e-6 < bits[1] - bits[0] <= free + 1e-6


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40))
def test_two_climbs_carry_no_less_than_one(first: int, second: int, texts: int) -> None:
    apart = ladder_bits(first, texts) + ladder_bits(second, texts)
    assert ladder_bits(first + second, texts) <= apart + 1e-9


@given(st.integers(1, 6), st.integers(0, 5), st.integers(1, 6))
def test_a_correction_that_begins_a_new_climb_counts_enough(
    before: int, after: int, texts: int
) -> None:
    """Against a free value beside a climb that goes on, the other thing a correction may be."""
    apart = ladder_bits(before, texts) + ladder_bits(after + 1, texts)
    assert math.log2(texts) + ladder_bits(before + after, texts) <= apart + 1e-9


def test_the_largest_board_is_counted_at_once() -> None:
    assert 0 < bits_of(LADDER, decimals=6, submissions=1_000_000) < 2_100_000


def test_fewer_than_no_submissions_is_an_error() -> None:
    with pytest.raises(ValueError, match="-1"):
        bits_of(ROUNDED, decimals=3, submissions=-1)


def test_the_page_shows_what_is_counted() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "release.md").read_text("utf-8")
    rules = {
        "`rounded`": ROUNDED,
        "`ladder`": LADDER,
        "`step` 0.01": ReleaseRule(rule="step", step=0.01),
    }
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    shown = [row for row in rows if row and row[0] in rules and len(row) == 4]
    assert len(shown) == 12
    for name, submissions, bits, error in shown:
        counted = bits_of(rules[name], decimals=3, submissions=int(submissions))
        assert bits == f"{counted:.1f}"
        assert error == f"{math.sqrt((counted * math.log(2) + math.log(40)) / 2000):.2f}"
