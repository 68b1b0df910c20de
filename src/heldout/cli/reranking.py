"""The options of `heldout rank` that re-rank a first stage, and what they do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heldout.cli.console import progress
from heldout.cli.encoding import show_encoding
from heldout.cli.options import one_argument
from heldout.cli.printing import messages, plural
from heldout.errors import InputError, Problem, printable, quote

if TYPE_CHECKING:
    from heldout.rankers.pairs import PairScorer, Reranker
    from heldout.rankers.run import Run, Task

__all__ = [
    "DEFAULT_FIRST",
    "Reranking",
    "choose_reranking",
    "encodes_first",
    "is_reranking",
    "partial_path",
    "reranking_options",
    "settle_depth",
]

DEFAULT_FIRST = "bm25"
"""The first stage where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """How a first stage is re-ranked.

    Attributes:
        first: a method or a run file; None where none was named.
        rerank_depth: documents per query that are scored, >= 1; None for that of the method.
        passage: words of a passage of a long document; None leaves documents whole.
        stride: words from one passage to the next; None for half a passage.
        resume: whether to go on with what a killed run has done.
    """

    first: str | None = None
    rerank_depth: int | None = None
    passage: int | None = None
    stride: int | None = None
    resume: bool = True


reranking_options = one_argument(
    "reranking",
    Reranking,
    click.option(
        "--first",
        metavar="METHOD|FILE",
        help="What METHOD re-ranks: another method, or a run file [default: bm25 for those that "
        "only re-rank].",
    ),
    click.option(
        "--rerank-depth",
        type=click.IntRange(min=1),
        help="Documents per query that are re-ranked; the others stay below [default: 100; 20 for "
        "duot5, which asks k (k - 1) questions of k documents].",
    ),
    click.option(
        "--passage",
        type=click.IntRange(min=1),
        metavar="WORDS",
        help="Re-rank documents by their best passage of so many words.",
    ),
    click.option(
        "--stride",
        type=click.IntRange(min=1),
        metavar="WORDS",
        help="Words from one passage to the next [default: half a passage].",
    ),
    click.option(
        "--resume/--fresh",
        default=True,
        show_default=True,
        help="Go on where a killed run stopped (OUT.partial, OUT.vectors), or begin anew.",
    ),
)
"""The options as one argument `reranking`."""


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
    method: str, parameters: Mapping[str, str], options: Reranking, out: Path
) -> "Callable[[Task], Run]":
    """What makes the first stage and re-ranks it; what is done stands in OUT.partial.

    Args:
        method: name of the re-ranker.
        parameters: its parameters.
        options: the first stage, and how it is re-ranked; its depth is settled.
        out: the run file to be.

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
    find_first = _choose_first(options, out)

    def make(task: "Task") -> "Run":
        model = load()
        return _rerank(task, find_first(task), model, options, out)

    return make


def _check_passages(options: Reranking) -> None:
    """Refuse passages that would leave words out."""
    if options.stride is None or (options.passage or 0) >= options.stride:
        return
    raise InputError(
        Problem(
            code="rank-passage",
            path="--stride",
            found=f"{options.stride}, with --passage {options.passage or 'not given'}",
            expected="a stride of at most --passage, so that no word is left out",
        )
    )


def _rerank(task: "Task", first: "Run", model: "Reranker", options: Reranking, out: Path) -> "Run":
    from heldout.rankers.partial import digest_reranking, open_partial  # noqa: PLC0415 - heavy
    from heldout.rankers.rerank import rerank  # noqa: PLC0415 - heavy

    scorer = f"{model.digest} {options.passage} {options.stride}"
    depth = _depth(options)
    digest = digest_reranking(task, first, depth=depth, scorer=scorer)
    partial = open_partial(partial_path(out), digest, fresh=not options.resume)
    if len(partial):
        messages().print(f"going on: {plural(len(partial), 'query', 'queries')} done before")
    with progress("re-ranking", len(task.queries)) as advance:
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
    from heldout.rankers.passages import score_best_passage  # noqa: PLC0415 - heavy

    if options.passage is None:
        return score
    stride = options.stride or max(1, options.passage // 2)
    return score_best_passage(score, size=options.passage, stride=stride)


def _choose_first(options: Reranking, out: Path) -> "Callable[[Task], Run]":
    """What gives the run to re-rank: a file, read now, or a method with its defaults."""
    from heldout.rankers.methods import METHODS, choose_method  # noqa: PLC0415 - heavy

    first = options.first or DEFAULT_FIRST
    if Path(first).is_file():
        return _read_first(Path(first))
    if first not in METHODS:
        raise InputError(
            Problem(
                code="rank-first",
                path="--first",
                found=f"{quote(first)}, which is no method and no file",
                expected="a run file, or a method that ranks, such as bm25",
            )
        )
    rank = choose_method(first, {})
    if encodes_first(options):
        rank = show_encoding(
            lambda encoding: choose_method(first, {}, encoding), out, fresh=not options.resume
        )

    def make(task: "Task") -> "Run":
        return rank(replace(task, depth=max(task.depth, _depth(options))))

    return make


def _read_first(path: Path) -> "Callable[[Task], Run]":
    from heldout.rankers.first_stage import read_run  # noqa: PLC0415 - heavy
    from heldout.trec.reading.streams import open_input  # noqa: PLC0415 - heavy

    with open_input(path) as source:
        run = read_run(source, path=str(path))

    def give(task: "Task") -> "Run":
        _say_missing(task, run, str(path))
        return run

    return give


def _say_missing(task: "Task", run: "Run", first: str) -> None:
    missing = sum(query not in run for query in task.queries)
    if missing:
        what = plural(missing, "query", "queries")
        messages().print(f"note: {what} without documents in {printable(first)} stay empty")
