"""The standings as CSV and JSON: the rows of the page, for programs and spreadsheets."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from heldout.board.ranking.standings import Row, Standings
from heldout.board.rules.spec import BoardSpec
from heldout.preferences.csv_files import defuse
from heldout.site.costs import COSTS
from heldout.site.finals import final_cells, final_json
from heldout.site.rows import Column, make_columns, public_rows, released
from heldout.site.wording import clean

__all__ = ["format_csv", "format_json"]

_NO_RANGES = "rank ranges were not computed"


@dataclass(frozen=True, slots=True)
class _Field:
    """A column of the CSV and a key of the JSON."""

    name: str
    of: Callable[[Row], object]


_START = (
    _Field("rank", lambda row: row.rank),
    _Field("id", lambda row: row.id),
    _Field("date", lambda row: row.received.date().isoformat()),
    _Field("team", lambda row: row.team),
    _Field("description", lambda row: row.description),
    _Field("paper", lambda row: row.paper),
    _Field("code", lambda row: row.code),
    _Field("type", lambda row: row.type),
)
"""What comes before the scores; scores and spreads are a column of the CSV for each view."""

_END = (
    _Field("trophy", lambda row: row.trophy),
    _Field("embargoed", lambda row: row.embargoed),
    _Field("baseline", lambda row: row.baseline),
    _Field("rank_low", lambda row: row.rank_low),
    _Field("rank_high", lambda row: row.rank_high),
    *(_Field(column.exported, column.of) for column in COSTS),
)

_SEEDS = _Field("seeds", lambda row: row.seeds)


def format_csv(standings: Standings, spec: BoardSpec) -> bytes:
    """The rows as CSV by RFC 4180, UTF-8, with CRLF; no cell starts a formula.

    After the opening of a final its scores are the last column.
    """
    columns = make_columns(spec)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    end = [field.name for field in (*_END, _SEEDS)]
    spreads = [f"{column.key}_spread" for column in columns]
    keys = [f"{c.key} (ranks nobody)" if c.ranks_nobody else c.key for c in columns]
    head = [*(field.name for field in _START), *keys, *end, *spreads]
    final = final_cells(standings)
    if standings.final is not None and final:
        head.append(standings.final.view)
    writer.writerow(map(defuse, head))
    for row in public_rows(standings):
        more = [final.get(row.id, "")] if final else []
        writer.writerow(map(defuse, [*_cells(row, columns), *more]))
    return buffer.getvalue().encode()


def format_json(standings: Standings, spec: BoardSpec) -> bytes:
    """The standings as one JSON document; scores are numbers with the released digits.

    What is undefined is `null`, and `why` beside it says why.
    """
    columns = make_columns(spec)
    informing = {column.key: column.use for column in columns if column.ranks_nobody}
    document = {
        "board": clean(standings.board),
        "as_of": standings.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"rank_nobody": informing} if informing else {}),
        "rows": [
            _json_row(row, columns, over=_is_over(row, spec, standings.as_of))
            for row in public_rows(standings)
        ],
        **final_json(standings, spec),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _is_over(row: Row, spec: BoardSpec, now: datetime) -> bool:
    """Whether the last day of the board, or of an entry's season, has passed."""
    last = spec.last_day(row.received.date())
    return last is not None and now.date() > last


def _cells(row: Row, columns: tuple[Column, ...]) -> list[str]:
    return [
        *(_text(field.of(row)) for field in _START),
        *(released(row.scores, column.key) for column in columns),
        *(_text(field.of(row)) for field in (*_END, _SEEDS)),
        *(released(row.spreads, column.key) for column in columns),
    ]


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json_row(row: Row, columns: tuple[Column, ...], *, over: bool) -> dict[str, Any]:
    return {
        **{field.name: field.of(row) for field in _START},
        "scores": {column.key: _number(released(row.scores, column.key)) for column in columns},
        _SEEDS.name: _SEEDS.of(row),
        "spreads": {
            column.key: _number(released(row.spreads, column.key))
            for column in columns
            if column.key in row.spreads
        },
        **{field.name: field.of(row) for field in _END},
        "why": _reasons(row, columns, over=over),
    }


def _number(text: str) -> msgspec.Raw | None:
    """The released digits as a JSON number, trailing zeros kept."""
    return msgspec.Raw(text.encode()) if text else None


def _reasons(row: Row, columns: tuple[Column, ...], *, over: bool) -> dict[str, str]:
    why = row.unranked or "a baseline has no rank"
    reasons = {} if row.rank is not None else {"rank": why}
    for column in columns:
        if column.key not in row.scores:
            reasons[f"scores.{column.key}"] = _why_no_score(row, column, over=over)
    if row.rank_low is None or row.rank_high is None:
        reasons["rank_low"] = reasons["rank_high"] = row.unranged or _NO_RANGES
    unsaid = "withheld by an embargo" if row.embargoed else "not stated"
    reasons |= {column.exported: unsaid for column in COSTS if column.of(row) is None}
    return reasons


def _why_no_score(row: Row, column: Column, *, over: bool) -> str:
    """Why an entry has no score on a view; `over` is whether its last day has passed."""
    if column.key in row.unlisted:
        return row.unlisted[column.key]
    if column.final and not over:
        return "published after the last day"
    if column.final:
        return "it was not scored on this view; heldout correct scores it"
    nothing = column.primary or not row.scores  # before the day on which all is told
    withheld = row.not_above.get(column.key, "") or (row.unranked if nothing else "")
    return withheld or ("the old board gave none" if row.imported else "not scored on this view")
