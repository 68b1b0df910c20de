"""What holds for a campaign at any moment, whatever its judges did."""

from collections import Counter

import msgspec

from heldout.preferences.judgments import Judgment, counted
from heldout.preferences.settings import Settings
from heldout.store.judging.campaigns import read_campaign
from heldout.store.judging.database import Database
from heldout.store.judging.overviews import assignments, workers
from heldout.store.judging.progress import progress
from heldout.store.judging.readings import judgments, tasks
from heldout.store.judging.verdicts import derive_verdicts, stored_verdicts

LIVE = ("open", "held", "done", "void")


def check_laws(database: Database, before: tuple[Judgment, ...] = ()) -> tuple[Judgment, ...]:
    """Check all of them.

    Returns:
        The judgments, to be given as `before` the next time.
    """
    settings = read_campaign(database).settings
    verdicts = stored_verdicts(database)
    assert derive_verdicts(database) == verdicts
    found = judgments(database)
    _check_only_added(before, found)
    _check_places(database, verdicts.tasks)
    _check_votes(database, found, verdicts.tasks, settings)
    return found


def _check_only_added(before: tuple[Judgment, ...], found: tuple[Judgment, ...]) -> None:
    """What was recorded stays; only that its task was finished is learned later."""
    again = zip(before, found, strict=False)
    assert len(found) >= len(before)
    assert all(old == msgspec.structs.replace(new, submitted=old.submitted) for old, new in again)


def _check_places(database: Database, states: dict[str, str]) -> None:
    """Each planned place is there once; nobody is at two, or meets a pair twice."""
    every = {task.task: task for task in tasks(database)}
    planned = Counter(
        item.pair for name, task in every.items() if "~" not in name for item in task.items
    )
    live = Counter(
        item.pair for name, task in every.items() if states[name] in LIVE for item in task.items
    )
    assert live == planned
    rows = assignments(database)
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
    database: Database, found: tuple[Judgment, ...], states: dict[str, str], settings: Settings
) -> None:
    """No pair has more votes than were planned, and what is done is what counts."""
    votes = counted(found, exclusion=settings.exclusion, failures=settings.failures)
    done = {name for name, state in states.items() if state == "done"}
    shown = [item.pair for task in tasks(database) if task.task in done for item in task.items]
    assert not Counter(one.pair for one in votes) - Counter(shown)
    assert {one.task for one in votes} <= done
    under_way = any(row.state == "consented" for row in assignments(database))
    if settings.exclusion == "task" or not under_way:
        assert sum(batch.votes for batch in progress(database)) == len(votes)
    failed = {row.worker for row in assignments(database) if row.excluded}
    assert failed == {row.worker for row in workers(database) if row.barred}
