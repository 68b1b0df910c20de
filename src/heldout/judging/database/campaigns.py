"""A campaign in its database: settings, pools and tasks, loaded once and added to."""

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from sqlalchemy import Connection, Table, func, insert, select, update

from heldout.database.database import Database, exclude_others
from heldout.database.errors import DatabaseError
from heldout.errors import InputError, Problem, quote
from heldout.judging.campaign.pools import Pool, Texts, changed_text, gather_texts, missing_texts
from heldout.judging.campaign.rows import UNSOUND, Task, raise_problems
from heldout.judging.campaign.settings import Settings
from heldout.judging.database import tables as t


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
        DatabaseError: see `ErrorCode`.
    """
    texts, given = gather_texts(pools), tuple(tasks)
    return database.write(lambda connection: _load(connection, settings, texts, given, now))


def read_campaign(database: Database) -> Campaign:
    """The campaign.

    Raises:
        DatabaseError: code `database-empty`: no batch was loaded yet.
    """

    def read(connection: Connection) -> Campaign:
        found = connection.execute(select(t.campaign.c.code, t.campaign.c.key)).one_or_none()
        terms = read_settings(connection)
        if found is None or not terms:
            text = f"{database.name} has no task yet; `heldout prefer tasks` makes them"
            raise DatabaseError("database-empty", text)
        return Campaign(code=found.code, key=found.key, settings=terms[max(terms)], batches=terms)

    return database.read(read)


def read_settings(connection: Connection) -> dict[int, Settings]:
    """The terms of every batch, by its number."""
    rows = connection.execute(select(t.batches.c.batch, t.batches.c.settings).order_by("batch"))
    return {row.batch: msgspec.json.decode(row.settings, type=Settings) for row in rows}


def _load(
    connection: Connection, settings: Settings, texts: Texts, given: tuple[Task, ...], now: datetime
) -> Loaded:
    exclude_others(connection)
    terms = read_settings(connection)
    waiting = _check_settings(settings, terms)
    known = Texts(
        queries={row.query: row.text for row in connection.execute(select(t.queries))},
        docs={row.doc: row.text for row in connection.execute(select(t.passages))},
        shown=_read_shown(connection),
    )
    new = _check_tasks(given, t.read_tasks(connection), set(terms), texts, known)
    if any((settings.kind == "preference") != bool(one.left) for task in new for one in task.items):
        expected = f"tasks of a campaign of {settings.kind!r}, as `heldout prefer tasks` draws them"
        raise InputError.of("task-item", "tasks.jsonl", found="tasks of others", expected=expected)
    _update_terms(connection, settings, terms)
    if connection.scalar(select(t.campaign.c.id)) is None:
        code, key = secrets.token_urlsafe(12), secrets.token_bytes(32)
        _insert(connection, t.campaign, [{"id": 1, "code": code, "key": key, "created_at": now}])
    numbers = tuple(sorted({task.batch for task in new}))
    terms_of = {"settings": msgspec.json.encode(settings).decode(), "loaded_at": now}
    _insert(connection, t.batches, [{"batch": number} | terms_of for number in numbers])
    _add_texts(connection, new, texts, known)
    _add_tasks(connection, new)
    if new:
        t.log_event(connection, "loaded", at=now, text=f"{len(new)} tasks")
    return Loaded(tasks=len(new), batches=numbers, waiting=waiting)


AT_ONCE = (
    "approval_rate",
    "approved_tasks",
    "completion_code",
    "contact",
    "countries",
    "lease_minutes",
    "links",
    "minimum_hourly",
    "uncounted_percent",
)
"""Settings that hold at once for every batch: nobody judges otherwise for them."""

_MOST_BATCHES = 1_000_000
_FIXED = ("kind", "platform", "currency", "exclusion", "failures")
_CONSENT = ("consent", "ethics")


def _check_settings(settings: Settings, terms: Mapping[int, Settings]) -> tuple[str, ...]:
    """Names of settings that differ from those of some batch, which keeps its own.

    Raises:
        InputError: code `changed-setting`: one that must be the same in all batches;
            `changed-consent`: another text, and the version of an earlier one.
    """
    problems = []
    for number, before in terms.items():
        for name in (*_FIXED, *_CONSENT):
            old, new, path = getattr(before, name), getattr(settings, name), f"campaign.toml:{name}"
            if old == new:
                continue
            if name in _FIXED:
                words = {"old": old, "batch": number}
                problems.append(Problem.of("changed-setting", path, str(new), **words))
            elif settings.consent_version == before.consent_version:
                problems.append(Problem.of("changed-consent", path, batch=number))
    raise_problems(problems)
    return tuple(
        name
        for name in Settings.__struct_fields__
        if name not in AT_ONCE
        and any(getattr(settings, name) != getattr(before, name) for before in terms.values())
    )


def _check_tasks(
    given: Iterable[Task],
    known: Mapping[str, Task],
    batches: Collection[int],
    texts: Texts,
    stored: Texts,
) -> tuple[Task, ...]:
    """The tasks that are new: nothing that changes what people saw may be loaded.

    Raises:
        InputError: see `load_campaign`.
    """
    problems: list[Problem] = []
    new: dict[str, Task] = {}
    for line, task in enumerate(given, 1):
        problems += (
            Problem.of(code=code, path="tasks.jsonl", line=line, found=found, expected=expected)
            for code, found, expected in _list_errors(task, known, new, batches)
        )
        if task.task not in known:
            new[task.task] = task
    both = Texts(
        queries={**texts.queries, **stored.queries},
        docs={**texts.docs, **stored.docs},
        shown={**texts.shown, **stored.shown},
    )
    problems += missing_texts((item for task in new.values() for item in task.items), both)
    for there, now in ((stored.queries, texts.queries), (stored.docs, texts.docs)):
        problems += (
            changed_text(name) for name in there if now.get(name, "") not in ("", there[name])
        )
    problems += (
        changed_text(query)
        for query, docs in stored.shown.items()
        if texts.shown.get(query, docs) != docs
    )
    raise_problems(problems)
    return tuple(new.values())


def _list_errors(
    task: Task, known: Mapping[str, Task], new: Collection[str], batches: Collection[int]
) -> Iterator[tuple[str, str, str]]:
    """Code, what is wrong, and what was expected."""
    name = quote(task.task)
    if task.task in known:
        if task != known[task.task]:
            expected = "the same task; what is new with another id and another batch"
            yield "changed-task", f"{name} otherwise than it was loaded", expected
        return
    if task.task in new:
        yield "repeated-task", name, "each id once"
    if not task.task or not task.task.isprintable() or t.MARK in task.task:
        yield "task-name", name, f"an id of printable characters without '{t.MARK}'"
    if task.batch in batches or not 1 <= task.batch <= _MOST_BATCHES:
        expected = "the number of a batch that was not loaded before, from 1"
        yield "old-batch", f"a new task of batch {task.batch}", expected
    if not task.is_sound:
        yield "task-item", name, UNSOUND


def _update_terms(
    connection: Connection, settings: Settings, terms: Mapping[int, Settings]
) -> None:
    changes = {name: getattr(settings, name) for name in AT_ONCE}
    for number, before in terms.items():
        after = msgspec.structs.replace(before, **changes)
        if after != before:
            row = update(t.batches).where(t.batches.c.batch == number)
            connection.execute(row.values(settings=msgspec.json.encode(after).decode()))


def _insert(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    if rows:
        connection.execute(insert(table), rows)


def _add_texts(connection: Connection, new: Iterable[Task], texts: Texts, known: Texts) -> None:
    shown = [item for task in new for item in task.items]
    asked = {item.query for item in shown} - known.queries.keys()
    docs = {doc for item in shown for doc in texts.docs_of(item)} - known.docs.keys()
    rows = [{"query": query, "text": texts.queries[query]} for query in sorted(asked)]
    _insert(connection, t.queries, rows)
    rows = [{"doc": doc, "text": texts.docs[doc]} for doc in sorted(docs)]
    _insert(connection, t.passages, rows)
    whole = {item.query for item in shown if not item.left} - known.shown.keys()
    _insert(
        connection,
        t.question_passages,
        [
            {"query": query, "position": position, "doc": doc}
            for query in sorted(whole)
            for position, doc in enumerate(texts.shown[query], 1)
        ],
    )


def _read_shown(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Return the passages of each query that is shown with all of them."""
    found: dict[str, tuple[str, ...]] = {}
    row = t.question_passages.c
    for query, doc in connection.execute(
        select(row.query, row.doc).order_by(row.query, row.position)
    ):
        found[query] = (*found.get(query, ()), doc)
    return found


def _add_tasks(connection: Connection, new: Sequence[Task]) -> None:
    if not new:
        return
    first = (connection.scalar(select(func.max(t.tasks.c.number))) or 0) + 1
    rows = [
        {"task": one.task, "batch": one.batch, "number": number, "why": one.why}
        | {"state": "open", "root": one.task, "copy": 1}
        for number, one in enumerate(new, first)
    ]
    connection.execute(insert(t.tasks), rows)
    t.add_items(connection, new, _add_pairs(connection, new))


def _add_pairs(connection: Connection, new: Iterable[Task]) -> dict[tuple[str, str, str], int]:
    rows = connection.execute(select(t.pairs.c.id, t.pairs.c.query, t.pairs.c.a, t.pairs.c.b))
    ids = {(row.query, row.a or "", row.b or ""): row.id for row in rows}
    unknown = {item.pair for task in new for item in task.items if item.answer is None} - set(ids)
    added = {pair: number for number, pair in enumerate(sorted(unknown), len(ids) + 1)}
    pair_rows = [
        {"id": number, "query": query, "a": a or None, "b": b or None}
        for (query, a, b), number in added.items()
    ]
    _insert(connection, t.pairs, pair_rows)
    return ids | added
