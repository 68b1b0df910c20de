"""docs/explanation/redteam.md says what the code does, and results/red-team.md what it measures."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from heldout.board.rules.release import ReleaseRule
from heldout.cli.redteam import redteam
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.boards import COMPARED, parse_rule

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join(
    (DOCS / name).read_text("utf-8") for name in ("explanation/redteam.md", "results/red-team.md")
)
CELLS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|")
]
WORST = {(row[0], row[1], row[2]): row[3:] for row in CELLS if len(row) == 8 and row[0][0] in "15"}
"""The strongest attacks: n, rule, baseline -> attack, harm, gain, planted told twice."""

CLEAR = {row[0]: row[1:] for row in CELLS if len(row) == 7 and row[0] in ATTACKS}
GAPS = ("equal", "8 u below", "16 u below")


def names() -> list[str]:
    rule = ReleaseRule()
    return [parse_rule(name, rule, decimals=3, path="").name for name in COMPARED]


def test_the_page_explains_every_attack_once_as_the_code_does() -> None:
    explained = {row[0].strip("`"): row[1] for row in CELLS if len(row) == 2 and row[0][0] == "`"}
    assert explained == {name: attack.about for name, attack in ATTACKS.items()}


def test_the_tables_have_every_rule_every_baseline_and_every_attack() -> None:
    sizes = ("1,000", "5,793")
    assert list(WORST) == [(n, name, gap) for n in sizes for name in names() for gap in GAPS]
    assert list(CLEAR) == list(ATTACKS)
    assert {row[0] for row in WORST.values()} <= set(ATTACKS)


def test_nothing_that_stands_on_a_clear_board_is_above_what_the_page_says() -> None:
    (most,) = re.findall(r"none has a mean gain above\s+(\d\.\d\d) u", PAGE)
    gains = [float(cell.split(" / ")[0]) for row in CLEAR.values() for cell in row]
    assert max(gains) <= float(most)


def test_a_system_that_is_really_better_is_told_after_the_worst_attack_on_the_clear_rule() -> None:
    told = [row[3:] for (_, rule, _), row in WORST.items() if rule.startswith("clear")]
    assert min(float(row[0].rstrip("%")) for row in told) >= 60
    assert min(float(row[1].rstrip("%")) for row in told) >= 90


def test_the_chart_shows_the_strongest_attacks() -> None:
    texts = [e.text for e in ET.parse(DOCS / "images" / "redteam.svg").iter() if e.text]  # noqa: S314 - ours
    bars = [text for text in texts if re.fullmatch(r"-?\d\.\d\d", text)]
    harms = [row[1].split()[0] for (n, _, _), row in WORST.items() if n == "1,000"]
    assert bars == harms


def test_the_commands_of_the_page_name_options_that_exist() -> None:
    known = {
        name
        for parameter in redteam.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    lines = [line for line in PAGE.splitlines() if line.startswith("    heldout redteam")]
    used = set(re.findall(r"(?<![\w-])--[a-z]+", "\n".join(lines)))
    assert used
    assert used <= known
