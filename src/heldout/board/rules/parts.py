"""Parts of a held-out set, and scores with noise: what the set's secret key decides.

A set may be split: the scores on the feedback part are all published and do not affect the ranking,
and those on the deciding part follow the board's release rule. The deciding part may be cut into
season parts, so that each season ranks by queries of its own. Nobody without the key knows which
query lies in which part. A score may also be published with so much noise that it shows little
more than that a run works. Who has the key, as everybody has it after the board's end, can draw
both again (docs/reference/board.md).
"""

import hashlib
import hmac
import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heldout.board.rules.release import ReleaseRule, release_score, standard_error
from heldout.board.rules.spec import Part, View

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


def say_error(view: View, values: ArrayLike, first: ArrayLike, *, decimals: int) -> str:
    """Return the standard error of a score that only informs, as text; "" for a group's mean.

    With noise it is the same for every entry, that of a score which varies over queries as the
    first baseline's does: its own would say what the noise hides.

    Args:
        view: one whose scores are for information only.
        values: per-query scores, as of `add_noise`.
        first: those of the first baseline.
        decimals: digits after the point.

    Returns:
        `sd / sqrt(n)`, with noise times `sqrt(noise^2 + 1)`.
    """
    if view.summary != "mean":
        return ""
    scores = np.asarray(values if view.noise is None else first, np.float64)
    error = standard_error(scores) * math.hypot(view.noise or 0, 1)
    return release_score(error, decimals=decimals)


def say_part(view: View) -> str:
    """Return what stands beside the score of a part, or with noise; "" beside others."""
    if view.noise is not None:
        return "with noise (for information only)"
    if view.part == "feedback":
        return "feedback (for information only)"
    return "" if view.part is None else name_part(view.part).removeprefix("the ")


def _checked_error(values: NDArray[np.float64]) -> float:
    if values.ndim != 1 or values.size < _FEWEST or not np.isfinite(values).all():
        raise ValueError("it takes finite scores of at least two queries")
    return standard_error(values)
