"""How far a model judge agrees with people, on pairs that both judged.

A model is asked in both orders. Where its two answers differ it has no preference: a half for each
passage, and a flip. Intervals are over queries, since pairs of one query resemble each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np

from heldout.preferences.drawing import Pair
from heldout.preferences.model_judgments import ModelJudgment
from heldout.preferences.pools import Pool
from heldout.preferences.votes import PairVotes, Votes
from heldout.stats.agreement import Agreement, cohen_interval, cohen_kappa
from heldout.stats.regression import LogisticFit, MeanFit, clustered_share, fit_logistic
from heldout.stats.tests import compare_counts

__all__ = [
    "ENOUGH",
    "LEADS",
    "Calibration",
    "CalibrationError",
    "Stratum",
    "Verdict",
    "calibrate",
    "reach_verdicts",
]

ENOUGH = 300
"""Pairs that a calibration should have at least."""

LEADS = (0, 1, 2, 3)
"""Leads of votes by which pairs are told apart; the last stands for all greater ones."""

_BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a model makes of a pair.

    Attributes:
        pair: query and the two passages, the lesser id first.
        share: 1 for the passage with the lesser id, 0 for the other, a half for neither.
        chosen_twice: of a flip, which place it chose both times; `None` where it did not flip or
            the places are not known.
        probability: that the passage with the lesser id is better, over both orders; `None` where
            not known.
    """

    pair: Pair
    share: float
    chosen_twice: Literal["A", "B"] | None = None
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Pairs that people told apart with one lead of votes.

    Attributes:
        lead: of votes; the last of `LEADS` stands for all greater ones.
        pairs: that the model judged too.
        agree: the model prefers what most people did; 0 at lead 0.
        disagree: it prefers the other.
        flips: it has no preference.
    """

    lead: int
    pairs: int
    agree: int
    disagree: int
    flips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationError:
    """Expected calibration error: how far confidence lies from accuracy, in ten bins.

    Attributes:
        value: 0 to 1; `None` where no pair has probabilities in both orders.
        pairs: that have them.
    """

    value: float | None
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A model against people.

    Attributes:
        verdicts: pairs that the model judged in both orders.
        flips: of these, those where its two answers differ.
        flip_rate: their share.
        first_twice: flips where it chose the passage shown first both times.
        second_twice: where it chose the second both times.
        side_p: that it flips to either side equally often, exact; `None` without such flips.
        compared: pairs that also have votes of people, and not as many on each side.
        agree: the model prefers what most people did.
        disagree: it prefers the other.
        tied: it has no preference.
        accuracy: share of agreement, a tie counted as a half.
        decided: the same where the model has a preference.
        kappa: Cohen's, where both have one; categories are the lesser and the greater id.
        kappa_interval: over queries; `None` where undefined.
        length: log odds of preferring a passage e times as long, people's votes being equal:
            first people's lean (-1 to 1), then the logarithm of the lengths' ratio.
        error: expected calibration error.
        strata: by people's lead of votes.
        level: of the intervals.
    """

    verdicts: int
    flips: int
    flip_rate: MeanFit
    first_twice: int
    second_twice: int
    side_p: float | None
    compared: int
    agree: int
    disagree: int
    tied: int
    accuracy: MeanFit
    decided: MeanFit
    kappa: Agreement
    kappa_interval: tuple[float, float] | None
    length: LogisticFit
    error: CalibrationError
    strata: tuple[Stratum, ...]
    level: float


def reach_verdicts(rows: Iterable[ModelJudgment]) -> tuple[Verdict, ...]:
    """What a model makes of each pair that it was asked about in both orders, in order of pairs.

    Args:
        rows: of one judge. Of several for one order the last counts; a pair with a failure, or
            asked in one order alone, has no verdict.
    """
    last = {(row.query, row.a, row.b): row for row in rows}
    found = []
    for query, a, b in sorted({row.pair for row in last.values()}):
        there, back = last.get((query, a, b)), last.get((query, b, a))
        if there and back and there.chosen is not None and back.chosen is not None:
            found.append(_verdict((query, a, b), there, back))
    return tuple(found)


