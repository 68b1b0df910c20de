"""Columns of the table for what teams state of their systems' costs, and of their training data.

Nobody checks these and they rank nothing. What a team does not state is a blank, never a 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from heldout.board.log.efficiency import Efficiency
from heldout.board.ranking.standings import Row
from heldout.charts.labels import cut

__all__ = ["COSTS", "Cost", "CostColumn", "list_costs", "stated_columns"]

_DIGITS = 3
_FROM = 10_000
_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))
_MOST_TEXT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CostColumn:
    """A cost as a column.

    Attributes:
        key: what an address sorts by.
        name: of the column in CSV and of the key in JSON, where that is another one.
        title: its heading, and its name in a sentence.
        unit: below the heading; "" for a plain number, or for text.
        numeric: whether it is a number.
        means: what it is, for the list of columns.
    """

    key: str
    title: str
    unit: str = ""
    numeric: bool = True
    means: str
    name: str = ""

    @property
    def exported(self) -> str:
        """Its name in CSV and JSON."""
        return self.name or self.key

    def of(self, row: Row) -> float | str | None:
        """What a row of `public_rows` states; `None` for nothing."""
        if self.key == "training_data":
            return row.training_data or None
        stated: float | str | None = getattr(row.efficiency or Efficiency(), self.key)
        return None if stated == "" else stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an entry states in a column.

    Attributes:
        value: for sorting; "" where nothing is stated.
        text: a number to three digits, or the beginning of a text.
        whole: all of it, or why there is nothing.
    """

    value: str
    text: str
    whole: str


COSTS = (
    CostColumn(
        key="parameters", title="Parameters", means="Of all models that the system runs, summed."
    ),
    CostColumn(
        key="training_data",
        title="Training data",
        numeric=False,
        means="What it was trained or tuned on.",
    ),
    CostColumn(
        key="training_pairs",
        title="Pairs",
        means="Pairs of query and document that it was trained on.",
    ),
    CostColumn(
        key="query_latency_ms",
        title="Latency",
        unit="ms",
        name="latency_ms",
        means="Mean time per query, each team on hardware of its own.",
    ),
    CostColumn(
        key="energy_kwh",
        title="Energy",
        unit="kWh",
        means="What making the submitted runs took; training apart.",
    ),
    CostColumn(
        key="hardware",
        title="Hardware",
        numeric=False,
        means="What time and energy were measured on.",
    ),
)
"""Every column, in its order."""


def list_costs(row: Row) -> Mapping[str, Cost]:
    """Key of each column -> what a row of `public_rows` states."""
    missing = "withheld until the embargo ends" if row.embargoed else "not stated"
    return {column.key: _cost(column.of(row), missing) for column in COSTS}


def stated_columns(rows: Sequence[Row]) -> tuple[CostColumn, ...]:
    """The columns that have something in them."""
    made = [list_costs(row) for row in rows]
    return tuple(column for column in COSTS if any(costs[column.key].value for costs in made))


def _cost(value: float | str | None, missing: str) -> Cost:
    if value is None:
        return Cost(value="", text="", whole=missing)
    if isinstance(value, str):
        return Cost(value=value, text=cut(value, _MOST_TEXT), whole=value)
    number = Decimal(repr(value)).normalize()
    return Cost(value=f"{number:f}", text=_short(number), whole=f"{number:,f}")


def _short(number: Decimal) -> str:
    """Three digits: `0`, `0.0123`, `12.5`, `4,096`, `503k`, `110M`, `7B`."""
    if number < _FROM:
        places = 0 if number >= 10**_DIGITS else _DIGITS - 1 - max(number.adjusted(), -_FROM)
        shown = round(number, places) if places else number.to_integral_value()
        return f"{shown.normalize():,f}"
    kept = round(number, _DIGITS - 1 - number.adjusted())
    unit, letter = next((unit, letter) for unit, letter in _UNITS if kept >= unit)
    return f"{(kept / unit).normalize():,f}{letter}"
