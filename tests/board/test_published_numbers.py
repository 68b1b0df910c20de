"""What `board describe` counts: scores on held-out labels, of teams, and what a vote can gain."""

import math

import pytest
from boardlog import RULES, BoardLog, make_manifest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.describe import count_numbers, find_unit, list_ranking_views
from heldout.board.standings.standings import FEWEST_DIFFERENT


def test_only_public_views_on_held_out_labels_and_teams_entries_count() -> None:
    rules = RULES + '[[views]]\nname = "two"\nset = "eval"\nmeasure = "nDCG@10"\n'
    private = '[[views]]\nname = "secret"\nset = "eval"\nmeasure = "P@10"\npublic = false\n'
    views = list_ranking_views(parse_spec((rules + private).encode()))
    assert views == ("eval", "two")
    log = BoardLog().open(rules + private)
    log.baseline("20261101-bm25", "0.300")
    log.submit("20261101-a", make_manifest(), "0.400")  # in dev and eval
    log.wait(days=1).receive("20261102-b")
    withheld = {"scores": {"dev": "0.1"}, "untold": ["eval"]}
    log.publish("20261102-b", make_manifest(), "0.1", public=withheld)
    assert count_numbers(log.history, views) == 1


def test_a_correction_publishes_again_and_a_spread_is_a_number_of_its_own() -> None:
    log = BoardLog().open()
    log.submit("20261101-a", make_manifest(), "0.400")
    log.wait(days=1).correct("20261101-a", "0.410")
    assert count_numbers(log.history, ["eval"]) == 2
    seeds = {"seeds": {"runs": 3, "spreads": {"eval": "0.010"}}}
    log.wait(days=1).receive("20261103-b")
    log.publish("20261103-b", make_manifest(), "0.420", public=seeds)
    assert count_numbers(log.history, ["eval"]) == 4


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
