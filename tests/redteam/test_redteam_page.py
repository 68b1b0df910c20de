"""docs/redteam.md says what the code does, and the advice says what the page says."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

from heldout.board.rules.release import ReleaseRule
from heldout.cli.redteam import redteam
from heldout.redteam.attacks import ATTACKS
from heldout.redteam.releases import COMPARED, parse_release
from heldout.redteam.report import ADVICE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "redteam.md").read_text("utf-8")
CELLS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("|")
]
TABLE = {(row[0], row[1]): row[2:] for row in reversed(CELLS) if len(row) == 9}
"""The first table of results: attack and release -> the other columns."""

AROUND = ("sandbagging", "blending")
"""The attacks that no Ladder stops that begins at a team's first score."""


def names() -> list[str]:
    return [parse_release(n, ReleaseRule(), decimals=3, path="").name for n in COMPARED]


def test_the_page_explains_every_attack_once() -> None:
    explained = [row[0].strip("`") for row in CELLS if len(row) == 2 and row[0].startswith("`")]
    assert explained == list(ATTACKS)


def test_the_table_has_every_attack_against_every_release() -> None:
    rows = [(row[0], row[1]) for row in CELLS if len(row) == 9 and row[0] in ATTACKS]
    full = [(attack, release) for attack in ATTACKS for release in names()]
    assert rows[: len(full)] == full


def test_the_chart_shows_the_figures_of_the_table() -> None:
    texts = [e.text for e in ET.parse(DOCS / "images" / "redteam.svg").iter() if e.text]  # noqa: S314 - ours
    shown = [text for text in texts if re.fullmatch(r"-?\d\.\d\d", text)]
    assert shown == [TABLE[attack, release][1] for release in names() for attack in ATTACKS]


def test_the_advice_repeats_the_figures_of_the_page() -> None:
    advice = " ".join(ADVICE.split())
    by_count = next(row for row in CELLS if row[0] == "boosting" and len(row) == 7)
    ladder = {attack: TABLE[attack, "ladder z=3.59"] for attack in ATTACKS}
    around = {attack: f"({float(ladder.pop(attack)[1]):.1f})" for attack in AROUND}
    assert f"{float(TABLE['boosting', 'rounded'][1]):.1f} standard errors" in advice
    assert f"24 of them into {float(by_count[4]):.1f}." in advice
    assert f"step by step {around['sandbagging']}" in advice
    alone = TABLE["spoilt runs", "rounded"]
    assert f"{float(alone[6]):.0f} single labels ({float(alone[1]):.1f})" in advice
    assert f"first scores of ten teams {around['blending']}" in advice
    assert all(abs(float(row[1])) < 0.1 for row in ladder.values())
    del ladder["spoilt runs"]  # its best is not what it began with; the page says so
    assert min(float(row[4].rstrip("%")) for row in ladder.values()) >= 80  # 4 of 5 cases


def test_a_board_that_takes_partial_runs_is_one_that_is_asked_with_spoilt_ones() -> None:
    open_board = {row[0]: row[1:] for row in CELLS if len(row) == 4 and row[0] in names()}
    assert list(open_board) == names()
    for release, (gain, labels, bits) in open_board.items():
        spoilt = TABLE["spoilt runs", release]
        assert (gain, labels) == (spoilt[1], spoilt[6])
        assert float(bits) == round(float(labels) / 300, 2)


def test_the_commands_of_the_page_name_options_that_exist() -> None:
    known = {
        name
        for parameter in redteam.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    used = set(re.findall(r"(?<![\w-])--[a-z]+", PAGE))
    assert used
    assert used <= known
