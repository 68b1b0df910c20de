"""Scores of runs as other programs take them: trec_eval's lines, rows of a table.

Runs are sorted here, and the notes on many files become one of each kind.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from heldout.errors import InputError, Problem
from heldout.files.csv import defuse
from heldout.scoring.measures import Measure
from heldout.scoring.names import Asked
from heldout.scoring.score import Scored, in_order

_NAME = 22
"""Columns that trec_eval gives a measure's name."""

Cell = str | float | None


def trec_lines(
    scored: Sequence[Scored], asked: Sequence[Asked], labels: Sequence[str], *, tags: bool
) -> Iterator[str]:
    """Yield what `trec_eval -q` prints: the scores of each query, then those of all.

    Args:
        scored: the runs.
        asked: the measures, by the names that they were asked for.
        labels: names of the runs, same length.
        tags: whether the lines of all queries begin with the run's name (`runid`).

    Yields:
        `name<TAB>query<TAB>score`, the name filled up to 22 columns; runs one after the other. What
        trec_eval has for all queries alone (num_q and geometric means) has no line for a query, nor
        has a score that is undefined.
    """
    for run, label in zip(scored, labels, strict=True):
        for query, row in in_order(run.evaluation).items():
            for one in asked:
                if one.measure.kind.aggregate != "geometric mean" and one.measure.name != "NumQ":
                    yield from _line(one, query, row[one.measure])
        if tags:
            yield f"{'runid':<{_NAME}}\tall\t{label}"
        for one in asked:
            yield from _line(one, "all", run.evaluation.scores[one.measure].mean)


def _line(asked: Asked, query: str, value: float | None) -> Iterator[str]:
    if value is not None:
        count = asked.measure.kind.aggregate == "sum"
        text = f"{value:.0f}" if count else f"{value:6.4f}"
        yield f"{asked.name:<{_NAME}}\t{query}\t{text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRows:
    """Scores as a table.

    Attributes:
        columns: `run`, perhaps `query`, then the measures.
        rows: one for each run, or for each run and query; `None` where a score is undefined.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def as_columns(self) -> dict[str, list[Cell]]:
        """The same, a list for each column."""
        return {name: [row[at] for row in self.rows] for at, name in enumerate(self.columns)}


def score_rows(
    scored: Sequence[Scored], measures: Sequence[Measure], labels: Sequence[str], *, per_query: bool
) -> ScoreRows:
    """The scores of runs, in full precision.

    Args:
        scored: the runs.
        measures: the columns.
        labels: names of the runs, same length.
        per_query: whether each query has a row, and not each run.
    """
    names = tuple(map(str, measures))
    rows: list[tuple[Cell, ...]] = []
    for run, label in zip(scored, labels, strict=True):
        if not per_query:
            rows.append((label, *(run.evaluation.scores[one].mean for one in measures)))
            continue
        for query, row in in_order(run.evaluation).items():
            rows.append((label, query, *(row[one] for one in measures)))
    return ScoreRows(columns=("run", *(("query",) if per_query else ()), *names), rows=tuple(rows))


def to_csv(table: ScoreRows) -> str:
    """The table as CSV with a heading; an undefined score is an empty field.

    No name starts a formula; `parse_scores` reads each as it was.
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([defuse(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()


def check_sort(measure: Measure, measures: Sequence[Measure]) -> None:
    """Refuse to sort by what is not computed.

    Args:
        measure: what to sort by.
        measures: what runs are scored by.

    Raises:
        InputError: code `sort-measure`.
    """
    if measure not in measures:
        computed = ", ".join(map(str, measures))
        raise InputError.of("sort-measure", "--sort", measure=measure, computed=computed)


def sort_runs(scored: Sequence[Scored], measure: Measure) -> list[Scored]:
    """The runs by one of their measures, the best first; those without a score last.

    Args:
        scored: the runs.
        measure: what to sort by, one of theirs.
    """

    def key(run: Scored) -> tuple[bool, float]:
        mean = run.evaluation.scores[measure].mean
        sign = -1 if measure.kind.better == "higher" else 1
        return mean is None, sign * (mean or 0.0)

    return sorted(scored, key=key)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedNote:
    """A kind of note that several runs may have.

    Attributes:
        code: of the note.
        runs: names of the runs.
        meaning: what follows from it, or what was expected; "" where that differs between runs.
    """

    code: str
    runs: tuple[str, ...]
    meaning: str


def fold_notes(scored: Sequence[Scored], labels: Sequence[str]) -> tuple[FoldedNote, ...]:
    """One note of each code, and the runs that have it; the most frequent first."""
    runs: dict[str, list[str]] = {}
    notes: dict[str, list[Problem]] = {}
    for run, label in zip(scored, labels, strict=True):
        for note in run.notes:
            notes.setdefault(note.code, []).append(note)
            names = runs.setdefault(note.code, [])
            if label not in names[-1:]:
                names.append(label)
    folded = [
        FoldedNote(code=code, runs=tuple(runs[code]), meaning=_meaning(alike))
        for code, alike in notes.items()
    ]
    return tuple(sorted(folded, key=lambda note: -len(note.runs)))


def _meaning(notes: Sequence[Problem]) -> str:
    """The hint that all have, else what is expected of them all."""
    hints, expected = {one.hint for one in notes}, {one.expected for one in notes}
    if len(hints) == 1 and "" not in hints:
        return notes[0].hint
    return f"expected {notes[0].expected}" if len(expected) == 1 else ""
