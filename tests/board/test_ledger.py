"""The ledger counts everything that could have been told, of everybody, and nothing else."""

import math
from datetime import UTC, datetime

import msgspec
import pytest
from boardlog import RULES, BoardLog, make_manifest

from heldout.board.leaks.ledger import STATEMENT, Ledger, make_ledger
from heldout.board.log.history import read_history
from heldout.board.ranking.standings import project
from heldout.board.rules.release import ReleaseRule

ROUNDED = ReleaseRule()
LADDER = ReleaseRule(rule="ladder")
STEP = ReleaseRule(rule="step", step=0.25)


def with_rule(rule: ReleaseRule, rules: str = RULES) -> str:
    """A board.toml with a release rule."""
    given = {k: v for k, v in msgspec.to_builtins(rule).items() if v is not None}
    return rules + "[release]\n" + "".join(f"{k} = {v!r}\n" for k, v in given.items())


def board(rule: ReleaseRule = ROUNDED, rules: str = RULES) -> BoardLog:
    return BoardLog().open(with_rule(rule, rules))


def ledger(log: BoardLog) -> Ledger:
    return make_ledger(log.history)


def ladder_bits(submissions: int, texts: int = 1001) -> float:
    return math.log2(math.comb(texts + submissions - 1, submissions))


def withhold(log: BoardLog, name: str, best: str, team: str = "Lighthouse") -> None:
    """An entry whose score was not told."""
    log.submit(name, make_manifest(team), "0.000")
    entry = log.entries.pop()
    public = {**entry.event.public, "scores": {}, "not_above": {"eval": best}}
    sealed = {name: opening.value for name, opening in entry.opened.items()}
    log.add("published", name, public, sealed)


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
    rules += more.format("secret", "FirstRel@5") + "public = false\n"
    log = BoardLog().open(rules)
    log.submit("20261101-a", make_manifest(), "0.400")
    found = ledger(log)
    assert found.views == ("eval", "ndcg", "binary")
    assert found.uncounted == ("graded", "first")
    # boardlog tells dev and eval only: what was not said carried nothing
    assert found.board.bits == pytest.approx(math.log2(1001))
    assert found.board.bits_at_most == pytest.approx((1 + 299 * 3) * math.log2(1001))


def test_a_withheld_score_is_no_release_but_has_its_place_in_the_transcript() -> None:
    log = board(LADDER)
    log.submit("20261101-a", make_manifest(), "0.400")
    withhold(log.wait(days=1), "20261102-b", "0.400")
    withhold(log.wait(days=1), "20261103-c", "0.400")
    row = ledger(log).teams[0]
    assert (row.submissions, row.releases) == (3, 1)
    assert row.bits == pytest.approx(ladder_bits(3))


def test_teams_climb_apart_and_a_board_is_all_of_them() -> None:
    log = board(LADDER)
    log.submit("20261101-a", make_manifest("Lighthouse"), "0.400")
    log.wait(days=1).submit("20261102-b", make_manifest("Harbour"), "0.450")
    log.wait(days=1).submit("20261103-c", make_manifest("LIGHTHOUSE "), "0.500")
    found = ledger(log)
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
    log = board(LADDER)
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).submit("20261102-b", make_manifest(), "0.500")
    log.wait(days=1).correct("20261101-a", "0.410")
    log.wait(days=1).submit("20261104-c", make_manifest(), "0.600")
    assert ledger(log).teams[0].bits == pytest.approx(ladder_bits(2) + ladder_bits(2))


def test_answers_count_in_the_order_of_publication() -> None:
    log = board(LADDER)
    log.receive("20261101-late")
    log.review("20261101-late", make_manifest())
    log.wait(days=1).submit("20261102-b", make_manifest(), "0.400")
    log.wait(days=1).submit("20261103-c", make_manifest(), "0.500")
    log.wait(days=1).correct("20261103-c", "0.510")
    log.wait(days=1).publish("20261101-late", make_manifest(), "0.600")
    assert ledger(log).teams[0].bits == pytest.approx(ladder_bits(2) + ladder_bits(2))


def test_in_the_second_of_a_correction_every_order_is_thought_of() -> None:
    log = board(LADDER)
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).correct("20261101-a", "0.410")
    log.submit("20261102-b", make_manifest(), "0.500")
    assert ledger(log).teams[0].bits == pytest.approx(3 * math.log2(1001))


def test_each_release_counts_by_the_rules_of_its_day() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).change_rules(RULES.replace("decimals = 3", "decimals = 2"))
    log.wait(days=1).submit("20261103-b", make_manifest(), "0.50")
    found = ledger(log)
    assert found.board.bits == pytest.approx(math.log2(1001) + math.log2(101))


def test_a_climb_begins_anew_where_the_rule_changes() -> None:
    log = board(ROUNDED)
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).change_rules(with_rule(LADDER))
    for day in (3, 4):
        log.wait(days=1).submit(f"202611{day:02}-b", make_manifest(), f"0.{day}00")
    assert ledger(log).board.bits == pytest.approx(math.log2(1001) + ladder_bits(2))


def test_a_climb_goes_on_where_only_the_threshold_changes() -> None:
    log = board(LADDER)
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).change_rules(with_rule(ReleaseRule(rule="ladder", z=2.5)))
    log.wait(days=1).submit("20261103-b", make_manifest(), "0.500")
    assert ledger(log).board.bits == pytest.approx(ladder_bits(2))


