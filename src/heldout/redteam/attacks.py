"""The attacks: each a generator that yields runs and is sent the board's answers.

An attacker knows how many queries and submissions there are, the rule, how good its systems and
the best baseline are on the whole (from the dev set), and which queries every system gets right.
It may send each run under a new name, but no rule knows names. It never sees labels. Its last run
is the best that it can build.

Sources: Blum and Hardt 2015 (votes, climbing); Whitehill 2017 (decoding).
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from heldout.redteam.boards import Answer
from heldout.redteam.releases import COPIED, Run, Scores, guess

_CHANGED = 0.02
"""Share of the queries that a hill-climber changes at once: of .2% to 8% it gains most, or nearly,
against rounded scores."""

_RAMP = 30
"""Runs of a sandbagger before it climbs."""


Moves = Generator[Run, Answer, None]
"""Yields what answers each query, is sent the answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """What an attacker knows.

    Attributes:
        submissions: how many runs it sends, at least 3.
        typical: expected score of each query under its systems; only sums are used.
        sure: the queries that every system gets right.
        unit: u, the standard error of the difference of its two systems on the queries that rank.
        share: of the queries, those that rank; nobody knows which.
        baseline: score of the best baseline.
        noise: standard deviation of the noise in the number beside the score; infinite where that
            number says nothing of the queries that rank.
        margin: standard error of a difference -> how far above the run before one has to lie to be
            published half the time.
    """

    submissions: int
    typical: Scores
    sure: NDArray[np.intp]
    unit: float
    baseline: float
    noise: float
    margin: Callable[[float], float]
    share: float = 1.0

    @property
    def queries(self) -> int:
        """How many a run answers."""
        return len(self.typical)

    @property
    def level(self) -> float:
        """Expected score of a run that spoils nothing."""
        return float(self.typical.mean())

    def hear(self, answer: Answer) -> float | None:
        """The number that an answer holds of the queries that rank, if any."""
        if answer.score is not None or self.noise == np.inf:
            return answer.score
        return answer.other

    def luck(self, answer: Answer, level: float) -> float | None:
        """What a number says of a run's luck, in u: less where there is noise in it.

        Args:
            answer: the board's.
            level: the score that the run would have with no luck at all.
        """
        heard = self.hear(answer)
        if heard is None:
            return None
        noise = 0.0 if answer.score is not None else self.noise / self.unit
        return (heard - level) / self.unit * 0.25 / (0.25 + noise**2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """An attack.

    Attributes:
        moves: how it plays.
        about: what it does, in a sentence.
    """

    moves: Callable[[Target, np.random.Generator], Moves]
    about: str


@dataclass(slots=True)
class _Votes:
    """Runs with weights; most of the weight wins each query."""

    runs: list[Run] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)

    def add(self, run: Run, weight: float) -> None:
        if weight:
            self.runs.append(run)
            self.weights.append(weight)

    def elect(self, otherwise: Run) -> Run:
        if not self.runs:
            return otherwise
        votes = np.array(self.weights, np.float32) @ np.array(self.runs, np.float32)
        return np.where(votes == 0, otherwise, np.sign(votes)).astype(np.int8)


def _lucks(target: Target, answers: Sequence[Answer], levels: Sequence[float]) -> list[float]:
    """What the answers say of the luck of runs, in u, against that of the others.

    A number says it. That nothing was published says that the luck was below.

    Args:
        target: what is known.
        answers: of the runs.
        levels: the scores that they would have with no luck at all.
    """
    found = list(map(target.luck, answers, levels))
    known = [luck for luck in found if luck is not None]
    if not known:
        return [0.0] * len(found)
    if len(known) == len(found):
        middle = sum(known) / len(known) if len(known) > 1 else 0.0
        return [luck - middle for luck in known]
    rest = -max(sum(known), 0.1) / (len(found) - len(known))
    return [rest if luck is None else luck for luck in found]


def _repeat(target: Target, rng: np.random.Generator) -> Moves:
    run = guess(rng, target.queries)
    for _ in range(target.submissions):
        yield run


def _best_of_n(target: Target, rng: np.random.Generator) -> Moves:
    for _ in range(target.submissions):
        yield guess(rng, target.queries)


