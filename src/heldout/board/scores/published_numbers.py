"""How many scores on held-out labels a board has published, and what a vote over them can gain.

Whoever combines N published scores into a run that follows the better ones can gain about
0.4 sqrt(N) u that is not there, u being the standard error of the difference of two systems.
(Source: redteam.md.) Only scores count: figures of `[trust]` and an organiser's mail are not
counted here.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from heldout.board.log.history import History, list_renamed, names_of
from heldout.board.log.submission import Submission
from heldout.board.rules.release import standard_error
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.kept import read_scores
from heldout.board.standings.standings import FEWEST_DIFFERENT
from heldout.board.store.vault import Vault

VOTE = 0.4
"""What a vote over N published scores gains, in units of u sqrt(N)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamNumbers:
    """What was published of a team's entries, or of all teams'.

    Attributes:
        name: the team by its latest entry; all names that an approved new name joins are one team.
        entries: published ones.
        numbers: scores on held-out labels, and spreads over seeds beside them; those that a
            correction changed are published again.
        without: how often such a score was not published, because the release rule withheld it.
    """

    name: str
    entries: int
    numbers: int
    without: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedNumbers:
    """How many numbers were published, for the organisers: it names teams under embargo.

    Attributes:
        views: the public views on held-out labels, which are counted, but for `informing` ones.
        informing: such views for information only; what they publish is of no use in the ranking.
        teams: most numbers first.
        board: all teams together. The organisers' baselines and imported entries do not count.
    """

    views: tuple[str, ...]
    informing: tuple[str, ...]
    teams: tuple[TeamNumbers, ...]
    board: TeamNumbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """u = sd(A - B) / sqrt(n) of two systems on n queries, in units of the measure."""

    size: float
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
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


def count_numbers(history: History, spec: BoardSpec) -> PublishedNumbers:
    """Count what was published of each team, and of all.

    Args:
        history: the organisers'.
        spec: the rules of today, which say what views there are.

    Raises:
        ValueError: the history is the public one, which does not name every team.
    """
    held_out = [view for view in spec.public_views if spec.sets[view.set].held_out]
    views = tuple(view.name for view in held_out if not view.for_information)
    published = [
        s for s in history.submissions.values() if s.status == "published" and not s.baseline
    ]
    renamed = list_renamed(history)
    groups: dict[frozenset[str], list[Submission]] = defaultdict(list)
    for submission in published:
        groups[names_of(renamed, [_team(submission)])].append(submission)
    teams = [
        _count(_team(max(group, key=lambda one: one.received)), group, views)
        for group in groups.values()
    ]
    return PublishedNumbers(
        views=views,
        informing=tuple(view.name for view in held_out if view.for_information),
        teams=tuple(sorted(teams, key=lambda row: (-row.numbers, row.name))),
        board=_count("board", published, views),
    )


def find_price(vault: Vault, history: History, spec: BoardSpec, *, day: date) -> Price | None:
    """What a vote can gain on the view that ranks; `None` where the rule is not `rounded`.

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
    own = [s for s in history.submissions.values() if s.status == "published"]
    numbers = _count("", [s for s in own if not s.baseline], [view.name]).numbers
    kept = {submission.id: read_scores(vault, submission.id) for submission in own}
    scored = {
        name: scores.views[view.name].per_query
        for name, scores in kept.items()
        if scores is not None and view.name in scores.views
    }
    gain = VOTE * math.sqrt(numbers)
    return Price(view=view.name, numbers=numbers, gain=gain, unit=find_unit(scored))


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


def _team(submission: Submission) -> str:
    if submission.identity is None:
        raise ValueError(f"{submission.id}: only the organisers' log names every team")
    return submission.identity.team


def _count(name: str, group: Sequence[Submission], views: Iterable[str]) -> TeamNumbers:
    counted = [(submission, view) for submission in group for view in views]
    return TeamNumbers(
        name=name,
        entries=len(group),
        numbers=sum(
            ((view in one.scores) + (view in one.spreads)) * (1 + len(one.repaired))
            for one, view in counted
        ),
        without=sum(view in one.untold and view not in one.scores for one, view in counted),
    )
