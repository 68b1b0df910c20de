"""Contests and strengths of runs: whose first document do people prefer, on how many queries.

Only queries where the two runs show different passages, and the pair was judged, say anything.
n counts queries, never votes: several votes on one query are one observation, and a test on votes
takes luck for significance (Arabzadeh et al. 2021, §4.2, table 4; the study judged once).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from heldout.judging.campaign.judgments import PairVotes, Votes, lead_of
from heldout.stats import bradley_terry as bt
from heldout.stats import results, tests
from heldout.trec.tops import Tops

PERFECT = "perfect"
"""A run that puts the known answer first on every query, and scores 1 by the labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Two runs, compared by their first documents.

    Attributes:
        a: a run.
        b: another.
        a_preferred: queries where more people preferred a's passage.
        b_preferred: where more preferred b's.
        drawn: where as many preferred either.
        same: where both show the same passage.
        unjudged: where the pair has no vote, or a run has no answer.
        p: of the exact binomial test that each is preferred as often; `None` without a query.
        p_bonferroni: over all contests of the table.
        p_holm: the same, by Holm's steps.
        low: least share of a, by an interval that is exact (Clopper and Pearson).
        high: greatest.
    """

    a: str
    b: str
    a_preferred: int
    b_preferred: int
    drawn: int
    same: int
    unjudged: int
    p: float | None
    p_bonferroni: float | None = None
    p_holm: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def queries(self) -> int:
        """Queries that decide: n of the test."""
        return self.a_preferred + self.b_preferred

    @property
    def share(self) -> float | None:
        """Of those, the share where a's passage was preferred; `None` where there are none."""
        return self.a_preferred / self.queries if self.queries else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contests:
    """All runs against each other.

    Attributes:
        runs: in the order given.
        contests: each pair of runs once, in that order.
        wins: run -> runs that it beats: more queries won than lost.
        level: of the intervals.
        judged: queries with a vote.
    """

    runs: tuple[str, ...]
    contests: tuple[Contest, ...]
    wins: Mapping[str, int]
    level: float
    judged: int


def first_documents(
    tops: Mapping[str, Tops],
    known: Mapping[str, Sequence[str]] | None,
    *,
    same: Mapping[str, Mapping[str, str]],
) -> Mapping[str, Mapping[str, str]]:
    """Run -> query -> the passage it shows first, by the document that stands for its text.

    Args:
        tops: run -> query -> documents.
        known: query -> relevant documents, of which the perfect run shows the first; `None` for
            no perfect run.
        same: as `stand_for` gives it.
    """
    every: dict[str, Mapping[str, Sequence[str]]] = {} if known is None else {PERFECT: known}
    every |= tops
    return {
        run: {
            query: same.get(query, {}).get(documents[0], documents[0])
            for query, documents in answers.items()
            if documents
        }
        for run, answers in every.items()
    }


def hold_contests(
    first: Mapping[str, Mapping[str, str]], votes: Votes, *, level: float = 0.95
) -> Contests:
    """Compare each two runs.

    Args:
        first: run -> query -> the passage it shows first, as `first_documents` gives it.
        votes: those that count.
        level: of the intervals of shares, each for itself.
    """
    runs = tuple(first)
    found = [hold_contest((a, b), first, votes, level) for a, b in combinations(runs, 2)]
    ps = [one.p for one in found]
    corrected = zip(found, results.bonferroni(ps), results.holm(ps), strict=True)
    contests = tuple(replace(one, p_bonferroni=b, p_holm=h) for one, b, h in corrected)
    wins = dict.fromkeys(runs, 0)
    for one in contests:
        if one.a_preferred != one.b_preferred:
            wins[one.a if one.a_preferred > one.b_preferred else one.b] += 1
    return Contests(runs=runs, contests=contests, wins=wins, level=level, judged=len(votes))


def find_cycles(contests: Contests) -> tuple[tuple[str, str, str], ...]:
    """Runs that beat each other in a circle: a beats b, b beats c, and c beats a.

    Returns:
        Each circle once, beginning with the run of it that stands first in the order given.
    """
    beats = {(one.a, one.b) for one in contests.contests if one.a_preferred > one.b_preferred}
    beats |= {(one.b, one.a) for one in contests.contests if one.b_preferred > one.a_preferred}
    found = []
    for a, b, c in combinations(contests.runs, 3):
        if beats >= {(a, b), (b, c), (c, a)}:
            found.append((a, b, c))
        elif beats >= {(a, c), (c, b), (b, a)}:
            found.append((a, c, b))
    return tuple(found)


