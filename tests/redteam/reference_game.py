"""The game once more, written to be read and not to be fast: plain lists, exact fractions.

It shares with the program the draws (the same generators, asked in the same order, and the jitter)
and the attackers, who know no rule; board, rule and what comes of a game are built a second time.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from heldout.board.rules.release import draw_jitter, draw_noise
from heldout.redteam.attacks import Attack, Target
from heldout.redteam.boards import GameAnswer

Row = list[Fraction]
Choices = list[int]
Numbers = np.typing.NDArray[np.float64]

PLANTED = (4.5, 6.0)


def generator(seed: int, game: int, part: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(game, part)))


def toss(rng: np.random.Generator, count: int) -> Choices:
    """1 for heads and -1 for tails."""
    return [1 if coin else -1 for coin in rng.integers(0, 2, count, dtype=np.bool_)]


def mean(row: Row) -> Fraction:
    return sum(row, Fraction(0)) / len(row)


def variance(row: Row) -> Fraction:
    middle = mean(row)
    return sum(((value - middle) ** 2 for value in row), Fraction(0)) / (len(row) - 1)


def text_of(row: Row) -> Fraction:
    return Fraction(f"{float(mean(row)):.3f}")


def standard_error(row: Row) -> float:
    return sqrt(variance(row) / len(row))


@dataclass
class Board:
    """What a board remembers: `rule` is rounded or clear."""

    rule: str
    baseline: Row
    key: bytes

    def __post_init__(self) -> None:
        self.bar = self.baseline
        self.shown = text_of(self.baseline)

    def publishes(self, row: Row) -> bool:
        if self.rule == "rounded":
            return True
        gaps = [new - old for new, old in zip(row, self.bar, strict=True)]
        floats = [[float(x) for x in one] for one in (row, self.baseline)]
        jitter = draw_jitter(self.key, "redteam", *floats)
        return float(mean(gaps)) > 2 * standard_error(gaps) + jitter

    def send(self, row: Row) -> Fraction | None:
        published = self.publishes(row)
        if mean(row) > mean(self.bar):
            self.bar = row
        if not published or self.rule == "rounded" or variance(self.baseline) == 0:
            return text_of(row) if published else None
        error = max(standard_error(row), standard_error(self.baseline))
        noise = error * draw_noise(self.key, "redteam ranks", [float(x) for x in row])
        noisy = Fraction(f"{float(mean(row)) + noise:.3f}")
        self.shown = max(noisy, self.shown + Fraction(1, 1000))
        return self.shown


@dataclass
class Result:
    gain: float
    worth: float
    records: int
    planted: tuple[bool, ...]


class Game:
    """One game: the labels, the baseline, the board."""

    def __init__(
        self,
        a: list[float],
        b: list[float],
        rule: str,
        *,
        gap: float,
        weak: float,
        seed: int,
        game: int,
    ) -> None:
        self.a, self.b = [Fraction(x) for x in a], [Fraction(x) for x in b]
        self.seed, self.game, self.count = seed, game, len(a)
        pairs = list(zip(self.a, self.b, strict=True))
        self.middle = [(x + y) / 2 for x, y in pairs]
        self.truth = mean(self.middle)
        gaps = np.array([float(x) - float(y) for x, y in pairs])
        # as the program does, for the jitter is drawn from every bit of the planted scores
        self.unit = float(np.sqrt(np.mean(gaps**2) / self.count))
        self.heads = toss(generator(seed, game, 0), self.count)
        baseline = self.make_baseline(gap * self.unit, Fraction(weak))
        self.board = Board(rule, baseline, generator(seed, game, 2).bytes(32))

    def make_baseline(self, loss: float, weak: Fraction) -> Row:
        """A run of coins, of which some queries score as the weak system does, or nothing."""
        rng = generator(self.seed, self.game, 1)
        run = self.score(toss(rng, self.count))
        if not loss:
            return run
        most = float(self.truth - weak)
        if most < loss:
            share, lower, upper = (loss - most) / float(weak), Fraction(0), [weak] * self.count
        else:
            share, lower, upper = loss / most, weak, run
        return [lower if rng.random() < share else score for score in upper]

    def score(self, run: Choices) -> Row:
        rows = zip(run, self.heads, self.a, self.b, strict=True)
        return [
            Fraction(0) if choice == 0 else x if choice == head else y
            for choice, head, x, y in rows
        ]

    def newcomer(self) -> list[float]:
        """As the program has it, to the last bit."""
        sides = toss(generator(self.seed, self.game, 4), self.count)
        rows = zip(sides, map(float, self.a), map(float, self.b), strict=True)
        return [(x + y) / 2 + side * sqrt(3) / 2 * (x - y) for side, x, y in rows]

    def target(self, submissions: int) -> Target:
        """What the attacker is given: no labels."""
        best = max(self.a)
        sure = [q for q in range(self.count) if self.a[q] == self.b[q] == best]
        gaps = [x - y for x, y in zip(self.middle, self.board.baseline, strict=True)]
        spread = sqrt(standard_error(gaps) ** 2 + (self.unit / 2) ** 2)

        def chance(above: Numbers, error: Numbers) -> Numbers:
            if self.board.rule == "rounded":
                return np.ones(np.broadcast(above, error).shape)
            return 1 - np.exp(-np.maximum(0, above - 2 * error) / (3 / 4 * spread))

        noise = max(standard_error(self.board.baseline), standard_error(self.middle))
        noise *= self.board.rule == "clear"

        return Target(
            submissions=submissions,
            typical=np.array([float(x) for x in self.middle]),
            sure=np.array(sure, np.intp),
            unit=self.unit,
            baseline=float(mean(self.board.baseline)),
            noise=float("inf"),  # of a number beside the score, which there is none of
            blur=sqrt(noise**2 + 0.001**2 / 12),
            digit=0.001,
            spread=spread,
            chance=chance,
        )

    def play(self, attack: Attack, submissions: int) -> Result:
        moves = attack.moves(self.target(submissions), generator(self.seed, self.game, 3))
        standing, shown, records = self.truth, Fraction(-1), 0
        run = next(moves)
        for _ in range(submissions):
            row = self.score([int(choice) for choice in run])
            said = self.board.send(row)
            records += said is not None
            if said is not None and said > shown:
                shown, standing = said, mean(row)
            try:
                run = moves.send(GameAnswer(None if said is None else float(said)))
            except StopIteration:
                break
        newcomer = self.newcomer()
        better = [[Fraction(x + more * self.unit) for x in newcomer] for more in PLANTED]
        return Result(
            gain=float(standing - self.truth) / self.unit,
            worth=float(mean(row) - self.truth) / self.unit,
            records=records,
            planted=tuple(self.board.publishes(system) for system in better),
        )
