"""What a board tells of its ranking: announced while it waits, shown on its day, then audited."""

import json
import zipfile
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from town import OTHER_TEAM, QUERIES, TEAM, Town, call, copy_of, found_town
from trusting import DAY, DECIDED, REVEAL, REVEALED, THIRD_TEAM, add_baseline, forge

from heldout.board.audit import archive_audit
from heldout.board.log.final import Figures
from heldout.board.scores import measuring
from heldout.board.scores.measuring import measure_ranking
from heldout.board.standings import overdue
from heldout.board.standings.standings import Comparable, choose_comparable

pytestmark = pytest.mark.slow
DUE = "2026-12-01T10:00:00Z"
TRUST = '\n[trust]\nafter = "2026-12-01"\n'
CLOSED = "2027-06-01T10:00:00Z"


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A live board whose figures wait for a day; the fourth run is a copy of the first."""
    town = found_town(tmp_path_factory.mktemp("waiting"))
    with (town.board / "board.toml").open("a") as rules:
        rules.write(TRUST)
    assert town.organiser("rebuild", now="2026-11-01T12:00:00Z").code == 0
    town.push()
    add_baseline(town)
    fourth = {**THIRD_TEAM, "team": "Fourth", "institution": "Fourth College"}
    for name, seed, team in (
        ("one", 1, TEAM),
        ("two", 2, OTHER_TEAM),
        ("three", 3, THIRD_TEAM),
        ("x-copy", 1, fourth),
    ):
        town.send(name, now=DAY, seed=seed, team={**team, "open_runs": True})
    town.take_in(now=DAY)
    ids = [f"20261102-{name}" for name in ("one", "two", "three", "x-copy")]
    told = ("--why", "known people", "--yes")
    town.organiser("publish", *ids, *told, now=DECIDED).done()
    town.push()
    return town


town = copy_of("waiting")


def page(town: Town) -> str:
    return (town.board / "leaderboard" / "index.html").read_text("utf-8")


def measured(town: Town) -> list[dict[str, Any]]:
    return [event["public"] for event in town.events() if event["kind"] == "measured"]


def test_while_it_waits_the_page_says_from_when_and_nothing_else(town: Town) -> None:
    assert measured(town) == []
    assert 'class="ranking-trust"' in page(town)
    assert "from 01 Dec 2026 on" in page(town).replace("\u00a0", " ")
    for row in town.rows():
        assert row["rank_low"] is None
        assert row["baseline"] or row["why"]["rank_low"].startswith("published from 2026-12-01")


def test_on_its_day_it_is_shown_once_and_a_copy_is_not_compared_with_its_like(
    town: Town,
) -> None:
    for _ in range(2):
        assert town.organiser("rebuild", now=DUE).code == 0
    [figures] = measured(town)
    assert figures["entries"] == [f"20261102-{n}" for n in ("one", "three", "two", "x-copy")]
    assert figures["left_out"] == {}
    assert figures["figures"]["alike"] == [["20261102-one", "20261102-x-copy"]]
    rows = {row["id"]: row for row in town.rows()}
    for name in figures["entries"]:
        assert 1 <= rows[name]["rank_low"] <= rows[name]["rank"] <= rows[name]["rank_high"] <= 4
    leader = next(row for row in rows.values() if row["rank"] == 1)
    assert leader["id"] in figures["entries"]
    records = {step["entry"] for step in figures["figures"]["progress"]}
    assert records == {row["id"] for row in rows.values() if row["trophy"]}
    assert "so not compared with each other" in page(town)
    assert town.audit()["ok"]


def test_the_archive_s_audit_computes_it_again(town: Town) -> None:
    assert town.organiser("rebuild", now=DUE).code == 0
    archive = town.root / "kb.zip"
    town.organiser("archive", archive, "--yes", now=CLOSED).done()
    answer = call(town.root, "audit", archive, "--json")
    assert answer.json["faults"] == []
    assert answer.json["notes"] == []
    with zipfile.ZipFile(archive) as opened:
        assert b'"measured"' in opened.read("log.jsonl")
    wrong = forge(archive, _change_a_score, town.root / "wrong.zip")
    answer = call(town.root, "audit", wrong, "--json")
    assert any("'measured'" in fault for fault in answer.json["faults"]), answer.json


def test_an_organiser_who_lets_copies_be_compared_is_found_by_the_archive(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(entries: Any, *_: Any) -> Comparable:
        return choose_comparable(entries, {})

    monkeypatch.setattr(measuring, "choose_comparable", forget)
    assert town.organiser("rebuild", now=DUE).code == 0
    answer = town.organiser("archive", town.root / "kb.zip", "--yes", now=CLOSED)
    assert answer.code == 2
    assert "compares entries whose scores differ for a few queries only" in answer.err


def test_an_entry_that_is_near_waits_for_the_end_of_its_embargo_and_is_compared_then(
    tmp_path: Path,
) -> None:
    town = found_town(tmp_path)
    town.rule(now="2026-11-01T12:00:00Z", more=TRUST)
    town.send("one", now=DAY, seed=1, team=TEAM)
    town.send("two", now=DAY, seed=2, team=OTHER_TEAM)
    hidden = town.send("three", now=DAY, seed=1, team=THIRD_TEAM, embargo=REVEAL)
    town.take_in(now=DAY)
    ids = ["20261102-one", "20261102-two", hidden]
    town.organiser("publish", *ids, "--why", "known", "--yes", now=DECIDED).done()
    for now in (DUE, "2026-12-02T10:00:00Z"):
        assert town.organiser("rebuild", now=now).code == 0
        [figures] = measured(town)
    assert figures["left_out"] == {hidden: "withheld"}
    assert figures["figures"]["alike"] == []
    for _ in range(2):
        assert town.organiser("rebuild", now=REVEALED).code == 0
    _, figures = measured(town)
    assert figures["left_out"] == {}
    [pair] = figures["figures"]["alike"]
    assert set(pair) == {"20261102-one", hidden}
    assert town.audit()["ok"]


def test_an_organiser_who_makes_a_rival_s_range_wider_cannot_close_the_board(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lie(*arguments: Any, **options: Any) -> Figures:
        found = measure_ranking(*arguments, **options)
        assert found.ranges is not None
        wider = msgspec.structs.replace(found.ranges, low=(1,) * 4, high=(4, 4, 4, 3))
        return msgspec.structs.replace(found, ranges=wider)

    monkeypatch.setattr(archive_audit, "measure_ranking", measure_ranking)  # it computes honestly
    monkeypatch.setattr(measuring, "measure_ranking", lie)
    assert town.organiser("rebuild", now=DUE).code == 0
    answer = town.organiser("archive", town.root / "kb.zip", "--yes", now=CLOSED)
    assert answer.code == 2
    assert "figures that the per-query scores do not give" in answer.err
    assert "closed-board" not in town.kinds()


def test_figures_told_before_their_day_are_found_by_anybody(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = lambda *_, **__: date(2026, 11, 3)  # noqa: E731 - a rule that is not board.toml's
    monkeypatch.setattr(overdue, "due_day", today)
    assert town.organiser("rebuild", now="2026-11-04T10:00:00Z").code == 0
    town.share()
    answer = call(town.root, "audit", "--board", town.clone, "--now", DUE, "--json")
    assert any("before the day of board.toml" in fault for fault in answer.json["faults"])


def _change_a_score(files: dict[str, bytes]) -> None:
    """Two queries change their scores, so that the mean stays."""
    name = "scores/20261102-two.json"
    scores = json.loads(files[name])
    per_query = scores["views"]["eval"]["per_query"]
    low, high = min(per_query, key=per_query.get), max(per_query, key=per_query.get)
    per_query[low], per_query[high] = per_query[high], per_query[low]
    files[name] = json.dumps(scores).encode()


SEASONS = """
[sets.next]
queries = "queries/next.tsv"

