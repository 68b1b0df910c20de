"""How far judges agree on pairs, and how far they should, being right as often as they are.

Low agreement alone is no sign of careless judges, nor of careful ones: where the two passages are
nearly as good, honest judges differ; tests tell who is careless. What is expected of judges follows
from how often one is right.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from heldout.preferences.judgments import Judgment
from heldout.stats.agreement import krippendorff_alpha, krippendorff_interval

__all__ = ["STUDY_ACCURACY", "JudgeAgreement", "expected_alpha", "judge_agreement"]

STUDY_ACCURACY = 1228 / 1868
"""How often a worker preferred the known answer to the second document of a run that agreed with
it (shallow-pooling, table 2, category A)."""

_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """Agreement of judges.

    Attributes:
        alpha: Krippendorff's, nominal, over pairs; `None` where undefined.
        interval: of alpha, from drawing queries; `None` where undefined.
        pairs: judged at least twice.
        votes: on these.
        alike: share of two votes on one pair that prefer the same passage; `None` without such.
        why: why alpha is undefined, else `None`.
    """

    alpha: float | None
    interval: tuple[float, float] | None
    pairs: int
    votes: int
    alike: float | None
    why: str | None = None


def expected_alpha(accuracy: float) -> float:
    """Alpha of judges who are each right so often, independently, with sides drawn by chance.

    Two votes are alike with probability p^2 + (1 - p)^2, by chance with 1/2, so that alpha is about
    (2p - 1)^2: 0.10 at the accuracy of the study.

    Args:
        accuracy: share of votes for the better passage, 0 to 1.
    """
    return float((2 * accuracy - 1) ** 2)


def judge_agreement(
    votes: Iterable[Judgment], rng: np.random.Generator, *, level: float = 0.95, trials: int = 1000
) -> JudgeAgreement:
    """Agreement on pairs that were judged at least twice.

    Which passage of a pair is called the first means nothing. Each pair is therefore entered both
    ways round, so that alpha is the same whatever passages are called; two votes are alike by
    chance with 1/2.

    Args:
        votes: those that count, as `counted` gives them; others without a preference are passed
            over.
        rng: draws queries for the interval: pairs of one query share passages.
        level: of the interval.
        trials: how many draws; 0 for no interval.
    """
    given: dict[tuple[str, str, str], list[float]] = {}
    for one in votes:
        if one.preferred is not None:
            given.setdefault(one.pair, []).append(float(one.preferred == one.pair[1]))
    several = {pair: found for pair, found in given.items() if len(found) >= _TWO}
    one_way = np.full((max(map(len, several.values()), default=0), len(several)), np.nan)
    for column, found in enumerate(several.values()):
        one_way[: len(found), column] = found
    ratings = np.hstack([one_way, 1 - one_way])
    alpha = krippendorff_alpha(ratings)
    queries = np.array([query for query, _, _ in several] * _TWO)
    interval = None
    if trials:
        interval = krippendorff_interval(ratings, rng, groups=queries, level=level, trials=trials)
    return JudgeAgreement(
        alpha=alpha.value,
        interval=interval,
        pairs=len(several),
        votes=sum(map(len, several.values())),
        alike=_alike(several.values()),
        why=alpha.why,
    )


def _alike(several: Iterable[list[float]]) -> float | None:
    """Over all two votes on one pair, each couple alike."""
    same = couples = 0.0
    for found in several:
        size, ones = len(found), sum(found)
        couples += size * (size - 1) / 2
        same += (ones * (ones - 1) + (size - ones) * (size - ones - 1)) / 2
    return same / couples if couples else None
