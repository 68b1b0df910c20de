"""Runs that take hours and go on where they stopped: re-ranked ones, encoded collections.

The first documents of a run are scored again by a model that reads query and document. Long
documents are read in sliding passages: a document is as good as its best passage (MaxP). Scores of
a run that is being made lie query by query on disk: a killed run goes on.
"""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, StoreError, plural, printable, quote
from heldout.ids import Digest, DocId, QueryId
from heldout.progress_bar import SILENT, Progress
from heldout.rankers.methods import (
    METHODS,
    choose_default,
    choose_method,
    choose_reranker,
    encodes,
    find_method,
)
from heldout.rankers.neural.vectors import Encoding, remove_vectors
from heldout.rankers.options import DEFAULT_FIRST, Reranking
from heldout.rankers.run import (
    Hit,
    PairScorer,
    Reranker,
    Run,
    Task,
    TextPair,
    rank_scores,
    read_run,
)
from heldout.trec.reading.sources import read_file


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """First line of the file."""

    reranking: str


_HEAD_START = b'{"reranking":"'


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """A query that is done."""

    query: str
    scores: tuple[float, ...]


class PartialScores:
    """The file of a run that is being made; made by `open_partial`."""

    def __init__(self, path: Path, found: dict[str, tuple[float, ...]]) -> None:
        self.path = path
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def find(self, query: QueryId) -> Sequence[float] | None:
        """Scores of a query that an earlier run has done."""
        return self._found.get(query)

    def add(self, query: QueryId, scores: Sequence[float]) -> None:
        """Append a query, and wait until it is on disk.

        Raises:
            StoreError: it cannot be written.
        """
        line = msgspec.json.encode(_Line(query=query, scores=tuple(scores)))
        _append(self.path, line + b"\n")


def open_partial(path: Path, digest: Digest, *, fresh: bool = False) -> PartialScores:
    """Go on with the file of a killed run, or begin one.

    A last line that was not finished is cut off: its query is scored again. A file of other
    settings in which no query is finished is begun again: there is nothing in it to lose.

    Args:
        path: the file.
        digest: of the settings and inputs, from `digest_reranking`.
        fresh: begin again, whatever is there.

    Raises:
        InputError: code `rerank-partial`: the file is of other settings or inputs, or is no such
            file.
        StoreError: it cannot be read or written.
    """
    try:
        content = b"" if fresh or not path.exists() else path.read_bytes()
        whole, found = _read(content, path, digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "wb") as file:
            file.truncate(whole)
    except OSError as error:
        raise StoreError(f"{path} cannot be used: {error.strerror or error}") from error
    if not whole:
        _append(path, msgspec.json.encode(_Head(reranking=digest)) + b"\n")
    return PartialScores(path, found)


def digest_reranking(task: Task, first: Run, *, depth: int, scorer: str) -> Digest:
    """SHA-256 of all that the scores of a re-ranking depend on.

    Args:
        task: the texts.
        first: the run of the first stage.
        depth: documents per query that are scored.
        scorer: what says which scorer it is: its digest, and how passages are cut.
    """
    total = hashlib.sha256(msgspec.json.encode([scorer, depth]))
    for query, text in task.queries.items():
        hits = first.get(query, ())[:depth]
        texts = [task.documents.get(hit.document, "") for hit in hits]
        total.update(msgspec.json.encode([query, text, [hit.document for hit in hits], texts]))
    return Digest(total.hexdigest())


def _read(content: bytes, path: Path, digest: Digest) -> tuple[int, dict[str, tuple[float, ...]]]:
    """How many bytes are whole, and the scores in them."""
    head, newline, rest = content.partition(b"\n")
    if not newline and _HEAD_START.startswith(head[: len(_HEAD_START)]):
        return 0, {}
    if not newline or head != msgspec.json.encode(_Head(reranking=digest)):
        if _is_head(head) and b"\n" not in rest:
            return 0, {}
        raise InputError.of(
            "rerank-partial",
            str(path),
            "scores of other settings, texts or weights, or another file",
            "scores that this very command has begun",
            "give --fresh to begin again, or another --out",
            line=1,
        )
    whole, found = len(head) + 1, {}
    for line in rest.split(b"\n")[:-1]:
        try:
            done = msgspec.json.decode(line, type=_Line)
        except msgspec.DecodeError:
            break
        found[done.query] = done.scores
        whole += len(line) + 1
    return whole, found


