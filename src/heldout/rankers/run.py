"""Runs that rankers make: tasks and hits in the order of `trec.ranking`, run files, fusion.

A run file is written in the MS MARCO or the TREC format, plain or compressed, and read whole as a
first stage for a re-ranker to go on with. Several runs of the same queries can become one. A header
of ir_metadata says what the rows do not: method, parameters, collection, libraries; without a time
of day or a measured time, so that one call gives one file on one machine.
"""

import bz2
import gzip
import platform
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heldout.collections.source import PREFIX
from heldout.errors import InputError, StoreError
from heldout.files.durable import write_whole
from heldout.ids import Digest, DocId, QueryId
from heldout.trec import ranking, tops
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.runs import scan_run


class TextPair(NamedTuple):
    """The texts of a query and of one document."""

    query: str
    document: str


PairScorer = Callable[[Sequence[TextPair]], NDArray[np.float64]]
"""From pairs to one score each, in their order: higher is better, all finite."""


class Reranker(Protocol):
    """A loaded model that scores pairs."""

    @property
    def digest(self) -> Digest:
        """SHA-256 of all that its scores depend on: weights and settings."""

    def score(self, pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        """One finite score per pair, higher is better: a `PairScorer`."""


class Hit(NamedTuple):
    """One document of a ranking with its score, higher is better."""

    document: DocId
    score: float


Run = Mapping[QueryId, Sequence[Hit]]
"""Per query the documents found, best first: score descending, then document id descending
bytewise, as trec_eval orders them. Scores are float32 values, so that no reader of the
written run, with 32 bits or with 64, sees another order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTask:
    """What to rank.

    Attributes:
        documents: text by id, at least one.
        queries: text by id.
        depth: documents to return per query, >= 1; fewer only where there are fewer. What
            shares nothing with the query fills the end in the order of ids, so that a run
            is always complete.
    """

    documents: Mapping[DocId, str]
    queries: Mapping[QueryId, str]
    depth: int

    def __post_init__(self) -> None:
        """Refuse what cannot be ranked."""
        if not self.documents or self.depth < 1:
            message = "a task needs at least one document and a depth of at least 1"
            raise ValueError(message)


def rank_scores(documents: Sequence[DocId], scores: NDArray[np.float64], depth: int) -> list[Hit]:
    """The best documents of one query.

    Args:
        documents: their ids, each once.
        scores: float64, shape (documents,); finite as float32.
        depth: how many to return, >= 1.

    Returns:
        min(depth, documents) hits in the order of `Run`.

    Raises:
        ValueError: a score is NaN or infinite.
    """
    keys = ranking.sort_keys(scores, "trec9")
    if not np.isfinite(keys).all():
        raise ValueError("a score is NaN or infinite")
    last = np.partition(keys, -depth)[-depth] if depth < len(keys) else -np.inf
    # Everything that ties with the last place stays in, for the id decides there.
    candidates = np.flatnonzero(keys >= last)
    names = [documents[row].encode() for row in candidates.tolist()]
    best = candidates[ranking.order_by_score(keys[candidates], names)[:depth]]
    return [
        Hit(documents[row], score)
        for row, score in zip(best.tolist(), keys[best].tolist(), strict=True)
    ]


def best_hits(scores: Mapping[DocId, float], depth: int) -> list[Hit]:
    """The best of some documents, in the order of `Run`.

    Args:
        scores: score per document, finite as float32.
        depth: how many to return, >= 1.

    Raises:
        ValueError: a score is NaN or infinite.
    """
    return rank_scores(tuple(scores), np.fromiter(scores.values(), np.float64), depth)


def read_run(source: BinaryIO, *, path: str) -> Run:
    """Read a run, every document of every query.

    Args:
        source: a run in MS MARCO or TREC form, plain or compressed;
            held in memory, so that it stays what was checked.
        path: its name for messages.

    Returns:
        Hits best first: by score where the form has scores, else by rank; a hit's score is then
        its rank below zero.

    Raises:
        InputError: all errors of the run, as `heldout validate` finds them.
    """
    content = BytesIO(source.read())
    scan = scan_run(content, path=path, order=None, limits=OWN_FILES)
    if not scan.ok:
        raise InputError(scan.problems, counts=scan.counts)
    content.seek(0)
    rows = tops.read_rows(content, path=path, limits=OWN_FILES)
    documents = rows["docno"]
    if scan.form == "trec":
        scores = rows["score"]
        order = ranking.order_by_score(np.array(scores), [one.encode() for one in documents])
    else:
        scores = [-float(rank) for rank in rows["rank"]]
        order = ranking.order_by_rank(np.array(rows["rank"], dtype=np.int64))
    run: dict[QueryId, list[Hit]] = {QueryId(query): [] for query in rows["qid"]}
    for row in order.tolist():
        run[QueryId(rows["qid"][row])].append(Hit(DocId(documents[row]), scores[row]))
    return run


def fuse_reciprocal(runs: Sequence[Run], *, depth: int, k: float) -> Run:
    """Reciprocal rank fusion: a document's score is the sum of 1 / (k + rank).

    Args:
        runs: at least one; a query that a run does not answer gets nothing from it.
        depth: hits per query, >= 1.
        k: >= 0; the larger, the less the first ranks count.

    Source: Cormack, Clarke and Buettcher, SIGIR 2009 (k = 60 there).
    """

    def shares(hits: Sequence[Hit]) -> list[float]:
        return [1 / (k + rank) for rank in range(1, len(hits) + 1)]

    return _fuse(runs, depth, shares)


def fuse_scores(runs: Sequence[Run], *, depth: int) -> Run:
    """CombSUM: the sum of scores, each ranking's scores first stretched to [0, 1].

    A ranking whose scores are all equal gives each document 1.

    Args:
        runs: at least one; a query that a run does not answer gets nothing from it.
        depth: hits per query, >= 1.

    Source: Fox and Shaw, TREC-2, 1993; stretching: Lee, SIGIR 1997.
    """

    def shares(hits: Sequence[Hit]) -> list[float]:
        low, high = hits[-1].score, hits[0].score
        return [(hit.score - low) / (high - low) if high > low else 1.0 for hit in hits]

    return _fuse(runs, depth, shares)


def _fuse(runs: Sequence[Run], depth: int, shares: Callable[[Sequence[Hit]], list[float]]) -> Run:
    queries = dict.fromkeys(query for run in runs for query in run)
    fused: dict[QueryId, list[Hit]] = {}
    for query in queries:
        scores: defaultdict[DocId, float] = defaultdict(float)
        for run in runs:
            hits = run.get(query, ())
            for hit, share in zip(hits, shares(hits) if hits else [], strict=True):
                scores[hit.document] += share
        fused[query] = best_hits(scores, depth)
    return fused


RunForm = Literal["msmarco", "trec"]

_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    # No time of day in the archive: equal runs give equal bytes.
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".bz2": bz2.compress,
}


def format_run(run: Run, *, form: RunForm, tag: str, header: bytes = b"") -> bytes:
    """A run as text.

    Args:
        run: rankings, best first; ids without white space.
        form: `msmarco` (query, document, rank, divided by tabs) or `trec` (query, Q0,
            document, rank, score, tag, divided by spaces). Scores have nine significant
            digits, which is enough to read the same float32 again.
        tag: name of the run, without white space; only the TREC form holds it.
        header: lines above the rows, as `heldout.trec.ir_metadata.format_header` makes them.

    Raises:
        ValueError: the tag is empty or has white space.
    """
    if tag.split() != [tag]:
        raise ValueError("the tag of a run is one word")
    rows = (
        (query, hit.document, rank, hit.score)
        for query, hits in run.items()
        for rank, hit in enumerate(hits, 1)
    )
    if form == "msmarco":
        lines = (f"{query}\t{document}\t{rank}\n" for query, document, rank, _ in rows)
    else:
        lines = (f"{query} Q0 {doc} {rank} {score:.9g} {tag}\n" for query, doc, rank, score in rows)
    return header + "".join(lines).encode()


def write_run(run: Run, path: Path, *, form: RunForm, tag: str, header: bytes = b"") -> None:
    """Write a run file whole or not at all; `.gz` and `.bz2` in its name compress it.

    Args:
        run: what to write.
        path: replaced where it exists; its folder is made where it is missing.
        form: as in `format_run`.
        tag: as in `format_run`.
        header: as in `format_run`.

    Raises:
        StoreError: the file cannot be written; one of this name that was there stays.
        ValueError: as in `format_run`.
    """
    content = format_run(run, form=form, tag=tag, header=header)
    pack = _PACKERS.get(path.suffix)
    try:
        write_whole(path, pack(content) if pack else content)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


_LIBRARIES = ("numpy", "bm25s", "PyStemmer", "torch", "transformers", "sentence-transformers")


def describe_run(
    *,
    tag: str,
    method: str,
    parameters: Mapping[str, str],
    collection: str,
    depth: int,
    first: str = "",
    rerank_depth: int | None = None,
    cores: int | None = None,
) -> Mapping[str, Any]:
    """The fields of a header, for `heldout.trec.ir_metadata.format_header`.

    Args:
        tag: of the run.
        method: name of the ranker.
        parameters: those that were given; all others have their defaults.
        collection: as it was named: `stdlib-docs`, `irds:` and a name, or a folder, of whose path
            the last part alone is stated.
        depth: documents per query.
        first: what is re-ranked; "" for nothing.
        rerank_depth: how many documents of that.
        cores: processors of this machine, where they are to be stated.
    """
    step: dict[str, Any] = {"name": method, "params": dict(parameters)}
    if first:
        step |= {"reranks": first, "rerank depth": rerank_depth}
    fetched = collection.startswith(PREFIX)
    named = collection.removeprefix(PREFIX) if fetched else PurePath(collection).name
    return {
        "tag": tag,
        "platform": {
            "hardware": {"cpu": {"architecture": platform.machine(), "number of cores": cores}},
            "operating system": {"kernel": f"{platform.system()} {platform.release()}"},
            "software": {
                "libraries": {"python": [one for name in _LIBRARIES for one in _versions(name)]},
                "retrieval toolkit": _versions("heldout"),
            },
        },
        "implementation": {"source": {"lang": [f"python {platform.python_version()}"]}},
        "method": {
            "automatic": True,
            "depth": depth,
            "retrieval": [*([{"name": first}] if first else []), step],
        },
        "data": {
            "test collection": {
                "name": named,
                "ir_datasets": named if fetched else "",
            }
        },
    }


def _versions(name: str) -> list[str]:
    """`numpy==2.2.1`; nothing where it is not installed."""
    try:
        return [f"{name}=={metadata.version(name)}"]
    except metadata.PackageNotFoundError:
        return []
