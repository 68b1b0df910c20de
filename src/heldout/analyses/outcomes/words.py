"""Outcomes of one pair of runs, or of two groups of seeds, as tables and JSON."""

from collections.abc import Mapping
from typing import Any

from heldout.analyses.outcomes.curves import SuccessCurves
from heldout.analyses.outcomes.outcomes import Outcomes, fits_labels
from heldout.analyses.outcomes.tests import FOUND, LINES, Line
from heldout.analyses.outcomes.verdicts import Judged, Verdict
from heldout.answers.table import Cell, Column, Table, format_p
from heldout.errors import plural
from heldout.stats.results import TestResult

# What reports of outcomes say of their family, correction and rules, and where tests are odd.

_CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "none": "no correction"}


def tell_family(result: Outcomes) -> tuple[str, ...]:
    """Which hypotheses form the family of the corrected p-values."""
    rules, pairs = result.rules, len(result.pairs)
    many = "1 pair" if pairs == 1 else f"{pairs:,} pairs"
    test = result.pairs[0].declared.removeprefix(f"{rules.by}_").replace("_", " ")
    case_2 = "crossed t" if result.pairs[0].pair.grouped else "exact binomial"
    return (
        (
            f"corrected: {_CORRECTIONS[rules.correction]} over {result.hypotheses:,} hypotheses, "
            f"{many} × 2 outcomes: (2) by {case_2}, (3) by {test} on {rules.by.upper()}, as "
            "declared; a test that was not declared is corrected as if it had been"
        ),
    )


def tell_p(verdict: Verdict) -> str:
    """The p by which each rule is decided, which is none of those of the tables."""
    strict = f"strict test: p {format_p(verdict.p_strict)}, the largest p that it needs"
    if verdict.p_strict is None:
        strict = "strict test: not applicable (its tests favour different runs, or one has no p)"
    if verdict.p_no_harm is None:
        return f"{strict}; no-harm test: not applicable"
    harm = format_p(verdict.p_no_harm)
    return f"{strict}; no-harm test: p {harm}, twice the smaller p of its two ways"


def tell_ties(test: TestResult) -> str | None:
    """Why p and interval contradict each other; `None` where they do not."""
    if test.test != "signed-rank" or test.p is None or test.low is None or test.high is None:
        return None
    alpha = 1 - test.level
    holds = test.low <= 0 <= test.high
    if (test.p <= alpha) != holds:
        return None
    below, has = ("at most", "holds") if holds else ("above", "excludes")
    return (
        f"p is {below} {alpha:.2g} and yet the interval {has} 0: p counts equal differences as "
        "tied, the interval as if no two were equal"
    )


def tell_rules(result: Outcomes) -> tuple[str, ...]:
    """What the verdicts ask for."""
    rules, pairs = result.rules, len(result.pairs)
    better = "a lower ESL" if rules.by == "esl" else "a higher RR"
    over = (
        "" if pairs == 1 else f", corrected over {pairs:,} pairs ({_CORRECTIONS[rules.correction]})"
    )
    by = ("crossed t", "crossed t") if result.pairs[0].pair.grouped else ("score test", "t")
    guarded = rules.by == "esl" and rules.harm == "margin"
    guard = (
        f"; the mean ESL not higher by {rules.margins.esl:g} or more ({by[1]}, and no rare harm)"
        if guarded
        else ""
    )
    strict = (
        f"strict: more of (2) and {better} in (3){guard}; {'all' if guarded else 'both'} at α "
        f"{rules.alpha:g} (intersection-union: the largest p decides, not the column corrected)"
        f"{over}"
    )
    if rules.by == "rr":
        return (strict, "do no harm is defined by ESL and not asked with RR")
    if rules.harm == "plain":
        return (
            strict,
            (
                "do no harm, the paper's plain rule: one outcome significantly better, the other "
                "not significantly worse; that is no evidence that there is no harm"
            ),
        )
    return (
        strict,
        (
            f"do no harm: one outcome better and the other not worse by a margin, α "
            f"{rules.alpha / 2:g} for each way{over}; margins: found {rules.margins.found:g} of "
            f"the queries ({by[0]}), mean ESL {rules.margins.esl:g} ({by[1]}, on so many queries "
            "that rare harm would have been seen)"
        ),
    )


