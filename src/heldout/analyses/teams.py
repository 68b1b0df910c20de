"""Whether teams that submit often fit the labels that their scores are told by.

For each team and each institution: how many submissions came and how many within one window, the
rank of its best entry on the public view and on the reserve that nobody ever sees a score of, and
the slope of (reserve - public) over its own submissions. Who learns from released scores and not
from the task climbs on the public view alone: the slope is below 0.

Sources: msmarco-benchmarking, section 3.3;
fostering-coopetition, section 2.2.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Literal

from numpy.random import Generator

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.dated import Dated
from heldout.answers.answer import Answer, to_document
from heldout.errors import plural
from heldout.ids import Digest
from heldout.options import Opt
from heldout.validity.entries import AlikeRuns, BoardEntry, BoardScores, ViewScores
from heldout.validity.team_slopes import FEWEST, Slope, fit_slopes
from heldout.validity.view_pairs import ViewPair, pair_views

By = Literal["team", "institution"]

_NOBODY = frozenset(("", "anonymous"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A team or an institution.

    Attributes:
        name: as on its latest entry.
        entries: ids of its entries with both scores, in the order they came.
        submissions: how many entries it has, also those without both scores.
        busiest: most entries within one window.
        best_public, best_reserve: best rank of its entries among all with both scores; `None`
            where none has.
        slope: `None` where undefined.
        why: the reason where it is, else "".
    """

    name: str
    entries: tuple[str, ...]
    submissions: int
    busiest: int
    best_public: int | None
    best_reserve: int | None
    slope: Slope | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantGroup:
    """Entries of several teams, linked by nearly identical runs.

    Attributes:
        entries: ids in the order they came.
        teams: their teams, each once.
        least_rbo: of the links that hold it together.
    """

    entries: tuple[str, ...]
    teams: tuple[str, ...]
    least_rbo: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Teams:
    """A board by team or institution.

    Attributes:
        board, public, reserve, measure: what was looked at; views by name.
        by: what the groups are.
        groups: those with most submissions first.
        nameless: entries without a team or institution, which belong to no group.
        window: its length in days.
        variants: groups of nearly identical runs across teams; `None` where no runs are known.
        level, trials: of the intervals; no trials where only means are known.
        digests: of the scores by query, public and reserve.
    """

    board: str
    public: str
    reserve: str
    measure: str
    by: By
    groups: tuple[Group, ...]
    nameless: int
    window: int
    variants: tuple[VariantGroup, ...] | None
    level: float
    trials: int
    digests: tuple[Digest, ...]


def look_at_teams(
    board: BoardScores,
    public: ViewScores,
    reserve: ViewScores,
    *,
    rng: Generator,
    by: By = "team",
    alike: Iterable[AlikeRuns] | None = None,
    window: int = 30,
    trials: int = 2000,
    level: float = 0.95,
    executor: Executor | None = None,
) -> Teams:
    """Submissions, ranks and slopes by team or institution.

    Args:
        board: its entries; baselines belong to no team.
        public: the view whose scores are told.
        reserve: the view whose scores are not.
        rng: where draws come from.
        by: what groups are.
        alike: pairs of nearly identical runs; `None` where no runs are known.
        window: days of the window, at least 1.
        trials: draws of queries, at least 1.
        level: of the intervals, in (0, 1).
        executor: where to compute; `None` for here.

    Raises:
        InputError: code `missing-scores`.
    """
    entrants = [entry for entry in board.entries if not entry.baseline]
    members = _members(entrants, by)
    pair = pair_views(board, public, reserve)
    at = {entry.id: n for n, entry in enumerate(pair.entries)}
    own_rows = [[at[entry.id] for entry in own if entry.id in at] for own in members]
    draws = None
    if pair.resampled and any(len(rows) >= FEWEST for rows in own_rows):
        draws = pair.resample(rng, trials=trials, executor=executor)
    slopes = fit_slopes(pair.second_means - pair.first_means, own_rows, draws, level=level)
    ranks = [_ranks(pair, view) for view in (public, reserve)]
    groups = [
        _group(own, getattr(own[-1], by), ranks, slope, window=window)
        for own, slope in zip(members, slopes, strict=True)
    ]
    groups.sort(key=lambda group: -group.submissions)
    return Teams(
        board=board.board,
        public=public.view,
        reserve=reserve.view,
        measure=public.measure,
        by=by,
        groups=tuple(groups),
        nameless=len(entrants) - sum(map(len, members)),
        window=window,
        variants=None if alike is None else _link(entrants, alike),
        level=level,
        trials=0 if draws is None else trials,
        digests=tuple(v.table.digest for v in (public, reserve) if v.table is not None),
    )


