"""Runs that take hours and go on where they stopped: re-ranked ones, encoded collections."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from heldout.errors import InputError, plural, printable, quote
from heldout.progress import SILENT, Progress
from heldout.rankers.methods import (
    METHODS,
    bind_method,
    choose_method,
    choose_reranker,
    choose_zero_shot,
    encodes,
    find_method,
    has_encoder,
)
from heldout.rankers.neural.vectors import Encoding, remove_vectors
from heldout.rankers.options import DEFAULT_FIRST, Reranking
from heldout.rankers.rerank import digest_reranking, open_partial, rerank, score_best_passage
from heldout.rankers.run import PairScorer, Reranker, Run, Task, read_run
from heldout.trec.reading.sources import read_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranker:
    """A ranker, ready to make a run.

    Attributes:
        name: of the method, or of the default.
        meaning: how it is named in messages.
        rank: makes the run.
        reranking: how a first stage is re-ranked, its depth settled; `None` where none is.
        encodes: whether it, or its first stage, encodes the whole collection.
    """

    name: str
    meaning: str
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
        method: its name; `None` for the default, whose parameters say only how it is run.
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
        default = choose_zero_shot(encoder=has_encoder())
        name, meaning, encoding = default.name, default.meaning, default.method.encodes

        def choose(vectors: Encoding) -> Callable[[Task], Run]:
            return bind_method(default.method, parameters, vectors)

    else:
        chosen = find_method(method)
        name, meaning = method, printable(method)
        if options.first is not None or chosen.rank is None:
            settled = replace(options, rerank_depth=options.rerank_depth or chosen.rerank_depth)
            rank = _choose_reranking(method, parameters, settled, out, progress)
            encoding = encodes_first(options)
            return Ranker(
                name=name, meaning=meaning, rank=rank, reranking=settled, encodes=encoding
            )
        encoding = encodes(method, parameters)

        def choose(vectors: Encoding) -> Callable[[Task], Run]:
            return choose_method(method, parameters, vectors)

    rank = (
        encode_resumably(choose, out, fresh=not options.resume, progress=progress)
        if encoding
        else choose(Encoding())
    )
    return Ranker(name=name, meaning=meaning, rank=rank, reranking=None, encodes=encoding)


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
    _check_passages(options)
    find_first = _choose_first(options, out, progress)

    def make(task: Task) -> Run:
        model = load()
        return _rerank(task, find_first(task), model, options, out=out, progress=progress)

    return make


def _check_passages(options: Reranking) -> None:
    """Refuse passages that would leave words out."""
    if options.stride is None or (options.passage or 0) >= options.stride:
        return
    raise InputError.of(
        "rank-passage",
        "--stride",
        f"{options.stride}, with --passage {options.passage or 'not given'}",
        "a stride of at most --passage, so that no word is left out",
    )


def _rerank(
    task: Task,
    first: Run,
    model: Reranker,
    options: Reranking,
    *,
    out: Path,
    progress: Progress,
) -> Run:
    scorer = f"{model.digest} {options.passage} {options.stride}"
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
    stride = options.stride or max(1, options.passage // 2)
    return score_best_passage(score, size=options.passage, stride=stride)


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
