"""What analyses read of a board's vault: true scores by query, whatever became of the files."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lab import OTHER_TEAM, TEAM, Lab, Patch, add_reserve, named, prepared, run_text

from heldout.analyses.entries import BoardScores
from heldout.board.log.history import History
from heldout.board.scores.analyses_source import find_alike_runs, read_board_scores
from heldout.board.scores.session import Session, begin_session
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

pytestmark = pytest.mark.night
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def _desk(lab: Lab) -> Session:
    repository = Repository(lab.board)
    return begin_session(repository, Vault.open(lab.vault, board=lab.board), now=NOW)


def _read(lab: Lab, *, unpublished: bool = False) -> BoardScores:
    return read_board_scores(_desk(lab), unpublished=unpublished)


@prepared
def played(lab: Lab) -> None:
    """A baseline, two published entries of two teams, and one that waits."""
    add_reserve(lab)
    files = []
    for name in ("dev", "eval"):
        files.append(lab.root / f"bm25-{name}.run")
        files[-1].write_text(run_text(name, 9))
    lab.organiser(
        "board",
        "baseline",
        "20261102-bm25",
        "--dev",
        files[0],
        "--eval",
        files[1],
        "--description",
        "BM25",
        now="2026-11-02T09:00:00Z",
    ).done()
    lab.share()
    ids = [
        lab.send("lamp", now="2026-11-03T09:00:00Z", seed=1),
        lab.send("coast", now="2026-11-04T09:00:00Z", seed=2, team=OTHER_TEAM),
    ]
    lab.take_in(now="2026-11-05T09:00:00Z")
    assert lab.publish(*ids, now="2026-11-05T10:00:00Z").code == 0
    lab.send("later", now="2026-11-20T09:00:00Z", seed=3)
    lab.send("copy", now="2026-11-20T09:00:00Z", seed=1, team=named("Echo"))
    lab.take_in(now="2026-11-21T09:00:00Z")
    for name in ("later", "copy"):
        lab.organiser("review", f"20261120-{name}", now="2026-11-21T10:00:00Z")


def test_entries_that_wait_come_only_where_they_are_asked_for(played: Lab) -> None:
    board = _read(played, unpublished=True)
    assert [entry.id for entry in board.entries[3:]] == ["20261120-copy", "20261120-later"]
    assert not any(entry.published for entry in board.entries[3:])
    assert "20261120-later" in board.view().means


def test_a_run_that_two_teams_sent_is_found(played: Lab) -> None:
    session = _desk(played)
    (pair,) = find_alike_runs(session, read_board_scores(session, unpublished=True))
    assert (pair.a, pair.b, pair.rbo) == ("20261103-lamp", "20261120-copy", 1.0)
    assert find_alike_runs(session, read_board_scores(session)) == ()


class _Renamed(Session):
    """The first entry's team has another name by now, which an organiser approved."""

    def history(self) -> History:
        history = super().history()
        renamed = replace(
            history.submissions["20261103-lamp"], counts_for=(TEAM["team"], "Echo Team")
        )
        return replace(history, submissions={**history.submissions, renamed.id: renamed})


def test_two_names_of_one_team_are_no_two_teams(played: Lab) -> None:
    plain = _desk(played)
    session = _Renamed(repository=plain.repository, vault=plain.vault, now=plain.now, by=plain.by)
    assert find_alike_runs(session, read_board_scores(session, unpublished=True)) == ()


def test_drift_and_teams_are_told_from_the_board(played: Lab) -> None:
    now = NOW.isoformat()
    drift = played.organiser("analyse", "drift", "--json", now=now).json
    assert (drift["official"], drift["dev"], len(drift["points"])) == ("eval", "dev", 2)
    assert drift["verdict"] == "undefined"
    teams = played.organiser("analyse", "teams", "--json", "--unpublished", now=now).json
    assert (teams["public"], teams["reserve"]) == ("eval", "reserve")
    assert teams["groups"][0]["name"] == TEAM["team"]
    assert teams["groups"][0]["submissions"] == 2
    assert teams["variants"][0]["entries"] == ["20261103-lamp", "20261120-copy"]
    institutions = played.organiser("analyse", "teams", "--json", "--by", "institution", now=now)
    assert {g["name"] for g in institutions.json["groups"]} == {
        TEAM["institution"],
        OTHER_TEAM["institution"],
    }


def test_damaged_scores_are_made_anew_and_stay_as_they_lie(played: Lab) -> None:
    before = _read(played)
    file = played.vault / "scores" / "20261103-lamp.json"
    left = file.read_bytes()
    try:
        file.write_bytes(b"{}")
        table = _read(played).view().table
        assert file.read_bytes() == b"{}"
    finally:
        file.write_bytes(left)
    assert table is not None
    assert table.digest == before.view().table.digest  # type: ignore[union-attr]


def test_scores_made_with_earlier_labels_are_not_mixed_with_those_of_today(played: Lab) -> None:
    file = played.vault / "labels" / "eval.qrels"
    left = file.read_text()
    lines = left.splitlines(keepends=True)
    random.Random(1).shuffle(lines)  # noqa: S311 - any fifteen queries
    try:
        file.write_text("".join(lines[:15]))
        table = _read(played).view().table
    finally:
        file.write_text(left)
    assert table is not None
    assert set(table.queries) == {line.split()[0] for line in lines[:15]}
    assert table.complete


LOOKS: Mapping[str, Sequence[str]] = {
    "outcomes": ("analyse", "outcomes"),
    "stability": ("analyse", "stability"),
    "reliability": ("analyse", "reliability", "--splits", "5"),
    "progress": ("analyse", "progress"),
    "drift": ("analyse", "drift"),
    "views": ("analyse", "views"),
    "teams": ("analyse", "teams"),
    "power": ("analyse", "power"),
    "facets": ("analyse", "facets", "--facet", "length", "--queries", "lab/eval.tsv"),
    "report": ("analyse", "report", "--out", "report"),
    "unpublished": ("analyse", "stability", "--unpublished"),
    "pool": ("prefer", "pool", "--out", "campaign"),
    "redteam": ("redteam", "--seeds", "2", "--attack", "best of n"),
    "audit": ("audit",),
    "describe": ("board", "describe"),
    "status": ("status",),
}
ALIKE = {"stability", "reliability", "drift", "views", "teams", "power", "facets", "report"}
"""These read a board as `outcomes` and `progress` do."""


@pytest.mark.parametrize(
    "look",
    [pytest.param(look, marks=[pytest.mark.night] if look in ALIKE else []) for look in LOOKS],
)
def test_who_only_looks_at_a_board_writes_nothing_into_its_vault(
    played: Lab, tmp_path: Path, look: str, monkeypatch: Patch
) -> None:
    """Not even what is damaged or lost, which is computed again in memory."""
    lab = played
    for folder, ending in (("scores", ".json"), ("signatures", ".npz")):
        (lab.vault / folder / f"20261103-lamp{ending}").unlink()
    monkeypatch.chdir(tmp_path)

    def state() -> Mapping[str, tuple[bytes, int]]:
        files = (path for path in lab.vault.rglob("*") if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = state()
    place: tuple[str | Path, ...] = ("--board", lab.board)
    place += () if look == "status" else ("--vault", lab.vault)
    answer = lab.call(*LOOKS[look], *place)
    assert answer.code == (look == "audit"), answer
    assert state() == before
