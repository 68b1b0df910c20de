"""Answers as a notebook shows them: HTML with tables and the picture."""

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

from heldout.answers.table import Table, format_cells
from heldout.answers.text import clean
from heldout.errors import plural

if TYPE_CHECKING:
    from heldout.charts.plot import Chart

_SHOWN = 40
_NARROW = 48
"""Characters of a cell that stays on one line."""


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
    from heldout.charts.plot import stand_alone  # noqa: PLC0415 - most answers are shown without
    from heldout.web.pages import load_templates  # noqa: PLC0415 - the same

    drawn = "" if chart is None else stand_alone(chart, title=title)
    page = load_templates("heldout.answers", clean=clean).get_template("notebook.html")
    return page.render(
        answer=answer,
        summary=summary,
        tables=tables,
        image=b64encode(drawn.encode()).decode(),
        title=title,
        cells=format_cells,
        plural=plural,
        most=_SHOWN,
        narrow=_NARROW,
    )
