"""A board by team or institution as tables and JSON."""

from typing import Any

from heldout.analyses.teams import Group, Teams
from heldout.answers.table import Cell, Column, Table
from heldout.charts.labels import cut
from heldout.errors import plural
from heldout.validity.team_slopes import Slope

__all__ = ["tables", "value"]

_NAME = 40


def tables(result: Teams) -> tuple[Table, ...]:
    """The groups and, where runs are known, those that are nearly the same across teams."""
    groups = _group_table(result)
    return (groups,) if result.variants is None else (groups, _variant_table(result))


def value(result: Teams) -> dict[str, Any]:
    """The whole result for JSON."""
    variants = result.variants
    return {
        "board": result.board,
        "public": result.public,
        "reserve": result.reserve,
        "measure": result.measure,
        "by": result.by,
        "window_days": result.window,
        "nameless": result.nameless,
        "level": result.level,
        "trials": result.trials,
        "groups": [
            {
                "name": group.name,
                "entries": list(group.entries),
                "submissions": group.submissions,
                "busiest_window": group.busiest,
                "best_public_rank": group.best_public,
                "best_reserve_rank": group.best_reserve,
                "slope": None if group.slope is None else _slope_value(group.slope),
                "why": group.why,
            }
            for group in result.groups
        ],
        "variants": None
        if variants is None
        else [
            {"entries": list(v.entries), "teams": list(v.teams), "least_rbo": v.least_rbo}
            for v in variants
        ],
        "digests": list(result.digests),
    }


def _slope_value(slope: Slope) -> dict[str, float | None]:
    return {
        "per_submission": slope.per_submission,
        "low": slope.low,
        "high": slope.high,
        "low_all": slope.low_all,
        "high_all": slope.high_all,
        "ols_low": slope.ols_low,
        "ols_high": slope.ols_high,
    }


def _group_table(result: Teams) -> Table:
    share = f"{result.level:.0%}"
    return Table(
        title=f"By {result.by}: {result.public} against {result.reserve}, {result.measure}",
        columns=(
            Column(name=result.by, form="text"),
            Column(name="entries", form="count"),
            Column(name=f"in {result.window} days", form="count"),
            Column(name=f"best {result.public}", form="count"),
            Column(name=f"best {result.reserve}", form="count"),
            Column(name="slope", form="difference"),
            *(_interval_columns(share) if result.trials else ()),
            Column(name="OLS from", form="difference"),
            Column(name="to", form="difference"),
        ),
        rows=tuple(_group_row(group, known=result.trials > 0) for group in result.groups),
        notes=tuple(_group_notes(result)),
    )


def _interval_columns(share: str) -> tuple[Column, ...]:
    names = (f"{share} from", "to", "all: from", "to")
    return tuple(Column(name=name, form="difference") for name in names)


def _group_row(group: Group, *, known: bool) -> tuple[Cell, ...]:
    slope = group.slope
    head = (cut(group.name, _NAME), group.submissions, group.busiest)
    ranks = (group.best_public, group.best_reserve)
    if slope is None:
        return (*head, *ranks, *[None] * (7 if known else 3))
    intervals = (slope.low, slope.high, slope.low_all, slope.high_all) if known else ()
    return (*head, *ranks, slope.per_submission, *intervals, slope.ols_low, slope.ols_high)


def _group_notes(result: Teams) -> list[str]:
    slopes = [group.slope for group in result.groups if group.slope is not None]
    apart = f"{result.reserve} - {result.public}"
    notes = [
        (
            f"Best: rank of its best entry among all with both scores. Slope of ({apart}) from one "
            "submission to the next; below 0 where the told score rises faster."
        ),
    ]
    if result.trials:
        notes.append(
            f"Intervals by {plural(result.trials, 'draw')} of queries; all: the "
            f"{len(slopes)} slopes here "
            "at once. OLS takes submissions for independent, which they are not: do not rely on it."
        )
    else:
        notes.append(
            "Means alone are known: no intervals by queries, and OLS takes submissions for "
            "independent, which they are not: a description only."
        )
    why = {group.why for group in result.groups if group.why}
    notes += [f"No slope: {reason}." for reason in sorted(why)]
    if result.nameless:
        notes.append(f"Entries that name no {result.by} and belong to no group: {result.nameless}.")
    return notes


def _variant_table(result: Teams) -> Table:
    groups = result.variants or ()
    return Table(
        title="Nearly the same runs, different teams",
        columns=(
            Column(name="entries", form="text"),
            Column(name="teams", form="text"),
            Column(name="least RBO", form="score", decimals=2),
        ),
        rows=tuple((", ".join(g.entries), "; ".join(g.teams), g.least_rbo) for g in groups),
        notes=(
            ("No two teams have runs that the board's rule calls variants of each other.",)
            if not groups
            else ("Linked by the board's rule for variants; RBO of the first ten documents.",)
        ),
    )
