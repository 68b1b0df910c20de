"""Views of fairness and of small data, through the command line, to the page."""

import json
import math
import re
import zipfile
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy.spatial.distance import jensenshannon
from town import OTHER_TEAM, QUERIES, TEAM, Town, found_town, named

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
HALF = QUERIES // 2

VIEWS = """
[[views]]
name = "fair"
set = "eval"
measure = "AWRF@5"
groups = "labels/eval.groups"
target = { even = 0.5, odd = 0.5 }

[[views]]
name = "worst"
set = "eval"
measure = "RR@10"
facets = "labels/eval.facets"
summary = "worst"
min_group = 10

[[views]]
name = "gap"
set = "eval"
measure = "RR@10"
facets = "labels/eval.facets"
summary = "gap"
min_group = 10

[[views]]
name = "tail"
set = "eval"
measure = "RR@10"
queries = "labels/eval.tail"

[[views]]
name = "small"
set = "eval"
measure = "RR@10"
training_at_most = 1000
"""


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """A town with all these views; every file that they name is held out."""
    town = found_town(tmp_path)
    labels = town.vault / "labels"
    numbers = range(QUERIES)
    rows = [f"n{i}-{k}\t{('even', 'odd')[k % 2]}\n" for i in numbers for k in range(40)]
    (labels / "eval.groups").write_text("".join(rows))
    facets = [f"eval{i}\t{'common' if i < HALF else 'rare'}\n" for i in numbers]
    (labels / "eval.facets").write_text("".join([*facets, "eval0\ttiny\n"]))
    (labels / "eval.tail").write_text("".join(f"eval{i}\n" for i in range(5)))
    town.rule(now=DAY, more=VIEWS)
    return town


def lists_of(town: Town, submission: str) -> dict[str, list[str]]:
    """The run as it was sent: query -> documents, best first."""
    lists: dict[str, list[str]] = {}
    run = (town.clone / ".git/heldout/drafts" / submission / "eval.run").read_text("utf-8")
    for query, document, _ in (line.split("\t") for line in run.splitlines()):
        lists.setdefault(query, []).append(document)
    return lists


def awrf_of(documents: list[str]) -> float:
    exposure = {"even": 0.0, "odd": 0.0}
    for place, document in enumerate(documents, start=1):
        if document.startswith("n"):
            group = ("even", "odd")[int(document.rpartition("-")[2]) % 2]
            exposure[group] += 1 / math.log2(max(place, 2))
    return 1 - float(jensenshannon(list(exposure.values()), [0.5, 0.5])) ** 2


def stated(pairs: int | None) -> dict[str, Any]:
    return {} if pairs is None else {"efficiency": {"training_pairs": pairs}}


def row_of(town: Town, submission: str) -> dict[str, Any]:
    return next(row for row in town.rows() if row["id"] == submission)


