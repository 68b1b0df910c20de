"""Whether teams that submit often fit the labels that their scores are released by.

For each team and each institution: how many submissions came and how many within one window, the
rank of its best entry on the public view and on the reserve that nobody ever sees a score of, and
the slope of (reserve - public) over its own submissions. Who learns from released scores and not
from the task climbs on the public view alone: the slope is below 0.

Sources: Craswell et al. 2021, §3.3;
Lin et al. 2022, §2.2.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from heldout.analyses import analysis, views
from heldout.analyses.entries import (
    AlikeRuns,
    BoardEntry,
    BoardScores,
    Dated,
    ViewScores,
    fold_name,
    read_institutions,
)
from heldout.answers import texts
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow
from heldout.errors import plural
from heldout.ids import Digest
from heldout.options import Opt
from heldout.stats.resampling import percentile_interval
from heldout.trec.reading.sources import read_file

# The slope of (reserve - public) over a group's own submissions, with an interval that holds.
#
# Submissions of a team share their queries, and mostly most of their answers, so a least-squares
# line over submissions takes for a trend what is one draw of queries. The interval here resamples
# queries; that of least squares is given beside it, to show the difference.

FEWEST = 3
"""Submissions that a slope needs: through two points a line always goes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """Change of (reserve - public) from one submission of a group to its next.

    Attributes:
        per_submission: by least squares over the submissions in the order they came.
        low, high: its interval by resampling queries; `None` where only means are known.
        low_all, high_all: the same for the slopes of all groups at once, by the greatest
            standardised deviation of any group in a draw.
        ols_low, ols_high: what least squares alone would say, which ignores that submissions
            share their queries: too narrow.
    """

    per_submission: float
    low: float | None
    high: float | None
    low_all: float | None
    high_all: float | None
    ols_low: float
    ols_high: float


def fit_slopes(
    gaps: NDArray[np.float64],
    groups: Sequence[Sequence[int]],
    draws: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    *,
    level: float,
) -> list[Slope | None]:
    """The slope of each group.

    Args:
        gaps: reserve - public of each entry.
        groups: places in `gaps` of each group's entries, in the order they came.
        draws: public and reserve means in each draw of queries, both of shape (draws, entries);
            `None` where only means are known.
        level: of the intervals, in (0, 1).

    Returns:
        A slope for each group, `None` for one with fewer than `FEWEST` entries.
    """
    chosen = [n for n, own in enumerate(groups) if len(own) >= FEWEST]
    weights = np.zeros((len(chosen), len(gaps)))
    for n, group in enumerate(chosen):
        weights[n, list(groups[group])] = _least_squares(len(groups[group]))
    found = weights @ gaps
    drawn = None if draws is None else (draws[1] - draws[0]) @ weights.T
    factor = None if drawn is None else _joint_factor(drawn, found, level)
    slopes: list[Slope | None] = [None] * len(groups)
    for n, group in enumerate(chosen):
        own = gaps[list(groups[group])]
        column = None if drawn is None else drawn[:, n]
        slopes[group] = _slope(float(found[n]), own, column, factor, level=level)
    return slopes


def _slope(
    estimate: float,
    gaps: NDArray[np.float64],
    drawn: NDArray[np.float64] | None,
    factor: float | None,
    *,
    level: float,
) -> Slope:
    low = high = width = None
    if drawn is not None:
        low, high = percentile_interval(drawn, level=level)
        width = None if factor is None or low is None else factor * float(drawn.std())
    error = _ols_width(gaps, estimate, level)
    return Slope(
        per_submission=estimate,
        low=low,
        high=high,
        low_all=None if width is None else estimate - width,
        high_all=None if width is None else estimate + width,
        ols_low=estimate - error,
        ols_high=estimate + error,
    )


def _least_squares(count: int) -> NDArray[np.float64]:
    """Return what each of so many values adds to the slope of their least-squares line."""
    centred = np.arange(count, dtype=np.float64) - (count - 1) / 2
    return centred / float(np.sum(centred**2))


def _joint_factor(
    drawn: NDArray[np.float64], found: NDArray[np.float64], level: float
) -> float | None:
    """Standard errors to each side such that the intervals of all groups hold at once."""
    errors = drawn.std(axis=0)
    moves = errors > 0
    if not moves.any():
        return None
    greatest = np.max(np.abs(drawn - found)[:, moves] / errors[moves], axis=1)
    return float(np.quantile(greatest, level))


