"""u of a board: the standard error of the difference of two systems."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.scores.describe import find_unit
from heldout.board.standings.standings import FEWEST_DIFFERENT


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
