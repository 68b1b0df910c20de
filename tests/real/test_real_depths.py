"""Depths of annotation and types of discarded queries on the published labels."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from heldout.cli.program import main
from heldout.scoring.measures import parse_measure
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.depths.extrapolation import extrapolate
from heldout.survivorship.depths.scores import (
    DepthScores,
    DepthTest,
    compare_nested,
    compare_survivors,
    score_depths,
    split_change,
)
from heldout.survivorship.reading.depth_qrels import read_depth_qrels
from heldout.trec.tops import RunPositions

pytestmark = [pytest.mark.real]

TABLE_4 = """
8,197 15,543 22,060 27,858 33,062 38,024 42,669 47,146 51,344 55,578
8,192 15,532 22,041 27,837 33,039 37,998 42,640 47,114 51,309 55,542
"""
"""Queries with a label at each depth: ours, then the paper's."""
COUNTS, PUBLISHED = (
    tuple(int(count) for count in line.split())
    for line in TABLE_4.replace(",", "").strip().split("\n")
)
CATEGORIES = {
    "FACTOID": (55_216, 24_883),
    "EVIDENCE-BASED": (35_446, 13_657),
    "INSTRUCTION": (5_727, 4_423),
    "REASON": (2_487, 1_429),
    "DEBATE": (1_075, 554),
    "NOT-A-QUESTION": (478, 223),
    "COMPARISON": (430, 215),
    "EXPERIENCE": (234, 131),
}


@pytest.fixture(scope="module")
def annotations(data: Callable[[str], Path]) -> Annotations:
    return read_depth_qrels(data("msmarco-annotation-depth"))


def made_up_run(annotations: Annotations) -> RunPositions:
    """A run like the study's BM25, better on queries with a deeper first label; 36 unanswered."""
    rng = np.random.default_rng(0)
    survivors = [record for record in annotations.records if record.selected]
    out = set(rng.choice(len(survivors), 36, replace=False).tolist())
    found = {}
    for at, record in enumerate(survivors):
        if at in out:
            continue
        chance = 0.42 + 0.02 * np.log(record.first or 1)
        ranks = [int(rank) for rank in rng.geometric(0.27, len(record.selected))]
        right = rng.random(len(record.selected)) < chance
        found[str(record.query)] = {
            str(doc): rank
            for doc, rank, has in zip(record.selected, ranks, right, strict=True)
            if has
        }
    return RunPositions(found=found, retrieved=dict.fromkeys(found, 1000))


@pytest.fixture(scope="module")
def scores(annotations: Annotations) -> DepthScores:
    run = made_up_run(annotations)
    return score_depths(annotations, {"made up": run}, parse_measure("RR@10"))


@pytest.mark.slow
def test_numq_comes_from_the_labels_with_the_first_alone_too(
    annotations: Annotations, scores: DepthScores
) -> None:
    """The paper's own counts are 5 to 36 less: as many as its runs do not answer, it seems."""
    runs = {"made up": made_up_run(annotations)}
    first = score_depths(annotations, runs, parse_measure("RR@10"), first_only=True)

    assert scores.counts == COUNTS
    assert scores.names[-1] == "10+"
    assert first.counts == COUNTS
    gaps = [ours - theirs for ours, theirs in zip(COUNTS, PUBLISHED, strict=True)]
    assert (min(gaps), max(gaps)) == (5, 36)
    assert gaps == sorted(gaps)


def test_36_unanswered_queries_leave_gaps_of_the_papers_size(scores: DepthScores) -> None:
    missing = scores.unanswered[0].tolist()

    assert missing[-1] == 36
    assert missing[0] < 15
    answered = [count - gone for count, gone in zip(scores.counts, missing, strict=True)]
    assert all(abs(ours - theirs) <= 12 for ours, theirs in zip(answered, PUBLISHED, strict=True))


def found_at(tests: Sequence[DepthTest]) -> list[int]:
    """Depths at which a test is significant, corrected, and deeper queries score higher."""
    return [
        one.depth + 1
        for one in tests
        if one.p_corrected is not None and one.p_corrected < 0.05 and (one.difference or 0) > 0
    ]


