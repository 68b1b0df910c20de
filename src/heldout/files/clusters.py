"""Calls on a Dask cluster that outlive the machines they were sent to.

A lost worker costs time and no result. What many tasks share is a task of its own: Dask makes it
again on another worker where the one that held it is lost. (Data that a client scatters are gone
with their worker.) A task that Dask gives up is sent again.
"""

import asyncio
import gc
import logging
import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from time import monotonic
from typing import Any, TypeVar

from heldout.errors import SetupError

Found = TypeVar("Found")

_PATIENCE = 10.0
"""Seconds in which a scheduler answers."""
_WITHOUT_WORKERS = 60.0
"""Seconds after which a cluster without any worker is given up."""
_EVERY = 1.0
"""Seconds between two looks at the cluster."""
_TRIES = 3
"""How often a task is sent. Dask itself moves it to another worker three times before it fails."""
_LARGE = 1 << 16
"""Bytes from which a value is sent once, and not with every task."""
_SAME = ("heldout", "numpy", "scipy")
"""The packages that decide results to the last bit."""


@contextmanager
def open_cluster(address: str) -> Iterator[Executor]:
    """A cluster's executor; nothing of it is left on the cluster when the block ends.

    Args:
        address: of its scheduler.

    Raises:
        SetupError: as `heldout.files.executors.open_executor`.
    """
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise SetupError(
            "a cluster needs distributed, which is not installed; pip install 'heldout[cluster]'"
        ) from error
    # A client that did not connect closes itself when it is collected. In the middle of the next
    # one's start it would wait for ever, for a lock that this start holds.
    gc.collect()
    with _quiet(distributed):
        try:
            client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise SetupError(
                f"no Dask scheduler answers at {address}; is it running? "
                "tcp://HOST:8786 is its address"
            ) from error
        with client:
            _check_versions(client)
            with _Cluster(client, address) as executor:
                yield executor


@contextmanager
def _quiet(distributed: Any) -> Iterator[None]:
    """Leave to us what is said of a cluster: Dask logs and warns while it repairs."""
    known = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    levels = {logger: logger.level for logger in map(logging.getLogger, ["distributed", *known])}
    for logger in levels:
        logger.setLevel(logging.CRITICAL)
    large = {"distributed.admin.large-graph-warning-threshold": "1 PiB"}
    with import_module("dask").config.set(large), warnings.catch_warnings():
        warnings.simplefilter("ignore", distributed.versions.VersionMismatchWarning)
        try:
            yield
        finally:
            for logger, level in levels.items():
                logger.setLevel(level)


def _own_versions() -> dict[str, str]:
    return {name: import_module(name).__version__ for name in _SAME}


def _check_versions(client: Any) -> None:
    """Refuse a cluster on which the same bytes cannot be expected.

    Raises:
        SetupError: names a machine and what it has.
    """
    found = client.get_versions(packages=_SAME)
    machines = {"the scheduler": found["scheduler"]}
    machines |= {f"the worker at {address}": one for address, one in found["workers"].items()}
    for name, machine in machines.items():
        packages = machine["packages"]
        _compare_versions(name, {package: packages.get(package) for package in _SAME})


def _compare_versions(machine: str, theirs: Mapping[str, str | None]) -> None:
    own = _own_versions()
    if theirs != own:
        there = ", ".join(f"{name} {version or 'is missing'}" for name, version in theirs.items())
        here = ", ".join(f"{name} {version}" for name, version in own.items())
        raise SetupError(
            f"{machine} has other versions: {there}; here: {here}; install the same on all "
            "machines, since others may give other numbers"
        )


@dataclass(frozen=True, slots=True)
class _Slot:
    """In the arguments of a call: which of the shared values stands here."""

    number: int


@dataclass(frozen=True, slots=True)
class _OtherVersions:
    """What a worker answers that may not compute."""

    worker: str
    versions: dict[str, str]


def _call(versions: Mapping[str, str], call: bytes, *shared: Any) -> Any:
    """On a worker: call what was sent. A worker that came later was not looked at before."""
    own = _own_versions()
    if own != versions:
        worker = import_module("distributed").get_worker().address
        return _OtherVersions(worker, own)
    fn, args, kwargs = pickle.loads(call)  # noqa: S301 - from our own client
    args = [shared[one.number] if isinstance(one, _Slot) else one for one in args]
    return fn(*args, **kwargs)


