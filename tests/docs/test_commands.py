"""docs/reference/commands.md is the program's own help."""

import runpy
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_the_page_of_commands_is_made_from_the_program() -> None:
    tool = runpy.run_path(str(REPOSITORY / "tools" / "commands.py"))
    page = (REPOSITORY / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert page == tool["describe_commands"](), (
        "run: python tools/commands.py > docs/reference/commands.md"
    )