def _vote(target: Target, rng: np.random.Generator, *, weighted: bool) -> Moves:
    """Random runs vote by what was said of them; the vote is the last run."""
    runs, answers = [], []
    for _ in range(target.submissions - 1):
        run = guess(rng, target.queries)
        answers.append((yield run))
        runs.append(run)
    votes = _Votes()
    levels = [target.level] * len(runs)
    for run, luck in zip(runs, _lucks(target, answers, levels), strict=True):
        votes.add(run, luck if weighted else float(np.sign(luck)))
    yield votes.elect(guess(rng, target.queries))


def _climb(target: Target, rng: np.random.Generator) -> Moves:
    start = guess(rng, target.queries)
    yield from _keep_what_rises(target, start, _changes(target, rng, target.submissions - 2))


def _decode(target: Target, rng: np.random.Generator) -> Moves:
    start = guess(rng, target.queries)
    order = np.resize(rng.permutation(target.queries), target.submissions - 2)
    yield from _keep_what_rises(target, start, order[:, np.newaxis])


def _changes(target: Target, rng: np.random.Generator, count: int) -> Iterator[NDArray[np.intp]]:
    size = max(1, round(_CHANGED * target.queries))
    return (rng.choice(target.queries, size, replace=False) for _ in range(count))


def _keep_what_rises(target: Target, start: Run, changes: Iterable[NDArray[np.intp]]) -> Moves:
    """Change some queries of the best run so far; go on from there if the score rises."""
    best, heard = start, target.hear((yield start))
    for change in changes:
        run = best.copy()
        run[change] = -run[change]
        said = target.hear((yield run))
        if said is not None and (heard is None or said > heard):
            best, heard = run, said
    yield best


def _ask_alone(target: Target, rng: np.random.Generator) -> Moves:
    """Answer one query, one way and then the other, and spoil all others: its label is published.

    What was read goes into a whole run; choices that were not read are guessed.
    """
    final = guess(rng, target.queries)
    asked = (target.submissions - 1) // 2
    for query in np.resize(rng.permutation(target.queries), asked):
        run = np.zeros_like(final)
        run[query] = 1
        first = target.hear((yield run))
        second = target.hear((yield -run))
        if first is not None and second is not None and first != second:
            final[query] = 1 if first > second else -1
    for _ in range(target.submissions - 2 * asked):
        yield final


@dataclass(slots=True, eq=False)
class _Spoiling:
    """Queries that are spoilt on purpose, so that a run begins low and can rise.

    Attributes:
        order: queries in the order in which they are spoilt.
        costs: what the first 0, 1, 2 ... of them cost in the mean.
        squares: the variance that they add to a mean over the queries that rank, at most.
    """

    order: NDArray[np.intp]
    costs: Scores
    squares: Scores

    def depth(self, below: float) -> int:
        """How many of them cost so much; all, if they do not cost so much together."""
        return min(int(np.searchsorted(self.costs, below)), len(self.order))

    def spoil(self, run: Run, count: int) -> Run:
        """The run with the first so many spoilt."""
        spoilt = run.copy()
        spoilt[self.order[:count]] = 0
        return spoilt


def _spoiling(target: Target, rng: np.random.Generator, *, sure: bool) -> _Spoiling:
    """Random queries; or those first that every system gets right, which rise without noise."""
    order = rng.permutation(target.queries)
    if sure:
        known = np.zeros(target.queries, np.bool_)
        known[target.sure] = True
        order = np.concatenate((order[known[order]], order[~known[order]]))
    worth = target.typical[order] / target.queries
    sums = np.concatenate(([0.0], np.cumsum(worth)))
    squares = np.concatenate(([0.0], np.cumsum(worth**2))) / target.share
    return _Spoiling(order, sums, squares)


