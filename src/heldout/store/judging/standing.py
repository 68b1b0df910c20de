"""An assignment as it stands, read from the tables within a transaction."""

from typing import Any

import msgspec
from sqlalchemy import Connection, Row, Select, bindparam, exists, func, select

from heldout.preferences.assignments import amount_owed, next_state
from heldout.preferences.settings import Money, Settings
from heldout.store.judging.answers import is_newest, of_item
from heldout.store.judging.faults import DatabaseError
from heldout.store.judging.judgment_rows import count_failed
from heldout.store.judging.sittings import Given, Passage, Shown, Sitting, Visitor
from heldout.store.judging.tables import (
    assignments,
    batches,
    items,
    judgments,
    passages,
    queries,
    tasks,
    workers,
)

__all__ = ["is_barred", "lock_assignment", "owed_for", "read_shown", "read_sitting"]


def lock_assignment(connection: Connection, assignment: int) -> None:
    """Let nobody else change it until the transaction ends.

    What is locked is its task: nothing changes an assignment without that lock.
    """
    of_it = select(assignments.c.task).where(assignments.c.id == assignment).scalar_subquery()
    connection.execute(select(tasks.c.task).where(tasks.c.task == of_it).with_for_update())


def read_sitting(connection: Connection, assignment: int) -> Sitting:
    """An assignment.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    row = _read_row(connection, assignment)
    positions = _read_positions(connection, assignment, row.task)
    settings = msgspec.json.decode(row.settings, type=Settings)
    answered = sum(revision is not None for _, revision in positions)
    failed = 0 if settings.pay_failed else row.failed
    if failed is None:
        failed = count_failed(connection, assignment)
    return Sitting(
        assignment=assignment,
        worker=row.pseudonym,
        state=row.state,
        open=next_state(row.state, "answer", closed=row.failed is not None) is not None,
        items=len(positions),
        answered=answered,
        first_open=next((place for place, revision in positions if revision is None), None),
        lease_until=row.lease_until,
        owed=owed_for(settings, failed, answered=answered, items=len(positions)),
        barred=(row.worst or 0) >= settings.failures,
        settings=settings,
        visitor=Visitor(
            worker=row.platform_id, place=row.place, study=row.study, submit_to=row.submit_to
        ),
    )


def read_shown(connection: Connection, assignment: int, position: int) -> Shown | None:
    """An item of an assignment; `None` where there is none.

    Raises:
        DatabaseError: code `unknown-assignment`.
    """
    sitting = read_sitting(connection, assignment)
    if not 1 <= position <= sitting.items:
        return None
    row = connection.execute(_ITEM, {"assignment": assignment, "position": position}).one()
    return Shown(
        sitting=sitting,
        position=position,
        query=row.query,
        left=Passage(doc=row.left, text=row.left_text),
        right=Passage(doc=row.right, text=row.right_text),
        given=_make_given(row),
    )


def owed_for(settings: Settings, failed: int, *, answered: int, items: int) -> Money:
    """What is owed for an assignment: the share that is answered, however it ends.

    With failed tests it is paid where `pay_failed` says so; to stop before the end changes nothing.

    Args:
        settings: its terms.
        failed: tests whose answer, as it stands, is not the known one.
        answered: how many items have an answer.
        items: how many there are.
    """
    if failed >= settings.failures and not settings.pay_failed:
        return 0
    return amount_owed(reward=settings.reward, answered=answered, items=items)


def is_barred(connection: Connection, worker: int, settings: Settings) -> bool:
    """Whether a worker failed the tests of a task, so that there is no later one."""
    failed = assignments.c.failed >= settings.failures
    found = select(exists().where(assignments.c.worker == worker, failed))
    return bool(connection.execute(found).scalar_one())


def _read_row(connection: Connection, assignment: int) -> Row[Any]:
    row = connection.execute(_ASSIGNMENT, {"assignment": assignment}).one_or_none()
    if row is None:
        raise DatabaseError("unknown-assignment", "there is no such assignment here")
    return row


def _read_positions(
    connection: Connection, assignment: int, task: str
) -> list[tuple[int, int | None]]:
    """Each position with the newest revision of its answer; `None` where there is no answer."""
    rows = connection.execute(_POSITIONS, {"assignment": assignment, "task": task})
    return [(position, revision) for position, revision in rows]


def _select_assignment() -> Select[Any]:
    own = assignments.alias()
    worst = select(func.max(own.c.failed)).where(own.c.worker == assignments.c.worker)
    return (
        select(
            assignments,
            workers.c.platform_id,
            workers.c.pseudonym,
            batches.c.settings,
            worst.scalar_subquery().label("worst"),
        )
        .join(workers, workers.c.id == assignments.c.worker)
        .join(tasks, tasks.c.task == assignments.c.task)
        .join(batches, batches.c.batch == tasks.c.batch)
        .where(assignments.c.id == bindparam("assignment"))
    )


def _select_positions() -> Select[Any]:
    of_assignment = judgments.c.assignment == bindparam("assignment")
    return (
        select(items.c.position, func.max(judgments.c.revision))
        .outerjoin(judgments, of_assignment & (judgments.c.position == items.c.position))
        .where(items.c.task == bindparam("task"))
        .group_by(items.c.position)
        .order_by(items.c.position)
    )


def _select_item() -> Select[Any]:
    left, right = passages.alias(), passages.alias()
    given = (judgments.c.assignment == assignments.c.id) & of_item(items) & is_newest()
    return (
        select(
            items.c.left,
            items.c.right,
            queries.c.text.label("query"),
            left.c.text.label("left_text"),
            right.c.text.label("right_text"),
            judgments.c.revision,
            judgments.c.side,
            judgments.c.reason,
            judgments.c.answered_at,
        )
        .join(assignments, assignments.c.task == items.c.task)
        .join(queries, queries.c.query == items.c.query)
        .join(left, left.c.doc == items.c.left)
        .join(right, right.c.doc == items.c.right)
        .outerjoin(judgments, given)
        .where(assignments.c.id == bindparam("assignment"))
        .where(items.c.position == bindparam("position"))
    )


# Written once: to write them costs as much as to run them, and every page does.
_ASSIGNMENT = _select_assignment()
_POSITIONS = _select_positions()
_ITEM = _select_item()


def _make_given(row: Any) -> Given | None:
    if row.revision is None:
        return None
    return Given(
        revision=row.revision, side=row.side, reason=row.reason, answered_at=row.answered_at
    )
