"""What of true scores leaves the vault: by the release rule, with noise, of a part, in a final.

`rounded` publishes every score.

`clear` publishes a score only where it lies clearly above the best run that anybody has sent,
published or not, and then with noise. It holds per view, for the whole board, so that many names
are one name (docs/explanation/release.md has the reasons, docs/explanation/redteam.md what
attackers gain).

Rounding is printf's: the exact binary value, rounded half to even at the last shown digit, as
trec_eval prints it. Everything that leaves uses the text made here: page, comment, CSV, JSON, log.

A set may be split: the scores on the feedback part are all published and do not affect the ranking,
and those on the deciding part follow the board's release rule. The deciding part may be cut into
season parts, so that each season ranks by queries of its own. Nobody without the set's secret key
knows which query lies in which part. A score may also be published with so much noise that it
shows little more than that a run works. Who has the key, as everybody has it after the board's end,
can draw both again (docs/reference/board.md).

The queries of a final view were never used before, so nobody can have fitted a run to them, and
each finalist is scored on them once. What is left is the luck of the best of several: a fixed
number of finalists that are named before bounds it.
"""

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import combinations, pairwise
from statistics import NormalDist, median, stdev
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike, NDArray

RuleName = Literal["rounded", "clear"]

NOT_CLEAR = "not clearly above the best run that was sent"
"""What is said, under `clear`, of an entry whose score stays in the vault."""

CLEARLY = 2.0
"""Paired standard errors that make a clear difference: for `clear`, and in a final."""
JITTER = 0.75
"""Standard errors of the difference from the baseline that it asks for besides, in the mean."""
NOISE = 1.0
"""Standard errors of the noise in a number that `clear` publishes."""

# A run that differs in one query lies exactly one standard error away, whichever query it is:
# rounding errors, which depend on the order of queries, must not decide that.
_TIE = 1e-9


class ReleaseRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[release]`: what is published of a true score.

    Attributes:
        rule: `rounded`: every score; `clear`: one that lies clearly above the best run that
            anybody has sent.
        submissions: the number that the board declares for its whole life, of all teams; 1 to
            1,000,000.
        feedback: share of a split set's queries that is its feedback part; 0 for none, below 1.
        seasons: number of season parts that the other queries of a split set are cut into; 1 to
            100.
    """

    rule: RuleName = "rounded"
    submissions: Annotated[int, Meta(ge=1, le=1_000_000)] = 300
    feedback: Annotated[float, Meta(ge=0, lt=1)] = 0.25
    seasons: Annotated[int, Meta(ge=1, le=100)] = 1


def release_score(score: float, *, decimals: int) -> str:
    """A score as the text that may leave the vault.

    Args:
        score: finite.
        decimals: digits after the point, 1 to 6.
    """
    if not Decimal(score).is_finite():
        raise ValueError(score)
    return f"{score:.{decimals}f}"


def release_spread(seeds: Sequence[float], *, decimals: int) -> str:
    """The standard deviation over seeds, as the text that may leave the vault beside a mean.

    Args:
        seeds: each seed's score, finite, at least two.
        decimals: digits after the point, 1 to 6.

    Returns:
        The sample's deviation, with n - 1 in the denominator; the sums are exact, so that no order
        of seeds matters.
    """
    return release_score(stdev(seeds), decimals=decimals)


def score_vector(per_query: Mapping[str, float | None], *, n: int) -> NDArray[np.float64]:
    """Per-query scores as the release rules take them: in the order of the query ids.

    Args:
        per_query: query -> score, `None` where the measure is undefined.
        n: how many queries the mean is taken over; those beyond the defined ones score 0, as a
            board with `denominator = "all"` has it.
    """
    defined = [value for _, value in sorted(per_query.items()) if value is not None]
    if len(defined) > n:
        raise ValueError(n)
    return np.array(defined + [0.0] * (n - len(defined)), np.float64)


def draw_jitter(key: bytes, view: str, values: ArrayLike, baseline: ArrayLike) -> float:
    """Draw how far a run has to lie above the best one, besides two standard errors.

    The same scores have the same jitter, so that sending a run again is no second try, and an
    audit can draw it again. Without the key nobody knows it. Its scale is the paired standard
    error of the difference from the baseline: where the baseline is weak, and leaves attackers
    room for many questions, each answer says less (docs/explanation/redteam.md).

    Args:
        key: the query set's secret key, of the vault.
        view: name of the view.
        values: per-query scores in the order of `score_vector`.
        baseline: those of the baseline with the best published score.

    Returns:
        In units of the measure: `JITTER` times that standard error times a draw of the exponential
        distribution with mean 1; 0 for a single query.
    """
    scores = np.ascontiguousarray(values, "<f8")
    message = b"\0".join((b"heldout clear", view.encode(), scores.tobytes()))
    drawn = hmac.new(key, message, hashlib.sha256).digest()
    draw = -math.log1p(-(int.from_bytes(drawn[:8]) >> 11) / 2**53)
    return JITTER * draw * standard_error(scores - np.asarray(baseline, np.float64))


def release_mean(values: ArrayLike, *, decimals: int) -> str:
    """The score of one submission in one view, as `rounded` publishes it.

    Args:
        values: score of every query that the mean is over, finite, at least one.
        decimals: digits after the point, 1 to 6.

    Raises:
        ValueError: a score is not a finite number.
    """
    return release_score(_mean(_check_values(values)), decimals=decimals)


def is_clear(values: ArrayLike, best: NDArray[np.float64], *, jitter: float) -> bool:
    """Tell whether `clear` publishes a score: it lies clearly above that of the best run.

    Args:
        values: as for `release_mean`, higher is better.
        best: scores of the best run that anybody has sent so far, a baseline at first, of the same
            queries; after labels have changed those under the new labels.
        jitter: what `draw_jitter` gives for these values, in units of the measure.

    Raises:
        ValueError: a score is not a finite number, or the two are not of the same queries.
    """
    scores = _check_values(values)
    if best.shape != scores.shape:
        raise ValueError(f"{scores.size} queries now, {best.size} before")
    rise = scores - best
    # One query has no standard error, so it never shows a rise.
    needed = (CLEARLY * standard_error(rise) + jitter) * (1 + _TIE)
    return rise.size > 1 and float(rise.mean()) > needed


def raise_number(text: str, before: Iterable[str], *, decimals: int) -> str:
    """Raise a number with noise to one last digit above all before it, at least.

    Each score that `clear` publishes is above those before it, so the order of the numbers is that
    of the scores, for all their noise.

    Args:
        text: the score with noise.
        before: the numbers that were published before it in the view.
        decimals: digits after the point, 1 to 6.
    """
    digit = Decimal(1).scaleb(-decimals)
    least = max(map(Decimal, before), default=Decimal("-Infinity")) + digit
    return text if Decimal(text) >= least else str(least.quantize(digit))


def is_higher(scores: NDArray[np.float64], before: NDArray[np.float64]) -> bool:
    """Check whether a run's mean is higher than another's; where nearly equal, by exact sums.

    Args:
        scores: its scores by query, as `score_vector` has them.
        before: the other's, of the same queries.
    """
    mean = float((scores - before).mean())
    return mean > 0 if abs(mean) > _TIE else _mean(scores) > _mean(before)


def standard_error(values: NDArray[np.float64]) -> float:
    """Of the mean; 0 for a single query."""
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def _check_values(values: ArrayLike) -> NDArray[np.float64]:
    scores = np.asarray(values, np.float64)
    if scores.ndim != 1 or not scores.size or not np.isfinite(scores).all():
        raise ValueError("per-query scores are a row of finite numbers, at least one")
    return scores


def _mean(scores: NDArray[np.float64]) -> float:
    """As `measures.evaluate` takes it: the sum exact, so that no order of queries matters."""
    return math.fsum(scores.tolist()) / scores.size


Part = Literal["deciding", "feedback"] | int
"""The parts of a split set: one follows the release rule, of the other every score is published.
A number is a season part: one of the pieces of the deciding part, from 1 to `release.seasons`."""

_FEWEST = 2


def split_queries(
    key: bytes, queries: Iterable[str], rule: ReleaseRule
) -> Mapping[Part, frozenset[str]]:
    """The queries of every part of a split set.

    Neither labels nor the order of the ids play a part, so that new labels leave the split as it
    is.

    Args:
        key: the set's secret key, of the vault.
        queries: ids of all queries of the set.
        rule: its `feedback` and `seasons` count.

    Returns:
        The feedback part, the deciding part, and the season parts 1 to `rule.seasons`: the deciding
        queries in the order of the draw, cut so that the sizes differ by one at most.
    """

    def draw(query: str) -> tuple[bytes, str]:
        message = b"\0".join((b"heldout part", query.encode()))
        return hmac.new(key, message, hashlib.sha256).digest(), query

    drawn = sorted(set(queries), key=draw)
    first = round(rule.feedback * len(drawn))
    deciding, seasons = drawn[first:], rule.seasons
    cuts = [len(deciding) * season // seasons for season in range(seasons + 1)]
    parts: dict[Part, list[str]] = {"feedback": drawn[:first], "deciding": deciding}
    for number, (low, high) in enumerate(pairwise(cuts), 1):
        parts[number] = deciding[low:high]
    return {part: frozenset(ids) for part, ids in parts.items()}


def name_part(part: Part) -> str:
    """Name a part: `the deciding part`, `season part 2`."""
    return f"season part {part}" if isinstance(part, int) else f"the {part} part"


def draw_noise(key: bytes, view: str, values: ArrayLike) -> float:
    """The noise of a run's score in a view, a draw of the standard normal distribution.

    The same scores have the same noise, so that to send a run again averages nothing out, and an
    audit can draw it again.

    Args:
        key: the set's secret key, of the vault.
        view: name of the view.
        values: per-query scores in the order of `score_vector`.
    """
    scores = np.ascontiguousarray(values, "<f8")
    message = b"\0".join((b"heldout noise", view.encode(), scores.tobytes()))
    drawn = int.from_bytes(hmac.new(key, message, hashlib.sha256).digest()[:8]) >> 12
    return NormalDist().inv_cdf((drawn + 0.5) / 2**52)


def add_noise(
    values: ArrayLike,
    first: ArrayLike,
    *,
    errors: float,
    drawn: float,
    decimals: int,
) -> str:
    """A score with noise, as the text that may leave the vault.

    The noise is in units of the larger of two standard errors, of this score and of the first
    baseline's. That of their paired difference would be 0 for a copy of the baseline, and the
    run's own would be small for one that answers few queries: both would give a true score away.

    Args:
        values: per-query scores in the order of `score_vector`.
        first: those of the first baseline in the view; the same for the baseline itself.
        errors: `noise` of the view, in standard errors.
        drawn: what `draw_noise` gives for these values.
        decimals: digits after the point, 1 to 6.

    Raises:
        ValueError: there is no standard error, or it is 0: the score would leave without noise.
    """
    scores, baseline = np.asarray(values, np.float64), np.asarray(first, np.float64)
    own = _checked_error(baseline)
    if own == 0:
        raise ValueError("the first baseline scores every query alike; add another one first")
    unit = max(own, _checked_error(scores))
    mean = math.fsum(scores.tolist()) / scores.size
    text = release_score(mean + errors * unit * drawn, decimals=decimals)
    return text if float(text) else release_score(0.0, decimals=decimals)


def _checked_error(values: NDArray[np.float64]) -> float:
    if values.ndim != 1 or values.size < _FEWEST or not np.isfinite(values).all():
        raise ValueError("it takes finite scores of at least two queries")
    return standard_error(values)


MOST_FINALISTS = 10
"""The most finalists that a view may have."""

LEADS = (1.0, 2.0, 3.0, 4.5)
"""Leads of a finalist, in u, for which `share_of_wins` is shown."""

INDEPENDENT = (
    "This takes queries as independent: where they come in clusters, such as paraphrases or "
    "conversations, the luck is larger."
)
"""What holds of the printed luck, and of `share_of_wins`."""

_STEP = 1 / 32
_WIDTH = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalOutcome:
    """What the scores of a final say; finalists are numbered in the order of receipt.

    Attributes:
        means: of each finalist.
        best: the finalist with the highest mean, of equal ones the earliest.
        below: those that are clearly below the best.
        winner: the earliest that is not clearly below the best.
        luck: how far the highest mean lies above its worth on average, if all finalists are
            equally good; in units of the measure. `None` for one finalist, who has none.
    """

    means: tuple[float, ...]
    best: int
    below: tuple[int, ...]
    winner: int
    luck: float | None


def decide_final(scores: Sequence[ArrayLike]) -> FinalOutcome:
    """Decide a final from the scores by query.

    A finalist is clearly below the best if mean(d) > 2 sd(d)/sqrt(n), with d the best's scores less
    its own, query by query, and sd with n - 1. The earliest of the others wins: whoever copies a
    good run, or sends many that are about as good, comes later.

    The luck is E[max of F standard normal draws] * u/sqrt(2), with u the median over all pairs of
    finalists of sd(a - b)/sqrt(n). Reason: let F equally good finalists have scores that scatter
    by s around one common value, independently beside what they have in common. Two of them then
    differ by u = s sqrt(2), and the highest lies E[max] * s above the common value. In the game of
    `heldout redteam`, where every run is one of two systems query by query, a run scatters by half
    of the two systems' u, so that the luck is .5 * E[max] of that u (docs/explanation/redteam.md).

    Args:
        scores: of each finalist, in the order of receipt; each over the same queries in the same
            order, at least two, finite.

    Raises:
        ValueError: there is no finalist, or the scores are not of that kind.
    """
    rows = [np.asarray(row, np.float64) for row in scores]
    if not rows or any(row.ndim != 1 or row.shape != rows[0].shape for row in rows):
        raise ValueError("finalists have scores for the same queries, and there is at least one")
    if rows[0].size < 2 or not all(np.isfinite(row).all() for row in rows):  # noqa: PLR2004 - one query has no deviation
        raise ValueError("a final has two queries or more, and finite scores")
    means = tuple(math.fsum(row.tolist()) / row.size for row in rows)
    # Means that differ by rounding alone are equal: the earlier one is the best.
    best = next(i for i, mean in enumerate(means) if mean >= max(means) - _TIE)
    below = tuple(i for i, row in enumerate(rows) if _is_clearly_above(rows[best], row))
    winner = next(i for i in range(len(rows)) if i not in below)
    return FinalOutcome(means=means, best=best, below=below, winner=winner, luck=_find_luck(rows))


@cache
def expected_maximum(count: int) -> float:
    """The expected value of the highest of some independent standard normal draws.

    By the trapezoid rule, which is exact to rounding for such a function.

    Args:
        count: how many, at least 1.
    """
    if count < 1:
        raise ValueError(count)
    points = [i * _STEP for i in range(round(-_WIDTH / _STEP), round(_WIDTH / _STEP) + 1)]
    return _STEP * math.fsum(x * count * _density(x) * _share(x) ** (count - 1) for x in points)


def share_of_wins(finalists: int, lead: float) -> float:
    """Compute how often a finalist wins that is better than all others, which are equally good.

    In normal approximation: scores scatter independently by u/sqrt(2), so that two finalists
    differ by u, and the order of receipt is random. It wins where it is the best or not clearly
    below a later one, and all earlier ones are clearly below the best.

    Args:
        finalists: how many there are with it, at least 1.
        lead: its worth less that of the others, in u.
    """
    root = math.sqrt(2)
    total = 0.0
    for step in range(round(-_WIDTH / _STEP), round(_WIDTH / _STEP) + 1):
        best = step * _STEP  # the highest score, in u
        below, level = _share((best - CLEARLY) * root), _share(best * root)
        own = root * _density((best - lead) * root)
        near = _share((best - lead) * root) - _share((best - lead - CLEARLY) * root)
        other = root * _density(best * root) * near
        for later in range(finalists):
            ahead = own * level**later + later * other * level ** max(later - 1, 0)
            total += below ** (finalists - 1 - later) * ahead
    return _STEP * total / finalists


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _share(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _find_luck(rows: Sequence[NDArray[np.float64]]) -> float | None:
    if len(rows) == 1:
        return None
    error = median(standard_error(a - b) for a, b in combinations(rows, 2))
    return expected_maximum(len(rows)) * error / math.sqrt(2)


def _is_clearly_above(best: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    rise = best - other
    mean = math.fsum(rise.tolist()) / rise.size
    return mean > _TIE and mean > CLEARLY * standard_error(rise) * (1 + _TIE)
