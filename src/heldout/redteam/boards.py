"""What attackers play with: two systems that nobody can tell apart, and a board with its rule.

Two real runs have scores per query. For each game a fair coin per query decides which of the two
is called first. A run of the attacker says for every query "first" or "second", or spoils it.
Before the coins fall every run that spoils nothing has the same expected score, the mean of both
systems. So the truth is known without labels of another query set: no run is better than that, and
a score above it is fitted to the labels.

Nothing of a rule is built a second time here: `heldout.board.rules` decides, and the attackers hear
the text that it publishes. A board may send everybody a second number: the rounded score on a
feedback part of the queries, or the score with noise (docs/explanation/release.md).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, cast, get_args

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.board.rules import release
from heldout.board.rules.spec import BoardSpec
from heldout.errors import InputError, quote

Run = NDArray[np.int8]
"""What answers each query: 1 the first system, -1 the second, 0 documents that are beside it."""

Scores = NDArray[np.float64]
"""A score for every query."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GameLabels:
    """The held-out labels of one game, seen through the two systems.

    Attributes:
        first, second: scores per query of what is called first and second in this game.
    """

    first: Scores
    second: Scores

    def score(self, run: Run) -> Scores:
        """The scores per query of a run."""
        return np.where(run == 0, 0.0, np.where(run > 0, self.first, self.second))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exchange:
    """Two systems before the coins fall.

    Attributes:
        a, b: their scores per query.
    """

    a: Scores
    b: Scores

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.a)

    @property
    def truth(self) -> float:
        """The expected score of every run that spoils nothing, in units of the measure."""
        return float(self.a.mean() + self.b.mean()) / 2

    @property
    def unit(self) -> float:
        """u, the standard error of A - B over the queries, in units of the measure.

        After the exchange the expected difference is 0, so it is the root of the mean square of
        the differences over the root of their number.
        """
        return float(np.sqrt(np.mean((self.a - self.b) ** 2) / self.queries))

    @property
    def middle(self) -> Scores:
        """The expected score of every query before the coins fall."""
        return np.asarray((self.a + self.b) / 2, np.float64)

    def toss(self, rng: np.random.Generator) -> GameLabels:
        """Throw the coins of one game."""
        heads = coins(rng, self.queries)
        return GameLabels(
            first=np.where(heads, self.a, self.b), second=np.where(heads, self.b, self.a)
        )


def coins(rng: np.random.Generator, count: int) -> NDArray[np.bool_]:
    """Fair coins."""
    return rng.integers(0, 2, count, dtype=np.bool_)


def guess(rng: np.random.Generator, count: int) -> Run:
    """A run that chooses by coins."""
    return np.where(coins(rng, count), np.int8(1), np.int8(-1))


