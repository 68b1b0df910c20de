"""Which runs are better than which, by what they find and how high."""

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.outcomes.curves import bars_chart, bars_title
from heldout.analyses.outcomes.options import OutcomesOptions
from heldout.analyses.outcomes.outcomes import (
    JudgedPairs,
    Outcomes,
    RunOrder,
    all_pairs,
    analyse_outcomes,
    describe_outcomes,
    pairs_with,
)
from heldout.analyses.outcomes.tests import Line
from heldout.analyses.outcomes.words import (
    PAPERS_RULE,
    describe_family,
    describe_rules,
    misfit_headline,
    verdict_headline,
)
from heldout.answers.answer import Answer
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Column, LateRows, Row, Table, columns
from heldout.errors import InputError, plural
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.measures import parse_measure
from heldout.scoring.names import read_measure
from heldout.scoring.sources import Scores, queries_with_several

Flags = NDArray[np.bool_]


def rank_pairs(result: Outcomes) -> list[int]:
    """Return the places of pairs, those first that matter most where there is not room for all.

    Pairs with a verdict come first, those before others whose runs stand nearest in the line by
    verdict: they show how fine a difference is found. Then come the others, by the smallest p of
    any of their tests.
    """
    pairs = result.pairs.pairs
    line = () if result.order is None else result.order.systems
    stands = {name: position for position, name in enumerate(line)}
    at = np.array([stands.get(side.name, 0) for side in pairs.sides], np.intp)
    undecided = result.pairs.better == 0
    apart = np.where(undecided, 0, np.abs(at[pairs.a] - at[pairs.b]))
    ps = [test.p for test in result.pairs.tests.values()]
    least = np.nan_to_num(np.fmin.reduce(ps), nan=1.0)
    positions: list[int] = np.lexsort((least, apart, undecided)).tolist()
    return positions


_INSTEAD = "compare runs by a measure, with heldout compare -m nDCG@10"


def headline(result: Outcomes, *, several: int | None, baseline: str | None = None) -> str:
    """Return how many pairs have a verdict, and who stands first by them.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
        baseline: the run that all others are compared with; `None` for all pairs.
    """
    if misfit := misfit_headline(result, several=several, instead=_INSTEAD):
        return misfit
    if result.order is None:
        return verdict_headline(result)
    better, worse = int((result.pairs.better > 0).sum()), int((result.pairs.better < 0).sum())
    decided = better + worse
    if baseline is not None:
        return (
            f"Against {name_one(baseline)}: {better:,} of {len(result.pairs):,} runs "
            f"better, {worse:,} worse, {len(result.pairs) - decided:,} without a verdict."
        )
    if not decided:
        return (
            f"No pair of runs has a verdict, of {len(result.pairs):,}: none is significantly "
            "better than another in which queries it answers, and in how high."
        )
    first = name_one(result.order.systems[0])
    return (
        f"{decided:,} of {len(result.pairs):,} pairs of runs "
        f"{'has' if decided == 1 else 'have'} a verdict on which is better; by them {first} "
        "stands first."
    )