def _stairs(
    target: Target,
    rng: np.random.Generator,
    *,
    names: int,
    sure: bool,
    steps: int | None = None,
) -> Moves:
    """Names climb from the baseline's level together: at each step the same queries open.

    So only the coins differ between them, and what is published, or that nothing is, shows their
    luck. Then the runs vote. One name alone draws half of its coins again at each step.

    Args:
        target: what is known.
        rng: the attacker's.
        names: how many; one less than there are submissions, at most.
        sure: which queries are spoilt at first.
        steps: how many runs of each; as many as there are submissions for, if not given.
    """
    spoiling = _spoiling(target, rng, sure=sure)
    depth = spoiling.depth(target.level - target.baseline)
    names = min(names, target.submissions - 1)
    most = (target.submissions - 1) // names
    steps = most if steps is None else min(steps, most)
    choice = guess(rng, target.queries)
    votes = _Votes()
    runs: list[Run] = []
    answers: list[Answer] = []
    levels: list[float] = []
    for step in range(1, steps + 1):
        closed = round(depth * (1 - step / steps))
        for _ in range(names):
            redrawn = rng.random(target.queries) < (1.0 if names > 1 else 0.5)
            choice = np.where(redrawn, guess(rng, target.queries), choice)
            runs.append(spoiling.spoil(choice, closed))
            answers.append((yield runs[-1]))
            levels.append(target.level - float(spoiling.costs[closed]))
        if names > 1 or step == steps:  # names are held against each other, one against itself
            lucks = _lucks(target, answers, levels)
            for run, luck in zip(runs, lucks, strict=True):
                votes.add(run, luck)
            runs, answers, levels = [], [], []
    yield from _finish(target, rng, votes, steps * names)


def _edge(target: Target, rng: np.random.Generator, *, height: float, sure: bool) -> Moves:
    """Each run lies at the edge above the one before, so that an answer says most of its luck.

    Some coins are drawn again each time, for they are asked about. A number votes for its run, and
    whether there is one for what changed.

    Args:
        target: what is known.
        rng: the attacker's.
        height: 1 for runs that are published half the time, more for surer ones.
        sure: which queries are spoilt at first.
    """
    fresh = 0.5
    spoiling = _spoiling(target, rng, sure=sure)
    closed = spoiling.depth(target.level - target.baseline)
    choice = guess(rng, target.queries)
    before = spoiling.spoil(choice, closed)
    votes, changes, published = _Votes(), list[Run](), list[bool]()
    numbers: list[tuple[Run, float]] = []
    while closed > 0 and len(published) < target.submissions - 1:
        closed = _open(target, spoiling, closed, height=height, fresh=fresh)
        redrawn = rng.random(target.queries) < fresh
        choice = np.where(redrawn, guess(rng, target.queries), choice)
        run = spoiling.spoil(choice, closed)
        answer = yield run
        published.append(answer.score is not None)
        changes.append(np.where(before == 0, np.int8(0), run - before))
        luck = target.luck(answer, target.level - float(spoiling.costs[closed]))
        numbers += [] if luck is None else [(run, luck)]
        before = run
    share = sum(published) / max(1, len(published))
    for run, luck in _against_each_other(target, numbers):
        votes.add(run, luck)
    for change, was in zip(changes, published, strict=True):
        votes.add(change, was - share)
    yield from _finish(target, rng, votes, len(published))


def _against_each_other(
    target: Target, numbers: Sequence[tuple[Run, float]]
) -> list[tuple[Run, float]]:
    """Runs with their luck; where nobody knows which queries rank, less the mean of all.

    The systems' level on the queries that rank is not known there, but it is in every number.
    """
    if target.share == 1 or len(numbers) == 1:
        return list(numbers)
    middle = sum(luck for _, luck in numbers) / max(1, len(numbers))
    return [(run, luck - middle) for run, luck in numbers]


def _open(target: Target, spoiling: _Spoiling, closed: int, *, height: float, fresh: float) -> int:
    """How many queries stay closed for the next run to lie at the edge above the one before."""
    changed = fresh / 2 * target.unit**2
    rises = spoiling.costs[closed] - spoiling.costs[:closed]
    errors = np.sqrt(spoiling.squares[closed] - spoiling.squares[:closed] + changed)
    high = [
        rise >= height * target.margin(error) for rise, error in zip(rises, errors, strict=True)
    ]
    return max(int(np.flatnonzero(high)[-1]), 0) if any(high) else 0


