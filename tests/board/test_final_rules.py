"""A final in board.toml and in a log: what cannot be is refused."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from boardlog import RULES, BoardLog, make_manifest

from heldout.board.log.history import read_history
from heldout.board.rules.changes import list_changed_terms, list_moved_days
from heldout.board.rules.days import list_early_finals
from heldout.board.rules.spec_file import parse_spec
from heldout.board.site.sections import make_final
from heldout.board.standings.standings import list_seasons
from heldout.errors import InputError, StoreError

SET = '[sets.last]\nqueries = "queries/last.tsv"\n'
VIEW = """[[views]]
name = "final"
set = "last"
measure = "RR@10"
public = false
final = true
finalists = 2
"""
FINAL = RULES.replace("[policy]", f"{SET}\n{VIEW}\n[policy]")
CLOSES = "closes = 2027-12-31"
OVER = datetime(2028, 1, 1, tzinfo=UTC)
A, B, C = "20261101-a", "20261102-b", "20261103-c"


def test_a_board_with_a_final_view() -> None:
    spec = parse_spec(FINAL.encode())
    assert spec.finalists_view == spec.view("final")
    assert spec.final_views == ()
    assert parse_spec(RULES.encode()).finalists_view is None


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ("final = true\n", "", "views[2].finalists"),
        ("finalists = 2", "finalists = 0", "views[2].finalists"),
        ("finalists = 2", "finalists = 11", "views[2].finalists"),
        ("public = false\n", "", "views[2].final"),
        (f"{CLOSES}\n", "", "views[2].finalists"),
        ('set = "last"', 'set = "eval"', "views[2].set"),
        ('set = "last"', 'set = "dev"', "views[2].set"),
        ("queries/last.tsv", "queries/eval.tsv", "sets.last.queries"),
        ('last.tsv"', 'last.tsv"\nqrels = "qrels/last.qrels"', "views[2].set"),
        ('set = "last"', 'set = "last"\nlabels = "other"', "views[2].labels"),
        ('set = "last"', 'set = "last"\ntraining_at_most = 9', "views[2].training_at_most"),
        (
            'set = "last"',
            'set = "last"\nsummary = "worst"\nfacets = "labels/last.facets"',
            "views[2].summary",
        ),
        ('set = "last"\nmeasure = "RR@10"', 'set = "last"\nmeasure = "FirstRel"', "measure"),
        (VIEW, VIEW + VIEW.replace('"final"', '"second"'), "views[3].finalists"),
        (
            VIEW,
            VIEW + '[[views]]\nname = "peek"\nset = "last"\nmeasure = "P@5"\npublic = false\n',
            "views[2].set",
        ),
    ],
)
def test_what_is_no_final_view_is_told_at_its_key(before: str, after: str, key: str) -> None:
    assert before in FINAL
    with pytest.raises(InputError) as caught:
        parse_spec(FINAL.replace(before, after).encode())
    assert {problem.code for problem in caught.value.problems} == {"board-spec"}
    assert any(key in problem.found for problem in caught.value.problems), caught.value.problems


def test_seasons_may_end_in_one_final() -> None:
    seasons = '[[seasons]]\nname = "one"\nview = "eval"\nopens = 2026-11-01\ncloses = 2027-03-01\n'
    spec = parse_spec(FINAL.replace("[policy]", f"{seasons}\n[policy]").encode())
    season = spec.in_season(spec.seasons[0])
    assert season.finalists_view == spec.finalists_view
    assert "last" in season.sets


def test_finalists_of_two_seasons_stand_on_every_page() -> None:
    rules = FINAL.replace(
        "[policy]",
        """[sets.second]
queries = "queries/second.tsv"

[[views]]
name = "second"
set = "second"
measure = "RR@10"

[[seasons]]
name = "one"
view = "eval"
opens = 2026-11-01
closes = 2026-11-01

[[seasons]]
name = "two"
view = "second"
opens = 2026-11-02

