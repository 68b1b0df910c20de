"""What honest teams see of a release rule: a year of a board on which nobody attacks.

Sixty teams send 240 runs. Six of these are steps: systems 1 to 6 u better than everything before.
The other runs are as good as their team's best, or worse. In a second year there are twenty steps
of 1 u. A run's luck is a coin for each query, as large as a paired standard error of u between two
runs asks for; its quality is added to that. u is that of all queries that rank, over the year.

A board with season parts has as many seasons. Each ranks by its own part; at its end every team's
named entry, the best by scores on an equally large dev set, gets a score.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean, median

import numpy as np

from heldout.board.rules.release import is_clear
from heldout.redteam.boards import Exchange, NamedRule, Scores, coins
from heldout.redteam.game import Baseline, GamePlan, Weak, begin, rng_of

Steps = tuple[int, float, float]
"""How many steps a year has, and from where to where their sizes go, in u."""

LEAPS: Steps = (6, 1.0, 6.0)
CREEPING: Steps = (20, 1.0, 1.0)
_TEAMS, _RUNS, _DAYS = 60, 240, 365.0
_CLEAR = 3.0
_BEHIND = 3.0
_YEAR = 5
"""Part of the randomness; those before are the game's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    """What came of one year.

    Attributes:
        seen: runs that got a score that ranks.
        records: scores above all that were published before.
        false_records: those of a system no better than one that had a published score before.
        waits: for each step of 3 u or more the days until a system at least as good has a
            published score; those without one by the end of the season are left out.
        never: how many are left out.
        unpublished: how much better the best system sent is than the best with a score, at the end
            of the season where that is most, in u.
        short: for each season how much worse its winner is than the best system with a score, in u.
        first: the same of the entry with the highest score.
    """

    seen: int
    records: int
    false_records: int
    waits: tuple[float, ...]
    never: int
    unpublished: float
    short: tuple[float, ...] = ()
    first: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HonestLine:
    """Many years under one rule.

    Attributes:
        release: name of the rule.
        years: how many of each kind.
        seen: share of the runs that get a score that ranks.
        records: their number in a year.
        false_records: share of them that are false; `None` without any.
        at_once, in_time: share of the steps of 3 u or more whose system, or one as good, has a
            published score at once, and by the end of the season; `None` without any step.
        days: median wait for those that have one in time; `None` without any.
        unpublished: mean of `Year.unpublished`.
        creeping: the same where progress comes in small steps.
        short, first: mean of `Year.short` and of `Year.first`; `None` without seasons.
    """

    release: str
    years: int
    seen: float
    records: float
    false_records: float | None
    at_once: float | None
    in_time: float | None
    days: float | None
    unpublished: float
    creeping: float
    short: float | None = None
    first: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """A run of a year.

    Attributes:
        day, team: of whom and when.
        quality: how much better than the systems of the game it is, in u.
        rise: by how much it is better than everything before; 0 where it is no step.
        on_dev: what its team knows of its quality, with the luck of an equally large set.
        luck: draws its coins.
    """

    day: float
    team: int
    quality: float
    rise: float
    on_dev: float
    luck: int

    def score(self, pair: Exchange, unit: float) -> Scores:
        """Its scores by query."""
        sides = np.where(coins(np.random.default_rng(self.luck), pair.queries), 1.0, -1.0)
        spread = sides / math.sqrt(2) * (pair.a - pair.b)
        return np.asarray(pair.middle + spread + self.quality * unit, np.float64)


def _send(rng: np.random.Generator, steps: Steps) -> Iterator[_Sent]:
    """The runs of a year, in the order in which they are sent."""
    count, low, high = steps
    when = set(rng.choice(_RUNS, count, replace=False).tolist())
    own = -np.abs(rng.normal(0, _BEHIND, _TEAMS))
    front = 0.0
    for run, day in enumerate(np.sort(rng.uniform(0, _DAYS, _RUNS)).tolist()):
        team, rise = int(rng.integers(_TEAMS)), float(rng.uniform(low, high)) * (run in when)
        quality = float(own[team]) - abs(float(rng.normal()))
        if rise:
            front = own[team] = quality = front + rise
        yield _Sent(
            day=day,
            team=team,
            quality=quality,
            rise=rise,
            on_dev=quality + float(rng.normal(0, math.sqrt(0.5))),
            luck=int(rng.integers(2**32)),
        )


def play_year(
    named: NamedRule,
    pair: Exchange,
    baseline: Baseline,
    plan: GamePlan,
    *,
    number: int,
    steps: Steps = LEAPS,
) -> Year:
    """Play one year.

    Args:
        named: the board's rule.
        pair: the systems of the game.
        baseline: the best one of the board; a gap is in u of all queries that rank.
        plan: its seed; the number of runs is that of the year.
        number: of the year, from 0.
        steps: how progress comes.
    """
    seasons = named.rule.seasons
    if isinstance(baseline, Weak):
        baseline = replace(baseline, gap=baseline.gap / seasons**0.5)
    board, _ = begin(named, pair, baseline, plan, number=number)
    unit = pair.unit / (named.ranking_share * seasons) ** 0.5
    sent = list(_send(rng_of(plan, number, _YEAR), steps))
    front = (float(board.baseline.mean()) - pair.truth) / unit
    published, seen, records, false_records, never = front, 0, 0, 0, 0
    waits: list[float] = []
    unpublished: list[float] = []
    short: list[float] = []
    first: list[float] = []
    for season, group in groupby(sent, lambda run: int(run.day * seasons / _DAYS)):
        board = replace(board, season=season + 1, best=None)
        runs = list(group)
        scored: list[Scores] = []
        days: dict[int, float] = {}
        best, highest = -math.inf, -math.inf
        for place, run in enumerate(runs):
            values = run.score(pair, unit)
            scored.append(board.ranking(values))
            score = board.submit(values).score
            if score is not None:
                days[place] = run.day
                records += score > highest
                false_records += score > highest and run.quality <= best
                highest, best = max(highest, score), max(best, run.quality)
        if seasons > 1:
            by_dev = sorted(range(len(runs)), key=lambda place: runs[place].on_dev)
            for place in {runs[place].team: place for place in by_dev}.values():
                days.setdefault(place, _DAYS * (season + 1) / seasons)
            top = max(days, key=lambda place: float(scored[place].mean()))
            # The season's winner, as in a final: the earliest that is not clearly below the best.
            winner = min(n for n in days if not is_clear(scored[top], scored[n], jitter=0))
            most = max(runs[place].quality for place in days)
            short.append(most - runs[winner].quality)
            first.append(most - runs[top].quality)
        for step in (run for run in runs if run.rise >= _CLEAR):
            since = [day for place, day in days.items() if runs[place].quality >= step.quality]
            waits += [min(since) - step.day] if since else []
            never += not since
        seen += len(days)
        published = max([published, *(runs[place].quality for place in days)])
        front = max([front, *(run.quality for run in runs)])
        unpublished.append(front - published)
    return Year(
        seen=seen,
        records=records,
        false_records=false_records,
        waits=tuple(waits),
        never=never,
        unpublished=max(unpublished),
        short=tuple(short),
        first=tuple(first),
    )


def summarise_years(years: Sequence[Year], creeping: Sequence[Year], *, release: str) -> HonestLine:
    """A line from its years; at least one of each."""
    waits = [wait for year in years for wait in year.waits]
    steps = len(waits) + sum(year.never for year in years)
    records = sum(year.records for year in years)
    shorts = [short for year in years for short in year.short]
    firsts = [first for year in years for first in year.first]
    wrong = sum(year.false_records for year in years)
    return HonestLine(
        release=release,
        years=len(years),
        seen=sum(year.seen for year in years) / (_RUNS * len(years)),
        records=records / len(years),
        false_records=wrong / records if records else None,
        at_once=sum(wait == 0 for wait in waits) / steps if steps else None,
        in_time=len(waits) / steps if steps else None,
        days=median(waits) if waits else None,
        unpublished=fmean(year.unpublished for year in years),
        creeping=fmean(year.unpublished for year in creeping),
        short=fmean(shorts) if shorts else None,
        first=fmean(firsts) if firsts else None,
    )


def play_honest(
    named: NamedRule, pair: Exchange, baseline: Baseline, plan: GamePlan, *, years: int
) -> HonestLine:
    """Years of both kinds under one rule.

    Args:
        named: the rule.
        pair: the systems of the game.
        baseline: the best one of the board.
        plan: its seed.
        years: how many of each kind, at least 1.
    """
    leaps, creeping = (
        [
            play_year(named, pair, baseline, plan, number=number, steps=steps)
            for number in range(years)
        ]
        for steps in (LEAPS, CREEPING)
    )
    return summarise_years(leaps, creeping, release=named.name)