def _copy(target: Target, rng: np.random.Generator, *, parts: int) -> Moves:
    """Copy the baseline, and answer a part of the queries more each time.

    Each run differs from the one before in few queries, so that an answer is about those alone.

    Args:
        target: what is known.
        rng: the attacker's.
        parts: into how many parts the queries are divided.
    """
    parts = min(parts, target.submissions - 1, target.queries)
    run = np.full(target.queries, COPIED, np.int8)
    rise = (target.level - target.baseline) / parts
    votes, changes, published = _Votes(), list[Run](), list[bool]()
    for part in np.array_split(rng.permutation(target.queries), parts):
        run = run.copy()
        run[part] = guess(rng, len(part))
        answer = yield run
        changes.append(np.zeros(target.queries, np.int8))
        changes[-1][part] = run[part]
        published.append(answer.score is not None)
        luck = target.luck(answer, target.baseline + rise * len(published)) or 0.0
        votes.add(np.where(run == COPIED, np.int8(0), run), luck / 2)
    share = sum(published) / len(published)
    for change, was in zip(changes, published, strict=True):
        votes.add(change, was - share)
    yield from _finish(target, rng, votes, parts)


def _finish(
    target: Target,
    rng: np.random.Generator,
    votes: _Votes,
    sent: int,
) -> Moves:
    """The vote, and with what is left small changes of it."""
    final = votes.elect(guess(rng, target.queries))
    left = target.submissions - sent
    if left == 1:
        yield final
    else:
        yield from _keep_what_rises(target, final, _changes(target, rng, left - 2))


def _names_at_the_edge(target: Target, rng: np.random.Generator) -> Moves:
    """A name for each run, each so far above the baseline that it is published half the time."""
    spoiling = _spoiling(target, rng, sure=False)
    wanted = target.baseline + target.margin(target.unit)
    closed = spoiling.depth(target.level - wanted)
    runs, answers = [], []
    for _ in range(target.submissions - 1):
        runs.append(spoiling.spoil(guess(rng, target.queries), closed))
        answers.append((yield runs[-1]))
    votes = _Votes()
    levels = [target.level - float(spoiling.costs[closed])] * len(runs)
    for run, luck in zip(runs, _lucks(target, answers, levels), strict=True):
        votes.add(run, luck)
    yield votes.elect(guess(rng, target.queries))


def _both(name: str, about: str, moves: Callable[..., Moves], **given: object) -> dict[str, Attack]:
    """An attack that spoils random queries, and the same with such as every system gets right."""
    sure = "the spoilt queries are such as every system gets right"
    return {
        name: Attack(moves=partial(moves, sure=False, **given), about=about),
        f"{name}, sure": Attack(moves=partial(moves, sure=True, **given), about=f"{about}; {sure}"),
    }


ATTACKS: Mapping[str, Attack] = {
    "none": Attack(moves=_repeat, about="one run, sent again and again: no attack"),
    "best of n": Attack(moves=_best_of_n, about="unrelated runs; the best of them stands"),
    "sign vote": Attack(
        moves=partial(_vote, weighted=False),
        about="random runs; those above chance vote, those below vote against",
    ),
    "weighted vote": Attack(
        moves=partial(_vote, weighted=True),
        about="random runs vote, each as much as it lies above or below chance",
    ),
    "names at the edge": Attack(
        moves=_names_at_the_edge,
        about="the same, each run spoilt down to where the rule publishes half of them",
    ),
    "hill-climbing": Attack(
        moves=_climb,
        about="a few queries of the best run changed; the change stays if the score rises",
    ),
    "decoding": Attack(
        moves=_decode, about="one query changed at a time; the change stays if the score rises"
    ),
    "single queries": Attack(
        moves=_ask_alone, about="one query answered at a time, both ways, all others spoilt"
    ),
    "sandbagging": Attack(
        moves=partial(_stairs, names=1, sure=False, steps=_RAMP),
        about="30 runs, spoilt less and less; then hill-climbing from their vote",
    ),
    **_both("slow ramp", "all runs of one name, each spoilt a little less", _stairs, names=1),
    **_both("10 names", "ten names climb one staircase together", _stairs, names=10),
    **_both("20 names", "twenty names climb one staircase together", _stairs, names=20),
    **_both("at the edge", "each run where the rule publishes half of them", _edge, height=1.0),
    **_both("jumps", "each run half as far again above the one before", _edge, height=1.5),
    "copies": Attack(
        moves=partial(_copy, parts=10),
        about="the baseline copied, but for a tenth of the queries more each time",
    ),
}
"""Every attack, in the order of the table."""
