"""Bits are counted as the transcripts that there are, and never too few."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.history import read_history
from heldout.board.ledger import Ledger, bits_of, count_texts, make_ledger
from heldout.board.release import ReleaseRule, release
from heldout.board.spec import BoardSpec
from heldout.board.standings import project

ROUNDED = ReleaseRule()
LADDER = ReleaseRule(rule="ladder")
STEP = ReleaseRule(rule="step", step=0.25)


def always(rule: ReleaseRule) -> Callable[[BoardSpec], ReleaseRule]:
    return lambda _: rule


def ledger(log: BoardLog, rule: ReleaseRule = ROUNDED) -> Ledger:
    return make_ledger(log.history, rule_of=always(rule))


def ladder_bits(submissions: int, texts: int = 1001) -> float:
    return math.log2(math.comb(texts + submissions - 1, submissions))


def withhold(log: BoardLog, name: str, best: str, team: str = "Lighthouse") -> None:
    """An entry whose score was not told."""
    log.submit(name, make_manifest(team), "0.000")
    entry = log.entries.pop()
    public = {**entry.event.public, "scores": {}, "not_above": {"eval": best}}
    sealed = {name: opening.value for name, opening in entry.opened.items()}
    log.add("published", name, public, sealed)


# counts


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
    for played in product(runs[::5], runs, runs[::3]):
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


# ledgers


def test_an_empty_board_has_told_nothing() -> None:
    found = ledger(BoardLog().open())
    assert found.teams == ()
    assert (found.board.submissions, found.board.releases, found.board.bits) == (0, 0, 0)
    assert found.board.most == 300
    assert found.board.bits_at_most == pytest.approx(300 * math.log2(1001))


def test_only_public_views_on_held_out_labels_count() -> None:
    log = BoardLog().open(
        RULES + '[[views]]\nname = "secret"\nset = "eval"\nmeasure = "nDCG@10"\npublic = false\n'
    )
    log.submit("20261101-a", make_manifest(), "0.400")
    found = ledger(log)
    assert found.views == ("eval",)
    assert found.teams[0].bits == pytest.approx(math.log2(1001))
    assert found.teams[0].releases == 1


def test_every_public_view_counts_by_itself() -> None:
    more = '[[views]]\nname = "{}"\nset = "eval"\nmeasure = "{}"\n'
    rules = RULES + more.format("ndcg", "nDCG@10") + more.format("graded", "RBP(p=0.8)")
    rules += more.format("binary", "RBP(p=0.8,rel=1)") + more.format("first", "FirstRel")
    log = BoardLog().open(rules)
    log.submit("20261101-a", make_manifest(), "0.400")
    found = ledger(log)
    assert found.views == ("eval", "ndcg", "binary")
    assert found.uncounted == ("graded", "first")
    # boardlog tells dev and eval only: what was not said carried nothing
    assert found.board.bits == pytest.approx(math.log2(1001))
    assert found.board.bits_at_most == pytest.approx((1 + 299 * 3) * math.log2(1001))


def test_a_withheld_score_is_no_release_but_has_its_place_in_the_transcript() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    withhold(log.wait(days=1), "20261102-b", "0.400")
    withhold(log.wait(days=1), "20261103-c", "0.400")
    row = ledger(log, LADDER).teams[0]
    assert (row.submissions, row.releases) == (3, 1)
    assert row.bits == pytest.approx(ladder_bits(3))


def test_teams_climb_apart_and_a_board_is_all_of_them() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest("Lighthouse"), "0.400")
    log.wait(days=1).submit("20261102-b", make_manifest("Harbour"), "0.450")
    log.wait(days=1).submit("20261103-c", make_manifest("LIGHTHOUSE "), "0.500")
    found = ledger(log, LADDER)
    assert [(row.name, row.submissions) for row in found.teams] == [
        ("LIGHTHOUSE ", 2),
        ("Harbour", 1),
    ]
    assert found.board.bits == pytest.approx(ladder_bits(2) + ladder_bits(1))
    assert found.board.bits_at_most == pytest.approx(found.board.bits + 297 * math.log2(1001))


def test_a_correction_is_one_more_release() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).correct("20261101-a", "0.410")
    row = ledger(log).teams[0]
    assert (row.submissions, row.releases) == (1, 2)
    assert row.bits == pytest.approx(2 * math.log2(1001))


def test_a_climb_begins_anew_with_a_correction() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).submit("20261102-b", make_manifest(), "0.500")
    log.wait(days=1).correct("20261101-a", "0.410")
    log.wait(days=1).submit("20261104-c", make_manifest(), "0.600")
    assert ledger(log, LADDER).teams[0].bits == pytest.approx(ladder_bits(2) + ladder_bits(2))


def test_answers_count_in_the_order_of_publication() -> None:
    log = BoardLog().open()
    log.receive("20261101-late")
    log.review("20261101-late", make_manifest())
    log.wait(days=1).submit("20261102-b", make_manifest(), "0.400")
    log.wait(days=1).submit("20261103-c", make_manifest(), "0.500")
    log.wait(days=1).correct("20261103-c", "0.510")
    log.wait(days=1).publish("20261101-late", make_manifest(), "0.600")
    assert ledger(log, LADDER).teams[0].bits == pytest.approx(ladder_bits(2) + ladder_bits(2))


def test_in_the_second_of_a_correction_every_order_is_thought_of() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).correct("20261101-a", "0.410")
    log.submit("20261102-b", make_manifest(), "0.500")
    assert ledger(log, LADDER).teams[0].bits == pytest.approx(3 * math.log2(1001))


def test_each_release_counts_by_the_rules_of_its_day() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).change_rules(RULES.replace("decimals = 3", "decimals = 2"))
    log.wait(days=1).submit("20261103-b", make_manifest(), "0.50")
    found = ledger(log)
    assert found.board.bits == pytest.approx(math.log2(1001) + math.log2(101))


def test_a_climb_begins_anew_where_the_rule_changes() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).change_rules(RULES.replace("quota = 2", "quota = 3"))
    for day in (3, 4):
        log.wait(days=1).submit(f"202611{day:02}-b", make_manifest(), f"0.{day}00")

    def rule_of(spec: BoardSpec) -> ReleaseRule:
        return ROUNDED if spec.policy.quota == 2 else LADDER

    found = make_ledger(log.history, rule_of=rule_of)
    assert found.board.bits == pytest.approx(math.log2(1001) + ladder_bits(2))


def test_a_climb_goes_on_where_only_the_threshold_changes() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).change_rules(RULES.replace("quota = 2", "quota = 3"))
    log.wait(days=1).submit("20261103-b", make_manifest(), "0.500")

    def rule_of(spec: BoardSpec) -> ReleaseRule:
        return ReleaseRule(rule="ladder", z=float(spec.policy.quota))

    assert make_ledger(log.history, rule_of=rule_of).board.bits == pytest.approx(ladder_bits(2))


def test_baselines_count_for_the_board_and_for_no_team() -> None:
    log = BoardLog().open()
    log.baseline("bm25", "0.300")
    log.correct("bm25", "0.310")
    found = ledger(log, LADDER)
    assert found.teams == ()
    assert (found.baselines.submissions, found.baselines.releases) == (1, 2)
    assert found.board.bits == found.baselines.bits == pytest.approx(2 * math.log2(1001))


def test_what_was_never_published_told_nothing() -> None:
    log = BoardLog().open()
    log.receive("20261101-a")
    log.review("20261101-a", make_manifest())
    log.reject("20261101-a")
    log.receive("20261101-b")
    assert ledger(log).board.bits == 0


@pytest.mark.parametrize(
    ("changes", "most"),
    [
        ({}, 30),  # 426 days are 15 windows of 30, at most 2 in each
        ({"closes = 2027-12-31\n": ""}, 300),
        ({"off = []": 'off = ["quota"]'}, 300),
        ({"closes = 2027-12-31": "closes = 2026-11-30"}, 2),
        ({"closes = 2027-12-31": "closes = 2026-12-01"}, 4),
        ({"schema = 1": 'schema = 1\nkind = "one-shot"'}, 2),
        ({"quota = 2": "quota = 1000"}, 300),
    ],
)
def test_how_many_submissions_of_a_team_there_may_be(changes: dict[str, str], most: int) -> None:
    rules = RULES
    for old, new in changes.items():
        assert old in rules
        rules = rules.replace(old, new)
    log = BoardLog().open(rules)
    log.submit("20261101-a", make_manifest(), "0.400")
    row = ledger(log, LADDER).teams[0]
    assert row.most == most
    assert row.bits_at_most == pytest.approx(ladder_bits(most))


def test_a_team_beyond_the_declared_number_is_counted_in_full() -> None:
    log = BoardLog().open()
    for day in range(1, 5):
        log.wait(days=1).submit(f"2026110{day}-a", make_manifest(), f"0.{day}00")
    found = ledger(log, ReleaseRule(rule="ladder", submissions=3))
    row = found.teams[0]
    assert row.most == found.board.most == row.submissions == 4
    assert row.bits_at_most == found.board.bits_at_most == row.bits


def test_a_log_that_hides_teams_is_refused() -> None:
    log = BoardLog().open()
    until = datetime(2027, 1, 1, tzinfo=UTC).date()
    log.submit("20261101-a", make_manifest(embargo_until=until), "0.400")
    assert ledger(log).teams[0].name == "Lighthouse"
    public = read_history(project(log.entries, now=log.now))
    with pytest.raises(ValueError, match="organisers' log"):
        make_ledger(public, rule_of=always(ROUNDED))


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
