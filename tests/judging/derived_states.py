"""What is stored for speed, and what it has to be by assignments and judgments alone."""

from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import Connection, select

from heldout.database.database import Database
from heldout.judging.campaign.judgments import failed_tests
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.campaigns import read_settings
from heldout.judging.database.tables import assignments, read_judgments, tasks, workers


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """States of tasks by id; failed tests of assignments that nothing can change any more."""

    tasks: dict[str, str]
    failed: dict[int, int]


def stored_states(database: Database) -> States:
    return database.read(_read_stored)


def derived_states(database: Database) -> States:
    return database.read(_derive)


def _read_stored(connection: Connection) -> States:
    states = connection.execute(select(tasks.c.task, tasks.c.state)).all()
    rows = connection.execute(select(assignments.c.id, assignments.c.failed))
    return States(
        tasks={row.task: row.state for row in states},
        failed={number: failed for number, failed in rows if failed is not None},
    )


def _derive(connection: Connection) -> States:
    terms = read_settings(connection)
    settings = terms[max(terms)] if terms else Settings(name="")
    failed = failed_tests(read_judgments(connection))
    replaced = set(connection.scalars(select(tasks.c.parent).where(tasks.c.parent.is_not(None))))
    final, excluded = {}, defaultdict(set)
    rows = connection.execute(
        select(assignments, workers.c.pseudonym).join(workers, workers.c.id == assignments.c.worker)
    ).all()
    for row in rows:
        number = failed.get((row.pseudonym, row.task), 0)
        over = number >= settings.failures
        closed = row.state == "expired" and (over or row.task in replaced)
        if closed or row.state in ("submitted", "exited"):
            final[row.id] = number
            if over:
                excluded[row.worker].add(row.task)
    states = dict.fromkeys(connection.scalars(select(tasks.c.task)), "open")
    for row in rows:
        failures = excluded[row.worker]
        out = bool(failures) if settings.excludes == "worker" else row.task in failures
        states[row.task] = _state_of_task(row.state, excluded=out)
    return States(tasks=states | dict.fromkeys(replaced, "replaced"), failed=final)


def _state_of_task(state: str, *, excluded: bool) -> str:
    if state == "consented":
        return "held"
    return "done" if state == "submitted" and not excluded else "void"
