"""What may be loaded into a campaign that runs: nothing that changes what people saw."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from heldout.errors import InputError, Problem, quote
from heldout.preferences.pool_texts import Texts, changed_text
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Task

__all__ = ["AT_ONCE", "MARK", "check_settings", "check_tasks"]

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
