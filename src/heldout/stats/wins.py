"""Who wins more queries: the exact binomial test, by sign or by what one alone answers."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv

from heldout.stats.exact import DECIMALS, differences
from heldout.stats.result import Ask, Found, choose_tail

__all__ = ["binomial_test", "compare_wins", "count_signs", "sign_test", "wins_p"]

Scores = NDArray[np.float64]


def sign_test(a: Scores, b: Scores, ask: Ask, *, tolerance: float) -> Found:
    """The sign test: does each system win as often as the other?

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
        tolerance: differences of at most so much are ties, and dropped.
    """
    return compare_wins(*count_signs(differences(a, b), tolerance), ask)


def binomial_test(a: Scores, b: Scores, ask: Ask, *, above: float) -> Found:
    """The exact binomial test on the queries that one system alone answers (McNemar's, exact).

    Args:
        a: scores of A.
        b: scores of B on the same queries.
        ask: direction and level.
        above: a query is answered by a score above this.
    """
    first, second = a > above, b > above
    return compare_wins(int(np.sum(first & ~second)), int(np.sum(second & ~first)), ask)


def count_signs(difference: Scores, tolerance: float) -> tuple[int, int]:
    """How many queries A wins, and how many B, by more than a tolerance."""
    sizes = np.round(difference, DECIMALS)
    return int(np.sum(sizes < -tolerance)), int(np.sum(sizes > tolerance))


def compare_wins(a_wins: int, b_wins: int, ask: Ask) -> Found:
    """The exact binomial test of counts, with the Clopper-Pearson interval.

    Args:
        a_wins: queries won by A, >= 0.
        b_wins: queries won by B, >= 0.
        ask: direction and level.

    Returns:
        The difference is the share that B won less the share that A won.
    """
    used = a_wins + b_wins
    if not used:
        return Found(used=0, difference=None, why="no query has a winner")
    tail = ask.alpha / 2
    low = float(betaincinv(b_wins, a_wins + 1, tail)) if b_wins else 0.0
    # The mirrored lower end, so that B against A is A against B with its sign changed
    high = float(betaincinv(a_wins, b_wins + 1, tail)) if a_wins else 0.0
    return Found(
        used=used,
        difference=(b_wins - a_wins) / used,
        low=2 * low - 1,
        high=1 - 2 * high,
        statistic=float(b_wins),
        p=wins_p(a_wins, b_wins, share=0.5, ask=ask),
    )


def wins_p(a_wins: int, b_wins: int, *, share: float, ask: Ask) -> float:
    """The binomial p-value of counts of wins.

    Args:
        a_wins: queries won by A.
        b_wins: queries won by B.
        share: that B wins under the null, 0 < share < 1; 0.5 where `ask` is two-sided.
        ask: direction.
    """
    return choose_tail(
        greater=float(betainc(b_wins, a_wins + 1, share)) if b_wins else 1.0,
        less=float(betainc(a_wins, b_wins + 1, 1 - share)) if a_wins else 1.0,
        alternative=ask.alternative,
    )
