"""Which runs are better than which, by what they find and how high."""

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.outcomes import curves, outcomes, words
from heldout.analyses.outcomes.options import OutcomesOptions
from heldout.analyses.outcomes.tests import Line
from heldout.answers.answer import Answer
from heldout.answers.table import Cell, LateRows, Row, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.errors import InputError, plural
from heldout.scoring import first_ranks, measures, names
from heldout.scoring.sources import Scores, queries_with_several

Flags = NDArray[np.bool_]


def rank_pairs(result: outcomes.Outcomes) -> list[int]:
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


def headline(result: outcomes.Outcomes, *, several: int | None, baseline: str | None = None) -> str:
    """Return how many pairs have a verdict, and who stands first by them.

    Args:
        result: of one pair or many.
        several: queries with several relevant documents; `None` where the labels are unknown.
        baseline: the run that all others are compared with; `None` for all pairs.
    """
    if misfit := words.misfit_headline(result, several=several, instead=_INSTEAD):
        return misfit
    if result.order is None:
        return words.verdict_headline(result)
    return write(
        "outcomes.pairs_headline",
        result=result,
        better=int((result.pairs.better > 0).sum()),
        worse=int((result.pairs.better < 0).sum()),
        baseline=baseline,
    )


def summary(result: outcomes.Outcomes) -> tuple[tuple[str, str], ...]:
    """Return how many pairs have a verdict, and where tests and means disagree."""
    opposed, sure = count_opposed(result)
    plain = result.pairs.plain
    return write_facts(
        "outcomes.pairs_summary",
        result=result,
        plain=None if (plain == result.pairs.better).all() else int((plain != 0).sum()),
        opposed=opposed,
        sure=sure,
        circles="" if result.order is None else _describe_circles(result.order),
    )


_RANKED: tuple[tuple[Line, Line], ...] = (("esl_signed_rank", "esl_t"), ("rr_signed_rank", "rr_t"))


def count_opposed(result: outcomes.Outcomes) -> tuple[int, int]:
    """Pairs whose means of ESL and RR favour different runs; those where both tests do too."""
    opposed = find_opposed(result.pairs)
    sure = [
        _both_hold(result.pairs, esl, rr, result.rules.alpha)
        for esl, rr in zip(*_RANKED, strict=True)
    ]
    return int(opposed.sum()), int((opposed & np.any(sure, axis=0)).sum())


def _both_hold(pairs: outcomes.JudgedPairs, esl: Line, rr: Line, alpha: float) -> Flags:
    """Return whether both are significant, and by their own differences for different runs."""
    longer, higher = (pairs.tests[line].difference for line in (esl, rr))
    held: Flags = (pairs.corrected[esl] <= alpha) & (pairs.corrected[rr] <= alpha)
    return held & (longer * higher > 0)


def find_opposed(pairs: outcomes.JudgedPairs) -> Flags:
    """For each pair whether in case (3) one run has the lower ESL and the other the higher RR."""
    esl, rr = pairs.esl, pairs.rr
    opposed: Flags = (esl[0] - esl[1]) * (rr[1] - rr[0]) < 0
    return opposed


def tables(result: outcomes.Outcomes) -> tuple[Table, ...]:
    """Tabulate counts and verdicts, search lengths, and the runs in a line."""
    first = rank_pairs(result)
    order = () if result.order is None else (_order_table(result.order, result),)
    return (_found_table(result, first), _rank_table(result, first), *order)


def _found_table(result: outcomes.Outcomes, first: list[int]) -> Table:
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

    rows = LateRows(len(result.pairs), row)
    return write_table("outcomes.pairs", rows, first=first, result=result)


def _rank_table(result: outcomes.Outcomes, first: list[int]) -> Table:
    def row(position: int) -> Row:
        one = result.pairs[position]
        cells: Row = (one.a.name, one.b.name)
        for means, lines in zip((one.esl, one.rr), _RANKED, strict=True):
            tested = [p for line in lines for p in (one.tests[line].p, one.corrected[line])]
            cells += (means.a, means.b, *tested)
        return cells

    return write_table("outcomes.pair_ranks", LateRows(len(result.pairs), row), first=first)


def _order_table(order: outcomes.RunOrder, result: outcomes.Outcomes) -> Table:
    """Tabulate the line, each run in its place."""
    rows = tuple(
        (position, name, _say_below(order, position - 1))
        for position, name in enumerate(order.systems, start=1)
    )
    circles = _describe_circles(order)
    return write_table("outcomes.order", rows, order=order, result=result, circles=circles)


def _say_below(order: outcomes.RunOrder, row: int) -> str:
    """Return what sets a run below the one before it."""
    if row == 0:
        return ""
    if any({*order.systems[row - 1 : row + 1]} <= {*cycle} for cycle in order.cycles):
        return "in a circle with it"
    return "by verdict" if order.by_verdict[row - 1] else "by mean RR"


def _describe_circles(order: outcomes.RunOrder) -> str:
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
    ranks = first_ranks.first_ranks(scores.table, k=_depth(scores.measure, options.k))
    baseline = options.baseline
    pairs = outcomes.all_pairs(ranks) if baseline is None else outcomes.pairs_with(ranks, baseline)
    found = outcomes.analyse_outcomes(
        ranks, pairs, options.rules, level=options.level, executor=draws.executor
    )
    several = None
    if scores.judgments is not None:
        rel = measures.parse_measure(scores.measure).params.rel or 1
        several = len(queries_with_several(scores.judgments, rel).intersection(ranks.queries))
    opposed, sure = count_opposed(found)
    return Answer(
        answer=headline(found, several=several, baseline=baseline),
        summary=(*summary(found), *scores.facts),
        tables=tables(found),
        document=outcomes.describe_outcomes(found, several)
        | scores.document
        | {"baseline": baseline, "esl_and_rr_disagree": {"pairs": opposed, "significant": sure}},
        chart=lambda: curves.bars_chart(found),
        title=curves.bars_title(found),
    )


def _depth(name: str, k: int | None) -> int:
    """Return how deep lists are looked at: 1,000 without a cutoff, and 100 of a bare table.

    Raises:
        InputError: code `not-reciprocal-ranks`.
    """
    measure = names.read_measure(name or _DEFAULT)
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
