"""Assignments: a task in the hands of a worker, from consent to its end; the rules, pure.

    consented -> submitted | exited | expired        expired -> consented | submitted | exited

An expired assignment goes on as if nothing had happened, unless it is closed: its task was given to
another worker, or it would not count for its failed tests. What was submitted or exited never
changes again.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from heldout.preferences.settings import Money
from heldout.preferences.tasks import Item, Task

__all__ = ["State", "Step", "amount_owed", "copy_task", "is_final", "next_state"]

State = Literal["consented", "submitted", "exited", "expired"]
"""`consented`: under way. `submitted`: finished. `exited`: the worker stopped. `expired`: no answer
came before the lease ended."""

Step = Literal["answer", "submit", "exit", "lapse"]
"""`answer`: an answer, a changed answer, or a wish for more time. `lapse`: the lease ended."""

_STEPS: Mapping[tuple[State, Step], State] = {
    ("consented", "answer"): "consented",
    ("consented", "submit"): "submitted",
    ("consented", "exit"): "exited",
    ("consented", "lapse"): "expired",
    ("expired", "answer"): "consented",
    ("expired", "submit"): "submitted",
    ("expired", "exit"): "exited",
    ("expired", "lapse"): "expired",
    ("submitted", "submit"): "submitted",
    ("exited", "exit"): "exited",
}


def next_state(state: State, step: Step, *, closed: bool) -> State | None:
    """The state after a step; `None` where it cannot be taken.

    Args:
        state: before it.
        step: what happens.
        closed: of an expired one: it cannot go on.
    """
    if closed and state == "expired":
        return "expired" if step == "lapse" else None
    return _STEPS.get((state, step))


def is_final(state: State, *, closed: bool) -> bool:
    """Whether nothing can change any more: only then does a failed test speak against a worker.

    Until then an answer can still be changed.
    """
    return state in ("submitted", "exited") or (state == "expired" and closed)


def amount_owed(*, reward: Money, answered: int, items: int) -> Money:
    """What a worker has earned: the reward by the share that was answered, rounded up.

    Args:
        reward: for the whole task.
        answered: how many items have an answer, with or without a preference.
        items: how many there are, at least 1.

    Source: shallow-pooling, section 3.3, leaves the formula open.
    """
    return -(-reward * answered // items)


def copy_task(task: Task, *, name: str, keep_sides: bool, rng: np.random.Generator) -> Task:
    """The same pairs for another worker, in a new order.

    Args:
        task: what another worker did not finish, or what does not count.
        name: id of the copy.
        keep_sides: whether pairs that nobody knows keep their sides: where the copies of a task
            balance them exactly, a copy in the place of another has to show them alike. The sides
            of tests are drawn anew.
        rng: where order and sides come from.
    """
    order = rng.permutation(len(task.items))
    turned = rng.random(len(task.items)) < 0.5  # noqa: PLR2004 - a fair coin
    items = tuple(
        _turn(item) if turn and not (keep_sides and item.answer is None) else item
        for item, turn in zip((task.items[place] for place in order), turned, strict=True)
    )
    return Task(task=name, items=items, why=task.why, batch=task.batch)


def _turn(item: Item) -> Item:
    return Item(query=item.query, left=item.right, right=item.left, answer=item.answer)
