"""A campaign in its database: settings, pools and tasks, loaded once and added to."""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec
from sqlalchemy import Connection, func, insert, select, update

from heldout.judging.campaign.pools import Pool, Texts, gather_texts
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import Settings
from heldout.judging.database.database import Database, DatabaseError, keep_others_out
from heldout.judging.database.rows import (
    AT_ONCE,
    add_items,
    check_settings,
    check_tasks,
    note,
    read_tasks,
)
from heldout.judging.database.tables import batches, campaign, pairs, passages, queries, tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What the pages need to know of it.

    Attributes:
        code: random, part of the link that workers are sent: `/j/CODE`.
        key: random, signs tokens; never shown.
        settings: of the newest batch.
        batches: terms of every batch, by its number.
    """

    code: str
    key: bytes
    settings: Settings
    batches: Mapping[int, Settings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What was new.

    Attributes:
        tasks: how many tasks.
        batches: numbers of the batches they are of.
        waiting: settings that differ from those of a batch that is there: they hold for batches
            that are yet to come.
    """

    tasks: int
    batches: tuple[int, ...]
    waiting: tuple[str, ...]


def load_campaign(
    database: Database,
    settings: Settings,
    pools: Iterable[Pool],
    tasks: Iterable[Task],
    *,
    now: datetime,
) -> Loaded:
    """Add what the database does not have yet; what is there is left as it is.

    A batch keeps the settings it was loaded with: wording and prices may change for later ones. The
    completion code, the contact and the length of a lease change at once for all.

    Args:
        database: of the campaign; the first call makes its link and its key.
        settings: for the batches that are new.
        pools: texts of queries and passages; those without a text are passed over.
        tasks: all of the campaign, or those to add.
        now: the time.

    Raises:
        InputError: codes `changed-setting`, `changed-consent`, `changed-text`, `changed-task`,
            `old-batch`: what people saw would change; `text-missing`: a task shows a query or a
            passage without a text; `repeated-task`, `task-name`, `task-item`.
        DatabaseError: see `Fault`.
    """
    texts, given = gather_texts(pools), tuple(tasks)
    return database.write(lambda connection: _load(connection, settings, texts, given, now))


def read_campaign(database: Database) -> Campaign:
    """The campaign.

    Raises:
        DatabaseError: code `database-empty`: no batch was loaded yet.
    """

    def read(connection: Connection) -> Campaign:
        found = connection.execute(select(campaign.c.code, campaign.c.key)).one_or_none()
        terms = read_settings(connection)
        if found is None or not terms:
            text = f"{database.name} has no task yet; `heldout prefer tasks` makes them"
            raise DatabaseError("database-empty", text)
        return Campaign(code=found.code, key=found.key, settings=terms[max(terms)], batches=terms)

    return database.read(read)


def read_settings(connection: Connection) -> dict[int, Settings]:
    """The terms of every batch, by its number."""
    rows = connection.execute(select(batches.c.batch, batches.c.settings).order_by("batch"))
    return {row.batch: msgspec.json.decode(row.settings, type=Settings) for row in rows}


def _load(
    connection: Connection, settings: Settings, texts: Texts, given: tuple[Task, ...], now: datetime
) -> Loaded:
    keep_others_out(connection)
    terms = read_settings(connection)
    waiting = check_settings(settings, terms)
    known = Texts(
        queries={row.query: row.text for row in connection.execute(select(queries))},
        docs={row.doc: row.text for row in connection.execute(select(passages))},
    )
    new = check_tasks(given, read_tasks(connection), set(terms), texts, known)
    _update_terms(connection, settings, terms)
    if not terms:
        _found(connection, now)
    numbers = tuple(sorted({task.batch for task in new}))
    _add_batches(connection, numbers, settings, now)
    _add_texts(connection, new, texts, known)
    _add_tasks(connection, new)
    if new:
        note(connection, "loaded", at=now, text=f"{len(new)} tasks")
    return Loaded(tasks=len(new), batches=numbers, waiting=waiting)


def _found(connection: Connection, now: datetime) -> None:
    if connection.execute(select(campaign.c.id)).one_or_none() is None:
        connection.execute(
            insert(campaign).values(
                id=1,
                code=secrets.token_urlsafe(12),
                key=secrets.token_bytes(32),
                created_at=now,
            )
        )


def _update_terms(
    connection: Connection, settings: Settings, terms: Mapping[int, Settings]
) -> None:
    changes = {name: getattr(settings, name) for name in AT_ONCE}
    for number, before in terms.items():
        after = msgspec.structs.replace(before, **changes)
        if after != before:
            row = update(batches).where(batches.c.batch == number)
            connection.execute(row.values(settings=msgspec.json.encode(after).decode()))


def _add_batches(
    connection: Connection, numbers: Iterable[int], settings: Settings, now: datetime
) -> None:
    text = msgspec.json.encode(settings).decode()
    rows = [{"batch": number, "settings": text, "loaded_at": now} for number in numbers]
    if rows:
        connection.execute(insert(batches), rows)


def _add_texts(connection: Connection, new: Iterable[Task], texts: Texts, known: Texts) -> None:
    shown = [item for task in new for item in task.items]
    asked = {item.query for item in shown} - known.queries.keys()
    docs = {doc for item in shown for doc in (item.left, item.right)} - known.docs.keys()
    rows = [{"query": query, "text": texts.queries[query]} for query in sorted(asked)]
    if rows:
        connection.execute(insert(queries), rows)
    rows = [{"doc": doc, "text": texts.docs[doc]} for doc in sorted(docs)]
    if rows:
        connection.execute(insert(passages), rows)


def _add_tasks(connection: Connection, new: Iterable[Task]) -> None:
    first = (connection.scalar(select(func.max(tasks.c.number))) or 0) + 1
    task_rows = [
        {
            "task": task.task,
            "batch": task.batch,
            "number": number,
            "why": task.why,
            "state": "open",
            "root": task.task,
            "copy": 1,
        }
        for number, task in enumerate(new, first)
    ]
    if not task_rows:
        return
    connection.execute(insert(tasks), task_rows)
    add_items(connection, new, _add_pairs(connection, new))


def _add_pairs(connection: Connection, new: Iterable[Task]) -> dict[tuple[str, str, str], int]:
    rows = connection.execute(select(pairs.c.id, pairs.c.query, pairs.c.a, pairs.c.b))
    ids = {(row.query, row.a, row.b): row.id for row in rows}
    unknown = {item.pair for task in new for item in task.items if item.answer is None} - set(ids)
    added = {pair: number for number, pair in enumerate(sorted(unknown), len(ids) + 1)}
    pair_rows = [
        {"id": number, "query": query, "a": a, "b": b} for (query, a, b), number in added.items()
    ]
    if pair_rows:
        connection.execute(insert(pairs), pair_rows)
    return ids | added