@dataclass(slots=True)
class _Shared:
    """A value of some calls; held, so that no other one gets its id.

    Attributes:
        value: itself.
        large: whether it is a task of its own, sent once.
        sent: that task, as Dask's future.
    """

    value: object
    large: bool
    sent: Any = None


class _Cluster(Executor):
    """Calls that outlive the workers they were sent to, and end where there is no cluster left.

    All that waits does so on the client's event loop. One task there looks after the cluster;
    where it finds it lost, every call ends with the reason.
    """

    def __init__(self, client: Any, address: str) -> None:
        distributed = import_module("distributed")
        self._lost = (distributed.KilledWorker, distributed.comm.CommClosedError, CancelledError)
        self._client, self._address = client, address
        self._loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
        # What Dask leaves unread where we stop waiting is no news: the reason is in `_failure`.
        self._loop.set_exception_handler(lambda *_: None)
        self._versions = _own_versions()
        self._shared: dict[int, _Shared] = {}
        self._calls: set[Future[Any]] = set()
        self._answers: set[asyncio.Future[Any]] = set()
        self._failure = ""
        self._watch = asyncio.run_coroutine_threadsafe(self._look_after(), self._loop)

    def submit(self, fn: Callable[..., Found], /, *args: Any, **kwargs: Any) -> Future[Found]:
        """Call it somewhere on the cluster: a function of a module, on what can be pickled."""
        shared: list[_Shared] = []
        own: list[Any] = []
        for value in args:
            held = self._hold(value)
            own.append(_Slot(len(shared)) if held.large else value)
            shared += [held] if held.large else []
        call = _pickled((fn, own, kwargs))
        future: Future[Found] = asyncio.run_coroutine_threadsafe(
            self._compute(call, shared), self._loop
        )
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as in Executor
        """Let go of the cluster, which goes on; what nobody waits for ends with the client."""
        del wait, cancel_futures
        for future in (self._watch, *self._calls.copy()):
            future.cancel()

    def _hold(self, value: object) -> _Shared:
        if id(value) not in self._shared:
            self._shared[id(value)] = _Shared(value, len(_pickled(value)) > _LARGE)
        return self._shared[id(value)]

    async def _compute(self, call: bytes, shared: Sequence[_Shared]) -> Any:
        for _ in range(_TRIES):
            if self._client.status != "running":
                raise SetupError(self._describe_loss())
            data = [self._send(one) for one in shared]
            sent = self._client.submit(_call, self._versions, call, *data, pure=False)
            answer = asyncio.ensure_future(self._client.gather(sent, asynchronous=True))
            self._answers.add(answer)
            try:
                found = await answer
            except self._lost:
                continue
            except ImportError as error:
                raise SetupError(
                    f"a worker lacks what is installed here: {error}; install the same extras of "
                    "heldout on all machines"
                ) from error
            except asyncio.CancelledError:
                if self._failure:
                    raise SetupError(self._failure) from None
                raise
            finally:
                self._answers.discard(answer)
            if isinstance(found, _OtherVersions):
                _compare_versions(f"the worker at {found.worker}", found.versions)
            return found
        raise BrokenExecutor(
            "workers were lost at the same task again and again; has each enough memory? "
            "a worker with one thread needs least: dask worker --nthreads 1"
        )

    def _send(self, one: _Shared) -> Any:
        """A task whose result is the value; made again where Dask gave it up."""
        if one.sent is None or one.sent.status in ("error", "cancelled", "lost"):
            one.sent = self._client.submit(pickle.loads, _pickled(one.value), pure=False)
        return one.sent

    async def _look_after(self) -> None:
        """End all calls once the scheduler is lost, or all workers are and none comes."""
        seen = monotonic()
        while not self._failure:
            await asyncio.sleep(_EVERY)
            try:
                workers = await asyncio.wait_for(self._client.nthreads(), _PATIENCE)
            except Exception:  # noqa: BLE001 - however it fails, the scheduler does not answer
                workers = None
            if workers is None or self._client.status != "running":
                self._failure = self._describe_loss()
            elif workers:
                seen = monotonic()
            elif monotonic() - seen > _WITHOUT_WORKERS:
                self._failure = (
                    f"the Dask scheduler at {self._address} has had no worker for "
                    f"{_WITHOUT_WORKERS:.0f} seconds; start some: dask worker {self._address}"
                )
        for answer in self._answers:
            answer.cancel()

    def _describe_loss(self) -> str:
        return (
            f"the Dask scheduler at {self._address} is lost, and all that it had; start it and its "
            "workers, then run the command again"
        )


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
