"""`Board`: the numbers of the pages, from a folder that is only read."""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from boardlog import RULES, BoardLog, make_manifest, ranking, season
from certain import sure
from scored_board import FOUNDED, QUERIES, ScoredBoard, make_board

from heldout.api.board import Board, BoardTable
from heldout.board.organiser.rebuild import rebuild
from heldout.errors import InputError, StoreError
from heldout.files.durable import Folder
from heldout.trec.ir_metadata import read_header

NOW = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    """Two teams, a baseline, an entry under an embargo, one that waits and one that was refused."""
    board = make_board(tmp_path_factory.mktemp("python"))
    board.baseline("bm25", [0.2] * QUERIES)
    board.enter("one", [0.4] * QUERIES, team="North")
    board.enter("two", [0.61 if n % 2 else 0.6 for n in range(QUERIES)], team="South")
    board.enter("three", [0.5] * QUERIES, team="North")
    board.enter("hidden", [0.7] * QUERIES, team="Secret", until=date(2027, 2, 1))
    board.send("bad", [0.1] * QUERIES, team="West")
    board.reject("bad")
    board.send("waits", [0.3] * QUERIES, team="East")
    rebuild(board.tick())
    return board


@pytest.fixture
def board(scored: ScoredBoard) -> Board:
    return Board(scored.root / "board")


def published(scored: ScoredBoard) -> Mapping[str, object]:
    """What the page's own file says."""
    file = scored.root / "board" / "leaderboard" / "leaderboard.json"
    document: Mapping[str, object] = json.loads(file.read_text())
    return document


def test_standings_are_those_of_the_page_in_every_digit(scored: ScoredBoard, board: Board) -> None:
    found = board.standings(now=scored.now)

    assert found.to_dict() == published(scored)
    assert (found.view, found.measure, found.season) == ("eval", "nDCG@10", "")
    assert found.columns()["id"] == ["hidden", "two", "three", "one", "bm25"]
    assert found.columns()["rank"] == [1, 2, 3, 4, None]
    assert found.columns()["team"] == [None, "South", "North", "North", "organisers"]
    assert found.columns()["eval"] == [row["scores"]["eval"] for row in found.to_dict()["rows"]]
    assert len({len(cells) for cells in found.columns().values()}) == 1
    assert list(found.columns()) == list(found.names)


def test_another_view_ranks_by_its_own_scores(board: Board) -> None:
    found = board.standings("dev", now=NOW)
    assert found.view == "dev"
    ranked = [row["rank"] for row in found if not row["baseline"]]
    assert ranked == [1, 2, 3, 4]
    # All have 0.5 there: the earlier submission comes first.
    assert found.columns()["id"] == ["bm25", "one", "two", "three", "hidden"]
    with pytest.raises(InputError, match="unknown-view"):
        board.standings("test")
    with pytest.raises(InputError, match="unknown-season"):
        board.standings(season="spring")


def test_names_and_views_are_those_of_the_rules(board: Board) -> None:
    assert (board.name, board.title, board.primary, board.seasons) == ("kb", "KB", "eval", ())
    views = [(v.name, v.measure, v.held_out, v.ranks, v.final) for v in board.views]
    assert views == [("eval", "nDCG@10", *(True, True, False)), ("dev", "nDCG@10", *[False] * 3)]


def test_submissions_say_what_became_of_each(board: Board) -> None:
    rows = {row["id"]: row for row in board.submissions()}

    assert {name: row["status"] for name, row in rows.items()} == {
        "bm25": "published",
        "one": "published",
        "two": "published",
        "three": "published",
        "hidden": "published",
        "bad": "rejected",
        "waits": "reviewed",
    }
    assert rows["one"]["days"] == pytest.approx(1 / 24)
    assert (rows["waits"]["decided"], rows["waits"]["days"]) == (None, None)
    assert [rows[name]["team"] for name in ("one", "hidden", "bad")] == ["North", None, None]


