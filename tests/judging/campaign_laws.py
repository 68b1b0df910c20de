"""What holds for a campaign at any moment, whatever its judges did."""

from collections import Counter

import msgspec
from derived_states import derived_states, stored_states

from heldout.database.database import Database
from heldout.judging.campaign.judgments import Judgment, counted
from heldout.judging.campaign.rows import Task
from heldout.judging.database.campaigns import read_campaign
from heldout.judging.database.organiser import (
    AssignmentOverview,
    assignments,
    judgments,
    progress,
    tasks,
)

LIVE = ("open", "held", "done", "void")


def check_laws(database: Database, before: tuple[Judgment, ...] = ()) -> tuple[Judgment, ...]:
    """Check all of them.

    Returns:
        The judgments, to be given as `before` the next time.
    """
    settings = read_campaign(database).settings
    states = stored_states(database)
    assert derived_states(database) == states
    found, rows = judgments(database), assignments(database)
    every = {task.task: task for task in tasks(database)}
    _check_only_added(before, found)
    _check_places(rows, every, states.tasks)
    votes = counted(found, exclusion=settings.exclusion, failures=settings.failures)
    _check_votes(votes, every, states.tasks)
    if settings.exclusion == "task" or all(row.state != "consented" for row in rows):
        assert sum(batch.votes for batch in progress(database)) == len(votes)
    return found


def _check_only_added(before: tuple[Judgment, ...], found: tuple[Judgment, ...]) -> None:
    """What was recorded stays; only that its task was finished is learned later."""
    again = zip(before, found, strict=False)
    assert len(found) >= len(before)
    for old, new in again:
        finished = {"submitted": old.submitted, "submitted_at": old.submitted_at}
        assert old == msgspec.structs.replace(new, **finished)


def _check_places(
    rows: tuple[AssignmentOverview, ...], every: dict[str, Task], states: dict[str, str]
) -> None:
    """Each planned place is there once; nobody is at two, or meets a pair twice."""
    planned = Counter(
        item.pair for name, task in every.items() if "~" not in name for item in task.items
    )
    live = Counter(
        item.pair for name, task in every.items() if states[name] in LIVE for item in task.items
    )
    assert live == planned
    assert len({row.task for row in rows}) == len(rows)
    under_way = Counter(row.worker for row in rows if row.state == "consented")
    assert set(under_way.values()) <= {1}
    met = Counter(
        (row.worker, item.pair)
        for row in rows
        for item in every[row.task].items
        if item.answer is None
    )
    assert set(met.values()) <= {1}


def _check_votes(
    votes: tuple[Judgment, ...], every: dict[str, Task], states: dict[str, str]
) -> None:
    """No pair has more votes than places that are done, and only what is done counts."""
    done = {name for name, state in states.items() if state == "done"}
    places = Counter(item.pair for name in done for item in every[name].items)
    assert not Counter(one.pair for one in votes) - places
    assert {one.task for one in votes} <= done
