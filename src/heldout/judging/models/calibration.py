"""How far a model judge agrees with people, on pairs that both judged.

A model is asked in both orders. Where its two answers differ it has no preference: a half for each
passage, and a flip. Intervals are over queries, since pairs of one query resemble each other.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import Literal

import numpy as np
from scipy.stats import beta

from heldout.judging.campaign.drawing import Pair
from heldout.judging.campaign.judgments import PairVotes, Votes
from heldout.judging.campaign.pools import Pool
from heldout.judging.labels.contests import PERFECT
from heldout.judging.models.judges import ModelJudgment
from heldout.stats import agreement, student, tests
from heldout.stats.regression import LogisticFit, MeanFit, clustered_share, fit_logistic

ENOUGH = 300
"""Pairs that a calibration should have at least."""

LEADS = (0, 1, 2, 3)
"""Leads of votes that pairs are grouped by; the last stands for all greater ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVerdict:
    """What a model makes of a pair.

    Attributes:
        pair: query and the two passages, the lesser id first.
        share: 1 for the passage with the lesser id, 0 for the other, a half for neither.
        chosen_twice: of a flip, which place it chose both times; `None` where it did not flip or
            the places are not known.
    """

    pair: Pair
    share: float
    chosen_twice: Literal["A", "B"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Pairs that people decided with one lead of votes.

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
    kappa: agreement.AgreementCoefficient
    kappa_interval: tuple[float, float] | None
    length: LogisticFit
    strata: tuple[Stratum, ...]
    level: float


def reach_verdicts(rows: Iterable[ModelJudgment]) -> tuple[ModelVerdict, ...]:
    """Return what a model makes of each pair asked about in both orders.

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
    verdicts: Sequence[ModelVerdict],
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
    both = [(one, votes.get(one.pair[0], {}).get(one.pair[1:])) for one in verdicts]
    compared = [(one, found) for one, found in both if found and found.first != found.second]
    sides = Counter(one.chosen_twice for one in verdicts)
    right = [_is_right(one, found) for one, found in compared]
    queries = [one.pair[0] for one, _ in compared]
    decided = [index for index, share in enumerate(right) if share != 0.5]  # noqa: PLR2004 - neither
    model = [_side(compared[index][0].share) for index in decided]
    people = [_side(_share_of(compared[index][1])) for index in decided]
    groups = [queries[index] for index in decided]
    return Calibration(
        verdicts=len(verdicts),
        flips=sum(_flipped(one) for one in verdicts),
        flip_rate=clustered_share(
            [float(_flipped(one)) for one in verdicts], [v.pair[0] for v in verdicts], level=level
        ),
        first_twice=sides["A"],
        second_twice=sides["B"],
        side_p=tests.compare_counts(sides["A"], sides["B"]).p,
        compared=len(compared),
        agree=right.count(1.0),
        disagree=right.count(0.0),
        tied=right.count(0.5),
        accuracy=clustered_share(right, queries, level=level),
        decided=clustered_share([right[index] for index in decided], groups, level=level),
        kappa=agreement.cohen_kappa(model, people),
        kappa_interval=agreement.cohen_interval(model, people, rng, groups=groups, level=level),
        length=_fit_length([(v, f) for v, f in both if f], pools, level),
        strata=_strata([(one, found) for one, found in both if found]),
        level=level,
    )


def _verdict(pair: Pair, there: ModelJudgment, back: ModelJudgment) -> ModelVerdict:
    """From the answers with the lesser id first, and with the greater one first."""
    if there.chosen == back.chosen:
        return ModelVerdict(pair=pair, share=float(there.chosen == pair[1]))
    twice: Literal["A", "B"] = "A" if there.chosen == there.a else "B"
    return ModelVerdict(pair=pair, share=0.5, chosen_twice=twice)


def _share_of(found: PairVotes) -> float:
    """1 where most people prefer the lesser id, 0 where the other, a half where as many."""
    return (1 + (found.first > found.second) - (found.first < found.second)) / 2


def _flipped(verdict: ModelVerdict) -> bool:
    return verdict.share == 0.5  # noqa: PLR2004 - neither


def _side(share: float) -> str:
    return "lesser" if share > 0.5 else "greater"  # noqa: PLR2004 - neither


def _is_right(verdict: ModelVerdict, found: PairVotes) -> float:
    """1 where the model agrees with most people, 0 where not, a half where it has no preference."""
    return 0.5 if _flipped(verdict) else float(verdict.share == _share_of(found))


def _strata(both: Sequence[tuple[ModelVerdict, PairVotes]]) -> tuple[Stratum, ...]:
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
    both: Sequence[tuple[ModelVerdict, PairVotes]], pools: Sequence[Pool], level: float
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


# What a model judge may do: say which pairs people should see next, and be checked against them.
#
# It orders pairs and nothing else. No vote, label or verdict on a worker comes from here.


def order_pairs(
    pairs: Iterable[Pair],
    verdicts: Iterable[ModelVerdict],
    *,
    turn: Mapping[Pair, int] | None = None,
) -> tuple[Pair, ...]:
    """Pairs in the order in which people should see them.

    Those where a model is least sure come first: flips, then pairs that it did not judge, then
    those where it prefers one.

    Args:
        pairs: those that wait.
        verdicts: of a model.
        turn: pair -> when it is due, the least first, as the votes it has already; 0 where absent.
            The model only breaks its ties.
    """
    known = {one.pair: one for one in verdicts}
    due = turn or {}
    return tuple(sorted(pairs, key=lambda pair: (due.get(pair, 0), _sureness(known.get(pair)))))


def draw_judged_pairs(votes: Votes, *, count: int, rng: np.random.Generator) -> tuple[Pair, ...]:
    """Pairs that people have judged, at random, each lead of votes by its share of all.

    So a calibration is neither of close pairs alone nor of clear ones, and what it says of the
    sample holds of all. A greater count adds pairs to those of a smaller one.

    Args:
        votes: of people.
        count: how many pairs at most.
        rng: draws them.
    """
    strata: defaultdict[int, list[Pair]] = defaultdict(list)
    for query, found in votes.items():
        for (first, second), one in found.items():
            strata[min(abs(one.first - one.second), LEADS[-1])].append((query, first, second))
    placed = [
        ((index + 0.5) / len(pairs), pairs[drawn])
        for _, pairs in sorted(strata.items())
        for index, drawn in enumerate(rng.permutation(len(pairs)).tolist())
    ]
    placed.sort(key=lambda one: one[0])
    return tuple(pair for _, pair in placed[:count])


def _sureness(verdict: ModelVerdict | None) -> int:
    return 1 if verdict is None else 0 if _flipped(verdict) else 2


# How often people would prefer a run's first passage, from their votes and a model's verdicts.
#
# People judged some queries, the model more. Its verdicts are corrected by what it got wrong where
# both judged (PPI++), so that a bad model only widens the interval. These are estimates and make
# no label.


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of queries, by votes alone.

    Attributes:
        value: the share; a tie is half a win.
        low, high: Clopper and Pearson's interval, which takes two ties for a win and a loss.
        queries: how many there are.
    """

    value: float
    low: float
    high: float
    queries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WinRate:
    """Two runs, on the queries where they show different passages.

    Attributes:
        a: a run.
        b: another.
        together: the share of queries where people would prefer a's passage; a tie is a half.
        people: the same from all of people's votes, and from them alone.
    """

    a: str
    b: str
    together: student.PredictionPowered
    people: Share


def estimate_win_rates(
    pools: Sequence[Pool], votes: Votes, verdicts: Sequence[ModelVerdict], *, level: float = 0.95
) -> tuple[WinRate, ...]:
    """Each two runs that have a query with a vote and a verdict; the known answers are a run too.

    Args:
        pools: with the runs that each passage came from. A run that several passages of a pool
            came from was pooled to more than its first, and is left out.
        votes: of people; the pairs they judged have to be a random part of those the model judged.
        verdicts: of the model.
        level: of the intervals.
    """
    firsts = _first_passages(pools)
    model = {one.pair: one.share for one in verdicts}
    people = {
        (query, *pair): _share_of(cast)
        for query, found in votes.items()
        for pair, cast in found.items()
    }
    rates = []
    for a, b in combinations(firsts, 2):
        pairs = [
            (query, firsts[a][query], firsts[b][query])
            for query in firsts[a]
            if query in firsts[b] and firsts[a][query] != firsts[b][query]
        ]
        judged = [(pair, y) for pair in pairs if (y := _share(people, pair)) is not None]
        seen = [(y, f) for pair, y in judged if (f := _share(model, pair)) is not None]
        waiting = (_share(model, pair) for pair in pairs if _share(people, pair) is None)
        if seen:
            labels, guesses = zip(*seen, strict=True)
            rest = [f for f in waiting if f is not None]
            together = student.estimate_mean(labels, guesses, rest, level=level)
            votes_alone = [y for _, y in judged]
            rates.append(WinRate(a=a, b=b, together=together, people=share_of(votes_alone, level)))
    return tuple(rates)


def _first_passages(pools: Sequence[Pool]) -> Mapping[str, Mapping[str, str]]:
    """Run -> query -> the passage it shows first; of runs pooled to their first alone."""
    found: dict[str, dict[str, str]] = {}
    deep: set[str] = set()
    for pool in pools:
        for one in pool.candidates:
            for run in (*one.runs, *([PERFECT] if one.known else [])):
                mine = found.setdefault(run, {})
                if pool.query in mine:
                    deep.add(run)
                mine[pool.query] = one.doc
    return {run: found[run] for run in sorted(found) if run not in deep}


def _share(shares: Mapping[Pair, float], pair: Pair) -> float | None:
    """Of the pair's second member over its third, whichever id is the lesser."""
    query, a, b = pair
    if a < b:
        return shares.get(pair)
    turned = shares.get((query, b, a))
    return None if turned is None else 1 - turned


def share_of(wins: Sequence[float], level: float) -> Share:
    """The share of wins with its interval; ties only make it vary less than wins and losses would.

    Args:
        wins: 1 for a win, 0 for a loss, a half for a tie; at least one.
        level: of the interval.
    """
    count, won = len(wins), sum(wins)
    tail = (1 - level) / 2
    return Share(
        value=won / count,
        low=float(beta.ppf(tail, won, count - won + 1)) if won > 0 else 0.0,
        high=float(beta.ppf(1 - tail, won + 1, count - won)) if won < count else 1.0,
        queries=count,
    )
