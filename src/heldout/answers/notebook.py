"""Answers as a notebook shows them: HTML with tables and the picture."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from heldout.answers.table import Table, format_cells
from heldout.errors import plural

if TYPE_CHECKING:
    from heldout.charts.svg import Chart

_SHOWN = 40
_NARROW = 48
"""Characters of a cell that stays on one line."""

# Styles stand in the elements: a notebook removes style sheets. No colour is named, so that the
# notebook's theme gives them all.
_SCROLL = "overflow-x:auto;margin:0 0 .2em"
_TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0"
_TITLE = "font-weight:600;margin:.8em 0 .2em"
_CELL = "padding:.15em 1em .15em 0;text-align:{};vertical-align:top;white-space:{}"
_GRID = "display:grid;grid-template-columns:minmax(4.5em,max-content) 1fr;gap:.15em 1em"
_NOTES = "font-size:smaller;max-width:60em"
_FOLD = '<summary style="cursor:pointer">How this was made</summary>'


def to_html(
    *,
    answer: str = "",
    summary: Sequence[tuple[str, str]] = (),
    tables: Sequence[Table] = (),
    chart: "Chart | None" = None,
    title: str = "",
) -> str:
    """HTML without scripts, in the colours of the notebook.

    Args:
        answer: what was found, in a sentence.
        summary: lines of `name      what there is to say`.
        tables: long ones are cut, and say so; wide ones scroll; their method is folded.
        chart: drawn as an image.
        title: what the image shows.
    """
    parts = [f"<p><strong>{escape(answer)}</strong></p>"] if answer else []
    if summary:
        parts.append(f'<div style="{_GRID}">{_lines(summary)}</div>')
    if chart is not None:
        parts.append(_image(chart, title))
    parts += map(_table, tables)
    return f'<div class="heldout" style="max-width:100%">{"".join(parts)}</div>'


def _lines(summary: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f'<span style="opacity:.75">{escape(name)}</span>'
        f'<span style="min-width:0">{escape(text)}</span>'
        for name, text in summary
    )


def _image(chart: "Chart", title: str) -> str:
    from heldout.charts.svg import stand_alone  # noqa: PLC0415 - most answers are shown without

    data = b64encode(stand_alone(chart, title=title).encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    style = "max-width:100%;display:block;margin:.6em 0"
    return f'<img alt="{escape(title)}" style="{style}" src="{source}">'


def _table(table: Table) -> str:
    sides = ["left" if column.form == "text" else "right" for column in table.columns]
    head = "".join(
        f'<th scope="col" style="{_CELL.format(side, "nowrap")}">{escape(column.name)}</th>'
        for side, column in zip(sides, table.columns, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(_cell(side, cell) for side, cell in zip(sides, row, strict=True)) + "</tr>"
        for row in format_cells(table)[:_SHOWN]
    )
    left = len(table.rows) - _SHOWN
    more = f"<div>{plural(left, 'more row')}: to_pandas() has all</div>" if left > 0 else ""
    return (
        f'<div style="{_TITLE}">{escape(table.title)}</div><div style="{_SCROLL}">'
        f'<table style="{_TABLE}" aria-label="{escape(table.title)}">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}</div>"
        + _notes(table.notes)
        + _method(table.method)
    )


def _cell(side: str, text: str) -> str:
    long = len(text) > _NARROW
    style = (
        _CELL.format(side, "normal") + ";min-width:16em" if long else _CELL.format(side, "nowrap")
    )
    return f'<td style="{style}">{escape(text)}</td>'


def _notes(notes: Sequence[str]) -> str:
    """Return what stands below a table."""
    lines = "".join(f'<div style="margin:.2em 0">{escape(note)}</div>' for note in notes)
    return f'<div style="{_NOTES}">{lines}</div>' if lines else ""


def _method(method: Sequence[str]) -> str:
    """Return how a table was made: folded, opened by a click."""
    if not method:
        return ""
    return f'<details style="{_NOTES}">{_FOLD}{_notes(method)}</details>'
