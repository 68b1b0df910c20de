"""The columns of the leaderboard: one table for the page, the CSV, the JSON and the entry's page.

A column that is added here is in all of them, and among the charts where it has an axis. The scores
have columns of their own, one for each public view (`ViewColumn` in `rows`).
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date
from decimal import Decimal
from operator import attrgetter
from typing import Literal

from heldout.board.standings.standings import WITH_NOISE, Row
from heldout.charts.axes import day_words
from heldout.charts.svg import cut

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

    @property
    def source(self) -> str:
        """Whose number a cost is, in a sentence; "" for what is no cost."""
        if self.why is _why_not_measured:
            return "A blank is not measured."
        return "As the team states it; a blank is not stated." if self in STATED else ""


def _who(field: str) -> Callable[[Row], Value]:
    """A field of the identity: nothing under an embargo, and nothing for an empty text."""
    return lambda row: getattr(row.identity, field, None) or None


def _cost(field: str) -> Callable[[Row], Value]:
    """A field of what the team states of its system's costs."""

    def of(row: Row) -> Value:
        stated: Value = getattr(row.identity and row.identity.efficiency, field, None)
        return None if stated == "" else stated

    return of


def _measured(field: str) -> Callable[[Row], Value]:
    """A field of what the organisers measured."""

    def of(row: Row) -> Value:
        found: Value = getattr(row.costs, field, None)
        return None if found == "" else found

    return of


def _why_not_measured(row: Row) -> str:
    return "withheld by an embargo" if row.identity is None else "not measured"


def _why_unranked(row: Row) -> str:
    return row.unranked or "a baseline has no rank"


def _why_unranged(row: Row) -> str:
    return row.unranged or "rank ranges were not computed"


ENTRY = (
    EntryColumn(
        "rank",
        "Rank",
        attrgetter("rank"),
        "By the official score, rounded as shown. Of equal scores the earlier submission "
        "ranks higher. A baseline has no rank.",
        "number",
        why=_why_unranked,
    ),
    EntryColumn("id", "Id", attrgetter("id"), "The permanent id of the entry."),
    EntryColumn(
        "date",
        "Date",
        lambda row: row.received.date().isoformat(),
        "When the submission was received (UTC).",
        "day",
    ),
    EntryColumn("team", "Team", _who("team"), "The team."),
    EntryColumn(
        "institution",
        "Institution",
        _who("institution"),
        "The organisation that the team belongs to.",
    ),
    EntryColumn(
        "description", "System", _who("description"), "The system, as its team describes it."
    ),
    EntryColumn("paper", "Paper", _who("paper"), "Address of the paper.", "link"),
    EntryColumn("code", "Code", _who("code"), "Address of the code.", "link"),
    EntryColumn("type", "Type", attrgetter("type"), "Submission type, one of those in board.toml."),
)
"""What an entry is; in CSV and JSON the scores come after it."""

RESULT = (
    EntryColumn(
        "trophy",
        "Trophy",
        attrgetter("trophy"),
        "Best when submitted: strictly above every earlier entry.",
        "flag",
    ),
    EntryColumn(
        "embargoed",
        "Anonymous",
        attrgetter("embargoed"),
        "Whether an embargo withholds who submitted the entry.",
        "flag",
    ),
    EntryColumn(
        "baseline",
        "Baseline",
        attrgetter("baseline"),
        "Whether the organisers added it as a baseline.",
        "flag",
    ),
    EntryColumn(
        "noise",
        "With noise",
        lambda row: row.mark == WITH_NOISE,
        "Whether the score that ranks carries noise, as it does under the rule clear until the "
        "season's end.",
        "flag",
    ),
    EntryColumn(
        "rank_low",
        "Possible ranks, from",
        attrgetter("rank_low"),
        "Best rank that the entry may have on other queries.",
        "number",
        why=_why_unranged,
    ),
    EntryColumn(
        "rank_high",
        "Possible ranks, to",
        attrgetter("rank_high"),
        "Worst rank that the entry may have on other queries. All ranges hold together in "
        "95% of samples of queries.",
        "number",
        why=_why_unranged,
    ),
    EntryColumn(
        "seeds",
        "Seeds",
        attrgetter("seeds"),
        "How many runs the score is a mean over, which differ in their random seed only.",
        "number",
    ),
)
"""How an entry stands."""

