"""`heldout analyse report` on a board: for its organisers, and never where git would publish it."""

import stat
from pathlib import Path

import pytest
from town import Town, add_reserve, found_town

pytestmark = pytest.mark.slow
NOW = "2026-11-06T09:00:00Z"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """Two published entries and a reserve view."""
    town = found_town(tmp_path_factory.mktemp("town"))
    add_reserve(town)
    ids = [town.send(name, now="2026-11-03T09:00:00Z", seed=n) for n, name in enumerate("ab")]
    town.take_in(now="2026-11-05T09:00:00Z")
    assert town.publish(*ids, now="2026-11-05T10:00:00Z").code == 0
    return town


def test_everything_is_in_a_folder_that_only_its_owner_reads(played: Town) -> None:
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
    again = played.organiser("analyse", "report", "--out", out, now=NOW)
    assert again.code == 2
    assert "is not empty" in again.err


def test_a_report_in_a_public_folder_is_refused_and_nothing_is_written(
    played: Town, tmp_path: Path
) -> None:
    (tmp_path / "to-board").symlink_to(played.board)
    for folder in (played.board / "leaderboard", played.clone, tmp_path / "to-board"):
        out = folder / "report"
        answer = played.organiser("analyse", "report", "--out", out, now=NOW)

        assert answer.code == 2
        assert "lies in a public board" in answer.err
        assert not out.exists()
