"""Which runs are better than which, by what they find and how high."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.analyses.outcomes.curves import bars_chart, bars_title
from heldout.analyses.outcomes.options import OutcomesOptions
from heldout.analyses.outcomes.outcomes import (
    Outcomes,
    all_pairs,
    analyse_outcomes,
    describe_outcomes,
    pairs_with,
)
from heldout.analyses.outcomes.tests import Line
from heldout.analyses.outcomes.verdicts import JudgedPairs, RunOrder
from heldout.analyses.outcomes.words import (
    PAPERS_RULE,
    describe_family,
    describe_rules,
    misfit_headline,
    verdict_headline,
)
from heldout.answers.answer import Answer
from heldout.answers.sentence import name_one, name_some
from heldout.answers.table import Cell, Column, LateRows, Row, Table, columns
from heldout.errors import InputError, plural
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.measures import parse_measure
from heldout.scoring.names import read_measure
from heldout.scoring.sources import Scores, queries_with_several

Places = NDArray[np.intp]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


def choose_pairs(result: Outcomes, *, most: int) -> JudgedPairs:
    """The pairs to show where there is not room for all.

    Args:
        result: of many pairs.
        most: how many, at least 1.

    Returns:
        All pairs in their order, if they are no more. Else up to half of them are neighbours in
        the line by verdict, from its head. Then come pairs with a verdict, those first whose runs
        stand nearest in the line: they show how fine a difference is found. Then come the others,
        by the smallest p of any of their tests.
    """
    if len(result.pairs) <= most:
        return result.pairs
    return result.pairs.take(_choose_places(result, np.arange(len(result.pairs)), most))


def _choose_places(result: Outcomes, among: Places, most: int) -> Places:
    """As `choose_pairs`: the places of pairs, of some of them."""
    pairs = result.pairs.tested.pairs
    line = () if result.order is None else result.order.systems
    stands = {name: place for place, name in enumerate(line)}
    at = np.array([stands.get(side.name, 0) for side in pairs.sides], np.intp)
    first, second = at[pairs.a[among]], at[pairs.b[among]]
    apart = np.abs(first - second)
    nearest = np.flatnonzero(apart == 1) if result.order else np.zeros(0, np.intp)
    nearest = nearest[np.argsort(np.minimum(first, second)[nearest])][: most // 2]
    others = np.delete(np.arange(len(among)), nearest)
    undecided = result.pairs.better[among[others]] == 0
    least = _least_p(result)[among[others]]
    order = np.lexsort((least, np.where(undecided, 0, apart[others]), undecided))
    return among[np.concatenate((nearest, others[order[: most - len(nearest)]]))]


def _least_p(result: Outcomes) -> Floats:
    """The smallest p of each pair; 1 without any."""
    ps = [test.column("p") for test in result.pairs.tested.tests.values()]
    least: Floats = np.nan_to_num(np.fmin.reduce(ps), nan=1.0)
    return least


_INSTEAD = "compare runs by a measure, with heldout compare -m nDCG@10"


def headline(result: Outcomes, *, several: int | None, baseline: str | None = None) -> str:
    """How many pairs have a verdict, and who stands first by them.

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
    """How many pairs have a verdict, and where tests and means disagree."""
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
    """Whether both are significant, and by their own differences for different runs."""
    longer, higher = (pairs.tested.tests[line].column("difference") for line in (esl, rr))
    held: Flags = (pairs.corrected[esl] <= alpha) & (pairs.corrected[rr] <= alpha)
    return held & (longer * higher > 0)


def find_opposed(pairs: JudgedPairs) -> Flags:
    """For each pair whether in case (3) one run has the lower ESL and the other the higher RR."""
    esl, rr = pairs.tested.esl, pairs.tested.rr
    opposed: Flags = (esl[0] - esl[1]) * (rr[1] - rr[0]) < 0
    return opposed


def tables(result: Outcomes, *, most: int | None = None) -> tuple[Table, ...]:
    """Counts and verdicts, search lengths, and the runs in a line.

    Args:
        result: of many pairs.
        most: rows of each table: of pairs those with a verdict, see `choose_pairs`, and of the
            line groups that no verdict sets apart; `None` for all pairs and runs.
    """
    places = np.arange(len(result.pairs)) if most is None else _shorten(result, most)
    order = () if result.order is None else (_order_table(result.order, result, most),)
    return (_found_table(result, places), _rank_table(result, places), *order)


