"""from-other-tools.md: their code and ours run as they stand there, with equal results."""

import sys
from pathlib import Path
from typing import Any

import pytest

import heldout as ho

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from tasks import TASKS, Task, check, make_data, read_tasks, run_code

PAGE = {task.number: task for task in read_tasks()}


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return make_data(queries=25, depth=120, seed=1)


def test_the_page_has_ten_tasks_of_four_tools() -> None:
    assert list(PAGE) == list(TASKS) == list(range(1, 11))
    tools = {task.tool for task in PAGE.values()}
    assert tools == {"pytrec_eval", "ir_measures", "ranx", "PyTerrier"}


@pytest.mark.parametrize("task", PAGE.values(), ids=lambda task: f"{task.number}-{task.tool}")
def test_results_are_equal(task: Task, data: dict[str, Any]) -> None:
    names: dict[str, Any] = {"ho": ho, **data}
    if not task.installed:
        run_code(task.ours, names)
        assert names["ours"] is not None
        pytest.skip(f"{task.tool} is not installed; benchmarks/tasks.py compares the results")
    for code in (task.theirs, task.ours, *task.more):
        run_code(code, names)
    assert check(task, names) == ""


def test_other_results_are_not_equal(data: dict[str, Any]) -> None:
    task = PAGE[3]
    names: dict[str, Any] = {"ho": ho, **data}
    run_code(task.theirs, names)
    names["run"] = data["other"]
    run_code(task.ours, names)
    assert check(task, names)
