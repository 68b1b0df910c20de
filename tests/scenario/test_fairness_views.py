"""Views of fairness and of small data, through the command line, to the page."""

import json
import math
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from lab import NEXT, OTHER_TEAM, QUERIES, TEAM, Lab, found_lab, named
from scipy.spatial.distance import jensenshannon
from trusting import read_files

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
def lab(tmp_path: Path) -> Lab:
    """A lab with all these views; every file that they name is held out."""
    lab = found_lab(tmp_path)
    labels = lab.vault / "labels"
    numbers = range(QUERIES)
    rows = [f"n{i}-{k}\t{('even', 'odd')[k % 2]}\n" for i in numbers for k in range(40)]
    (labels / "eval.groups").write_text("".join(rows))
    facets = [f"eval{i}\t{'common' if i < HALF else 'rare'}\n" for i in numbers]
    (labels / "eval.facets").write_text("".join([*facets, "eval0\ttiny\n"]))
    (labels / "eval.tail").write_text("".join(f"eval{i}\n" for i in range(5)))
    lab.rule(more=VIEWS)
    return lab


def lists_of(lab: Lab, submission: str) -> dict[str, list[str]]:
    """The run as it was sent: query -> documents, best first."""
    lists: dict[str, list[str]] = {}
    run = (lab.clone / ".git/heldout/drafts" / submission / "eval.run").read_text("utf-8")
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


def row_of(lab: Lab, submission: str) -> dict[str, Any]:
    return next(row for row in lab.rows() if row["id"] == submission)


def test_fairness_and_small_data_from_the_run_to_the_page(lab: Lab) -> None:
    few = lab.enter("few", seed=1, shared=True, team={**TEAM, **stated(800)})
    many = lab.enter("many", seed=2, shared=True, team={**OTHER_TEAM, **stated(500_000)})
    silent = lab.enter("silent", seed=3, now=NEXT, shared=True, team=named("Harbour"))
    for submission in (few, many, silent):
        lists = lists_of(lab, submission)
        rr = {q: 1 / (1 + documents.index(f"d{q}")) for q, documents in lists.items()}
        common = fmean(rr[f"eval{i}"] for i in range(HALF))
        rare = fmean(rr[f"eval{i}"] for i in range(HALF, QUERIES))
        scores = row_of(lab, submission)["scores"]
        assert scores["eval"] == pytest.approx(fmean(rr.values()), abs=6e-4)
        assert scores["fair"] == pytest.approx(fmean(map(awrf_of, lists.values())), abs=6e-4)
        assert scores["worst"] == pytest.approx(min(common, rare), abs=6e-4)
        assert scores["gap"] == pytest.approx(abs(common - rare), abs=6e-4)
        assert scores["tail"] == pytest.approx(fmean(rr[f"eval{i}"] for i in range(5)), abs=6e-4)
    assert row_of(lab, few)["scores"]["small"] == row_of(lab, few)["scores"]["eval"]
    reasons = {s: row_of(lab, s)["why"]["scores.small"] for s in (many, silent)}
    assert reasons == {
        many: "500,000 training pairs, more than 1,000",
        silent: "training pairs not stated",
    }
    own = json.loads((lab.board / "leaderboard/views/small.json").read_text("utf-8"))["rows"]
    assert [(row["id"], row["rank"]) for row in own if row["rank"]] == [(few, 1)]
    page = (lab.board / "leaderboard/index.html").read_text("utf-8")
    assert f"{QUERIES}\u00a0held-out queries" in page  # of the view that ranks, not of another
    assert "Trained on at most 1,000 pairs (small)" in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "gap between groups" in page.replace("\N{NO-BREAK SPACE}", " ")
    described = lab.organiser("board", "describe", "--json", now=NEXT).json
    facts = {view["name"]: view for view in described["views"]}
    assert facts["worst"]["facets"] == {"common": HALF, "rare": HALF, "tiny": 1}
    assert facts["worst"]["too_small"] == ["tiny"]
    assert facts["fair"]["shares"] == facts["fair"]["target"] == {"even": 0.5, "odd": 0.5}
    assert (facts["tail"]["queries"], facts["tail"]["unknown"]) == (5, 0)
    said = lab.organiser("board", "describe", now=NEXT).out
    assert '"tiny" 1, too small, and left out' in said
    assert "view tail is scored on 5 eval queries" in said
    review = lab.organiser("review", few, "--score", now=NEXT)
    assert "fair AWRF@5" in review.out
    assert re.search('; "(common|rare)" over "(common|rare)"', review.out)
    assert lab.audit()["ok"], lab.audit()


def test_a_participant_is_not_told_what_the_vault_holds(lab: Lab) -> None:
    submission = lab.draft("mine")
    assert "AWRF" not in lab.participant("check", submission).done().out
    assert not list(lab.clone.rglob("eval.groups"))
    public = "".join(
        path.read_text("utf-8", "replace")
        for path in lab.clone.rglob("*")
        if path.is_file() and ".git" not in path.parts
    )
    assert "eval0\tcommon" not in public


def test_a_list_of_unknown_documents_alone_is_not_scored_0(lab: Lab) -> None:
    (lab.vault / "labels/eval.groups").write_text("n0-0\teven\nn1-1\todd\n")
    submission = lab.enter("few", seed=1, shared=True, team=TEAM)
    scores = json.loads((lab.vault / f"scores/{submission}.json").read_text("utf-8"))
    found = scores["views"]["fair"]
    assert found["n"] == 2
    assert found["per_query"]["eval5"] is None
    assert 0 < found["mean"] < 1


def test_the_archive_opens_what_the_views_are_scored_by(lab: Lab) -> None:
    lab.enter("few", seed=1, shared=True, team={**TEAM, **stated(800), "open_runs": True})
    files = read_files(lab.archive(now=NEXT))
    assert {"labels/eval.groups", "labels/eval.facets", "labels/eval.tail"} <= files.keys()
    assert any(name.startswith("runs/") for name in files)


def test_a_missing_file_of_groups_is_told_by_its_name(lab: Lab) -> None:
    (lab.vault / "labels/eval.groups").unlink()
    submission = lab.receive("few", seed=1)
    answer = lab.organiser("review", submission)
    assert answer.code != 0
    assert "labels/eval.groups is missing: board.toml names" in answer.err
