"""The how-to pages of organisers show what the commands print, but for numbers, ids and hashes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from town import OTHER_TEAM, Answer, Town, call, found_town

pytestmark = pytest.mark.slow
DOCS = Path(__file__).parents[2] / "docs" / "how-to"
DAY = "2026-11-02T10:00:00Z"
LATE = "2030-01-01T10:00:00Z"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Page -> what its commands print on a board of two entries, one under an embargo."""
    town = found_town(tmp_path_factory.mktemp("pages"))
    hidden = town.send("hidden", now=DAY, embargo="2027-06-01")
    other = town.send("other", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.publish(hidden, other, now=DAY).code == 0
    return dict(play(town, other))


def play(town: Town, entry: str) -> Iterator[tuple[str, Answer]]:
    yield "check-a-board.md", call(town.root, "audit", "--board", town.board, "--now", DAY)
    town.edit(("\nquota = 2\n", "\nquota = 3\n"))
    yield "change-rules.md", town.organiser("rebuild", now=DAY, accepts=False)
    assert town.organiser("rebuild", "--restore-rules", now=DAY, accepts=False).code == 0
    labels = town.vault / "labels/eval.qrels"
    labels.write_text(labels.read_text("utf-8") + "eval1 0 another 1\n", "utf-8")
    yield "correct-scores.md", town.organiser("correct", entry, "--why", "a label", now=DAY)
    left = [row["id"] for row in town.rows() if row["id"] != entry]
    assert town.organiser("correct", *left, "--why", "a label", now=DAY).code == 0
    change = ("--why", "a laptop was stolen", "--yes")
    yield "keys.md", town.organiser("board", "rekey", *change, now=DAY)
    yield "wrong-clock.md", town.organiser("rebuild", now=LATE)
    file = town.root / "archive.zip"
    closing = town.organiser("archive", file, "--yes", now=DAY)
    checked = call(town.root, "audit", file, "--board", town.board, "--now", DAY)
    yield "close-a-board.md", Answer(checked.code, closing.out + checked.out, "")


def shown(page: str) -> list[str]:
    """The lines of output on a page; a line that is broken there is one line again."""
    text = (DOCS / page).read_text("utf-8")
    blocks = re.findall(
        r"^```console\n\$ heldout [^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    return [line for block in blocks for line in plain(block) if line]


def plain(text: str) -> list[str]:
    """Lines of an output without what differs from board to board."""
    whole = re.sub(r" …$", "", re.sub(r"\n {6,}", " ", text), flags=re.MULTILINE)
    for pattern in (
        r"(?<=^closed )\s*\S+$",
        r"\S+\.zip",
        r"\b2026\d{4}-[\w-]+((, | )2026\d{4}-[\w-]+)*( …)?",
        r"\b(age1)?[0-9a-f]*\w*…( \(\w+…\))?",
        r"\b[0-9a-f]{64}\b",
        r'"[^"]*"',
        r"\b\d{4}-\d\d-\d\dT[\d:]+Z|\b\d{4}-\d\d-\d\d|\b\d\d \w{3} \d{4}",
        r"(?<![.\d])\d[\d,.]*( (entr|event|baseline|file|release|submission)\w*( is| are)?)?",
    ):
        whole = re.sub(pattern, "#", whole, flags=re.MULTILINE)
    whole = re.sub(r"#(, #)+", "#", whole)
    return [re.sub(r"\s+", " ", line).strip() for line in whole.splitlines()]


@pytest.mark.parametrize(
    "page",
    [
        *("check-a-board.md", "change-rules.md", "correct-scores.md", "keys.md"),
        *("wrong-clock.md", "close-a-board.md"),
    ],
)
def test_the_page_shows_what_the_commands_print(answers: dict[str, Answer], page: str) -> None:
    printed = plain(answers[page].out + answers[page].err)
    lines = shown(page)
    assert len(lines) > 0
    begun = [line for line in lines if not any(text.startswith(line) for text in printed)]
    assert begun == [], printed
