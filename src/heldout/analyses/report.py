"""The organisers' own report: every analysis in one folder, as a page, as Markdown, and as files.

It holds true scores and the reserve views, so it belongs to no public folder. The page needs no
other file and no network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from heldout.analyses.chapters import Chapter, Findings
from heldout.answers.files import facts_markdown, plain_markdown, render_alone, table_csv
from heldout.answers.table import to_markdown
from heldout.board.site.words import clean
from heldout.charts.svg import stand_alone


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
        "index.html": render_alone("report.html", heading=heading, chapters=chapters),
        "report.md": _markdown(heading, chapters),
    }
    for chapter in chapters:
        if chapter.found is not None:
            files |= _files(chapter.name, chapter.found)
    return files


def _files(name: str, found: Findings) -> dict[str, bytes]:
    files = {
        f"tables/{name}-{number}.csv": table_csv(table)
        for number, table in enumerate(found.tables, start=1)
    }
    if found.chart is not None:
        files[_chart_name(name)] = stand_alone(found.chart, title=clean(found.shows)).encode()
    return files


def _chart_name(name: str) -> str:
    return f"charts/{name}.svg"


def _markdown(heading: Heading, chapters: Sequence[Chapter]) -> bytes:
    parts = [f"# {plain_markdown(heading.board)}\n\n{heading.words}\n"]
    for chapter in chapters:
        parts.append(f"## {plain_markdown(chapter.title)}\n")
        if chapter.found is None:
            parts.append(f"Not made: {plain_markdown(chapter.why_not)}.\n")
            continue
        parts += filter(None, [facts_markdown(chapter.found.facts)])
        if chapter.found.chart is not None:
            parts.append(f"![{plain_markdown(chapter.found.shows)}]({_chart_name(chapter.name)})\n")
        parts += map(to_markdown, chapter.found.tables)
    return "\n".join(parts).encode()