def _ols_width(gaps: NDArray[np.float64], slope: float, level: float) -> float:
    """Half the width of the interval by the residuals of the line."""
    count = len(gaps)
    steps = np.arange(count) - (count - 1) / 2
    residuals = gaps - gaps.mean() - slope * steps
    error = float(np.sqrt(np.sum(residuals**2) / (count - 2) / np.sum(steps**2)))
    return float(stdtrit(count - 2, (1 + level) / 2)) * error


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsOptions:
    """Options of `heldout analyse teams`."""

    by: Annotated[By, Opt("Grouping of the entries.")] = "team"
    groups: Annotated[
        Path | None,
        Opt(
            "Institutions of the teams: team<TAB>institution [as on the board].",
            path="file",
            metavar="FILE",
        ),
    ] = None
    until: Annotated[
        date | None, Opt("Last day whose entries count [that of the last entry].", metavar="DAY")
    ] = None
    window: Annotated[int, Opt("Days in which submissions are counted together.", least=1)] = 30
    trials: Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)] = 2000


def look_at_teams(
    given: Dated,
    rng: Generator,
    options: TeamsOptions,
    *,
    level: float = 0.95,
    executor: Executor | None = None,
) -> Teams:
    """Submissions, ranks and slopes by team or institution.

    Args:
        given: on the view whose scores are released, and on the reserve, whose scores are not;
            baselines belong to no team.
        rng: where draws come from.
        options: what groups are, the window and the draws.
        level: of the intervals, in (0, 1).
        executor: where to compute; `None` for here.

    Raises:
        InputError: code `missing-scores`.
    """
    (public, reserve), by, trials = given.views, options.by, options.trials
    entrants = [entry for entry in given.board.entries if not entry.baseline]
    members = _members(entrants, by)
    pair = views.pair_views(given.board, public, reserve)
    at = {entry.id: n for n, entry in enumerate(pair.entries)}
    own_rows = [[at[entry.id] for entry in own if entry.id in at] for own in members]
    draws = None
    if pair.resampled and any(len(rows) >= FEWEST for rows in own_rows):
        draws = pair.resample(rng, trials=trials, executor=executor)
    slopes = fit_slopes(pair.second_means - pair.first_means, own_rows, draws, level=level)
    ranks = [_ranks(pair, view) for view in (public, reserve)]
    groups = [
        _group(own, getattr(own[-1], by), ranks, slope, window=options.window)
        for own, slope in zip(members, slopes, strict=True)
    ]
    groups.sort(key=lambda group: -group.submissions)
    return Teams(
        board=given.board.board,
        public=public.view,
        reserve=reserve.view,
        measure=public.measure,
        by=by,
        groups=tuple(groups),
        nameless=len(entrants) - sum(map(len, members)),
        window=options.window,
        variants=None if given.alike is None else _link(entrants, given.alike),
        level=level,
        trials=0 if draws is None else trials,
        digests=tuple(v.table.digest for v in (public, reserve) if v.table is not None),
    )


def _members(entrants: Sequence[BoardEntry], by: By) -> list[list[BoardEntry]]:
    groups: dict[str, list[BoardEntry]] = {}
    for entry in entrants:
        key = fold_name(getattr(entry, by))
        if key not in _NOBODY:
            groups.setdefault(key, []).append(entry)
    return list(groups.values())


def _ranks(pair: views.ViewPair, view: ViewScores) -> dict[str, int]:
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


def _link(entrants: Sequence[BoardEntry], alike: Sequence[AlikeRuns]) -> tuple[VariantGroup, ...]:
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
        names = {fold_name(teams[one]): teams[one] for one in ids}
        if len(names) > 1:
            rbo = min(pair.rbo for pair in links if pair.a in joined)
            group = VariantGroup(entries=tuple(ids), teams=tuple(names.values()), least_rbo=rbo)
            found.append(group)
    return tuple(sorted(found, key=lambda group: order[group.entries[0]]))


def _analyse(given: Dated, options: TeamsOptions, draws: analysis.Draws) -> Answer:
    given = replace(given, board=_choose(given.board, options))
    result = look_at_teams(given, draws.rng(), options, executor=draws.executor)
    drawn = any(group.slope is not None for group in result.groups)
    until = None if options.until is None else options.until.isoformat()
    return Answer(
        answer=headline(result),
        summary=(("teams", _say(result)), *given.facts, *([("until", until)] if until else [])),
        tables=tables(result),
        document=to_document(result) | given.document | {"until": until},
        chart=(lambda: chart(result)) if drawn else None,
        title=title(result),
    )


