"""Where work is computed: on this machine's cores, or on a Dask cluster.

Both are a `concurrent.futures.Executor`, so an analysis does not know which it has. Threads do for
this machine: what takes long is numpy's, which lets other threads run meanwhile. Each of our
threads multiplies on its own: threads of the linear algebra library below them would wait for each
other, busily, and on a machine that does other things too take ten times as long.
"""

import gc
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from heldout.errors import SetupError
from heldout.files.cores import count_cores

Found = TypeVar("Found")

_PATIENCE = 10.0
_LARGE = 1 << 16


@contextmanager
def open_executor(*, jobs: int | None = None, dask: str | None = None) -> Iterator[Executor | None]:
    """An executor that ends with the block.

    Args:
        jobs: threads on this machine, >= 1; `None` for one for each core. While the block
            runs, nothing in this process multiplies on more.
        dask: address of a Dask scheduler, as in `tcp://10.0.0.1:8786`, instead of threads.
            Its workers need the same versions of heldout and numpy.

    Yields:
        The executor; `None` for one thread, which needs none.

    Raises:
        SetupError: the `cluster` extra is not installed, no scheduler answers within 10 seconds,
            or a worker was lost on the way.
    """
    try:
        if dask is not None:
            with _open_cluster(dask) as executor:
                yield executor
        else:
            with import_module("threadpoolctl").threadpool_limits(1, user_api="blas"):
                yield from _open_threads(jobs or count_cores())
    except BrokenExecutor as error:
        raise SetupError(
            "a worker was ended from outside; is there enough memory? fewer need less: --jobs 1"
        ) from error


def _open_threads(jobs: int) -> Iterator[Executor | None]:
    if jobs == 1:
        yield None
        return
    with ThreadPoolExecutor(jobs) as executor:
        yield executor


@contextmanager
def _open_cluster(address: str) -> Iterator[Executor]:
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise SetupError(
            "a cluster needs distributed, which is not installed; pip install 'heldout[cluster]'"
        ) from error
    # A client that did not connect closes itself when it is collected. In the middle of the next
    # one's start it would wait for ever, for a lock that this start holds.
    gc.collect()
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SetupError(
            f"no Dask scheduler answers at {address}; is it running? tcp://HOST:8786 is its address"
        ) from error
    lost = (distributed.KilledWorker, distributed.comm.CommClosedError)
    with client, _Cluster(client) as executor:
        try:
            yield executor
        except lost as error:
            raise BrokenExecutor from error


class _Cluster(Executor):
    """A cluster's executor that sends what is large once, and not with every task."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._inner: Executor = client.get_executor()
        self._sent: dict[int, tuple[Any, Any]] = {}

    def submit(self, fn: Callable[..., Found], /, *args: Any, **kwargs: Any) -> Future[Found]:
        """Call it somewhere on the cluster."""
        return self._inner.submit(fn, *map(self._send, args), **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in Executor
        """Let go of the cluster, which goes on; what nobody waits for ends with the client."""
        del cancel_futures
        self._inner.shutdown(wait=wait)

    def _send(self, value: Any) -> Any:
        # Held, so that no other value gets its id.
        if id(value) not in self._sent:
            large = len(pickle.dumps(value)) > _LARGE
            sent = self._client.scatter([value])[0] if large else value
            self._sent[id(value)] = (value, sent)
        return self._sent[id(value)][1]
