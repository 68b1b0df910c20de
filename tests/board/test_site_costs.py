"""Columns of costs: what is stated, and a blank for what is not."""

import re
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from sample_boards import baseline, facts, row, spec, standings

from heldout.board.log.manifest import Efficiency
from heldout.board.site.columns import STATED as COLUMNS
from heldout.board.site.columns import EntryCell, cost_columns, make_cell
from heldout.board.site.pages import render_board
from heldout.board.site.rows import public_row
from heldout.board.standings.standings import Row

STATED = Efficiency(
    parameters=110_000_000,
    training_pairs=502_939,
    hardware="1 GPU, 24 GB",
    query_latency_ms=12.54,
    energy_kwh=0.351,
)
NUMBERS = st.integers(0, 10**15) | st.floats(0.0001, 10**9)
UNITS = {"k": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}


def costs(**changes: Any) -> dict[str, EntryCell]:
    one = public_row(row("0.4", days=1, **({"efficiency": STATED} | changes)))
    return {column.key: make_cell(column, one) for column in COLUMNS}


def render(*rows: Row) -> str:
    return render_board(standings(rows), spec(), facts())["leaderboard/index.html"].decode()


def test_three_digits_stand_in_the_table_and_all_in_the_title() -> None:
    found = {key: (cost.text, cost.value, cost.whole) for key, cost in costs().items()}
    assert found == {
        "parameters": ("110M", "110000000", "110,000,000"),
        "training_data": ("MS MARCO passages, train split",) * 3,
        "training_pairs": ("503k", "502939", "502,939"),
        "query_latency_ms": ("12.5", "12.54", "12.54"),
        "energy_kwh": ("0.351", "0.351", "0.351"),
        "hardware": ("1 GPU, 24 GB",) * 3,
    }


def test_what_is_not_stated_is_a_blank_and_never_a_zero() -> None:
    none = costs(efficiency=None, training_data="")
    assert {(cost.value, cost.text, cost.whole) for cost in none.values()} == {
        ("", "", "not stated")
    }
    zero = costs(efficiency=Efficiency(parameters=0))
    assert (zero["parameters"].text, zero["training_pairs"].text) == ("0", "")


def test_an_embargo_withholds_every_cost() -> None:
    hidden = costs(embargoed=True, embargo_until=date(2027, 5, 20))
    assert {cost.whole for cost in hidden.values()} == {"withheld by an embargo"}
    assert not any(cost.value or cost.text for cost in hidden.values())


@given(NUMBERS)
def test_a_short_number_is_that_number_to_three_digits(number: float) -> None:
    """Whatever its size: never an exponent, never more than a half per cent off."""
    cost = costs(efficiency=Efficiency(query_latency_ms=number))["query_latency_ms"]
    found = re.fullmatch(r"([0-9,]+(?:\.[0-9]+)?)([kMBT]?)", cost.text)
    assert found, cost.text
    shown = Decimal(found[1].replace(",", "")) * UNITS.get(found[2], 1)
    assert abs(shown - Decimal(repr(number))) <= Decimal(repr(number)) * Decimal("0.005")
    assert len(cost.text) <= max(len("1,000T"), len("0.000123"))
    assert Decimal(cost.value) == Decimal(repr(number))


def test_only_columns_with_something_in_them_are_shown() -> None:
    only = row("0.4", days=1, training_data="", efficiency=Efficiency(energy_kwh=0.5))
    rows = [public_row(one) for one in (only, baseline())]
    assert [column.key for column in cost_columns(rows)] == ["energy_kwh"]
    page = render(only, baseline())
    assert 'data-key="energy_kwh"' in page
    assert 'data-key="parameters"' not in page
    assert page.count('title="not stated"') == 1
