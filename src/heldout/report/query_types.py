"""Types of discarded queries as a table and JSON."""

from typing import Any

from heldout.answers.table import UNDEFINED, Column, Table, format_p
from heldout.survivorship.discarded.query_types import QueryTypes, TypeShare

__all__ = ["facts", "tables", "value"]

_NO_TYPE = "(none)"
_SMALL_P, _LEAST_P = 1e-4, 1e-300


def facts(found: QueryTypes) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: how many were discarded, and which types most and least."""
    share = found.discarded / found.total
    lines = [("discarded", f"{found.discarded:,} of {found.total:,} queries, {share:.1%}")]
    if len(found.types) > 1:
        by_share = sorted(found.types, key=lambda one: -one.share)
        most, least = by_share[0], by_share[-1]
        lines.append(("most", f"{_name(most)}: {most.discarded:,} of {most.total:,}, {_pc(most)}"))
        lines.append(
            ("least", f"{_name(least)}: {least.discarded:,} of {least.total:,}, {_pc(least)}")
        )
    return (*lines, ("test", _say_test(found)))


def tables(found: QueryTypes) -> tuple[Table, ...]:
    """A row for each type."""
    none = [one for one in found.types if one.p is None]
    return (
        Table(
            title="Discarded queries by type",
            columns=(
                Column(name="type"),
                Column(name="queries", form="count"),
                Column(name="discarded", form="count"),
                Column(name="share", form="share", decimals=3),
                Column(name="low", form="share", decimals=3),
                Column(name="high", form="share", decimals=3),
                Column(name="residual", form="difference", decimals=1),
                Column(name="corrected", form="p"),
            ),
            rows=tuple(
                (
                    _name(one),
                    one.total,
                    one.discarded,
                    one.share,
                    one.low,
                    one.high,
                    one.residual,
                    one.p_corrected,
                )
                for one in found.types
            ),
            notes=(
                f"low, high: {found.level:.0%} by Wilson, each by itself",
                (
                    "residual: standard errors above (or below) the share of all other queries, "
                    "with its p, two-sided, by Holm over the types"
                ),
                _say_test(found),
                *([f"{UNDEFINED}: {found.why}"] if none else []),
            ),
        ),
    )


def value(found: QueryTypes) -> dict[str, Any]:
    """The whole result for JSON."""
    return {
        "total": found.total,
        "discarded": found.discarded,
        "level": found.level,
        "interval": "Wilson",
        "correction": "Holm",
        "chi2": found.chi2,
        "df": found.freedom,
        "p": found.p,
        "cramers_v": found.cramers_v,
        "smallest_expected": found.smallest_expected,
        "why": found.why,
        "types": [
            {
                "type": one.kind or None,
                "total": one.total,
                "discarded": one.discarded,
                "share": one.share,
                "low": one.low,
                "high": one.high,
                "residual": one.residual,
                "p": one.p,
                "p_corrected": one.p_corrected,
                "why": found.why if one.p is None else "",
            }
            for one in found.types
        ],
    }


def _name(one: TypeShare) -> str:
    return one.kind or _NO_TYPE


def _pc(one: TypeShare) -> str:
    return f"{one.share:.1%}"


def _say_test(found: QueryTypes) -> str:
    if found.chi2 is None:
        return f"no test: {found.why}"
    told = (
        f"chi-squared {found.chi2:,.1f} with {found.freedom} degrees of freedom, "
        f"p {_say_p(found.p)}; Cramer's V {found.cramers_v:.3f} (0 none, 1 full)"
    )
    if found.doubtful:
        told += f"; doubtful: a count is expected to be {found.smallest_expected:.1f}, below 5"
    return told


def _say_p(p: float | None) -> str:
    """A very small one as a power of ten: there the number of queries speaks."""
    if p is None or p >= _SMALL_P:
        return format_p(p)
    return f"below {_LEAST_P:g}" if p < _LEAST_P else f"{p:.1g}"
