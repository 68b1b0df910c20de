"""Runs that take hours and go on where they stopped: re-ranked ones, encoded collections.

Heavy imports stand inside the functions: `heldout rank --help` does not wait for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from heldout.errors import InputError, plural, printable, quote
from heldout.options import Opt
from heldout.progress import SILENT, Progress

if TYPE_CHECKING:
    from heldout.rankers.neural.vectors import Encoding
    from heldout.rankers.run import PairScorer, Reranker, Run, Task

DEFAULT_FIRST = "bm25"
"""The first stage where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """How a first stage is re-ranked."""

    first: Annotated[
        str | None,
        Opt(
            "What METHOD re-ranks: another method, or a run file [bm25 for methods that only "
            "re-rank].",
            metavar="METHOD|FILE",
        ),
    ] = None
    rerank_depth: Annotated[
        int | None,
        Opt(
            "Documents per query that are re-ranked; the others stay below [100; 20 for duot5, "
            "which asks k (k - 1) questions of k documents].",
            least=1,
        ),
    ] = None
    passage: Annotated[
        int | None,
        Opt(
            "Words of a passage; documents are re-ranked by their best one [whole documents].",
            least=1,
            metavar="WORDS",
        ),
    ] = None
    stride: Annotated[
        int | None,
        Opt("Words from one passage to the next [half a passage].", least=1, metavar="WORDS"),
    ] = None
    resume: Annotated[
        bool,
        Opt(
            "Whether to go on where a killed run stopped (OUT.partial, OUT.vectors), or to start "
            "again.",
            names=("--resume/--fresh",),
        ),
    ] = True


def is_reranking(method: str, options: Reranking) -> bool:
    """Whether a first stage is re-ranked.

    Raises:
        InputError: code `rank-method`.
    """
    from heldout.rankers.methods import only_reranks  # noqa: PLC0415 - heavy

    return options.first is not None or only_reranks(method)


def settle_depth(method: str, options: Reranking) -> Reranking:
    """The options with the depth of the method where none was named.

    Raises:
        InputError: code `rank-method`.
    """
    from heldout.rankers.methods import default_rerank_depth  # noqa: PLC0415 - heavy

    return replace(options, rerank_depth=options.rerank_depth or default_rerank_depth(method))


def encodes_first(options: Reranking) -> bool:
    """Whether the first stage is a method that encodes the whole collection."""
    from heldout.rankers.methods import METHODS, encodes  # noqa: PLC0415 - heavy

    first = options.first or DEFAULT_FIRST
    return first in METHODS and not Path(first).is_file() and encodes(first, {})


def choose_reranking(
    method: str,
    parameters: Mapping[str, str],
    options: Reranking,
    out: Path,
    *,
    progress: Progress = SILENT,
) -> "Callable[[Task], Run]":
    """What makes the first stage and re-ranks it; what is done stands in OUT.partial.

    Args:
        method: name of the re-ranker.
        parameters: its parameters.
        options: the first stage, and how it is re-ranked; its depth is settled.
        out: the run file to be.
        progress: hears what goes on, and counts queries.

    Returns:
        From a task to its run; raises InputError with code `model-checkpoint`,
        `model-untrained`, `model-scores`, `rerank-document` or `rerank-partial`, SetupError
        where an extra is not installed, and StoreError where OUT.partial cannot be written.

    Raises:
        InputError: code `rank-method`, `rank-parameter`, `rank-first` or `rank-passage`, or
            errors of the run file that is re-ranked.
    """
    from heldout.rankers.methods import choose_reranker  # noqa: PLC0415 - heavy

    load = choose_reranker(method, parameters)
    _check_passages(options)
    find_first = _choose_first(options, out, progress)

    def make(task: "Task") -> "Run":
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
    task: "Task",
    first: "Run",
    model: "Reranker",
    options: Reranking,
    *,
    out: Path,
    progress: Progress,
) -> "Run":
    from heldout.rankers.rerank import (  # noqa: PLC0415 - heavy
        digest_reranking,
        open_partial,
        rerank,
    )

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


def _scorer(score: "PairScorer", options: Reranking) -> "PairScorer":
    from heldout.rankers.rerank import score_best_passage  # noqa: PLC0415 - heavy

    if options.passage is None:
        return score
    stride = options.stride or max(1, options.passage // 2)
    return score_best_passage(score, size=options.passage, stride=stride)


def _choose_first(options: Reranking, out: Path, progress: Progress) -> "Callable[[Task], Run]":
    """What gives the run to re-rank: a file, read now, or a method with its defaults."""
    from heldout.rankers.methods import METHODS, choose_method  # noqa: PLC0415 - heavy

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

    def make(task: "Task") -> "Run":
        return rank(replace(task, depth=max(task.depth, _depth(options))))

    return make


def _read_first(path: Path, progress: Progress) -> "Callable[[Task], Run]":
    from heldout.rankers.run import read_run  # noqa: PLC0415 - heavy
    from heldout.trec.reading.sources import open_input  # noqa: PLC0415 - heavy

    with open_input(path) as source:
        run = read_run(source, path=str(path))

    def give(task: "Task") -> "Run":
        _note_missing(task, run, str(path), progress)
        return run

    return give


def _note_missing(task: "Task", run: "Run", first: str, progress: Progress) -> None:
    missing = sum(query not in run for query in task.queries)
    if missing:
        what = plural(missing, "query", "queries")
        progress.note("note", f"{what} without documents in {printable(first)} stay empty")


def vectors_path(out: Path) -> Path:
    """Where the vectors of documents stand of a run that is not finished."""
    return out.with_name(f"{out.name}.vectors")


def encode_resumably(
    choose: "Callable[[Encoding], Callable[[Task], Run]]",
    out: Path,
    *,
    fresh: bool,
    progress: Progress = SILENT,
) -> "Callable[[Task], Run]":
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
    from heldout.rankers.neural.vectors import Encoding, remove_vectors  # noqa: PLC0415 - heavy

    choose(Encoding())
    folder = vectors_path(out)

    def rank(task: "Task") -> "Run":
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
