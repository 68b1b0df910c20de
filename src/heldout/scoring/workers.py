"""Run files spread over executors, one file in each at a time.

Where an executor breaks, the file that broke it is known: the others come out, and another executor
takes its place. So N processes are N pools of one process each.
"""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from concurrent.futures.process import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Generic, TypeVar

from heldout.files.process import hold_freed_memory

Outcome = TypeVar("Outcome")


def spread(
    paths: Sequence[str],
    score: Callable[[str], Outcome],
    *,
    died: Callable[[str], Outcome],
    open_executor: Callable[[], Executor],
    lanes: int,
    done: Callable[[], None],
) -> list[Outcome]:
    """Score files side by side.

    Args:
        paths: the files.
        score: scores one; sent to an executor.
        died: the outcome of a file whose executor broke.
        open_executor: gives an executor for one file at a time; called again where one breaks.
        lanes: how many executors, >= 1.
        done: called after each file.

    Executors are closed by whoever opens them: `open_executor` may be asked for more than
    `lanes` of them, one more for each that broke.

    Returns:
        An outcome for each file, in the order of `paths`.
    """
    todo = deque(enumerate(paths))
    outcomes: dict[int, Outcome] = {}
    open_lanes = [_Lane(open_executor, died) for _ in range(min(lanes, len(paths)))]
    while len(outcomes) < len(paths):
        for lane in open_lanes:
            if lane.future is None and todo:
                lane.start(score, *todo.popleft())
        wait([lane.future for lane in open_lanes if lane.future], return_when=FIRST_COMPLETED)
        for lane in open_lanes:
            if lane.future is not None and lane.future.done():
                outcomes[lane.position] = lane.finish()
                done()
    return [outcomes[position] for position in range(len(paths))]


@dataclass(slots=True)
class _Lane(Generic[Outcome]):
    """An executor and the file that it is at."""

    open_executor: Callable[[], Executor]
    died: Callable[[str], Outcome]
    executor: Executor = field(init=False)
    future: Future[Outcome] | None = None
    position: int = 0
    path: str = ""

    def __post_init__(self) -> None:
        self.executor = self.open_executor()

    def start(self, score: Callable[[str], Outcome], position: int, path: str) -> None:
        self.position, self.path = position, path
        try:
            self.future = self.executor.submit(score, path)
        except BrokenExecutor:  # it died between two files
            self.executor = self.open_executor()
            self.future = self.executor.submit(score, path)

    def finish(self) -> Outcome:
        future, self.future = self.future, None
        if future is None:
            raise ValueError(self.path)
        try:
            return future.result()
        except BrokenExecutor:
            self.executor = self.open_executor()
            return self.died(self.path)


@contextmanager
def open_processes(
    score: Callable[[Any, str], Outcome], work: object
) -> Iterator[tuple[Callable[[str], Outcome], Callable[[], Executor]]]:
    """Yield what `spread` needs to score in processes that have the same work.

    Processes are forked from a server that has no threads of ours; each is sent the work
    once, and what scores: a function of a module. None is left when the block is left, by an
    exception too, or this process is killed.

    Yields:
        `score` and `open_executor`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, score.__module__])
    others = set(multiprocessing.active_children())
    executors: list[Executor] = []

    def open_executor() -> Executor:
        executors.append(
            ProcessPoolExecutor(1, context, initializer=_begin, initargs=(score, work))
        )
        return executors[-1]

    try:
        yield _score_here, open_executor
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        # Waited for: a pool's thread that closes its pipe while Python ends, and writes to it,
        # prints a traceback.
        for executor in executors:
            executor.shutdown(cancel_futures=True)


_WORK: list[tuple[Callable[[Any, str], Any], object]] = []
"""In a worker: what it was started with."""


def _begin(score: Callable[[Any, str], Any], work: object) -> None:
    """Prepare a worker. An interrupt ends it without a word: the parent says what there is."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    hold_freed_memory()
    Thread(target=_end_with_parent, daemon=True).start()
    _WORK[:] = [(score, work)]


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _score_here(path: str) -> Any:
    ((score, work),) = _WORK
    return score(work, path)
