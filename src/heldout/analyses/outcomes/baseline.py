"""Every run against one, by the means of measures: what most papers print."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heldout.analyses.outcomes.options import Correction
from heldout.analyses.outcomes.outcomes import correct
from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Table
from heldout.answers.texts import write_table
from heldout.errors import InputError, plural, quote
from heldout.scoring.sources import Scores
from heldout.stats import exact, results, tests


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A run against the baseline, by one measure.

    Attributes:
        measure: its name.
        run: the run's name.
        baseline: mean of the baseline, over all queries.
        mean: that of the run.
        wins: queries on which the run is better.
        losses: queries on which the baseline is; on all others they are equal, to 1e-12.
        test: paired t, of run - baseline.
        corrected: its p, corrected over the runs; `None` where undefined.
        better: "run" or "baseline" where it is significant by `corrected`, else "".
    """

    measure: str
    run: str
    baseline: float
    mean: float
    wins: int
    losses: int
    test: results.TestResult
    corrected: float | None = None
    better: str = ""


def compare_with_baseline(
    measured: Sequence[Scores],
    baseline: str,
    *,
    correction: Correction = "holm",
    alpha: float = 0.05,
    level: float = 0.95,
) -> Answer:
    """Paired t tests of every run against one; each measure is a family of its own.

    Args:
        measured: scores of the same runs by each measure, complete.
        baseline: the name of one run.
        correction: of p over the other runs.
        alpha: significance level, in (0, 1).
        level: of each interval alone, in (0, 1); those of many runs hold together less often.

    Raises:
        InputError: code `baseline-run`: there is no such run, or no other.
    """
    systems = measured[0].table.systems
    if baseline not in systems or len(systems) == 1:
        named = ", ".join(name_one(one) for one in systems)
        raise InputError.of("baseline-run", "baseline", quote(baseline), named=named)
    found = tuple(
        row
        for one in measured
        for row in _family(one, baseline, correction=correction, alpha=alpha, level=level)
    )
    summary = (("baseline", baseline), ("queries", f"{len(measured[0].table.queries):,}"))
    table = _table(found, correction=correction, runs=len(systems) - 1, level=level)
    document = {
        "baseline": baseline,
        "correction": correction,
        "alpha": alpha,
        "level": level,
        "rows": [to_document(one) for one in found],
    }
    return Answer(answer=_say(found, baseline), summary=summary, tables=(table,), document=document)


def _family(
    one: Scores, baseline: str, *, correction: Correction, alpha: float, level: float
) -> list[Against]:
    table = one.table
    first = table.values[table.systems.index(baseline)]
    rows = []
    for run, scores in zip(table.systems, table.values, strict=True):
        if run == baseline:
            continue
        gain = exact.differences(first, scores) * (-1 if one.better == "lower" else 1)
        rows.append(
            Against(
                measure=one.measure,
                run=run,
                baseline=math.fsum(first.tolist()) / len(first),
                mean=math.fsum(scores.tolist()) / len(scores),
                wins=int((gain > 0).sum()),
                losses=int((gain < 0).sum()),
                test=tests.run_test("t", first, scores, level=level),
            )
        )
    corrected = correct([row.test.p for row in rows], correction)
    return [
        replace(row, corrected=p, better=_better(row, one, p, alpha))
        for row, p in zip(rows, corrected, strict=True)
    ]


def _better(row: Against, one: Scores, p: float | None, alpha: float) -> str:
    if p is None or p > alpha or not row.test.difference:
        return ""
    return "run" if (row.test.difference > 0) == (one.better == "higher") else "baseline"


def _say(found: Sequence[Against], baseline: str) -> str:
    runs = {"run": set[str](), "baseline": set[str]()}
    for row in found:
        if row.better:
            runs[row.better].add(row.run)
    of = len({row.run for row in found})
    measures = " on some measure" if len({row.measure for row in found}) > 1 else ""
    better, worse = len(runs["run"]), len(runs["baseline"])
    return (
        f"{better} of {plural(of, 'run')} {'is' if better == 1 else 'are'} significantly better "
        f"than {name_one(baseline)}{measures}, {worse} {'is' if worse == 1 else 'are'} worse."
    )


def _table(found: Sequence[Against], *, correction: Correction, runs: int, level: float) -> Table:
    rows = tuple(
        (
            *(row.measure, row.run, row.baseline, row.mean),
            *(row.test.difference, row.test.low, row.test.high),
            *(row.test.p, row.corrected, row.wins, row.losses, row.better),
        )
        for row in found
    )
    reasons = dict.fromkeys(row.test.why for row in found if row.test.why)
    return write_table(
        "outcomes.baseline", rows, correction=correction, runs=runs, level=level, reasons=reasons
    )
