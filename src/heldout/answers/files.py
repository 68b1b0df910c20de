"""What the two private reports are written with: CSV of a table, plain Markdown, a page alone."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

from heldout.answers.table import Table, format_cells
from heldout.answers.text import clean
from heldout.charts.plot import inline
from heldout.files.csv import defuse, format_csv
from heldout.web.pages import load_templates

_MARKS = r"\`*_|<>[]"


def table_csv(table: Table) -> bytes:
    """Numbers with all their digits, what is undefined empty; no text starts a formula."""
    names = [defuse(column.name) for column in table.columns]
    return format_csv(
        names, ([defuse(clean(c)) if isinstance(c, str) else c for c in row] for row in table.rows)
    )


def plain_markdown(text: str) -> str:
    """Somebody's text as it stands, in Markdown."""
    return "".join(f"\\{char}" if char in _MARKS else char for char in clean(text))


def missing_markdown(reasons: Sequence[tuple[str, str]]) -> str:
    """The last section of a report: what could not be made, and why; "" where there is nothing."""
    return f"## What is not in this report?\n\n{facts_markdown(reasons)}" if reasons else ""


def facts_markdown(facts: Sequence[tuple[str, str]]) -> str:
    """Facts as a list; one without a name stands below the one that it goes on with."""
    return "".join(
        f"- {plain_markdown(name)}: {plain_markdown(text)}\n"
        if name
        else f"  - {plain_markdown(text)}\n"
        for name, text in facts
    )


def render_alone(template: str, **values: Any) -> bytes:
    """A page that needs no other file: style and charts are in it.

    Args:
        template: its file name among the site's templates.
        values: what it tells.

    Raises:
        ImportError: Jinja2 is not installed.
    """
    page = load_templates("heldout.answers", clean=clean).get_template(template)
    static = resources.files("heldout.answers") / "static"
    style = "".join((static / name).read_text("utf-8") for name in ("heldout.css", "report.css"))
    text: str = page.render(style=style, draw=inline, cells=format_cells, **values)
    return text.encode()
