"""Executors: threads, a real Dask cluster, and what is said where there is none."""

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simulated_boards
from click.testing import CliRunner, Result

from heldout.analyses.facets import FacetsOptions, compare_facets
from heldout.analyses.power import PowerOptions, plan_power
from heldout.analyses.stability import bootstrap_stability, rank_ranges
from heldout.cli.program import main
from heldout.errors import SetupError
from heldout.files.executors import open_executor
from heldout.scoring.table import ScoreTable

distributed: Any = import_module("distributed")  # it ships only some of its types


PATIENCE = 30


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def table() -> ScoreTable:
    values = np.random.default_rng(3).random((9, 500))
    return simulated_boards.table({f"s{row}": cells for row, cells in enumerate(values)})


def compute(table: ScoreTable, executor: Executor | None) -> tuple[object, ...]:
    def rng() -> np.random.Generator:
        return np.random.Generator(np.random.PCG64(0))

    stability = bootstrap_stability(table, rng(), trials=2000, executor=executor)
    ranges = rank_ranges(table, rng(), flips=1500, executor=executor)
    odd = {"odd": frozenset(table.queries[1::2])}
    facets = compare_facets(table, odd, rng(), FacetsOptions(draws=600), executor=executor)
    power = plan_power(table, rng(), PowerOptions(trials=100), executor=executor)
    return stability.rank_counts.tobytes(), ranges.p.tobytes(), facets, power


def test_a_dask_cluster_gives_the_same_bytes_as_threads_and_none(
    cluster: Any, table: ScoreTable
) -> None:
    alone = compute(table, None)

    for jobs in (1, 2, 5):
        with open_executor(jobs=jobs) as executor:
            assert compute(table, executor) == alone
    with open_executor(dask=cluster.scheduler_address) as executor:
        assert compute(table, executor) == alone


