"""What a board tells of its ranking: announced while it waits, shown on its day, then audited."""

import json
import zipfile
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
from lab import NEXT, OTHER_TEAM, QUERIES, TEAM, Lab, Patch, found_lab, prepared
from trusting import REVEAL, REVEALED, THIRD_TEAM, add_baseline, forge

from heldout.board.audit import archive_audit
from heldout.board.log.final import Figures
from heldout.board.scores import measuring
from heldout.board.scores.measuring import measure_ranking
from heldout.board.standings import overdue, standings
from heldout.board.standings.standings import Comparable, choose_comparable

DUE = "2026-12-01T10:00:00Z"
TRUST = '\n[trust]\nafter = "2026-12-01"\n'
CLOSED = "2027-06-01T10:00:00Z"


@prepared
def lab(lab: Lab) -> None:
    """A live board whose figures wait for a day; the fourth run is a copy of the first."""
    lab.rule(now="2026-11-01T12:00:00Z", more=TRUST)
    add_baseline(lab)
    fourth = {**THIRD_TEAM, "team": "Fourth", "institution": "Fourth College"}
    for name, seed, team in (
        ("one", 1, TEAM),
        ("two", 2, OTHER_TEAM),
        ("three", 3, THIRD_TEAM),
        ("x-copy", 1, fourth),
    ):
        lab.send(name, seed=seed, team={**team, "open_runs": True})
    lab.take_in()
    ids = [f"20261102-{name}" for name in ("one", "two", "three", "x-copy")]
    args = ("--why", "known people", "--yes")
    lab.organiser("publish", *ids, *args, now=NEXT).done()
    lab.push()


def page(lab: Lab) -> str:
    return (lab.board / "leaderboard" / "index.html").read_text("utf-8")


def measured(lab: Lab) -> list[dict[str, Any]]:
    return [event["public"] for event in lab.events() if event["kind"] == "measured"]


def test_on_its_day_it_is_shown_once_and_a_copy_is_not_compared_with_its_like(lab: Lab) -> None:
    for _ in range(2):
        assert lab.organiser("rebuild", now=DUE).code == 0
    [figures] = measured(lab)
    assert figures["entries"] == [f"20261102-{n}" for n in ("one", "three", "two", "x-copy")]
    assert figures["left_out"] == {}
    assert figures["figures"]["alike"] == [["20261102-one", "20261102-x-copy"]]
    rows = {row["id"]: row for row in lab.rows()}
    for name in figures["entries"]:
        assert 1 <= rows[name]["rank_low"] <= rows[name]["rank"] <= rows[name]["rank_high"] <= 4
    leader = next(row for row in rows.values() if row["rank"] == 1)
    assert leader["id"] in figures["entries"]
    records = {step["entry"] for step in figures["figures"]["progress"]}
    assert records == {row["id"] for row in rows.values() if row["trophy"]}
    assert "so not compared with each other" in page(lab)
    assert lab.audit()["ok"]


def test_the_archive_s_audit_computes_it_again(lab: Lab) -> None:
    assert lab.organiser("rebuild", now=DUE).code == 0
    archive = lab.root / "kb.zip"
    lab.organiser("archive", archive, "--yes", now=CLOSED).done()
    answer = lab.call("audit", archive, "--json")
    assert answer.json["faults"] == []
    assert answer.json["notes"] == []
    with zipfile.ZipFile(archive) as opened:
        assert b'"measured"' in opened.read("log.jsonl")
    wrong = forge(archive, _change_a_score, lab.root / "wrong.zip")
    answer = lab.call("audit", wrong, "--json")
    assert any("'measured'" in fault for fault in answer.json["faults"]), answer.json


def test_an_organiser_who_lets_copies_be_compared_is_found_by_the_archive(
    lab: Lab, monkeypatch: Patch
) -> None:
    def forget(entries: Any, *_: Any) -> Comparable:
        return choose_comparable(entries, {})

    monkeypatch.setattr(standings, "choose_comparable", forget)
    assert lab.organiser("rebuild", now=DUE).code == 0
    lab.organiser("archive", lab.root / "kb.zip", "--yes", now=CLOSED).refused(
        "compares entries whose scores differ for a few queries only"
    )


