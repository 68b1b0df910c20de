"""Texts of answers: sentences, facts and tables, as the rooms have them in `templates/`.

A template has a block for each text. A line that is indented goes on with the one above. In the
block of a table `#` begins its title, `-` a note and `>` a sentence on its method; columns are
lines of `form: name`, or `form digits: name`.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

from heldout.answers.sentence import name_one, name_some
from heldout.answers.table import Column, Form, Row, Table, format_p
from heldout.errors import plural

if TYPE_CHECKING:
    import jinja2

_ENTER = "\ue000"
"""Stands for the end of a line in somebody's name, which begins no note."""

_FOLDERS = ("analyses/templates", "judging/templates", "survivorship/templates")
"""Where texts lie; a template's name is there once. No room is imported for them."""

_COLUMN = re.compile(r"(text|count|score|difference|share|p)(?: (\d))?: ?(.*)", re.DOTALL)


def write(name: str, **given: object) -> str:
    """Write a text, its lines in a row.

    Args:
        name: `template.block`.
        given: what the block reads.
    """
    return " ".join(_fill(name, given))


def write_facts(name: str, **given: object) -> tuple[tuple[str, str], ...]:
    """Write lines of `name: what there is to say`, as `write`."""
    facts = (line.partition(":") for line in _fill(name, given))
    return tuple((fact, text.removeprefix(" ")) for fact, _, text in facts)


def write_table(
    name: str, rows: Sequence[Row], *, first: Sequence[int] = (), **given: object
) -> Table:
    """Write a table, as `write`.

    Args:
        name: as there.
        rows: its rows.
        first: those to show where there is not room for all.
        given: as there.
    """
    texts: dict[str, list[str]] = {"# ": [], "- ": [], "> ": []}
    shown = []
    for line in _fill(name, given):
        if line[:2] in texts:
            texts[line[:2]].append(line[2:])
        elif found := _COLUMN.fullmatch(line):
            form, digits, heading = found.groups()
            shown.append(Column(name=heading, form=cast("Form", form), decimals=int(digits or 4)))
        else:
            raise ValueError(line)
    (title,), notes, method = texts.values()
    return Table(
        title=title,
        columns=tuple(shown),
        rows=rows,
        notes=tuple(notes),
        method=tuple(method),
        first=first,
    )


def _fill(name: str, given: dict[str, object]) -> list[str]:
    """The lines of a block, those that go on joined to the one above."""
    room, _, block = name.partition(".")
    template = _load().get_template(f"{room}.txt")
    text = "".join(template.blocks[block](template.new_context(given)))
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("  ") and lines:
            lines[-1] += f" {line.strip()}"
        elif line.strip():
            lines.append(line)
    return [line.replace(_ENTER, "\n") for line in lines]


@cache
def _load() -> "jinja2.Environment":
    import jinja2  # noqa: PLC0415 - most calls write nothing

    environment = jinja2.Environment(  # noqa: S701 - for `Table` and `Answer`, which guard what they print
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("heldout", one) for one in _FOLDERS]),
        finalize=lambda value: str(value).replace("\n", _ENTER),
        undefined=jinja2.StrictUndefined,
        line_statement_prefix="%",
    )
    environment.filters |= {"f": format, "name": name_one, "names": name_some, "p": format_p}
    environment.globals |= {"plural": plural, "write": write}
    return environment