STATED = (
    EntryColumn(
        "parameters",
        "Parameters",
        _cost("parameters"),
        "Parameters of all models that the system runs, summed.",
        "number",
        axis="parameters",
    ),
    EntryColumn(
        "training_data",
        "Training data",
        _who("training_data"),
        "What the system was trained or tuned on.",
    ),
    EntryColumn(
        "training_pairs",
        "Training pairs",
        _cost("training_pairs"),
        "Pairs of query and document that the system was trained on.",
        "number",
    ),
    EntryColumn(
        "query_latency_ms",
        "Query latency",
        _cost("query_latency_ms"),
        "Mean wall-clock time per query, each team on hardware of its own.",
        "number",
        unit="ms",
        axis="ms per query",
        caveat=", each measured on hardware of its own",
    ),
    EntryColumn(
        "energy_kwh",
        "Energy",
        _cost("energy_kwh"),
        "Energy that making the submitted runs took, without training.",
        "number",
        unit="kWh",
    ),
    EntryColumn(
        "hardware", "Hardware", _cost("hardware"), "What time and energy were measured on."
    ),
)
"""What teams state of costs and training data. Nobody checks it, and it ranks nothing."""

MEASURED = (
    EntryColumn(
        "measured_latency_ms",
        "Query latency, measured",
        _measured("query_latency_ms"),
        "Mean wall-clock time per query, measured by the organisers. A program that reads and "
        "writes files counts from its start to its end.",
        "number",
        why=_why_not_measured,
        unit="ms",
        axis="ms per query, measured",
        caveat=", each measured by the organisers",
    ),
    EntryColumn(
        "measured_processor_s",
        "Processor time, measured",
        _measured("processor_seconds"),
        "Processor time for all queries, measured by the organisers.",
        "number",
        why=_why_not_measured,
        unit="s",
    ),
    EntryColumn(
        "measured_memory_mib",
        "Memory, measured",
        _measured("memory_mib"),
        "Largest memory in use, measured by the organisers.",
        "number",
        why=_why_not_measured,
        unit="MiB",
    ),
    EntryColumn(
        "measured_energy_kwh",
        "Energy, measured",
        _measured("energy_kwh"),
        "Energy that the machine used meanwhile, measured by the organisers.",
        "number",
        why=_why_not_measured,
        unit="kWh",
    ),
    EntryColumn(
        "measured_on",
        "Measured on",
        _measured("machine"),
        "Machine on which the organisers ran the program.",
        why=_why_not_measured,
    ),
)
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
        return EntryCell(value=value, text=cut(value, _MOST_TEXT), whole=value)
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
        return day_words(date.fromisoformat(value)) if column.kind == "day" else value
    return f"{Decimal(repr(value)).normalize():,f} {column.unit}".strip()


def cost_columns(rows: Sequence[Row]) -> tuple[EntryColumn, ...]:
    """The columns of `COSTS` that have something in them."""
    return tuple(c for c in COSTS if any(c.of(row) is not None for row in rows))


def _short(number: Decimal) -> str:
    """Three digits: `0`, `0.0123`, `12.5`, `4,096`, `503k`, `110M`, `7B`."""
    if number < _FROM:
        places = 0 if number >= 10**_DIGITS else _DIGITS - 1 - max(number.adjusted(), -_FROM)
        shown = round(number, places) if places else number.to_integral_value()
        return f"{shown.normalize():,f}"
    rounded = round(number, _DIGITS - 1 - number.adjusted())
    unit, letter = next((unit, letter) for unit, letter in _UNITS if rounded >= unit)
    return f"{(rounded / unit).normalize():,f}{letter}"
