"""Verdicts anew: what the stored states say must follow from assignments and judgments alone."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select, text, update

from heldout.judging.campaign.judgments import failed_tests
from heldout.judging.campaign.rows import is_final
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.campaigns import read_settings
from heldout.judging.database.database import Database, keep_others_out
from heldout.judging.database.rows import read_judgments
from heldout.judging.database.tables import assignments, tasks, workers


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """What is stored for speed.

    Attributes:
        tasks: state of each task, by its id.
        failed: failed tests of each assignment that nothing can change any more, by its id.
    """

    tasks: dict[str, str]
    failed: dict[int, int]


def stored_verdicts(database: Database) -> Verdicts:
    """As they are stored.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(_read_stored)


def derive_verdicts(database: Database) -> Verdicts:
    """As they follow from what else there is.

    Raises:
        DatabaseError: see `Fault`.
    """
    return database.read(_derive)


def rebuild_verdicts(database: Database) -> int:
    """Store them as they follow from what else there is; judges wait meanwhile.

    Returns:
        How many were otherwise before.

    Raises:
        DatabaseError: see `Fault`.
    """

    def write(connection: Connection) -> int:
        keep_others_out(connection)
        if connection.dialect.name == "postgresql":
            connection.execute(text("LOCK TABLE tasks, assignments IN EXCLUSIVE MODE"))
        stored, derived = _read_stored(connection), _derive(connection)
        states = {
            name: state for name, state in derived.tasks.items() if stored.tasks[name] != state
        }
        numbers = stored.failed.keys() | derived.failed.keys()
        wrong = [one for one in numbers if stored.failed.get(one) != derived.failed.get(one)]
        for name, state in states.items():
            connection.execute(update(tasks).where(tasks.c.task == name).values(state=state))
        for one in wrong:
            row = update(assignments).where(assignments.c.id == one)
            connection.execute(row.values(failed=derived.failed.get(one)))
        return len(states) + len(wrong)

    return database.write(write)


def _read_stored(connection: Connection) -> Verdicts:
    states = connection.execute(select(tasks.c.task, tasks.c.state)).all()
    rows = connection.execute(select(assignments.c.id, assignments.c.failed))
    return Verdicts(
        tasks={row.task: row.state for row in states},
        failed={number: failed for number, failed in rows if failed is not None},
    )


def _derive(connection: Connection) -> Verdicts:
    terms = read_settings(connection)
    settings = terms[max(terms)] if terms else Settings(name="")
    failed = failed_tests(read_judgments(connection))
    replaced = set(connection.scalars(select(tasks.c.parent).where(tasks.c.parent.is_not(None))))
    final, excluded = {}, defaultdict(set)
    rows = _read_assignments(connection)
    for row in rows:
        number = failed.get((row.pseudonym, row.task), 0)
        over = number >= settings.failures
        if is_final(row.state, closed=over or row.task in replaced):
            final[row.id] = number
            if over:
                excluded[row.worker].add(row.task)
    states = dict.fromkeys(connection.scalars(select(tasks.c.task)), "open")
    for row in rows:
        failures = excluded[row.worker]
        out = bool(failures) if settings.excludes == "worker" else row.task in failures
        states[row.task] = _state_of_task(row.state, excluded=out)
    return Verdicts(tasks=states | dict.fromkeys(replaced, "replaced"), failed=final)


def _read_assignments(connection: Connection) -> list[Row[Any]]:
    return list(
        connection.execute(
            select(assignments, workers.c.pseudonym).join(
                workers, workers.c.id == assignments.c.worker
            )
        )
    )


def _state_of_task(state: str, *, excluded: bool) -> str:
    if state == "consented":
        return "held"
    return "done" if state == "submitted" and not excluded else "void"