def declare(result: Outcomes) -> dict[str, Any]:
    """The rules for JSON."""
    rules, declared = result.rules, result.pairs[0]
    return {
        "correction": rules.correction,
        "family": {
            "size": result.hypotheses,
            "pairs": len(result.pairs),
            "outcomes": 2,
            "tests": [next(iter(declared.pair.tests)), declared.declared],
        },
        "alpha": rules.alpha,
        "decide": rules.decide,
        "by": rules.by,
        "harm": rules.harm,
        "margins": {"found": rules.margins.found, "esl": rules.margins.esl},
        "level": result.level,
    }


_GROUPED = "groups of seeds are compared across seeds: see the lines that end in crossed_t"
_INSTEAD = "name the measure that you care about: -m nDCG@10"
_DEPTHS = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_CROSSED: tuple[Line, ...] = ("found_crossed_t", "esl_crossed_t", "rr_crossed_t")
_TEST = (
    Column(name="B - A", form="difference"),
    Column(name="low", form="difference"),
    Column(name="high", form="difference"),
    Column(name="p", form="p"),
    Column(name="corrected", form="p"),
)
_OUTCOMES: Mapping[Line, str] = {
    "found_crossed_t": "case (2)",
    "esl_crossed_t": "ESL",
    "rr_crossed_t": "RR",
}