def test_an_entry_that_is_near_waits_for_the_end_of_its_embargo_and_is_compared_then(
    tmp_path: Path,
) -> None:
    lab = found_lab(tmp_path)
    lab.rule(now="2026-11-01T12:00:00Z", more=TRUST)
    lab.send("one", seed=1, team=TEAM)
    lab.send("two", seed=2, team=OTHER_TEAM)
    hidden = lab.receive("three", seed=1, team=THIRD_TEAM, embargo=REVEAL)
    ids = ["20261102-one", "20261102-two", hidden]
    lab.organiser("publish", *ids, "--why", "known", "--yes", now=NEXT).done()
    for now in (DUE, "2026-12-02T10:00:00Z"):
        assert lab.organiser("rebuild", now=now).code == 0
        [figures] = measured(lab)
    assert figures["left_out"] == {hidden: "withheld"}
    assert figures["figures"]["alike"] == []
    for _ in range(2):
        assert lab.organiser("rebuild", now=REVEALED).code == 0
    _, figures = measured(lab)
    assert figures["left_out"] == {}
    [pair] = figures["figures"]["alike"]
    assert set(pair) == {"20261102-one", hidden}
    assert lab.audit()["ok"]


def test_an_organiser_who_makes_a_rival_s_range_wider_cannot_close_the_board(
    lab: Lab, monkeypatch: Patch
) -> None:
    def lie(*arguments: Any, **options: Any) -> Figures:
        found = measure_ranking(*arguments, **options)
        assert found.ranges is not None
        wider = msgspec.structs.replace(found.ranges, low=(1,) * 4, high=(4, 4, 4, 3))
        return msgspec.structs.replace(found, ranges=wider)

    honest = SimpleNamespace(**vars(measuring))
    monkeypatch.setattr(archive_audit, "measuring", honest)
    monkeypatch.setattr(measuring, "measure_ranking", lie)
    assert lab.organiser("rebuild", now=DUE).code == 0
    lab.organiser("archive", lab.root / "kb.zip", "--yes", now=CLOSED).refused(
        "figures that the per-query scores do not give"
    )
    assert "closed-board" not in lab.kinds()


def test_figures_told_before_their_day_are_found_by_anybody(lab: Lab, monkeypatch: Patch) -> None:
    today = lambda *_, **__: date(2026, 11, 3)  # noqa: E731 - a rule that is not board.toml's
    monkeypatch.setattr(overdue, "due_day", today)
    assert lab.organiser("rebuild", now="2026-11-04T10:00:00Z").code == 0
    lab.share()
    answer = lab.call("audit", "--board", lab.clone, "--now", DUE, "--json")
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
    lab = found_lab(tmp_path)
    numbers = range(QUERIES)
    queries = "".join(f"next{i}\twhat is next thing {i}\n" for i in numbers)
    (lab.board / "queries/next.tsv").write_text(queries, "utf-8")
    labels = "".join(f"next{i} 0 dnext{i} 1\n" for i in numbers)
    (lab.vault / "labels/next.qrels").write_text(labels, "utf-8")
    lab.rule(now="2026-11-01T12:00:00Z", more=SEASONS)
    for name, seed, team in (("one", 1, TEAM), ("two", 2, OTHER_TEAM)):
        lab.send(name, seed=seed, team=team)
    lab.take_in()
    ids = ["20261102-one", "20261102-two"]
    lab.organiser("publish", *ids, "--why", "known", "--yes", now=NEXT).done()
    assert measured(lab) == []
    assert "from 01 Jan 2027 on" in page(lab).replace("\u00a0", " ")
    assert lab.organiser("rebuild", now="2027-01-01T00:00:00Z").code == 0
    [figures] = measured(lab)
    assert (figures["season"], figures["view"], figures["entries"]) == ("winter", "eval", ids)
    folder = lab.board / "leaderboard"
    assert "once the board is closed" in page(lab)
    rows = json.loads((folder / "seasons" / "winter.json").read_text())["rows"]
    assert {row["rank_high"] for row in rows} <= {1, 2}
    assert json.loads((folder / "trust-winter.json").read_text())["entries"] == ids
    assert lab.organiser("rebuild", now="2027-01-02T00:00:00Z").code == 0
    assert len(measured(lab)) == 1
    assert lab.audit()["ok"]
