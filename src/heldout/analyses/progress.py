"""How a board's best score rose, and which of its steps are more than luck.

The organisers' baselines stand first, whatever their dates; the line of best-so-far begins with
the first entry above the best of them. Each entry on the line is compared with the first one, with
the one it displaced, and the three best of today with each other. Whether a step was significant
when it came is asked of what had come by then, and of nothing later.

Sources: Lin et al. 2021, §3 and Table 1; Craswell et al. 2021, Figure 1;
Lin et al. 2022, Figure 2.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from heldout.analyses import analysis
from heldout.analyses.entries import BoardEntry, BoardScores, Dated, ViewScores
from heldout.answers import texts
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.charts.plot import Plot
from heldout.charts.scores import ChartEntry, progress_chart
from heldout.charts.svg import cut
from heldout.errors import InputError, plural
from heldout.ids import Digest
from heldout.options import Opt
from heldout.scoring.table import Better
from heldout.stats.results import TestResult, holm
from heldout.stats.tests import run_test

Decide = Literal["t", "signed-rank", "rank-sum"]
TESTS: tuple[Decide, ...] = ("rank-sum", "signed-rank", "t")
"""The tests of the paper's Table 1, in its order."""

Kind = Literal["first", "displaced", "top"]
"""`first`: against the first on the line. `displaced`: against the best before it. `top`: two of
the three best of today."""

_TOP = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BestStep:
    """An entry on the line of best-so-far.

    Attributes:
        entry: what came.
        score: its mean.
        displaced: id of the best before it, of the best baseline for the first; `None` where
            there was nothing before.
        gain: its score less that of the displaced one; `None` likewise.
        p: of the test declared, against the displaced one; `None` where undefined.
        p_then: corrected over all submissions up to its own; `None` where undefined.
        family_then: how many submissions that were, each against the best before it.
        why: the reason where p is undefined, else "".
    """

    entry: BoardEntry
    score: float
    displaced: str | None
    gain: float | None
    p: float | None
    p_then: float | None
    family_then: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryComparison:
    """Two entries under the three tests; the difference is B - A.

    Attributes:
        a, b: their ids.
        kinds: why they are compared.
        difference: of the means.
        low, high: interval of the difference of means, by t; `None` where undefined.
        p: test -> p before correction; `None` where undefined.
        p_corrected: of the test declared, over the family of these comparisons.
        why: the reason where the declared test's p is undefined, else "".
    """

    a: str
    b: str
    kinds: tuple[Kind, ...]
    difference: float
    low: float | None
    high: float | None
    p: Mapping[Decide, float | None]
    p_corrected: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardProgress:
    """A board's progress on a view.

    Attributes:
        board, view, measure: what was looked at.
        better: which end of the measure is good.
        entries: every scored entry in the order it came, baselines too.
        scores: mean by id.
        line: the line of best-so-far.
        top: ids of the best three of today, the best first.
        comparisons: the family; empty where only means are known.
        decide: the test declared; its alternative is two-sided.
        bar: whether the line has to be above the best baseline.
        level: of the intervals.
        queries: how many; 0 where only means are known.
        digest: of the scores by query; `None` where only means are known.
    """

    board: str
    view: str
    measure: str
    better: Better
    entries: tuple[BoardEntry, ...]
    scores: Mapping[str, float]
    line: tuple[BestStep, ...]
    top: tuple[str, ...]
    comparisons: tuple[EntryComparison, ...]
    decide: Decide
    bar: bool
    level: float
    queries: int
    digest: Digest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrival:
    """An entry and the best before it."""

    entry: BoardEntry
    before: str | None
    above: bool


def trace_progress(
    board: BoardScores,
    view: ViewScores,
    *,
    decide: Decide = "t",
    bar: bool = True,
    level: float = 0.95,
) -> BoardProgress:
    """The line of best-so-far with its tests.

    Args:
        board: its entries; a tie does not displace.
        view: the scores.
        decide: the one test that the corrections are over, declared beforehand.
        bar: whether the best baseline stands before all entries.
        level: of the intervals, in (0, 1).

    Raises:
        InputError: `no-entries`: nothing but baselines is scored; `missing-scores`.
    """
    entries = board.scored(view)
    if all(entry.baseline for entry in entries):
        raise InputError.of(
            "no-entries", f"view {view.view}", f"{len(entries)} baselines and nothing else"
        )
    table = view.rows(entries)
    rows = {} if table is None else {e.id: row for e, row in zip(entries, table, strict=True)}
    arrivals = _arrive(entries, view, bar=bar)
    ranked = [e for e in entries if not e.baseline]
    ranked.sort(key=lambda entry: -view.signed(view.means[entry.id]))
    top = tuple(entry.id for entry in ranked[:_TOP])
    return BoardProgress(
        board=board.board,
        view=view.view,
        measure=view.measure,
        better=view.better,
        entries=entries,
        scores=MappingProxyType({entry.id: view.means[entry.id] for entry in entries}),
        line=tuple(_steps(arrivals, view, rows, decide)),
        top=top,
        comparisons=_compare(arrivals, top, rows, decide, level) if rows else (),
        decide=decide,
        bar=bar,
        level=level,
        queries=0 if view.table is None else len(view.table.queries),
        digest=None if view.table is None else view.table.digest,
    )


