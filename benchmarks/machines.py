"""Many machines: measured with 1 and 2 workers, kills on the way, and a model of more.

    python benchmarks/machines.py                         # all, some ten minutes on two idle cores
    python benchmarks/machines.py --quick                 # does everything work?
    python benchmarks/machines.py --page docs/results/machines.md

Every number of the model is measured here, on one machine: what a task takes, what it is sent and
sends back, what the scheduler and the client do for a task, and how fast bytes go through the
scheduler. Only the network between machines is assumed: 10 Gbit/s.
"""

import argparse
import gzip
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heapreplace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from heldout.analyses.analysis import Draws, load_analysis
from heldout.collections.named import load_qrels
from heldout.files.executors import open_executor
from heldout.scoring.names import read_measures
from heldout.scoring.score import Reading, Scored, find_reading
from heldout.scoring.sources import Scores
from heldout.scoring.table import table_of

NETWORK = 1.25e9
"""Bytes a second that are assumed between machines, and from the file server to all of them."""
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_ANALYSES = ("stability", "reliability", "outcomes", "power")
_MEGABYTES = 64
_DEPTH = 100
_LITTLE = 0.01
_START, _END = "<!-- results: written by benchmarks/machines.py -->", "<!-- end of results -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What there is to do, as measured without a cluster.

    Attributes:
        name: for tables.
        alone: seconds of processor outside of tasks: reading the table, putting parts together.
        tasks: seconds of processor of each task.
        shared: bytes that all tasks need, sent to the scheduler once.
        back: bytes that all tasks send back.
        read: bytes that tasks read from the file server.
    """

    name: str
    alone: float
    tasks: tuple[float, ...]
    shared: int = 0
    back: int = 0
    read: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster costs, as measured.

    Attributes:
        per_task: seconds that scheduler and client, one after the other, take for a task.
        through: bytes a second that go through the scheduler, there and back.
    """

    per_task: float
    through: float


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds with so many workers, and what most of them are."""

    seconds: float
    limit: str


def forecast(job: Job, cluster: Cluster, workers: int) -> Forecast:
    """How long a job takes.

    Tasks go to the worker that is free first, and are handed out one after the other. Shared data
    pass the scheduler once, and then go from worker to worker, so that those that have them double.
    Files are read from one server. What tasks send back passes the scheduler and the client.

    Args:
        job: from `measure_job`.
        cluster: from `measure_cluster`.
        workers: how many, >= 1.
    """
    free = [0.0] * workers
    heapify(free)
    for place, seconds in enumerate(job.tasks):
        begin = max(free[0], (place + 1) * cluster.per_task)
        heapreplace(free, begin + seconds)
    spread = job.shared / cluster.through + np.ceil(np.log2(workers)) * job.shared / NETWORK
    reading = job.read / NETWORK
    tasks = max(*free, reading)
    more = {
        "the caller alone": job.alone,
        "data there": float(spread),
        "results back": job.back / cluster.through,
        _limit_of_tasks(job, cluster, tasks, reading): tasks - sum(job.tasks) / workers,
    }
    limit = max(more, key=lambda name: more[name])
    seconds = tasks + job.alone + float(spread) + job.back / cluster.through
    return Forecast(seconds, limit if more[limit] > _LITTLE * seconds else "nothing but work")


def _limit_of_tasks(job: Job, cluster: Cluster, tasks: float, reading: float) -> str:
    """Why tasks take longer than all of them divided by the workers."""
    if reading >= tasks:
        return "the file server"
    if len(job.tasks) * cluster.per_task > tasks / 2:
        return "handing out tasks"
    return f"{len(job.tasks)} tasks, the longest of {max(job.tasks):.2g} s"


class Recorder(Executor):
    """Computes at once, and notes what each task takes, needs and gives."""

    def __init__(self) -> None:
        self.tasks: list[float] = []
        self.shared: dict[int, tuple[Any, int]] = {}
        self.back = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call it here."""
        for value in args:
            if id(value) not in self.shared:
                self.shared[id(value)] = (value, len(pickle.dumps(value, protocol=5)))
        future: Future[Any] = Future()
        begin = time.process_time()
        future.set_result(fn(*args, **kwargs))
        self.tasks.append(time.process_time() - begin)
        self.back += len(pickle.dumps(future.result(), protocol=5))
        return future


