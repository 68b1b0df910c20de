"""What the two private reports are written with: CSV of a table, plain Markdown, a page alone."""

import csv
import io
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from heldout.answers.table import Table, format_cells
from heldout.answers.text import clean
from heldout.charts.svg import inline
from heldout.files.csv import defuse

_MARKS = r"\`*_|<>[]"


def table_csv(table: Table) -> bytes:
    """Numbers with all their digits, what is undefined empty; no text starts a formula."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([defuse(column.name) for column in table.columns])
    for row in table.rows:
        writer.writerow([defuse(clean(c)) if isinstance(c, str) else c for c in row])
    return buffer.getvalue().encode()


def plain_markdown(text: str) -> str:
    """Somebody's text as it stands, in Markdown."""
    return "".join(f"\\{char}" if char in _MARKS else char for char in clean(text))


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
        SetupError: Jinja2 is not installed.
    """
    page = _environment().get_template(template)
    style = _read("static/heldout.css")
    text: str = page.render(style=style, draw=inline, cells=format_cells, **values)
    return text.encode()


@cache
def _environment() -> Any:
    """The templates, each compiled once for as long as the process lives."""
    import jinja2  # noqa: PLC0415 - most commands make no page

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _read(f"templates/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["clean"] = clean
    return environment


def _read(path: str) -> str:
    return resources.files("heldout.answers").joinpath(path).read_text("utf-8")
