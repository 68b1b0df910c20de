"""The how-to pages of organisers show what the commands print, but for numbers, ids and hashes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import DAY, OTHER_TEAM, Answer, Lab, found_lab


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answer]:
    """Page -> what its commands print on a board of two entries, one under an embargo."""
    lab = found_lab(tmp_path_factory.mktemp("pages"))
    hidden = lab.send("hidden", embargo="2027-06-01")
    other = lab.receive("other", seed=2, team=OTHER_TEAM)
    assert lab.publish(hidden, other).code == 0
    return dict(play(lab, other))


def play(lab: Lab, entry: str) -> Iterator[tuple[str, Answer]]:
    yield "check-a-board.md", lab.call("audit", "--board", lab.board, "--now", DAY)
    lab.edit(("\nquota = 2\n", "\nquota = 3\n"))
    yield "change-rules.md", lab.organiser("rebuild", accepts=False)
    assert lab.organiser("rebuild", "--restore-rules", accepts=False).code == 0
    labels = lab.vault / "labels/eval.qrels"
    labels.write_text(labels.read_text("utf-8") + "eval1 0 another 1\n", "utf-8")
    yield "correct-scores.md", lab.organiser("correct", entry, "--why", "a label")
    left = [row["id"] for row in lab.rows() if row["id"] != entry]
    assert lab.organiser("correct", *left, "--why", "a label").code == 0
    change = ("--why", "a laptop was stolen", "--yes")
    yield "keys.md", lab.organiser("board", "rekey", *change)
    yield "wrong-clock.md", lab.organiser("rebuild", now="2030-01-01T10:00:00Z")
    file = lab.root / "archive.zip"
    closing = lab.organiser("archive", file, "--yes")
    checked = lab.call("audit", file, "--board", lab.board, "--now", DAY)
    yield "close-a-board.md", Answer(checked.code, closing.out + checked.out, "")


def shown(page: str) -> list[str]:
    """The lines of output on a page; a line that is broken there is one line again."""
    text = (Path(__file__).parents[2] / "docs" / "how-to" / page).read_text("utf-8")
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