def _arrive(entries: Sequence[BoardEntry], view: ViewScores, *, bar: bool) -> tuple[_Arrival, ...]:
    """Every submission with the best before it; means are compared after rounding to 1e-12."""
    scores = {e.id: round(view.signed(view.means[e.id]), 12) for e in entries}
    baselines = [entry.id for entry in entries if entry.baseline]
    best = max(baselines, key=scores.__getitem__, default=None) if bar else None
    arrivals = []
    for entry in (entry for entry in entries if not entry.baseline):
        above = best is None or scores[entry.id] > scores[best]
        arrivals.append(_Arrival(entry=entry, before=best, above=above))
        best = entry.id if above else best
    return tuple(arrivals)


def _steps(
    arrivals: Sequence[_Arrival],
    view: ViewScores,
    rows: Mapping[str, NDArray[np.float64]],
    decide: Decide,
) -> Iterator[BestStep]:
    found: list[TestResult | None] = []
    for arrival in arrivals:
        name, before = arrival.entry.id, arrival.before
        if before is not None:
            found.append(run_test(decide, rows[before], rows[name]) if rows else None)
        if not arrival.above:
            continue
        latest = found[-1] if before is not None else None
        corrected = holm([None if one is None else one.p for one in found])
        yield BestStep(
            entry=arrival.entry,
            score=view.means[name],
            displaced=before,
            gain=None if before is None else view.means[name] - view.means[before],
            p=None if latest is None else latest.p,
            p_then=None if latest is None else corrected[-1],
            family_then=len(found),
            why=_say_why(before, latest),
        )


def _say_why(before: str | None, found: TestResult | None) -> str:
    if before is None:
        return "nothing came before it"
    if found is None:
        return "means alone are known"
    return found.why or ""


def _compare(
    arrivals: Sequence[_Arrival],
    top: Sequence[str],
    rows: Mapping[str, NDArray[np.float64]],
    decide: Decide,
    level: float,
) -> tuple[EntryComparison, ...]:
    pairs: dict[tuple[str, str], list[Kind]] = {}
    line = [arrival for arrival in arrivals if arrival.above]
    for step in line[1:]:
        pairs.setdefault((line[0].entry.id, step.entry.id), []).append("first")
    for step in line:
        if step.before is not None:
            pairs.setdefault((step.before, step.entry.id), []).append("displaced")
    for better, worse in combinations(top, 2):
        pairs.setdefault((worse, better), []).append("top")
    results = {pair: _test(rows[pair[0]], rows[pair[1]], level) for pair in pairs}
    corrected = holm([result[decide].p for result in results.values()])
    return tuple(
        EntryComparison(
            a=pair[0],
            b=pair[1],
            kinds=tuple(pairs[pair]),
            difference=float(np.mean(rows[pair[1]] - rows[pair[0]])),
            low=result["t"].low,
            high=result["t"].high,
            p=MappingProxyType({name: one.p for name, one in result.items()}),
            p_corrected=p,
            why=result[decide].why or "",
        )
        for (pair, result), p in zip(results.items(), corrected, strict=True)
    )


