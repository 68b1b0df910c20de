"""Texts of analyses: a stranger's name stays where it stands, and no text is there for nothing."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from heldout import analyses, judging, survivorship
from heldout.answers.texts import write_table


def test_a_name_with_ends_of_lines_begins_no_note() -> None:
    name = "a\n- note\n> method\n# title: {{ 1 }}"
    table = write_table("facets.kinds", (), facet=name, least=2)
    assert table.title == f"Each kind of query by {name}"
    assert (len(table.columns), len(table.notes), len(table.method)) == (3, 1, 1)


@pytest.mark.parametrize("room", [analyses, judging, survivorship])
def test_every_text_is_used(room: ModuleType) -> None:
    code = Path(str(room.__file__)).parent
    blocks = {
        f"{path.stem}.{block}"
        for path in (code / "templates").glob("*.txt")
        for block in re.findall(r"^% block (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    sources = [*code.rglob("*.py"), *(code / "templates").glob("*.txt")]
    used = re.findall(r'"(\w+\.\w+)"', "".join(path.read_text("utf-8") for path in sources))
    assert blocks <= set(used)