def verdict_facts(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """The verdict on outcomes, its reason and its p."""
    (judged,) = result.pairs
    pair, verdict = judged.pair, judged.verdict
    if verdict.better:
        winner = pair.a if verdict.better == "A" else pair.b
        said = f"{verdict.better} is better, {verdict.word}: {winner.name}"
    else:
        said = "none"
    return (("verdict", said), ("", verdict.why), ("p", tell_p(verdict)))


def fit_facts(
    result: Outcomes, *, several: int | None, asked: bool = False, instead: str = _INSTEAD
) -> tuple[tuple[str, str], ...]:
    """Where the labels do not fit the verdict: that they do not, and what to do.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
        asked: whether a measure leads the answer already.
        instead: what to do otherwise.
    """
    if fits_labels(several, result.queries):
        return ()
    have = "query has" if result.queries == 1 else "queries have"
    count = f"{several:,} of {result.queries:,} {have} several relevant documents"
    said = f"{count}, and the verdict looks at the first one only"
    if asked:
        return (("", f"the verdict does not fit these labels: {said}"),)
    return (("labels", f"they do not fit the verdict: {said}"), ("", instead))


def compared_facts(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """What was compared."""
    (judged,) = result.pairs
    pair = judged.pair
    return (
        ("A", _name(pair.a.name, len(pair.a.runs))),
        ("B", _name(pair.b.name, len(pair.b.runs))),
        ("queries", f"{result.queries:,}, k = {result.k}"),
    )


def _name(name: str, seeds: int) -> str:
    return name if seeds == 1 else f"{name} ({seeds} seeds)"


def tables(result: Outcomes, curves: SuccessCurves, *, several: int | None) -> tuple[Table, ...]:
    """Who found it; how high where both did; how many at every depth.

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


def _found_table(judged: Judged, result: Outcomes, several: int | None) -> Table:
    pair = judged.pair
    line = next(line for line in FOUND if line in pair.tests)
    test = pair.tests[line]
    more = {True: "A more", False: "B more"}.get(pair.a_only > pair.b_only)
    if pair.a_only == pair.b_only:
        more = "as many"
    tested = {"(2) by B alone": (more, *_interval(test), judged.corrected[line])}
    counts = {
        "(1) by neither": pair.neither,
        "(2) by A alone": pair.a_only,
        "(2) by B alone": pair.b_only,
        "(3) by both": pair.both,
    }
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, _count(count), count / result.queries, *tested.get(name, ("",) * 6))
        for name, count in counts.items()
    )
    return Table(
        title=f"Queries with a relevant document among the first {result.k}",
        columns=(
            Column(name="found"),
            Column(name="queries", form="score" if pair.grouped else "count", decimals=1),
            Column(name="share", form="share", decimals=3),
            Column(name=""),
            *_TEST,
        ),
        rows=rows,
        notes=(*_found_notes(judged, result, several), *tell_family(result)),
    )


def _interval(test: TestResult) -> tuple[float | None, ...]:
    """What the columns of a test hold, but for the corrected p."""
    return test.difference, test.low, test.high, test.p


def _count(count: float) -> Cell:
    return int(count) if float(count).is_integer() else count


def _found_notes(judged: Judged, result: Outcomes, several: int | None) -> list[str]:
    test = next(judged.pair.tests[line] for line in FOUND if line in judged.pair.tests)
    notes = []
    if judged.pair.grouped:
        notes.append("counts are means over all pairs of a seed of A and one of B")
    notes.append(f"case (2): {test.why or _tell_difference(judged, test, result)}")
    if several:
        have = "1 query has" if several == 1 else f"{several:,} queries have"
        notes.append(f"{have} several relevant documents: the first one found counts")
    elif several is None:
        notes.append("where several documents are relevant the first one found counts")
    return notes


def _tell_difference(judged: Judged, test: TestResult, result: Outcomes) -> str:
    """What B - A is in case (2)."""
    at = f"at {result.level:.0%}, not corrected"
    if judged.pair.grouped:
        return f"B - A is the difference of shares of all queries; interval of crossed t {at}"
    return (
        f"B - A is the share of B less that of A, of {plural(test.used, 'query', 'queries')} that "
        f"one alone found; exact interval {at}; of all queries see Success@{result.k}"
    )


def _rank_table(judged: Judged, result: Outcomes) -> Table:
    rows = tuple(_rank_row(judged, line) for line in (*LINES, *_CROSSED) if line in _case_3(judged))
    pair = judged.pair
    reasons = dict.fromkeys(
        f"case (3): {pair.tests[line].why}" for line in _case_3(judged) if pair.tests[line].why
    )
    return Table(
        title=(
            f"Case (3): how high, where both found it ({_words(pair.both)} "
            f"{'query' if pair.both == 1 else 'queries'})"
        ),
        columns=(
            Column(name="mean of"),
            Column(name="A", form="score", decimals=3),
            Column(name="B", form="score", decimals=3),
            Column(name=""),
            Column(name="test"),
            *_TEST,
        ),
        rows=rows,
        notes=(*reasons, *_rank_notes(judged, result), *_tie_notes(judged), *tell_rules(result)),
    )


def _tie_notes(judged: Judged) -> list[str]:
    """Where p and interval contradict each other."""
    odd = {line: tell_ties(test) for line, test in judged.pair.tests.items()}
    return [
        f"signed-rank on {line.split('_')[0].upper()}: {note}" for line, note in odd.items() if note
    ]


def _case_3(judged: Judged) -> list[Line]:
    return [line for line in judged.pair.tests if line not in FOUND]


def _words(count: float) -> str:
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


def _rank_row(judged: Judged, line: Line) -> tuple[Cell, ...]:
    pair, test = judged.pair, judged.pair.tests[line]
    length = line.startswith("esl")
    means = pair.esl if length else pair.rr
    word = ""
    if means.a is not None and means.b is not None and means.a != means.b:
        word = "lower" if means.b < means.a else "higher"
    return (
        "ESL" if length else "RR",
        means.a,
        means.b,
        word,
        test.test,
        *_interval(test),
        judged.corrected[line],
    )


def _rank_notes(judged: Judged, result: Outcomes) -> list[str]:
    notes = [
        "ESL: expected search length, the rank of the first relevant document; lower is better",
        (
            "case (3) depends on which queries both find, so it is selected on its outcome: "
            "see Success@j, which has all queries"
        ),
    ]
    if judged.pair.grouped:
        found = {
            line: judged.pair.tests[line].options.get("freedom")
            for line in _CROSSED
            if line in judged.pair.tests
        }
        told = [
            f"{freedom:.1f} of {_OUTCOMES[line]}"
            for line, freedom in found.items()
            if isinstance(freedom, float)
        ]
        free = f"; degrees of freedom: {', '.join(told)}" if told else ""
        notes.append(
            "crossed-t: seeds and queries are both samples; the variances of queries, of A's "
            f"seeds and of B's add up (conservative){free}"
        )
        if 1 in (len(judged.pair.a.runs), len(judged.pair.b.runs)):
            notes.append("a side with a single run stands for that run, not for its method")
    else:
        notes.append(
            "signed-rank: the difference is the pseudomedian of differences that are not 0; "
            f"t: the mean difference; intervals at {result.level:.0%}, not corrected"
        )
    return notes


def _curve_table(curves: SuccessCurves) -> Table:
    k = len(curves.success_a)
    depths = [depth for depth in _DEPTHS if depth < k] + [k]
    rows = tuple(
        (
            depth,
            curves.success_a[depth - 1],
            curves.success_b[depth - 1],
            curves.success_b[depth - 1] - curves.success_a[depth - 1],
            curves.low[depth - 1],
            curves.high[depth - 1],
        )
        for depth in depths
    )
    notes = [
        f"intervals: {curves.band} at {curves.level:.0%}, by {curves.method}",
    ]
    if None in curves.low:
        notes.append("no interval where no query differs")
    return Table(
        title="Success@j: share of queries answered among the first j documents",
        columns=(
            Column(name="j", form="count"),
            Column(name="A", form="share", decimals=3),
            Column(name="B", form="share", decimals=3),
            Column(name="B - A", form="difference", decimals=3),
            Column(name="low", form="difference", decimals=3),
            Column(name="high", form="difference", decimals=3),
        ),
        rows=rows,
        notes=tuple(notes),
    )


def value(result: Outcomes, curves: SuccessCurves, *, several: int | None) -> dict[str, Any]:
    """The whole result for JSON.

    Args:
        result: of a single pair.
        curves: of the same.
        several: queries with several relevant documents; `None` where nobody knows.
    """
    (judged,) = result.pairs
    return {
        "a": {"name": judged.pair.a.name, "runs": list(judged.pair.a.runs)},
        "b": {"name": judged.pair.b.name, "runs": list(judged.pair.b.runs)},
        "k": result.k,
        "queries": result.queries,
        "several_relevant": several,
        "fits_labels": fits_labels(several, result.queries),
        **pair_value(judged),
        **declare(result),
        "success": {
            "a": list(curves.success_a),
            "b": list(curves.success_b),
            "low": list(curves.low),
            "high": list(curves.high),
            **(
                {"why": "null: no query differs at this depth"}
                if None in (*curves.low, *curves.high)
                else {}
            ),
            "intervals": curves.band,
            "method": curves.method,
            "level": curves.level,
        },
        "digest": result.digest,
    }


def pair_value(judged: Judged) -> dict[str, Any]:
    """What JSON has of each pair: counts, means, tests, verdict."""
    pair, verdict = judged.pair, judged.verdict
    whys = {line: test.why for line, test in pair.tests.items() if test.p is None}
    absent = (*LINES,) if pair.grouped else ()
    whys |= dict.fromkeys(absent, _GROUPED)
    ps = {line: test.p for line, test in pair.tests.items()}
    return {
        "neither": _count(pair.neither),
        "a_only": _count(pair.a_only),
        "b_only": _count(pair.b_only),
        "both": _count(pair.both),
        "esl": _means(pair.esl.a, pair.esl.b),
        "rr": _means(pair.rr.a, pair.rr.b),
        "difference": {
            line: {"estimate": test.difference, "low": test.low, "high": test.high}
            | ({"why": test.why} if test.why else {})
            | ({"note": note} if (note := tell_ties(test)) else {})
            for line, test in pair.tests.items()
        },
        "p": _with_why(ps, absent, whys),
        "p_corrected": _with_why(judged.corrected, absent, whys),
        "verdict": verdict.word,
        "better": verdict.better,
        "why": verdict.why,
        "p_verdict": {"strict": verdict.p_strict, "do_no_harm": verdict.p_no_harm},
    }


def _means(a: float | None, b: float | None) -> dict[str, Any]:
    why = {"why": "no query is found by both"} if a is None else {}
    return {"a": a, "b": b} | why


def _with_why(
    ps: Mapping[Line, float | None], absent: tuple[Line, ...], whys: Mapping[Line, str | None]
) -> dict[str, Any]:
    """All lines of the fixed form, the undefined ones as null with a reason beside them."""
    found: dict[str, Any] = {line: ps.get(line) for line in (*absent, *ps)}
    return found | ({"why": dict(whys)} if whys else {})
