"""What `board describe` counts: scores on held-out labels, of teams, and what a vote can gain."""

import math
from datetime import date

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.log.history import read_history
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.published_numbers import PublishedNumbers, count_numbers, find_unit
from heldout.board.standings.standings import FEWEST_DIFFERENT, project


def count(log: BoardLog, rules: str = RULES) -> PublishedNumbers:
    return count_numbers(log.history, parse_spec(rules.encode()))


def withhold(log: BoardLog, name: str, team: str = "Lighthouse") -> None:
    told = {"scores": {"dev": "0.1"}, "untold": ["eval"]}
    log.receive(name)
    log.publish(name, make_manifest(team), "0.1", public=told)


def test_only_public_views_on_held_out_labels_count() -> None:
    rules = RULES + '[[views]]\nname = "two"\nset = "eval"\nmeasure = "nDCG@10"\n'
    private = '[[views]]\nname = "secret"\nset = "eval"\nmeasure = "P@10"\npublic = false\n'
    log = BoardLog().open(rules + private)
    log.baseline("20261101-bm25", "0.300")
    log.submit("20261101-a", make_manifest(), "0.400")  # in dev and eval
    found = count(log, rules + private)
    assert found.views == ("eval", "two")
    assert [(row.name, row.entries, row.numbers) for row in found.teams] == [("Lighthouse", 1, 1)]
    assert (found.board.entries, found.board.numbers, found.board.without) == (1, 1, 0)


def test_an_answer_without_a_number_is_counted_apart() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    withhold(log.wait(days=1), "20261102-b")
    withhold(log.wait(days=1), "20261103-c", "Harbour")
    found = count(log)
    assert [(r.name, r.entries, r.numbers, r.without) for r in found.teams] == [
        ("Lighthouse", 2, 1, 1),
        ("Harbour", 1, 0, 1),
    ]
    assert (found.board.entries, found.board.numbers, found.board.without) == (3, 1, 2)


def test_a_correction_publishes_again_and_a_spread_is_a_number_of_its_own() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).correct("20261101-a", "0.410")
    assert count(log).board.numbers == 2
    seeds = {"seeds": {"runs": 3, "spreads": {"eval": "0.010"}}}
    log.wait(days=1).receive("20261103-b")
    log.publish("20261103-b", make_manifest(), "0.420", public=seeds)
    assert count(log).board.numbers == 4


def test_names_that_an_approved_rename_joins_are_one_team() -> None:
    log = BoardLog().open()
    log.submit("20261101-one", make_manifest("Alpha Crew"), "0.425")
    log.submit("20261101-two", make_manifest("Zeta House"), "0.300")
    assert [row.name for row in count(log).teams] == ["Alpha Crew", "Zeta House"]
    log.wait(days=1).amend("20261101-one", make_manifest("Zeta House"))
    (row,) = count(log).teams
    assert (row.name, row.entries, row.numbers) == ("Zeta House", 2, 2)


def test_the_public_log_which_hides_teams_is_refused() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(embargo_until=date(2027, 1, 1)), "0.400")
    assert count(log).teams[0].name == "Lighthouse"
    public = read_history(project(log.entries, now=log.now))
    with pytest.raises(ValueError, match="organisers' log"):
        count_numbers(public, parse_spec(RULES.encode()))


def test_u_is_that_of_two_systems_that_differ_least_and_are_no_near_copies() -> None:
    queries = [f"q{i}" for i in range(40)]
    good = {query: float(i % 2) for i, query in enumerate(queries)}
    equal = {query: float(i % 4 > 1) for i, query in enumerate(queries)}
    copy = good | dict.fromkeys(queries[: FEWEST_DIFFERENT - 1], 0.5)
    weak = dict.fromkeys(queries, 0.1)
    unit = find_unit({"weak": weak, "good": good, "copy": copy, "equal": equal})
    assert unit is not None
    assert {unit.a, unit.b} == {"good", "equal"}
    squares = sum((good[query] - equal[query]) ** 2 for query in queries)
    assert unit.size == pytest.approx(math.sqrt(squares / 39 / 40))
    assert find_unit({"good": good, "copy": copy}) is None
    assert find_unit({}) is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=12, max_size=30))
def test_u_does_not_depend_on_undefined_queries(pairs: list[tuple[float, float]]) -> None:
    one: dict[str, float | None] = {f"q{i}": a for i, (a, _) in enumerate(pairs)}
    other: dict[str, float | None] = {f"q{i}": b for i, (_, b) in enumerate(pairs)}
    unit = find_unit({"one": one, "other": other})
    more = find_unit({"one": one | {"x": None, "y": 0.3}, "other": other | {"x": 0.9}})
    assert unit == more
