"""Where work is computed: on this machine's cores, or on a Dask cluster.

Both are a `concurrent.futures.Executor`, so an analysis does not know which it has. Threads do for
this machine: what takes long is numpy's, which lets other threads run meanwhile. Each of our
threads multiplies on its own: threads of the linear algebra library below them would wait for each
other, busily, and on a machine that does other things too take ten times as long.
"""

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module

from heldout.errors import SetupError
from heldout.files.cores import count_cores


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
