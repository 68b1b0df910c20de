"""On what scale is a measure? Its attainable values, their gaps, and the solvability condition.

A difference structure on result lists asks that, where a difference cd fits between a and b, some
list lies as far above a, and some list as far below b (solvability). A finite set of values does
that exactly where its values are equally spaced. Held against the whole range, every gap between
two values must be attainable above the lowest value and below the highest one; where a gap is not,
it is reported with the values that are missing. Sources: Craswell et al. 2021, §4.1 and Table 3;
Ferrante, Ferro and Fuhr 2021.

The paper's authors hold that users' perception, and not the set of lists, should be equally
spaced; this module computes and takes no side.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts.axes import score_axis
from heldout.charts.plot import Plot, PlotRow
from heldout.charts.svg import MUTED
from heldout.errors import InputError
from heldout.options import Opt
from heldout.scoring.names import read_own_measure
from heldout.scoring.transforms import Universe, find_values, list_values, universe_of
from heldout.stats.exact import DECIMALS, scale_of, short_fraction

_FEW = 1024
_COMPARED = 128
_NEAR = 1e-11


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A gap between two values that cannot be laid off from the ends of the scale.

    Attributes:
        low, high: the first two values that are so far apart, `high` the larger.
        gap: how far.
        missing: what is not attainable of lowest value + gap and highest value - gap.
    """

    low: float
    high: float
    gap: float
    missing: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The values of a measure on all lists.

    Attributes:
        universe: the lists.
        listed: every list with its value, where there are at most 1,024; else empty.
        values: distinct ones, falling.
        fractions: the same as fractions; `None` where they are none of small denominator.
        gaps: between neighbours, one less than `values`.
        equally_spaced: whether all gaps are equal, which is the solvability condition.
        violations: gaps that break it, the smallest first; `None` where there are more than 128
            values, and they were not looked for.
    """

    universe: Universe
    listed: tuple[tuple[tuple[int, ...], float], ...]
    values: tuple[float, ...]
    fractions: tuple[Fraction, ...] | None
    gaps: tuple[float, ...]
    equally_spaced: bool
    violations: tuple[Violation, ...] | None


def describe_scale(universe: Universe) -> Scale:
    """All values of a measure, and whether they are an interval scale on the lists.

    Args:
        universe: the lists.

    Raises:
        InputError: code `no-scale`: too many lists, or values, to be enumerated.
    """
    values = find_values(universe)
    exact = scale_of(values, most=_FEW)
    gaps = np.round(np.diff(values), DECIMALS)
    if exact is not None:
        # Of the fractions, so that 1/2 - 1/3 and 1/6 are one gap.
        positions = np.arange(len(values) - 1)
        gaps = exact.gaps[exact.classes[positions, positions + 1]]
    fractions = None
    if exact is not None:
        short = (short_fraction(value) for value in reversed(values.tolist()))
        fractions = tuple(fraction for fraction in short if fraction is not None)
    equal = not len(gaps) or bool(np.ptp(gaps) <= _NEAR)
    return Scale(
        universe=universe,
        listed=tuple(list_values(universe)) if universe.lists <= _FEW else (),
        values=tuple(reversed(values.tolist())),
        fractions=fractions,
        gaps=tuple(reversed(gaps.tolist())),
        equally_spaced=equal,
        violations=_violations(values) if len(values) <= _COMPARED else None,
    )


def _violations(values: NDArray[np.float64]) -> tuple[Violation, ...]:
    """Gaps that do not fit at one of the ends; the two ends suffice to find any."""
    if not len(values):
        return ()
    first, second = np.triu_indices(len(values), 1)
    sizes = np.round(values[second] - values[first], DECIMALS)
    gaps, at = np.unique(sizes, return_index=True)
    found = []
    for gap, pair in zip(gaps.tolist(), at.tolist(), strict=True):
        wanted = (float(values[0]) + gap, float(values[-1]) - gap)
        missing = [value for value in wanted if np.abs(values - value).min() > _NEAR]
        if missing:
            found.append(
                Violation(
                    low=float(values[first[pair]]),
                    high=float(values[second[pair]]),
                    gap=gap,
                    missing=tuple(sorted({round(value, DECIMALS) for value in missing})),
                )
            )
    return tuple(found)


_GRADE = re.compile(r"\s*(\d{1,3})\s*(?::\s*(\d{1,6})\s*)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalesOptions:
    """Options of `heldout analyse scales`."""

    length: Annotated[
        int | None,
        Opt(
            "Number of documents of each list [the measure's cutoff].",
            least=1,
            most=1000,
            metavar="N",
        ),
    ] = None
    grades: Annotated[
        str,
        Opt(
            "Grades above 0 with their numbers of documents [the length of the list].",
            metavar="G[:COUNT],...",
        ),
    ] = "1"


def _analyse(measure: str, options: ScalesOptions, _: Draws) -> Answer:
    parsed = read_own_measure(measure)
    length = options.length or parsed.cutoff
    if length is None:
        raise InputError.of(
            "no-scale", measure, "no cutoff", "lists of one length", "name the length: --length N"
        )
    scale = describe_scale(
        universe_of(parsed, length=length, judged=_read_grades(options.grades, length))
    )
    return Answer(
        answer=headline(scale),
        summary=summary(scale),
        tables=tables(scale),
        document=to_document(scale) | {"measure": str(parsed)},
        chart=lambda: chart(scale),
        title=title(scale),
    )


def _read_grades(text: str, length: int) -> dict[int, int]:
    counts: dict[int, int] = {}
    for part in text.split(","):
        match = _GRADE.fullmatch(part)
        if match is None or int(match[1]) == 0 or int(match[1]) in counts:
            raise InputError.of("scale-grades", "--grades", text)
        counts[int(match[1])] = length if match[2] is None else int(match[2])
    return counts


ANALYSIS = Analysis(
    name="scales",
    help="""Which values can a measure take, and are they an interval scale?

    \b
    Example:
      heldout analyse scales -m RR@3
      heldout analyse scales -m nDCG@5 --grades 1:4,2:2,3:1 --chart ndcg.svg
    """,
    source="measure",
    options=ScalesOptions,
    analyse=_analyse,
    chapter="Scale of",
    seeded=False,
    parallel=False,
)


_LISTS = 64
_DRAWN = 4096
_CIRCLES = 40


def headline(scale: Scale) -> str:
    """Return how many values the measure takes, and whether they are an interval scale."""
    return write("scales.headline", scale=scale)


def summary(scale: Scale) -> tuple[tuple[str, str], ...]:
    """Return which lists and values, and how far apart the values lie.

    Args:
        scale: what was found.
    """
    return write_facts("scales.summary", scale=scale, lists=_lists(scale))


def tables(scale: Scale, *, most: int = _LISTS) -> tuple[Table, ...]:
    """The values with their gaps, what breaks solvability, and the lists where they are few.

    Args:
        scale: what was found.
        most: rows of each table; a measure may take millions of values.
    """
    found = [_value_table(scale, most)]
    if scale.violations:
        found.append(_violation_table(scale.violations, most))
    if 0 < len(scale.listed) <= _LISTS:
        found.append(_list_table(scale, most))
    return tuple(found)


def title(scale: Scale) -> str:
    """Return what the picture shows."""
    return f"The {len(scale.values):,} values of {scale.universe.measure} on {_lists(scale)}"


def chart(scale: Scale) -> Plot:
    """Every value on a line: circles, or thin strokes where these would cover each other.

    Of very many values evenly chosen ones.
    """
    step = -(-len(scale.values) // _DRAWN)
    values = scale.values[::step]
    plot = Plot(x=score_axis(values), rows=[PlotRow(name="")], head=str(scale.universe.measure))
    plot.line([(plot.x.low, 0), (plot.x.high, 0)], MUTED, thin=True)
    spots = [(one, 0.0, f"{one:.4f}") for one in values]
    plot.dots(spots, "stroke" if len(values) > _CIRCLES else "circle")
    return plot


def _lists(scale: Scale) -> str:
    supply = scale.universe.supply
    length = scale.universe.length
    scarce = [f"{count} of grade {grade}" for grade, count in supply.items() if count < length]
    grades = ", ".join(str(grade) for grade in (0, *supply))
    lists = f"all lists of {length:,} documents of grades {grades}"
    return f"{lists}, at most {' and '.join(scarce)}" if scarce else lists


def _value_table(scale: Scale, most: int) -> Table:
    numbers = Counter(round(found, 12) for _, found in scale.listed)
    gaps: Sequence[float | None] = (*scale.gaps, None)
    rows: list[tuple[Cell, ...]] = []
    for position, found in enumerate(scale.values[:most]):
        exact = "" if scale.fractions is None else str(scale.fractions[position])
        rows.append((exact, found, gaps[position], numbers[round(found, 12)] or None))
    hidden = len(scale.values) - len(rows)
    return write_table("scales.values", tuple(rows), scale=scale, hidden=hidden)


def _violation_table(found: Sequence[Violation], most: int) -> Table:
    shown = found[:most]
    rows = tuple(
        (one.low, one.high, one.gap, ", ".join(f"{value:.4f}" for value in one.missing))
        for one in shown
    )
    return write_table("scales.violations", rows, found=len(found), shown=len(shown))


def _list_table(scale: Scale, most: int) -> Table:
    hidden = len(scale.listed) - len(scale.listed[:most])
    rows = tuple((" ".join(map(str, grades)), found) for grades, found in scale.listed[:most])
    return write_table("scales.each", rows, hidden=hidden)
