"""The organisers' own report: every analysis in one folder, as a page, as Markdown, and as files.

It holds true scores and the reserve views, so it belongs to no public folder. The page needs no
other file and no network.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources

from heldout.charts.extras import need
from heldout.charts.files import stand_alone
from heldout.charts.svg import draw
from heldout.preferences.csv_files import defuse
from heldout.report.chapters import Chapter, Findings
from heldout.report.table import Table, format_cells, to_markdown
from heldout.site.wording import clean

__all__ = ["Heading", "render_report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What stands above the report.

    Attributes:
        board: its name.
        entries: how many were analysed.
        as_of: the moment, UTC.
        seed: of all draws.
    """

    board: str
    entries: int
    as_of: datetime
    seed: int

    @property
    def words(self) -> str:
        """One line on what it rests on."""
        return (
            f"{self.entries:,} entries, as of {self.as_of:%Y-%m-%d %H:%M} UTC; seed {self.seed}. "
            "Private: it holds true scores, also of views that are never shown."
        )


def render_report(heading: Heading, chapters: Sequence[Chapter]) -> dict[str, bytes]:
    """Every file of the report's folder.

    Args:
        heading: what it is of.
        chapters: in the order of the page.

    Returns:
        `index.html`, `report.md`, `tables/*.csv`, `charts/*.svg`: path -> bytes.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    files = {
        "index.html": _page(heading, chapters),
        "report.md": _markdown(heading, chapters),
    }
    for chapter in chapters:
        if chapter.found is not None:
            files |= _files(chapter.name, chapter.found)
    return files


def _files(name: str, found: Findings) -> dict[str, bytes]:
    files = {
        f"tables/{name}-{number}.csv": _csv(table)
        for number, table in enumerate(found.tables, start=1)
    }
    if found.chart is not None:
        files[_chart_name(name)] = stand_alone(found.chart, title=clean(found.shows)).encode()
    return files


def _chart_name(name: str) -> str:
    return f"charts/{name}.svg"


def _csv(table: Table) -> bytes:
    """Numbers with all their digits, what is undefined empty; no text starts a formula."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([defuse(column.name) for column in table.columns])
    for row in table.rows:
        writer.writerow([defuse(clean(c)) if isinstance(c, str) else c for c in row])
    return buffer.getvalue().encode()


def _markdown(heading: Heading, chapters: Sequence[Chapter]) -> bytes:
    parts = [f"# {_plain(heading.board)}\n\n{heading.words}\n"]
    for chapter in chapters:
        parts.append(f"## {_plain(chapter.title)}\n")
        if chapter.found is None:
            parts.append(f"Not made: {_plain(chapter.why_not)}.\n")
            continue
        facts = [f"- {_plain(name)}: {_plain(text)}" for name, text in chapter.found.facts]
        parts += ["\n".join(facts) + "\n"] if facts else []
        if chapter.found.chart is not None:
            parts.append(f"![{_plain(chapter.found.shows)}]({_chart_name(chapter.name)})\n")
        parts += map(to_markdown, chapter.found.tables)
    return "\n".join(parts).encode()


def _plain(text: str) -> str:
    return "".join(f"\\{char}" if char in r"\`*_|<>[]" else char for char in clean(text))


def _page(heading: Heading, chapters: Sequence[Chapter]) -> bytes:
    environment = need("jinja2").Environment(
        autoescape=True,
        undefined=need("jinja2").StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["clean"] = clean
    text: str = environment.from_string(_read("templates/report.html")).render(
        heading=heading,
        chapters=chapters,
        style=_read("static/heldout.css"),
        draw=draw,
        cells=format_cells,
    )
    return text.encode()


def _read(path: str) -> str:
    return resources.files("heldout.site").joinpath(path).read_text("utf-8")
