"""Zero-shot rankers against BM25 on three collections: the tables of docs/results/zero-shot.md.

    python benchmarks/playbook.py --data DIR                  all of it; vectors take minutes
    python benchmarks/playbook.py --data DIR --no-encoder     rankers on words only
    python benchmarks/playbook.py --data DIR --only vaswani

DIR is the folder `small-collections` of the real data. The seed of the bootstrap is fixed, so the
tables are the same each time, up to the arithmetic of the encoder. The second table has the fairer
opponent: BM25 that leaves function words out, as both defaults do.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from playbook_collections import COLLECTIONS, read_collection

from heldout.ids import Digest, DocId, QueryId
from heldout.rankers.methods import choose_method, rank_hybrid
from heldout.rankers.neural.encoders import DenseSettings, Encoder, load_encoder, rank_dense
from heldout.rankers.run import Hit, RankingTask, Run, fuse_reciprocal, fuse_scores
from heldout.rankers.terms import Bm25Settings, Rm3Settings, rank_bm25, rank_rm3
from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.stats import exact
from heldout.stats.resampling import bca_interval, bootstrap_means
from heldout.stats.tests import run_test
from heldout.trec.ranking import JudgedRanking

__all__ = ["LEXICAL", "RememberingEncoder", "dense_candidates"]

MEASURE = parse_measure("nDCG@10")
TOP = 10
COLUMNS = (
    *("collection", "ranker", "nDCG@10", "difference"),
    *("t, 95%", "bootstrap, 95%", "alone", "s.d."),
)
Ranker = Callable[[RankingTask], Run]
Labels = Mapping[QueryId, Mapping[DocId, int]]

BASELINES: Mapping[str, Ranker] = {
    "BM25": lambda task: rank_bm25(task, Bm25Settings()),
    "BM25 without stopwords": lambda task: rank_bm25(task, Bm25Settings(stopwords=True)),
}
"""What the others are compared with, a table each."""

LEXICAL: Mapping[str, Ranker] = {
    "BM25 without stopwords": BASELINES["BM25 without stopwords"],
    "RM3": lambda task: rank_rm3(task, Rm3Settings()),
    "RM3 without stopwords": lambda task: rank_rm3(task, Rm3Settings(stopwords=True)),
    "query likelihood with stems": choose_method("query-likelihood", {"stem": "true"}),
    "RRF of BM25, 4-grams, query likelihood without stems": choose_method("fusion", {}),
}
"""Rankers that need no encoder. BM25 and RM3 reduce words to stems unless told otherwise; query
likelihood does not, and in a fusion each is as it is by itself."""


class RememberingEncoder:
    """An encoder that encodes each text once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}

    @property
    def digest(self) -> Digest:
        """That of the encoder."""
        return self._encoder.digest

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, shape (texts, dimensions)."""
        return self._encode(texts, "q", self._encoder.encode_queries)

    def encode_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of documents, shape (texts, dimensions)."""
        return self._encode(texts, "d", self._encoder.encode_documents)

    def _encode(
        self,
        texts: Sequence[str],
        side: str,
        encode: Callable[[Sequence[str]], Iterable[NDArray[np.float32]]],
    ) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if side + text not in self._known]
        if new:
            vectors = encode(new)
            self._known |= {side + text: row for text, row in zip(new, vectors, strict=True)}
        return np.array([self._known[side + text] for text in texts])