Work = Callable[[Executor | None], object]
"""Something to compute on an executor; what it gives is compared to the last digit."""


def measure_job(name: str, work: Work, *, read: int = 0) -> Job:
    """Do it once, task after task, in this process."""
    recorder, begin = Recorder(), time.process_time()
    work(recorder)
    total = time.process_time() - begin
    return Job(
        name=name,
        alone=max(0.0, total - sum(recorder.tasks)),
        tasks=tuple(recorder.tasks),
        shared=sum(size for _, size in recorder.shared.values()),
        back=recorder.back,
        read=read,
    )


def make_scores(systems: int, queries: int) -> Scores:
    """Reciprocal ranks of systems whose quality grows a little from one to the next."""
    rng = np.random.default_rng(0)
    chance = np.linspace(0.3, 0.4, systems)[:, np.newaxis]
    ranks = rng.geometric(chance * rng.uniform(0.2, 1.8, queries), (systems, queries))
    rows = np.where(ranks > _DEPTH, 0, 1 / ranks).tolist()
    ids = [f"q{n}" for n in range(queries)]
    table = table_of({f"s{n}": dict(zip(ids, row, strict=True)) for n, row in enumerate(rows)})
    return Scores(table=table, measure=f"RR@{_DEPTH}")


def analyse(name: str, scores: Scores, executor: Executor | None) -> object:
    """The answer of an analysis by its defaults, as a document."""
    analysis = load_analysis(name)
    return analysis.answer(scores, analysis.options(), Draws(seed=0, executor=executor)).document


def make_runs(folder: Path, runs: int, queries: int, depth: int) -> tuple[list[str], Path]:
    """Run files in TREC form, compressed, and judgments."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"r{number:04}.run.gz" for number in range(runs)]
    for path in paths:
        if not path.exists():
            documents = rng.permuted(np.tile(np.arange(depth * 2), (queries, 1)), axis=1)
            lines = (
                f"q{query} Q0 D{documents[query, place]:07} {place + 1} {depth - place}.5 t\n"
                for query in range(queries)
                for place in range(depth)
            )
            path.write_bytes(gzip.compress("".join(lines).encode("ascii"), 6))
    qrels = folder / "qrels"
    judged = (f"q{q} 0 D{d:07} {d % 3}\n" for q in range(queries) for d in range(0, depth, 7))
    qrels.write_text("".join(judged), "ascii")
    return list(map(str, paths)), qrels


def score(paths: Sequence[str], qrels: Path, executor: Executor | None) -> object:
    """Means of all runs, without stored scores."""
    measures = [one.measure for one in read_measures("RR@10")]
    reading: Reading = find_reading(os.environ, jobs=1, cached=False, executor=executor)
    outcomes = reading.score(paths, load_qrels(str(qrels)), measures)
    return [(one.path, one.evaluation.per_query()) for one in outcomes if isinstance(one, Scored)]


@contextmanager
def start_cluster(workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and workers, each a process of its own; the address, and the processes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        options = ["--scheduler-file", str(file)]
        dask = [sys.executable, "-m", "dask"]
        ends = ["--port", "0", "--no-dashboard", "--host", "127.0.0.1"]
        each = ["--nthreads", "1", "--no-dashboard", "--nworkers", str(workers)]
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        processes = [subprocess.Popen([*dask, "scheduler", *options, *ends], **quiet)]
        try:
            while not file.exists():
                time.sleep(0.1)
            processes.append(subprocess.Popen([*dask, "worker", *options, *each], **quiet))
            client = import_module("distributed").Client(
                scheduler_file=str(file), set_as_default=False
            )
            with client:
                client.wait_for_workers(workers, timeout=60)
                address = client.scheduler.address
            yield address, processes
        finally:
            for process in reversed(processes):
                process.send_signal(signal.SIGINT)
                process.wait()


def processor_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_cluster(address: str, scheduler: int, tasks: int) -> Cluster:
    """What empty tasks cost, in processor time, and how fast bytes go through the scheduler."""
    with open_executor(dask=address) as executor:
        if executor is None:
            raise RuntimeError(address)
        executor.submit(abs, 1).result()
        before = processor_seconds(scheduler), time.process_time()
        for future in [executor.submit(divmod, number, 7) for number in range(tasks)]:
            future.result()
        used = processor_seconds(scheduler) - before[0], time.process_time() - before[1]
        data = np.random.default_rng(0).bytes(_MEGABYTES << 20)
        before = processor_seconds(scheduler), time.process_time()
        executor.submit(bytes, data).result()
        seconds = processor_seconds(scheduler) - before[0] + time.process_time() - before[1]
    return Cluster(per_task=max(used) / tasks, through=2 * len(data) / seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds on a cluster of some workers, and whether it gave the same to the last digit."""

    workers: int
    seconds: float
    same: bool