[policy]""",
    )
    log = BoardLog().open(rules)
    log.submit(A, make_manifest(A), "0.4")
    log.wait(days=1)
    log.receive(B)
    log.review(B, make_manifest(B))
    scores = {"scores": {"dev": "0.5", "second": "0.5"}, "queries": {"dev": 9, "second": 9}}
    log.publish(B, make_manifest(B), "0.5", public=scores)
    named(log)
    seasons = list_seasons(log.entries, parse_spec(rules.encode()), now=log.now)
    assert [one.season.name for one in seasons] == ["two", "one"]
    for one in seasons:
        assert [row.id for row in one.standings.finalists] == [A, B]
        section = make_final(one.standings, parse_spec(rules.encode()).in_season(one.season))
        assert section is not None
        assert [finalist.row.id for finalist in section.rows] == [A, B]


def played(*, rules: str = FINAL) -> BoardLog:
    log = BoardLog().open(rules)
    log.baseline("20261101-bm25", "0.3")
    for name in (A, B, C):
        log.submit(name, make_manifest(name), "0.4")
        log.wait(days=1)
    log.receive("20261104-waits")
    return log


def named(log: BoardLog) -> BoardLog:
    log.name_finalists(A, B)
    return log


def test_of_one_second_the_log_decides_and_not_the_id() -> None:
    log = BoardLog().open(FINAL)
    for name in ("20261101-z", "20261101-a"):
        log.submit(name, make_manifest(name), "0.4")
    log.name_finalists("20261101-z", "20261101-a")
    final = log.history.final
    assert final is not None
    assert final.finalists == ("20261101-z", "20261101-a")


def over(log: BoardLog) -> BoardLog:
    log.now = OVER
    return log


def test_the_last_list_holds_and_the_scores_are_what_the_event_says() -> None:
    log = named(played())
    log.name_finalists(B, C, why="a withdrawn system")
    over(log).open_final({B: "0.5", C: "0.6"}, below=[B])
    final = log.history.final
    assert final is not None
    assert final.finalists == (B, C)
    opened = final.opened
    assert opened is not None
    assert (opened.winner, opened.best, opened.below, opened.queries) == (C, C, (B,), 50)
    assert list(list_early_finals(log.history)) == []


WRONG: list[tuple[str, Callable[[BoardLog], object]]] = [
    ("no published entry", lambda log: log.name_finalists("20261104-waits")),
    ("no published entry", lambda log: log.name_finalists("20261101-bm25")),
    ("no published entry", lambda log: log.name_finalists("20261101-unknown")),
    ("nobody, or somebody twice", lambda log: log.name_finalists(A, A)),
    ("nobody, or somebody twice", lambda log: log.name_finalists()),
    ("order of receipt", lambda log: log.name_finalists(B, A)),
    ("without a reason", lambda log: named(log).name_finalists(A, C)),
    ("no finalists were named", lambda log: log.open_final({A: "0.5"})),
    ("just the finalists", lambda log: named(log).open_final({A: "0.5"})),
    ("just the finalists", lambda log: named(log).open_final({A: "0.5", C: "0.6"})),
    ("highest score", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, best=A)),
    ("winner is not", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, winner=B)),
    ("winner is not", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, below=[A], winner=A)),
    ("winner is not", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, below=[B])),
    ("states luck", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, luck="")),
    ("how many queries", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, queries={})),
    ("another view", lambda log: named(log).open_final({A: "0.5", B: "0.6"}, view="eval")),
]


@pytest.mark.parametrize(("told", "step"), WRONG)
def test_a_log_that_contradicts_itself(told: str, step: Callable[[BoardLog], object]) -> None:
    log = played()
    step(log)
    with pytest.raises(StoreError, match=told):
        read_history(log.entries)


def test_a_final_is_opened_again_for_a_reason_alone_and_not_after_the_closing() -> None:
    log = over(named(played()))
    log.open_final({A: "0.5", B: "0.6"})
    log.name_finalists(A, C, why="late")
    with pytest.raises(StoreError, match="the final was opened before"):
        read_history(log.entries)
    log.entries.pop()
    log.open_final({A: "0.5", B: "0.7"})
    with pytest.raises(StoreError, match="again without a reason"):
        read_history(log.entries)
    log.entries.pop()
    log.add("closed-board", None, {"open_runs": []})
    log.open_final({A: "0.5", B: "0.7"}, why="two labels were wrong")
    final = log.history.final
    assert final is not None
    assert [one.why for one in final.openings] == ["", "two labels were wrong"]
    first = over(named(played()))
    first.add("closed-board", None, {"open_runs": []})
    first.open_final({A: "0.5", B: "0.6"})
    with pytest.raises(StoreError, match="the board was closed before"):
        read_history(first.entries)


def test_what_the_rules_of_the_day_did_not_allow() -> None:
    early = named(played())
    early.open_final({A: "0.5", B: "0.6"})
    assert ["before the last day" in one for one in list_early_finals(early.history)] == [True]
    many = played()
    many.name_finalists(A, B, C)
    assert "more than 2" in "".join(list_early_finals(many.history))
    none = named(played(rules=RULES))
    assert "did not have" in "".join(list_early_finals(none.history))
    late = over(played())
    late.submit("20280101-late", make_manifest("late"), "0.4")
    late.name_finalists("20280101-late")
    assert "received after the last day" in "".join(list_early_finals(late.history))


def changed(log: BoardLog, after: str) -> list[str]:
    return [key for key, *_ in list_changed_terms(log.history, parse_spec(after.encode()))]


def test_rules_that_would_use_the_queries_of_a_final_for_something_else() -> None:
    log = played()
    moved = FINAL.replace('set = "last"', 'set = "new"').replace("sets.last", "sets.new")
    plain = FINAL.replace("finalists = 2\n", "")
    for after in (RULES, moved, plain):
        assert "views" in changed(log, after), after
    assert changed(log, FINAL.replace("finalists = 2", "finalists = 5")) == []
    assert changed(log, FINAL.replace('last"\nmeasure = "RR@10', 'last"\nmeasure = "P@5')) == []
    named(log)
    assert changed(log, FINAL.replace("finalists = 2", "finalists = 5")) == ["views.finalists"]
    measured = FINAL.replace('last"\nmeasure = "RR@10', 'last"\nmeasure = "P@5')
    assert changed(log, measured) == ["views[2].measure"]


def test_a_final_is_not_made_of_queries_that_had_a_view() -> None:
    used = RULES.replace("[policy]", f"{SET}\n{VIEW}\n[policy]").replace(
        "public = false\nfinal = true\nfinalists = 2\n", ""
    )
    log = played(rules=used)
    assert "views.set" in changed(log, FINAL)
    assert changed(played(rules=RULES), FINAL) == []


def test_the_last_day_does_not_move_when_it_is_over() -> None:
    log = over(played())
    later = parse_spec(FINAL.replace("2027-12-31", "2028-12-31").encode())
    assert [key for key, *_ in list_moved_days(log.history, later, now=OVER)] == ["closes"]
