"""What analyses read of a board's vault: true scores by query, whatever became of the files."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from town import OTHER_TEAM, TEAM, Town, add_reserve, call, copy_town, found_town, named, run_text

from heldout.analyses.entries import BoardScores
from heldout.board.log.history import History
from heldout.board.scores.analyses_source import find_alike_runs, read_board_scores
from heldout.board.scores.session import Session, begin_session
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

pytestmark = [pytest.mark.slow, pytest.mark.night]
NOW = datetime(2026, 12, 1, tzinfo=UTC)


def _desk(town: Town) -> Session:
    repository = Repository(town.board)
    return begin_session(repository, Vault.open(town.vault, board=town.board), now=NOW)


def _read(town: Town, *, unpublished: bool = False) -> BoardScores:
    return read_board_scores(_desk(town), unpublished=unpublished)


def _expected(query_set: str, seed: int) -> list[float]:
    """Reciprocal rank by query, straight from the run."""
    ranks = {}
    for line in run_text(query_set, seed).splitlines():
        query, document, rank = line.split("\t")
        if document == f"d{query}":
            ranks[query] = 1 / int(rank)
    return list(ranks.values())


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A baseline, two published entries of two teams, and one that waits."""
    town = found_town(tmp_path_factory.mktemp("town"))
    add_reserve(town)
    files = []
    for name in ("dev", "eval"):
        files.append(town.root / f"bm25-{name}.run")
        files[-1].write_text(run_text(name, 9))
    answer = town.organiser(
        "board", "baseline", "20261102-bm25", "--dev", files[0], "--eval", files[1],
        "--description", "BM25", now="2026-11-02T09:00:00Z",
    )  # fmt: skip
    assert answer.code == 0, answer
    town.share()
    ids = [
        town.send("lamp", now="2026-11-03T09:00:00Z", seed=1),
        town.send("coast", now="2026-11-04T09:00:00Z", seed=2, team=OTHER_TEAM),
    ]
    town.take_in(now="2026-11-05T09:00:00Z")
    assert town.publish(*ids, now="2026-11-05T10:00:00Z").code == 0
    town.send("later", now="2026-11-20T09:00:00Z", seed=3)
    town.send("copy", now="2026-11-20T09:00:00Z", seed=1, team=named("Echo"))
    town.take_in(now="2026-11-21T09:00:00Z")
    for name in ("later", "copy"):
        town.organiser("review", f"20261120-{name}", now="2026-11-21T10:00:00Z")
    return town


def test_entries_stand_in_the_order_they_came_with_who_sent_them(played: Town) -> None:
    board = _read(played)
    assert [entry.id for entry in board.entries] == [
        "20261102-bm25",
        "20261103-lamp",
        "20261104-coast",
    ]
    assert [entry.baseline for entry in board.entries] == [True, False, False]
    assert [entry.team for entry in board.entries[1:]] == [TEAM["team"], OTHER_TEAM["team"]]
    assert board.entries[2].institution == OTHER_TEAM["institution"]
    assert board.entries[1].received == datetime(2026, 11, 5, 9, tzinfo=UTC)


def test_scores_by_query_are_those_of_the_runs(played: Town) -> None:
    board = _read(played)
    for name in ("dev", "eval"):
        (view,) = (view for view in board.views.values() if view.queries == name and view.public)
        assert view.table is not None
        assert view.table.complete
        expected = [_expected(name, seed) for seed in (9, 1, 2)]
        assert np.array_equal(np.sort(view.table.values), np.sort(expected))
        assert list(view.means.values()) == pytest.approx([sum(row) / 30 for row in expected])


def test_a_reserve_is_read_and_known_as_one(played: Town) -> None:
    reserve = _read(played).view("reserve")
    assert not reserve.public
    assert reserve.table is not None
    assert reserve.table.queries == tuple(f"eval{n}" for n in range(10))


def test_entries_that_wait_come_only_where_they_are_asked_for(played: Town) -> None:
    board = _read(played, unpublished=True)
    assert [entry.id for entry in board.entries[3:]] == ["20261120-copy", "20261120-later"]
    assert not any(entry.published for entry in board.entries[3:])
    assert "20261120-later" in board.view().means


