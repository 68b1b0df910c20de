"""Clones by a git that would make Windows line ends, of a board and of a shared vault."""

import shutil
from pathlib import Path

import pytest
from town import Town, fresh_town, git

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"


town = fresh_town


def clone_with_line_ends(town: Town, source: str, name: str) -> Path:
    told = ("-c", "core.autocrlf=true", "-c", "core.eol=crlf")
    git(town.root, "clone", "-q", *told, str(town.root / source), name)
    return town.root / name


def test_a_clone_with_windows_line_ends_takes_part_and_audits(town: Town) -> None:
    clone = clone_with_line_ends(town, "forge", "windows")
    assert town.participant("audit", now=DAY, clone=clone).code == 0
    one = town.send("one", now=DAY, clone=clone)
    assert [r["kind"] for r in town.take_in(now=DAY)["received"]] == ["received"]
    assert town.publish(one, now=DAY).code == 0
    town.share(clone)
    assert git(clone, "status", "--porcelain") == ""
    assert town.participant("audit", now=DAY, clone=clone).code == 0
    for name in ("log.jsonl", "leaderboard/leaderboard.csv", "queries/dev.tsv", "qrels/dev.qrels"):
        assert (clone / name).read_bytes() == (town.board / name).read_bytes()


def test_a_board_from_before_gets_the_attributes_and_its_clones_are_told_what_to_do(
    town: Town,
) -> None:
    git(town.board, "rm", "-q", ".gitattributes")
    git(town.board, "commit", "-q", "-m", "as it was")
    town.push()
    clone = clone_with_line_ends(town, "forge", "windows")
    told = town.participant("audit", now=DAY, clone=clone)
    assert told.code == 1
    assert "log.jsonl:1: Windows line ends" in told.out + told.err
    assert "git clone -c core.autocrlf=false" in told.out + told.err
    shutil.rmtree(clone)
    assert town.organiser("rebuild", now=DAY).code == 0
    assert git(town.board, "status", "--porcelain") == ""
    town.push()
    again = clone_with_line_ends(town, "forge", "windows")
    assert town.participant("audit", now=DAY, clone=again).code == 0
