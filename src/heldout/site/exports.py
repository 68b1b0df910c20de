"""The standings as CSV and JSON: the rows of the page, for programs and spreadsheets."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

import msgspec

from heldout.board.log.efficiency import Efficiency
from heldout.board.ranking.standings import Row, Standings
from heldout.board.rules.spec import BoardSpec
from heldout.preferences.csv_files import defuse
from heldout.site.rows import Column, make_columns, public_rows, released
from heldout.site.wording import clean

__all__ = ["format_csv", "format_json"]

_NO_RANGES = "rank ranges were not computed"


def format_csv(standings: Standings, spec: BoardSpec) -> bytes:
    """The rows as CSV by RFC 4180, UTF-8, with CRLF; no cell starts a formula."""
    columns = make_columns(spec)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    start = ["rank", "id", "date", "team", "description", "paper", "code", "type"]
    end = ["trophy", "embargoed", "baseline", "rank_low", "rank_high", "parameters", "latency_ms"]
    end += ["seeds", *(f"{c.key}_spread" for c in columns)]
    writer.writerow(map(defuse, [*start, *(c.key for c in columns), *end]))
    for row in public_rows(standings):
        writer.writerow(map(defuse, _cells(row, columns)))
    return buffer.getvalue().encode()


def format_json(standings: Standings, spec: BoardSpec) -> bytes:
    """The standings as one JSON document; scores are numbers with the released digits.

    What is undefined is `null`, and `why` beside it says why.
    """
    columns = make_columns(spec)
    document = {
        "board": clean(standings.board),
        "as_of": standings.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "rows": [
            _json_row(row, columns, over=_is_over(row, spec, standings.as_of))
            for row in public_rows(standings)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _is_over(row: Row, spec: BoardSpec, now: datetime) -> bool:
    """Whether the last day of the board, or of an entry's season, has passed."""
    last = spec.last_day(row.received.date())
    return last is not None and now.date() > last


def _cells(row: Row, columns: tuple[Column, ...]) -> list[str]:
    costs = row.efficiency or Efficiency()
    return [
        _text(row.rank),
        row.id,
        row.received.date().isoformat(),
        row.team,
        row.description,
        row.paper,
        row.code,
        row.type,
        *(released(row.scores, column.key) for column in columns),
        str(row.trophy).lower(),
        str(row.embargoed).lower(),
        str(row.baseline).lower(),
        _text(row.rank_low),
        _text(row.rank_high),
        _text(costs.parameters),
        _text(costs.query_latency_ms),
        str(row.seeds),
        *(released(row.spreads, column.key) for column in columns),
    ]


def _text(number: float | None) -> str:
    return "" if number is None else str(number)


def _json_row(row: Row, columns: tuple[Column, ...], *, over: bool) -> dict[str, Any]:
    costs = row.efficiency or Efficiency()
    return {
        "rank": row.rank,
        "id": row.id,
        "date": row.received.date().isoformat(),
        "team": row.team,
        "description": row.description,
        "paper": row.paper,
        "code": row.code,
        "type": row.type,
        "scores": {column.key: _number(released(row.scores, column.key)) for column in columns},
        "seeds": row.seeds,
        "spreads": {
            column.key: _number(released(row.spreads, column.key))
            for column in columns
            if column.key in row.spreads
        },
        "trophy": row.trophy,
        "embargoed": row.embargoed,
        "baseline": row.baseline,
        "rank_low": row.rank_low,
        "rank_high": row.rank_high,
        "parameters": costs.parameters,
        "latency_ms": costs.query_latency_ms,
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
    costs = row.efficiency or Efficiency()
    unsaid = "withheld by an embargo" if row.embargoed else "not stated"
    stated = {"parameters": costs.parameters, "latency_ms": costs.query_latency_ms}
    reasons |= {key: unsaid for key, cost in stated.items() if cost is None}
    return reasons


def _why_no_score(row: Row, column: Column, *, over: bool) -> str:
    """Why an entry has no score on a view; `over` is whether its last day has passed."""
    if column.key in row.unlisted:
        return row.unlisted[column.key]
    if column.final and not over:
        return "told after the last day"
    if column.final:
        return "it was not scored on this view; heldout correct scores it"
    nothing = column.primary or not row.scores  # before the day on which all is told
    withheld = row.not_above.get(column.key, "") or (row.unranked if nothing else "")
    return withheld or ("the old board gave none" if row.imported else "not scored on this view")
