"""heldout's measures inside ir_measures: equal to those of its own provider, pytrec_eval."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ir_measures
import pytest

from heldout.scoring.ir_measures_provider import HeldoutProvider, provider
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import read_file

QRELS = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}, "q3": {"z": 0}}
RUN = {"q1": {"a": 1.0, "b": 3.0, "c": 2.0, "x": 1.0}, "q3": {"a": 1.0}, "q9": {"a": 1.0}}
NDCG, AP, RR = ir_measures.nDCG, ir_measures.AP, ir_measures.RR
P, R, Bpref, Success = ir_measures.P, ir_measures.R, ir_measures.Bpref, ir_measures.Success
MEASURES = [
    *(NDCG, NDCG @ 10, NDCG(judged_only=True) @ 3, NDCG(gains={1: 3}) @ 10, AP, AP(rel=2), AP @ 3),
    *(RR, RR(rel=2), P @ 5, P(rel=2, judged_only=True) @ 2, R @ 3, Bpref, Success @ 1),
]


def values(provider: Any, measures: list[Any], qrels: Any, run: Any) -> dict[Any, float]:
    return {
        (str(one.measure), one.query_id): one.value
        for measure in measures  # one by one: ir_measures mixes settings when asked for several
        for one in provider.iter_calc([measure], qrels, run)
    }


def test_equal_to_the_provider_pytrec_eval() -> None:
    found = values(provider, MEASURES, QRELS, RUN)
    assert found == pytest.approx(values(ir_measures.pytrec_eval, MEASURES, QRELS, RUN), abs=1e-12)
    assert {query for _, query in found} == set(QRELS)  # an unanswered one has its 0


def test_several_at_once_are_each_what_it_is_alone() -> None:
    together = {
        (str(one.measure), one.query_id): one.value
        for one in provider.iter_calc(MEASURES, QRELS, RUN)
    }
    assert together == values(provider, MEASURES, QRELS, RUN)


def test_every_form_of_a_run_and_of_judgments() -> None:
    rows = [ir_measures.Qrel(q, d, g) for q, grades in QRELS.items() for d, g in grades.items()]
    docs = [ir_measures.ScoredDoc(q, d, s) for q, scores in RUN.items() for d, s in scores.items()]
    expected = provider.calc_aggregate([AP], QRELS, RUN)
    assert provider.calc_aggregate([AP], iter(rows), iter(docs)) == expected
    pandas = pytest.importorskip("pandas")
    assert provider.calc_aggregate([AP], pandas.DataFrame(rows), pandas.DataFrame(docs)) == expected


def test_an_empty_run_counts_0() -> None:
    assert provider.calc_aggregate([AP, RR @ 10], QRELS, {}) == {AP: 0.0, RR @ 10: 0.0}


def test_the_pipeline_of_ir_measures_can_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tied = {"q1": {"a": 1.0, "c": 1.0, "b": 1.0}}
    before = ir_measures.calc_aggregate([RR @ 1], {"q1": {"a": 1}}, tied)
    pipeline = ir_measures.DefaultPipeline
    monkeypatch.setattr(pipeline, "providers", [provider, *pipeline.providers])
    after = ir_measures.calc_aggregate([RR @ 1], {"q1": {"a": 1}}, tied)
    # ties by id, descending, also with a cutoff; ir_measures' own RR@k has the opposite order
    assert (before[RR @ 1], after[RR @ 1]) == (1.0, 0.0)
    assert ir_measures.calc_aggregate([ir_measures.Rprec], QRELS, RUN)


def test_what_it_supports_is_what_heldout_computes() -> None:
    own = (
        ir_measures.RBP(rel=1) @ 10,
        ir_measures.ERR @ 20,
        NDCG(dcg="exp-log2") @ 10,
        P(rel=2) @ 5,
    )
    assert all(provider.supports(measure) for measure in own)
    for other in (ir_measures.Rprec, ir_measures.alpha_nDCG @ 10, RR(rel=0)):
        assert not provider.supports(other)
    assert ir_measures.providers.registry["heldout"] is provider


@pytest.mark.real
@pytest.mark.parametrize("run", ["xj4wang_run1", "sheikh_bm25_all"])
def test_real_runs_are_equal_to_pytrec_eval(data: Callable[[str], Path], run: str) -> None:
    folder = data("trec-covid-round1")
    rows: dict[str, dict[str, float]] = {}
    with gzip.open(folder / "runs-depth100" / f"{run}.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            query, _, document, _, score, _ = line.split()
            rows.setdefault(query, {})[document] = float(score)
    qrels = read_file(read_qrels, folder / "qrels-round1.txt.gz").judgments
    found = values(HeldoutProvider(order="trec9"), MEASURES, qrels, rows)
    theirs = values(ir_measures.pytrec_eval, MEASURES, qrels, rows)
    assert found == pytest.approx(theirs, abs=1e-12)
    assert len(found) == len(MEASURES) * 30
