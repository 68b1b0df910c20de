"""What is said of a comparison with BM25 and of a learning curve."""

from dataclasses import replace

import pytest

from heldout.answers.table import to_markdown
from heldout.rankers.playbook.fine_tuning import Advice, CurveBaseline, CurvePoint, LearningCurve
from heldout.rankers.playbook.playbook import (
    Comparison,
    Finders,
    FittedLabels,
    LabelPlaces,
    Verdict,
)
from heldout.rankers.playbook.questions import (
    ask_for_labels,
    comparison_facts,
    comparison_tables,
    fine_tuning_facts,
)
from heldout.scoring.measures import parse_measure

FOUND = Comparison(
    measure=parse_measure("nDCG@10"),
    queries=100,
    without_relevant=0,
    ranker=0.45,
    baseline=0.4,
    difference=0.05,
    t=(0.02, 0.08),
    bootstrap=(0.021, 0.079),
    level=0.95,
    p=0.001,
    deviation=0.15,
    wins=50,
    ties=20,
    losses=30,
    found=Finders(both=60, ranker=20, baseline=10, neither=10),
    places=LabelPlaces(top=50, below=30, missed=20),
    gain=0.02,
    verdict="better",
    why="",
    queries_for_gain=443,
    detectable=0.042,
)
LABELS = FittedLabels(labels={}, unasked=0, unknown=0)


def words(found: Comparison, fitted: FittedLabels = LABELS) -> str:
    return "\n".join(f"{name}: {text}" for name, text in comparison_facts(found, fitted))


@pytest.mark.parametrize(
    ("verdict", "used"),
    [
        ("better", "use: this run"),
        ("worse", "use: BM25"),
        ("not better", "does as well, and costs less"),
        ("cannot tell", "343 more labelled queries would find a gain of 0.02"),
    ],
)
def test_each_verdict_says_what_to_use(verdict: Verdict, used: str) -> None:
    assert used in words(replace(FOUND, verdict=verdict))


def test_of_few_queries_no_power_is_told() -> None:
    few = replace(FOUND, verdict="cannot tell", why="fewer than 10 labelled queries", queries=3)
    assert "power" not in words(few)
    assert "label 50 queries at least" in words(few)


def test_undefined_intervals_are_left_out_and_dashed() -> None:
    none = replace(FOUND, verdict="cannot tell", why="no interval", t=None, bootstrap=None, p=None)
    assert "by t" not in words(none)
    table, _ = comparison_tables(none, "mine")
    assert "| mine | 0.4500 | +0.0500 | - | - | - | - | - |" in to_markdown(table)


def test_what_speaks_against_the_labels_is_said() -> None:
    assert "labels" not in words(FOUND).replace("labelled", "")
    suspect = replace(FOUND, places=LabelPlaces(top=95, below=3, missed=2), without_relevant=1)
    text = words(suspect, FittedLabels(labels={}, unasked=7, unknown=1))
    assert "95% of the 100 relevant documents stand among BM25's first 10" in text
    assert "1 query has no relevant document" in text
    assert "1 relevant document is not in the collection" in text
    assert "7 labelled queries are not asked here" in text


def test_shares_of_who_finds_it_add_up() -> None:
    _, finders = comparison_tables(FOUND, "mine")
    assert sum(float(str(row[2])) for row in finders.rows) == pytest.approx(1)


@pytest.mark.parametrize(
    ("ranker", "gains"),
    [("zero-shot-hybrid", "0.06 to 0.09"), ("zero-shot-lexical", "0.04 to 0.06")],
)
def test_what_labels_would_buy_is_that_of_the_ranker_in_hand(ranker: str, gains: str) -> None:
    labels = dict(ask_for_labels("nDCG@10", ranker))["labels"]
    assert labels.startswith(f"50 labelled queries would find a true gain of about {gains} nDCG@10")


@pytest.mark.parametrize(
    ("measure", "ranker"), [("nDCG@10", "bm25"), ("RR@10", "zero-shot-hybrid")]
)
def test_of_what_was_not_measured_nothing_is_foretold(measure: str, ranker: str) -> None:
    assert [name for name, _ in ask_for_labels(measure, ranker)] == ["verdict", "next"]


def test_a_curve_is_told_with_its_intervals() -> None:
    curve = LearningCurve(
        measure="RR@10",
        baseline=CurveBaseline(name="bm25", mean=0.4),
        points=(CurvePoint(pairs=100, trials=(0.3, 0.31)),),
    )
    advice = Advice(
        verdict="would pay",
        why="with more labelled pairs",
        target=0.42,
        pairs=100,
        mean=0.305,
        interval=(0.29, 0.32),
        per_doubling=0.05,
        per_doubling_interval=(0.04, 0.06),
        last_step=(-0.01, 0.06),
        pairs_needed=492,
        pairs_low=400,
        pairs_high=None,
    )
    text = "\n".join(said for _, said in fine_tuning_facts(advice, curve))
    assert "fine-tuning would pay against bm25: with more labelled pairs" in text
    assert "this run is not in the curve, bm25 is" in text
    assert "RR@10 0.3050 [0.2900, 0.3200] with 100 pairs, against 0.4000 of bm25" in text
    assert "+0.0500 [+0.0400, +0.0600]" in text
    assert "within noise" in text
    assert "about 492 pairs reach 0.4200 (400 or more)" in text