def hold_contest(
    runs: tuple[str, str], first: Mapping[str, Mapping[str, str]], votes: Votes, level: float
) -> Contest:
    """Compare two runs; arguments as of `hold_contests`."""
    a, b = runs
    tops_a, tops_b = first[a], first[b]
    both = tops_a.keys() & tops_b.keys() & votes.keys()
    tally = {"a": 0, "b": 0, "drawn": 0, "same": 0, "unjudged": len(votes) - len(both)}
    for query in both:
        one, other = tops_a[query], tops_b[query]
        if one == other:
            tally["same"] += 1
        elif (lead := lead_of(votes[query], one, other)) is None:
            tally["unjudged"] += 1
        else:
            tally["a" if lead > 0 else "b" if lead < 0 else "drawn"] += 1
    test = tests.compare_counts(tally["b"], tally["a"], level=level)
    return Contest(
        a=a,
        b=b,
        a_preferred=tally["a"],
        b_preferred=tally["b"],
        drawn=tally["drawn"],
        same=tally["same"],
        unjudged=tally["unjudged"],
        p=test.p,
        low=_as_share(test.low),
        high=_as_share(test.high),
    )


def _as_share(difference: float | None) -> float | None:
    """The share that won, from the share that won less the share that lost."""
    return None if difference is None else (1 + difference) / 2


# Strengths by Bradley and Terry: of runs over all queries, of passages within one query.
#
# Of two runs that show different passages on a query, the one whose passage more people prefer wins
# that query. One judged pair decides between all runs that show either passage, so intervals take
# all of a query as one observation. They are for differences between runs, which the strengths are
# known for alone.
#
# Passages get no intervals: a pool has few votes on each, so that the prior decides how far
# strengths are apart, and a search that stops at a lead makes leads look large.


PASSAGE_PRIOR = 1.0
"""Precision for passages: they differ by about 1 logit, and a few votes must not say 10."""

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference:
    """Two runs.

    Attributes:
        a: a run.
        b: another.
        difference: strength of a less that of b, in logits.
        share: chance that a's passage is preferred, of those where they differ and one is.
        sandwich: interval of the difference from curvature and clusters; `None` where undefined.
        bootstrap: the same from queries drawn again; `None` where undefined.
        why: why one of the two is undefined; `None` where neither is.
    """

    a: str
    b: str
    difference: float
    share: float
    sandwich: Ends | None
    bootstrap: Ends | None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStrengths:
    """Strengths of runs.

    Attributes:
        strengths: run -> strength in logits, mean 0, the strongest first.
        differences: each two runs once, the stronger as a, in that order.
        groups: runs that were compared with each other, by way of others or not; of different
            groups nothing can be said.
        separated: without the prior some difference would be infinite.
        queries: queries that compared any runs.
        comparisons: of two runs on a query.
        tied: of those, the ones with as many votes on each side.
        level: of each interval by itself.
        draws: of the bootstrap.
        prior: precision of the normal prior.
    """

    strengths: Mapping[str, float]
    differences: tuple[RunDifference, ...]
    groups: tuple[tuple[str, ...], ...]
    separated: bool
    queries: int
    comparisons: int
    tied: int
    level: float
    draws: int
    prior: float


