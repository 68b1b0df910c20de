"""The game once more, written to be read and not to be fast: plain lists, exact fractions.

It shares with the program only the draws: the same generators, asked in the same order.
"""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from statistics import NormalDist

import numpy as np

Row = list[Fraction]
Choices = list[int]


def generator(seed: int, game: int, part: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(game, part)))


def toss(rng: np.random.Generator, count: int) -> Choices:
    """1 for heads and -1 for tails."""
    return [1 if coin else -1 for coin in rng.integers(0, 2, count, dtype=np.bool_)]


def mean(row: Row) -> Fraction:
    return sum(row, Fraction(0)) / len(row)


class Board:
    """What one team is told; `rule` is exact, rounded, or a number of standard errors."""

    def __init__(self, rule: str | float) -> None:
        self.rule = rule
        self.best: Row | None = None
        self.shown: Fraction | None = None

    def tell(self, row: Row) -> Fraction | None:
        score = mean(row)
        if self.rule == "exact":
            return Fraction(float(score))
        shown = Fraction(f"{float(score):.3f}")
        if isinstance(self.rule, float):
            if self.best is not None and not self.rises(row, shown, self.rule):
                return None
            self.best, self.shown = row, shown
        return shown

    def rises(self, row: Row, shown: Fraction, z: float) -> bool:
        assert self.best is not None
        assert self.shown is not None
        gaps = [new - old for new, old in zip(row, self.best, strict=True)]
        middle = mean(gaps)
        spread = sum(((gap - middle) ** 2 for gap in gaps), Fraction(0)) / (len(gaps) - 1)
        # middle > z * sqrt(spread / n), without a root
        above = middle > 0 and middle**2 * len(gaps) > Fraction(z) ** 2 * spread
        return above and shown > self.shown


def ladder(submissions: int) -> float:
    return NormalDist().inv_cdf(1 - 0.05 / submissions)


class Game:
    """One game: the labels, the ten published runs, the attacker's board."""

    def __init__(
        self, a: list[float], b: list[float], rule: str | float, *, seed: int, game: int
    ) -> None:
        self.a, self.b = [Fraction(x) for x in a], [Fraction(x) for x in b]
        self.count = len(a)
        self.heads = toss(generator(seed, game, 0), self.count)
        others = generator(seed, game, 1)
        self.published = []
        for _ in range(10):
            run = toss(others, self.count)
            self.published.append((run, Board(rule).tell(self.score(run))))
        self.rng = generator(seed, game, 2)
        self.board = Board(rule)
        self.heard: Fraction | None = None
        self.standing = Fraction(0)

    def score(self, run: Choices) -> Row:
        rows = zip(run, self.heads, self.a, self.b, strict=True)
        return [
            Fraction(0) if choice == 0 else x if choice == head else y
            for choice, head, x, y in rows
        ]

    def send(self, run: Choices) -> Fraction | None:
        row = self.score(run)
        said = self.board.tell(row)
        if said is not None and (self.heard is None or said > self.heard):
            self.heard, self.standing = said, mean(row)
        return said

    def gain(self) -> Fraction:
        return self.standing - (mean(self.a) + mean(self.b)) / 2

    def vote(self, weights: list[float], runs: list[Choices], fallback: Choices) -> Choices:
        chosen = []
        for query in range(self.count):
            total = sum(weight * run[query] for weight, run in zip(weights, runs, strict=True))
            chosen.append(fallback[query] if total == 0 else 1 if total > 0 else -1)
        return chosen

    def signs(self, told: list[Fraction | None]) -> list[float]:
        known = [score for score in told if score is not None]
        # as the program does: a mean of floats
        middle = float(np.array([float(score) for score in known]).mean())
        return [
            0.0 if score is None else float((float(score) > middle) - (float(score) < middle))
            for score in told
        ]


def play_none(game: Game, submissions: int) -> None:
    run = toss(game.rng, game.count)
    for _ in range(submissions):
        game.send(run)


def play_best_of_n(game: Game, submissions: int) -> None:
    for _ in range(submissions):
        game.send(toss(game.rng, game.count))