def _test(
    a: NDArray[np.float64], b: NDArray[np.float64], level: float
) -> Mapping[Decide, TestResult]:
    return {name: run_test(name, a, b, level=level) for name in TESTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressOptions:
    """Options of `heldout analyse progress`."""

    decide: Annotated[Decide, Opt("Test whose p-values are corrected.")] = "t"
    bar: Annotated[bool, Opt("Best baseline placed before all entries, or by its date.")] = True
    find: Annotated[
        str,
        Opt(
            "Text of descriptions whose entries the picture marks.",
            names=("--filter",),
            metavar="TEXT",
        ),
    ] = ""


def _analyse(given: Dated, options: ProgressOptions, _: analysis.Draws) -> Answer:
    (view,) = given.views
    result = trace_progress(given.board, view, decide=options.decide, bar=options.bar)
    facts = [*given.facts]
    if options.find:
        wanted = options.find.casefold()
        matching = sum(wanted in entry.description.casefold() for entry in result.entries)
        facts.append(("filter", f"{plural(matching, 'entry', 'entries')} with “{options.find}”"))
    return Answer(
        answer=headline(result),
        summary=facts,
        tables=tables(result),
        document=to_document(result) | given.document,
        chart=lambda: chart(result, find=options.find),
        title=title(result),
    )


def headline(result: BoardProgress) -> str:
    """Say how far the best score came, in how many steps, how many of them significant."""
    alpha = 1 - result.level
    beyond = sum(step.p_then is not None and step.p_then < alpha for step in result.line)
    return texts.write("progress.headline", result=result, beyond=beyond)


ANALYSIS = analysis.Analysis(
    name="progress",
    help="""How did the best score rise, and which steps are more than luck?

    \b
    Example:
      heldout analyse progress --board kb --vault ../kb-vault --filter BERT --chart progress.svg
    """,
    source="dates",
    options=ProgressOptions,
    analyse=_analyse,
    chapter="Progress",
    seeded=False,
    parallel=False,
)


_NAME = 44
_ALPHA = 0.05


def tables(result: BoardProgress) -> tuple[Table, ...]:
    """Tabulate the line of best-so-far and, where there are scores by query, the comparisons."""
    line = _line_table(result)
    return (line, _comparison_table(result)) if result.comparisons else (line,)


def title(result: BoardProgress) -> str:
    """Return what the picture shows."""
    return f"{result.board}: {result.view} {result.measure} over time, with the best so far"


def chart(result: BoardProgress, *, find: str = "") -> Plot:
    """Score over date with the stepped line of the best so far.

    Args:
        result: what to draw.
        find: text of descriptions to show apart, upper and lower case alike; "" for none.
    """
    steps = {step.entry.id: step for step in result.line}
    starred = {one for one, step in steps.items() if _is_significant(step.p_then)}
    entries = [
        ChartEntry(
            label=("★ " if entry.id in starred else "") + entry.name,
            day=entry.day,
            score=result.scores[entry.id],
            record=entry.id in steps,
            baseline=entry.baseline,
            match=bool(find) and find.casefold() in entry.description.casefold(),
        )
        for entry in result.entries
    ]
    until = max(entry.day for entry in result.entries)
    plot = progress_chart(entries, until=until, head=f"{result.view} {result.measure}")
    plot.key("diamond", "best so far")
    plot.key("circle", "other entry")
    if find:
        plot.key("match", f"blue: with “{cut(find, 24)}”")
    if starred:
        plot.key("★", "significant when it came")
    return plot


def _is_significant(p: float | None) -> bool:
    return p is not None and p < _ALPHA


def _line_table(result: BoardProgress) -> Table:
    tested = bool(result.comparisons)
    names = _names(result)
    rows: list[tuple[Cell, ...]] = []
    for step in result.line:
        named = (names[step.entry.id], step.entry.day.isoformat(), cut(step.entry.name, _NAME))
        p = (step.p, step.p_then, step.family_then) if tested else ()
        rows.append((*named, step.score, step.gain, *p))
    whys = [f"{names[step.entry.id]}: {step.why}" for step in result.line if step.why]
    return texts.write_table(
        "progress.line", tuple(rows), first=range(len(rows))[::-1], result=result, undefined=whys
    )


def _names(result: BoardProgress) -> Mapping[str, str]:
    """R1, R2 and so on for the line, as the paper has it, and ids for others."""
    line = {step.entry.id: f"R{n}" for n, step in enumerate(result.line, 1)}
    return {entry.id: entry.id for entry in result.entries} | line


def _comparison_table(result: BoardProgress) -> Table:
    names = _names(result)
    ps = [2.0 if one.p_corrected is None else one.p_corrected for one in result.comparisons]
    return texts.write_table(
        "progress.comparisons",
        tuple(_comparison_row(one, names) for one in result.comparisons),
        first=sorted(range(len(ps)), key=ps.__getitem__),
        result=result,
        tests=TESTS,
    )


def _comparison_row(one: EntryComparison, names: Mapping[str, str]) -> tuple[Cell, ...]:
    named = (cut(names[one.a], _NAME), cut(names[one.b], _NAME))
    tested = (*(one.p[name] for name in TESTS), one.p_corrected)
    return (*named, one.difference, one.low, one.high, *tested)
