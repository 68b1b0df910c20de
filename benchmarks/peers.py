"""The peers, each as its documentation shows it. A child process of the benchmark.

    python peers.py pytrec_eval QRELS RUN

prints mean scores as one JSON object. `many` scores many runs in one process instead.
"""

import argparse
import bz2
import gzip
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from definition import mean_scores

__all__ = ["PEERS"]

Scores = dict[str, float]
_COLUMNS = {"msmarco": (0, 1, 2), "trec": (0, 2, 4)}
"""Where query, document and rank or score stand."""


def _open(path: str) -> IO[str]:
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    opened: IO[str] = openers.get(Path(path).suffix, open)(path, "rt")
    return opened


def _pytrec_eval(qrels_path: str, run_path: str) -> Scores:
    pytrec_eval: Any = import_module("pytrec_eval")
    with _open(qrels_path) as qrels_file, _open(run_path) as run_file:
        qrels = pytrec_eval.parse_qrel(qrels_file)
        run = pytrec_eval.parse_run(run_file)
    names = {
        "RR": "recip_rank",
        "nDCG@10": "ndcg_cut_10",
        "AP": "map",
        "R@1000": "recall_1000",
    }
    found = pytrec_eval.RelevanceEvaluator(qrels, set(names.values())).evaluate(run)
    return {
        name: sum(scores[theirs] for scores in found.values()) / len(qrels)
        for name, theirs in names.items()
    }


def _ir_measures(qrels_path: str, run_path: str) -> Scores:
    ir_measures: Any = import_module("ir_measures")
    measures = [ir_measures.parse_measure(name) for name in ("RR@10", "nDCG@10", "AP", "R@1000")]
    with _open(run_path) as file:
        found = ir_measures.calc_aggregate(
            measures, ir_measures.read_trec_qrels(qrels_path), ir_measures.read_trec_run(file)
        )
    return {str(measure): value for measure, value in found.items()}


def _ranx(qrels_path: str, run_path: str) -> Scores:
    ranx: Any = import_module("ranx")
    qrels = ranx.Qrels.from_file(qrels_path, kind="trec")
    run = ranx.Run.from_file(run_path, kind="gz" if run_path.endswith(".gz") else "trec")
    names = {"RR@10": "mrr@10", "nDCG@10": "ndcg@10", "AP": "map", "R@1000": "recall@1000"}
    found = ranx.evaluate(qrels, run, list(names.values()))
    return {name: float(found[theirs]) for name, theirs in names.items()}


def _trectools(qrels_path: str, run_path: str) -> Scores:
    trectools: Any = import_module("trectools")
    evaluation = trectools.TrecEval(trectools.TrecRun(run_path), trectools.TrecQrel(qrels_path))
    found = {
        "RR": evaluation.get_reciprocal_rank(),
        "nDCG@10": evaluation.get_ndcg(depth=10),
        "AP": evaluation.get_map(),
        "R@1000": evaluation.get_recall(depth=1000),
    }
    return {name: float(value) for name, value in found.items()}


def _pandas(qrels_path: str, run_path: str) -> Scores:
    pandas: Any = import_module("pandas")
    form = _form(run_path)
    frame = pandas.read_csv(
        run_path, sep=" " if form == "trec" else "\t", header=None, usecols=_COLUMNS[form]
    )
    frame.columns = ["query", "document", "rank"]
    if form == "trec":
        frame["rank"] = frame.groupby("query")["rank"].rank(ascending=False, method="first")
    qrels = pandas.read_csv(
        qrels_path, sep="\t", header=None, names=["query", "-", "document", "grade"]
    )
    judged = qrels.merge(frame, how="left", on=["query", "document"]).fillna({"rank": 0})
    return _from_rows(zip(judged["query"], judged["rank"], judged["grade"], strict=True))


def _polars(qrels_path: str, run_path: str) -> Scores:
    polars: Any = import_module("polars")
    form = _form(run_path)
    frame = polars.read_csv(
        run_path,
        separator=" " if form == "trec" else "\t",
        has_header=False,
        columns=list(_COLUMNS[form]),
    )
    frame.columns = ["query", "document", "rank"]
    if form == "trec":
        order = polars.col("rank").rank("ordinal", descending=True).over("query")
        frame = frame.with_columns(order.alias("rank"))
    qrels = polars.read_csv(qrels_path, separator="\t", has_header=False)
    qrels.columns = ["query", "-", "document", "grade"]
    judged = qrels.join(frame, on=["query", "document"], how="left").fill_null(0)
    return _from_rows(judged.select("query", "rank", "grade").iter_rows())


def _form(path: str) -> str:
    return "trec" if ".trec" in Path(path).suffixes else "msmarco"


def _from_rows(rows: Any) -> Scores:
    judged: dict[int, list[tuple[int, int]]] = {}
    for query, rank, grade in rows:
        judged.setdefault(query, []).append((int(rank), int(grade)))
    return mean_scores(judged.values())


PEERS: Mapping[str, Callable[[str, str], Scores]] = {
    "pytrec_eval": _pytrec_eval,
    "ir_measures": _ir_measures,
    "ranx": _ranx,
    "trectools": _trectools,
    "pandas": _pandas,
    "polars": _polars,
}


def score_many(qrels_path: str, run_paths: list[str]) -> dict[str, Scores]:
    """Mean scores of many runs, all with one evaluator of ir_measures."""
    ir_measures: Any = import_module("ir_measures")
    measures = [ir_measures.parse_measure(name) for name in ("RR@10", "nDCG@10", "AP", "R@1000")]
    with _open(qrels_path) as file:
        evaluator = ir_measures.evaluator(measures, list(ir_measures.read_trec_qrels(file)))
    found = {}
    for path in run_paths:
        scores = evaluator.calc_aggregate(ir_measures.read_trec_run(path))
        found[path] = {str(measure): value for measure, value in scores.items()}
    return found


def main() -> None:
    """Score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("peer", choices=[*PEERS, "many"])
    parser.add_argument("qrels")
    parser.add_argument("runs", nargs="+")
    given = parser.parse_args()
    if given.peer == "many":
        print(json.dumps(score_many(given.qrels, given.runs)))
    else:
        print(json.dumps(PEERS[given.peer](given.qrels, given.runs[0])))


if __name__ == "__main__":
    main()