def test_a_run_that_two_teams_sent_is_found(played: Town) -> None:
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


def test_two_names_of_one_team_are_no_two_teams(played: Town) -> None:
    plain = _desk(played)
    session = _Renamed(repository=plain.repository, vault=plain.vault, now=plain.now, by=plain.by)
    assert find_alike_runs(session, read_board_scores(session, unpublished=True)) == ()


def test_drift_and_teams_are_told_from_the_board(played: Town) -> None:
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


def test_damaged_scores_are_made_anew_and_stay_as_they_lie(played: Town) -> None:
    before = _read(played)
    file = played.vault / "scores" / "20261103-lamp.json"
    kept = file.read_bytes()
    try:
        file.write_bytes(b"{}")
        table = _read(played).view().table
        assert file.read_bytes() == b"{}"
    finally:
        file.write_bytes(kept)
    assert table is not None
    assert table.digest == before.view().table.digest  # type: ignore[union-attr]


def test_scores_made_with_earlier_labels_are_not_mixed_with_those_of_today(played: Town) -> None:
    file = played.vault / "labels" / "eval.qrels"
    kept = file.read_text()
    lines = kept.splitlines(keepends=True)
    random.Random(1).shuffle(lines)  # noqa: S311 - any fifteen queries
    try:
        file.write_text("".join(lines[:15]))
        table = _read(played).view().table
    finally:
        file.write_text(kept)
    assert table is not None
    assert set(table.queries) == {line.split()[0] for line in lines[:15]}
    assert table.complete


def test_every_analysis_can_take_its_scores_from_the_board(played: Town) -> None:
    from heldout.cli.analyses.sources import (  # noqa: PLC0415 - as a command does
        BoardSource,
        Source,
        load_scores,
    )

    board = BoardSource(folder=played.board, vault=played.vault, time=NOW)
    scores = load_scores(Source(board=board))
    assert scores.table.systems == ("20261102-bm25", "20261103-lamp", "20261104-coast")
    assert scores.measure == "RR@10"
    assert ("view", "eval RR@10, 30 queries") in scores.facts
    assert json.dumps(dict(scores.facts))


LOOKS: Mapping[str, Sequence[str]] = {
    "outcomes": ("analyse", "outcomes"),
    "stability": ("analyse", "stability"),
    "reliability": ("analyse", "reliability", "--splits", "5"),
    "progress": ("analyse", "progress"),
    "drift": ("analyse", "drift"),
    "views": ("analyse", "views"),
    "teams": ("analyse", "teams"),
    "power": ("analyse", "power"),
    "facets": ("analyse", "facets", "--facet", "length", "--queries", "town/eval.tsv"),
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
    played: Town, tmp_path: Path, look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even what is damaged or lost, which is computed again in memory."""
    town = copy_town(played, tmp_path)
    for folder, ending in (("scores", ".json"), ("signatures", ".npz")):
        (town.vault / folder / f"20261103-lamp{ending}").unlink()
    monkeypatch.chdir(tmp_path)

    def state() -> Mapping[str, tuple[bytes, int]]:
        files = (path for path in town.vault.rglob("*") if path.is_file())
        return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}

    before = state()
    place: tuple[str | Path, ...] = ("--board", town.board)
    place += () if look == "status" else ("--vault", town.vault)
    answer = call(town.root, *LOOKS[look], *place)
    assert answer.code == (look == "audit"), answer
    assert state() == before


def test_a_vault_that_is_opened_to_be_read_alone_cannot_be_written(played: Town) -> None:
    vault = Vault.open(played.vault, board=played.board, read_only=True)
    session = begin_session(Repository(played.board), vault, now=NOW)
    with pytest.raises(RuntimeError, match="read alone"):
        vault.store_sealed(b"x")
    with pytest.raises(RuntimeError, match="read alone"):
        session.log("asked", "20261120-later", public={"why": "x"})
    with pytest.raises(RuntimeError, match="read alone"), vault.locked():
        pass
