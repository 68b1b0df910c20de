"""Rows of a campaign's files: one JSON object a line, each of one kind."""

import json
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import BinaryIO, Literal, TypeVar

import msgspec
import numpy as np

from heldout.errors import Problem
from heldout.judging.campaign.settings import Money
from heldout.trec.reading.streams import Limits, TextReader, read_lines
from heldout.trec.text import ProblemLog, show

_LONGEST = 64 << 20
_SHOWN = 20
Row = TypeVar("Row", bound=msgspec.Struct)
Check = Callable[[Row, str, int], Problem | None]
"""Row, path and line -> what is wrong with a row of the right kind."""


def read_text(source: BinaryIO, *, path: str) -> bytes:
    """A file's text to its end: plain, gzip, bzip2 or zstd; lines of up to 64 MiB.

    Raises:
        InputError: those of `TextReader`.
    """
    with TextReader(source, path=path, limits=Limits(line_bytes=_LONGEST)) as reader:
        return b"".join(block.text for block in reader.blocks())


def parse_rows(
    data: bytes, kind: type[Row], *, path: str, check: Check[Row] | None = None
) -> tuple[Row, ...]:
    """The rows of a file, as `read_text` gave its text or as it lies.

    Empty lines are skipped, and an empty file has no row.

    Args:
        data: the text.
        kind: of each row.
        path: for messages.
        check: what is wrong with a row of this kind; called in order.

    Raises:
        InputError: code `bad-row`: the lines that are no JSON object of this kind; what `check`
            finds; and those of `TextReader`.
    """
    if not data.strip():
        return ()
    limits = Limits(line_bytes=_LONGEST)
    log, rows = ProblemLog(limits.problems), []
    decoder = msgspec.json.Decoder(kind)
    with TextReader(BytesIO(data), path=path, limits=limits) as reader:
        for number, line in read_lines(reader):
            if not line.strip():
                continue
            try:
                row = decoder.decode(line)
                json.loads(line, object_pairs_hook=_refuse_repeated)
            except (msgspec.MsgspecError, RecursionError, _RepeatedKeyError) as error:
                log.add(_bad(error, line, path, number, kind))
                continue
            problem = None if check is None else check(row, path, number)
            if problem is None:
                rows.append(row)
            else:
                log.add(problem)
    log.raise_errors()
    return tuple(rows)


def format_rows(rows: Iterable[msgspec.Struct]) -> bytes:
    """One JSON object a line, in the order given; keys in the order of the kind's fields."""
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise the first twenty problems, with the count of each code, if there are any.

    Raises:
        InputError: if there are.
    """
    log = ProblemLog(_SHOWN)
    log.extend(problems)
    log.raise_errors()


def hidden_name(names: Iterable[str], *, path: str, line: int) -> Problem | None:
    """The first id that nobody sees whole: control characters, line ends, marks of direction.

    Returns:
        Code `bad-row`; `None` where all can be read.
    """
    hidden = next((name for name in names if not name.isprintable()), None)
    if hidden is None:
        return None
    hint = "control characters, line ends and marks of direction are not seen"
    return Problem.of("bad-row", path, show(hidden), "ids of visible characters", hint, line=line)


class _RepeatedKeyError(ValueError):
    """An object has a key twice: readers differ in which value they take."""


def _refuse_repeated(pairs: list[tuple[str, object]]) -> None:
    """Refuse an object with a key twice, of which the last would silently count.

    Raises:
        _RepeatedKeyError: names the key.
    """
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        key = next(key for key in keys if keys.count(key) > 1)
        raise _RepeatedKeyError(f"the key {show(key)} stands there {keys.count(key)} times")


def _bad(error: Exception, line: bytes, path: str, number: int, kind: type) -> Problem:
    fields = ", ".join(field.name for field in msgspec.structs.fields(kind) if field.required)
    expected = f"a JSON object with {fields}"
    return Problem.of("bad-row", path, show(line), expected, str(error), line=number)


# Tasks: what one worker does in one go; ten pairs and three tests (Arabzadeh et al. 2021, §3.1).

Why = Literal["pool", "challenge"]
"""Why a pair is judged: it lies in a pool; a new run's top challenges the best known answer."""


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pair as it is shown, or a query with all passages of its pool.

    Attributes:
        query: its id.
        left: id of passage A, shown left (above, on a phone); empty for a query with all passages.
        right: id of passage B; empty with `left`.
        answer: of a test, the passage to be preferred; `None` for a pair that nobody knows.
    """

    query: str
    left: str
    right: str
    answer: str | None = None

    @property
    def pair(self) -> tuple[str, str, str]:
        """Query and the two ids, the lesser first: the same whatever the sides."""
        return (self.query, min(self.left, self.right), max(self.left, self.right))

    def turned(self) -> "Item":
        """The same with its sides exchanged."""
        return Item(query=self.query, left=self.right, right=self.left, answer=self.answer)


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pairs in the order shown.

    Attributes:
        task: its id, unique in the campaign.
        items: in order.
        why: why its pairs are judged.
        batch: which drawing of tasks it came from, from 1.
    """

    task: str
    items: tuple[Item, ...]
    why: Why = "pool"
    batch: int = 1

    @property
    def is_sound(self) -> bool:
        """Whether it has items, each of two passages with an answer of these, and no pair twice."""
        unknown = [item.pair for item in self.items if item.answer is None]
        return (
            bool(self.items)
            and len(unknown) == len(set(unknown))
            and all(
                item.left != item.right and item.answer in (item.left, item.right, None)
                if item.left or item.right
                else item.answer is None
                for item in self.items
            )
        )


