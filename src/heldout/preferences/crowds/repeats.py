"""Tasks to be done again by somebody else, where files and not our own pages give them out.

Our own pages reissue by themselves (`heldout.store.judging`).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from heldout.preferences.assignments import copy_task
from heldout.preferences.judgments import Judgment, failed_tests
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Task

__all__ = ["first_tasks", "repeat_tasks", "unjudged_tasks"]

_AGAIN = "r"


def first_tasks(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Tasks that repeat no other one."""
    names = {task.task for task in tasks}
    return tuple(
        task
        for task in tasks
        if not task.task.endswith(_AGAIN) or task.task.removesuffix(_AGAIN) not in names
    )


def unjudged_tasks(tasks: Iterable[Task], judgments: Iterable[Judgment]) -> tuple[Task, ...]:
    """Tasks in which nothing was judged yet, in their order."""
    judged = {one.task for one in judgments}
    return tuple(task for task in tasks if task.task not in judged)


def repeat_tasks(
    tasks: Sequence[Task],
    judgments: Sequence[Judgment],
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[Task, ...]:
    """Copies, in a new order, of tasks that were judged and do not count; as the next batch.

    A task does not count where its tests were failed, where it was not finished, and, as the
    settings say, where its worker failed another one. One that has a copy gets no second one.

    Args:
        tasks: of all batches.
        judgments: all that there are.
        settings: what excludes, and how many judges a pair has.
        rng: the order of the copies.
    """
    there = {task.task for task in tasks}
    judged, done = {one.task for one in judgments}, _done(judgments, settings)
    batch = max((task.batch for task in tasks), default=0) + 1
    copies = []
    for task in tasks:
        name = task.task + _AGAIN
        if task.task in judged - done and name not in there:
            copy = copy_task(task, name=name, keep_sides=settings.judges % 2 == 0, rng=rng)
            copies.append(Task(task=name, items=copy.items, why=copy.why, batch=batch))
    return tuple(copies)


def _done(judgments: Sequence[Judgment], settings: Settings) -> set[str]:
    failed = {
        place for place, count in failed_tests(judgments).items() if count >= settings.failures
    }
    workers = {worker for worker, _ in failed} if settings.exclusion == "worker" else set()
    return {
        one.task
        for one in judgments
        if one.submitted and (one.worker, one.task) not in failed and one.worker not in workers
    }
