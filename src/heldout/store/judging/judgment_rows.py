"""Judgments in the tables, as values."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, select

from heldout.preferences.judgments import Judgment, failed_tests
from heldout.store.judging.tables import (
    assignments,
    format_time,
    items,
    judgments,
    tasks,
    workers,
)

__all__ = ["count_failed", "read_judgments"]


def read_judgments(connection: Connection, *wanted: ColumnElement[bool]) -> tuple[Judgment, ...]:
    """Judgments in the order in which they were recorded; superseded ones too.

    Args:
        connection: of a transaction.
        wanted: conditions on `judgments`, `items` or `assignments`.
    """
    rows = connection.execute(
        select(
            judgments,
            *(items.c.query, items.c.left, items.c.right, items.c.answer),
            tasks.c.why,
            workers.c.pseudonym,
            *(assignments.c.state, assignments.c.ended_at),
        )
        .join(
            items,
            (items.c.task == judgments.c.task) & (items.c.position == judgments.c.position),
        )
        .join(tasks, tasks.c.task == judgments.c.task)
        .join(assignments, assignments.c.id == judgments.c.assignment)
        .join(workers, workers.c.id == assignments.c.worker)
        .where(*wanted)
        .order_by(judgments.c.id)
    )
    return tuple(_make_judgment(row) for row in rows)


def count_failed(connection: Connection, assignment: int) -> int:
    """Tests of an assignment whose answer, as it stands, is not the known one."""
    given = read_judgments(connection, judgments.c.assignment == assignment)
    return sum(failed_tests(given).values())


def _make_judgment(row: Row[Any]) -> Judgment:
    sides = {"left": row.left, "right": row.right, None: None}
    return Judgment(
        query=row.query,
        left=row.left,
        right=row.right,
        preferred=sides[row.side],
        reason=row.reason,
        worker=row.pseudonym,
        task=row.task,
        position=row.position,
        answer=row.answer,
        why=row.why,
        shown_at=format_time(row.shown_at),
        answered_at=format_time(row.answered_at),
        active_ms=row.active_ms,
        by=row.by,
        submitted=row.state == "submitted",
        submitted_at=format_time(row.ended_at) if row.state == "submitted" else "",
    )