def test_fairness_and_small_data_from_the_run_to_the_page(town: Town) -> None:
    few = town.enter("few", seed=1, now=DAY, shared=True, team={**TEAM, **stated(800)})
    many = town.enter("many", seed=2, now=DAY, shared=True, team={**OTHER_TEAM, **stated(500_000)})
    silent = town.enter("silent", seed=3, now=NEXT, shared=True, team=named("Harbour"))
    for submission in (few, many, silent):
        lists = lists_of(town, submission)
        rr = {q: 1 / (1 + documents.index(f"d{q}")) for q, documents in lists.items()}
        common = fmean(rr[f"eval{i}"] for i in range(HALF))
        rare = fmean(rr[f"eval{i}"] for i in range(HALF, QUERIES))
        scores = row_of(town, submission)["scores"]
        assert scores["eval"] == pytest.approx(fmean(rr.values()), abs=6e-4)
        assert scores["fair"] == pytest.approx(fmean(map(awrf_of, lists.values())), abs=6e-4)
        assert scores["worst"] == pytest.approx(min(common, rare), abs=6e-4)
        assert scores["gap"] == pytest.approx(abs(common - rare), abs=6e-4)
        assert scores["tail"] == pytest.approx(fmean(rr[f"eval{i}"] for i in range(5)), abs=6e-4)
    assert row_of(town, few)["scores"]["small"] == row_of(town, few)["scores"]["eval"]
    reasons = {s: row_of(town, s)["why"]["scores.small"] for s in (many, silent)}
    assert reasons == {
        many: "500,000 training pairs, more than 1,000",
        silent: "training pairs not stated",
    }
    own = json.loads((town.board / "leaderboard/views/small.json").read_text("utf-8"))["rows"]
    assert [(row["id"], row["rank"]) for row in own if row["rank"]] == [(few, 1)]
    page = (town.board / "leaderboard/index.html").read_text("utf-8")
    assert f"{QUERIES}\u00a0held-out queries" in page  # of the view that ranks, not of another
    assert "Trained on at most 1,000 pairs (small)" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "gap between groups" in page.replace("\N{NO-BREAK SPACE}", " ")
    described = town.organiser("board", "describe", "--json", now=NEXT).json
    facts = {view["name"]: view for view in described["views"]}
    assert facts["worst"]["facets"] == {"common": HALF, "rare": HALF, "tiny": 1}
    assert facts["worst"]["too_small"] == ["tiny"]
    assert facts["fair"]["shares"] == facts["fair"]["target"] == {"even": 0.5, "odd": 0.5}
    assert (facts["tail"]["queries"], facts["tail"]["unknown"]) == (5, 0)
    told = town.organiser("board", "describe", now=NEXT).out
    assert '"tiny" 1, too small, and left out' in told
    assert "view tail is scored on 5 eval queries" in told
    review = town.organiser("review", few, "--score", now=NEXT)
    assert "fair AWRF@5" in review.out
    assert re.search('; "(common|rare)" over "(common|rare)"', review.out)
    assert town.audit()["ok"], town.audit()


def test_a_participant_is_not_told_what_the_vault_holds(town: Town) -> None:
    submission = town.draft("mine", now=DAY)
    answer = town.participant("check", submission, now=DAY).done()
    assert "AWRF" not in answer.out
    assert not list(town.clone.rglob("eval.groups"))
    public = "".join(
        path.read_text("utf-8", "replace")
        for path in town.clone.rglob("*")
        if path.is_file() and ".git" not in path.parts
    )
    assert "eval0\tcommon" not in public


def test_a_list_of_unknown_documents_alone_is_not_scored_0(town: Town) -> None:
    (town.vault / "labels/eval.groups").write_text("n0-0\teven\nn1-1\todd\n")
    submission = town.enter("few", seed=1, now=DAY, shared=True, team=TEAM)
    scores = json.loads((town.vault / f"scores/{submission}.json").read_text("utf-8"))
    found = scores["views"]["fair"]
    assert found["n"] == 2
    assert found["per_query"]["eval5"] is None
    assert 0 < found["mean"] < 1


def test_the_archive_opens_what_the_views_are_scored_by(town: Town) -> None:
    town.enter("few", seed=1, now=DAY, shared=True, team={**TEAM, **stated(800), "open_runs": True})
    file = town.root / "kb.zip"
    town.organiser("archive", file, "--yes", now=NEXT).done()
    with zipfile.ZipFile(file) as archive:
        named = {"labels/eval.groups", "labels/eval.facets", "labels/eval.tail"}
        assert named <= set(archive.namelist())
        assert any(name.startswith("runs/") for name in archive.namelist())
    town.participant("audit", file, now=NEXT).done()


def test_a_missing_file_of_groups_is_told_by_its_name(town: Town) -> None:
    (town.vault / "labels/eval.groups").unlink()
    submission = town.send("few", seed=1, now=DAY)
    town.take_in(now=DAY)
    answer = town.organiser("review", submission, now=DAY)
    assert answer.code != 0
    assert "labels/eval.groups is missing: board.toml names" in answer.err
