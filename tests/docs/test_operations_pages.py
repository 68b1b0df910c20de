"""The pages for operators: every command in them is one, with options that it has."""

import re
import shlex
from pathlib import Path

import click
import pytest

from heldout.cli.program import main

ROOT = Path(__file__).parents[2] / "docs/how-to"
PAGES = ("when-something-breaks.md", "run-a-server.md")


def commands(page: str) -> list[str]:
    """The calls of heldout in the page's blocks and in its backquotes."""
    text = (ROOT / page).read_text("utf-8")
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    lines = re.findall(r"^(?:\$ )?(heldout .*)$", blocks.replace("\\\n", " "), re.MULTILINE)
    return [*lines, *re.findall(r"`(heldout [^`]+)`", text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_exists_with_its_options(page: str) -> None:
    found = commands(page)
    assert found
    for line in found:
        command: click.Command = main
        words = shlex.split(line.replace("…", "x"))[1:]
        while isinstance(command, click.Group) and words:
            inner = command.get_command(click.Context(command), words.pop(0))
            assert inner is not None, line
            command = inner
        options = {opt for parameter in command.params for opt in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_the_scan_sees_a_command_that_goes_on_in_the_next_line() -> None:
    assert any("--folder" in line and "--database" in line for line in commands(PAGES[0]))
