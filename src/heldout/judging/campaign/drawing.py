"""Draws tasks: which pairs come together, in which order, on which side; and tests for them.

Order and sides are drawn for each copy of a task, so that they explain nothing
(Arabzadeh et al. 2021, §3.1), and stored, so that what they did can be measured.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from heldout.errors import InputError
from heldout.judging.campaign.pools import Pool, normalise
from heldout.judging.campaign.rows import Item, Task, Why
from heldout.judging.campaign.settings import Settings

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


def list_queries(pools: Iterable[Pool]) -> tuple[Pair, ...]:
    """Return each query with all passages of its pool, as a pair without documents."""
    return tuple((pool.query, "", "") for pool in pools)


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
    if len(tests) < settings.tests:
        raise InputError.of(
            code="too-few-tests",
            path="tests.jsonl",
            found=f"{len(tests)} tests",
            expected=f"at least the {settings.tests} of a task",
            hint="write pairs of a known answer and an off-topic passage",
        )
    shuffled = [pairs[place] for place in rng.permutation(len(pairs)).tolist()]
    groups = [
        shuffled[start : start + settings.pairs]
        for start in range(0, len(shuffled), settings.pairs)
    ]
    tasks = []
    for number, group in enumerate(groups, 1):
        flips = _flips(len(group), settings.judges, rng)
        for copy in range(settings.judges):
            items = [
                Item(query=query, left=b if flip else a, right=a if flip else b)
                for (query, a, b), flip in zip(group, flips[copy], strict=True)
            ]
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
    fit = [(pool, pool.known) for pool in pools if pool.known is not None]
    passages = [(pool.query, one) for pool in pools for one in pool.candidates]
    common = _common_words(pools)
    tests: list[Item] = []
    for place in rng.permutation(len(fit)).tolist():
        if len(tests) == count:
            break
        pool, known = fit[place]
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


def _flips(pairs: int, judges: int, rng: np.random.Generator) -> list[list[bool]]:
    """Copies by pairs: whether the sides are exchanged; in each pair as often as not."""
    start = rng.integers(2, size=pairs)
    sides = (np.arange(judges)[:, None] + start) % 2 == 1
    return rng.permuted(sides, axis=0).tolist()  # type: ignore[no-any-return]  # bools


def _draw_tests(
    tests: Sequence[Item], queries: set[str], count: int, rng: np.random.Generator
) -> Iterator[Item]:
    order = [tests[place] for place in rng.permutation(len(tests)).tolist()]
    order.sort(key=lambda test: test.query in queries)
    for test, flip in zip(order[:count], rng.integers(2, size=count).tolist(), strict=True):
        yield test.turned() if flip else test