def _is_head(line: bytes) -> bool:
    """Whether a line is the head of such a file, of whatever settings."""
    try:
        return msgspec.json.encode(msgspec.json.decode(line, type=_Head)) == line
    except msgspec.DecodeError:
        return False


def _append(path: Path, line: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def split_passages(text: str, *, size: int) -> list[str]:
    """Split a text into windows of words that together cover it, each half over the one before.

    Args:
        text: any text; words are what stands between white space.
        size: words of a passage, >= 1.

    Returns:
        At least one; a text of no more words than a passage is left as it is.

    Raises:
        ValueError: a size below 1.
    """
    if size < 1:
        raise ValueError("wanted: size >= 1")
    words, stride = text.split(), max(1, size // 2)
    if len(words) <= size:
        return [text]
    # The last passage is the first that reaches the end.
    starts = range(0, len(words) - size + stride, stride)
    return [" ".join(words[start : start + size]) for start in starts]


def score_best_passage(score: PairScorer, *, size: int) -> PairScorer:
    """Make a scorer of long documents from a scorer of short ones.

    Args:
        score: gives each passage a score.
        size: words of a passage, >= 1.

    Returns:
        Scores each pair by the highest score of a passage of its document.

    Source: Dai and Callan, SIGIR 2019, section 2 (MaxP).
    """

    def score_documents(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        if not pairs:
            return np.zeros(0)
        passages = [split_passages(pair.document, size=size) for pair in pairs]
        starts = np.cumsum([0, *map(len, passages[:-1])])
        texts = [
            TextPair(pair.query, passage)
            for pair, parts in zip(pairs, passages, strict=True)
            for passage in parts
        ]
        best: NDArray[np.float64] = np.maximum.reduceat(score(texts), starts)
        return best

    return score_documents


def rerank(
    task: Task,
    first: Run,
    score: PairScorer,
    *,
    depth: int,
    progress: Callable[[int, int], None] | None = None,
    finished: PartialScores | None = None,
) -> Run:
    """Score the first documents of each query again, and order them by that.

    The rest stays below them in the order of the first stage; its scores are made lower by one
    each. A query is scored in one call, so its scores do not depend on other queries.

    Args:
        task: texts, and how many documents to return per query.
        first: the run of the first stage; a query that it does not answer stays empty.
        score: from pairs of texts to finite scores, higher is better.
        depth: documents per query to score, >= 1.
        progress: called after each query with how many are done, and of how many.
        finished: scores of a run that was killed; those of this one are added.

    Raises:
        InputError: code `rerank-document`: the first stage has a document without text; or
            what `score` raises.
        ValueError: a score is NaN or infinite, or `depth` is below 1.
    """
    if depth < 1:
        raise ValueError("wanted: depth >= 1")
    run: dict[QueryId, list[Hit]] = {}
    for number, (query, text) in enumerate(task.queries.items(), 1):
        hits = first.get(query, ())
        scores = finished.find(query) if finished is not None else None
        if scores is None or len(scores) != len(hits[:depth]):
            check_known(hits, task.documents, query=query, path="--first")
            scores = _score(task, text, hits[:depth], score)
            if finished is not None:
                finished.add(query, scores)
        run[query] = _reorder(hits, scores)[: task.depth]
        if progress:
            progress(number, len(task.queries))
    return run


def _score(task: Task, text: str, hits: Sequence[Hit], score: PairScorer) -> Sequence[float]:
    if not hits:
        return []
    scores = score([TextPair(text, task.documents[hit.document]) for hit in hits])
    return [float(value) for value in scores]


def check_known(
    hits: Sequence[Hit], documents: Mapping[DocId, str], *, query: QueryId, path: str
) -> None:
    """Make sure that each document of a query has a text.

    Raises:
        InputError: code `rerank-document`.
    """
    unknown = next((hit.document for hit in hits if hit.document not in documents), None)
    if unknown is None:
        return
    raise InputError.of(
        "rerank-document",
        path,
        f"document {quote(unknown)} of query {quote(query)}",
        "only documents of the collection",
        "was the run made on this collection?",
    )


def _reorder(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """The scored documents by their scores, then the others as they stood."""
    if not scores:
        return []
    documents = [hit.document for hit in hits[: len(scores)]]
    head = rank_scores(documents, np.array(scores, dtype=np.float64), len(scores))
    rest = [hit.document for hit in hits[len(scores) :]]
    below = _scores_below(head[-1].score, len(rest))
    return head + [Hit(document, value) for document, value in zip(rest, below, strict=True)]


def _scores_below(floor: float, count: int) -> list[float]:
    """Falling float32 values below a score: one apart, or as far as float32 needs there."""
    step = max(1.0, 2 * float(np.spacing(np.float32(abs(floor) + count))))
    values: NDArray[np.float32] = (floor - step * np.arange(1, count + 1)).astype(np.float32)
    return [float(value) for value in values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """A ranker, ready to make a run.

    Attributes:
        name: of the method.
        rank: makes the run.
        reranking: how a first stage is re-ranked, its depth settled; `None` where none is.
        encodes: whether it, or its first stage, encodes the whole collection.
    """

    name: str
    rank: Callable[[Task], Run]
    reranking: Reranking | None
    encodes: bool


def choose_ranker(
    method: str | None,
    parameters: Mapping[str, str],
    options: Reranking,
    out: Path,
    *,
    progress: Progress = SILENT,
) -> Ranker:
    """The ranker that was named, or the one that needs no name.

    Args:
        method: its name; `None` for the default.
        parameters: its parameters.
        options: the first stage, and how it is re-ranked.
        out: the run file to be.
        progress: hears what goes on, and counts texts and queries.

    Returns:
        Its `rank` raises InputError with code `model-checkpoint`, `model-untrained`,
        `model-scores`, `rerank-document` or `rerank-partial`, SetupError where an extra is not
        installed, and StoreError where OUT.partial or OUT.vectors cannot be written.

    Raises:
        InputError: code `rank-method`, `rank-parameter`, `rank-first` or `rank-passage`, or
            errors of the run file that is re-ranked.
    """
    if method is None and options.first is not None:
        found, expected = "--first without a method", "the method that re-ranks it"
        raise InputError.of("rank-method", "--method", found, expected)
    if method is None:
        method, parameters = choose_default(parameters)
    chosen = find_method(method)
    if options.first is not None or chosen.rank is None:
        settled = replace(options, rerank_depth=options.rerank_depth or chosen.rerank_depth)
        rank = _choose_reranking(method, parameters, settled, out, progress)
        return Ranker(name=method, rank=rank, reranking=settled, encodes=encodes_first(options))
    encoding = encodes(method, parameters)

    def choose(vectors: Encoding) -> Callable[[Task], Run]:
        return choose_method(method, parameters, vectors)

    rank = (
        encode_resumably(choose, out, fresh=not options.resume, progress=progress)
        if encoding
        else choose(Encoding())
    )
    return Ranker(name=method, rank=rank, reranking=None, encodes=encoding)


def remove_unfinished(ranker: Ranker, out: Path) -> None:
    """Remove what stood for the run while it was being made."""
    if ranker.reranking is not None:
        partial_path(out).unlink(missing_ok=True)
    if ranker.encodes:
        remove_vectors(vectors_path(out))


def encodes_first(options: Reranking) -> bool:
    """Whether the first stage is a method that encodes the whole collection."""
    first = options.first or DEFAULT_FIRST
    return first in METHODS and not Path(first).is_file() and encodes(first, {})


def _choose_reranking(
    method: str,
    parameters: Mapping[str, str],
    options: Reranking,
    out: Path,
    progress: Progress,
) -> Callable[[Task], Run]:
    """What makes the first stage and re-ranks it; what is done stands in OUT.partial."""
    load = choose_reranker(method, parameters)
    find_first = _choose_first(options, out, progress)

    def make(task: Task) -> Run:
        model = load()
        return _rerank(task, find_first(task), model, options, out=out, progress=progress)

    return make


def _rerank(
    task: Task,
    first: Run,
    model: Reranker,
    options: Reranking,
    *,
    out: Path,
    progress: Progress,
) -> Run:
    scorer = f"{model.digest} {options.passage}"
    depth = _depth(options)
    digest = digest_reranking(task, first, depth=depth, scorer=scorer)
    partial = open_partial(partial_path(out), digest, fresh=not options.resume)
    if len(partial):
        progress.note("going on", f"{plural(len(partial), 'query', 'queries')} done before")
    with progress.steps("re-ranking", len(task.queries)) as advance:
        return rerank(
            task,
            first,
            _scorer(model.score, options),
            depth=depth,
            progress=lambda _done, _total: advance(),
            finished=partial,
        )


def _depth(options: Reranking) -> int:
    if options.rerank_depth is None:
        raise ValueError("wanted: options whose depth is settled")
    return options.rerank_depth


def partial_path(out: Path) -> Path:
    """Where the scores stand of a run that is not finished."""
    return out.with_name(f"{out.name}.partial")


def _scorer(score: PairScorer, options: Reranking) -> PairScorer:
    if options.passage is None:
        return score
    return score_best_passage(score, size=options.passage)


def _choose_first(options: Reranking, out: Path, progress: Progress) -> Callable[[Task], Run]:
    """What gives the run to re-rank: a file, read now, or a method with its defaults."""
    first = options.first or DEFAULT_FIRST
    if Path(first).is_file():
        return _read_first(Path(first), progress)
    if first not in METHODS:
        raise InputError.of(
            "rank-first",
            "--first",
            f"{quote(first)}, which is no method and no file",
            "a run file, or a method that ranks, such as bm25",
        )
    rank = choose_method(first, {})
    if encodes_first(options):
        rank = encode_resumably(
            lambda encoding: choose_method(first, {}, encoding),
            out,
            fresh=not options.resume,
            progress=progress,
        )

    def make(task: Task) -> Run:
        return rank(replace(task, depth=max(task.depth, _depth(options))))

    return make


def _read_first(path: Path, progress: Progress) -> Callable[[Task], Run]:
    run = read_file(read_run, path)

    def give(task: Task) -> Run:
        if missing := sum(query not in run for query in task.queries):
            what = plural(missing, "query", "queries")
            progress.note("note", f"{what} without documents in {printable(str(path))} stay empty")
        return run

    return give


def vectors_path(out: Path) -> Path:
    """Where the vectors of documents stand of a run that is not finished."""
    return out.with_name(f"{out.name}.vectors")


def encode_resumably(
    choose: Callable[[Encoding], Callable[[Task], Run]],
    out: Path,
    *,
    fresh: bool,
    progress: Progress = SILENT,
) -> Callable[[Task], Run]:
    """A ranker that goes on where a killed run stopped to encode the collection.

    Args:
        choose: gives the ranker, from where vectors are stored and what counts texts.
        out: the run file to be; vectors are stored beside it, in OUT.vectors.
        fresh: start again, whatever is there.
        progress: counts the texts.

    Returns:
        From a task to its run; raises what the ranker raises, and StoreError where OUT.vectors
        cannot be written.

    Raises:
        InputError: what `choose` raises, before anything is read.
    """
    choose(Encoding())
    folder = vectors_path(out)

    def rank(task: Task) -> Run:
        if fresh:
            remove_vectors(folder)
        if folder.is_dir():
            progress.note("going on", f"with the vectors in {printable(str(folder))}")
        with progress.steps("encoding", len(task.documents)) as advance:

            def count(texts: int) -> None:
                for _ in range(texts):
                    advance()

            return choose(Encoding(folder=folder, progress=count))(task)

    return rank
