"""Boards of other kinds, through the command line: one-shot, with reserves."""

import json
import re

import pytest
from town import QUERIES, TEAM, Town, fresh_town, run_text

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
LAST = "2026-12-31T23:59:59Z"
AFTER = "2027-01-01T00:00:00Z"


town = fresh_town


def test_a_one_shot_board_keeps_all_scores_to_itself_until_its_last_day_is_over(
    town: Town,
) -> None:
    town.rule(("primary = ", 'closes = 2026-12-31\nkind = "one-shot"\nprimary = '), now=DAY)
    first = town.enter("first", seed=1, now=DAY, shared=True)
    second = town.enter("second", seed=2, now=NEXT, shared=True)
    log = (town.board / "log.jsonl").read_text("utf-8")
    page = (town.board / "leaderboard/index.html").read_text("utf-8")
    scores = json.loads((town.vault / f"scores/{first}.json").read_text("utf-8"))["views"]
    shown = f"{scores['eval']['mean']:.3f}"
    assert shown not in log
    assert shown not in page
    assert "score shown after 31 Dec 2026" in page
    assert "2 entries, none ranked yet" in page
    rows = town.rows()
    assert [(row["rank"], row["scores"]["eval"]) for row in rows] == [(None, None)] * 2
    assert {row["why"]["rank"] for row in rows} == {"score shown after 31 Dec 2026"}
    status = town.participant("status", first, now=LAST).done()
    assert shown not in status.out
    assert "score     published after the last day, 31 Dec 2026, with everybody's" in status.out
    assert town.organiser("rebuild", now=LAST).code == 0
    assert {row["rank"] for row in town.rows()} == {None}
    third = town.draft("third", seed=3, now=NEXT)
    refused = town.participant("submit", third, now=NEXT)
    assert refused.code == 1
    assert "you may submit again from 01 Jan 2027 00:00 UTC" in refused.out
    assert "more than 2 runs of this team, the number that each has on this board" in refused.out
    assert town.organiser("rebuild", now=AFTER).code == 0
    found = {row["id"]: row["scores"]["eval"] for row in town.rows()}
    assert found[first] == pytest.approx(scores["eval"]["mean"], abs=5e-4)
    assert sorted(row["rank"] for row in town.rows()) == [1, 2]
    assert not any(row["trophy"] for row in town.rows())
    late = town.enter("late", seed=4, now=AFTER, shared=True)
    row = next(row for row in town.rows() if row["id"] == late)
    assert row["rank"] is None
    assert row["why"]["rank"] == "post hoc: came after 31 Dec 2026"
    assert row["scores"]["eval"] is not None
    assert second in found
    assert town.audit()["ok"]


SEASONS = """
[[seasons]]
name = "first"
view = "eval"
opens = 2026-11-01
closes = 2026-12-31

[[seasons]]
name = "second"
view = "eval-2027"
opens = 2027-01-01
"""


def test_a_season_has_queries_of_its_own_and_the_one_before_stays_as_it_was(town: Town) -> None:
    numbers = range(QUERIES)
    queries = "".join(f"next{i}\twhat is next thing {i}\n" for i in numbers)
    (town.board / "queries/next.tsv").write_text(queries, "utf-8")
    labels = "".join(f"next{i} 0 dnext{i} 1\n" for i in numbers)
    (town.vault / "labels/next.qrels").write_text(labels, "utf-8")
    given = '[sets.next]\nqueries = "queries/next.tsv"\n\n[[views]]\nname = "eval-2027"\n'
    view = f'{given}set = "next"\nmeasure = "RR@10"\n'
    text = (town.board / "board.toml").read_text("utf-8")
    town.rule((text, f"{text}\n{view}{SEASONS}"), now=DAY)
    for query_set in ("dev", "eval"):
        (town.root / f"base.{query_set}").write_text(run_text(query_set, 9), "utf-8")
    runs = [f"--run={name}={town.root / f'base.{name}'}" for name in ("dev", "eval")]
    town.organiser(
        "board", "baseline", "20261102-bm25", *runs, "--description", "BM25", now=DAY
    ).done()
    town.share()
    first = town.enter("first", seed=1, now=DAY, shared=True)
    before = town.rows()
    assert {row["id"] for row in before} == {"20261102-bm25", first}
    assert town.audit()["ok"]

    (town.root / "next.run").write_text(run_text("next", 2), "utf-8")
    (town.root / "dev.run").write_text(run_text("dev", 2), "utf-8")
    runs = ["--dev", str(town.root / "dev.run"), f"--run=next={town.root / 'next.run'}"]
    later = "2027-01-05T10:00:00Z"
    drafted = town.participant("draft", "later", *runs, "--json", now=later)
    second = str(drafted.json["id"])
    town.fill(second, **TEAM)
    assert town.participant("submit", second, now=later).code == 0
    town.take_in(now=later)
    answer = town.publish(second, now=later).done()
    assert re.search(r"released  RR@10 0\.\d{3}, n = 30 \(dev 0\.\d{3}\)", answer.out), answer.out
    town.push()
    (row,) = town.participant("status", second, "--json", now=later).json["submissions"]
    assert row["primary"] in row["scores"]
    assert [(row["id"], row["rank"]) for row in town.rows()] == [(second, 1)]
    assert set(town.rows()[0]["scores"]) == {"dev", "eval-2027"}
    frozen = json.loads((town.board / "leaderboard/seasons/first.json").read_text("utf-8"))
    assert frozen["rows"] == before
    page = (town.board / "leaderboard/seasons.html").read_text("utf-8")
    assert "Season first" in page
    assert (town.board / f"leaderboard/entries/{first}.html").exists()
    assert town.audit()["ok"]