def summary(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """Return how many pairs have a verdict, and where tests and means disagree."""
    counts = map(result.pairs.count, ("strict", "do no harm", "no verdict"))
    opposed, sure = count_opposed(result)
    lines = [
        ("pairs", f"{len(result.pairs):,}, k = {result.k}"),
        ("verdicts", "{:,} strict, {:,} do no harm, {:,} none".format(*counts)),
        *_say_plain(result),
        (
            "ESL, RR",
            (
                f"{plural(opposed, 'pair is', 'pairs are')} ordered otherwise by ESL than by RR, "
                f"{sure} significantly"
            ),
        ),
    ]
    if result.order is not None and result.order.circles:
        circles = _describe_circles(result.order)
        lines.append(("circles", f"{circles}: no line can show these verdicts"))
    return tuple(lines)


def _say_plain(result: Outcomes) -> list[tuple[str, str]]:
    """Count the pairs with a verdict by the paper's rule, where it says something else."""
    plain = result.pairs.plain
    if (plain == result.pairs.better).all():
        return []
    decided = int((plain != 0).sum())
    has = "has" if decided == 1 else "have"
    return [("", f"{PAPERS_RULE}: {plural(decided, 'pair')} {has} a verdict.")]


_RANKED: tuple[tuple[Line, Line], ...] = (("esl_signed_rank", "esl_t"), ("rr_signed_rank", "rr_t"))


def count_opposed(result: Outcomes) -> tuple[int, int]:
    """Pairs whose means of ESL and RR favour different runs; those where both tests do too."""
    opposed = find_opposed(result.pairs)
    sure = [
        _both_hold(result.pairs, esl, rr, result.rules.alpha)
        for esl, rr in zip(*_RANKED, strict=True)
    ]
    return int(opposed.sum()), int((opposed & np.any(sure, axis=0)).sum())


def _both_hold(pairs: JudgedPairs, esl: Line, rr: Line, alpha: float) -> Flags:
    """Return whether both are significant, and by their own differences for different runs."""
    longer, higher = (pairs.tests[line].difference for line in (esl, rr))
    held: Flags = (pairs.corrected[esl] <= alpha) & (pairs.corrected[rr] <= alpha)
    return held & (longer * higher > 0)


def find_opposed(pairs: JudgedPairs) -> Flags:
    """For each pair whether in case (3) one run has the lower ESL and the other the higher RR."""
    esl, rr = pairs.esl, pairs.rr
    opposed: Flags = (esl[0] - esl[1]) * (rr[1] - rr[0]) < 0
    return opposed


def tables(result: Outcomes) -> tuple[Table, ...]:
    """Tabulate counts and verdicts, search lengths, and the runs in a line."""
    first = rank_pairs(result)
    order = () if result.order is None else (_order_table(result.order, result),)
    return (_found_table(result, first), _rank_table(result, first), *order)


def _found_table(result: Outcomes, first: list[int]) -> Table:
    size = result.queries

    def row(position: int) -> Row:
        one = result.pairs[position]
        counts = (one.neither, one.a_only, one.b_only, one.both)
        verdict = one.verdict
        decided: Cell = {"strict": verdict.p_strict, "do no harm": verdict.p_no_harm}.get(
            verdict.word, ""
        )
        return (
            one.a.name,
            one.b.name,
            *(count / size for count in counts),
            *(one.tests["binomial"].p, one.corrected["binomial"]),
            *(verdict.better or "", verdict.word),
            decided,
        )

    return Table(
        title=f"Outcomes at k = {result.k}: shares of {plural(size, 'query', 'queries')}",
        columns=(
            *columns("text", "A", "B"),
            *columns("share", "(1)", "A wins", "B wins", "(3)", decimals=3),
            *columns("p", "p", "corrected"),
            *columns("text", "better", "verdict"),
            Column(name="its p", form="p"),
        ),
        rows=LateRows(len(result.pairs), row),
        notes=("(1) found by neither, (2) by one alone: A wins or B wins, (3) by both",),
        method=(
            "p: exact binomial on (2), undefined where no query is found by one alone",
            "where several documents are relevant the first one found counts",
            describe_family(result),
            *describe_rules(result),
            (
                "its p: of the verdict; strict: the largest p that it needs; do no harm: twice the "
                "smaller p of its two ways"
            ),
        ),
        first=first,
    )


def _rank_table(result: Outcomes, first: list[int]) -> Table:
    ps = columns("p", "WSR p", "WSR corr.", "t p", "t corr.")

    def row(position: int) -> Row:
        one = result.pairs[position]
        cells: Row = (one.a.name, one.b.name)
        for means, lines in zip((one.esl, one.rr), _RANKED, strict=True):
            tested = [p for line in lines for p in (one.tests[line].p, one.corrected[line])]
            cells += (means.a, means.b, *tested)
        return cells

    return Table(
        title="Case (3): search length (ESL) and reciprocal rank, where both found",
        columns=(
            *columns("text", "A", "B"),
            *columns("score", "A ESL", "B ESL", decimals=2),
            *ps,
            *columns("score", "A RR", "B RR"),
            *ps,
        ),
        rows=LateRows(len(result.pairs), row),
        notes=(
            (
                "ESL: lower is better; WSR: signed-rank; t: paired t; no p where no query "
                "is found by both or no two differ"
            ),
        ),
        method=(
            "case (3) is selected on its outcome: heldout compare shows Success@j for all queries",
        ),
        first=first,
    )


def _order_table(order: RunOrder, result: Outcomes) -> Table:
    """Tabulate the line, each run in its place."""
    notes = ["a run stands behind all that beat it, and by mean RR where no verdict decides"]
    method = [f"{order.verdicts:,} of {plural(len(result.pairs), 'pair')} have a verdict"]
    if order.circles:
        notes.append(
            f"circles, which no line can show: {_describe_circles(order)}; runs of a circle stand "
            "together, by mean RR"
        )
    else:
        method.append("no circle: no runs beat each other in turn")
    return Table(
        title="A line by verdict",
        columns=(
            Column(name="place", form="count"),
            Column(name="run"),
            Column(name="below the one before"),
        ),
        rows=tuple(
            (position, name, _say_below(order, position - 1))
            for position, name in enumerate(order.systems, start=1)
        ),
        notes=tuple(notes),
        method=tuple(method),
    )


def _say_below(order: RunOrder, row: int) -> str:
    """Return what sets a run below the one before it."""
    if row == 0:
        return ""
    if any({*order.systems[row - 1 : row + 1]} <= {*cycle} for cycle in order.cycles):
        return "in a circle with it"
    return "by verdict" if order.by_verdict[row - 1] else "by mean RR"


def _describe_circles(order: RunOrder) -> str:
    """Each circle, closed, and how many runs are in others of the same group."""
    circles = []
    for circle, cycle in zip(order.circles, order.cycles, strict=True):
        more = len(cycle) - len(circle)
        others = f" (with {plural(more, 'more run')} in circles with them)" if more else ""
        circles.append(" > ".join((*circle, circle[0])) + others)
    return "; ".join(circles)


_DEFAULT = "RR@100"
_UNCUT = 1000


def _analyse(scores: Scores, options: OutcomesOptions, draws: Draws) -> Answer:
    ranks = first_ranks(scores.table, k=_depth(scores.measure, options.k))
    baseline = options.baseline
    pairs = all_pairs(ranks) if baseline is None else pairs_with(ranks, baseline)
    found = analyse_outcomes(
        ranks, pairs, options.rules, level=options.level, executor=draws.executor
    )
    several = None
    if scores.judgments is not None:
        rel = parse_measure(scores.measure).params.rel or 1
        several = len(queries_with_several(scores.judgments, rel).intersection(ranks.queries))
    opposed, sure = count_opposed(found)
    return Answer(
        answer=headline(found, several=several, baseline=baseline),
        summary=(*summary(found), *scores.facts),
        tables=tables(found),
        document=describe_outcomes(found, several)
        | scores.document
        | {"baseline": baseline, "esl_and_rr_disagree": {"pairs": opposed, "significant": sure}},
        chart=lambda: bars_chart(found),
        title=bars_title(found),
    )


def _depth(name: str, k: int | None) -> int:
    """Return how deep lists are looked at: 1,000 without a cutoff, and 100 of a bare table.

    Raises:
        InputError: code `not-reciprocal-ranks`.
    """
    measure = read_measure(name or _DEFAULT)
    code = "not-reciprocal-ranks"
    if name and measure.name != "RR":
        expected = "a reciprocal rank, from which outcomes are counted"
        raise InputError.of(code, "-m", str(measure), expected, "-m RR@100")
    if name and k is not None and measure.cutoff is not None and measure.cutoff < k:
        found = f"{k}, deeper than {measure} looks"
        raise InputError.of(code, "-k", found, f"{measure.cutoff} at most")
    return k or measure.cutoff or _UNCUT


def _against_best(scores: Scores) -> OutcomesOptions:
    """The best run against all others: all pairs of a board are too many to read."""
    means = {system: scores.table.mean(system) or 0.0 for system in scores.table.systems}
    return OutcomesOptions(baseline=max(means, key=means.__getitem__))


ANALYSIS = Analysis(
    name="outcomes",
    help="""For every two runs: who finds what, how high, and which is the better.

    The measure is a reciprocal rank, RR@100 if not given; RR(rel=2)@100 counts grade 2 and above.

    \b
    Example:
      heldout analyse outcomes --runs 'runs/*.gz' --qrels dev.qrels --baseline bm25
    """,
    source="scores",
    options=OutcomesOptions,
    analyse=_analyse,
    chapter="The best against all others",
    seeded=False,
    measure=_DEFAULT,
    report_options=_against_best,
)
