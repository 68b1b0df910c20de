"""What passes between a judge and the database: who comes, what is shown, what is answered.

An assignment is read as it stands, within one transaction.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import msgspec
from sqlalchemy import Connection, Row, Select, bindparam, exists, func, select

from heldout.judging.campaign.judgments import By, Reason
from heldout.judging.campaign.rows import State, amount_owed, next_state
from heldout.judging.campaign.settings import Money, Settings
from heldout.judging.database.database import DatabaseError
from heldout.judging.database.rows import count_failed, is_newest, of_item
from heldout.judging.database.tables import (
    assignments,
    batches,
    items,
    judgments,
    passages,
    queries,
    tasks,
    workers,
)

LONGEST_WORKER = 255
"""Characters of a platform's id of a worker."""

Side = Literal["left", "right"]
"""Passage A is left, passage B right."""

Outcome = Literal["recorded", "repeated", "stale", "ahead", "ended"]
"""`recorded`: it is in the database. `repeated`: the same answer stands there already, also where
the assignment has ended since: whoever sent it did not see that it had arrived. `stale`:
another window answered since, nothing was changed. `ahead`: an earlier item has no answer yet.
`ended`: the assignment takes no other answers any more. Only `recorded` wrote a judgment."""

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who comes, as the platform says.

    Attributes:
        worker: the platform's id of the worker; 1 to 255 characters.
        place: its id of this sitting (`assignmentId`, `SESSION_ID`); empty where there is none.
        study: its id of the study (`hitId`, `STUDY_ID`); empty where there is none.
        submit_to: where Mechanical Turk wants the form at the end (`turkSubmitTo`), as it came: the
            page has to check it.
        signed: whether the link was signed for this worker, so that nobody else can have sent it.
    """

    worker: str
    place: str = ""
    study: str = ""
    submit_to: str = ""
    signed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a worker would consent to.

    Attributes:
        batch: of the task; `claim` is given the one that was shown.
        settings: the terms of this batch.
        items: how many pages the task has.
        assignment: the one under way, which this visitor may continue; else `None`.
    """

    batch: int
    settings: Settings
    items: int
    assignment: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTask:
    """There is no task for this worker.

    Attributes:
        why: `barred`: failed the tests of an earlier task. `changed`: there are tasks, but not of
            the batch that was agreed to: show the new terms. `waiting`: others hold the last ones,
            one may come free. `seen`: what is left are pairs this worker has judged. `done`:
            everything is judged. `paused`: the organiser has paused the campaign, or tasks that do
            not count have earned all that they may; who has a task goes on with it. `elsewhere`:
            the worker has a task with answers, and this visitor cannot show that it is theirs.
        settings: of the newest batch.
    """

    why: Literal["barred", "changed", "waiting", "seen", "done", "paused", "elsewhere"]
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """An assignment as it stands.

    Attributes:
        assignment: its id.
        worker: the worker's pseudonym.
        state: see `State`.
        open: whether answers are taken: it is under way, or expired and nobody else was given the
            task.
        items: how many there are.
        answered: how many have an answer, with or without a preference.
        first_open: position of the first without one, from 1; `None` where all have one.
        lease_until: until when the task is kept without a further answer.
        owed: what the worker is owed now, in hundredths.
        barred: this worker gets no later task.
        settings: the terms that were agreed to.
        visitor: who it is for the platform, as of the first visit; `signed` is not stored.
    """

    assignment: int
    worker: str
    state: State
    open: bool
    items: int
    answered: int
    first_open: int | None
    lease_until: datetime
    owed: Money
    barred: bool
    settings: Settings
    visitor: Visitor


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as it is shown.

    Attributes:
        doc: its id, never shown to a judge.
        text: as the collection has it: it may hold anything.
    """

    doc: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The answer that stands.

    Attributes:
        revision: 1 for the first answer to the item, one more with every change.
        side: which was preferred; `None` where the worker could not judge.
        reason: why not; `None` where a side was preferred.
        answered_at: when it came.
    """

    revision: int
    side: Side | None
    reason: Reason | None
    answered_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An item as it is shown, the same at every refresh.

    Attributes:
        sitting: the assignment.
        position: from 1.
        query: text of the query.
        left: passage A.
        right: passage B.
        given: the answer that stands; `None` before there is one.
    """

    sitting: Sitting
    position: int
    query: str
    left: Passage
    right: Passage
    given: Given | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a judge chose.

    Attributes:
        side: which passage; `None` for "cannot judge".
        reason: why they cannot; exactly where `side` is `None`.
        by: how it was chosen.
        active_ms: milliseconds the page was looked at, 0 to 86,400,000 (a day); `None` where no
            script ran.

    Raises:
        ValueError: neither a side nor a reason, or both; a time out of its range.
    """

    side: Side | None
    reason: Reason | None = None
    by: By | None = None
    active_ms: int | None = None

    def __post_init__(self) -> None:
        if (self.side is None) == (self.reason is None) or not 0 <= (
            self.active_ms or 0
        ) <= _DAY_MS:
            raise ValueError(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of an answer.

    Attributes:
        outcome: see `Outcome`.
        shown: the item as it stands afterwards.
    """

    outcome: Outcome
    shown: Shown


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