FINAL = """
[sets.reserve]
queries = "queries/reserve.tsv"

[[views]]
name = "reserve"
set = "reserve"
measure = "RR@10"
public = false
final = true
"""


def add_final(log: BoardLog, name: str, text: str) -> None:
    """Let the last event, which published the entry, say its final score too."""
    entry = log.entries.pop()
    sealed = {key: opening.value for key, opening in entry.opened.items()}
    sealed["final"] = {"scores": {"reserve": text}, "queries": {"reserve": 50}}
    log.add(entry.event.kind, name, entry.event.public, sealed)


def test_a_final_score_is_one_more_release_and_no_climb() -> None:
    log = board(LADDER, RULES + FINAL)
    for day in (1, 2):
        log.wait(days=1).submit(f"2026110{day}-a", make_manifest(), f"0.{day}00")
        add_final(log, f"2026110{day}-a", "0.300")
    found = ledger(log)
    assert found.views == ("eval", "reserve")
    assert (found.teams[0].submissions, found.teams[0].releases) == (2, 4)
    assert found.teams[0].bits == pytest.approx(ladder_bits(2) + 2 * math.log2(1001))
    assert found.teams[0].bits_at_most == pytest.approx(ladder_bits(30) + 30 * math.log2(1001))
    assert found.board.bits_at_most == pytest.approx(found.board.bits + 298 * 2 * math.log2(1001))


def test_a_final_score_counts_again_with_a_correction_and_not_where_there_is_none() -> None:
    log = board(ROUNDED, RULES + FINAL)
    log.submit("20261101-a", make_manifest(), "0.400")
    add_final(log, "20261101-a", "0.300")
    log.wait(days=1).correct("20261101-a", "0.410")
    add_final(log, "20261101-a", "0.310")
    log.wait(days=1).submit("20261103-b", make_manifest(), "0.400")
    row = ledger(log).teams[0]
    assert row.releases == 5
    assert row.bits == pytest.approx(5 * math.log2(1001))


def test_a_season_with_a_final_view_is_the_worst_for_the_board() -> None:
    log = board(ROUNDED, RULES + SEASONS + SPRING_ONLY)
    assert ledger(log).board.bits_at_most == pytest.approx(300 * 2 * math.log2(1001))


def test_a_final_score_of_a_fixed_step_board_is_rounded() -> None:
    log = board(STEP, RULES + FINAL)
    log.submit("20261101-a", make_manifest(), "0.500")
    add_final(log, "20261101-a", "0.512")
    assert ledger(log).board.bits == pytest.approx(math.log2(5) + math.log2(1001))


SPRING_ONLY = """
[[views]]
name = "spring-reserve"
set = "spring"
measure = "nDCG@10"
public = false
final = true
"""

SEASONS = """
[sets.spring]
queries = "queries/spring.tsv"

[[views]]
name = "spring"
set = "spring"
measure = "RR@10"

[[seasons]]
name = "autumn"
view = "eval"
opens = 2026-11-01
closes = 2026-12-30

[[seasons]]
name = "spring"
view = "spring"
opens = 2027-01-01
closes = 2027-01-30
"""


def test_every_season_is_a_climb_of_its_own_with_a_quota_of_its_own() -> None:
    log = board(LADDER, RULES + SEASONS)
    log.submit("20261101-a", make_manifest(), "0.400")
    found = ledger(log)
    assert found.views == ("eval", "spring")
    # 60 days hold two windows of two submissions, 30 days one
    row = found.teams[0]
    assert row.most == 6
    assert row.bits == pytest.approx(ladder_bits(1))
    assert row.bits_at_most == pytest.approx(ladder_bits(4) + ladder_bits(2))
    assert found.board.bits_at_most == pytest.approx(300 * math.log2(1001))


def test_a_team_can_never_learn_more_than_the_board_has_left(board_rules: str) -> None:
    log = BoardLog().open(board_rules)
    log.submit("20261101-a", make_manifest("Lighthouse"), "0.400")
    log.submit("20261101-b", make_manifest("North Coast"), "0.410")
    found = ledger(log)
    assert found.board.most == 5
    assert {row.most for row in found.teams} <= {3, 4}
    assert all(row.bits_at_most <= found.board.bits_at_most for row in found.teams)


@pytest.fixture(params=[ROUNDED, LADDER, STEP])
def board_rules(request: pytest.FixtureRequest) -> str:
    """Two seasons whose quotas together are more than the board's declared number."""
    rule: ReleaseRule = msgspec.structs.replace(request.param, submissions=5)
    return with_rule(rule, RULES.replace("quota = 2", "quota = 50") + SEASONS)


def test_baselines_count_for_the_board_and_for_no_team() -> None:
    log = board(LADDER)
    log.baseline("bm25", "0.300")
    log.correct("bm25", "0.310")
    found = ledger(log)
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
    log = board(ROUNDED, rules)
    log.submit("20261101-a", make_manifest(), "0.400")
    row = ledger(log).teams[0]
    assert row.most == most
    assert row.bits_at_most == pytest.approx(most * math.log2(1001))


def test_a_team_beyond_the_declared_number_is_counted_in_full() -> None:
    log = board(ReleaseRule(rule="ladder", submissions=3))
    for day in range(1, 5):
        log.wait(days=1).submit(f"2026110{day}-a", make_manifest(), f"0.{day}00")
    found = ledger(log)
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
        make_ledger(public)


def test_the_statement_says_what_published_figures_can_still_reveal() -> None:
    assert "a figure can still reveal a label to somebody who knows all others" in STATEMENT
