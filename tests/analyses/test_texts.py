"""Texts of analyses: a stranger's name stays where it stands, and no text is there for nothing."""

import re
from pathlib import Path

from heldout.analyses import texts
from heldout.analyses.texts import write_table

CODE = Path(texts.__file__).parent


def test_a_name_with_ends_of_lines_begins_no_note() -> None:
    name = "a\n- note\n> method\n# title: {{ 1 }}"
    table = write_table("facets.kinds", (), facet=name, least=2)
    assert table.title == f"Each kind of query by {name}"
    assert (len(table.columns), len(table.notes), len(table.method)) == (3, 1, 1)


def test_every_text_is_used() -> None:
    blocks = {
        f"{path.stem}.{block}"
        for path in (CODE / "templates").glob("*.txt")
        for block in re.findall(r"^% block (\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    sources = [*CODE.rglob("*.py"), *(CODE / "templates").glob("*.txt")]
    used = re.findall(r'"(\w+\.\w+)"', "".join(path.read_text("utf-8") for path in sources))
    assert blocks <= set(used)
