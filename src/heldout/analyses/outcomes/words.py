"""Outcomes of one pair of runs, or of two groups of seeds, as tables and JSON."""

from collections.abc import Mapping

from heldout.analyses.outcomes.curves import SuccessCurves
from heldout.analyses.outcomes.outcomes import JudgedPair, Outcomes, Verdict, fits_labels
from heldout.analyses.outcomes.tests import FOUND, LINES, Line
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Column, Table, columns, format_p
from heldout.errors import plural
from heldout.stats.results import TestResult

# What reports of outcomes say of their family, correction and rules, and where tests are odd.

PAPERS_RULE = "By the rule of Lin et al. 2021, §5 (--harm plain)"

_CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "none": "no correction"}


def describe_family(result: Outcomes) -> str:
    """Return which hypotheses form the family of the corrected p-values."""
    rules, pairs = result.rules, len(result.pairs)
    test = result.pairs[0].declared.removeprefix(f"{rules.by}_").replace("_", " ")
    case_2 = "crossed t" if result.pairs[0].grouped else "exact binomial"
    return (
        f"corrected: {_CORRECTIONS[rules.correction]} over {result.hypotheses:,} hypotheses, "
        f"{plural(pairs, 'pair')} × 2 outcomes: (2) by {case_2}, (3) by {test} on "
        f"{rules.by.upper()}, as declared; a test that was not declared is corrected as if it had "
        "been"
    )


def _describe_p(verdict: Verdict) -> str:
    """The p by which each rule is decided, which is none of those of the tables."""
    strict = f"strict test: p {format_p(verdict.p_strict)}, the largest p that it needs"
    if verdict.p_strict is None:
        strict = "strict test: not applicable (its tests favour different runs, or one has no p)"
    if verdict.p_no_harm is None:
        return f"{strict}; no-harm test: not applicable"
    harm = format_p(verdict.p_no_harm)
    return f"{strict}; no-harm test: p {harm}, twice the smaller p of its two ways"


def describe_ties(test: TestResult) -> str | None:
    """Return why p and interval contradict each other; `None` where they do not."""
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


def describe_rules(result: Outcomes) -> tuple[str, str]:
    """Return what the verdicts ask for."""
    rules, pairs = result.rules, len(result.pairs)
    better = "a lower ESL" if rules.by == "esl" else "a higher RR"
    over = ""
    if pairs > 1:
        over = f", corrected over {pairs:,} pairs ({_CORRECTIONS[rules.correction]})"
    case_2, case_3 = ("crossed t", "crossed t") if result.pairs[0].grouped else ("score test", "t")
    guard, tests = "", "both"
    if rules.by == "esl" and rules.harm == "margin":
        least = f"{rules.margins.esl:g} or more ({case_3}, and no rare harm)"
        guard = f"; the mean ESL not higher by {least}"
        tests = "all"
    strict = (
        f"strict: more of (2) and {better} in (3){guard}; {tests} at α {rules.alpha:g} "
        f"(intersection-union: the largest p decides, not the column corrected){over}"
    )
    if rules.by == "rr":
        harmless = "do no harm is defined by ESL and not asked with RR"
    elif rules.harm == "plain":
        harmless = (
            "do no harm, the paper's plain rule: one outcome significantly better, the other not "
            "significantly worse; that is no evidence that there is no harm"
        )
    else:
        harmless = (
            "do no harm: one outcome better and the other not worse by a margin, α "
            f"{rules.alpha / 2:g} for each way{over}; margins: found {rules.margins.found:g} of "
            f"the queries ({case_2}), mean ESL {rules.margins.esl:g} ({case_3}, on so many queries "
            "that rare harm would have been seen)"
        )
    return strict, harmless


