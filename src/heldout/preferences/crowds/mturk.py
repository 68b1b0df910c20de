"""Tasks as Mechanical Turk takes them: a CSV file with a row for each task, and an HTML template.

The template is a fragment without scripts, forms or anything from elsewhere: the platform (or
Turkle, with which it can be tried offline) puts it into its own form and replaces `${left_1}` by
the cell of that name. It does so without escaping, so cells are HTML already: whatever a passage
holds, it is shown as text, starts no formula in a spreadsheet and names no further variable.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template
from typing import get_args

from heldout.errors import InputError, Problem, quote
from heldout.preferences.csv_files import format_csv
from heldout.preferences.judgments import Reason
from heldout.preferences.pool_texts import Texts
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Item, Task

__all__ = ["HitFiles", "cell_html", "hit_cells", "hit_files"]

_SHOWN = 20
_CONTROL = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_ACTIVE = re.compile(r"[=+\-@$%{}\t\r\n]")
_REASONS: Mapping[Reason, str] = {
    "same": "both say the same",
    "neither": "neither answers it",
    "unreadable": "I can't read one of them",
    "language": "I don't know the language",
    "other": "of another reason",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HitFiles:
    """The files for tasks of one size: a project of its own on the platform.

    Attributes:
        items: pairs and tests in each task.
        tasks: how many rows there are.
        rows: the CSV file.
        template: the HTML.
    """

    items: int
    tasks: int
    rows: bytes
    template: bytes


def hit_files(tasks: Iterable[Task], texts: Texts, settings: Settings) -> tuple[HitFiles, ...]:
    """CSV and template for each size of task, the largest first.

    Args:
        tasks: in the order of the rows.
        texts: of all that they show.
        settings: what workers are told.

    Raises:
        InputError: code `text-missing`: a task shows a query or passage without a text.
    """
    sizes: defaultdict[int, list[Task]] = defaultdict(list)
    for task in tasks:
        sizes[len(task.items)].append(task)
    _check_texts((item for found in sizes.values() for task in found for item in task.items), texts)
    return tuple(
        HitFiles(
            items=size,
            tasks=len(found),
            rows=format_csv(
                _header(size), (list(hit_cells(task, texts).values()) for task in found)
            ),
            template=_template(size, settings),
        )
        for size, found in sorted(sizes.items(), reverse=True)
    )


def hit_cells(task: Task, texts: Texts) -> dict[str, str]:
    """The row of a task: `task`, then `query_1`, `left_1`, `right_1` and so on.

    A text that is not there is empty.
    """
    cells = [task.task]
    for item in task.items:
        cells.append(cell_html(texts.queries.get(item.query, "")))
        cells += (cell_html(texts.docs.get(doc, "")) for doc in (item.left, item.right))
    return dict(zip(_header(len(task.items)), cells, strict=True))


def cell_html(text: str) -> str:
    """A text as HTML in ASCII on one line, in which no character means anything to anybody else.

    Control characters, which no page shows, become U+FFFD; a line's end is kept.
    """
    plain = _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))
    safe = _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", escape(plain))
    return safe.encode("ascii", "xmlcharrefreplace").decode()


def _header(items: int) -> list[str]:
    names = ("query", "left", "right")
    return ["task", *(f"{name}_{place}" for place in range(1, items + 1) for name in names)]


def _check_texts(items: Iterable[Item], texts: Texts) -> None:
    shown = list(items)
    missing = {one.query for one in shown if not texts.queries.get(one.query)}
    missing |= {doc for one in shown for doc in (one.left, one.right) if not texts.docs.get(doc)}
    if missing:
        raise InputError(
            [
                Problem(
                    code="text-missing",
                    path="pool.jsonl",
                    found=f"no text of {quote(name)}, which a task shows",
                    expected="a text for each query and passage",
                )
                for name in sorted(missing)[:_SHOWN]
            ],
            counts={"text-missing": len(missing)},
        )


def _template(items: int, settings: Settings) -> bytes:
    page = _read("mturk.html")
    paragraphs = (part.strip() for part in settings.consent.split("\n\n"))
    ending = [f"Approval: {settings.ethics}"] if settings.ethics else []
    ending += [f"Questions about the study: {settings.contact}"] if settings.contact else []
    told = "\n".join(f"<p>{cell_html(part)}</p>" for part in (*paragraphs, *ending) if part)
    return page.substitute(
        task="${task}",
        name=cell_html(settings.name),
        consent=told,
        items="\n".join(_sections(items, settings)),
    ).encode()


def _sections(items: int, settings: Settings) -> Iterator[str]:
    section = _read("mturk-item.html")
    reasons = "\n".join(
        f'<option value="{reason}">{cell_html(_REASONS[reason])}</option>'
        for reason in get_args(Reason)
    )
    for place in range(1, items + 1):
        yield section.substitute(
            place=place,
            items=items,
            query=f"${{query_{place}}}",
            left=f"${{left_{place}}}",
            right=f"${{right_{place}}}",
            question=cell_html(settings.question),
            language=cell_html(settings.language),
            reasons=reasons,
        ).rstrip("\n")


def _read(name: str) -> Template:
    place = files("heldout.preferences") / "templates" / name
    return Template(place.read_text("utf-8"))
