"""Is B as good as A, but for a margin? Equivalence and non-inferiority.

No significant difference is no evidence of no difference. These tests turn the question round:
under their null B is worse by the margin or more (non-inferiority), or the two differ by the margin
or more (equivalence: two one-sided tests).
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.stats.exact import DECIMALS, differences
from heldout.stats.rank_tests import compare_wins, count_signs, rank_differences, wins_p
from heldout.stats.results import Alternative, Ask, Found
from heldout.stats.student import compare_mean

__all__ = ["By", "equivalence_test", "non_inferiority_test"]

By = Literal["t", "signed-rank", "sign"]
Scores = NDArray[np.float64]


def equivalence_test(a: Scores, b: Scores, ask: Ask, *, margin: float, by: By) -> Found:
    """Do A and B differ by less than the margin? Two one-sided tests (TOST).

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: level.
        margin: > 0, in the units of the test that it goes by.
        by: that test.

    Raises:
        InputError: code `test-option`: by `sign` the margin is 1 or more.

    Returns:
        p is the larger of the two. The interval has level 1 - 2 alpha: it lies within the
        margins where p is below alpha.
    """
    _check_margin(margin, by)
    difference = differences(a, b)
    sides = [
        _beyond(difference, null=-margin, by=by, alternative="greater"),
        _beyond(difference, null=margin, by=by, alternative="less"),
    ]
    return _frame(difference, ask, by, max(sides, key=_as_number))


def non_inferiority_test(a: Scores, b: Scores, ask: Ask, *, margin: float, by: By) -> Found:
    """Is B worse than A by less than the margin?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level; `less` asks whether B is better by less than the margin.
        margin: > 0, in the units of the test that it goes by.
        by: that test.

    Raises:
        InputError: code `test-option`: by `sign` the margin is 1 or more.

    Returns:
        The interval has level 1 - 2 alpha, so that its end tells what p tells.
    """
    _check_margin(margin, by)
    difference = differences(a, b)
    null = -margin if ask.alternative == "greater" else margin
    side = _beyond(difference, null=null, by=by, alternative=ask.alternative)
    return _frame(difference, ask, by, side)


def _check_margin(margin: float, by: By) -> None:
    if by == "sign" and margin >= 1:
        raise InputError(
            Problem(
                code="test-option",
                path="margin",
                found=f"{margin:g}",
                expected="a share of wins between 0 and 1",
                hint="no difference of shares is larger than 1",
            )
        )


class _Side(NamedTuple):
    p: float | None
    statistic: float | None


def _as_number(side: _Side) -> float:
    return 2.0 if side.p is None else side.p


def _beyond(difference: Scores, *, null: float, by: By, alternative: Alternative) -> _Side:
    """One side: the test of a null that is not 0."""
    ask = Ask(alternative=alternative, level=0.95)
    if by == "sign":
        a_wins, b_wins = count_signs(difference, 0)
        if not a_wins + b_wins:
            return _Side(None, None)
        return _Side(wins_p(a_wins, b_wins, share=(1 + null) / 2, ask=ask), float(b_wins))
    if by == "t":
        found = compare_mean(difference, ask, null=null)
    else:
        moved = np.round(difference - null, DECIMALS)
        found = rank_differences(moved, ask, zeros="wilcox", continuity=True, method="auto")
    return _Side(found.p, found.statistic)


def _frame(difference: Scores, ask: Ask, by: By, side: _Side) -> Found:
    """The estimate and its interval, with what the deciding side says."""
    level = 1 - 2 * ask.alpha
    plain = Ask(alternative="two-sided", level=level)
    if by == "sign":
        found = compare_wins(*count_signs(difference, 0), plain)
    elif by == "t":
        found = compare_mean(difference, plain)
    else:
        # A difference of 0 speaks for equivalence: the interval is of all differences
        found = rank_differences(
            difference, plain, zeros="zsplit", continuity=True, method="approximate"
        )
    return Found(
        used=found.used,
        difference=found.difference,
        low=found.low,
        high=found.high,
        level=level,
        statistic=side.statistic,
        p=side.p,
        why=found.why if side.p is None or found.low is None else None,
    )
