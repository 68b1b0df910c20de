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
GAPS = ("equal", "16 u below")
WORST = {
    (row[0], row[1], row[2]): row[3:]
    for row in CELLS
    if len(row) == 8 and row[0] == "1,000" and row[2] in GAPS
}
"""The strongest attacks: n, rule, baseline -> attack, harm, gain, planted told twice."""

CLEAR = [row for row in CELLS if len(row) == 6 and row[0] in ATTACKS]
"""Attack by attack under `clear`: gain on the board and worth, baselines 0 to 48 u below."""

MOST = (0.1, 0.4, 0.55, 0.8)
"""What the last run may be worth with a baseline 0, 8, 16, 32 u below."""


def names() -> list[str]:
    rule = ReleaseRule()
    return [parse_rule(name, rule, decimals=3, path="").name for name in COMPARED]


def test_the_page_explains_every_attack_once_as_the_code_does() -> None:
    explained = {row[0].strip("`"): row[1] for row in CELLS if len(row) == 2 and row[0][0] == "`"}
    assert explained == {name: attack.about for name, attack in ATTACKS.items()}


def test_the_tables_have_every_rule_every_baseline_and_every_attack() -> None:
    assert list(WORST) == [("1,000", name, gap) for name in names() for gap in GAPS]
    stairs = [name for name in ATTACKS if name.startswith("staircase")]
    others = [name for name in ATTACKS if name not in stairs]
    assert [row[0] for row in CLEAR] == [*stairs, *stairs, *others, *others]
    assert {row[0] for row in WORST.values()} <= set(ATTACKS)


def test_under_the_clear_rule_no_attack_is_worth_more_than_was_asked_for() -> None:
    """And what stands on the board is less; 95% intervals may reach further."""
    for row in CLEAR:
        for cell, most in zip(row[1:], (*MOST, 1.0), strict=True):
            gain, worth = (float(part.split(" ± ")[0]) for part in cell.split(" / "))
            assert max(gain, worth) <= most, row


def test_the_chart_shows_the_strongest_attacks() -> None:
    texts = [e.text for e in ET.parse(DOCS / "images" / "redteam.svg").iter() if e.text]  # noqa: S314 - ours
    bars = [text for text in texts if re.fullmatch(r"-?\d\.\d\d", text)]
    harms = [row[1].split()[0] for row in WORST.values()]
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
