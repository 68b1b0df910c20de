"""Agreement between views: by hand, its laws, and what is left undefined."""

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from drawings import texts as written
from drawings import tips
from heldout.analyses import views as transfer_charts
from heldout.analyses.views import Transfer, compare_rankings, transfer_summary, transfer_tables
from heldout.answers.answer import to_document
from heldout.scoring.table import ScoreTable, table_of


def table(views: dict[str, list[float | None]]) -> ScoreTable:
    systems = [f"s{n}" for n in range(len(next(iter(views.values()))))]
    return table_of(
        {s: {view: values[n] for view, values in views.items()} for n, s in enumerate(systems)},
        queries=list(views),
    )


def tau_of(found: Transfer, first: str, second: str) -> float | None:
    (tau,) = {p.tau for p in found.pairs if {p.first, p.second} == {first, second}}
    return tau


def test_two_views_by_hand() -> None:
    found = compare_rankings(table({"a": [5, 4, 3, 2, 1], "b": [4, 5, 3, 1, 2]}), top=2)
    (pair,) = found.pairs
    assert (found.views, found.scored, found.systems) == (("a", "b"), (5, 5), 5)
    assert (pair.first, pair.second, pair.systems) == ("a", "b", 5)
    assert pair.tau == pytest.approx(0.6)
    assert (pair.tau_first_top, pair.tau_second_top, pair.shared_top) == (-1, -1, 2)
    assert pair.tau_ap is not None
    assert pair.tau_ap < 0.6
    assert tau_of(found, "b", "a") == pair.tau


def test_a_missing_mean_leaves_a_system_out_of_that_pair_alone() -> None:
    found = compare_rankings(table({"a": [1, 2, 3, None], "b": [None, 2, 1, 3], "c": [3, 2, 1, 0]}))
    assert found.scored == (3, 3, 4)
    assert [(p.first, p.second, p.systems, p.tau) for p in found.pairs] == [
        ("a", "b", 2, -1),
        ("a", "c", 3, -1),
        ("b", "c", 3, pytest.approx(-1 / 3)),
    ]


def test_what_is_undefined_is_said_and_no_number() -> None:
    found = compare_rankings(
        table({"a": [1, None, 2], "b": [None, 1, 2], "c": [1.0, 1.0, 1.0], "d": [3, 2, 1]})
    )
    told = {(p.first, p.second): (p.tau, p.tau_ap, p.why) for p in found.pairs}
    assert told["a", "b"] == (None, None, "fewer than two systems have both scores")
    assert told["c", "d"] == (None, None, "all systems have the same score on c")
    assert told["a", "d"][0] == -1
    notes = " ".join(transfer_tables(found)[-1].notes)
    assert "undefined: all systems have the same score on c" in notes
    assert to_document(found)["pairs"][0]["tau"] is None
    alone = compare_rankings(table({"a": [1], "b": [2]}))
    assert transfer_summary(alone) == (
        ("views", "no two views share systems that both rank differently"),
    )


def test_all_that_tie_with_the_last_of_the_top_are_in_it() -> None:
    found = compare_rankings(table({"a": [9, 5, 5, 5, 1], "b": [1, 2, 3, 4, 5]}), top=2)
    assert (found.pairs[0].first_top, found.pairs[0].second_top) == (4, 2)
    assert found.pairs[0].shared_top == 1


def test_means_that_differ_by_rounding_alone_are_ties() -> None:
    found = compare_rankings(table({"a": [0.3, 0.1 + 0.2, 0.5], "b": [1, 2, 3]}))
    assert found.pairs[0].tau == pytest.approx(2 / np.sqrt(6))


@pytest.mark.real
def test_embedding_models_on_retrieval_collections(data: Callable[[str], Path]) -> None:
    """MTEB: every pair of its collections, tau as scipy has it."""
    with gzip.open(data("leaderboards/mteb-retrieval-results.tsv.gz"), "rt") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    means: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["split"] == ("dev" if row["task"] == "MSMARCO" else "test") and row["ndcg_at_10"]:
            means.setdefault(row["model"], {}).setdefault(row["task"], float(row["ndcg_at_10"]))
    tasks = sorted({task for known in means.values() for task in known})
    found = compare_rankings(table_of(means, queries=tasks))

    assert (len(found.views), found.systems, len(found.pairs)) == (14, 289, 91)
    for pair in found.pairs[::10]:
        both = [k for k in means.values() if pair.first in k and pair.second in k]
        # Some models give 0.52412 and others 0.5241199999999999
        x, y = ([round(known[view], 12) for known in both] for view in (pair.first, pair.second))
        assert pair.systems == len(both)
        assert pair.tau == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
    assert tau_of(found, "FEVER", "ClimateFEVER") == pytest.approx(0.826, abs=5e-4)
    assert tau_of(found, "ArguAna", "Touche2020") == pytest.approx(0.435, abs=5e-4)


@pytest.mark.real
@pytest.mark.parametrize(
    ("year", "runs"), [pytest.param(2019, 37, id="2019"), pytest.param(2020, 59, id="2020")]
)
def test_measures_of_the_deep_learning_track_rank_alike(
    data: Callable[[str], Path], year: int, runs: int
) -> None:
    path = data(f"leaderboards/trec-dl-{year}-official-results.tsv")
    with path.open() as file:
        rows = [
            row
            for row in csv.DictReader(file, delimiter="\t")
            if row["task"] == "passages" and row["summary_kind"] == "trec_eval"
        ]
    measures = ("ndcg_cut_10", "map", "recip_rank")
    found = compare_rankings(
        table_of({row["run"]: {m: float(row[m]) for m in measures} for row in rows})
    )
    assert [pair.systems for pair in found.pairs] == [runs] * 3
    for pair in found.pairs:
        x, y = ([float(row[view]) for row in rows] for view in (pair.first, pair.second))
        assert pair.tau == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)
        assert pair.tau is not None
        assert 0.4 < pair.tau < 0.95


def test_the_picture_has_each_tau_and_puts_the_most_alike_first() -> None:
    found = compare_rankings(
        table({"odd": [3, 1, 2, 4], "x": [1, 2, 3, 4], "y": [1, 2, 3, 4], "flat": [1, 1, 1, 1]})
    )
    chart = transfer_charts.transfer_chart(found)
    texts = written(chart)

    assert {"x · 1", "y · 2", "odd · 3", "flat · 4", "1.00", ".33", "-"} <= set(texts)
    assert texts.count("-") == 3
    assert "y, x: 1.00" in tips(chart)
    assert "4 collections" in transfer_charts.transfer_title(found)