def exchange(a: ArrayLike, b: ArrayLike) -> Exchange:
    """Two systems from their scores on the same queries.

    Raises:
        ValueError: not two rows of finite scores of equal length, or they never differ.
    """
    one, other = np.array(a, np.float64), np.array(b, np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError("not scores of the same queries")
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        raise ValueError("a score is not finite")
    if (one == other).all():
        raise ValueError("the systems never differ")
    return Exchange(a=one, b=other)


def newcomer(pair: Exchange, rng: np.random.Generator) -> Scores:
    """Scores of an independent system, as good as the two, before anything is added to them.

    Its paired standard error against a run of coins is u: a quarter of the variance of A - B is
    that run's, three quarters are its own.
    """
    sides = np.where(coins(rng, pair.queries), 1.0, -1.0)
    return np.asarray(pair.middle + sides * np.sqrt(3) / 2 * (pair.a - pair.b), np.float64)


def weaken(
    pair: Exchange, values: Scores, weak: Scores, loss: float, *, rng: np.random.Generator
) -> Scores:
    """A baseline: the scores of a run, on some queries those of a weak system.

    Args:
        pair: the systems that the run chooses from.
        values: the run's scores.
        weak: a weak system's; where it is not weak enough 0 takes its place.
        loss: how far the baseline shall lie below, in the expected mean; at least 0.
        rng: draws the queries.

    Raises:
        ValueError: not even a run that finds nothing lies so far below.
    """
    if loss <= 0:
        return values
    if loss > pair.truth:
        raise ValueError(f"a score of {pair.truth:.4f} has no room for a baseline {loss:.4f} below")
    lost = float((pair.middle - weak).mean())
    if lost < loss:
        share = (loss - lost) / (pair.truth - lost)
        return np.where(rng.random(pair.queries) < share, 0.0, weak)
    return np.where(rng.random(pair.queries) < loss / lost, weak, values)


COMPARED = ("rounded", "clear", "clear+feedback", "clear+noise")
"""The rules of the table, as `parse_rule` reads them."""

Beside = Literal["", "feedback", "noise"]
"""What everybody is sent beside the score that ranks."""

_NOISE = 10.0
_VIEW, _RANKING = "redteam", "redteam ranks"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRule:
    """A release rule as the table shows it.

    Attributes:
        rule: of the score that ranks; its numbers are those of a board.toml.
        decimals: digits after the point, 1 to 6.
        beside: what everybody is sent besides.
        noise: standard errors of the noise, where there is any.
    """

    rule: release.ReleaseRule
    decimals: int
    beside: Beside = ""
    noise: float = _NOISE

    @property
    def name(self) -> str:
        """`rounded`, `clear`, `clear+feedback`."""
        return self.rule.rule + (f"+{self.beside}" if self.beside else "")

    @property
    def ranking_share(self) -> float:
        """Share of the queries that rank, of a season where there are season parts."""
        feedback = self.rule.feedback if self.beside == "feedback" else 0.0
        return (1 - feedback) / self.rule.seasons


def parse_rule(text: str, rule: release.ReleaseRule, *, decimals: int, path: str) -> NamedRule:
    """Read the name of a rule.

    Args:
        text: as in `COMPARED`.
        rule: what the text leaves open: the share of the feedback part, and how many season parts
            there are, which only `clear` has.
        decimals: digits after the point, 1 to 6.
        path: where it stands, for the error.

    Raises:
        InputError: code `redteam-release`.
    """
    name, plus, beside = text.partition("+")
    if name not in get_args(release.RuleName) or (plus and beside not in get_args(Beside)[1:]):
        raise InputError.of("redteam-release", path, quote(text))
    change: dict[str, Any] = {"rule": name} | ({"seasons": 1} if name == "rounded" else {})
    named = msgspec.structs.replace(rule, **change)
    return NamedRule(rule=named, decimals=decimals, beside=cast("Beside", beside))


def own_rule(spec: BoardSpec) -> NamedRule:
    """The rule of a board's primary view, with what it publishes of the same set besides."""
    queries = spec.view(spec.primary).set
    views = [view for view in spec.public_views if view.set == queries]
    noise = next((view.noise for view in views if view.noise is not None), None)
    beside: Beside = "noise" if noise is not None else ""
    beside = "feedback" if any(view.part == "feedback" for view in views) else beside
    errors = _NOISE if noise is None else noise
    return NamedRule(rule=spec.release, decimals=spec.decimals, beside=beside, noise=errors)


@dataclass(frozen=True, slots=True)
class GameAnswer:
    """What the board says of a run.

    Attributes:
        score: the published score that ranks; `None` where it stays in the vault.
        other: the number on the feedback part, or with noise; `None` where the board sends none,
            as for a part without queries, or where the baseline's scores give no noise.
    """

    score: float | None
    other: float | None = None


@lru_cache(maxsize=1)  # the seasons of one board share it
def _split(
    key: bytes, count: int, rule: release.ReleaseRule
) -> Mapping[release.Part, frozenset[str]]:
    return release.split_queries(key, map(str, range(count)), rule)


@dataclass(slots=True, kw_only=True, eq=False)
class GameBoard:
    """A board during one game.

    Attributes:
        named: its rule.
        baseline: per-query scores of its best baseline.
        key: the secret of split, jitter and noise.
        best: the highest published score, and the per-query scores of its run on the queries that
            rank; `None` before the first. The baseline does not count.
        season: whose part ranks, from 1.
    """

    named: NamedRule
    baseline: Scores
    key: bytes
    best: tuple[float, Scores] | None = None
    season: int = 1
    _ranks: NDArray[np.bool_] = field(init=False)
    _informs: NDArray[np.bool_] = field(init=False)
    _start: Scores = field(init=False)
    _highest: Scores = field(init=False)
    _before: str = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.baseline)
        self._ranks, self._informs = np.ones(n, np.bool_), np.zeros(n, np.bool_)
        if self.named.ranking_share < 1:
            share = self.named.rule.feedback if self.named.beside == "feedback" else 0.0
            rule = msgspec.structs.replace(self.named.rule, feedback=share)
            parts = _split(self.key, n, rule)
            self._ranks, self._informs = (
                np.isin(np.arange(n), [int(query) for query in parts[part]])
                for part in (self.season, "feedback")
            )
        self._start = self._highest = self.ranking(self.baseline)
        self._before = release.release_mean(self._start, decimals=self.named.decimals)

    def ranking(self, values: Scores) -> Scores:
        """The scores of the queries that rank."""
        return values if self._ranks.all() else values[self._ranks]

    def submit(self, values: Scores) -> GameAnswer:
        """Answer a run, by its scores per query; what it changes stays. No rule knows names."""
        scores = self.ranking(values)
        text = self._number(scores) if self._is_published(scores) else None
        if release.is_higher(scores, self._highest):
            self._highest = scores
        published = None if text is None else float(text)
        if published is not None and (self.best is None or published > self.best[0]):
            self.best, self._before = (published, scores), str(text)
        return GameAnswer(published, self._beside(values))

    def would_publish(self, values: Scores) -> bool:
        """Check whether a run would get a score now; nothing changes."""
        return self._is_published(self.ranking(values))

    def _is_published(self, scores: Scores) -> bool:
        if self.named.rule.rule == "rounded":
            return True
        jitter = release.draw_jitter(self.key, _VIEW, scores, self._start)
        return release.is_clear(scores, self._highest, jitter=jitter)

    def _number(self, scores: Scores) -> str:
        decimals = self.named.decimals
        if self.named.rule.rule == "rounded" or not np.ptp(self._start):
            return release.release_mean(scores, decimals=decimals)
        text = self._add_noise(scores, self._start, release.NOISE, view=_RANKING)
        return release.raise_number(text, [self._before], decimals=decimals)

    def _add_noise(self, scores: Scores, baseline: Scores, errors: float, *, view: str) -> str:
        drawn, decimals = release.draw_noise(self.key, view, scores), self.named.decimals
        return release.add_noise(scores, baseline, errors=errors, drawn=drawn, decimals=decimals)

    def _beside(self, values: Scores) -> float | None:
        if self._informs.any():
            mean = float(values[self._informs].mean())
            return float(release.release_score(mean, decimals=self.named.decimals))
        if self.named.beside == "noise" and np.ptp(self.baseline) > 0:
            return float(self._add_noise(values, self.baseline, self.named.noise, view=_VIEW))
        return None

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in `Answer.other`, in units of the measure.

        The rule is public, and so is this: infinite where the number says nothing of the queries
        that rank.
        """
        if self.named.beside != "noise":
            return math.inf
        return self.named.noise * release.standard_error(self.baseline)

    def blur(self, error: float) -> float:
        """Standard deviation of what stands on top of a published score: noise, and rounding.

        Args:
            error: standard error of a score, the larger of the run's and the baseline's.
        """
        errors = release.NOISE if self.named.rule.rule == "clear" else 0.0
        rounding = 10.0**-self.named.decimals / math.sqrt(12)
        return math.hypot(errors * error / self.named.ranking_share**0.5, rounding)

    def chance(self, above: Scores, error: Scores | float, spread: float) -> Scores:
        """Compute how probably a run is published: that the jitter is smaller than what is left.

        The rule is public, and so is this.

        Args:
            above: how far it lies above the best run, in units of the measure.
            error: standard error of that difference.
            spread: that of the difference from the baseline.
        """
        left = np.maximum(0, above - release.CLEARLY * error) / (release.JITTER * spread)
        return np.ones_like(left) if self.named.rule.rule == "rounded" else -np.expm1(-left)