def calibrate(
    verdicts: Sequence[Verdict],
    votes: Votes,
    *,
    pools: Sequence[Pool] = (),
    rng: np.random.Generator,
    level: float = 0.95,
) -> Calibration:
    """Compare a model's verdicts with people's votes.

    Args:
        verdicts: one for each pair.
        votes: of people, those that count.
        pools: where the texts are, for lengths.
        rng: draws queries for the interval of kappa.
        level: of the intervals, above 0 and below 1.
    """
    both = [(one, _votes_on(votes, one.pair)) for one in verdicts]
    compared = [(one, found) for one, found in both if found and found.first != found.second]
    sides = Counter(one.chosen_twice for one in verdicts)
    right = [_is_right(one, found) for one, found in compared]
    queries = [one.pair[0] for one, _ in compared]
    decided = [place for place, share in enumerate(right) if share != 0.5]  # noqa: PLR2004 - neither
    model = [_side(compared[place][0].share) for place in decided]
    people = [_side(_share_of(compared[place][1])) for place in decided]
    groups = [queries[place] for place in decided]
    return Calibration(
        verdicts=len(verdicts),
        flips=sum(_flipped(one) for one in verdicts),
        flip_rate=clustered_share(
            [float(_flipped(one)) for one in verdicts], [v.pair[0] for v in verdicts], level=level
        ),
        first_twice=sides["A"],
        second_twice=sides["B"],
        side_p=compare_counts(sides["A"], sides["B"]).p,
        compared=len(compared),
        agree=right.count(1.0),
        disagree=right.count(0.0),
        tied=right.count(0.5),
        accuracy=clustered_share(right, queries, level=level),
        decided=clustered_share([right[place] for place in decided], groups, level=level),
        kappa=cohen_kappa(model, people),
        kappa_interval=cohen_interval(model, people, rng, groups=groups, level=level),
        length=_fit_length([(v, f) for v, f in both if f], pools, level),
        error=_calibration_error(compared),
        strata=_strata([(one, found) for one, found in both if found]),
        level=level,
    )


def _verdict(pair: Pair, there: ModelJudgment, back: ModelJudgment) -> Verdict:
    """From the answers with the lesser id first, and with the greater one first."""
    probability = None
    if there.probability is not None and back.probability is not None:
        probability = (there.probability + 1 - back.probability) / 2
    if there.chosen == back.chosen:
        share = float(there.chosen == pair[1])
        return Verdict(pair=pair, share=share, probability=probability)
    twice: Literal["A", "B"] = "A" if there.chosen == there.a else "B"
    return Verdict(pair=pair, share=0.5, chosen_twice=twice, probability=probability)


def _votes_on(votes: Votes, pair: Pair) -> PairVotes | None:
    return votes.get(pair[0], {}).get(pair[1:])


def _share_of(found: PairVotes) -> float:
    """1 where most people prefer the lesser id, 0 where the other, a half where as many."""
    return (1 + (found.first > found.second) - (found.first < found.second)) / 2


def _flipped(verdict: Verdict) -> bool:
    return verdict.share == 0.5  # noqa: PLR2004 - neither


def _side(share: float) -> str:
    return "lesser" if share > 0.5 else "greater"  # noqa: PLR2004 - neither


def _is_right(verdict: Verdict, found: PairVotes) -> float:
    """1 where the model agrees with most people, 0 where not, a half where it has no preference."""
    return 0.5 if _flipped(verdict) else float(verdict.share == _share_of(found))


def _strata(both: Sequence[tuple[Verdict, PairVotes]]) -> tuple[Stratum, ...]:
    named: defaultdict[int, list[float]] = defaultdict(list)
    for one, found in both:
        lead = min(abs(found.first - found.second), LEADS[-1])
        named[lead].append(_is_right(one, found) if lead else (0.5 if _flipped(one) else -1.0))
    return tuple(
        Stratum(
            lead=lead,
            pairs=len(named[lead]),
            agree=named[lead].count(1.0),
            disagree=named[lead].count(0.0),
            flips=named[lead].count(0.5),
        )
        for lead in LEADS
        if named[lead]
    )


def _fit_length(
    both: Sequence[tuple[Verdict, PairVotes]], pools: Sequence[Pool], level: float
) -> LogisticFit:
    """Passages exchange their names as they like, so there is no intercept."""
    sizes: Mapping[tuple[str, str], int] = {
        (pool.query, one.doc): len(one.text) for pool in pools for one in pool.candidates
    }
    rows, outcomes, groups = [], [], []
    for one, found in both:
        query, first, second = one.pair
        lengths = sizes.get((query, first), 0), sizes.get((query, second), 0)
        if all(lengths):
            lean = (found.first - found.second) / found.total
            rows.append((lean, log(lengths[0] / lengths[1])))
            outcomes.append(one.share)
            groups.append(query)
    if not rows:
        return LogisticFit(values=(), low=(), high=(), units=0, groups=0, why="no texts")
    return fit_logistic(rows, outcomes, groups, level=level)


def _calibration_error(compared: Sequence[tuple[Verdict, PairVotes]]) -> CalibrationError:
    """Bins of equal width from a half, where a model guesses, to 1."""
    sure, right = [], []
    for one, found in compared:
        if one.probability is not None:
            sure.append(max(one.probability, 1 - one.probability))
            agreed = (one.probability > 0.5) == (_share_of(found) == 1)  # noqa: PLR2004 - neither
            right.append(0.5 if one.probability == 0.5 else float(agreed))  # noqa: PLR2004 - same
    if not sure:
        return CalibrationError(value=None, pairs=0)
    confidence, hits = np.array(sure), np.array(right)
    bins = np.minimum(((confidence - 0.5) * 2 * _BINS).astype(int), _BINS - 1)
    apart = np.abs(np.bincount(bins, weights=hits - confidence, minlength=_BINS))
    return CalibrationError(value=float(apart.sum() / len(sure)), pairs=len(sure))