def test_teams_are_those_that_nothing_hides(board: Board) -> None:
    rows = list(board.teams(now=NOW))
    told = [(row["team"], row["entries"], row["best_rank"]) for row in rows]
    assert told == [("North", 2, 3), ("South", 1, 2)]
    assert rows[0]["institution"] == "University of North"
    assert len(board.registrations()) == 0


def test_an_entry_says_what_the_log_says_of_it(board: Board) -> None:
    one = board.entry("two", now=NOW)
    assert (one.status, one.rank, one.baseline, one.errata) == ("published", 2, False, ())
    assert one.scores["eval"] == 0.605
    assert sure(one.identity).team == "South"
    assert [kind for _, kind in one.events] == ["received", "reviewed", "published"]
    assert json.loads(json.dumps(one.to_dict()))["scores"] == one.scores

    hidden = board.entry("hidden", now=NOW)
    assert (hidden.identity, hidden.embargo_until) == (None, date(2027, 2, 1))
    assert "Secret" not in json.dumps(hidden.to_dict())
    assert board.entry("bad").status == "rejected"
    assert board.entry("waits").scores == {}
    with pytest.raises(InputError, match="unknown-submission"):
        board.entry("nobody")


def test_an_entry_gives_the_header_of_its_run(board: Board, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.write_text(board.entry("two", now=NOW).ir_metadata() + "1 Q0 a 1 2.5 t\n")
    with run.open("rb") as file:
        header = read_header(file, path="run")
    assert header is not None
    assert (header.text("tag"), header.text("actor", "team")) == ("two", "South")
    with pytest.raises(InputError, match="no-identity"):
        board.entry("hidden", now=NOW).ir_metadata()


def test_the_vault_gives_the_scores_of_every_query(scored: ScoredBoard, board: Board) -> None:
    known = board.scores(scored.root / "vault", now=scored.now)
    assert [entry.id for entry in known.entries] == ["bm25", "one", "two", "three", "hidden"]
    assert len(sure(known.view().table).queries) == QUERIES
    assert known.view().means["two"] == pytest.approx(0.605)
    with pytest.raises(StoreError):
        board.scores(scored.root / "nothing")


def tree(root: Path) -> Iterator[tuple[str, int, int, bytes]]:
    """Every file below a folder with its time and content, and every folder with its time."""
    for path in sorted(root.rglob("*")):
        found = path.stat()
        content = path.read_bytes() if path.is_file() else b""
        yield str(path.relative_to(root)), found.st_mode, found.st_mtime_ns, content


def test_nothing_is_written(
    scored: ScoredBoard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = scored.copy(tmp_path / "copy").root
    (root / "vault").rename(tmp_path / "elsewhere")
    folders = [root / "board", *(path for path in (root / "board").rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    before = list(tree(root))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("write_whole", "create", "change", "append_line", "make_folder", "delete"):
        monkeypatch.setattr(Folder, name, refuse)
    try:
        board = Board(root / "board" / "leaderboard")
        assert board.path == (root / "board").resolve()
        assert len(board.standings(now=NOW)) == 5
        assert len(board.history()) > len(board.submissions()) > len(board.teams(now=NOW))
        assert board.entry("one", now=NOW).rank == 4
        assert list(tree(root)) == before
        assert not os.access(root / "vault", os.F_OK)
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_no_board_and_a_damaged_log_are_refused(scored: ScoredBoard, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Board(tmp_path)
    log = scored.copy(tmp_path / "copy").root / "board" / "log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"North", b"South"))
    with pytest.raises(StoreError):
        Board(log.parent).standings()


def test_standings_of_an_earlier_day_show_no_secret(scored: ScoredBoard) -> None:
    early = Board(scored.root / "board").standings(now=FOUNDED + timedelta(hours=3))
    assert early.as_of < scored.now
    assert "Secret" not in json.dumps(early.to_dict())


SEASONS = season("autumn", "eval", date(2026, 11, 1), date(2026, 11, 30))
SEASONS += season("winter", "gap", date(2026, 12, 1))
GAP = ranking("gap", "dev", summary="gap", facets="kinds.tsv", public=True)


def folder_of(log: BoardLog, rules: str, root: Path) -> Path:
    """A board's folder with nothing but its rules and its log."""
    (root / "board.toml").write_text(rules)
    (root / "log.jsonl").write_bytes(log.data)
    return root


def test_a_season_has_its_own_standings(tmp_path: Path) -> None:
    rules = f"{RULES}\n{SEASONS}".replace('"gap"', '"dev"')
    log = BoardLog().open(rules)
    log.submit("20261101-a", make_manifest("North"), "0.4")
    log.submit("20261101-b", make_manifest("South"), "0.5")
    board = Board(folder_of(log, rules, tmp_path))

    assert board.seasons == ("autumn", "winter")
    autumn = board.standings(now=datetime(2026, 11, 20, tzinfo=UTC))
    assert (autumn.season, autumn.view) == ("autumn", "eval")
    assert autumn.columns()["id"] == ["20261101-b", "20261101-a"]
    winter = datetime(2026, 12, 2, tzinfo=UTC)
    assert board.standings(now=winter).season == "winter"
    assert board.standings(season="autumn", now=winter).columns() == autumn.columns()
    assert board.entry("20261101-a", now=winter).scores["eval"] == 0.4


def test_where_lower_is_better_the_lowest_is_first(tmp_path: Path) -> None:
    rules = RULES.replace("[policy]", f"{GAP}[policy]")
    log = BoardLog().open(rules)
    for name, score, gap in (("a", "0.4", "0.3"), ("b", "0.5", "0.1"), ("c", "0.3", "0.2")):
        scores = {"dev": score, "eval": score, "gap": gap}
        public = {"scores": scores, "queries": {"dev": 100, "eval": 90, "gap": 100}}
        log.submit(f"20261101-{name}", make_manifest(name), score, public=public)
    board = Board(folder_of(log, rules, tmp_path))

    found = board.standings("gap", now=log.now)
    assert found.columns()["gap"] == [0.1, 0.2, 0.3]
    assert found.columns()["rank"] == [1, 2, 3]
    assert [row["id"] for row in found.to_dict()["rows"]] == found.columns()["id"]
    assert board.standings(now=log.now).columns()["id"] == [f"20261101-{n}" for n in "bac"]


def test_columns_of_one_name_stay_apart(tmp_path: Path) -> None:
    rules = RULES.replace('name = "eval"', 'name = "team"').replace('"eval"\nd', '"team"\nd')
    log = BoardLog().open(rules)
    scores = {"scores": {"dev": "0.4", "team": "0.4"}, "queries": {"dev": 100, "team": 90}}
    log.submit("20261101-a", make_manifest("North"), "0.4", public=scores)

    columns = Board(folder_of(log, rules, tmp_path)).standings(now=log.now).columns()
    assert (columns["team"], columns["team_2"]) == (["North"], [0.4])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_are_frames_of_either_library(board: Board, library: str) -> None:
    pytest.importorskip(library)
    for table in (board.standings(now=NOW), board.history(), board.submissions(), board.teams()):
        frame = table.to_pandas() if library == "pandas" else table.to_polars()
        assert list(frame.columns) == list(table.names)
        assert len(frame) == len(table)
    scores = board.standings(now=NOW)
    frame = scores.to_pandas() if library == "pandas" else scores.to_polars()
    assert frame["eval"].to_list() == [0.7, 0.605, 0.5, 0.4, 0.2]


def test_a_notebook_shows_the_standings_and_no_markup_of_a_team(board: Board) -> None:
    shown = board.standings(now=NOW)._repr_html_()
    assert "kb, by nDCG@10 (eval), as of 2026-12-01" in shown
    assert "University of" not in shown
    assert "<td" in board.history()._repr_html_()
    hostile = BoardTable(names=("team",), rows=({"team": "<script>alert(1)</script>"},))
    assert "<script>" not in hostile._repr_html_()
