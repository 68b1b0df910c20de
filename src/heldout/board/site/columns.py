"""The columns of the leaderboard: one table for the page, the CSV, the JSON and the entry's page.

A column that is added to `columns.toml` is in all of them, and among the charts where it has an
axis. The scores have columns of their own, one for each public view (`ViewColumn` in `rows`).
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from heldout.board.standings.standings import WITH_NOISE, Row
from heldout.charts import axes, svg

Value = int | float | str | None
"""What a row has in a column; `None` for nothing."""

_DIGITS = 3
_FROM = 10_000
_UNITS = ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k"))
_MOST_TEXT = 60


def _why_not_stated(row: Row) -> str:
    return "withheld by an embargo" if row.identity is None else "not stated"


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A fact of an entry, in every form.

    Attributes:
        key: its name in CSV and JSON, and what an address sorts by.
        title: its heading, and its name in a sentence.
        of: what a row of `public_rows` has in it.
        means: what it is, in a sentence or two.
        kind: how it is written; a flag is true or false, a day is `2026-11-20`.
        why: why there is nothing, where there is nothing.
        unit: of a number; "" for a plain one.
        axis: of its chart against the official score; "" for no chart.
        caveat: what a reader of its chart has to know, as a sentence ends.
        heading: whether a heading of the entry's page says it.
    """

    key: str
    title: str
    of: Callable[[Row], Value]
    means: str
    kind: Literal["text", "link", "number", "flag", "day"] = "text"
    _: KW_ONLY
    why: Callable[[Row], str] = _why_not_stated
    unit: str = ""
    axis: str = ""
    caveat: str = ""
    heading: bool = False

    @property
    def source(self) -> str:
        """Whose number a cost is, in a sentence; "" for what is no cost."""
        if self.why is _why_not_measured:
            return "A blank is not measured."
        return "As the team states it; a blank is not stated." if self in STATED else ""


def _why_not_measured(row: Row) -> str:
    return "withheld by an embargo" if row.identity is None else "not measured"


def _why_unranked(row: Row) -> str:
    return row.unranked or "a baseline has no rank"


def _why_unranged(row: Row) -> str:
    return row.unranged or "rank ranges were not computed"


_WHY: Mapping[str, Callable[[Row], str]] = {
    "rank": _why_unranked,
    "rank_low": _why_unranged,
    "rank_high": _why_unranged,
}
"""Key of a column -> why there may be nothing in it, where that is not by its group."""

_MADE: Mapping[str, Callable[[Row], Value]] = {
    "date": lambda row: row.received.date().isoformat(),
    "noise": lambda row: row.mark == WITH_NOISE,
}
"""Key of a column -> what makes its values, where no field of a row has them."""


def _find(path: str) -> Callable[[Row], Value]:
    """Return what reads a field of a row; nothing under an embargo or for an empty text."""
    first, *rest = path.split(".")
    read = attrgetter(first)

    def of(row: Row) -> Value:
        found = read(row)
        for name in rest:
            found = getattr(found, name, None)
        value: Value = None if rest and found == "" else found
        return value

    return of if rest else read


@cache
def _read_tables() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("columns.toml").read_text("utf-8"))


def read_table(name: str) -> Any:
    """Return a table of `columns.toml`."""
    return _read_tables()[name]


def _read_group(group: str, why: Callable[[Row], str] = _why_not_stated) -> tuple[EntryColumn, ...]:
    return tuple(
        EntryColumn(
            **{**row, "of": _MADE.get(row["key"]) or _find(row["of"])},
            why=_WHY.get(row["key"], why),
        )
        for row in read_table(group)
    )


ENTRY = _read_group("entry")
"""What an entry is; in CSV and JSON the scores come after it."""

RESULT = _read_group("result")
"""How an entry stands."""

STATED = _read_group("stated")
"""What teams state of costs and training data. Nobody checks it, and it ranks nothing."""

MEASURED = _read_group("measured", _why_not_measured)
"""What organisers measured when they ran a program. It ranks nothing."""

COSTS = (*STATED, *MEASURED)
"""What an entry cost, stated or measured; shown where some entry has it."""

COLUMNS = (*ENTRY, *RESULT, *COSTS)
"""Every column but those of scores, in the order of CSV and JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryCell:
    """What an entry has in a column, for a table.

    Attributes:
        value: for sorting; "" where there is nothing.
        text: a number to three digits, or the beginning of a text.
        whole: all of it, or why there is nothing.
    """

    value: str
    text: str
    whole: str


def make_cell(column: EntryColumn, row: Row) -> EntryCell:
    """A cell of a number or a text."""
    value = column.of(row)
    if value is None:
        return EntryCell(value="", text="", whole=column.why(row))
    if isinstance(value, str):
        return EntryCell(value=value, text=svg.cut(value, _MOST_TEXT), whole=value)
    number = Decimal(repr(value)).normalize()
    return EntryCell(value=f"{number:f}", text=_short(number), whole=f"{number:,f}")


def full_text(column: EntryColumn, row: Row) -> str:
    """All that an entry has in a column, in words; "" for nothing and for a flag not set."""
    value = column.of(row)
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    if isinstance(value, str):
        return axes.day_words(date.fromisoformat(value)) if column.kind == "day" else value
    return f"{Decimal(repr(value)).normalize():,f} {column.unit}".strip()


def cost_columns(rows: Sequence[Row]) -> tuple[EntryColumn, ...]:
    """The columns of `COSTS` that have something in them."""
    return tuple(c for c in COSTS if any(c.of(row) is not None for row in rows))


def _short(number: Decimal) -> str:
    """Three digits: `0`, `0.0123`, `12.5`, `4,096`, `503k`, `110M`, `7B`."""
    if number < _FROM:
        digits = 0 if number >= 10**_DIGITS else _DIGITS - 1 - max(number.adjusted(), -_FROM)
        shown = round(number, digits) if digits else number.to_integral_value()
        return f"{shown.normalize():,f}"
    rounded = round(number, _DIGITS - 1 - number.adjusted())
    unit, suffix = next((unit, suffix) for unit, suffix in _UNITS if rounded >= unit)
    return f"{(rounded / unit).normalize():,f}{suffix}"
