"""`heldout analyse report` on a board: for its organisers, and never where git would publish it."""

import stat
from pathlib import Path

from lab import Lab, add_reserve, prepared

NOW = "2026-11-06T09:00:00Z"


@prepared
def played(lab: Lab) -> None:
    """Two published entries and a reserve view."""
    add_reserve(lab)
    ids = [lab.send(name, now="2026-11-03T09:00:00Z", seed=n) for n, name in enumerate("ab")]
    lab.take_in(now="2026-11-05T09:00:00Z")
    assert lab.publish(*ids, now="2026-11-05T10:00:00Z").code == 0


def test_everything_is_in_a_folder_that_only_its_owner_reads(played: Lab) -> None:
    out = played.root / "report"
    answer = played.organiser("analyse", "report", "--out", out, "--json", now=NOW).done()
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert set(answer.json["files"]) == written
    assert all(one["made"] or one["why"] for one in answer.json["analyses"])
    assert "reserve RR@10, reserve" in (out / "report.md").read_text()
    assert (out / "index.html").is_file()
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    for path in out.rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077 or path.is_dir()
    played.organiser("analyse", "report", "--out", out, now=NOW).refused("is not empty")


def test_a_report_in_a_public_folder_is_refused_and_nothing_is_written(
    played: Lab, tmp_path: Path
) -> None:
    (tmp_path / "to-board").symlink_to(played.board)
    for folder in (played.board / "leaderboard", played.clone, tmp_path / "to-board"):
        out = folder / "report"
        played.organiser("analyse", "report", "--out", out, now=NOW).refused(
            "lies in a public board"
        )
        assert not out.exists()
