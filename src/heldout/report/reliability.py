"""The reliability of tests as tables, a picture and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from heldout.analyses.reliability import COLUMNS, FEWEST_SPLITS, Agreement, Reliability
from heldout.answers.table import UNDEFINED, Cell, Column, Table
from heldout.charts.boxes import LINK, RULE, draw_box
from heldout.charts.labels import Label
from heldout.charts.layers import (
    INK,
    MUTED,
    RECORD,
    Canvas,
    Frame,
    Layer,
    draw_line,
    draw_texts,
    join_layers,
)
from heldout.charts.ticks import Tick
from heldout.errors import plural
from heldout.measures.spec import parse_measure

__all__ = ["PUBLISHED", "facts", "spec", "tables", "title", "value"]

PUBLISHED: Mapping[str, float] = {
    "sign": 0.933,
    "rank_sum": 0.921,
    "signed_rank": 0.912,
    "t": 0.917,
    "sign_median": 0.802,
    "rank_sum_median": 0.812,
    "signed_rank_median": 0.807,
}
"""Share of agreement on the MS MARCO document board by RR (msmarco-benchmarking, table 4a)."""

_EQUAL = {
    "own": "Where neither system is better, that is a verdict that matches only itself.",
    "either": "Where neither system is better, that matches either verdict of the other half.",
}

_RANK_SUM = {
    "mann-whitney": "Mann-Whitney's, corrected for ties and continuity",
    "ranksums": "corrected neither for ties nor for continuity",
}

_ONLY_AGREEMENT = (
    "Published: Benchmarking Ranking Models in the Large-Data Regime, table 4a; other systems and "
    "queries. Only this row is compared, since the others cannot follow from the definitions in "
    "the text. Partial agreement depends on which half is significant, and so on the test, but "
    "is printed as the same for all. And halves of which one finds a system significantly better "
    "and the other its rival better, 5.3% of pairs by the t test, do not go with 80% of pairs "
    "significant and 3% of them in part."
)


def facts(result: Reliability) -> tuple[tuple[str, str], ...]:
    """The answer: by what systems should be compared."""
    return tuple((f"by {by}", _say(result, by)) for by in ("mean", "median"))


def _say(result: Reliability, by: str) -> str:
    found = [one for name, one in result.columns.items() if COLUMNS[name].by == by]
    agree = _span([one.agree for one in found], 1)
    told = f"halves agree in {agree} of pairs, whichever test is taken"
    equal = result.equal_means if by == "mean" else result.equal_medians
    if equal:
        told += f"; {by}s are equal in {equal:.1%} of comparisons"
    undefined = max(one.undefined for one in found)
    if undefined:
        told += f"; a test is undefined in up to {undefined:.1%}"
    return told


def _span(shares: Sequence[float], decimals: int) -> str:
    """From the smallest to the largest, once where they are written alike."""
    ends = [f"{share:.{decimals}%}" for share in (min(shares), max(shares))]
    return " to ".join(dict.fromkeys(ends))


def tables(result: Reliability, *, measure: str = "") -> tuple[Table, ...]:
    """The shares of every test; of RR also beside those of the paper.

    Args:
        result: how often halves agree.
        measure: what was measured, "" where nobody knows.
    """
    published = bool(measure) and parse_measure(measure).name == "RR"
    return (_shares(result), _beside_paper(result)) if published else (_shares(result),)


def value(result: Reliability) -> dict[str, Any]:
    """For JSON."""
    return {
        "systems": result.systems,
        "queries": result.queries,
        "splits": result.splits,
        "pairs": result.pairs,
        **(
            {}
            if result.splits >= FEWEST_SPLITS
            else {"why_no_ends": f"fewer than {FEWEST_SPLITS} splits"}
        ),
        "tests": {name: asdict(found) for name, found in result.columns.items()},
        "equal_means": result.equal_means,
        "equal_medians": result.equal_medians,
        "correlation": result.correlation,
        **({} if result.correlation is not None else {"why": "no two systems' scores vary"}),
        "alpha": result.alpha,
        "equal": result.equal,
        "options": asdict(result.options) | {"signed_rank": "approximate"},
        "digest": result.digest,
    }


def title(result: Reliability) -> str:
    """What the picture shows."""
    means = [found.agree for name, found in result.columns.items() if COLUMNS[name].by == "mean"]
    return (
        f"How often two halves of {plural(result.queries, 'query', 'queries')} "
        "agree on which of two systems is "
        f"better, for seven tests: by the mean in {_span(means, 0)} of pairs"
    )


def _shares(result: Reliability) -> Table:
    columns = (
        Column(name="test"),
        Column(name="better by"),
        Column(name="agree", form="share"),
        Column(name="of 95% of splits"),
        Column(name="partly", form="share"),
        Column(name="disagree", form="share"),
        Column(name="significant", form="share"),
    )
    return Table(
        title="How often two halves of the queries agree, as shares of pairs",
        columns=columns,
        rows=tuple(_row(name, found) for name, found in result.columns.items()),
        notes=_notes(result),
    )


def _row(name: str, found: Agreement) -> tuple[Cell, ...]:
    column = COLUMNS[name]
    return (
        column.test,
        column.by,
        found.agree,
        UNDEFINED
        if found.agree_low is None
        else f"{found.agree_low:.3f} to {found.agree_high:.3f}",
        found.partly,
        found.disagree,
        found.significant,
    )


def _ends(found: Agreement) -> str:
    if found.agree_low is None or found.agree_high is None:
        return UNDEFINED
    return f"{found.agree_low:.3f} to {found.agree_high:.3f}"


def _notes(result: Reliability) -> tuple[str, ...]:
    undefined = max(found.undefined for found in result.columns.values())
    missing = (
        f"Up to {undefined:.2%} of a test's comparisons have no p-value, as all scores or "
        "differences are the same; they count as not significant."
    )
    notes = (
        (
            "Agree: the same system is better in both halves, and both or neither are "
            "significant. Partly: the same one is better and one half is significant, or "
            "different ones are and neither is. Significant: in at least one half."
        ),
        (
            f"{plural(result.splits, 'random split')} of "
            f"{plural(result.queries, 'query', 'queries')}, "
            f"{plural(result.pairs, 'pair')} of systems; significant is p <= {result.alpha:g} in a "
            "half, two-sided, not corrected for many pairs, as in the paper."
        ),
        (
            f"{_EQUAL[result.equal]} Means were equal in {result.equal_means:.1%} of comparisons, "
            f"medians in {result.equal_medians:.1%}."
        ),
        *_tell_options(result),
        (
            "The splits share their queries: where 95% of them lie tells how much one split says, "
            "and is no confidence interval."
            if result.splits >= FEWEST_SPLITS
            else f"Where 95% of the splits lie is undefined with fewer than {FEWEST_SPLITS}."
        ),
    )
    return (*notes, missing) if undefined else notes


def _tell_options(result: Reliability) -> tuple[str, ...]:
    options = result.options
    continuity = "with" if options.continuity else "without"
    here = "" if result.correlation is None else f" (here r = {result.correlation:.2f} on average)"
    notes = (
        (
            f"Rank-sum: {_RANK_SUM[options.rank_sum]}. It takes runs as independent; where they "
            f"agree on what is hard{here} it is conservative: too little is significant."
        ),
        (
            f"Signed-rank: differences of 0 by {options.zeros}, normal approximation {continuity} "
            "continuity correction, however few queries a half has. Sign: exact binomial."
        ),
    )
    tolerance = f"Differences up to {options.sign_tolerance:g} are ties for the sign test."
    return (*notes, tolerance) if options.sign_tolerance else notes


def _beside_paper(result: Reliability) -> Table:
    return Table(
        title="Agreement beside that on the MS MARCO document board, RR",
        columns=(
            Column(name="test"),
            Column(name="better by"),
            Column(name="agree", form="share", decimals=3),
            Column(name="published", form="share", decimals=3),
        ),
        rows=tuple(
            (COLUMNS[name].test, COLUMNS[name].by, found.agree, PUBLISHED[name])
            for name, found in result.columns.items()
        ),
        notes=(_ONLY_AGREEMENT,),
    )


_ROW = 34
_WIDTH = 460
_BAR = 0.34
_KEY = (("agree", LINK), ("partly", RULE), ("disagree", RECORD), ("| significant", INK))


def spec(result: Reliability) -> dict[str, Any]:
    """A bar for every test, in parts of agreement; a mark where the significant share ends."""
    rows = len(result.columns)
    canvas = Canvas(width=_WIDTH, height=_ROW * rows, left=170, right=24, top=36, bottom=32)
    frame = Frame(
        canvas=canvas,
        x=(0.0, 1.0),
        y=(0.0, float(rows)),
        x_ticks=tuple(Tick(at=share / 4, label=f"{share * 25}%") for share in range(5)),
        y_ticks=(),
    )
    layers: list[Layer] = []
    labels: list[Label] = []
    for place, (name, found) in enumerate(result.columns.items()):
        middle = rows - place - 0.5
        layers += _bar(found, middle, name, frame)
        column = COLUMNS[name]
        labels.append(
            Label(
                x=-10,
                y=frame.place(0, middle)[1],
                text=f"{column.test}, by {column.by}",
                align="right",
            )
        )
    layers += draw_texts(labels, INK)
    for number, (word, colour) in enumerate(_KEY):
        label = Label(x=number * 110, y=-18, text=word, align="left")
        layers += draw_texts([label], MUTED if colour == RULE else colour)
    return join_layers(frame, layers)


def _bar(found: Agreement, middle: float, name: str, frame: Frame) -> list[Layer]:
    parts = (("agree", found.agree), ("partly", found.partly), ("disagree", found.disagree))
    layers, start = [], 0.0
    for (word, share), (_, colour) in zip(parts, _KEY[:3], strict=True):
        corners = (start, middle - _BAR, start + share, middle + _BAR)
        layers.append(draw_box(corners, frame, colour, f"{name}: {word} {share:.1%}"))
        start += share
    at = found.significant
    layers.append(draw_line([(at, middle - _BAR * 1.3), (at, middle + _BAR * 1.3)], frame, INK))
    return layers