def _choose(board: BoardScores, options: TeamsOptions) -> BoardScores:
    """The entries that count, with the institutions of their teams."""
    entries = board.entries
    if options.until is not None:
        entries = tuple(entry for entry in entries if entry.day <= options.until)
    if options.groups is not None:
        known = read_file(read_institutions, options.groups)
        entries = tuple(
            replace(e, institution=known.get(fold_name(e.team), e.institution)) for e in entries
        )
    return replace(board, entries=entries)


def headline(result: Teams) -> str:
    """Return who climbs on the public view alone."""
    known = [group for group in result.groups if group.slope is not None]
    return texts.write(
        "teams.headline",
        result=result,
        known=len(known),
        falling=[group.name for group in known if _falls(group)],
        fewest=FEWEST,
    )


def _falls(group: Group) -> bool:
    slope = group.slope
    return slope is not None and slope.high_all is not None and slope.high_all < 0


def _say(result: Teams) -> str:
    slopes = sum(group.slope is not None for group in result.groups)
    said = f"{plural(len(result.groups), result.by)}, {slopes} with a slope"
    most = [f"{svg.cut(g.name, _NAME)} ({g.submissions:,})" for g in result.groups[:3]]
    return f"{said}; most entries: {'; '.join(most)}" if most else said


ANALYSIS = analysis.Analysis(
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


# A board by team or institution as a picture: who climbs on the public view alone.


_SHOWN = 40


def title(result: Teams) -> str:
    """Return what the picture shows."""
    return (
        f"Slope of ({result.reserve} - {result.public}) from one submission to the next, by "
        f"{result.by}; below 0 where the released score rises faster"
    )


def chart(result: Teams) -> Plot:
    """The slope of each group, alone and with all at once, those with most submissions first.

    Args:
        result: with at least one slope; of many the first 40 are drawn.
    """
    known = [(group, group.slope) for group in result.groups if group.slope is not None]
    shown = known[:_SHOWN]
    hidden = f"; {len(known) - len(shown):,} more are not drawn" if len(known) > _SHOWN else ""
    plot = Plot(
        x=axes.score_axis([0.0, *(end for _, slope in shown for end in _ends(slope))]),
        rows=[PlotRow(name=f"{group.name} ({group.submissions:,})") for group, _ in shown],
        head=f"{result.by} (submissions{hidden})",
        foot=(
            f"{result.reserve} - {result.public} per submission; left of 0 {result.public} rises "
            "faster"
        ),
    )
    plot.upright(0)
    for row, (_, slope) in enumerate(shown):
        plot.interval(row, slope.low_all, slope.high_all, svg.MUTED, thin=True)
        plot.interval(row, slope.low, slope.high)
    plot.dots(
        [
            (slope.per_submission, row, f"{group.name}: {slope.per_submission:+.5f} per submission")
            for row, (group, slope) in enumerate(shown)
        ],
        "disc",
    )
    if result.trials:
        plot.key("line", f"{result.level:.0%} interval, each alone")
        plot.key("thin", "all at once", svg.MUTED)
    else:
        plot.key("disc", "of means alone, without intervals")
    return plot


def _ends(slope: Slope) -> list[float]:
    ends = (slope.per_submission, slope.low, slope.high, slope.low_all, slope.high_all)
    return [end for end in ends if end is not None]


# A board by team or institution as tables and JSON.

_NAME = 40


def tables(result: Teams) -> tuple[Table, ...]:
    """Tabulate the groups and, where runs are known, those nearly the same across teams."""
    groups = _group_table(result)
    return (groups,) if result.variants is None else (groups, _variant_table(result.variants))


def _group_table(result: Teams) -> Table:
    groups = result.groups
    return texts.write_table(
        "teams.groups",
        tuple(_group_row(group, known=result.trials > 0) for group in groups),
        first=sorted(range(len(groups)), key=lambda position: groups[position].slope is None),
        result=result,
        why=sorted({group.why for group in groups if group.why}),
        slopes=sum(group.slope is not None for group in groups),
    )


def _group_row(group: Group, *, known: bool) -> tuple[Cell, ...]:
    slope = group.slope
    head = (svg.cut(group.name, _NAME), group.submissions, group.busiest)
    ranks = (group.best_public, group.best_reserve)
    if slope is None:
        return (*head, *ranks, *[None] * (7 if known else 3))
    intervals = (slope.low, slope.high, slope.low_all, slope.high_all) if known else ()
    return (*head, *ranks, slope.per_submission, *intervals, slope.ols_low, slope.ols_high)


def _variant_table(groups: Sequence[VariantGroup]) -> Table:
    rows = tuple((", ".join(g.entries), "; ".join(g.teams), g.least_rbo) for g in groups)
    return texts.write_table("teams.variants", rows, groups=groups)
