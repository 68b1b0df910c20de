"""Seeded runs and judgments of the size of MS MARCO and of a TREC deep learning track.

    python benchmarks/generate.py DIR [--queries 6980] [--depth 1000] [--seed 0]

What each file is, and the scores that any correct tool must find in it, is in DIR/expected.json.
The scores come from the definition (a document's rank is one more than the number of documents
before it, by counting), not from any reader of runs. The same seed gives the same bytes.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from definition import mean_scores
from numpy.typing import NDArray
from packing import pack

__all__ = ["Collection", "draw_graded", "draw_sparse", "expected_scores", "generate"]

DOCUMENTS = 8_841_823
"""Passages of MS MARCO; ids are below."""
_QUERY_IDS = 1_102_400
_QRELS = 7_437  # of dev, for
_QUERIES = 6_980
_FOUND = 0.857  # recall@1000 of BM25 on dev
_GRADED_QUERIES = 43
_GRADED_QRELS = 9_802
_GRADES = (0.56, 0.17, 0.19, 0.08)  # share of the grades 0 to 3
_TAG = "run-seeded"
_MICRO = 1_000_000
_LEVEL = 20_000  # of scores in the run with ties: about 50 of them in a query

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """A run, best first, and its judgments.

    Attributes:
        queries: int64, shape (q,): ids.
        documents: int64, shape (q, k): ids, none twice in a row.
        micro: int64, shape (q, k): scores in millionths, strictly falling in a row.
        qrels: (row, document, grade), rows ascending.
    """

    queries: Ints
    documents: Ints
    micro: Ints
    qrels: tuple[tuple[int, int, int], ...]


def draw_sparse(queries: int, depth: int, *, rng: np.random.Generator) -> Collection:
    """As dev: one relevant document per query, two for one query in fifteen; BM25's recall."""
    drawn = _draw_run(queries, depth, rng=rng)
    twice = rng.choice(queries, size=queries * (_QRELS - _QUERIES) // _QUERIES, replace=False)
    rows = np.sort(np.concatenate([np.arange(queries), twice])).tolist()
    places = np.exp(rng.random(len(rows)) * np.log(depth + 1)).astype(np.int64) - 1
    found = (rng.random(len(rows)) < _FOUND).tolist()
    qrels: dict[tuple[int, int], int] = {}
    for row, place, hit in zip(rows, places.tolist(), found, strict=True):
        ranked = drawn.documents[row].tolist()
        document = ranked[place] if hit else _outside(ranked, rng)
        while (row, document) in qrels:
            document = _outside(ranked, rng)
        qrels[row, document] = 1
    return _with_qrels(drawn, qrels)


def draw_graded(queries: int, depth: int, *, rng: np.random.Generator) -> Collection:
    """As the deep learning track of 2019: some 228 graded documents per query."""
    drawn = _draw_run(queries, depth, rng=rng)
    total = _GRADED_QRELS * queries // _GRADED_QUERIES
    qrels: dict[tuple[int, int], int] = {}
    near = 1.0 / (np.arange(depth) + 20)
    for row in range(queries):
        wanted = total // queries + (row < total % queries)
        ranked = drawn.documents[row]
        inside = min(depth // 2, wanted * 3 // 5)
        hits = rng.choice(ranked, size=inside, replace=False, p=near / near.sum()).tolist()
        chosen = dict.fromkeys(hits)
        while len(chosen) < wanted:
            chosen[_outside(ranked.tolist(), rng)] = None
        grades = rng.choice(len(_GRADES), size=wanted, p=_GRADES).tolist()
        qrels.update({(row, d): g for d, g in zip(chosen, grades, strict=True)})
    return _with_qrels(drawn, qrels)


def _draw_run(queries: int, depth: int, *, rng: np.random.Generator) -> Collection:
    def rows(below: int) -> Ints:
        drawn = [rng.choice(below, size=depth, replace=False) for _ in range(queries)]
        return np.array(drawn, dtype=np.int64)

    return Collection(
        queries=rng.choice(_QUERY_IDS, size=queries, replace=False).astype(np.int64) + 1,
        documents=rows(DOCUMENTS),
        micro=-np.sort(-rows(_MICRO), axis=1),
        qrels=(),
    )


def _outside(ranked: list[int], rng: np.random.Generator) -> int:
    document = int(rng.integers(DOCUMENTS))
    return _outside(ranked, rng) if document in ranked else document


def _with_qrels(drawn: Collection, qrels: Mapping[tuple[int, int], int]) -> Collection:
    return Collection(
        queries=drawn.queries,
        documents=drawn.documents,
        micro=drawn.micro,
        qrels=tuple((row, document, grade) for (row, document), grade in qrels.items()),
    )


def expected_scores(run: Collection, scores: Ints) -> dict[str, float]:
    """Mean scores by definition, ties by document id, the greater bytes first (as trec_eval).

    Args:
        run: the run and its judgments.
        scores: int64, shape (q, k): by what documents are ordered, greatest first.
    """
    judged: dict[int, list[tuple[int, int]]] = {}
    for row, document, grade in run.qrels:
        rank = _rank(run.documents[row], scores[row], document)
        judged.setdefault(row, []).append((rank, grade))
    return mean_scores(judged.values())


def _rank(documents: Ints, scores: Ints, document: int) -> int:
    """One more than the number of documents before it; 0 if it is not there."""
    at = np.flatnonzero(documents == document)
    if not len(at):
        return 0
    own = scores[at[0]]
    tied = documents[scores == own].astype("S")
    return 1 + int((scores > own).sum()) + int((tied > str(document).encode()).sum())


def _lines(run: Collection, shape: str, *columns: NDArray[np.generic]) -> Iterator[str]:
    """The text of each query: `shape` with its id for QUERY and its columns in turn."""
    depth = run.documents.shape[1]
    template = "".join(shape.replace("RANK", str(rank)) for rank in range(1, depth + 1))
    for row, query in enumerate(run.queries.tolist()):
        flat = np.stack([column[row] for column in columns], axis=1).ravel().tolist()
        yield template.replace("QUERY", str(query)) % tuple(flat)


def write_msmarco(run: Collection) -> Iterator[str]:
    """Three columns: query, document, rank."""
    return _lines(run, "QUERY\t%d\tRANK\n", run.documents)


def write_trec(run: Collection) -> Iterator[str]:
    """Six columns, scores with six decimals."""
    return _lines(run, f"QUERY Q0 %d RANK 0.%06d {_TAG}\n", run.documents, run.micro)


def write_digits(run: Collection, *, rng: np.random.Generator) -> Iterator[str]:
    """As `write_trec`, with all digits of a double: the same order."""
    shape = f"QUERY Q0 %d RANK %r {_TAG}\n"
    for row in range(len(run.queries)):
        fine = (run.micro[row] + rng.random(run.micro.shape[1])) / _MICRO
        part = Collection(
            queries=run.queries[row : row + 1],
            documents=run.documents[row : row + 1],
            micro=run.micro[row : row + 1],
            qrels=(),
        )
        pair = np.stack([part.documents[0].astype(object), fine.astype(object)])
        yield from _lines(part, shape, pair[:1], pair[1:])


def write_ties(run: Collection) -> Iterator[str]:
    """As `write_trec`, with some fifty different scores in a query."""
    return _lines(run, f"QUERY Q0 %d RANK 0.%02d {_TAG}\n", run.documents, run.micro // _LEVEL)


def write_shuffled(run: Collection, *, rng: np.random.Generator) -> Iterator[str]:
    """As `write_trec`, each query's lines in any order."""
    for text in write_trec(run):
        lines = text.splitlines(keepends=True)
        yield "".join(lines[at] for at in rng.permutation(len(lines)).tolist())


def write_interleaved(run: Collection) -> Iterator[str]:
    """As `write_trec`, the best line of each query, then the second of each, and so on."""
    queries = run.queries.tolist()
    template = "".join(f"{query} Q0 %d RANK 0.%06d {_TAG}\n" for query in queries)
    for place in range(run.documents.shape[1]):
        pairs = np.stack([run.documents[:, place], run.micro[:, place]], axis=1)
        yield template.replace("RANK", str(place + 1)) % tuple(pairs.ravel().tolist())


def generate(folder: Path, *, queries: int, depth: int, seed: int) -> None:
    """Write everything into a folder, which is made.

    Args:
        folder: where to.
        queries: of the dev set, >= 1.
        depth: hits per query, 2 to 1,000.
        seed: the source of all randomness.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawing, digits, shuffling, grading = np.random.SeedSequence(seed).spawn(4)
    dev = draw_sparse(queries, depth, rng=np.random.default_rng(drawing))
    graded = min(queries, _GRADED_QUERIES)
    dl = draw_graded(graded, depth, rng=np.random.default_rng(grading))
    _write(folder / "dev.qrels", _qrels(dev))
    _write(folder / "dl.qrels", _qrels(dl))
    _write(folder / "dev.tsv", write_msmarco(dev))
    _write(folder / "dev.trec", write_trec(dev))
    _write(folder / "dl.tsv", write_msmarco(dl))
    _write(folder / "dl.trec", write_trec(dl))
    packed = [("dev.tsv", form) for form in ("bz2", "gz", "zst")]
    packed += [("dev.trec", form) for form in ("bz2", "gz", "zst")]
    packed += [("dl.tsv", "bz2"), ("dl.trec", "bz2")]
    with ThreadPoolExecutor() as pool:
        packing = [pool.submit(pack, folder / name, form) for name, form in packed]
        _write(folder / "dev.digits.trec", write_digits(dev, rng=np.random.default_rng(digits)))
        _write(folder / "dev.ties.trec", write_ties(dev))
        shuffled = write_shuffled(dev, rng=np.random.default_rng(shuffling))
        _write(folder / "dev.shuffled.trec", shuffled)
        _write(folder / "dev.interleaved.trec", write_interleaved(dev))
        for pending in packing:
            pending.result()
    expected = {
        "queries": queries,
        "depth": depth,
        "seed": seed,
        "scores": {
            "dev": expected_scores(dev, dev.micro),
            "dev.ties": expected_scores(dev, dev.micro // _LEVEL),
            "dl": expected_scores(dl, dl.micro),
        },
    }
    (folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n", "utf-8")


def _qrels(run: Collection) -> Iterator[str]:
    for row, document, grade in run.qrels:
        yield f"{run.queries[row]}\t0\t{document}\t{grade}\n"


def _write(path: Path, texts: Iterator[str]) -> None:
    with path.open("w", encoding="ascii", newline="") as file:
        for text in texts:
            file.write(text)


def main() -> None:
    """Generate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--queries", type=int, default=_QUERIES)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    generate(given.folder, queries=given.queries, depth=given.depth, seed=given.seed)


if __name__ == "__main__":
    main()
