"""The attacks: each a generator that yields runs and is sent what the board said of them.

An attacker knows how many queries and submissions there are, and what is published. It hears the
score that was released, or `None` for "not above". It never sees labels. Its last run is the one
that it means to keep; what counts in the end is the best score that stands on the board.

Sources: Blum and Hardt 2015 (boosting); Whitehill 2017 (decoding); Singh et al. 2025 (best of n).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.redteam.exchange import Run, coins, guess

__all__ = ["ATTACKS", "Attack", "Heard", "Moves", "Published", "Target"]

Heard = float | None
"""A released score, or `None` where the board said "not above"."""

Moves = Generator[Run, Heard, None]
"""Yields runs, is sent what the board said."""

_CHANGED = 0.02
"""Share of the queries that a hill-climber changes at once. Of 0.2% to 8% it gains most against the
Ladder at one standard error, and nearly most against rounded scores (docs/redteam.md)."""

_STEPS, _ANSWERED = 30, 0.9
"""Runs of a sandbagger before the whole one, and the share of queries that the last of them
answers. The rest makes the whole one a clear rise, whatever the votes are worth."""


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
        partial: whether a query without an answer (0) is left out of the run, not spoilt: a board
            that asks for every query refuses such a run before it is scored.
    """

    moves: Callable[[Target, np.random.Generator], Moves]
    about: str
    partial: bool = False


def _repeat(target: Target, rng: np.random.Generator) -> Moves:
    run = guess(rng, target.queries)
    for _ in range(target.submissions):
        yield run


def _best_of_n(target: Target, rng: np.random.Generator) -> Moves:
    for _ in range(target.submissions):
        yield guess(rng, target.queries)


def _boost(target: Target, rng: np.random.Generator) -> Moves:
    told: list[Published] = []
    for _ in range(target.submissions - 1):
        run = guess(rng, target.queries)
        heard = yield run
        told.append(Published(run=run, heard=heard))
    yield _elect(_weigh(told), told, fallback=told[0].run)


def _climb(target: Target, rng: np.random.Generator) -> Moves:
    start = guess(rng, target.queries)
    yield from _keep_what_rises(start, _changes(target, rng, target.submissions - 1))


def _changes(target: Target, rng: np.random.Generator, count: int) -> Iterator[NDArray[np.intp]]:
    size = max(1, round(_CHANGED * target.queries))
    return (rng.choice(target.queries, size, replace=False) for _ in range(count))


def _decode(target: Target, rng: np.random.Generator) -> Moves:
    start = guess(rng, target.queries)
    order = np.resize(rng.permutation(target.queries), target.submissions - 1)
    yield from _keep_what_rises(start, order[:, np.newaxis])


def _ask_alone(target: Target, rng: np.random.Generator) -> Moves:
    """Answer a single query, one way and then the other, and no query else: its label is told.

    What was read goes into a whole run; choices that were not read are guessed.
    """
    final = guess(rng, target.queries)
    asked = (target.submissions - 1) // 2
    for query in np.resize(rng.permutation(target.queries), asked):
        run = np.zeros_like(final)
        run[query] = 1
        first = yield run
        second = yield -run
        if first is not None and second is not None and first != second:
            final[query] = 1 if first > second else -1
    for _ in range(target.submissions - 2 * asked):
        yield final


def _keep_what_rises(start: Run, changes: Iterable[NDArray[np.intp]]) -> Moves:
    """Change some queries of the best run so far; go on from there if the score rises."""
    best, heard = start, (yield start)
    for change in changes:
        run = best.copy()
        run[change] = -run[change]
        said = yield run
        if said is not None and (heard is None or said > heard):
            best, heard = run, said


def _sandbag(target: Target, rng: np.random.Generator) -> Moves:
    """Spoil most queries at first and fewer each time, so that every score is a rise and is told.

    Between two runs that were told some choices changed, and the score rose more or less than by
    the queries that were added: the changes vote by that. Then the whole run is sent.
    """
    steps = min(_STEPS, target.submissions - 1)
    order = rng.permutation(target.queries)
    choice = guess(rng, target.queries)
    told = [Published(run=np.zeros_like(choice), heard=0.0)]
    for step in range(1, steps + 1):
        fresh = guess(rng, target.queries)
        choice = np.where(coins(rng, target.queries), fresh, choice)
        run = choice.copy()
        run[order[round(_ANSWERED * target.queries * step / steps) :]] = 0
        heard = yield run
        if heard is not None:
            told.append(Published(run=run, heard=heard))
    votes = _compare(told)
    final = np.where(votes == 0, choice, np.sign(votes)).astype(np.int8)
    yield from _keep_what_rises(final, _changes(target, rng, target.submissions - 1 - steps))


def _compare(told: Sequence[Published]) -> NDArray[np.float64]:
    """Votes for choices by what the score rose from one run to the next, beyond its growth."""
    runs = np.array([run.run for run in told], np.float64)
    scores = np.array([run.heard for run in told], np.float64)
    answered = np.abs(runs).sum(axis=1)
    growth = scores[-1] / max(answered[-1], 1.0)
    votes: NDArray[np.float64] = np.diff(runs, axis=0).T @ (
        np.diff(scores) - growth * np.diff(answered)
    )
    return votes


def _blend(target: Target, rng: np.random.Generator) -> Moves:
    """Vote of published runs by their scores, then more or less weight for one at a time."""
    others = target.published
    fallback = guess(rng, target.queries)
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
    votes = weights @ np.array([run.run for run in runs], np.float64)
    return np.where(votes == 0, fallback, np.sign(votes)).astype(np.int8)


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
    "partial runs": Attack(
        moves=_ask_alone,
        about="one query answered at a time, both ways, and the others left out",
        partial=True,
    ),
    "spoilt runs": Attack(
        moves=_ask_alone,
        about="the same with complete runs: the others answered with documents beside them",
    ),
    "sandbagging": Attack(
        moves=_sandbag, about="runs that are spoilt less and less, so that all of them are told"
    ),
    "blending": Attack(
        moves=_blend, about="ten published runs vote by their scores; weights kept if it rises"
    ),
}
"""Every attack, in the order of the table."""