def _shorten(result: Outcomes, most: int) -> Places:
    """Pairs with a verdict; without any a few, so that one sees how far off they are."""
    every, decided = np.arange(len(result.pairs)), np.flatnonzero(result.pairs.better)
    if len(every) <= most:
        return every
    if not len(decided):
        return _choose_places(result, every, most // 2)
    return decided if len(decided) <= most else _choose_places(result, decided, most)


def _describe_left_out(shown: Places, result: Outcomes) -> list[str]:
    """How many pairs are not shown, with a verdict and without."""
    left = np.delete(result.pairs.better, shown)
    if not len(left):
        return []
    none = int((left == 0).sum())
    return [
        f"left out here: {plural(none, 'pair')} without a verdict, {len(left) - none:,} with one"
    ]


def _found_table(result: Outcomes, shown: Places) -> Table:
    size = result.queries

    def row(place: int) -> Row:
        one = result.pairs[int(shown[place])]
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
        rows=LateRows(len(shown), row),
        notes=(
            *_describe_left_out(shown, result),
            "(1) found by neither, (2) by one alone: A wins or B wins, (3) by both",
        ),
        method=(
            "p: exact binomial on (2), undefined where no query is found by one alone",
            "where several documents are relevant the first one found counts",
            describe_family(result),
            *describe_rules(result),
            (
                "its p: of the verdict; strict: the largest p that it needs; do no harm: twice the "
                "smaller p of its two ways"
            ),
            *_describe_choice(shown, result),
        ),
    )


def _describe_choice(shown: Places, result: Outcomes) -> list[str]:
    if len(shown) == len(result.pairs):
        return []
    return [
        (
            "pairs shown: neighbours at the head of the line by verdict, then verdicts between "
            "runs that stand nearest in it, then pairs with the smallest p"
        )
    ]


def _rank_table(result: Outcomes, shown: Places) -> Table:
    ps = columns("p", "WSR p", "WSR corr.", "t p", "t corr.")

    def row(place: int) -> Row:
        one = result.pairs[int(shown[place])]
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
        rows=LateRows(len(shown), row),
        notes=(
            (
                "ESL: lower is better; WSR: signed-rank; t: paired t; no p where no query "
                "is found by both or no two differ"
            ),
        ),
        method=(
            "case (3) is selected on its outcome: heldout compare shows Success@j for all queries",
        ),
    )


def _order_table(order: RunOrder, result: Outcomes, most: int | None) -> Table:
    """The line, each run in its place; short, runs that no verdict sets apart are one row."""
    rows: list[Row] = [
        (place, name, _say_below(order, place - 1))
        for place, name in enumerate(order.systems, start=1)
    ]
    hidden = 0
    if most is not None and len(rows) > most:
        rows = [_group_row(order, start, end) for start, end in _find_groups(order)]
        hidden = len(rows) - most
    notes = ["a run stands behind all that beat it, and by mean RR where no verdict decides"]
    if hidden > 0:
        notes.append(f"{plural(hidden, 'more group is', 'more groups are')} left out here")
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
        rows=tuple(rows[:most]),
        notes=tuple(notes),
        method=tuple(method),
    )


def _find_groups(order: RunOrder) -> list[tuple[int, int]]:
    """Runs that follow each other with no verdict between neighbours: where each group lies."""
    starts = [0, *(row for row, by in enumerate(order.by_verdict, start=1) if by)]
    return list(pairwise([*starts, len(order.systems)]))


def _group_row(order: RunOrder, start: int, end: int) -> Row:
    return (start + 1, name_some(order.systems[start:end]), _say_below(order, start))


def _say_below(order: RunOrder, row: int) -> str:
    """What sets a run below the one before it."""
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
_MOST = 10


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
        short=tables(found, most=_MOST),
        document=describe_outcomes(found, several)
        | scores.document
        | {"baseline": baseline, "esl_and_rr_disagree": {"pairs": opposed, "significant": sure}},
        chart=lambda: bars_chart(found),
        title=bars_title(found),
    )


def _depth(name: str, k: int | None) -> int:
    """How deep lists are looked at: 1,000 of a measure without a cutoff, and 100 of a bare table.

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