_DEPTHS = (1, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_CROSSED: tuple[Line, ...] = ("found_crossed_t", "esl_crossed_t", "rr_crossed_t")
_TEST = (*columns("difference", "B - A", "low", "high"), *columns("p", "p", "corrected"))
_OUTCOMES: Mapping[Line, str] = {
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
    return f"{_say_several(result, several)}, and a verdict sees the first one only: {instead}."


def verdict_headline(result: Outcomes) -> str:
    """The verdict on the only pair."""
    (judged,) = result.pairs
    verdict = judged.verdict
    if verdict.better is None:
        return f"No verdict between A and B: {verdict.why}."
    a, b = name_one(judged.a.name), name_one(judged.b.name)
    better = f"{a} (A) is better than {b} (B)"
    if verdict.better == "B":
        better = f"{b} (B) is better than {a} (A)"
    if verdict.word == "strict":
        return f"{better}: it answers significantly more queries, and answers them higher."
    harm = "significantly worse" if result.rules.harm == "plain" else "worse by a margin"
    return f"{better} and does no harm: one outcome is significantly better, the other not {harm}."


def _say_several(result: Outcomes, several: int | None) -> str:
    queries = plural(result.queries, "query has", "queries have")
    return f"{several or 0:,} of {queries} several relevant documents"


def verdict_summary(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """The verdict on outcomes, its reason and its p."""
    (judged,) = result.pairs
    verdict, said = judged.verdict, "none"
    if verdict.better:
        winner = judged.a if verdict.better == "A" else judged.b
        said = f"{verdict.better} is better, {verdict.word}: {winner.name}"
    paper = (
        f"{PAPERS_RULE}: {verdict.plain} is better." if verdict.plain else f"{PAPERS_RULE}: none."
    )
    differs = (("", paper),) if verdict.plain != verdict.better else ()
    return (("verdict", said), ("", verdict.why), *differs, ("p", _describe_p(verdict)))


def fit_summary(result: Outcomes, *, several: int | None) -> tuple[tuple[str, str], ...]:
    """Return where the labels do not fit the verdict: that they do not.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
    """
    if fits_labels(several, result.queries):
        return ()
    said = f"{_say_several(result, several)}, and the verdict looks at the first one only"
    return (("labels", f"the verdict does not fit them: {said}"),)


def compared_summary(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """Return what was compared."""
    (judged,) = result.pairs
    names = (
        one.name if len(one.runs) == 1 else f"{one.name} ({len(one.runs)} seeds)"
        for one in (judged.a, judged.b)
    )
    return (*zip("AB", names, strict=True), ("queries", f"{result.queries:,}, k = {result.k}"))


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
    return Table(
        title=f"Queries with a relevant document among the first {result.k}",
        columns=(
            Column(name="found"),
            Column(name="queries", form="score" if judged.grouped else "count", decimals=1),
            Column(name="share", form="share", decimals=3),
            Column(name=""),
            *_TEST,
        ),
        rows=rows,
        notes=tuple(_found_notes(judged, several)),
        method=(_describe_difference(judged, result), describe_family(result)),
    )


def _interval(test: TestResult) -> tuple[float | None, ...]:
    """Return what the columns of a test hold, but for the corrected p."""
    return test.difference, test.low, test.high, test.p


def _count(count: float) -> Cell:
    return int(count) if float(count).is_integer() else count


def _describe_difference(judged: JudgedPair, result: Outcomes) -> str:
    """Return what B - A is in case (2), or why there is no test of it."""
    test = next(judged.tests[line] for line in FOUND if line in judged.tests)
    at = f"at {result.level:.0%}, not corrected"
    if judged.grouped:
        difference = f"B - A is the difference of shares of all queries; interval of crossed t {at}"
    else:
        difference = (
            f"B - A is the share of B less that of A, of {plural(test.used, 'query', 'queries')} "
            f"that one alone found; exact interval {at}; of all queries see Success@{result.k}"
        )
    return f"case (2): {test.why or difference}"


def _found_notes(judged: JudgedPair, several: int | None) -> list[str]:
    test = next(judged.tests[line] for line in FOUND if line in judged.tests)
    notes = [f"no test: {test.why}"] if test.why else []
    if judged.grouped:
        notes.append("counts are means over all pairs of a seed of A and one of B")
    if several:
        have = plural(several, "query has", "queries have")
        notes.append(f"{have} several relevant documents: the first one found counts")
    elif several is None:
        notes.append("where several documents are relevant the first one found counts")
    return notes


def _rank_table(judged: JudgedPair, result: Outcomes) -> Table:
    tests = judged.tests
    lines = [line for line in (*LINES, *_CROSSED) if line in tests and line not in FOUND]
    reasons = dict.fromkeys(f"case (3): {why}" for line in lines if (why := tests[line].why))
    # Where p and interval contradict each other
    ties = {line: describe_ties(test) for line, test in tests.items()}
    both = f"{judged.both:,.0f}" if float(judged.both).is_integer() else f"{judged.both:,.1f}"
    return Table(
        title=(
            f"Case (3): how high, where both found it ({both} "
            f"{'query' if judged.both == 1 else 'queries'})"
        ),
        columns=(
            Column(name="mean of"),
            *columns("score", "A", "B", decimals=3),
            *columns("text", "", "test"),
            *_TEST,
        ),
        rows=tuple(_rank_row(judged, line) for line in lines),
        notes=(
            "ESL: expected search length, the rank of the first relevant document; lower is better",
            *reasons,
        ),
        method=(
            *_rank_method(judged, result),
            *(
                f"signed-rank on {line.split('_')[0].upper()}: {note}"
                for line, note in ties.items()
                if note
            ),
            *describe_rules(result),
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


def _rank_method(judged: JudgedPair, result: Outcomes) -> list[str]:
    notes = [
        (
            "case (3) depends on which queries both find, so it is selected on its outcome: "
            "see Success@j, which has all queries"
        ),
    ]
    if judged.grouped:
        freedom = {
            line: judged.tests[line].options.get("freedom")
            for line in _CROSSED
            if line in judged.tests
        }
        said = ", ".join(
            f"{one:.1f} of {_OUTCOMES[line]}"
            for line, one in freedom.items()
            if isinstance(one, float)
        )
        notes.append(
            "crossed-t: seeds and queries are both samples; the variances of queries, of A's "
            "seeds and of B's add up (conservative)"
            + (f"; degrees of freedom: {said}" if said else "")
        )
        if 1 in (len(judged.a.runs), len(judged.b.runs)):
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
    ends = [*zip(curves.success_a, curves.success_b, curves.low, curves.high, strict=True)]
    missing = ("no interval where no query differs",) if None in curves.low else ()
    return Table(
        title="Success@j: share of queries answered among the first j documents",
        columns=(
            Column(name="j", form="count"),
            *columns("share", "A", "B", decimals=3),
            *columns("difference", "B - A", "low", "high", decimals=3),
        ),
        rows=tuple(
            (depth, a, b, b - a, low, high)
            for depth, (a, b, low, high) in ((depth, ends[depth - 1]) for depth in depths)
        ),
        notes=missing,
        method=(f"intervals: {curves.band} at {curves.level:.0%}, by {curves.method}",),
    )
