"""Reading and scoring a run, beside decompression alone and the installed peers, in one run.

    python benchmarks/scan.py [--queries 6980] [--depth 1000] [--repeats 5] [--json OUT]

A seeded run in the TREC form, bzip2-compressed, is read and scored on four measures. Each
contender is timed in turn within every repeat, so that a busy machine hurts all alike; medians
and ratios to the floor are printed. Peers are measured where they are installed.
"""

import argparse
import bz2
import io
import json
import statistics
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import numpy as np

from heldout.measures.evaluate import evaluate
from heldout.measures.spec import parse_measure
from heldout.trec.runs import scan_run

MEASURES = ("RR@10", "nDCG@10", "AP", "R@1000")
Qrels = Mapping[str, Mapping[str, int]]


def make_run(queries: int, depth: int, seed: int) -> tuple[str, Qrels]:
    """A run in the TREC form without ties, and one or two judgments per query within it."""
    rng = np.random.default_rng(seed)
    lines: list[str] = []
    qrels: dict[str, dict[str, int]] = {}
    for query in range(queries):
        documents = rng.choice(8_841_823, size=depth, replace=False)
        scores = np.sort(rng.random(depth).astype(np.float32))[::-1]
        rows = zip(documents.tolist(), np.unique(scores)[::-1].tolist(), strict=False)
        lines += [f"{query} Q0 {d} {r} {s!r} seeded\n" for r, (d, s) in enumerate(rows, 1)]
        judged = rng.choice(documents, size=int(rng.integers(1, 3)), replace=False)
        qrels[str(query)] = {str(document): 1 for document in judged.tolist()}
    return "".join(lines), qrels


def score_ours(packed: bytes, qrels: Qrels) -> list[float | None]:
    """Read, validate and score with heldout."""
    scan = scan_run(io.BytesIO(packed), path="seeded", order="trec", qrels=qrels)
    measures = [parse_measure(name) for name in MEASURES]
    scores = evaluate(scan.rankings, qrels, measures).scores
    return [scores[measure].mean for measure in measures]


def score_pytrec_eval(packed: bytes, qrels: Qrels) -> object:
    """Read and score with pytrec_eval."""
    pytrec_eval = import_module("pytrec_eval")
    text = io.StringIO(bz2.decompress(packed).decode())
    names = {"recip_rank", "ndcg_cut_10", "map", "recall_1000"}
    return pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(pytrec_eval.parse_run(text))


def score_ir_measures(packed: bytes, qrels: Qrels) -> object:
    """Read and score with ir_measures."""
    ir_measures = import_module("ir_measures")
    run = ir_measures.read_trec_run(bz2.decompress(packed).decode())
    measures = [ir_measures.parse_measure(name) for name in MEASURES]
    return ir_measures.calc_aggregate(measures, qrels, run)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text, qrels = make_run(options.queries, options.depth, options.seed)
    packed = bz2.compress(text.encode())
    contenders: dict[str, Callable[[], object]] = {
        "bz2 decompression alone": lambda: bz2.decompress(packed),
        "heldout": lambda: score_ours(packed, qrels),
        "pytrec_eval": lambda: score_pytrec_eval(packed, qrels),
        "ir_measures": lambda: score_ir_measures(packed, qrels),
    }
    seconds = measure(contenders, options.repeats)
    floor = statistics.median(seconds["bz2 decompression alone"])
    rows = [
        {
            "contender": name,
            "median_s": statistics.median(times),
            "ratio": statistics.median(times) / floor,
        }
        for name, times in seconds.items()
        if times
    ]
    print(f"{options.queries:,} queries x {options.depth:,}, {options.repeats} repeats")
    for row in rows:
        print(f"{row['contender']:<26} {row['median_s']:9.3f} s  {row['ratio']:7.2f} x the floor")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n", "utf-8")


def measure(
    contenders: Mapping[str, Callable[[], object]], repeats: int
) -> Mapping[str, list[float]]:
    """Wall seconds of each contender in each repeat; one that is not installed has none."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            try:
                run()
            except ModuleNotFoundError:
                continue
            seconds[name].append(time.perf_counter() - start)
    return seconds


if __name__ == "__main__":
    main()
