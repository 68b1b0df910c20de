"""What honest teams see of a release rule: a year of a board on which nobody attacks.

Sixty teams send 240 runs. Six of these are steps: systems 1 to 6 u better than everything before.
The other runs are as good as their team's best, or worse. In a second year there are 27 steps of
.2 to 1.2 u. A run's luck is a coin for each query, as large as a paired standard error of u between
two runs asks for; its quality is added to that.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from heldout.redteam.boards import NamedRule
from heldout.redteam.game import Baseline, Plan, begin, rng_of
from heldout.redteam.releases import Exchange, coins

_TEAMS, _RUNS, _DAYS = 60, 240, 365.0
_STEPS = (6, 1.0, 6.0)
_CREEPING = (27, 0.2, 1.2)
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
            published score; those without one by the end of the year are left out.
        never: how many are left out.
        unpublished: how much better the best system sent is than the best with a score, in u.
    """

    seen: int
    records: int
    false_records: int
    waits: tuple[float, ...]
    never: int
    unpublished: float


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
            published score at once, and by the end of the year; `None` without any step.
        days: median wait for those that have one in time; `None` without any.
        unpublished: mean of `Year.unpublished`.
        creeping: the same where progress comes in small steps.
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


def play_year(
    named: NamedRule,
    pair: Exchange,
    baseline: Baseline,
    plan: Plan,
    *,
    number: int,
    creeping: bool = False,
) -> Year:
    """Play one year.

    Args:
        named: the board's rule.
        pair: the systems of the game.
        baseline: the best one of the board.
        plan: its seed; the number of runs is that of the year.
        number: of the year, from 0.
        creeping: whether progress comes in small steps.
    """
    rng = rng_of(plan, number, _YEAR)
    board, _ = begin(named, pair, baseline, plan, number=number)
    unit = pair.unit / named.ranking_share**0.5
    steps, low, high = _CREEPING if creeping else _STEPS
    when = set(rng.choice(_RUNS, steps, replace=False).tolist())
    days = np.sort(rng.uniform(0, _DAYS, _RUNS))
    own = -np.abs(rng.normal(0, _BEHIND, _TEAMS))
    front, published, highest = 0.0, -math.inf, -math.inf
    seen = records = false_records = 0
    open_steps: list[tuple[float, float]] = []
    waits: list[float] = []
    for run in range(_RUNS):
        team, size = int(rng.integers(_TEAMS)), float(rng.uniform(low, high))
        if run in when:
            front = own[team] = quality = front + size
            open_steps += [(quality, float(days[run]))] if size >= _CLEAR else []
        else:
            quality = float(own[team]) - abs(float(rng.normal()))
        sides = np.where(coins(rng, pair.queries), 1.0, -1.0) / math.sqrt(2)
        values = pair.middle + sides * (pair.a - pair.b) + quality * unit
        score = board.submit(values).score
        if score is None:
            continue
        seen += 1
        if score > highest:
            highest = score
            records += 1
            false_records += quality <= published
        published = max(published, quality)
        waits += [float(days[run]) - since for goal, since in open_steps if goal <= published]
        open_steps = [one for one in open_steps if one[0] > published]
    start = (float(board.baseline.mean()) - pair.truth) / unit
    return Year(
        seen=seen,
        records=records,
        false_records=false_records,
        waits=tuple(waits),
        never=len(open_steps),
        unpublished=max(0.0, front - max(published, start)),
    )


def summarise_years(years: Sequence[Year], creeping: Sequence[Year], *, release: str) -> HonestLine:
    """A line from its years; at least one of each."""
    waits = [wait for year in years for wait in year.waits]
    steps = len(waits) + sum(year.never for year in years)
    records = sum(year.records for year in years)
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
    )


def play_honest(
    named: NamedRule, pair: Exchange, baseline: Baseline, plan: Plan, *, years: int
) -> HonestLine:
    """Years of both kinds under one rule.

    Args:
        named: the rule.
        pair: the systems of the game.
        baseline: the best one of the board.
        plan: its seed.
        years: how many of each kind, at least 1.
    """
    steps, creeping = (
        [
            play_year(named, pair, baseline, plan, number=number, creeping=small)
            for number in range(years)
        ]
        for small in (False, True)
    )
    return summarise_years(steps, creeping, release=named.name)
