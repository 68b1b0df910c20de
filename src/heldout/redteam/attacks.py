"""The attacks: each a generator that yields runs and is sent what the board said of them.

An attacker knows how many queries and submissions there are, and what is published. It hears the
score that was released, or `None` for "not above". It never sees labels. Its last run is the one
that it means to keep; what counts in the end is the best score that stands on the board.

Sources: Blum and Hardt 2015 (boosting); Whitehill 2017 (decoding); Singh et al. 2025 (best of n).
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.redteam.exchange import Run, coins

__all__ = ["ATTACKS", "Attack", "Heard", "Moves", "Published", "Target"]

Heard = float | None
"""A released score, or `None` where the board said "not above"."""

Moves = Generator[Run, Heard, None]
"""Yields runs, is sent what the board said."""

_CHANGED = 0.02
"""Share of the queries that a hill-climber changes at once. Of 0.2% to 8% it gains most against the
Ladder at one standard error, and nearly most against rounded scores (docs/redteam.md)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Published:
    """Another team's run, as a reader of the board has it.

    Attributes:
        run: its choices.
        heard: the score on the page, `None` where there is none.
    """

    run: Run
    heard: Heard


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an attacker knows.

    Attributes:
        queries: how many a run must answer.
        submissions: how many runs it sends, at least 2.
        published: other teams' runs with their scores, at least one.
    """

    queries: int
    submissions: int
    published: Sequence[Published]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """An attack.

    Attributes:
        moves: how it plays.
        about: what it does, in a sentence.
    """

    moves: Callable[[Target, np.random.Generator], Moves]
    about: str


def _repeat(target: Target, rng: np.random.Generator) -> Moves:
    run = coins(rng, target.queries)
    for _ in range(target.submissions):
        yield run


def _best_of_n(target: Target, rng: np.random.Generator) -> Moves:
    for _ in range(target.submissions):
        yield coins(rng, target.queries)


def _boost(target: Target, rng: np.random.Generator) -> Moves:
    told: list[Published] = []
    for _ in range(target.submissions - 1):
        run = coins(rng, target.queries)
        heard = yield run
        told.append(Published(run=run, heard=heard))
    yield _elect(_weigh(told), told, fallback=told[0].run)


def _climb(target: Target, rng: np.random.Generator) -> Moves:
    count = max(1, round(_CHANGED * target.queries))
    changes = (
        rng.choice(target.queries, count, replace=False) for _ in range(target.submissions - 1)
    )
    yield from _keep_what_rises(coins(rng, target.queries), changes)


def _decode(target: Target, rng: np.random.Generator) -> Moves:
    start = coins(rng, target.queries)
    order = np.resize(rng.permutation(target.queries), target.submissions - 1)
    yield from _keep_what_rises(start, order[:, np.newaxis])


def _keep_what_rises(start: Run, changes: Iterable[NDArray[np.intp]]) -> Moves:
    """Change some queries of the best run so far; go on from there if the score rises."""
    best, heard = start, (yield start)
    for change in changes:
        run = best.copy()
        run[change] = ~run[change]
        said = yield run
        if said is not None and (heard is None or said > heard):
            best, heard = run, said


def _blend(target: Target, rng: np.random.Generator) -> Moves:
    """Vote of published runs by their scores, then more or less weight for one at a time."""
    others = target.published
    fallback = coins(rng, target.queries)
    weights = _weigh(others)
    scale = float(np.abs(weights).max(initial=0.0)) or 1.0
    best = yield _elect(weights, others, fallback=fallback)
    for _ in range(target.submissions - 1):
        tried = weights.copy()
        tried[rng.integers(len(others))] += scale * rng.normal()
        said = yield _elect(tried, others, fallback=fallback)
        if said is not None and (best is None or said > best):
            weights, best = tried, said


def _weigh(runs: Sequence[Published]) -> NDArray[np.float64]:
    """1 for a run above the mean of the scores that were told, -1 below, 0 for all else.

    A run below chance counts for its opposite, which must be as far above.
    """
    scores = np.array([np.nan if run.heard is None else run.heard for run in runs])
    told = ~np.isnan(scores)
    chance = scores[told].mean() if told.any() else 0.0
    return np.where(told, np.sign(np.where(told, scores, chance) - chance), 0.0)


def _elect(weights: NDArray[np.float64], runs: Sequence[Published], *, fallback: Run) -> Run:
    """What most of the weight is for; the fallback decides where no side has more."""
    votes = weights @ np.array([np.where(run.run, 1.0, -1.0) for run in runs])
    return np.where(votes == 0, fallback, votes > 0)


ATTACKS: Mapping[str, Attack] = {
    "none": Attack(moves=_repeat, about="one run, sent again and again: no attack"),
    "best of n": Attack(moves=_best_of_n, about="as many unrelated runs as there are submissions"),
    "boosting": Attack(
        moves=_boost, about="random runs; those above chance vote, those below vote against"
    ),
    "hill-climbing": Attack(
        moves=_climb, about="a few queries of the best run changed, kept if the score rises"
    ),
    "decoding": Attack(
        moves=_decode, about="one query changed at a time: what is its label? kept if it rises"
    ),
    "blending": Attack(
        moves=_blend, about="ten published runs vote by their scores; weights kept if it rises"
    ),
}
"""Every attack, in the order of the table."""