def measure_on(address: str, workers: int, work: Work, alone: str) -> Measured:
    """Do it on a cluster, the second time measured: the first one imports."""
    with open_executor(dask=address) as executor:
        work(executor)
        begin = time.perf_counter()
        found = work(executor)
        seconds = time.perf_counter() - begin
    return Measured(workers=workers, seconds=seconds, same=repr(found) == alone)


def kill_workers(work: Work, alone: str, kills: int, seconds: float) -> tuple[int, int, float]:
    """Kill a worker of two in the middle of the work, again and again.

    Returns:
        How often the work gave the same, how often it failed, and the seconds of each.
    """
    rng, right, failed, begin = random.Random(0), 0, 0, time.perf_counter()  # noqa: S311 - no secret
    with start_cluster(2) as (address, (_, nanny)):
        for _ in range(kills):
            timer = threading.Timer(rng.uniform(0.2, 0.9) * seconds, _kill_one, (nanny.pid, rng))
            timer.start()
            try:
                with open_executor(dask=address) as executor:
                    right += repr(work(executor)) == alone
            except Exception as error:  # noqa: BLE001 - whatever it is, it is counted
                failed += 1
                print(f"failed: {type(error).__name__}: {error}", file=sys.stderr)
            timer.join()
    return right, failed, (time.perf_counter() - begin) / kills


