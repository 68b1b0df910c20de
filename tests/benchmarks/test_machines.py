"""The model of many machines: linear where nothing but work takes time, and where it ends."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from machines import NETWORK, Cluster, Job, Recorder, forecast

FREE = Cluster(per_task=0, through=1e30)


def job(*tasks: float, alone: float = 0, shared: int = 0, back: int = 0, read: int = 0) -> Job:
    return Job(name="a", tasks=tasks, alone=alone, shared=shared, back=back, read=read)


def test_equal_tasks_are_divided_until_there_is_one_for_each() -> None:
    seconds = [forecast(job(*[2.0] * 32), FREE, workers).seconds for workers in (1, 2, 32, 64)]
    assert seconds == [64, 32, 2, 2]
    assert forecast(job(*[2.0] * 32), FREE, 16).limit == "nothing but work"
    assert forecast(job(*[2.0] * 32), FREE, 64).limit == "32 tasks, the longest of 2 s"


def test_the_longest_task_and_the_caller_are_never_divided() -> None:
    assert forecast(job(1, 1, 6, alone=3), FREE, 2).seconds == 7 + 3
    assert forecast(job(1, 1, alone=3), FREE, 9).limit == "the caller alone"


def test_tasks_are_handed_out_one_after_the_other() -> None:
    found = forecast(job(*[0.01] * 1000), Cluster(per_task=0.005, through=1e30), 100)
    assert found.seconds == pytest.approx(1000 * 0.005 + 0.01)
    assert found.limit == "handing out tasks"


def test_bytes_pass_the_scheduler_the_network_and_the_file_server() -> None:
    cluster = Cluster(per_task=0, through=1e8)
    assert forecast(job(1, shared=10**9), cluster, 1).seconds == 1 + 10
    assert forecast(job(1, shared=10**9), cluster, 5).seconds == 1 + 10 + 3 * 1e9 / NETWORK
    assert forecast(job(1, back=10**9), cluster, 5).limit == "results back"
    read = forecast(job(1, 1, read=int(10 * NETWORK)), cluster, 2)
    assert (read.seconds, read.limit) == (10, "the file server")


def test_shared_values_are_counted_once() -> None:
    recorder, data = Recorder(), bytes(1000)
    assert [recorder.submit(len, data).result() for _ in range(3)] == [1000] * 3
    assert 1000 < sum(size for _, size in recorder.shared.values()) < 1100
    assert len(recorder.tasks) == 3