def test_runs_are_scored_on_a_cluster_as_they_are_here(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", str(tmp_path / "cache"))
    for number in range(5):
        rows = (f"q{q} Q0 d{(q * number) % 9} 1 1 t\n" for q in range(30))
        Path(f"r{number}.run").write_text("".join(rows), encoding="utf-8")
    Path("r3.run").write_text("q1 Q0 d1 1 1 t\nq1 Q0 d1 2 1 t\n", encoding="utf-8")
    Path("qrels").write_text("".join(f"q{q} 0 d{q % 9} 1\n" for q in range(30)), encoding="utf-8")
    runs = [f"r{number}.run" for number in (4, 2, 3, 0, 1)]
    asked = ["evaluate", *runs, "gone.run", "--qrels", "qrels", "-m", "RR@10", "--json"]

    def score(*options: str) -> Result:
        return CliRunner().invoke(main, [*asked, *options])

    alone = score("--no-cache")
    on_cluster = score("--dask", cluster.scheduler_address)
    assert (on_cluster.exit_code, on_cluster.stdout) == (alone.exit_code, alone.stdout)
    assert len([path for path in Path("cache").rglob("*") if path.is_file()]) == 4
    assert "without --dask" in score("--dask", "tcp://127.0.0.1:1", "--shard", "1/2").stderr
    assert "--jobs counts" in score("--dask", "tcp://127.0.0.1:1", "--jobs", "2").stderr


def test_what_is_large_is_sent_to_a_cluster_once(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    submit = distributed.Client.submit

    def watch(client: Any, called: Any, *args: Any, **options: Any) -> Any:
        sent.append(sum(len(one) for one in args if isinstance(one, bytes)))
        return submit(client, called, *args, **options)

    monkeypatch.setattr(distributed.Client, "submit", watch)
    large, small = np.arange(100_000), np.arange(3)
    with open_executor(dask=cluster.scheduler_address) as executor:
        assert executor is not None
        sums = [executor.submit(np.dot, large, large).result() for _ in range(3)]
        assert executor.submit(np.sum, small).result() == 3

    assert sums == [large @ large] * 3
    once, *calls = sent
    assert once > large.nbytes
    assert max(calls) < 1000


@pytest.fixture(params=["threads", "cluster"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Each kind: the tests below hold for all of them."""
    on_cluster = request.param == "cluster"
    dask = request.getfixturevalue("cluster").scheduler_address if on_cluster else None
    with open_executor(jobs=2, dask=dask) as opened:
        assert opened is not None
        yield opened


def test_results_come_in_the_order_of_the_tasks(executor: Executor) -> None:
    waiting = [executor.submit(divmod, 7, number) for number in (1, 2, 3)]
    assert [one.result() for one in waiting] == [(7, 0), (3, 1), (2, 1)]
    assert list(executor.map(abs, [-3, 1, -2])) == [3, 1, 2]
    assert executor.submit(int, "ff", base=16).result() == 255


def test_an_error_comes_out_as_it_is_and_others_go_on(executor: Executor) -> None:
    wrong, right = executor.submit(int, "seven"), executor.submit(int, "7")
    with pytest.raises(ValueError, match="invalid literal"):
        wrong.result()
    assert right.result() == 7


def test_no_scheduler_at_the_address_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heldout.files.clusters._PATIENCE", 0.3)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with (
            pytest.raises(SetupError, match=f"no Dask scheduler answers at {address}"),
            open_executor(dask=address),
        ):
            pass


@pytest.mark.parametrize("address", ["", "nonsense", "gopher://host:1", "tcp://host:port"])
def test_an_address_that_is_none_is_said(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heldout.files.clusters._PATIENCE", 0.3)
    with pytest.raises(SetupError, match="no Dask scheduler answers"), open_executor(dask=address):
        pass


@pytest.mark.night
def test_a_client_that_did_not_connect_is_gone_before_the_next_one_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("heldout.files.clusters._PATIENCE", 0.3)
    runners = distributed.utils.LoopRunner
    start = runners._start_unlocked

    def collect_and_start(runner: object) -> None:
        gc.collect()  # the worst moment: the runner's lock is held
        start(runner)

    def fail() -> None:
        with suppress(SetupError), open_executor(dask="nonsense"):
            pass

    fail()
    monkeypatch.setattr(runners, "_start_unlocked", collect_and_start)
    again = threading.Thread(target=fail, daemon=True)
    again.start()
    again.join(30)

    assert not again.is_alive()


def compute_on(cluster: Any, function: Callable[..., Any], *args: Any) -> Any:
    with open_executor(dask=cluster.scheduler_address) as executor:
        assert executor is not None
        return executor.submit(function, *args).result(PATIENCE)


def kill_who_holds_data(cluster: Any) -> None:
    """Kill the worker that alone has what tasks share, once there is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        holders = {
            worker.address
            for key, task in list(cluster.scheduler.tasks.items())
            if str(key).startswith("loads")
            for worker in list(task.who_has)
        }
        for nanny in list(cluster.workers.values()):
            if len(holders) == 1 and nanny.worker_address in holders and nanny.process.pid:
                os.kill(nanny.process.pid, signal.SIGKILL)
                return
        time.sleep(0.005)
    pytest.fail("no worker alone had the data")


@pytest.mark.night
def test_what_was_sent_once_outlives_the_worker_that_has_it(cluster: Any) -> None:
    large, kernel = np.arange(300_000), np.ones(2000)
    with open_executor(dask=cluster.scheduler_address) as executor:
        assert executor is not None
        executor.submit(np.sum, large).result()  # lies on one worker now, and nowhere else
        kill_who_holds_data(cluster)
        calls = [executor.submit(np.convolve, large, kernel * number) for number in range(12)]
        kill_who_holds_data(cluster)
        found = [call.result() for call in calls]

    whole = np.convolve(large, kernel)
    assert [one.tobytes() for one in found] == [(whole * n).tobytes() for n in range(12)]


@pytest.mark.night
def test_a_task_that_ends_every_worker_is_said(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)
    monkeypatch.setattr("heldout.files.clusters._TRIES", 2)
    with pytest.raises(SetupError, match="workers were lost at the same task again and again"):
        compute_on(cluster, os._exit, 1)


@pytest.fixture
def empty_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr("heldout.files.clusters._EVERY", 0.1)
    with distributed.LocalCluster(
        n_workers=0, dashboard_address=":0", host="127.0.0.1", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.mark.night
def test_a_cluster_without_workers_is_said(
    empty_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heldout.files.clusters._WITHOUT_WORKERS", 0.3)
    with pytest.raises(SetupError, match="no worker for 0 seconds; start some: dask worker"):
        compute_on(empty_cluster, abs, -1)


@pytest.mark.night
def test_a_scheduler_that_is_lost_is_said_and_nothing_else(
    empty_cluster: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("heldout.files.clusters._PATIENCE", 0.5)
    with open_executor(dask=empty_cluster.scheduler_address) as executor:
        assert executor is not None
        waiting = [executor.submit(abs, number) for number in range(3)]
        empty_cluster.close()
        for call in waiting:
            with pytest.raises(SetupError, match="is lost, and all that it had; start it"):
                call.result(PATIENCE)
    del executor, waiting, call
    gc.collect()  # what nobody read is reported then
    assert capfd.readouterr().err == ""


@pytest.mark.night
def test_a_cluster_with_other_versions_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"heldout": "0.0.1", "numpy": np.__version__, "scipy": "1"}
    monkeypatch.setattr("heldout.files.clusters._own_versions", lambda: own)
    other = r"other versions: heldout \d.*; here: heldout 0\.0\.1, numpy .*install the same"
    with pytest.raises(SetupError, match=f"the scheduler has {other}"):
        compute_on(cluster, abs, -1)

    monkeypatch.setattr("heldout.files.clusters._check_versions", lambda _: None)
    with pytest.raises(SetupError, match=f"the worker at tcp://.* has {other}"):
        compute_on(cluster, abs, -1)


@pytest.mark.night
def test_what_a_worker_lacks_is_said(cluster: Any) -> None:
    with pytest.raises(SetupError, match=r"a worker lacks what is installed here: .*no_such_extra"):
        compute_on(cluster, import_module, "no_such_extra")


def test_without_the_extra_the_command_that_brings_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(SetupError, match=r"pip install 'heldout\[cluster\]'"),
        open_executor(dask="tcp://127.0.0.1:8786"),
    ):
        pass


def test_one_job_needs_no_executor() -> None:
    with open_executor(jobs=1) as executor:
        assert executor is None


def test_a_worker_that_is_lost_is_said() -> None:
    with pytest.raises(SetupError, match="ended from outside"), open_executor(jobs=2):
        raise BrokenExecutor


def test_products_take_one_thread_each_while_ours_share_the_work() -> None:
    def blas() -> list[int]:
        pools = import_module("threadpoolctl").threadpool_info()
        return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]

    before = blas()
    with open_executor(jobs=2):
        assert blas() == [1] * len(before)
    assert blas() == before