def _kill_one(nanny: int, rng: random.Random) -> None:
    """Kill one of the workers below a nanny: the processes that multiprocessing spawned."""
    children = Path(f"/proc/{nanny}/task/{nanny}/children").read_text("ascii").split()
    workers = [
        int(child)
        for child in children
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
    if workers:
        os.kill(rng.choice(workers), signal.SIGKILL)


def format_jobs(jobs: Sequence[Job], measured: Sequence[Sequence[Measured]]) -> Iterator[str]:
    """What was measured."""
    yield (
        "| what | tasks | s in tasks | longest | s alone | MB there | MB back | 1 worker, s | "
        "2 workers, s | faster | same |"
    )
    yield "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |"
    for job, (one, two) in zip(jobs, measured, strict=True):
        yield (
            f"| {job.name} | {len(job.tasks)} | {sum(job.tasks):.1f} | {max(job.tasks):.2f} | "
            f"{job.alone:.2f} | {job.shared / 1e6:.1f} | {job.back / 1e6:.1f} | "
            f"{one.seconds:.1f} | {two.seconds:.1f} | {one.seconds / two.seconds:.2f} | "
            f"{'yes' if one.same and two.same else '**no**'} |"
        )


def format_forecasts(jobs: Sequence[Job], cluster: Cluster) -> Iterator[str]:
    """Times faster than one worker, and what limits it at the end."""
    yield f"| what | {' | '.join(map(str, WORKERS[1:]))} | half of linear at | limit there |"
    yield "| --- | " + "--: | " * len(WORKERS) + "--- |"
    for job in jobs:
        first = forecast(job, cluster, 1).seconds
        speeds = [first / forecast(job, cluster, workers).seconds for workers in WORKERS[1:]]
        half = next(
            (w for w in range(2, 4096) if first / forecast(job, cluster, w).seconds < w / 2), None
        )
        limit = "" if half is None else forecast(job, cluster, half).limit
        yield (
            f"| {job.name} | {' | '.join(f'{speed:.1f}' for speed in speeds)} | "
            f"{half or 'never'} | {limit} |"
        )


def main() -> None:
    """Measure, print, and write the page where one is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Small sizes: does it work?")
    parser.add_argument("--systems", type=int, default=300)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--page", type=Path, help="Page whose results are written.")
    given = parser.parse_args()
    if given.quick:
        given.systems, given.queries, given.runs, given.kills = 20, 200, 8, 2
    with tempfile.TemporaryDirectory() as folder:
        lines = list(measure_all(given, Path(folder)))
    print("\n".join(lines))
    if given.page is not None:
        head, _, rest = given.page.read_text("utf-8").partition(_START)
        tail = rest.partition(_END)[2]
        text = "\n".join([_START, "", *lines, "", _END])
        given.page.write_text(head + text + tail, "utf-8")


def measure_all(given: argparse.Namespace, folder: Path) -> Iterator[str]:
    """The lines of the page."""
    load, scores = os.getloadavg()[0], make_scores(given.systems, given.queries)
    paths, qrels = make_runs(folder / "runs", given.runs, 200, 1000)
    size = Path(paths[0]).stat().st_size / 1e6
    works: dict[str, Work] = {
        f"evaluate, {len(paths)} runs of {size:.1f} MB (gz)": partial(score, paths, qrels),
        **{name: partial(analyse, name, scores) for name in _ANALYSES},
    }
    read = sum(Path(path).stat().st_size for path in paths)
    jobs = [
        measure_job(name, work, read=read if name.startswith("evaluate") else 0)
        for name, work in works.items()
    ]
    alone = [repr(work(None)) for work in works.values()]
    measured: list[list[Measured]] = [[] for _ in works]
    for workers in (1, 2):
        with start_cluster(workers) as (address, (scheduler, _)):
            cluster = measure_cluster(address, scheduler.pid, 200 if given.quick else 3000)
            for found, work, expected in zip(measured, works.values(), alone, strict=True):
                found.append(measure_on(address, workers, work, expected))
    yield (
        f"{given.systems:,} systems × {given.queries:,} queries; {os.cpu_count()} cores. A task "
        f"costs {1000 * cluster.per_task:.2f} ms of scheduler or client, whichever is busier; "
        f"{cluster.through / 1e6:,.0f} MB a second of processor go through the scheduler. Load: "
        f"{load:.1f} before, {os.getloadavg()[0]:.1f} after."
    )
    yield ""
    yield from format_jobs(jobs, measured)
    yield ""
    yield "Times faster than one worker, by the model:"
    yield ""
    yield from format_forecasts(enlarge(jobs), cluster)
    name = "stability"
    place = list(works).index(name)
    right, failed, seconds = kill_workers(
        works[name], alone[place], given.kills, measured[place][1].seconds
    )
    yield ""
    yield (
        f"One of two workers killed in the middle of *{name}*, {given.kills} times: {right} "
        f"answers are the same to the last digit, {failed} calls failed. A call takes "
        f"{seconds:.1f} s, and {measured[place][1].seconds:.1f} s without a kill."
    )


def enlarge(jobs: Sequence[Job]) -> list[Job]:
    """As measured, and ten thousand runs: nobody needs a cluster for two hundred."""
    first, *rest = jobs
    times = 10_000 // len(first.tasks)
    many = replace(
        first,
        name=f"{first.name.partition(',')[0]}, 10,000 of these runs",
        tasks=first.tasks * times,
        back=first.back * times,
        read=first.read * times,
        alone=first.alone * times,
    )
    return [many, *rest]


if __name__ == "__main__":
    main()
