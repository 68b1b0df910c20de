"""The standings as CSV and JSON: the rows of the page, for programs and spreadsheets."""

import csv
import io
from datetime import UTC, datetime
from typing import Any

import msgspec

from heldout.board.rules.spec import BoardSpec
from heldout.board.site.columns import COLUMNS, ENTRY, RESULT, STATED
from heldout.board.site.finals import final_cells, final_json
from heldout.board.site.rows import ViewColumn, make_columns, public_rows, released
from heldout.board.site.words import clean
from heldout.board.standings.standings import Row, Standings
from heldout.files.csv import defuse

_SCHEMA = 1
"""Of leaderboard.json, and of the files of seasons and views, which have the same shape."""


def format_csv(standings: Standings, spec: BoardSpec) -> bytes:
    """The rows as CSV by RFC 4180, UTF-8, with CRLF; no cell starts a formula.

    The scores stand after what says which entry it is, their spreads at the end. After the opening
    of a final its scores are the last column.
    """
    views = make_columns(spec)
    final = final_cells(standings)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    head = [
        *(column.key for column in ENTRY),
        *(f"{view.key} (ranks nobody)" if view.ranks_nobody else view.key for view in views),
        *(column.key for column in (*RESULT, *STATED)),
        *(f"{view.key}_spread" for view in views),
        *([standings.final.view] if standings.final is not None and final else []),
    ]
    writer.writerow(map(defuse, head))
    for row in public_rows(standings):
        cells = [
            *(_text(column.of(row)) for column in ENTRY),
            *(released(row.scores, view.key) for view in views),
            *(_text(column.of(row)) for column in (*RESULT, *STATED)),
            *(released(row.spreads, view.key) for view in views),
            *([final.get(row.id, "")] if final else []),
        ]
        writer.writerow(map(defuse, cells))
    return buffer.getvalue().encode()


def format_json(standings: Standings, spec: BoardSpec) -> bytes:
    """The standings as one JSON document; scores are numbers with the released digits.

    What is undefined is `null`, and `why` beside it says why.
    """
    views = make_columns(spec)
    informing = {view.key: view.use for view in views if view.ranks_nobody}
    document = {
        "schema": _SCHEMA,
        "board": clean(standings.board),
        "as_of": standings.as_of.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **({"rank_nobody": informing} if informing else {}),
        "rows": [
            _json_row(row, views, over=_is_over(row, spec, standings.as_of))
            for row in public_rows(standings)
        ],
        **final_json(standings, spec),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _is_over(row: Row, spec: BoardSpec, now: datetime) -> bool:
    """Whether the last day of the board, or of an entry's season, has passed."""
    last = spec.last_day(row.received.date())
    return last is not None and now.date() > last


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _json_row(row: Row, views: tuple[ViewColumn, ...], *, over: bool) -> dict[str, Any]:
    scored = [view for view in views if view.key in row.spreads]
    return {
        **{column.key: column.of(row) for column in ENTRY},
        "scores": {view.key: _number(released(row.scores, view.key)) for view in views},
        "spreads": {view.key: _number(released(row.spreads, view.key)) for view in scored},
        **{column.key: column.of(row) for column in (*RESULT, *STATED)},
        "why": {
            **{column.key: column.why(row) for column in COLUMNS if column.of(row) is None},
            **{
                f"scores.{view.key}": _why_no_score(row, view, over=over)
                for view in views
                if view.key not in row.scores
            },
        },
    }


def _number(text: str) -> msgspec.Raw | None:
    """The released digits as a JSON number, trailing zeros kept."""
    return msgspec.Raw(text.encode()) if text else None


def _why_no_score(row: Row, view: ViewColumn, *, over: bool) -> str:
    """Why an entry has no score on a view; `over` is whether its last day has passed."""
    if view.key in row.unlisted:
        return row.unlisted[view.key]
    if view.final and not over:
        return "published after the last day"
    if view.final:
        return "it was not scored on this view; heldout correct scores it"
    nothing = view.primary or not row.scores  # before the day on which all scores are published
    withheld = row.not_above.get(view.key, "") or (row.unranked if nothing else "")
    return withheld or ("the old board gave none" if row.imported else "not scored on this view")
