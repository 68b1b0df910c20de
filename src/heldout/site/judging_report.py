"""The report on a campaign of judging, as one page and as files.

It holds judgments, texts and scores of a campaign, so it is as private as that. The page needs no
other file and no network.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import msgspec

from heldout.charts.extras import need
from heldout.charts.files import stand_alone
from heldout.charts.svg import draw
from heldout.preferences.csv_files import defuse
from heldout.report.judging.examples import Example, tell
from heldout.report.judging.section import Section
from heldout.report.table import Table, format_cells, to_latex, to_markdown
from heldout.site.wording import clean

__all__ = ["Top", "render_judging_report"]

_MARKS = r"\`*_|<>[]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """What stands above the report.

    Attributes:
        name: of the campaign, or of the file of judgments.
        words: one line on what it rests on.
        language: of the texts, as in HTML.
    """

    name: str
    words: str
    language: str = "en"


def render_judging_report(top: Top, sections: Sequence[Section]) -> dict[str, bytes]:
    """Every file of the report's folder.

    Args:
        top: what it is of.
        sections: in the order of the page.

    Returns:
        `index.html`, `report.md`, `report.json`, `tables/*.csv` and `*.tex`, `charts/*.svg`:
        path -> bytes.

    Raises:
        SetupError: the `site` extra is not installed.
    """
    files = {
        "index.html": _page(top, sections),
        "report.md": _markdown(top, sections),
        "report.json": _json(top, sections),
    }
    for section in sections:
        for number, table in enumerate(section.tables, start=1):
            files[f"tables/{section.name}-{number}.csv"] = _csv(table)
            files[f"tables/{section.name}-{number}.tex"] = to_latex(table).encode()
        for number, one in enumerate(section.drawings, start=1):
            chart = stand_alone(one.chart, title=clean(one.shows))
            files[_chart_name(section, number)] = chart.encode()
    return files


def _chart_name(section: Section, number: int) -> str:
    return f"charts/{section.name}-{number}.svg"


def _csv(table: Table) -> bytes:
    """Numbers with all their digits, what is undefined empty; no text starts a formula."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow([defuse(column.name) for column in table.columns])
    for row in table.rows:
        writer.writerow([defuse(clean(c)) if isinstance(c, str) else c for c in row])
    return buffer.getvalue().encode()


def _json(top: Top, sections: Sequence[Section]) -> bytes:
    found = {
        "name": top.name,
        "sections": {
            one.name: one.value if one.value is not None else {"why": one.why_not}
            for one in sections
        },
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _markdown(top: Top, sections: Sequence[Section]) -> bytes:
    parts = [f"# {_plain(top.name)}: report on judging\n\n{_plain(top.words)}\n"]
    for section in sections:
        study = f" ({section.study})" if section.study else ""
        parts.append(f"## {_plain(section.title)}{study}\n")
        if section.why_not:
            parts.append(f"Not made: {_plain(section.why_not)}.\n")
            continue
        facts = [f"- {_plain(name)}: {_plain(text)}" for name, text in section.facts]
        parts += ["\n".join(facts) + "\n"] if facts else []
        parts += map(_example, section.examples)
        parts += [
            f"![{_plain(one.shows)}]({_chart_name(section, number)})\n"
            for number, one in enumerate(section.drawings, start=1)
        ]
        parts += map(to_markdown, section.tables)
    return "\n".join(parts).encode()


def _example(one: Example) -> str:
    passages = "\n".join(
        f"{number}. {_plain(shown.doc)}{', known answer' if shown.known else ''}: "
        f"{_plain(shown.text)}"
        for number, shown in enumerate((one.first, one.second), start=1)
    )
    return f"**{_plain(one.question or one.query)}** {tell(one)}.\n\n{passages}\n"


def _plain(text: str) -> str:
    return "".join(f"\\{char}" if char in _MARKS else char for char in clean(text))


def _page(top: Top, sections: Sequence[Section]) -> bytes:
    environment = need("jinja2").Environment(
        autoescape=True,
        undefined=need("jinja2").StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["clean"] = clean
    text: str = environment.from_string(_read("templates/judging_report.html")).render(
        top=top,
        sections=sections,
        style=_read("static/heldout.css"),
        draw=draw,
        cells=format_cells,
        tell=tell,
    )
    return text.encode()


def _read(path: str) -> str:
    return resources.files("heldout.site").joinpath(path).read_text("utf-8")
