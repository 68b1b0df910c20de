"""Commands that pages show on the runs of TREC DL 2021 print what the pages show."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from heldout.cli.program import main

pytestmark = pytest.mark.real

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("explanation/which-test-to-use.md", "reference/analyses.md", "reference/tests.md")
COMMANDS = [
    (command, shown)
    for page in PAGES
    for command, shown in re.findall(
        r"^```console\n\$ heldout ([^\n]*)\n(.*?)^```$",
        (DOCS / page).read_text("utf-8"),
        re.MULTILINE | re.DOTALL,
    )
]


def test_each_page_shows_a_command() -> None:
    assert len(COMMANDS) > 10


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=range(len(COMMANDS)))
def test_it_prints_what_the_page_shows(
    command: str, shown: str, data: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data("trec-dl-2021-passage"))

    ran = CliRunner().invoke(main, shlex.split(command), terminal_width=200)

    assert ran.exit_code == 0
    parts = [re.escape(part) for part in shown.split("...\n")]
    assert re.fullmatch("(.*\n)*?".join(parts), ran.stdout), ran.stdout
