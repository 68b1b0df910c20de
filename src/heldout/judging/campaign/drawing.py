"""Draws tasks: which pairs come together, in which order, on which side; and tests for them.

Order and sides are drawn anew for each copy of a task, so that they explain nothing
(Arabzadeh et al. 2021, §3.1), and stored, so that what they did can be measured.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from heldout.errors import InputError, Problem
from heldout.judging.campaign.pools import Pool, normalise
from heldout.judging.campaign.rows import Check, Item, Task, Why, name_fault
from heldout.judging.campaign.settings import Settings
from heldout.trec.problems import show

Pair = tuple[str, str, str]
"""Query and two documents, the lesser first."""

_WORD = re.compile(r"\w{3,}")
_TRIES = 200
_COMMON = 0.1
_FEW_POOLS = 5


def list_pairs(pools: Iterable[Pool]) -> tuple[Pair, ...]:
    """All pairs of all pools, by pool."""
    return tuple(
        (pool.query, *sorted((one.doc, other.doc)))  # type: ignore[misc]  # two of them
        for pool in pools
        for one, other in combinations(pool.candidates, 2)
    )


def draw_tasks(
    pairs: Sequence[Pair],
    tests: Sequence[Item],
    settings: Settings,
    *,
    rng: np.random.Generator,
    batch: int = 1,
    why: Why = "pool",
) -> tuple[Task, ...]:
    """Put pairs into tasks: each pair once for each judge.

    Copies of a task have the same pairs, in an order of their own; over an even number of copies
    each passage is on each side equally often, over an odd one once more. Tests are drawn for each
    task, of other queries than its pairs' where there are enough.

    Args:
        pairs: different ones.
        tests: to draw from.
        settings: how many pairs, tests and judges.
        rng: the only chance there is: the same state gives the same tasks.
        batch: part of the tasks' ids.
        why: why the pairs are judged.

    Raises:
        InputError: code `too-few-tests`: fewer than a task needs.
    """
    _check_tests(tests, settings)
    shuffled = [pairs[place] for place in rng.permutation(len(pairs)).tolist()]
    groups = [
        shuffled[start : start + settings.pairs]
        for start in range(0, len(shuffled), settings.pairs)
    ]
    tasks = []
    for number, group in enumerate(groups, 1):
        flips = _flips(len(group), settings.judges, rng)
        for copy in range(settings.judges):
            items = [_item(pair, flip) for pair, flip in zip(group, flips[copy], strict=True)]
            items += _draw_tests(tests, {pair[0] for pair in group}, settings.tests, rng)
            order = rng.permutation(len(items)).tolist()
            name = f"{batch}-{number:05}-{copy + 1}"
            shown = tuple(items[place] for place in order)
            tasks.append(Task(task=name, items=shown, why=why, batch=batch))
    return tuple(tasks)


def propose_tests(
    pools: Sequence[Pool], *, count: int, rng: np.random.Generator
) -> tuple[Item, ...]:
    """Known answers against passages of other queries that share no word with query or answer.

    Words of many pools, such as "the", say nothing of a topic and may be shared. Proposals:
    somebody should look at them before anybody is judged by them.

    Args:
        pools: with texts.
        count: how many to find, each of another query.
        rng: draws queries and passages.

    Returns:
        So many, or fewer where there are not enough.
    """
    fit = [pool for pool in pools if pool.known is not None]
    passages = [(pool.query, one) for pool in pools for one in pool.candidates]
    common = _common_words(pools)
    tests: list[Item] = []
    for place in rng.permutation(len(fit)).tolist():
        if len(tests) == count:
            break
        pool, known = fit[place], fit[place].known
        if known is None:
            continue
        own = _words(known.text) - common
        words = own | (_words(pool.text) - common)
        for choice in rng.integers(len(passages), size=_TRIES).tolist():
            query, off = passages[choice]
            other = _words(off.text) - common
            if query != pool.query and own and other and not words & other:
                tests.append(
                    Item(query=pool.query, left=known.doc, right=off.doc, answer=known.doc)
                )
                break
    return tuple(tests)


def _common_words(pools: Sequence[Pool]) -> set[str]:
    """Words in the passages of more than a tenth of the pools, and of more than a few."""
    counts: Counter[str] = Counter()
    for pool in pools:
        counts.update(set().union(*(_words(one.text) for one in pool.candidates)))
    most = max(_FEW_POOLS, _COMMON * len(pools))
    return {word for word, count in counts.items() if count > most}


def _words(text: str) -> set[str]:
    return set(_WORD.findall(normalise(text)))


def _check_tests(tests: Sequence[Item], settings: Settings) -> None:
    if len(tests) < settings.tests:
        raise InputError(
            Problem(
                code="too-few-tests",
                path="tests.jsonl",
                found=f"{len(tests)} tests",
                expected=f"at least the {settings.tests} of a task",
                hint="write pairs of a known answer and an off-topic passage",
            )
        )


def _flips(pairs: int, judges: int, rng: np.random.Generator) -> list[list[bool]]:
    """Copies by pairs: whether the sides are exchanged; in each pair as often as not."""
    start = rng.integers(2, size=pairs)
    sides = (np.arange(judges)[:, None] + start) % 2 == 1
    return rng.permuted(sides, axis=0).tolist()  # type: ignore[no-any-return]  # bools


def _item(pair: Pair, flip: bool) -> Item:  # noqa: FBT001 - drawn
    query, a, b = pair
    return Item(query=query, left=b if flip else a, right=a if flip else b)


def _draw_tests(
    tests: Sequence[Item], queries: set[str], count: int, rng: np.random.Generator
) -> Iterator[Item]:
    order = [tests[place] for place in rng.permutation(len(tests)).tolist()]
    order.sort(key=lambda test: test.query in queries)
    for test, flip in zip(order[:count], rng.integers(2, size=count).tolist(), strict=True):
        yield (
            test
            if not flip
            else Item(query=test.query, left=test.right, right=test.left, answer=test.answer)
        )


# What JSON alone allows and a campaign does not: pools and tasks that contradict themselves.


def pool_check() -> Check[Pool]:
    """A check of the pools of one file, in order.

    Returns:
        A function that finds `repeated-query`, `empty-pool`, `repeated-document` (ids of one text
        count too), `repeated-answer`: two known answers, and `bad-row`: an id that nobody sees
        whole.
    """
    seen: set[str] = set()

    def check(pool: Pool, path: str, line: int) -> Problem | None:
        names = [doc for one in pool.candidates for doc in (one.doc, *one.same)]
        twice = [doc for doc, count in Counter(names).items() if count > 1]
        code = found = expected = ""
        if pool.query in seen:
            code, found, expected = "repeated-query", pool.query, "a pool for each query once"
        elif not pool.candidates:
            code, found, expected = "empty-pool", pool.query, "a pool of at least one passage"
        elif twice:
            code, found, expected = "repeated-document", twice[0], "each document of a pool once"
        elif sum(one.known for one in pool.candidates) > 1:
            code, found, expected = "repeated-answer", pool.query, "one known answer in a pool"
        seen.add(pool.query)
        if code:
            return Problem(code=code, path=path, line=line, found=show(found), expected=expected)
        return name_fault((pool.query, *names), path=path, line=line)

    return check


def task_check() -> Check[Task]:
    """A check of the tasks of one file, in order.

    Returns:
        A function that finds `repeated-task`, `task-item`: no item, a passage against itself, an
        answer that is neither, or a pair twice; and `bad-row`: an id that nobody sees whole.
    """
    seen: set[str] = set()

    def check(task: Task, path: str, line: int) -> Problem | None:
        code = expected = ""
        if task.task in seen:
            code, expected = "repeated-task", "each id once"
        elif not _fits(task):
            code = "task-item"
            expected = "items of two different passages, an answer of these, no pair twice"
        seen.add(task.task)
        if code:
            found = show(task.task)
            return Problem(code=code, path=path, line=line, found=found, expected=expected)
        names = [name for item in task.items for name in (item.query, item.left, item.right)]
        return name_fault((task.task, *names), path=path, line=line)

    return check


def _fits(task: Task) -> bool:
    unknown = [item.pair for item in task.items if item.answer is None]
    return (
        bool(task.items)
        and len(unknown) == len(set(unknown))
        and all(
            item.left != item.right and item.answer in (item.left, item.right, None)
            for item in task.items
        )
    )