[[views]]
name = "eval-2027"
set = "next"
measure = "RR@10"

[[seasons]]
name = "winter"
view = "eval"
opens = 2026-11-01
closes = 2026-12-31

[[seasons]]
name = "spring"
view = "eval-2027"
opens = 2027-01-01

[trust]
"""


def test_a_season_that_is_over_is_told_of_and_the_next_one_waits(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    numbers = range(QUERIES)
    queries = "".join(f"next{i}\twhat is next thing {i}\n" for i in numbers)
    (town.board / "queries/next.tsv").write_text(queries, "utf-8")
    labels = "".join(f"next{i} 0 dnext{i} 1\n" for i in numbers)
    (town.vault / "labels/next.qrels").write_text(labels, "utf-8")
    town.rule(now="2026-11-01T12:00:00Z", more=SEASONS)
    for name, seed, team in (("one", 1, TEAM), ("two", 2, OTHER_TEAM)):
        town.send(name, now=DAY, seed=seed, team=team)
    town.take_in(now=DAY)
    ids = ["20261102-one", "20261102-two"]
    town.organiser("publish", *ids, "--why", "known", "--yes", now=DECIDED).done()
    assert measured(town) == []
    assert "from 01 Jan 2027 on" in page(town).replace("\u00a0", " ")
    assert town.organiser("rebuild", now="2027-01-01T00:00:00Z").code == 0
    [figures] = measured(town)
    assert (figures["season"], figures["view"], figures["entries"]) == ("winter", "eval", ids)
    folder = town.board / "leaderboard"
    assert "once the board is closed" in page(town)
    rows = json.loads((folder / "seasons" / "winter.json").read_text())["rows"]
    assert {row["rank_high"] for row in rows} <= {1, 2}
    assert json.loads((folder / "trust-winter.json").read_text())["entries"] == ids
    assert town.organiser("rebuild", now="2027-01-02T00:00:00Z").code == 0
    assert len(measured(town)) == 1
    assert town.audit()["ok"]
