"""Where work is done: on this machine's cores or a Dask cluster, or aside with an end by the clock.

Cores and cluster are a `concurrent.futures.Executor`, so an analysis does not know which it has.
Threads do for this machine: what takes long is numpy's, which lets other threads run meanwhile.
Each of our threads multiplies on its own: threads of the linear algebra library below them would
wait for each other, busily, and on a machine that does other things too take ten times as long.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import TypeVar

from heldout.errors import SetupError
from heldout.files.process import count_cores

T = TypeVar("T")


def work_within(seconds: float, work: Callable[[], T]) -> T:
    """Do some work in a thread of its own, and wait no longer than this.

    For calls over a network: the time-outs of a client are those of one read, so that whoever
    sends the head of an answer in drips, or heads without end, holds it for as long as they like.

    Raises:
        TimeoutError: it takes longer; the thread is left to itself, and keeps no program running.
    """
    done = Future[T]()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    return done.result(seconds)


@contextmanager
def open_executor(*, jobs: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """An executor that ends with the block.

    Args:
        jobs: threads on this machine, >= 1; `None` for one for each core. While the block
            runs, nothing in this process multiplies on more.
        dask: address of a Dask scheduler, as in `tcp://10.0.0.1:8786`, instead of threads.
            Scheduler and workers need the same versions of heldout, numpy and scipy as here.

    Yields:
        The executor; `None` for one thread, which needs none.

    Raises:
        SetupError: the `cluster` extra is not installed; no scheduler answers within 10 seconds,
            or it is lost; there is no worker for a minute; a machine of the cluster has other
            versions; or workers are lost at the same task again and again.
    """
    try:
        if dask is not None:
            from heldout.files.clusters import open_cluster  # noqa: PLC0415 - most calls need none

            with open_cluster(dask) as executor:
                yield executor
        else:
            with import_module("threadpoolctl").threadpool_limits(1, user_api="blas"):
                yield from _open_threads(jobs or count_cores())
    except BrokenExecutor as error:
        raise SetupError(
            str(error)
            or "a worker was ended from outside; is there enough memory? fewer need less: --jobs 1"
        ) from error


def _open_threads(jobs: int) -> Iterator[Executor | None]:
    if jobs == 1:
        yield None
        return
    with ThreadPoolExecutor(jobs) as executor:
        yield executor
