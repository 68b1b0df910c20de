"""The report on a campaign of judging, as one page and as files.

It holds judgments, texts and scores of a campaign, so it is as private as that. The page needs no
other file and no network.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from heldout.answers.files import (
    facts_markdown,
    missing_markdown,
    plain_markdown,
    render_alone,
    table_csv,
)
from heldout.answers.table import to_latex, to_markdown
from heldout.answers.text import clean
from heldout.charts.svg import stand_alone
from heldout.judging.studies.examples import Example
from heldout.judging.studies.report import Section


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
        "index.html": render_alone(
            "judging_report.html",
            top=top,
            made=[one for one in sections if not one.why_not],
            left_out=[one for one in sections if one.why_not],
        ),
        "report.md": _markdown(top, sections),
        "report.json": _json(top, sections),
    }
    for section in sections:
        for number, table in enumerate(section.answer.tables, start=1):
            files[f"tables/{section.name}-{number}.csv"] = table_csv(table)
            files[f"tables/{section.name}-{number}.tex"] = to_latex(table).encode()
        for number, one in enumerate(section.drawings, start=1):
            chart = stand_alone(one.chart, title=clean(one.shows))
            files[_chart_name(section, number)] = chart.encode()
    return files


def _chart_name(section: Section, number: int) -> str:
    return f"charts/{section.name}-{number}.svg"


def _json(top: Top, sections: Sequence[Section]) -> bytes:
    found = {
        "name": top.name,
        "sections": {
            one.name: {"why": one.why_not} if one.why_not else one.answer.document
            for one in sections
        },
    }
    return msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n"


def _markdown(top: Top, sections: Sequence[Section]) -> bytes:
    parts = [f"# {plain_markdown(top.name)}: report on judging\n\n{plain_markdown(top.words)}\n"]
    for section in sections:
        if section.why_not:
            continue
        study = f" ({section.study})" if section.study else ""
        parts.append(f"## {plain_markdown(section.title)}{study}\n")
        parts.append(f"{plain_markdown(section.answer.answer)}\n")
        parts += filter(None, [facts_markdown(section.answer.summary)])
        parts += map(_example, section.examples)
        parts += [
            f"![{plain_markdown(one.shows)}]({_chart_name(section, number)})\n"
            for number, one in enumerate(section.drawings, start=1)
        ]
        parts += map(to_markdown, section.answer.tables)
    reasons = [(one.title, one.why_not) for one in sections if one.why_not]
    parts += filter(None, [missing_markdown(reasons)])
    return "\n".join(parts).encode()


def _example(one: Example) -> str:
    passages = "\n".join(
        f"{number}. {plain_markdown(shown.doc)}{', known answer' if shown.known else ''}: "
        f"{plain_markdown(shown.text)}"
        for number, shown in enumerate((one.first, one.second), start=1)
    )
    return f"**{plain_markdown(one.question or one.query)}** {one.outcome}.\n\n{passages}\n"
