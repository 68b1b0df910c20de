"""`heldout.evaluate` takes the names that people type, and measures of other libraries."""

from pathlib import Path

import pytest

import heldout as ho

QRELS = {"1": {"a": 1, "b": 0}, "2": {"a": 2, "c": 1}}
RUN = {"1": {"b": 2.0, "a": 1.0}, "2": {"x": 3.0, "a": 2.0, "c": 2.0}}


def test_names_of_trec_eval_are_our_measures() -> None:
    found = ho.evaluate({"mine": RUN}, QRELS, ["map", "ndcg_cut.5,10", "mrr@10"])
    assert found.measures == ("AP", "nDCG@5", "nDCG@10", "RR@10")
    assert found["mine"] == ho.evaluate({"mine": RUN}, QRELS, found.measures)["mine"]


def test_a_run_in_memory_and_its_file_have_the_same_scores_by_other_libraries(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mine.run"
    rows = ((q, d, s) for q, scores in RUN.items() for d, s in scores.items())
    path.write_text("".join(f"{q} Q0 {d} 1 {s} t\n" for q, d, s in rows))
    measures = ["official", "Compat", "Judged@2", "infAP"]
    memory = ho.evaluate({"mine": RUN}, QRELS, measures)
    file = ho.evaluate({"mine": str(path)}, QRELS, measures)
    assert memory.columns(per_query=True) == file.columns(per_query=True)
    engines = memory.to_dict()["computed_by"]
    assert engines["Compat"].startswith("ir_measures ")
    assert engines["gm_map"].startswith("trec_eval in pytrec_eval-terrier ")


def test_subtopics_are_read_where_a_measure_asks_for_them(tmp_path: Path) -> None:
    pytest.importorskip("pyndeval")
    qrels = tmp_path / "qrels"
    qrels.write_text("1 1 a 1\n1 2 b 1\n2 1 a 1\n")
    with pytest.raises(ho.InputError) as caught:
        ho.evaluate({"mine": RUN}, QRELS, "alpha_nDCG@10")
    assert caught.value.problems[0].code == "needs-subtopics"
    found = ho.evaluate({"mine": RUN}, str(qrels), ["alpha_nDCG@10", "RR"])
    assert 0 < (found["mine"]["alpha_nDCG@10"] or 0) < 1
