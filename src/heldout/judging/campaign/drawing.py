"""The next tasks: which pairs are judged, together, in which order, on which side; tests for them.

Order and sides are drawn for each copy of a task, so that they explain nothing
(Arabzadeh et al. 2021, §3.1), and stored, so that what they did can be measured.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import msgspec
import numpy as np

from heldout.errors import InputError
from heldout.judging.campaign.judgments import (
    Judgment,
    PairVotes,
    count_votes,
    counted,
    honest_answers,
)
from heldout.judging.campaign.pools import Pool, normalise, stand_for
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
            "too-few-tests", "tests.jsonl", f"{len(tests)} tests", tests=settings.tests
        )
    shuffled = [pairs[index] for index in rng.permutation(len(pairs)).tolist()]
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
            shown = tuple(items[index] for index in order)
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
    for index in rng.permutation(len(fit)).tolist():
        if len(tests) == count:
            break
        pool, known = fit[index]
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
    order = [tests[index] for index in rng.permutation(len(tests)).tolist()]
    order.sort(key=lambda test: test.query in queries)
    for test, flip in zip(order[:count], rng.integers(2, size=count).tolist(), strict=True):
        yield test.turned() if flip else test


# Fewer judgments: the best passage so far against one challenger after another.
#
# Who is ahead by `lead` votes wins the duel; after `cap` answers who is ahead wins it, and the
# passage that was best so far where nobody is. The loser is not shown again. Which pairs are wanted
# next follows from the judgments alone, so a search can be stopped and gone on with at any time.
#
# Who comes first has to win the most duels: of five passages that are equally good the first stays
# best once in 16 times, the last every second time. So passages meet in an order that has nothing
# to do with who is the known answer: if that came first, luck alone would nearly always replace it.
#
# Stopping when somebody leads makes shares of votes look larger than they are: the votes say who is
# best, and not by how much.


Duel = tuple[str, str]

_NONE = PairVotes(first=0, second=0)


Wanted = Mapping[Pair, int]
"""Pairs to be judged next -> how many people have to judge each before anything can be decided."""


@dataclass(frozen=True, slots=True)
class Search:
    """How far the search for a query's best passage has come.

    Attributes:
        best: the best passage so far.
        challenger: the passage that it meets now; `None` when all have been met.
        wanted: answers that this duel still needs at least; 0 when all have been met.
    """

    best: str
    challenger: str | None
    wanted: int


def search(
    passages: Sequence[str],
    votes: Mapping[Duel, PairVotes],
    *,
    lead: int,
    cap: int,
    answers: Mapping[Duel, int] | None = None,
) -> Search:
    """Follow the duels of a pool as far as they are decided.

    Args:
        passages: in the order in which they meet, at least one; the first is the best so far.
        votes: by pair, the lesser id first.
        lead: votes ahead that win a duel.
        cap: answers that end it.
        answers: by pair, with those that preferred neither; `None` where these are the votes.
    """
    best = passages[0]
    for challenger in passages[1:]:
        pair = (min(best, challenger), max(best, challenger))
        found = votes.get(pair, _NONE)
        ahead = (found.second - found.first) * (1 if challenger == pair[1] else -1)
        given = found.total if answers is None else max(found.total, answers.get(pair, 0))
        if abs(ahead) < lead and given < cap:
            wanted = min(lead - abs(ahead), cap - given)
            return Search(best, challenger, wanted)
        if ahead > 0:
            best = challenger
    return Search(best, None, 0)


def meeting_order(pool: Pool) -> tuple[str, ...]:
    """The passages of a pool as they meet: mixed, and the same whenever it is asked."""

    def index(doc: str) -> bytes:
        return hashlib.sha256(f"{pool.query}\n{doc}".encode()).digest()

    return tuple(sorted((one.doc for one in pool.candidates), key=index))


def count_answers(judgments: Iterable[Judgment], settings: Settings) -> Mapping[Pair, int]:
    """Pair -> answers that count, with those of honest judges who preferred neither.

    A pair that nobody can decide has to come to its cap too.
    """
    honest = honest_answers(judgments, exclusion=settings.exclusion, failures=settings.failures)
    return Counter(one.pair for one in honest if one.answer is None)


# The next batch of a campaign; of a sequential one what the judgments so far make worth asking.


def count_planned(tasks: Iterable[Task]) -> Mapping[Pair, int]:
    """Pair -> tasks that have it."""
    return Counter(item.pair for task in tasks for item in task.items if item.answer is None)


def plan_batch(
    pools: Sequence[Pool],
    judgments: Sequence[Judgment],
    settings: Settings,
    *,
    planned: Mapping[Pair, int],
) -> Wanted:
    """Choose the pairs to be judged next; none when all is done, or while answers are to come.

    Args:
        pools: the passages of each query; one pair of each at most is wanted.
        judgments: all that were recorded.
        settings: lead, cap, judges, and what failed tests exclude.
        planned: pair -> copies that are in tasks already, as `count_planned` gives it. A pair that
            waits for answers is not asked again.
    """
    valid = counted(judgments, exclusion=settings.exclusion, failures=settings.failures)
    votes = count_votes(valid, same=stand_for(pools))
    answers = count_answers(judgments, settings)
    waiting = {pair for pair, count in planned.items() if count > answers.get(pair, 0)}
    given: defaultdict[str, dict[Duel, int]] = defaultdict(dict)
    for (query, *duel), count in answers.items():
        given[query][duel[0], duel[1]] = count
    wanted: dict[Pair, int] = {}
    for pool in pools:
        found = search(
            meeting_order(pool),
            votes.get(pool.query, {}),
            lead=settings.lead,
            cap=settings.cap,
            answers=given[pool.query],
        )
        if found.challenger is not None:
            first, second = sorted((found.best, found.challenger))
            if (pool.query, first, second) not in waiting:
                wanted[pool.query, first, second] = found.wanted
    return wanted


def missing_votes(pairs: Iterable[Pair], judges: int, *, planned: Mapping[Pair, int]) -> Wanted:
    """Return how many tasks each pair is missing until it has one for each judge.

    Args:
        pairs: different ones.
        judges: how many people judge each pair.
        planned: pair -> copies that are in tasks already, as `count_planned` gives it.
    """
    missing = {pair: judges - planned.get(pair, 0) for pair in pairs}
    return {pair: votes for pair, votes in missing.items() if votes > 0}


def draw_batch(
    wanted: Wanted,
    tests: Sequence[Item],
    settings: Settings,
    *,
    seed: int,
    batch: int,
    why: Why = "pool",
) -> tuple[Task, ...]:
    """Tasks for what is wanted: pairs that want as many votes stand in the same tasks.

    Args:
        wanted: pairs, in the order in which they are drawn from.
        tests: to draw from.
        settings: how many pairs and tests a task has.
        seed: with the number of the batch the only chance there is.
        batch: number of the first batch; each number of votes is a batch of its own.
        why: why the pairs are judged.

    Raises:
        InputError: code `too-few-tests`: fewer than a task needs.
    """
    tasks: list[Task] = []
    for number, votes in enumerate(dict.fromkeys(wanted.values()), batch):
        tasks += draw_tasks(
            [pair for pair, count in wanted.items() if count == votes],
            tests,
            msgspec.structs.replace(settings, judges=votes),
            rng=np.random.Generator(np.random.PCG64([seed, number])),
            batch=number,
            why=why,
        )
    return tuple(tasks)
