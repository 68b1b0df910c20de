"""Contests between runs: whose first document do people prefer, on how many queries.

Only queries where the two runs show different passages, and the pair was judged, say anything.
n counts queries, never votes: several votes on one query are one observation, and a test on votes
takes luck for significance (Arabzadeh et al. 2021, §4.2, table 4; the study judged once).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from heldout.judging.campaign.judgments import Votes, lead_of
from heldout.stats.results import bonferroni, holm
from heldout.stats.tests import compare_counts
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
    found = [_hold((a, b), first, votes, level) for a, b in combinations(runs, 2)]
    ps = [one.p for one in found]
    corrected = zip(found, bonferroni(ps), holm(ps), strict=True)
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


def _hold(
    runs: tuple[str, str],
    first: Mapping[str, Mapping[str, str]],
    votes: Votes,
    level: float,
) -> Contest:
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
    test = compare_counts(tally["b"], tally["a"], level=level)
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
