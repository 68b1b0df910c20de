"""What lies in the tables, as values: judgments, the answers that stand, tasks, the log.

Here is also what may be loaded into a campaign that runs: nothing that changes what people saw. The
log says what happened to assignments, and when; lines are only added to it.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Row,
    and_,
    exists,
    insert,
    select,
    update,
)

from heldout.errors import InputError, Problem, quote
from heldout.judging.campaign.judgments import Judgment, failed_tests
from heldout.judging.campaign.pools import Texts, changed_text
from heldout.judging.campaign.rows import Item, Task, copy_task
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.tables import (
    assignments,
    campaign,
    events,
    format_time,
    items,
    judgments,
    tasks,
    workers,
)


def is_newest() -> ColumnElement[bool]:
    """No later revision of this judgment is there."""
    later = judgments.alias()
    return ~exists().where(
        later.c.assignment == judgments.c.assignment,
        later.c.position == judgments.c.position,
        later.c.revision > judgments.c.revision,
    )


def of_item(items: FromClause) -> ColumnElement[bool]:
    """This judgment is of that item.

    Args:
        items: the table of items.
    """
    return and_(items.c.task == judgments.c.task, items.c.position == judgments.c.position)


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


AT_ONCE = (
    "completion_code",
    "contact",
    "lease_minutes",
    "links",
    "minimum_hourly",
    "uncounted_percent",
)
"""Settings that hold at once for every batch: nobody judges otherwise for them."""

MARK = "~"
"""Stands between a task's id and the number of its copy."""

_MOST_BATCHES = 1_000_000
_FIXED = ("platform", "currency", "exclusion", "failures")
_CONSENT = ("consent", "ethics")
_FILE, _SETTINGS, _POOLS = "tasks.jsonl", "campaign.toml", "pool.jsonl"


def check_settings(settings: Settings, terms: Mapping[int, Settings]) -> tuple[str, ...]:
    """Look at settings beside those of the batches that are there.

    Returns:
        Names of settings that differ from those of some batch, which keeps its own.

    Raises:
        InputError: code `changed-setting`: one that must be the same in all batches;
            `changed-consent`: another text, and the version of an earlier one.
    """
    problems = [
        Problem(
            code="changed-setting",
            path=f"{_SETTINGS}:{name}",
            found=str(getattr(settings, name)),
            expected=f"{getattr(before, name)}, as in batch {number}",
            hint="a campaign that runs keeps it; for another one begin a new campaign",
        )
        for number, before in terms.items()
        for name in _FIXED
        if getattr(settings, name) != getattr(before, name)
    ]
    problems += [
        Problem(
            code="changed-consent",
            path=f"{_SETTINGS}:{name}",
            found=f"another text than in batch {number}",
            expected="another consent_version with it",
            hint="each consent is recorded by its version",
        )
        for number, before in terms.items()
        for name in _CONSENT
        if settings.consent_version == before.consent_version
        and getattr(settings, name) != getattr(before, name)
    ]
    _raise_any(problems)
    return tuple(
        name
        for name in Settings.__struct_fields__
        if name not in AT_ONCE
        and any(getattr(settings, name) != getattr(before, name) for before in terms.values())
    )


def check_tasks(
    given: Iterable[Task],
    known: Mapping[str, Task],
    batches: Collection[int],
    texts: Texts,
    stored: Texts,
) -> tuple[Task, ...]:
    """Those that are new.

    Args:
        given: in order of their lines.
        known: tasks that are there, by id.
        batches: numbers of the batches that are there.
        texts: of the pools.
        stored: texts that are there.

    Raises:
        InputError: see `load_campaign`.
    """
    problems: list[Problem] = []
    new: dict[str, Task] = {}
    for line, task in enumerate(given, 1):
        if task.task in known:
            problems += _check_same(task, known[task.task], line)
            continue
        problems += _check_new(task, line, names=new, batches=batches)
        problems += _check_items(task, line)
        new[task.task] = task
    problems += _check_texts(new.values(), texts, stored)
    _raise_any(problems)
    return tuple(new.values())


def _check_same(task: Task, before: Task, line: int) -> Iterator[Problem]:
    if task != before:
        yield _tell(
            "changed-task",
            line,
            found=f"{quote(task.task)} otherwise than it was loaded",
            expected="the same task",
            hint="give what is new another id and another batch",
        )


def _check_new(
    task: Task, line: int, *, names: Collection[str], batches: Collection[int]
) -> Iterator[Problem]:
    if task.task in names:
        yield _tell("repeated-task", line, found=quote(task.task), expected="each id once")
    if not task.task or not task.task.isprintable() or MARK in task.task:
        yield _tell(
            "task-name",
            line,
            found=quote(task.task),
            expected=f"an id of printable characters without '{MARK}'",
        )
    if task.batch in batches or not 1 <= task.batch <= _MOST_BATCHES:
        yield _tell(
            "old-batch",
            line,
            found=f"a new task of batch {task.batch}",
            expected="the number of a batch that was not loaded before, from 1",
        )


def _check_items(task: Task, line: int) -> Iterator[Problem]:
    unknown = [item.pair for item in task.items if item.answer is None]
    wrong = [
        item
        for item in task.items
        if item.left == item.right or item.answer not in (item.left, item.right, None)
    ]
    if wrong or not task.items or len(unknown) != len(set(unknown)):
        yield _tell(
            "task-item",
            line,
            found=quote(wrong[0] if wrong else task.task),
            expected="two different passages, an answer that is one of them, no pair twice",
        )