def test_both_tests_find_a_made_up_trend_where_each_query_has_one_label(
    annotations: Annotations,
) -> None:
    """The paper's test finds it at fewer depths: all labels hold the queries of each."""
    runs = {"made up": made_up_run(annotations)}
    made = score_depths(annotations, runs, parse_measure("RR@10"), first_only=True)

    assert found_at(compare_nested(made)) == [1, 2, 3, 4]
    assert found_at(compare_survivors(made)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_more_labels_of_a_query_star_the_papers_test_and_hide_the_trend_from_the_other(
    scores: DepthScores,
) -> None:
    """Queries with a shallow label have more of them, and one of many is found sooner."""
    nested, survivors = compare_nested(scores), compare_survivors(scores)

    assert found_at(nested) == [1, 2, 3, 4, 5, 6, 7]
    assert found_at(survivors) == []
    assert all(test.queries + test.others == COUNTS[-1] for test in survivors)
    first = split_change(scores)[0]
    assert first.labels is not None
    assert first.queries is not None
    assert first.labels > first.queries > 0


def test_the_outlook_goes_on_from_what_is_known_and_shows_where_its_model_fails(
    annotations: Annotations, scores: DepthScores
) -> None:
    """The hazard falls to place 5 and rises again: half of the places foretell 2% too few."""
    outlook = extrapolate(
        scores, np.random.default_rng(0), discarded=annotations.discarded, to=[20], trials=200
    )
    (found,), check = outlook.predicted, outlook.backtest

    assert COUNTS[-1] < found.queries.low < found.queries.high < len(annotations.records)
    assert check is not None
    assert (check.predicted.depth, check.queries) == (9, COUNTS[8])
    assert check.predicted.queries.value == pytest.approx(50_229, abs=5)
    assert check.predicted.queries.high < check.queries


def test_the_table_of_categories_comes_out(data: Callable[[str], Path]) -> None:
    folder = data("msmarco-annotation-depth")
    kinds = folder / "nfcats.msmarco-dev.tsv.gz"
    found = CliRunner().invoke(
        main,
        ["survive", "types", "--annotations", str(folder), "--types", str(kinds), "--json"],
    )
    assert found.exit_code == 0, found.output
    value = json.loads(found.stdout)

    told = {one["kind"]: (one["total"], one["discarded"]) for one in value["types"]}
    assert told == CATEGORIES
    assert (value["total"], value["discarded"]) == (101_093, 45_515)


@pytest.mark.parametrize(
    ("labels", "score", "first"),
    [
        (None, 0.491, 14),
        ("thesis_dataset_binary_threshold2.tsv", 0.976, 40),
        ("thesis_dataset_binary_threshold3.tsv", 0.917, 36),
    ],
)
def test_mrr_of_the_order_shown_under_three_label_sets(
    data: Callable[[str], Path], labels: str | None, score: float, first: int
) -> None:
    """At depth 1 the order shown is perfect: its labels were chosen from it."""
    folder = data("msmarco-dev-relabelled")
    asked = ["--annotations", str(folder / "shown_passages.jsonl.gz"), "--to", "0", "--json"]
    asked += ["--query-list", str(folder / "experiment_queries.txt")]
    asked += [] if labels is None else ["--qrels", str(folder / labels)]
    found = CliRunner().invoke(main, ["survive", "depths", *asked])
    assert found.exit_code == 0, found.output
    depths = json.loads(found.stdout)["depths"]

    assert (depths[-1]["queries"], depths[0]["queries"]) == (42, first)
    assert depths[-1]["scores"]["shown"] == pytest.approx(score, abs=0.0005)
    assert depths[0]["scores"]["shown"] == 1.0


def test_bm25_scores_higher_with_depth_on_300_queries(
    data: Callable[[str], Path], tmp_path: Path
) -> None:
    """The order in which another study showed passages is BM25's; the labels are the paper's."""
    run, ids = tmp_path / "bm25.run", tmp_path / "ids"
    shown = data("msmarco-dev-relabelled/shown_passages.jsonl.gz")
    asked = ["survive", "depths", "--to", "0", "--json", "--annotations"]
    written = CliRunner().invoke(main, [*asked, str(shown), "--write-shown", str(run)])
    assert written.exit_code == 0, written.output
    queries = sorted({line.split()[0] for line in run.read_text("utf-8").splitlines()})
    ids.write_text("\n".join(queries), "utf-8")
    asked += [str(data("msmarco-annotation-depth")), "--query-list", str(ids), "--runs", str(run)]
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 0, found.output
    depths = json.loads(found.stdout)["depths"]

    scores = " ".join(f"{one['scores']['bm25']:.3f}" for one in depths)
    assert scores == "0.346 0.327 0.335 0.334 0.360 0.364 0.377 0.371 0.367 0.378"
    assert [one["queries"] for one in depths] == [48, 87, 115, 156, 183, 213, 238, 255, 279, 300]
