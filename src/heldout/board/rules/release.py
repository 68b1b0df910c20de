"""The rule that turns a true score into what leaves the vault: a text, or nothing.

`rounded` publishes every score.

`clear` publishes a score only where it lies clearly above the best run that anybody has sent,
published or not, and then with noise. It holds per view, for the whole board, so that many names
are one name (docs/explanation/release.md has the reasons, docs/explanation/redteam.md what
attackers gain).

Rounding is printf's: the exact binary value, rounded half to even at the last shown digit, as
trec_eval prints it. Everything that leaves uses the text made here: page, comment, CSV, JSON, log.
"""

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from statistics import stdev
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
