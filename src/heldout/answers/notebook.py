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
_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5em 0 1em"
_CELL = "padding:.15em .8em .15em 0;text-align:{}"


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
        tables: long ones are cut, and say so.
        chart: drawn as an image.
        title: what the image shows.
    """
    parts = [f"<p><strong>{escape(answer)}</strong></p>"] if answer else []
    if summary:
        lines = "".join(
            f'<div style="display:flex;gap:1em"><span style="min-width:6em;opacity:.7">'
            f"{escape(name)}</span><span>{escape(text)}</span></div>"
            for name, text in summary
        )
        parts.append(f"<div>{lines}</div>")
    if chart is not None:
        parts.append(_image(chart, title))
    parts += map(_table, tables)
    return f'<div class="heldout">{"".join(parts)}</div>'


def _image(chart: "Chart", title: str) -> str:
    from heldout.charts.svg import stand_alone  # noqa: PLC0415 - most answers are shown without

    data = b64encode(stand_alone(chart, title=title).encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return f'<img alt="{escape(title)}" style="max-width:100%" src="{source}">'


def _table(table: Table) -> str:
    sides = ["left" if column.form == "text" else "right" for column in table.columns]
    head = "".join(
        f'<th scope="col" style="{_CELL.format(side)}">{escape(column.name)}</th>'
        for side, column in zip(sides, table.columns, strict=True)
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL.format(side)}">{escape(cell)}</td>'
            for side, cell in zip(sides, row, strict=True)
        )
        + "</tr>"
        for row in format_cells(table)[:_SHOWN]
    )
    left = len(table.rows) - _SHOWN
    notes = [
        *table.notes,
        *([f"{plural(left, 'more row')}: to_pandas() has all"] if left > 0 else []),
    ]
    below = "".join(
        f'<p style="font-size:smaller;margin:.2em 0">{escape(note)}</p>' for note in notes
    )
    caption = f'<caption style="text-align:left;font-weight:600">{escape(table.title)}</caption>'
    return (
        f'<table style="{_STYLE}">{caption}<thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{below}"
    )
