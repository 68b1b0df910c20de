"""The attacks: each a generator that yields runs and is sent the board's answers.

An attacker knows how many queries and submissions there are, the rule, how good its systems and
the best baseline are on the whole (from the dev set), and which queries every system gets right.
It may send each run under a new name, but no rule knows names. It never sees labels. Its last run
is the best that it can build.

Sources: Blum and Hardt 2015 (votes); Minka 2001, assumed-density filtering (what an answer that is
no number says).
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from heldout.redteam.boards import GameAnswer, Run, Scores, guess

_MOST_STAIRS = 120
"""Runs of a staircase, at most: no gap has room for more that say anything."""
_START = 1.0
"""How far above the baseline a staircase begins, in u."""
_BELOW = 3.0
"""How far below the baseline runs are spoilt that only ask for a number with noise, in u."""
_CERTAIN = 1e-9
_GRID = np.linspace(-4, 4, 81)
_BELL = np.exp(-(_GRID**2) / 2) / np.exp(-(_GRID**2) / 2).sum()

Moves = Generator[Run, GameAnswer, None]
"""Yields what answers each query, is sent the answers."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Target:
    """What an attacker knows.

    Attributes:
        submissions: how many runs it sends, at most; at least 3.
        typical: expected score of each query under its systems; only sums are used.
        sure: the queries that every system gets right.
        unit: u, the standard error of the difference of its two systems on the queries that rank.
        share: of the queries, those that rank; nobody knows which.
        baseline: score of the best baseline.
        noise: standard deviation of the noise in the number beside the score; infinite where that
            number says nothing of the queries that rank.
        blur: that of what stands on top of a published score: noise, and rounding.
        digit: the last one of a published score.
        spread: standard error of the difference from the baseline.
        chance: how far above the best run one lies, and the standard error of that difference ->
            how probably it is published.
    """

    submissions: int
    typical: Scores
    sure: NDArray[np.intp]
    unit: float
    baseline: float
    noise: float
    blur: float
    digit: float
    spread: float
    chance: Callable[[Scores, Scores], Scores]
    share: float = 1.0

    @property
    def queries(self) -> int:
        """How many a run answers."""
        return len(self.typical)

    @property
    def level(self) -> float:
        """Expected score of a run that spoils nothing."""
        return float(self.typical.mean())

    def luck(self, answer: GameAnswer, level: float) -> float | None:
        """Return what a number says of a run's luck, in u: less where there is noise in it.

        Args:
            answer: the board's.
            level: the score that the run would have with no luck at all.
        """
        heard, noise = answer.score, self.blur
        if heard is None and self.noise < np.inf:
            heard, noise = answer.other, self.noise
        if heard is None:
            return None
        return (heard - level) / self.unit * 0.25 / (0.25 + (noise / self.unit) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """An attack.

    Attributes:
        moves: how it plays; one that has nothing more to ask sends no more.
        about: what it does, in a sentence.
    """

    moves: Callable[[Target, np.random.Generator], Moves]
    about: str


def _lucks(target: Target, answers: Sequence[GameAnswer], level: float) -> list[float]:
    """Read the luck of runs from the answers, in u, against that of the others.

    A number says it. That nothing was published says that the luck was below.

    Args:
        target: what is known.
        answers: of the runs.
        level: the score that they would have with no luck at all.
    """
    found = [target.luck(answer, level) for answer in answers]
    known = [luck for luck in found if luck is not None]
    if not known:
        return [0.0] * len(found)
    if len(known) == len(found):
        middle = sum(known) / len(known) if len(known) > 1 else 0.0
        return [luck - middle for luck in known]
    rest = -max(sum(known), 0.1) / (len(found) - len(known))
    return [rest if luck is None else luck for luck in found]


def _best_of_n(target: Target, rng: np.random.Generator) -> Moves:
    for _ in range(target.submissions):
        yield guess(rng, target.queries)


def _vote(target: Target, rng: np.random.Generator, *, edge: bool) -> Moves:
    """Let random runs vote by what was said of them; the vote is the last run.

    Args:
        target: what is known.
        rng: the attacker's.
        edge: whether they are spoilt down to where the rule publishes half of them.
    """
    spoiling = _spoil_order(target, rng, sure=False)
    closed = 0
    if edge:
        heights = np.linspace(0, 30, 301) * target.unit
        half = target.chance(heights, np.full(301, target.unit)) >= 1 / 2
        wanted = target.baseline + float(heights[np.argmax(half)])
        closed = spoiling.depth(target.level - wanted)
    runs, answers = [], []
    for _ in range(target.submissions - 1):
        runs.append(spoiling.spoil(guess(rng, target.queries), closed))
        answers.append((yield runs[-1]))
    lucks = _lucks(target, answers, target.level - float(spoiling.costs[closed]))
    votes = np.array(lucks, np.float32) @ np.array(runs, np.float32)
    yield _choose(votes, rng)


def _choose(worths: NDArray[np.floating], rng: np.random.Generator) -> Run:
    """The run that chooses by what each coin is worth; where that is nothing, by a coin."""
    run = np.where(worths == 0, guess(rng, len(worths)), np.sign(worths))
    return np.asarray(run, np.int8)


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
        """Return how many of them cost so much; all, if they do not cost so much together."""
        return min(int(np.searchsorted(self.costs, below)), len(self.order))

    def spoil(self, run: Run, count: int) -> Run:
        """The run with the first so many spoilt."""
        spoilt = run.copy()
        spoilt[self.order[:count]] = 0
        return spoilt


def _spoil_order(target: Target, rng: np.random.Generator, *, sure: bool) -> _Spoiling:
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


@dataclass(slots=True, eq=False)
class _Readings:
    """What was read of the lucks of runs, solved by least squares with the lucks' own spread.

    Each coin is worth a standard normal amount before anything is read. A reading is the sum of
    these along a direction (how much each coin counts, in u), with noise of a known variance.

    Attributes:
        start: the expected amounts before anything is read.
        directions: of the readings.
        residuals: what was read, less what was expected at the start.
        variances: of their noise.
        gram: products of the directions.
    """

    start: Scores
    directions: list[Scores] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    variances: list[float] = field(default_factory=list)
    gram: Scores = field(default_factory=lambda: np.zeros((0, 0)))

    def add(self, direction: Scores, read: float, variance: float) -> None:
        """Take a reading in."""
        along = self._along(direction)[:, np.newaxis]
        self.gram = np.block([[self.gram, along], [along.T, direction @ direction]])
        self.directions.append(direction)
        self.residuals.append(read - float(self.start @ direction))
        self.variances.append(max(_CERTAIN, variance))

    def expect(self, direction: Scores) -> tuple[float, float]:
        """Mean and variance of the sum along a direction."""
        mean, variance = float(self.start @ direction), float(direction @ direction)
        if not self.residuals:
            return mean, variance
        along = self._along(direction)
        solved = along @ self._solve(np.column_stack((self.residuals, along)))
        return mean + float(solved[0]), max(_CERTAIN, variance - float(solved[1]))

    def learn(self, direction: Scores, likelihood: Callable[[Scores], Scores]) -> None:
        """Take an answer in that is no number, as the normal reading that says as much."""
        mean, variance = self.expect(direction)
        values = mean + variance**0.5 * _GRID
        weights = _BELL * likelihood(values)
        if weights.sum() < _CERTAIN:
            return
        found = float(np.average(values, weights=weights))
        left = max(_CERTAIN, float(np.average((values - found) ** 2, weights=weights)))
        if left < variance * (1 - _CERTAIN):
            noise = 1 / (1 / left - 1 / variance)
            self.add(direction, mean + (found - mean) * (variance + noise) / variance, noise)

    def amounts(self) -> Scores:
        """The expected amount of every coin."""
        if not self.residuals:
            return self.start
        solved = self._solve(np.array(self.residuals))
        return np.asarray(self.start + solved @ np.array(self.directions), np.float64)

    def _along(self, direction: Scores) -> Scores:
        return np.array([one @ direction for one in self.directions])

    def _solve(self, right: Scores) -> Scores:
        solved = np.linalg.solve(self.gram + np.diag(self.variances), right)
        return np.asarray(solved, np.float64)


@dataclass(slots=True, eq=False)
class _Climb:
    """A staircase: what has been sent and read of it. Heights are in u, below a whole run.

    Attributes:
        target: what is known.
        spoiling: the order in which queries open, last first.
        coins: the queries that not every system gets right.
        readings: of the lucks.
        closed: how many queries are spoilt in the best run so far, at first as many as the
            baseline lies below.
        best: direction of that run; `None` while it is the baseline.
        number: the last that was published.
    """

    target: Target
    spoiling: _Spoiling
    coins: NDArray[np.bool_]
    readings: _Readings
    closed: int
    number: float
    best: Scores | None = None

    def direction(self, run: Run) -> Scores:
        """Weigh each coin of a run, in u; the last is what all runs have in common.

        Where nobody knows which queries rank, that is how good the systems are on those.
        """
        target = self.target
        common = ((1 - target.share) / target.share / target.queries) ** 0.5
        counts = np.where(self.coins, run, 0) / (2 * self.coins.sum() ** 0.5)
        return np.append(counts, common * float(target.typical.std()) / target.unit)

    def steps(self, run: Run) -> tuple[Scores, Scores, Scores]:
        """Compare a run with the best one: the difference in luck, its heights, and their errors.

        Args:
            run: with nothing spoilt.

        Returns:
            The direction, and for each number of spoilt queries up to today's height and standard
            error of the difference, in u.
        """
        unit, costs, squares = self.target.unit, self.spoiling.costs, self.spoiling.squares
        along = self.direction(self.spoiling.spoil(run, self.closed))
        heights = (costs[self.closed] - costs[: self.closed + 1]) / unit
        if self.best is None:
            return along, heights, np.full(len(heights), self.target.spread / unit)
        apart = along - self.best
        opened = (squares[self.closed] - squares[: self.closed + 1]) / unit**2
        return apart, heights, np.sqrt(4 * float(apart @ apart) + opened)

    def chances(self, run: Run) -> Scores:
        """Compute how probably a run is published, by the number of spoilt queries."""
        apart, heights, errors = self.steps(run)
        mean, variance = self.readings.expect(apart)
        lucks = mean + variance**0.5 * _GRID
        unit = self.target.unit
        odds = self.target.chance(
            (heights[:, np.newaxis] + lucks) * unit, errors[:, np.newaxis] * unit
        )
        return np.asarray(odds @ _BELL, np.float64)

    def next(self, run: Run, often: float) -> int:
        """Choose how many queries the next run spoils, so that it is published so often."""
        low = self.best is None
        high = self.steps(run)[1] >= _START if low else self.chances(run) >= often
        return int(np.flatnonzero(high)[-1]) if high.any() else 0

    def hear(self, run: Run, closed: int, answer: GameAnswer) -> None:
        """Learn from the answer to a run: whether there is a number, and from the number."""
        target, unit = self.target, self.target.unit
        apart, heights, errors = self.steps(run)
        height, error = heights[closed], errors[closed] * unit
        along = self.direction(self.spoiling.spoil(run, closed))

        def says(luck: Scores) -> Scores:
            odds = target.chance((height + luck) * unit, error)
            return odds if answer.score is not None else 1 - odds

        self.readings.learn(apart, says)
        level = target.level - float(self.spoiling.costs[closed])
        if answer.score is not None:
            blur, above = target.blur / unit, (answer.score - level) / unit
            if answer.score > self.number + 1.5 * target.digit or target.blur < target.digit:
                self.readings.add(along, above, blur**2)
            else:  # it was raised to this
                self.readings.learn(along, lambda luck: ndtr((above - luck) / blur))
            self.number = answer.score
        if self.best is None or self.readings.expect(apart)[0] + height > 0:
            self.best, self.closed = along, closed


def _staircase(
    target: Target, rng: np.random.Generator, *, often: float, fresh: float, last: float
) -> Moves:
    """Climb by queries that every system gets right; then send what the answers say is best.

    Args:
        target: what is known.
        rng: the attacker's.
        often: each run lies where it is published with this probability.
        fresh: share of the coins that are drawn again for each run.
        last: the climb ends while the last run would be published with this probability; 0 to
            spend the whole gap on questions.
    """
    # Where all is published there is nothing to climb.
    if target.chance(np.zeros(1), np.zeros(1))[0] == 1:
        yield from _vote(target, rng, edge=False)
        return
    coins = np.ones(target.queries, np.bool_)
    coins[target.sure] = False
    spoiling = _spoil_order(target, rng, sure=True)
    climb = _Climb(
        target=target,
        spoiling=spoiling,
        coins=coins,
        readings=_Readings(np.zeros(target.queries + 1)),
        closed=spoiling.depth(target.level - target.baseline),
        number=round(target.baseline / target.digit) * target.digit,
    )
    asked = target.submissions - 1 - _MOST_STAIRS if target.noise < np.inf else 0
    low = spoiling.depth(target.level - target.baseline + _BELOW * target.unit)
    for _ in range(asked):
        run = spoiling.spoil(guess(rng, target.queries), low)
        luck = target.luck((yield run), target.level - float(spoiling.costs[low]))
        climb.readings.start += (luck or 0.0) * 4 * climb.direction(run)
    choice = guess(rng, target.queries)
    for _ in range(min(_MOST_STAIRS, target.submissions - 1)):
        redrawn = rng.random(target.queries) < fresh
        choice = np.where(redrawn, guess(rng, target.queries), choice)
        closed = climb.next(choice, often)
        if closed == 0 or (last and not _leaves_room(climb, closed, last)):
            break
        climb.hear(choice, closed, (yield spoiling.spoil(choice, closed)))
    yield _choose(climb.readings.amounts()[:-1], rng)


def _leaves_room(climb: _Climb, closed: int, last: float) -> bool:
    """Tell whether the best run would be published above one that spoils so many queries."""
    unit, spoiling = climb.target.unit, climb.spoiling
    amounts = climb.readings.amounts()
    luck, _ = climb.readings.expect(climb.direction(np.sign(amounts[:-1]).astype(np.int8)))
    above = spoiling.costs[closed] + luck * unit
    error = (unit**2 / 2 + spoiling.squares[closed]) ** 0.5
    return bool(climb.target.chance(np.array(above), np.array(error)) >= last)


ATTACKS: Mapping[str, Attack] = {
    "best of n": Attack(moves=_best_of_n, about="unrelated runs; the best of them stands"),
    "weighted vote": Attack(
        moves=partial(_vote, edge=False),
        about="random runs vote, each as much as it lies above or below chance",
    ),
    "names at the edge": Attack(
        moves=partial(_vote, edge=True),
        about="the same, each run spoilt down to where the rule publishes half of them",
    ),
    "staircase": Attack(
        moves=partial(_staircase, often=0.02, fresh=0.5, last=0.0),
        about="each run opens a few more queries that every system gets right, with half of the "
        "coins drawn again; the lucks are solved by least squares from all answers",
    ),
    "staircase, last step free": Attack(
        moves=partial(_staircase, often=0.3, fresh=0.5, last=0.85),
        about="the same in larger steps, of which enough is left for the last run to be published",
    ),
}
"""Every attack, in the order of the table."""
