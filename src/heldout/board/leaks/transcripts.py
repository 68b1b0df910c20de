"""How many different answers a release rule can give: what its releases can carry at most.

A bit is counted where the answer could have been another: log2 of the number of transcripts that a
team could have been given. Under `rounded` each release is one of V texts, so k of them are V^k
transcripts. Under `ladder` and `step` the best that a team was told never falls, so a climb of k
submissions is a row of k values of V that never falls: C(V + k - 1, k) transcripts, the sum over j
of C(k - 1, j - 1) C(V, j), where j is how many of the k were released. (Source: the count of
transcripts in Blum and Hardt 2015, section 3; the closed form is ours.)
"""

import math

from heldout.board.rules.release import ReleaseRule

__all__ = ["bits_of", "count_spreads", "count_texts"]


def count_texts(rule: ReleaseRule, *, decimals: int) -> int:
    """How many texts a release may be, for a score from 0 to 1.

    Args:
        rule: its numbers are right by `release.check_rule`.
        decimals: digits after the point, 1 to 6.
    """
    return 1 + (round(1 / rule.step) if rule.rule == "step" else 10**decimals)


def count_spreads(seeds: int, *, decimals: int) -> int:
    """How many texts the spread of scores from 0 to 1 may be; 1 where there is no spread.

    The deviation is largest where half of the seeds score 0 and the others 1.

    Args:
        seeds: how many, at least 1.
        decimals: digits after the point, 1 to 6.
    """
    if seeds == 1:
        return 1
    ones = seeds // 2
    widest = math.sqrt(ones * (seeds - ones) / (seeds * (seeds - 1)))
    return 1 + round(widest * math.pow(10, decimals))


def bits_of(rule: ReleaseRule, *, decimals: int, submissions: int) -> float:
    """Bits that a team's submissions could have been told in one view, at most.

    Args:
        rule: its numbers are right by `release.check_rule`.
        decimals: digits after the point, 1 to 6.
        submissions: of one team in a row, told or not; at least 0.

    Returns:
        log2 of the number of transcripts, for scores from 0 to 1.
    """
    if submissions < 0:
        raise ValueError(submissions)
    texts = count_texts(rule, decimals=decimals)
    if rule.rule == "rounded" or submissions == 0:
        return submissions * math.log2(texts)
    rows = math.lgamma(texts + submissions) - math.lgamma(submissions + 1) - math.lgamma(texts)
    return rows / math.log(2)
