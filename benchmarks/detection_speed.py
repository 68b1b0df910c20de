"""How long one new run takes against many earlier ones, on generated signatures in a vault."""

import math
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import ParamSpec, TypeVar

import numpy as np

from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.policy.ensembles import RunLikeness, Sampled
from heldout.board.policy.similarity import DEPTH, Neighbour, list_alike
from heldout.board.scores.compared import compare_runs
from heldout.board.scores.stored import read_signatures
from heldout.board.store.vault import Vault
from heldout.trec.scans import Signature

__all__ = ["describe_speed"]

_SEED = 20220711
_SYSTEMS = 40
_POOL = 300
P = ParamSpec("P")
T = TypeVar("T")
_DAY = datetime(2026, 11, 1, tzinfo=UTC)


def describe_speed(sizes: Sequence[tuple[int, int]]) -> str:
    """A new run against earlier ones, for each number of earlier runs and of queries."""
    rows = []
    spent: dict[tuple[str, int, int], float] = {}
    for earlier, queries in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _apart(_fill, Path(folder), earlier, queries)
            for what, work in _WORK.items():
                seconds, peak = _apart(_call, work, Path(folder), earlier)
                spent[what, queries, earlier] = seconds
                rows.append(
                    f"| {queries:,} | {earlier:,} | {what} | {seconds:.2f} s | {peak} MiB |"
                )
    lines = [
        "### One new run against many earlier ones",
        "",
        "Processor time and memory above that of the libraries, in a process of its own each.",
        "",
        "| queries | earlier runs | what | processor | memory |",
        "| ---: | ---: | --- | ---: | ---: |",
        *rows,
        "",
        "Growth from one number of earlier runs to the next, as the exponent of it:",
        "",
        "| queries | earlier runs | what | exponent |",
        "| ---: | --- | --- | ---: |",
        *_grow(sizes, spent),
    ]
    return "\n".join(lines)


def _grow(
    sizes: Sequence[tuple[int, int]], spent: dict[tuple[str, int, int], float]
) -> Iterator[str]:
    for (few, queries), (many, same) in pairwise(sizes):
        for what in _WORK if queries == same else ():
            ratio = spent[what, queries, many] / max(spent[what, queries, few], 1e-3)
            exponent = math.log(ratio) / math.log(many / few)
            yield f"| {queries:,} | {few:,} to {many:,} | {what} | {exponent:.2f} |"


def _fill(root: Path, earlier: int, queries: int) -> None:
    """A vault with a signature of each run: for each query the ranking of one of some systems.

    Two runs have the same ranking for one query in 40 and share much of the rest, so that they
    are alike as runs of different teams are.
    """
    random = np.random.default_rng(_SEED)
    pool = random.integers(1, 1 << 63, size=(queries, _POOL), dtype=np.uint64)
    quality = random.normal(size=pool.shape).astype(np.float32)
    systems = np.empty((_SYSTEMS, queries, DEPTH), np.uint64)
    for system in systems:
        noise = random.normal(size=pool.shape).astype(np.float32)
        order = np.argsort(-quality - noise, axis=1)[:, :DEPTH]
        system[:] = np.take_along_axis(pool, order, axis=1)
    names = np.array(sorted(str(1_000_000 + query) for query in range(queries)))
    (root / "signatures").mkdir()
    for name in _names(earlier):
        chosen = random.integers(0, _SYSTEMS, size=queries)
        documents = systems[chosen, np.arange(queries)]
        with (root / "signatures" / f"{name}.npz").open("wb") as file:
            np.savez(file, **{"eval.documents": documents, "eval.queries": names})  # type: ignore[arg-type]  # no other argument has such a name


def _names(earlier: int) -> list[str]:
    """Of the earlier runs, and last of the new one."""
    return [f"20261101-run{number}" for number in range(earlier + 1)]


def _apart(work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call something in a process of its own, whose peak of memory is its own too."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *given, **named).result()


def _call(work: Callable[[Path, int], None], root: Path, earlier: int) -> tuple[float, int]:
    """Processor time in seconds, and memory in MiB."""
    import scipy.optimize  # noqa: F401, PLC0415 - a library's start is no part of the comparison

    before, start = _peak(), process_time()
    work(root, earlier)
    return process_time() - start, _peak() - before


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _compare_all(root: Path, earlier: int) -> None:
    """Read and compare every earlier run in full."""
    *before, last = _names(earlier)

    def read(name: str) -> Signature:
        return read_signatures(Vault(root), name)["eval"]

    sampled, found = Sampled(read(last)), list[Neighbour]()
    for index, name in enumerate(before):
        signature = read(name)
        sampled.note(index, name, signature)
        found += list_alike(read(last), [(name, signature)])
    RunLikeness(neighbours=tuple(found), ensemble=sampled.explain())


def _look_up(root: Path, earlier: int) -> None:
    """As `review` does."""
    submissions = {
        name: Submission(id=name, received=_DAY, files={}, status="published")
        for name in _names(earlier)
    }
    history = History(submissions=submissions, rules=(), labels={})
    *_, last = submissions.values()
    compare_runs(Vault(root), history, last, repair=lambda _: False)


def _look_up_again(root: Path, earlier: int) -> None:
    """As it does for a submission that was not compared yet."""
    Vault(root).files.delete_tree("comparisons")
    _look_up(root, earlier)


_WORK: dict[str, Callable[[Path, int], None]] = {
    "every earlier run read and compared": _compare_all,
    "looked up, all sketches made first": _look_up,
    "looked up": _look_up_again,
    "compared before": _look_up,
}
