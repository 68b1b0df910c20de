"""Every run against a baseline, with the numbers of scipy and statsmodels."""

from typing import Any

import numpy as np
import pytest
from ir_measures import RR, P, nDCG
from scipy.stats import ttest_rel
from statsmodels.stats.multitest import multipletests

import heldout as ho

QUERIES = [f"q{number}" for number in range(40)]
QRELS = {query: {"d0": 2, "d1": 1, "d2": 0} for query in QUERIES}


def draw_run(seed: int) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    return {
        query: {f"d{at}": float(score) for at, score in enumerate(rng.permutation(8))}
        for query in QUERIES
    }


@pytest.fixture(scope="module")
def results() -> ho.EvaluationResult:
    runs = {f"run{seed}": draw_run(seed) for seed in range(5)}
    return ho.evaluate(runs, QRELS, [nDCG @ 5, "RR", P @ 2])


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "none"])
def test_p_and_corrections_are_those_of_the_peers(
    results: ho.EvaluationResult, correction: Any
) -> None:
    found = results.against("run2", correction=correction).to_pandas()
    scores = results.to_pandas(per_query=True)
    for measure in results.measures:
        table = scores.pivot(index="query", columns="run", values=measure)
        rows = found[found["measure"] == measure].set_index("run")
        assert list(rows.index) == ["run0", "run1", "run3", "run4"]
        ps = [ttest_rel(table[run], table["run2"]).pvalue for run in rows.index]
        corrected = ps if correction == "none" else multipletests(ps, method=correction)[1]
        np.testing.assert_allclose(rows["p"], ps, rtol=1e-9)
        np.testing.assert_allclose(rows["corrected"], corrected, rtol=1e-9)
        np.testing.assert_allclose(rows["mean"], table[rows.index].mean(), rtol=1e-12)
        better = table[rows.index].gt(table["run2"] + 1e-12, axis=0).sum()
        assert list(rows["wins"]) == list(better)


def test_a_significant_loss_is_named() -> None:
    runs = {"good": {q: {"d0": 2.0, "d1": 1.0} for q in QUERIES}, "drawn": draw_run(0)}
    answer = ho.evaluate(runs, QRELS, "nDCG@5").against("good")
    assert answer.columns()["better"] == ["baseline"]
    assert answer.answer == "0 of 1 run are significantly better than good, 1 is worse."
    assert "nDCG@5" in answer.to_latex()
    assert repr(answer).startswith(answer.answer)


@pytest.mark.parametrize("name", ["run9", ""])
def test_an_unknown_baseline_is_an_error(results: ho.EvaluationResult, name: str) -> None:
    with pytest.raises(ho.InputError) as caught:
        results.against(name)
    assert caught.value.code == "baseline-run"


def test_measures_may_be_objects_of_ir_measures() -> None:
    run = draw_run(0)
    for given in (RR @ 10, [RR @ 10], "RR@10"):
        assert ho.evaluate(run, QRELS, given).measures == ("RR@10",)
        means = ho.compare(run, draw_run(1), QRELS, given).columns()
        assert means["measure"] == ["RR@10"]