UNSOUND = "items of two different passages, an answer of these, no pair twice"
"""What is expected of a task's items; see `Task.is_sound`."""


def task_check() -> Check[Task]:
    """A check of the tasks of one file, in order.

    Returns:
        A function that finds `repeated-task`, `task-item`: see `Task.is_sound`, and `bad-row`: an
        id that nobody sees whole.
    """
    seen: set[str] = set()

    def check(task: Task, path: str, line: int) -> Problem | None:
        code = expected = ""
        if task.task in seen:
            code, expected = "repeated-task", "each id once"
        elif not task.is_sound:
            code, expected = "task-item", UNSOUND
        seen.add(task.task)
        if code:
            found = show(task.task)
            return Problem.of(code=code, path=path, line=line, found=found, expected=expected)
        names = [name for item in task.items for name in (item.query, item.left, item.right)]
        return hidden_name((task.task, *names), path=path, line=line)

    return check


State = Literal["consented", "submitted", "exited", "expired"]
"""Of an assignment, a task in the hands of a worker. `consented`: under way. `submitted`: finished.
`exited`: the worker stopped. `expired`: no answer came before the lease ended."""


def amount_owed(*, reward: Money, answered: int, items: int) -> Money:
    """Return what a worker has earned: the reward by the share that was answered, rounded up.

    Args:
        reward: for the whole task.
        answered: how many items have an answer, with or without a preference.
        items: how many there are, at least 1.

    Source: Arabzadeh et al. 2021, §3.3, leaves the formula open.
    """
    return -(-reward * answered // items)


def copy_task(task: Task, *, name: str, same_sides: bool, rng: np.random.Generator) -> Task:
    """The same pairs for another worker, in a new order.

    Args:
        task: what another worker did not finish, or what does not count.
        name: id of the copy.
        same_sides: whether pairs that nobody knows keep their sides: where the copies of a task
            balance them exactly, a copy in the place of another has to show them alike. The sides
            of tests are drawn again.
        rng: where order and sides come from.
    """
    order = rng.permutation(len(task.items))
    turned = rng.random(len(task.items)) < 0.5  # noqa: PLR2004 - a fair coin
    items = tuple(
        item.turned() if turn and not (same_sides and item.answer is None) else item
        for item, turn in zip((task.items[index] for index in order), turned, strict=True)
    )
    return Task(task=name, items=items, why=task.why, batch=task.batch)