def dense_candidates(encoder: Encoder) -> dict[str, Ranker]:
    """Rankers with vectors, alone and beside words."""

    def both(words: Ranker, fuse: Callable[[Sequence[Run], int], Run]) -> Ranker:
        return lambda task: fuse([words(task), rank_dense(task, encoder)], task.depth)

    def rrf(runs: Sequence[Run], depth: int) -> Run:
        return fuse_reciprocal(runs, depth=depth, k=60)

    def combsum(runs: Sequence[Run], depth: int) -> Run:
        return fuse_scores(runs, depth=depth)

    bm25 = BASELINES["BM25"]
    rm3 = LEXICAL["RM3 without stopwords"]
    return {
        "vectors (all-MiniLM-L6-v2)": lambda task: rank_dense(task, encoder),
        "RRF of BM25 and vectors": both(bm25, rrf),
        "CombSUM of BM25 and vectors": both(bm25, combsum),
        "the same, BM25 without stopwords": lambda task: rank_hybrid(task, encoder),
        "CombSUM of RM3 without stopwords and vectors": both(rm3, combsum),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder small-collections")
    parser.add_argument("--only", choices=COLLECTIONS, help="one collection")
    parser.add_argument("--no-encoder", action="store_true", help="rankers on words only")
    given = parser.parse_args(arguments)
    rankers = dict(LEXICAL)
    if not given.no_encoder:
        rankers |= dense_candidates(
            RememberingEncoder(load_encoder(DenseSettings(precision="float32")))
        )
    started = time.perf_counter()
    for against in BASELINES:
        print(f"\nDifferences to {against}:\n")
        print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|")
        for name in COLLECTIONS:
            if given.only in {None, name}:
                _write_collection(name, given.data, rankers, against)
    print(f"\n{time.perf_counter() - started:.0f} s")


def _write_collection(name: str, data: Path, rankers: Mapping[str, Ranker], against: str) -> None:
    collection = read_collection(name, data)
    task = RankingTask(documents=collection.documents, queries=collection.queries, depth=100)
    baseline = BASELINES[against](task)
    others = {ranker: rank for ranker, rank in rankers.items() if ranker != against}
    scores = score_run(baseline, collection.qrels)
    size = f"{name} ({len(scores):,} queries)"
    print(f"| {size} | {against} | {scores.mean():.4f} | | | | | |")
    for ranker, rank in others.items():
        run = rank(task)
        found = find_answered(run, collection.qrels), find_answered(baseline, collection.qrels)
        cells = _cells(scores, score_run(run, collection.qrels))
        alone = f"{len(found[0] - found[1])} : {len(found[1] - found[0])}"
        print(f"| | {ranker} | {' | '.join([*cells[:-1], alone, cells[-1]])} |", flush=True)


def score_run(run: Run, labels: Labels) -> NDArray[np.float64]:
    """Score a run on each labelled query, shape (queries,)."""
    rankings = {
        str(query): see(run[query], grades) for query, grades in labels.items() if run.get(query)
    }
    return evaluate(rankings, labels, [MEASURE]).scores[MEASURE].values


def see(hits: Sequence[Hit], grades: Mapping[DocId, int]) -> JudgedRanking:
    """Return the judged documents of a ranking."""
    judged = [
        (place, grades[hit.document]) for place, hit in enumerate(hits, 1) if hit.document in grades
    ]
    positions, seen = np.array(judged, dtype=np.int64).reshape(-1, 2).T
    return JudgedRanking(positions=positions, grades=seen, retrieved=len(hits))


def find_answered(run: Run, labels: Labels) -> set[QueryId]:
    """Return the queries with a relevant document among the first ten."""
    return {
        query
        for query, grades in labels.items()
        if any(grades.get(hit.document, 0) > 0 for hit in run.get(query, ())[:TOP])
    }


def _cells(before: NDArray[np.float64], after: NDArray[np.float64]) -> Sequence[str]:
    differences = exact.differences(before, after)
    t = run_test("t", before, after, level=0.95)
    means = bootstrap_means(differences[np.newaxis], np.random.default_rng(0), trials=10_000)
    without = (differences.sum() - differences) / (len(differences) - 1)
    drawn = bca_interval(means[:, 0], float(differences.mean()), without)
    spans = [
        "-" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"
        for low, high in ((t.low, t.high), (drawn.low, drawn.high))
    ]
    mean = f"{after.mean():.4f}"
    return mean, f"{differences.mean():+.4f}", *spans, f"{differences.std(ddof=1):.2f}"


if __name__ == "__main__":
    main()
