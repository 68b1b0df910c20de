"""Were some types of queries discarded more often than others?

Every type has its share with an interval, and is compared with all other queries; the types
together have a chi-squared test of whether the share is the same for all, and Cramer's V, which
says how strong that is where a test of 100,000 queries finds everything significant.

Source: Gupta and MacAvaney 2022, table 3.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from operator import attrgetter

import numpy as np
from scipy.special import ndtr
from scipy.stats import chi2_contingency

from heldout.answers.answer import Answer
from heldout.answers.sentence import say_p
from heldout.answers.texts import write, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow
from heldout.errors import InputError, plural
from heldout.stats.results import SMALLEST, holm
from heldout.survivorship.annotations import Annotations, discarded_records
from heldout.survivorship.discarded.judging import wilson

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


@dataclass(frozen=True, slots=True)
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
        """Return whether a count is too small for the approximation behind p."""
        return self.smallest_expected is not None and self.smallest_expected < _FEWEST_EXPECTED


def count_types(annotations: Annotations) -> Mapping[str, TypeCount]:
    """Queries by type, "" for those of none.

    Args:
        annotations: with types, and with discarded queries.

    Raises:
        InputError: code `no-types`: no query has a type; `no-discarded`: the source leaves
            discarded queries out.
    """
    out = Counter(record.kind or "" for record in discarded_records(annotations))
    total = Counter(record.kind or "" for record in annotations.records)
    if not any(total):
        queries = plural(len(annotations.records), "query", "queries")
        raise InputError.of("no-types", annotations.source, queries=queries)
    return {kind: TypeCount(total=count, discarded=out[kind]) for kind, count in total.items()}


def compare_types(counts: Mapping[str, TypeCount], *, level: float = 0.95) -> QueryTypes:
    """Shares, their intervals, and how they differ.

    Args:
        counts: at least one type.
        level: of the intervals.

    Returns:
        Without a test where there is one type alone, or all or none were discarded.

    Source: Gupta and MacAvaney 2022, table 3; Agresti 2002, "Categorical Data Analysis", §3.3.1
    (adjusted residuals).
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1].total, item[0]))
    total = sum(count.total for count in counts.values())
    discarded = sum(count.discarded for count in counts.values())
    residuals = [_residual(count, total, discarded) for _, count in ordered]
    ps = [None if one is None else max(float(2 * ndtr(-abs(one))), SMALLEST) for one in residuals]
    types = []
    for (kind, count), residual, p, corrected in zip(ordered, residuals, ps, holm(ps), strict=True):
        low, high = wilson(count.discarded, count.total, level=level)
        share = count.discarded / count.total
        tested = {"residual": residual, "p": p, "p_corrected": corrected}
        types.append(TypeShare(kind, count.total, count.discarded, share, low, high, **tested))
    tests: dict[str, float | None] = dict.fromkeys(("chi2", "p", "cramers_v", "smallest_expected"))
    why = _why(len(types), total, discarded)
    if not why:
        table = [[one.discarded, one.total - one.discarded] for _, one in ordered]
        found = chi2_contingency(table, correction=False)
        chi2 = float(found.statistic)
        tests = {
            "chi2": chi2,
            "p": max(float(found.pvalue), SMALLEST),
            "cramers_v": math.sqrt(chi2 / total),
            "smallest_expected": float(np.min(found.expected_freq)),
        }
    return QueryTypes(
        types=tuple(types),
        total=total,
        discarded=discarded,
        level=level,
        freedom=len(types) - 1,
        why=why,
        **tests,
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


_NO_TYPE = "(none)"
_SMALL_P, _LEAST_P = 1e-4, 1e-300


def answer_types(found: QueryTypes) -> Answer:
    """Report how many queries were discarded, which types most, and a row for each type."""
    test = _say_test(found)
    shown = attrgetter("total", "discarded", "share", "low", "high", "residual", "p_corrected")
    rows = tuple((_name(one), *shown(one)) for one in found.types)
    undefined = any(one.p is None for one in found.types)
    table = write_table("discarded.types", rows, found=found, test=test, undefined=undefined)
    types = plural(len(found.types), "type")
    document = asdict(found) | {
        "interval": "Wilson",
        "correction": "Holm",
        "types": [
            asdict(one) | {"kind": one.kind or None, "why": found.why if one.p is None else ""}
            for one in found.types
        ],
    }
    return Answer(
        answer=_headline(found),
        summary=[("test", test)],
        tables=(table,),
        document=document,
        chart=lambda: _draw(found),
        title=f"Share of discarded queries of each of {types}, with {found.level:.0%} intervals",
    )


def _headline(found: QueryTypes) -> str:
    """Say whether types are discarded alike, and which type most."""
    least, most = (end(found.types, key=lambda one: one.share) for end in (min, max))
    said = "" if found.p is None else say_p(found.p)
    given = {"least": least, "most": most, "said_p": said, "no_type": _NO_TYPE}
    return write("discarded.types_headline", found=found, **given)


def _draw(found: QueryTypes) -> Plot:
    """A dot in its interval for each type, the highest share first; dashed: all queries."""
    types = sorted(found.types, key=lambda one: (-one.share, one.kind))
    share = found.discarded / found.total
    plot = Plot(
        x=axes.share_axis(),
        rows=[PlotRow(name=_name(one)) for one in types],
        foot="share of queries without a label",
    )
    for row, one in enumerate(types):
        tip = f"{_name(one)}: {one.discarded:,} of {one.total:,}, {one.share:.1%}"
        plot.bar((one.low, one.high), row, svg.SOFT, f"{tip}; {one.low:.1%} to {one.high:.1%}")
        plot.dots([(one.share, row, tip)], "disc")
    plot.upright(share)
    plot.key("box", f"{found.level:.0%} interval", svg.SOFT)
    plot.key("dashed", f"all queries, {share:.1%}")
    return plot


def _name(one: TypeShare) -> str:
    return one.kind or _NO_TYPE


def _say_test(found: QueryTypes) -> str:
    """Say what the test found; a very small p as a power of ten: there the number speaks."""
    small = ""
    if found.p is not None and found.p < _SMALL_P:
        small = f"below {_LEAST_P:g}" if found.p < _LEAST_P else f"{found.p:.1g}"
    return write("discarded.types_test", found=found, small_p=small)
