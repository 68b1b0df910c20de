"""The next batch of a campaign; of a sequential one what the judgments so far make worth asking.

Three ways: duels of the best so far with one challenger after another; pruning, for large pools;
Thompson sampling, for large pools too. `simulation` tells what each finds and costs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np
from numpy.random import Generator

from heldout.preferences.contests import stand_for
from heldout.preferences.drawing import Pair, draw_tasks
from heldout.preferences.judgments import Judgment, counted
from heldout.preferences.large_pools import VOTES_EACH, choose_pairs, prune
from heldout.preferences.pools import Pool
from heldout.preferences.sequential import Wanted, count_answers, next_pairs
from heldout.preferences.settings import Settings
from heldout.preferences.tasks import Item, Task
from heldout.preferences.votes import PairVotes, count_votes

__all__ = ["Method", "count_planned", "draw_batch", "missing_votes", "plan_batch"]

Method = Literal["duels", "pruning", "thompson"]
"""How the pairs that are judged next are chosen."""

_NONE = PairVotes(first=0, second=0)
Duel = tuple[str, str]


def count_planned(tasks: Iterable[Task]) -> Mapping[Pair, int]:
    """Pair -> tasks that have it."""
    return Counter(item.pair for task in tasks for item in task.items if item.answer is None)


def plan_batch(
    pools: Sequence[Pool],
    judgments: Sequence[Judgment],
    settings: Settings,
    *,
    planned: Mapping[Pair, int],
    rng: Generator,
    method: Method = "duels",
) -> tuple[Wanted, ...]:
    """Pairs to be judged next; none when all is done, or while answers are still to come.

    Args:
        pools: the passages of each query.
        judgments: all that were recorded.
        settings: lead, cap, judges, and what failed tests exclude.
        planned: pair -> copies that are in tasks already, as `count_planned` gives it. A pair that
            waits for answers is not asked again.
        rng: where Thompson sampling draws from.
        method: how pairs are chosen.
    """
    if method == "duels":
        return next_pairs(pools, judgments, settings, planned=planned)
    valid = counted(judgments, exclusion=settings.exclusion, failures=settings.failures)
    votes = count_votes(valid, same=stand_for(pools))
    answers = count_answers(judgments, settings)
    waiting = {pair[0] for pair, count in planned.items() if count > answers.get(pair, 0)}
    asked: Counter[str] = Counter()
    for pair, count in answers.items():
        asked[pair[0]] += count
    wanted: list[Wanted] = []
    for pool in pools:
        if pool.query in waiting:
            continue
        found = votes.get(pool.query, {})
        given_up = _given_up(pool, answers, settings.cap)
        names = [one.doc for one in pool.candidates]
        if method == "pruning":
            pairs = prune(pool.query, names, dict.fromkeys(given_up, _NONE) | dict(found)).wanted
        elif asked[pool.query] < VOTES_EACH * len(names):
            pairs = choose_pairs(
                names,
                found,
                count=max(1, len(names) // 2),
                cap=settings.cap,
                rng=rng,
                closed=given_up,
            )
        else:
            pairs = ()
        each = settings.judges if method == "pruning" else 1
        wanted += [Wanted(pair=(pool.query, *pair), votes=each) for pair in pairs]
    return tuple(wanted)


def missing_votes(
    pairs: Iterable[Pair], judges: int, *, planned: Mapping[Pair, int]
) -> tuple[Wanted, ...]:
    """How many tasks each pair is missing until it has one for each judge.

    Args:
        pairs: different ones.
        judges: how many people judge each pair.
        planned: pair -> copies that are in tasks already, as `count_planned` gives it.
    """
    return tuple(
        Wanted(pair=pair, votes=judges - planned.get(pair, 0))
        for pair in pairs
        if planned.get(pair, 0) < judges
    )


def draw_batch(
    wanted: Sequence[Wanted],
    tests: Sequence[Item],
    settings: Settings,
    *,
    seed: int,
    batch: int,
) -> tuple[Task, ...]:
    """Tasks for what is wanted: pairs that want as many votes stand in the same tasks.

    Args:
        wanted: different pairs.
        tests: to draw from.
        settings: how many pairs and tests a task has.
        seed: with the number of the batch the only chance there is.
        batch: number of the first batch; each number of votes is a batch of its own.

    Raises:
        InputError: code `too-few-tests`: fewer than a task needs.
    """
    tasks: list[Task] = []
    numbers = sorted({one.votes for one in wanted})
    for place, votes in enumerate(numbers):
        pairs = [one.pair for one in wanted if one.votes == votes]
        tasks += draw_tasks(
            pairs,
            tests,
            msgspec.structs.replace(settings, judges=votes),
            rng=np.random.Generator(np.random.PCG64([seed, batch + place])),
            batch=batch + place,
        )
    return tuple(tasks)


def _given_up(pool: Pool, answers: Mapping[Pair, int], cap: int) -> set[Duel]:
    """Pairs that have so many answers that it is no use to ask again."""
    names = sorted(one.doc for one in pool.candidates)
    return {pair for pair in combinations(names, 2) if answers.get((pool.query, *pair), 0) >= cap}