def play_boosting(game: Game, submissions: int) -> None:
    runs, told = [], []
    for _ in range(submissions - 1):
        runs.append(toss(game.rng, game.count))
        told.append(game.send(runs[-1]))
    game.send(game.vote(game.signs(told), runs, runs[0]))


def climb(game: Game, run: Choices, changes: Iterable[list[int]]) -> None:
    best = game.send(run)
    for change in changes:
        tried = [-x if query in change else x for query, x in enumerate(run)]
        said = game.send(tried)
        if said is not None and (best is None or said > best):
            run, best = tried, said


def draw_changes(game: Game, count: int) -> Iterator[list[int]]:
    size = max(1, round(0.02 * game.count))
    return (
        [int(q) for q in game.rng.choice(game.count, size, replace=False)] for _ in range(count)
    )


def play_hill_climbing(game: Game, submissions: int) -> None:
    run = toss(game.rng, game.count)
    climb(game, run, draw_changes(game, submissions - 1))


def play_decoding(game: Game, submissions: int) -> None:
    run = toss(game.rng, game.count)
    order = [int(query) for query in game.rng.permutation(game.count)]
    climb(game, run, [[order[i % len(order)]] for i in range(submissions - 1)])


def play_alone(game: Game, submissions: int) -> None:
    run = toss(game.rng, game.count)
    order = [int(query) for query in game.rng.permutation(game.count)]
    asked = (submissions - 1) // 2
    for i in range(asked):
        query = order[i % len(order)]
        said = []
        for choice in (1, -1):
            probe = [0] * game.count
            probe[query] = choice
            said.append(game.send(probe))
        first, second = said
        if first is not None and second is not None and first != second:
            run[query] = 1 if first > second else -1
    for _ in range(submissions - 2 * asked):
        game.send(run)


def play_sandbagging(game: Game, submissions: int) -> None:
    steps = min(30, submissions - 1)
    order = [int(query) for query in game.rng.permutation(game.count)]
    choice = toss(game.rng, game.count)
    runs, told = [[0] * game.count], [0.0]
    for step in range(1, steps + 1):
        fresh, renewed = toss(game.rng, game.count), toss(game.rng, game.count)
        choice = [
            new if r == 1 else old for r, new, old in zip(renewed, fresh, choice, strict=True)
        ]
        answered = set(order[: round(0.9 * game.count * step / steps)])
        run = [choice[query] if query in answered else 0 for query in range(game.count)]
        said = game.send(run)
        if said is not None:
            runs.append(run)
            told.append(float(said))
    sizes = [sum(map(abs, run)) for run in runs]
    growth = told[-1] / max(sizes[-1], 1)
    final = []
    for query in range(game.count):
        vote = sum(
            (told[i] - told[i - 1] - growth * (sizes[i] - sizes[i - 1]))
            * (runs[i][query] - runs[i - 1][query])
            for i in range(1, len(runs))
        )
        final.append(choice[query] if vote == 0 else 1 if vote > 0 else -1)
    climb(game, final, draw_changes(game, submissions - 1 - steps))


def play_blending(game: Game, submissions: int) -> None:
    runs = [run for run, _ in game.published]
    weights = game.signs([told for _, told in game.published])
    scale = max(map(abs, weights)) or 1.0
    fallback = toss(game.rng, game.count)
    best = game.send(game.vote(weights, runs, fallback))
    for _ in range(submissions - 1):
        tried = list(weights)
        tried[int(game.rng.integers(len(runs)))] += scale * float(game.rng.normal())
        said = game.send(game.vote(tried, runs, fallback))
        if said is not None and (best is None or said > best):
            weights, best = tried, said


PLAYS = {
    "none": play_none,
    "best of n": play_best_of_n,
    "boosting": play_boosting,
    "hill-climbing": play_hill_climbing,
    "decoding": play_decoding,
    "partial runs": play_alone,
    "spoilt runs": play_alone,
    "sandbagging": play_sandbagging,
    "blending": play_blending,
}