def compare_runs(
    first: Mapping[str, Mapping[str, str]],
    votes: Votes,
    *,
    rng: Generator,
    prior: float = bt.PRIOR,
    level: float = 0.95,
    draws: int = 1000,
) -> RunStrengths:
    """Strengths of runs over queries.

    Args:
        first: run -> query -> the passage it shows first, as `contests.first_documents` gives it.
        votes: those that count.
        rng: where queries are drawn from.
        prior: precision of the normal prior.
        level: of each interval by itself.
        draws: of the bootstrap.
    """
    runs = sorted(first)
    compared = _compare(runs, first, votes)
    found = bt.fit_strengths(compared, prior=prior)
    sandwich = bt.sandwich_differences(compared, found, level=level)
    boot = bt.bootstrap_differences(compared, found, rng, level=level, draws=draws)
    order = sorted(range(len(runs)), key=lambda index: (-found.values[index], runs[index]))
    return RunStrengths(
        strengths={runs[index]: float(found.values[index]) for index in order},
        differences=tuple(
            RunDifference(
                a=runs[a],
                b=runs[b],
                difference=float(sandwich.values[a, b]),
                share=float(expit(sandwich.values[a, b])),
                sandwich=_ends(sandwich, a, b),
                bootstrap=_ends(boot, a, b),
                why=_why(found, sandwich, boot, (a, b)),
            )
            for a, b in combinations(order, 2)
        ),
        groups=_groups(runs, found.components.tolist()),
        separated=found.separated,
        queries=compared.clusters,
        comparisons=len(compared.won),
        tied=int((compared.won == 0.5).sum()),  # noqa: PLR2004 - a tie
        level=level,
        draws=draws,
        prior=prior,
    )


def rank_passages(
    votes: Mapping[tuple[str, str], PairVotes], *, prior: float = PASSAGE_PRIOR
) -> Mapping[str, float]:
    """Strengths of the passages of one query.

    Args:
        votes: by pair, the lesser id first.
        prior: precision of the normal prior.

    Returns:
        Passage -> strength in logits, mean 0, the strongest first, then by id; of passages with a
        vote. Between passages that were compared in no way only the prior speaks.
    """
    names = sorted({one for pair in votes for one in pair})
    if not names:
        return {}
    indices = {name: index for index, name in enumerate(names)}
    rows = [
        (indices[first], indices[second], won)
        for (first, second), found in votes.items()
        for won, count in ((1.0, found.first), (0.0, found.second))
        for _ in range(count)
    ]
    found = bt.fit_strengths(_comparisons(rows, [0] * len(rows), len(names)), prior=prior)
    values = zip(names, found.values.tolist(), strict=True)
    return dict(sorted(values, key=lambda one: (-one[1], one[0])))


def _compare(
    runs: Sequence[str], first: Mapping[str, Mapping[str, str]], votes: Votes
) -> bt.Comparisons:
    rows: list[tuple[int, int, float]] = []
    cluster: list[int] = []
    queries = 0
    for query, found in votes.items():
        before = len(rows)
        for a, b in combinations(range(len(runs)), 2):
            one, other = first[runs[a]].get(query), first[runs[b]].get(query)
            if one is None or other is None or one == other:
                continue
            lead = lead_of(found, one, other)
            if lead is not None:
                rows.append((a, b, (1 + (lead > 0) - (lead < 0)) / 2))
                cluster.append(queries)
        queries += len(rows) > before
    return _comparisons(rows, cluster, len(runs))


def _comparisons(
    rows: Sequence[tuple[int, int, float]], cluster: Sequence[int], items: int
) -> bt.Comparisons:
    table = np.array(rows, np.float64).reshape(-1, 3)
    return bt.Comparisons(
        items=items,
        first=table[:, 0].astype(np.int64),
        second=table[:, 1].astype(np.int64),
        won=table[:, 2],
        cluster=np.array(cluster, np.int64),
        clusters=max(cluster, default=-1) + 1,
    )


def _groups(names: Sequence[str], components: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(name for name, own in zip(names, components, strict=True) if own == component)
        for component in sorted(set(components))
    )


def _why(
    found: bt.Strengths, sandwich: bt.Differences, boot: bt.Differences, pair: tuple[int, int]
) -> str | None:
    """Return why two runs have no interval, or only one of the two."""
    a, b = pair
    if found.components[a] != found.components[b]:
        return "they were never compared, by way of others or not"
    if found.bounded[a] != found.bounded[b]:
        return "one won everything: without the prior the difference would be infinite"
    if sandwich.clusters <= 1:
        return "fewer than two queries compare runs"
    if _ends(sandwich, a, b) is None:
        return "queries do not differ in what they say"
    if _ends(boot, a, b) is None:
        return "too few queries: in many samples of them one wins everything, or all say the same"
    return None


def _ends(found: bt.Differences, a: int, b: int) -> Ends | None:
    low, high = float(found.low[a, b]), float(found.high[a, b])
    return None if np.isnan(low) else (low, high)