def _key(name: str) -> str:
    """Case, width and spaces folded, as where quotas are counted."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _members(entrants: Sequence[BoardEntry], by: By) -> list[list[BoardEntry]]:
    groups: dict[str, list[BoardEntry]] = {}
    for entry in entrants:
        key = _key(getattr(entry, by))
        if key not in _NOBODY:
            groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _ranks(pair: ViewPair, view: ViewScores) -> dict[str, int]:
    """Rank among the entries with both scores, without baselines; ties to the earlier one."""
    scored = [entry for entry in pair.entries if not entry.baseline]
    scored.sort(key=lambda entry: -round(view.signed(view.means[entry.id]), 12))
    return {entry.id: rank for rank, entry in enumerate(scored, 1)}


def _group(
    own: Sequence[BoardEntry],
    name: str,
    ranks: Sequence[dict[str, int]],
    slope: Slope | None,
    *,
    window: int,
) -> Group:
    scored = tuple(entry.id for entry in own if entry.id in ranks[0])
    best = [min((rank[one] for one in scored), default=None) for rank in ranks]
    few = f"a slope needs {FEWEST} submissions with both scores"
    return Group(
        name=name,
        entries=scored,
        submissions=len(own),
        busiest=_busiest(own, window),
        best_public=best[0],
        best_reserve=best[1],
        slope=slope,
        why="" if slope is not None else few,
    )


def _busiest(own: Sequence[BoardEntry], window: int) -> int:
    """Most entries within any window that begins with one of them."""
    length = timedelta(days=window)
    return max(
        sum(start.received <= other.received < start.received + length for other in own)
        for start in own
    )


def _link(entrants: Sequence[BoardEntry], alike: Iterable[AlikeRuns]) -> tuple[VariantGroup, ...]:
    """Entries that are linked directly or through others, where they are of several teams."""
    teams = {entry.id: entry.team for entry in entrants}
    order = {entry.id: n for n, entry in enumerate(entrants)}
    groups: dict[str, set[str]] = {}
    links = [pair for pair in alike if pair.a in teams and pair.b in teams]
    for pair in links:
        joined = groups.get(pair.a, {pair.a}) | groups.get(pair.b, {pair.b})
        groups |= dict.fromkeys(joined, joined)
    found = []
    for joined in {id(group): group for group in groups.values()}.values():
        ids = sorted(joined, key=order.__getitem__)
        names = {_key(teams[one]): teams[one] for one in ids}
        if len(names) > 1:
            rbo = min(pair.rbo for pair in links if pair.a in joined)
            group = VariantGroup(entries=tuple(ids), teams=tuple(names.values()), least_rbo=rbo)
            found.append(group)
    return tuple(sorted(found, key=lambda group: order[group.entries[0]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsOptions:
    """Options of `heldout analyse teams`."""

    by: Annotated[By, Opt("What forms a group.")] = "team"
    window: Annotated[int, Opt("Days in which submissions are counted together.", least=1)] = 30
    trials: Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)] = 2000


def _analyse(given: Dated, options: TeamsOptions, draws: Draws) -> Answer:
    from heldout.report.team_charts import spec, title  # noqa: PLC0415 - it imports this
    from heldout.report.teams import tables  # noqa: PLC0415 - the same

    public, reserve = given.views
    result = look_at_teams(
        given.board,
        public,
        reserve,
        rng=draws.rng(),
        by=options.by,
        alike=given.alike,
        window=options.window,
        trials=options.trials,
        executor=draws.executor,
    )
    drawn = any(group.slope is not None for group in result.groups)
    return Answer(
        facts=(("teams", _say(result)), *given.facts),
        tables=tables(result),
        value=to_document(result) | given.value,
        chart=(lambda: spec(result)) if drawn else None,
        title=title(result),
    )


def _say(result: Teams) -> str:
    slopes = [group.slope for group in result.groups if group.slope is not None]
    counts = f"{plural(len(result.groups), result.by)}, {len(slopes)} with a slope"
    if not result.trials:
        return counts
    falling = sum(slope.high_all is not None and slope.high_all < 0 for slope in slopes)
    return f"{counts}; {falling} climb on {result.public} alone, all slopes at once"


ANALYSIS = Analysis(
    name="teams",
    help="""Who submits often, and do they climb on the public view alone?

    Of an old table dev, whose labels everybody has, stands for the public view, and eval for the
    reserve.

    \b
    Example:
      heldout analyse teams --board kb --vault ../kb-vault --by institution
    """,
    source="dates-reserve",
    options=TeamsOptions,
    analyse=_analyse,
    chapter="Teams",
)
