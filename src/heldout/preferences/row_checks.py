"""What JSON alone allows and a campaign does not: pools and tasks that contradict themselves."""

from collections import Counter

from heldout.errors import Problem
from heldout.preferences.pools import Pool
from heldout.preferences.rows import Check, name_fault
from heldout.preferences.tasks import Task
from heldout.trec.problems import show

__all__ = ["pool_check", "task_check"]


def pool_check() -> Check[Pool]:
    """A check of the pools of one file, in order.

    Returns:
        A function that finds `repeated-query`, `empty-pool`, `repeated-document` (ids of one text
        count too), `repeated-answer`: two known answers, and `bad-row`: an id that nobody sees
        whole.
    """
    seen: set[str] = set()

    def check(pool: Pool, path: str, line: int) -> Problem | None:
        names = [doc for one in pool.candidates for doc in (one.doc, *one.same)]
        twice = [doc for doc, count in Counter(names).items() if count > 1]
        code = found = expected = ""
        if pool.query in seen:
            code, found, expected = "repeated-query", pool.query, "a pool for each query once"
        elif not pool.candidates:
            code, found, expected = "empty-pool", pool.query, "a pool of at least one passage"
        elif twice:
            code, found, expected = "repeated-document", twice[0], "each document of a pool once"
        elif sum(one.known for one in pool.candidates) > 1:
            code, found, expected = "repeated-answer", pool.query, "one known answer in a pool"
        seen.add(pool.query)
        if code:
            return Problem(code=code, path=path, line=line, found=show(found), expected=expected)
        return name_fault((pool.query, *names), path=path, line=line)

    return check


def task_check() -> Check[Task]:
    """A check of the tasks of one file, in order.

    Returns:
        A function that finds `repeated-task`, `task-item`: no item, a passage against itself, an
        answer that is neither, or a pair twice; and `bad-row`: an id that nobody sees whole.
    """
    seen: set[str] = set()

    def check(task: Task, path: str, line: int) -> Problem | None:
        code = expected = ""
        if task.task in seen:
            code, expected = "repeated-task", "each id once"
        elif not _fits(task):
            code = "task-item"
            expected = "items of two different passages, an answer of these, no pair twice"
        seen.add(task.task)
        if code:
            found = show(task.task)
            return Problem(code=code, path=path, line=line, found=found, expected=expected)
        names = [name for item in task.items for name in (item.query, item.left, item.right)]
        return name_fault((task.task, *names), path=path, line=line)

    return check


def _fits(task: Task) -> bool:
    unknown = [item.pair for item in task.items if item.answer is None]
    return (
        bool(task.items)
        and len(unknown) == len(set(unknown))
        and all(
            item.left != item.right and item.answer in (item.left, item.right, None)
            for item in task.items
        )
    )
