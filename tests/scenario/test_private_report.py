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


@pytest.mark.night
def test_kinds_of_query_are_in_the_report_where_a_facet_is_named(played: Town) -> None:
    kinds = played.root / "kinds.tsv"
    kinds.write_text("".join(f"eval{n}\t{'odd' if n % 2 else 'even'}\n" for n in range(10)))
    told = ("analyse", "report", "--facet", kinds, "--least", "3", "--json")
    answer = played.organiser(*told, "--out", played.root / "by-kind", now=NOW).done()
    made = {one["name"]: one["made"] for one in answer.json["analyses"]}
    assert made["view-2-facets"]
    assert not made["view-1-facets"]  # its queries are of no kind
    assert {"view-1-power", "scale-1"} <= set(made)
    page = (played.root / "by-kind" / "report.md").read_text()
    assert "System by facet: better or worse inside than outside" in page
    only = played.organiser(
        "analyse", "report", "--only", f"{kinds}=odd", "--out", played.root / "x", now=NOW
    )
    assert only.code == 2
    assert "of all queries" in only.err


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
