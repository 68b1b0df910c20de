"""Re-ranking: the first documents of a run are scored again by a model that reads their texts.

Long documents are read in sliding passages: a document is as good as its best passage (MaxP).
Scores of a run that is being made lie query by query on disk: a killed run goes on.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, StoreError, plural, printable, quote
from heldout.ids import Digest, DocId, QueryId, digest_bytes
from heldout.progress_bar import SILENT, Progress
from heldout.rankers import methods
from heldout.rankers.options import DEFAULT_FIRST, Reranking
from heldout.rankers.run import Hit, PairScorer, RankingTask, Run, TextPair, rank_scores, read_run
from heldout.trec.reading.sources import read_file


class _PartialLine(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one query, below the digest of all that they depend on."""

    made_of: Digest
    scores: tuple[float, ...]


class PartialScores:
    """Scores of a run that is being made, in a file with which a killed call goes on.

    What was scored with other settings, texts or weights is never found; a line that a kill tore is
    passed over.
    """

    def __init__(self, path: Path, scorer: str) -> None:
        """Read what an earlier call has done.

        Args:
            path: the file.
            scorer: what says which scorer it is: its digest, and how passages are cut.

        Raises:
            StoreError: it cannot be read.
        """
        self._path, self._scorer = path, scorer
        self._found: dict[Digest, Sequence[float]] = {}
        try:
            lines = path.read_bytes().splitlines() if path.exists() else []
        except OSError as error:
            raise StoreError(f"{path} cannot be used: {error.strerror or error}") from error
        for line in lines:
            with suppress(msgspec.DecodeError):
                done = msgspec.json.decode(line, type=_PartialLine)
                self._found[done.made_of] = done.scores

    def score(self, pairs: Sequence[TextPair], score: PairScorer) -> Sequence[float]:
        """Return the scores of a query, computed and written to disk where they are not there.

        Raises:
            StoreError: they cannot be written.
        """
        made_of = digest_bytes(msgspec.json.encode([self._scorer, pairs]))
        if made_of not in self._found:
            scores = tuple(score(pairs).tolist())
            line = msgspec.json.encode(_PartialLine(made_of=made_of, scores=scores))
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                with self._path.open("ab") as file:
                    file.write(b"\n" + line)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:
                message = f"{self._path} cannot be written: {error.strerror or error}"
                raise StoreError(message) from error
            self._found[made_of] = scores
        return self._found[made_of]


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
    task: RankingTask,
    first: Run,
    score: PairScorer,
    *,
    depth: int,
    done: Callable[[], None] = lambda: None,
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
        done: called after each query.
        finished: scores of a run that was killed; those of this one are added.

    Raises:
        InputError: code `rerank-document`: the first stage has a document without text; or
            what `score` raises.
        ValueError: a score is NaN or infinite, or `depth` is below 1.
    """
    if depth < 1:
        raise ValueError("wanted: depth >= 1")
    run: dict[QueryId, list[Hit]] = {}
    for query, text in task.queries.items():
        hits = first.get(query, ())
        check_known(hits, task.documents, query=query, path="--first")
        pairs = [TextPair(text, task.documents[hit.document]) for hit in hits[:depth]]
        if not pairs:
            scores: Sequence[float] = ()
        else:
            scores = finished.score(pairs, score) if finished else score(pairs).tolist()
        run[query] = _reorder(hits, scores)[: task.depth]
        done()
    return run


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
    found = f"document {quote(unknown)} of query {quote(query)}"
    raise InputError.of("rerank-document", path, found)


def _reorder(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """The scored documents by their scores, then the others as they stood."""
    if not scores:
        return []
    documents = [hit.document for hit in hits[: len(scores)]]
    head = rank_scores(documents, np.array(scores, dtype=np.float64), len(scores))
    rest = [hit.document for hit in hits[len(scores) :]]
    # One apart, or as far as float32 needs there
    floor = head[-1].score
    step = max(1.0, 2 * float(np.spacing(np.float32(abs(floor) + len(rest)))))
    below = (floor - step * np.arange(1, len(rest) + 1)).astype(np.float32).tolist()
    return head + [Hit(document, value) for document, value in zip(rest, below, strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """A ranker, ready to make a run.

    Attributes:
        name: of the method.
        rank: makes the run.
        reranking: how a first stage is re-ranked, its depth settled; `None` where none is.
    """

    name: str
    rank: Callable[[RankingTask], Run]
    reranking: Reranking | None = None


def choose_ranker(
    method: str | None,
    parameters: Mapping[str, str],
    options: Reranking,
    out: Path,
    *,
    progress: Progress = SILENT,
) -> Ranker:
    """Return the ranker that was named, or the one that needs no name.

    Args:
        method: its name; `None` for the default.
        parameters: its parameters.
        options: the first stage, and how it is re-ranked.
        out: the run file to be.
        progress: hears what goes on, and counts texts and queries.

    Returns:
        Its `rank` raises InputError with code `model-checkpoint`, `model-untrained`,
        `model-scores` or `rerank-document`, SetupError where an extra is not installed, and
        StoreError where OUT.partial or the folder of vectors cannot be written.

    Raises:
        InputError: code `rank-method`, `rank-parameter`, `rank-first` or `rank-passage`, or
            errors of the run file that is re-ranked.
    """
    if method is None and options.first is not None:
        found, expected = "--first without a method", "the method that re-ranks it"
        raise InputError.of("rank-method", "--method", found, expected)
    if method is None:
        method, parameters = methods.choose_default(parameters)
    chosen = methods.find_method(method)
    if options.first is None and chosen.rank is not None:
        return Ranker(name=method, rank=methods.choose_method(method, parameters, progress))
    depth = options.rerank_depth or chosen.rerank_depth
    load = methods.choose_reranker(method, parameters)
    find_first = _choose_first(options.first or DEFAULT_FIRST, depth, progress)

    def rank(task: RankingTask) -> Run:
        model = load()
        first = find_first(task)
        score: PairScorer = model.score
        if options.passage is not None:
            score = score_best_passage(score, size=options.passage)
        partial = PartialScores(partial_path(out), f"{model.digest} {options.passage}")
        with progress.steps("re-ranking", len(task.queries)) as done:
            return rerank(task, first, score, depth=depth, done=done, finished=partial)

    return Ranker(name=method, rank=rank, reranking=replace(options, rerank_depth=depth))


def partial_path(out: Path) -> Path:
    """Return where the scores stand of a run that is not finished."""
    return out.with_name(f"{out.name}.partial")


def _choose_first(first: str, depth: int, progress: Progress) -> Callable[[RankingTask], Run]:
    """Return what gives the run to re-rank: a file, read now, or a method with its defaults."""
    if Path(first).is_file():
        return _read_first(Path(first), progress)
    if first not in methods.METHODS:
        raise InputError.of("rank-first", "--first", name=quote(first))
    rank = methods.choose_method(first, {}, progress)
    return lambda task: rank(replace(task, depth=max(task.depth, depth)))


def _read_first(path: Path, progress: Progress) -> Callable[[RankingTask], Run]:
    run = read_file(read_run, path)

    def give(task: RankingTask) -> Run:
        if missing := sum(query not in run for query in task.queries):
            what = plural(missing, "query", "queries")
            progress.note("note", f"{what} without documents in {printable(str(path))} stay empty")
        return run

    return give
