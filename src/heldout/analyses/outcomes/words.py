"""Outcomes of one pair of runs, or of two groups of seeds, as tables and JSON."""

from heldout.analyses.outcomes.curves import SuccessCurves
from heldout.analyses.outcomes.outcomes import JudgedPair, Outcomes, fits_labels
from heldout.analyses.outcomes.tests import FOUND, LINES, Line
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.stats.results import TestResult


def describe_ties(test: TestResult) -> str | None:
    """Return why p and interval contradict each other; `None` where they do not."""
    if test.test != "signed-rank" or test.p is None or test.low is None or test.high is None:
        return None
    alpha = 1 - test.level
    holds = test.low <= 0 <= test.high
    if (test.p <= alpha) != holds:
        return None
    return write("outcomes.ties", alpha=alpha, holds=holds)


_DEPTHS = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_CROSSED: dict[Line, str] = {
    "found_crossed_t": "case (2)",
    "esl_crossed_t": "ESL",
    "rr_crossed_t": "RR",
}


_INSTEAD = "name a measure, such as -m nDCG@10, to see which run is better"


def misfit_headline(result: Outcomes, *, several: int | None, instead: str = _INSTEAD) -> str:
    """That labels do not fit the verdict, and what to do; "" where they do.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
        instead: what to do.
    """
    if fits_labels(several, result.queries):
        return ""
    return write("outcomes.misfit", result=result, several=several, instead=instead)


def verdict_headline(result: Outcomes) -> str:
    """The verdict on the only pair."""
    return write("outcomes.verdict", judged=result.pairs[0], harm=result.rules.harm)


def verdict_summary(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """The verdict on outcomes, its reason and its p."""
    return write_facts("outcomes.verdict_summary", judged=result.pairs[0])


def fit_summary(result: Outcomes, *, several: int | None) -> tuple[tuple[str, str], ...]:
    """Return where the labels do not fit the verdict: that they do not.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
    """
    if fits_labels(several, result.queries):
        return ()
    return write_facts("outcomes.fit_summary", result=result, several=several)


def compared_summary(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """Return what was compared."""
    return write_facts("outcomes.compared", result=result, judged=result.pairs[0])


def tables(result: Outcomes, curves: SuccessCurves, *, several: int | None) -> tuple[Table, ...]:
    """Return who found it; how high where both did; how many at every depth.

    Args:
        result: of a single pair.
        curves: of the same.
        several: queries with several relevant documents; `None` where nobody knows.
    """
    (judged,) = result.pairs
    return (
        _found_table(judged, result, several),
        _rank_table(judged, result),
        _curve_table(curves),
    )


def _found_table(judged: JudgedPair, result: Outcomes, several: int | None) -> Table:
    line = next(line for line in FOUND if line in judged.tests)
    more = "as many"
    if judged.a_only != judged.b_only:
        more = "A more" if judged.a_only > judged.b_only else "B more"
    tested = (more, *_interval(judged.tests[line]), judged.corrected[line])
    counts = {
        "(1) by neither": judged.neither,
        "(2) by A alone": judged.a_only,
        "(2) by B alone": judged.b_only,
        "(3) by both": judged.both,
    }
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            *(name, _count(count), count / result.queries),
            *(tested if name == "(2) by B alone" else ("",) * len(tested)),
        )
        for name, count in counts.items()
    )
    return write_table(
        "outcomes.found",
        rows,
        result=result,
        judged=judged,
        test=judged.tests[line],
        several=several,
    )


def _interval(test: TestResult) -> tuple[float | None, ...]:
    """Return what the columns of a test hold, but for the corrected p."""
    return test.difference, test.low, test.high, test.p


def _count(count: float) -> Cell:
    return int(count) if float(count).is_integer() else count


def _rank_table(judged: JudgedPair, result: Outcomes) -> Table:
    tests = judged.tests
    lines = [line for line in (*LINES, *_CROSSED) if line in tests and line not in FOUND]
    crossed = {line: name for line, name in _CROSSED.items() if line in tests}
    freedom = {name: judged.tests[line].options.get("freedom") for line, name in crossed.items()}
    return write_table(
        "outcomes.ranks",
        tuple(_rank_row(judged, line) for line in lines),
        result=result,
        judged=judged,
        reasons=dict.fromkeys(why for line in lines if (why := tests[line].why)),
        ties=[(line, note) for line, test in tests.items() if (note := describe_ties(test))],
        freedom=", ".join(
            f"{one:.1f} of {name}" for name, one in freedom.items() if isinstance(one, float)
        ),
    )


def _rank_row(judged: JudgedPair, line: Line) -> tuple[Cell, ...]:
    length, test = line.startswith("esl"), judged.tests[line]
    means = judged.esl if length else judged.rr
    word = ""
    if means.a is not None and means.b is not None and means.a != means.b:
        word = "lower" if means.b < means.a else "higher"
    tested = (test.test, *_interval(test), judged.corrected[line])
    return ("ESL" if length else "RR", means.a, means.b, word, *tested)


def _curve_table(curves: SuccessCurves) -> Table:
    k = len(curves.success_a)
    depths = [depth for depth in _DEPTHS if depth < k] + [k]
    ends = [*zip(curves.success_a, curves.success_b, curves.low, curves.high, strict=True)]
    rows = tuple(
        (depth, a, b, b - a, low, high)
        for depth, (a, b, low, high) in ((depth, ends[depth - 1]) for depth in depths)
    )
    return write_table("outcomes.curves", rows, curves=curves)
