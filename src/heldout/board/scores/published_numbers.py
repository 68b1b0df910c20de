"""How many scores on held-out labels a board has published, and what a vote over them can gain.

Whoever combines N published scores into a run that follows the better ones can gain about
0.4 sqrt(N) u that is not there, u being the standard error of the difference of two systems.
(Source: redteam.md.) Only scores count: figures of `[trust]` and an organiser's mail are not
counted here.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from heldout.board.log.history import History
from heldout.board.rules.release import standard_error
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.kept import read_scores
from heldout.board.standings.standings import FEWEST_DIFFERENT
from heldout.board.store.vault import Vault

VOTE = 0.4
"""What a vote over N published scores gains, in units of u sqrt(N)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """u = sd(A - B) / sqrt(n) of two systems on n queries, in units of the measure."""

    size: float
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VotePrice:
    """What a vote over all numbers published on a view can gain.

    Attributes:
        view: the view that ranks.
        numbers: scores published there.
        gain: in units of u.
        unit: u, `None` where the vault has no two systems to take it from.
    """

    view: str
    numbers: int
    gain: float
    unit: Unit | None


def list_ranking_views(spec: BoardSpec) -> tuple[str, ...]:
    """Names of the public views on held-out labels, but for those for information only."""
    held_out = (view for view in spec.public_views if spec.sets[view.set].held_out)
    return tuple(view.name for view in held_out if not view.for_information)


def count_numbers(history: History, views: Collection[str]) -> int:
    """Count the published scores of teams' entries in some views, with spreads beside them.

    Scores that a correction changed are published again. The organisers' baselines and imported
    entries do not count.

    Args:
        history: the organisers' or the public one.
        views: their names.
    """
    return sum(
        ((view in one.scores) + (view in one.spreads)) * (1 + len(one.repaired))
        for one in history.submissions.values()
        for view in views
        if one.status == "published" and not one.baseline
    )


def find_price(vault: Vault, history: History, spec: BoardSpec, *, day: date) -> VotePrice | None:
    """Return what a vote can gain on the view that ranks; `None` where the rule is not `rounded`.

    Args:
        vault: for the per-query scores that u follows from.
        history: the organisers'.
        spec: the rules of today.
        day: it chooses the season.

    Raises:
        StoreError: a file of scores is damaged.
    """
    rules = spec.on(day)
    view = rules.view(rules.primary)
    if spec.release.rule != "rounded" or not rules.sets[view.set].held_out:
        return None
    numbers = count_numbers(history, [view.name])
    own = (s.id for s in history.submissions.values() if s.status == "published")
    kept = {submission: read_scores(vault, submission) for submission in own}
    scored = {
        name: scores.views[view.name].per_query
        for name, scores in kept.items()
        if scores is not None and view.name in scores.views
    }
    gain = VOTE * math.sqrt(numbers)
    return VotePrice(view=view.name, numbers=numbers, gain=gain, unit=find_unit(scored))


def find_unit(scored: Mapping[str, Mapping[str, float | None]]) -> Unit | None:
    """Find u of the two systems whose means differ least by their own u, without near copies.

    Args:
        scored: system -> query -> score, `None` where undefined.

    Returns:
        `None` where no two systems differ on `FEWEST_DIFFERENT` queries.
    """
    queries = sorted({query for scores in scored.values() for query in scores})
    rows = {name: _row(scores, queries) for name, scores in scored.items()}
    found: list[tuple[float, Unit]] = []
    for a, b in combinations(rows, 2):
        apart = rows[a] - rows[b]
        apart = apart[np.isfinite(apart)]
        if np.count_nonzero(apart) < FEWEST_DIFFERENT:
            continue
        size = standard_error(apart)
        if size > 0:
            found.append((abs(float(apart.mean())) / size, Unit(size=size, a=a, b=b)))
    return min(found, key=lambda one: one[0])[1] if found else None


def _row(scores: Mapping[str, float | None], queries: Iterable[str]) -> NDArray[np.float64]:
    """Scores in one order, NaN where undefined."""
    return np.array([scores.get(query) for query in queries], np.float64)
