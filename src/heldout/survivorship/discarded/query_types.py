"""Were some types of queries discarded more often than others?

Every type has its share with an interval, and is compared with all other queries; the types
together have a chi-squared test of whether the share is the same for all, and Cramer's V, which
says how strong that is where a test of 100,000 queries finds everything significant.

Source: Gupta and MacAvaney, SIGIR 2022 (survivorship-bias), table 3.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2_contingency

from heldout.errors import InputError, Problem, plural
from heldout.stats.results import SMALLEST, holm
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.discarded.shares import wilson

__all__ = ["QueryTypes", "TypeCount", "TypeShare", "compare_types", "count_types"]

_FEWEST_EXPECTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCount:
    """Queries of one type.

    Attributes:
        total: all of them, >= 1.
        discarded: without a label, at most `total`.
    """

    total: int
    discarded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeShare:
    """How many queries of a type were discarded.

    Attributes:
        kind: the type; "" for queries of none.
        total: queries of it.
        discarded: those without a label.
        share: `discarded / total`.
        low, high: interval of the share, by Wilson.
        residual: the adjusted residual: how many standard errors the type is above (or below) all
            other queries; `None` where there are no others, or all or none were discarded.
        p: two-sided, of the residual; `None` with it.
        p_corrected: by Holm over the types.
    """

    kind: str
    total: int
    discarded: int
    share: float
    low: float
    high: float
    residual: float | None
    p: float | None
    p_corrected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTypes:
    """The shares of all types.

    Attributes:
        types: the most frequent first.
        total: queries of all types.
        discarded: those without a label.
        level: of the intervals.
        chi2: Pearson's statistic; `None` where `why` says so.
        freedom: its degrees of freedom, one less than the types.
        p: that chance alone makes the shares differ so; `None` with `chi2`.
        cramers_v: 0 (no relation) to 1; `None` with `chi2`.
        smallest_expected: smallest count that is expected if the types do not differ; below 5 the
            approximation is doubtful. `None` with `chi2`.
        why: the reason why there is no test, else "".
    """

    types: tuple[TypeShare, ...]
    total: int
    discarded: int
    level: float
    chi2: float | None
    freedom: int
    p: float | None
    cramers_v: float | None
    smallest_expected: float | None
    why: str

    @property
    def doubtful(self) -> bool:
        """Whether a count is too small for the approximation behind p."""
        return self.smallest_expected is not None and self.smallest_expected < _FEWEST_EXPECTED


def count_types(annotations: Annotations) -> Mapping[str, TypeCount]:
    """Queries by type, "" for those of none.

    Args:
        annotations: with types, and with discarded queries.

    Raises:
        InputError: code `no-types`: no query has a type; `no-discarded`: the source leaves
            discarded queries out.
    """
    if not annotations.counts_discarded:
        raise InputError(
            Problem(
                code="no-discarded",
                path=annotations.source,
                found="queries with a label alone",
                expected="discarded queries too",
                hint="this source does not tell which queries annotators could not answer",
            )
        )
    total = Counter(record.kind or "" for record in annotations.records)
    if not any(total):
        raise InputError(
            Problem(
                code="no-types",
                path=annotations.source,
                found=f"{plural(len(annotations.records), 'query', 'queries')}, none with a type",
                expected="a type for queries",
                hint="--types FILE has a query and its type on each line",
            )
        )
    discarded = Counter(record.kind or "" for record in annotations.records if not record.selected)
    return {
        kind: TypeCount(total=count, discarded=discarded[kind]) for kind, count in total.items()
    }


def compare_types(counts: Mapping[str, TypeCount], *, level: float = 0.95) -> QueryTypes:
    """Shares, their intervals, and what tells them apart.

    Args:
        counts: at least one type.
        level: of the intervals.

    Returns:
        Without a test where there is one type alone, or all or none were discarded.

    Source: survivorship-bias, table 3; Agresti 2002, "Categorical Data Analysis", section 3.3.1
    (adjusted residuals).
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1].total, item[0]))
    total = sum(count.total for count in counts.values())
    discarded = sum(count.discarded for count in counts.values())
    residuals = [_residual(count, total, discarded) for _, count in ordered]
    ps = [None if one is None else max(float(2 * ndtr(-abs(one))), SMALLEST) for one in residuals]
    types = tuple(
        _share(kind, count, residual, (p, corrected), level)
        for (kind, count), residual, p, corrected in zip(
            ordered, residuals, ps, holm(ps), strict=True
        )
    )
    why = _why(len(types), total, discarded)
    table = [[one.discarded, one.total - one.discarded] for _, one in ordered]
    test = None if why else chi2_contingency(table, correction=False)
    return QueryTypes(
        types=types,
        total=total,
        discarded=discarded,
        level=level,
        chi2=None if test is None else float(test.statistic),
        freedom=len(types) - 1,
        p=None if test is None else max(float(test.pvalue), SMALLEST),
        cramers_v=None if test is None else math.sqrt(float(test.statistic) / total),
        smallest_expected=None if test is None else float(np.min(test.expected_freq)),
        why=why,
    )


def _why(types: int, total: int, discarded: int) -> str:
    if types == 1:
        return "one type alone has nothing to differ from"
    if discarded in (0, total):
        return "all queries were discarded" if discarded else "no query was discarded"
    return ""


def _residual(count: TypeCount, total: int, discarded: int) -> float | None:
    """Count less what is expected, in its standard errors."""
    overall = discarded / total
    variance = count.total * overall * (1 - overall) * (1 - count.total / total)
    return (count.discarded - count.total * overall) / math.sqrt(variance) if variance else None


def _share(
    kind: str,
    count: TypeCount,
    residual: float | None,
    ps: Sequence[float | None],
    level: float,
) -> TypeShare:
    low, high = wilson(count.discarded, count.total, level=level)
    return TypeShare(
        kind=kind,
        total=count.total,
        discarded=count.discarded,
        share=count.discarded / count.total,
        low=low,
        high=high,
        residual=residual,
        p=ps[0],
        p_corrected=ps[1],
    )
