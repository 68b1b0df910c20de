"""Clones by a git that would make Windows line ends, of a board and of a shared vault."""

import shutil
from pathlib import Path

from lab import Lab, fresh_lab, git

lab = fresh_lab


def clone_with_line_ends(lab: Lab, source: str, name: str) -> Path:
    args = ("-c", "core.autocrlf=true", "-c", "core.eol=crlf")
    git(lab.root, "clone", "-q", *args, str(lab.root / source), name)
    return lab.root / name


def test_a_clone_with_windows_line_ends_takes_part_and_audits(lab: Lab) -> None:
    clone = clone_with_line_ends(lab, "forge", "windows")
    assert lab.participant("audit", clone=clone).code == 0
    one = lab.send("one", clone=clone)
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]
    assert lab.publish(one).code == 0
    lab.share(clone)
    assert git(clone, "status", "--porcelain") == ""
    assert lab.participant("audit", clone=clone).code == 0
    for name in ("log.jsonl", "leaderboard/leaderboard.csv", "queries/dev.tsv", "qrels/dev.qrels"):
        assert (clone / name).read_bytes() == (lab.board / name).read_bytes()


def test_a_board_from_before_gets_the_attributes_and_its_clones_are_told_what_to_do(
    lab: Lab,
) -> None:
    git(lab.board, "rm", "-q", ".gitattributes")
    git(lab.board, "commit", "-q", "-m", "as it was")
    lab.push()
    clone = clone_with_line_ends(lab, "forge", "windows")
    lab.participant("audit", clone=clone).declined(
        "log.jsonl:1: Windows line ends", "git clone -c core.autocrlf=false"
    )
    shutil.rmtree(clone)
    assert lab.organiser("rebuild").code == 0
    assert git(lab.board, "status", "--porcelain") == ""
    lab.push()
    again = clone_with_line_ends(lab, "forge", "windows")
    assert lab.participant("audit", clone=again).code == 0
