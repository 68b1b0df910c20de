"""How often people would prefer a run's first passage, from their votes and a model's verdicts.

People judged some queries, the model more. Its verdicts are corrected by what it got wrong where
both judged (PPI++), so that a bad model only widens the interval. These are estimates and make no
label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from scipy.stats import beta

from heldout.preferences.calibration import Verdict
from heldout.preferences.contests import PERFECT
from heldout.preferences.drawing import Pair
from heldout.preferences.pools import Pool
from heldout.preferences.votes import Votes
from heldout.stats.student import PredictionPowered, estimate_mean

__all__ = ["Share", "WinRate", "estimate_win_rates", "share_of"]


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
    together: PredictionPowered
    people: Share


def estimate_win_rates(
    pools: Sequence[Pool], votes: Votes, verdicts: Sequence[Verdict], *, level: float = 0.95
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
        (query, first, second): (1 + (n.first > n.second) - (n.first < n.second)) / 2
        for query, found in votes.items()
        for (first, second), n in found.items()
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
            together = estimate_mean(labels, guesses, rest, level=level)
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
