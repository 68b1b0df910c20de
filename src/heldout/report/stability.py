"""Stability of a ranking as tables and JSON: ranks under the bootstrap, and ranges."""

from math import isnan
from typing import Any

from heldout.answers.table import Cell, Column, Table
from heldout.errors import plural
from heldout.validity.ranges import RankRanges
from heldout.validity.stability import Stability

__all__ = ["facts", "tables", "value"]

_TOP = 5
_SHOWN = 3

_TIES = {
    "earlier": "of equal means the earlier in the table gets the better rank",
    "shared": "equal means share the best of their ranks",
}


def facts(stability: Stability, ranges: RankRanges) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who leads, who cannot be told from whom, how stable the top is."""
    first, rest = ranges.systems[0], ranges.lead[1:]
    told = sum(low == high for low, high in zip(ranges.low, ranges.high, strict=True))
    if not rest:
        lead = f"{first}, told apart from all others"
    else:
        named = ", ".join(rest[:_SHOWN])
        more = f" and {len(rest) - _SHOWN:,} more" if len(rest) > _SHOWN else ""
        lead = f"{first}, but {named}{more} can't be told apart from it"
    return (
        ("lead", lead),
        ("first", _say_first(stability, ranges)),
        ("certain", f"{told:,} of {len(ranges.systems):,} systems have one possible rank"),
    )


def _say_first(stability: Stability, ranges: RankRanges) -> str:
    """How often the first is first; among equals that is the order of the table."""
    share = float(stability.rank_probability[0, 0])
    resampled = f"{share:.1%} of {plural(stability.trials, 'resampling')} of the queries"
    equals = [name for name, p in zip(ranges.systems[1:], ranges.p[0, 1:], strict=True) if isnan(p)]
    if not equals:
        return f"{ranges.systems[0]} in {resampled}"
    named = ", ".join(equals[:_SHOWN])
    more = f" and {len(equals) - _SHOWN:,} more" if len(equals) > _SHOWN else ""
    return (
        f"{ranges.systems[0]}, first among equals: {named}{more} "
        f"{'has' if len(equals) == 1 else 'have'} its scores on every query, and which of them is "
        f"first is the order of the table; one of them in {resampled}"
    )


def tables(
    stability: Stability, ranges: RankRanges, *, measure: str = "", most: int | None = None
) -> tuple[Table, ...]:
    """Every system's ranks, and the top of the table of probabilities.

    Args:
        stability: ranks under the bootstrap.
        ranges: of the same table of scores.
        measure: what was measured, for the heading.
        most: systems that are shown, the best ones; `None` for all.
    """
    return _rank_table(stability, ranges, measure or "score", most), _top_table(stability)


def value(stability: Stability, ranges: RankRanges) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "systems": list(stability.systems),
        "scores": list(stability.means),
        "better": stability.better,
        "queries": stability.queries,
        "trials": stability.trials,
        "size": stability.size,
        "ties": stability.ties,
        "tied_trials": stability.tied_trials,
        "expected_rank": stability.expected_rank.tolist(),
        "rank_probability": stability.rank_probability.tolist(),
        "rank_low": list(ranges.low),
        "rank_high": list(ranges.high),
        "lead": list(ranges.lead),
        "level": ranges.level,
        "flips": ranges.flips,
        "test": "sign-flip",
        "correction": "max-t, step-down" if ranges.step_down else "max-t",
        "pairs": ranges.pairs,
        "told_apart": ranges.told_apart,
        "doubtful": {"pairs": ranges.doubtful, "largest_loss": ranges.largest},
        "hypotheses": 2 * ranges.pairs,
        "p_corrected": [[None if isnan(p) else p for p in row] for row in ranges.p.tolist()],
        "why": "null: a system and itself, or equal scores on every query (to 1e-12)",
        "digest": stability.digest,
    }


def _rank_table(stability: Stability, ranges: RankRanges, measure: str, most: int | None) -> Table:
    own = stability.rank_probability.diagonal().tolist()
    rows: list[tuple[Cell, ...]] = [
        (rank, _range(low, high), name, mean, expected, share)
        for rank, (low, high, name, mean, expected, share) in enumerate(
            zip(
                ranges.low,
                ranges.high,
                stability.systems,
                stability.means,
                stability.expected_rank.tolist(),
                own,
                strict=True,
            ),
            start=1,
        )
    ]
    return Table(
        title=f"Ranks of {len(rows):,} systems on {plural(stability.queries, 'query', 'queries')}",
        columns=(
            Column(name="rank", form="count"),
            Column(name="range"),
            Column(name="system"),
            Column(name=measure, form="score"),
            Column(name="expected rank", form="score", decimals=1),
            Column(name="at this rank", form="share", decimals=3),
        ),
        rows=tuple(rows[:most]),
        notes=(
            *_cut_notes(len(rows), most),
            *_range_notes(ranges),
            *_trial_notes(stability),
        ),
    )


def _cut_notes(systems: int, most: int | None) -> list[str]:
    if most is None or systems <= most:
        return []
    return [f"the first {most:,} of {systems:,} systems; all of them with --all or --json"]


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}–{high}"


def _range_notes(ranges: RankRanges) -> list[str]:
    n = len(ranges.systems)
    untested = n * (n - 1) // 2 - ranges.pairs
    steps = "step-down" if ranges.step_down else "single step"
    notes = [
        (
            f"range: from 1 + systems significantly better to {n} − systems significantly worse;"
            f" all ranges hold together in {ranges.level:.0%} of samples of queries; those that"
            f" reach 1 are the lead group ({len(ranges.lead)})"
        ),
        (
            f"test: paired sign flips, {ranges.flips:,} drawn, max-t ({steps}) over one family of"
            f" {2 * ranges.pairs:,} hypotheses: {plural(ranges.pairs, 'pair')} in both directions"
        ),
    ]
    if ranges.doubtful:
        notes.append(
            f"warning: of {plural(ranges.told_apart, 'pair')} told apart {ranges.doubtful:,} could "
            f"be undone by losses of up to {ranges.largest:.2f}, the largest difference in the "
            f"table, that are too rare to be among {plural(ranges.queries, 'query', 'queries')}; "
            "where systems fail rarely and badly the ranges are too narrow"
        )
    if untested:
        have = "1 pair has" if untested == 1 else f"{untested:,} pairs have"
        notes.append(f"{have} equal scores on every query (to 1e-12): no test, never told apart")
    return notes


def _trial_notes(stability: Stability) -> list[str]:
    tied = f"{stability.tied_trials:,} of {plural(stability.trials, 'trial')} had equal means"
    return [
        (
            f"expected rank and shares: {plural(stability.trials, 'trial')} of "
            f"{plural(stability.size, 'query', 'queries')}"
            f" drawn with replacement; {_TIES[stability.ties]}; {tied}"
        ),
        "shares describe and are no confidence statement: for that read the ranges",
    ]


def _top_table(stability: Stability) -> Table:
    top = min(_TOP, len(stability.systems))
    rows = [
        (name, *shares[:top])
        for name, shares in zip(
            stability.systems[:top], stability.rank_probability.tolist(), strict=False
        )
    ]
    return Table(
        title=f"Share of trials in which each of the first {top} has rank 1 to {top}",
        columns=(
            Column(name="system"),
            *(Column(name=f"{rank}", form="share", decimals=3) for rank in range(1, top + 1)),
        ),
        rows=tuple(rows),
        notes=(f"{plural(stability.trials, 'trial')}, as above",),
    )