def _check_texts(new: Iterable[Task], texts: Texts, stored: Texts) -> Iterator[Problem]:
    shown = [item for task in new for item in task.items]
    for what, given, there in (
        (sorted({item.query for item in shown}), texts.queries, stored.queries),
        (
            sorted({doc for item in shown for doc in (item.left, item.right)}),
            texts.docs,
            stored.docs,
        ),
    ):
        missing = [name for name in what if name not in given and name not in there]
        for name in missing[:_MOST]:
            yield Problem(
                code="text-missing",
                path=_POOLS,
                found=f"no text of {quote(name)}, which a task shows",
                expected="a text for each query and passage",
                hint=f"{len(missing)} are missing" if len(missing) > 1 else "",
            )
    for given, there in ((texts.queries, stored.queries), (texts.docs, stored.docs)):
        for name in given.keys() & there.keys():
            if given[name] != there[name]:
                yield changed_text(name)


_MOST = 20


def _tell(code: str, line: int, *, found: str, expected: str, hint: str = "") -> Problem:
    return Problem(code=code, path=_FILE, line=line, found=found, expected=expected, hint=hint)


def _raise_any(problems: list[Problem]) -> None:
    if problems:
        raise InputError(problems)


EventKind = Literal[
    "loaded",
    "consented",
    "resumed",
    "copied",
    "submitted",
    "exited",
    "expired",
    "excluded",
    "paid",
    "launched",
    "paused",
    "signed-out",
]
"""`copied`: the task was given to another worker. `excluded`: failed tests; what counts no more.
`launched`, `paused`, `signed-out`: the organiser did (see `organiser`)."""


def note(
    connection: Connection,
    kind: EventKind,
    *,
    at: datetime,
    assignment: int | None = None,
    text: str = "",
) -> None:
    """Add an event."""
    row = {"at": at, "kind": kind, "assignment": assignment, "note": text}
    connection.execute(insert(events).values(row))


def read_tasks(connection: Connection, *, only: str | None = None) -> dict[str, Task]:
    """Tasks by id, in the order in which they are handed out; copies too.

    Args:
        connection: of a transaction.
        only: id of the one to read; `None` for all.
    """
    wanted = [] if only is None else [tasks.c.task == only]
    rows = connection.execute(
        select(items, tasks.c.why, tasks.c.batch)
        .join(tasks, tasks.c.task == items.c.task)
        .where(*wanted)
        .order_by(tasks.c.number, tasks.c.copy, items.c.position)
    )
    found: dict[str, list[Row[Any]]] = {}
    for row in rows:
        found.setdefault(row.task, []).append(row)
    return {name: _make_task(name, of_task) for name, of_task in found.items()}


def add_items(
    connection: Connection, new: Iterable[Task], pairs: Mapping[tuple[str, str, str], int]
) -> None:
    """Write the items of tasks.

    Args:
        connection: of a transaction.
        new: tasks that are in the table already.
        pairs: ids of the pairs that nobody knows.
    """
    rows = [
        {
            "task": task.task,
            "position": position,
            "query": item.query,
            "left": item.left,
            "right": item.right,
            "answer": item.answer,
            "pair": pairs[item.pair] if item.answer is None else None,
        }
        for task in new
        for position, item in enumerate(task.items, 1)
    ]
    connection.execute(insert(items), rows)


def add_copy(connection: Connection, name: str, *, keep_sides: bool) -> str:
    """Copy a task that waits for another worker, and mark it as replaced.

    Order and sides come from the campaign's key and the name of the copy.

    Args:
        connection: of a transaction that holds the task's lock.
        name: of the task.
        keep_sides: see `copy_task`.

    Returns:
        The id of the copy.
    """
    row = connection.execute(select(tasks).where(tasks.c.task == name)).one()
    copy = f"{row.root}{MARK}{row.copy + 1}"
    key = connection.execute(select(campaign.c.key)).scalar_one()
    seed = hashlib.sha256(key + copy.encode()).digest()
    task = copy_task(
        read_tasks(connection, only=name)[name],
        name=copy,
        keep_sides=keep_sides,
        rng=np.random.default_rng(int.from_bytes(seed)),
    )
    connection.execute(update(tasks).where(tasks.c.task == name).values(state="replaced"))
    values = {"task": copy, "batch": row.batch, "number": row.number, "why": row.why}
    values |= {"state": "open", "root": row.root, "copy": row.copy + 1, "parent": name}
    connection.execute(insert(tasks).values(values))
    add_items(connection, [task], _read_pairs(connection, name))
    return copy


def _read_pairs(connection: Connection, name: str) -> dict[tuple[str, str, str], int]:
    rows = connection.execute(select(items).where(items.c.task == name, items.c.pair.is_not(None)))
    return {_make_item(row).pair: row.pair for row in rows}


def _make_task(name: str, rows: Sequence[Row[Any]]) -> Task:
    shown = tuple(_make_item(row) for row in rows)
    return Task(task=name, items=shown, why=rows[0].why, batch=rows[0].batch)


def _make_item(row: Row[Any]) -> Item:
    return Item(query=row.query, left=row.left, right=row.right, answer=row.answer)
