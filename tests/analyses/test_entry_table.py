"""Tables of entries: what is read, and every problem at its line."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.analyses.entries import parse_entries
from heldout.errors import InputError

GOOD = """id,date,team,baseline,other
b,2026-02-01,Lamp,no,x
a,2026-01-01,Coast,yes,y
c,2026-02-01,,,z
"""


def codes(text: str, *, systems: tuple[str, ...] | None = None) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as caught:
        parse_entries(text, path="entries.csv", systems=systems)
    return [(problem.code, problem.line) for problem in caught.value.problems]


def test_entries_stand_by_day_and_those_of_one_day_as_in_the_table() -> None:
    entries = parse_entries(GOOD, path="entries.csv")
    assert [entry.id for entry in entries] == ["a", "b", "c"]
    assert [entry.baseline for entry in entries] == [True, False, False]
    assert entries[0].received == datetime(2026, 1, 1, tzinfo=UTC)
    assert (entries[1].team, entries[1].institution) == ("Lamp", "")


def test_rows_of_other_systems_are_left_out() -> None:
    assert [e.id for e in parse_entries(GOOD, path="e", systems=("c", "a"))] == ["a", "c"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", [("empty-file", None)]),
        ("id,team\na,b\n", [("wrong-columns", 1)]),
        ("id,date,id\na,2026-01-01,a\n", [("wrong-columns", 1)]),
        ("id,date\na,2026-01-01,x\n", [("wrong-columns", 2)]),
        ("id,date\na,1 Jan 2026\n", [("entries-date", 2)]),
        ("id,date\na,20260101\n", [("entries-date", 2)]),
        ("id,date\na,2026-01-01\na,2026-01-02\n", [("entries-repeated", 3)]),
        ("id,date,baseline\na,2026-01-01,perhaps\n", [("entries-baseline", 2)]),
        ('id,date\n"a,2026-01-01\n', [("broken-csv", 2)]),
    ],
)
def test_each_problem_has_its_line(text: str, found: list[tuple[str, int]]) -> None:
    assert codes(text) == found


def test_a_system_without_a_row_is_named() -> None:
    assert codes(GOOD, systems=("a", "z")) == [("entries-missing", None)]


@given(st.text(max_size=200))
def test_nonsense_is_an_error_of_ours(text: str) -> None:
    with suppress(InputError):
        parse_entries(text, path="entries.csv")
