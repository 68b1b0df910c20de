"""What the organiser takes out: judgments, tasks, the history of a pair, the log."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from heldout.preferences.assignments import State
from heldout.preferences.judgments import Judgment, counted
from heldout.preferences.tasks import Task
from heldout.store.judging import tables
from heldout.store.judging.campaigns import read_settings
from heldout.store.judging.database import Database
from heldout.store.judging.judgment_rows import read_judgments
from heldout.store.judging.log import EventKind
from heldout.store.judging.task_rows import read_tasks

__all__ = [
    "Event",
    "JudgedSoFar",
    "PairJudgment",
    "events",
    "judged_so_far",
    "judgments",
    "pair_history",
    "tasks",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened.

    Attributes:
        at: when.
        kind: what.
        assignment: to which; `None` for the campaign.
        note: more of it; may be empty.
    """

    at: datetime
    kind: EventKind
    assignment: int | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairJudgment:
    """A judgment in the history of a pair.

    Attributes:
        judgment: what was recorded.
        assignment: in which assignment.
        state: of the assignment.
        counts: whether it counts today.
    """

    judgment: Judgment
    assignment: int
    state: State
    counts: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSoFar:
    """How far judging is: where it is equal, the same judgments count.

    Attributes:
        judgments: how many were recorded.
        newest: number of the last; 0 before.
        finished: tasks handed in.
    """

    judgments: int
    newest: int
    finished: int


def judged_so_far(database: Database) -> JudgedSoFar:
    """How far judging is; quick, however much was judged.

    Raises:
        DatabaseError: see `Fault`.
    """
    row, sitting = tables.judgments.c, tables.assignments.c
    recorded = select(func.count(row.id), func.coalesce(func.max(row.id), 0))
    handed_in = select(func.count(sitting.id)).where(sitting.state == "submitted")

    def read(connection: Connection) -> JudgedSoFar:
        number, newest = connection.execute(recorded).one()
        finished = connection.execute(handed_in).scalar_one()
        return JudgedSoFar(judgments=number, newest=newest, finished=finished)

    return database.read(read)


def judgments(database: Database) -> tuple[Judgment, ...]:
    """Every judgment in the order recorded, superseded ones and tests too; `counted` sorts them.

    Workers are named by their pseudonyms.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(read_judgments)


def tasks(database: Database) -> tuple[Task, ...]:
    """Every task as it is shown, copies too, in the order in which they are handed out.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(lambda connection: tuple(read_tasks(connection).values()))


def pair_history(database: Database, query: str, a: str, b: str) -> tuple[PairJudgment, ...]:
    """Every judgment of a pair in the order recorded; of pairs that are tests, too.

    Args:
        database: of the campaign.
        query: its id.
        a: id of a passage.
        b: id of the other, in either order.

    Raises:
        DatabaseError: see `Fault`.
    """

    def read(connection: Connection) -> tuple[PairJudgment, ...]:
        sides = (a, b)
        items, assignments = tables.items, tables.assignments
        of_pair = items.c.left.in_(sides) & items.c.right.in_(sides) & (items.c.query == query)
        found = read_judgments(connection, of_pair)
        by_worker = tables.workers.c.pseudonym.in_({one.worker for one in found})
        of_them = read_judgments(connection, by_worker)
        counting = set(_counting(connection, of_them))
        rows = connection.execute(
            select(assignments.c.task, assignments.c.id, assignments.c.state).where(
                assignments.c.task.in_({one.task for one in found})
            )
        )
        places = {task: (assignment, state) for task, assignment, state in rows}
        return tuple(
            PairJudgment(
                judgment=one,
                assignment=places[one.task][0],
                state=places[one.task][1],
                counts=one in counting,
            )
            for one in found
        )

    return database.read(read)


def events(database: Database, *, assignment: int | None = None) -> tuple[Event, ...]:
    """The log, oldest first.

    Args:
        database: of the campaign.
        assignment: whose events; `None` for all.

    Raises:
        DatabaseError: see `Fault`.
    """
    row = tables.events.c
    wanted = [] if assignment is None else [row.assignment == assignment]
    found = select(row.at, row.kind, row.assignment, row.note).where(*wanted).order_by(row.id)
    rows = database.read(lambda connection: connection.execute(found).all())
    return tuple(
        Event(at=at, kind=kind, assignment=of_it, note=note) for at, kind, of_it, note in rows
    )


def _counting(connection: Connection, found: tuple[Judgment, ...]) -> tuple[Judgment, ...]:
    """Those that count by the campaign's rules, which are the same in all batches."""
    settings = next(iter(read_settings(connection).values()), None)
    if settings is None:
        return ()
    return counted(found, exclusion=settings.excludes, failures=settings.failures)
