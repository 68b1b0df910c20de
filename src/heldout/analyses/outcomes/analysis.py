"""Which runs are better than which, by what they find and how high."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

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
from heldout.analyses.outcomes.verdicts import Judged, RunOrder
from heldout.analyses.outcomes.words import (
    describe_family,
    describe_rules,
    misfit_headline,
    verdict_headline,
)
from heldout.answers.answer import Answer
from heldout.answers.sentence import name_one, name_some
from heldout.answers.table import Cell, Column, Table, columns
from heldout.errors import InputError, plural
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.measures import parse_measure
from heldout.scoring.names import read_measure
from heldout.scoring.sources import Scores, queries_with_several


def choose_pairs(result: Outcomes, *, most: int) -> tuple[Judged, ...]:
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
    neighbours = _neighbours(result)[: most // 2]
    taken = {id(one) for one in neighbours}
    line = () if result.order is None else result.order.systems
    places = {name: place for place, name in enumerate(line)}
    others = [one for one in result.pairs if id(one) not in taken]
    others.sort(key=lambda one: _sort_key(one, places))
    return (*neighbours, *others[: most - len(neighbours)])


def _neighbours(result: Outcomes) -> list[Judged]:
    """Pairs of runs that follow each other in the line, where they were compared."""
    if result.order is None:
        return []
    named = {frozenset((one.a.name, one.b.name)): one for one in result.pairs}
    pairs = (named.get(frozenset(pair)) for pair in pairwise(result.order.systems))
    return [one for one in pairs if one is not None]


def _sort_key(one: Judged, places: Mapping[str, int]) -> tuple[bool, int, float]:
    """A key that is smaller where a pair tells more."""
    least = min((test.p for test in one.tests.values() if test.p is not None), default=1.0)
    if one.verdict.better is None:
        return True, 0, least
    return False, abs(places[one.a.name] - places[one.b.name]), least


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
    decided = [one for one in result.pairs if one.verdict.better]
    if baseline is not None:
        worse = sum(one.verdict.better == "A" for one in decided)
        return (
            f"Against {name_one(baseline)}: {len(decided) - worse:,} of {len(result.pairs):,} runs "
            f"better, {worse:,} worse, {len(result.pairs) - len(decided):,} without a verdict."
        )
    if not decided:
        return (
            f"No pair of runs has a verdict, of {len(result.pairs):,}: none is significantly "
            "better than another in which queries it answers, and in how high."
        )
    first = name_one(result.order.systems[0])
    return (
        f"{len(decided):,} of {len(result.pairs):,} pairs of runs "
        f"{'has' if len(decided) == 1 else 'have'} a verdict on which is better; by them {first} "
        "stands first."
    )


def summary(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """How many pairs have a verdict, and where tests and means disagree."""
    words = [one.verdict.word for one in result.pairs]
    counts = (words.count(word) for word in ("strict", "do no harm", "no verdict"))
    opposed, sure = count_opposed(result)
    lines = [
        ("pairs", f"{len(words):,}, k = {result.k}"),
        ("verdicts", "{:,} strict, {:,} do no harm, {:,} none".format(*counts)),
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


_RANKED: tuple[tuple[Line, Line], ...] = (("esl_signed_rank", "esl_t"), ("rr_signed_rank", "rr_t"))


def count_opposed(result: Outcomes) -> tuple[int, int]:
    """Pairs whose means of ESL and RR favour different runs; those where both tests do too."""
    opposed = [one for one in result.pairs if opposes(one)]
    sure = [
        one
        for one in opposed
        if any(
            _both_hold(one, esl, rr, result.rules.alpha) for esl, rr in zip(*_RANKED, strict=True)
        )
    ]
    return len(opposed), len(sure)


def _both_hold(one: Judged, esl: Line, rr: Line, alpha: float) -> bool:
    """Whether both are significant, and by their own differences for different runs."""
    ps = one.corrected[esl], one.corrected[rr]
    longer, higher = one.tests[esl].difference, one.tests[rr].difference
    if longer is None or higher is None or longer * higher <= 0:
        return False
    return all(p is not None and p <= alpha for p in ps)


def opposes(one: Judged) -> bool:
    """Whether in case (3) one run has the lower ESL and the other the higher RR."""
    esl, rr = one.esl, one.rr
    if esl.a is None or esl.b is None or rr.a is None or rr.b is None:
        return False
    return (esl.a - esl.b) * (rr.b - rr.a) < 0


def tables(result: Outcomes, *, most: int | None = None) -> tuple[Table, ...]:
    """Counts and verdicts, search lengths, and the runs in a line.

    Args:
        result: of many pairs.
        most: rows of each table: of pairs those with a verdict, see `choose_pairs`, and of the
            line groups that no verdict sets apart; `None` for all pairs and runs.
    """
    shown = result.pairs if most is None else _shorten(result, most)
    order = () if result.order is None else (_order_table(result.order, result, most),)
    return (_found_table(result, shown), _rank_table(shown), *order)


def _shorten(result: Outcomes, most: int) -> tuple[Judged, ...]:
    """Pairs with a verdict; without any a few, so that one sees how far off they are."""
    decided = tuple(one for one in result.pairs if one.verdict.better)
    if len(result.pairs) <= most:
        return result.pairs
    if not decided:
        return choose_pairs(result, most=most // 2)
    return choose_pairs(replace(result, pairs=decided), most=most)


def _describe_left_out(shown: Sequence[Judged], result: Outcomes) -> list[str]:
    """How many pairs are not shown, with a verdict and without."""
    known = {id(one) for one in shown}
    left = [one for one in result.pairs if id(one) not in known]
    if not left:
        return []
    none = sum(one.verdict.better is None for one in left)
    return [
        f"left out here: {plural(none, 'pair')} without a verdict, {len(left) - none:,} with one"
    ]


def _found_table(result: Outcomes, shown: Sequence[Judged]) -> Table:
    size = result.queries
    rows: list[tuple[Cell, ...]] = []
    for one in shown:
        counts = (one.neither, one.a_only, one.b_only, one.both)
        verdict = one.verdict
        decided: Cell = {"strict": verdict.p_strict, "do no harm": verdict.p_no_harm}.get(
            verdict.word, ""
        )
        rows.append(
            (
                one.a.name,
                one.b.name,
                *(count / size for count in counts),
                *(one.tests["binomial"].p, one.corrected["binomial"]),
                *(verdict.better or "", verdict.word),
                decided,
            )
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
        rows=tuple(rows),
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


def _describe_choice(shown: Sequence[Judged], result: Outcomes) -> list[str]:
    if len(shown) == len(result.pairs):
        return []
    return [
        (
            "pairs shown: neighbours at the head of the line by verdict, then verdicts between "
            "runs that stand nearest in it, then pairs with the smallest p"
        )
    ]


def _rank_table(shown: Sequence[Judged]) -> Table:
    ps = columns("p", "WSR p", "WSR corr.", "t p", "t corr.")
    rows: list[tuple[Cell, ...]] = []
    for one in shown:
        row: tuple[Cell, ...] = (one.a.name, one.b.name)
        for means, lines in zip((one.esl, one.rr), _RANKED, strict=True):
            tested = [p for line in lines for p in (one.tests[line].p, one.corrected[line])]
            row += (means.a, means.b, *tested)
        rows.append(row)
    return Table(
        title="Case (3): search length (ESL) and reciprocal rank, where both found",
        columns=(
            *columns("text", "A", "B"),
            *columns("score", "A ESL", "B ESL", decimals=2),
            *ps,
            *columns("score", "A RR", "B RR"),
            *ps,
        ),
        rows=tuple(rows),
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
    rows: list[tuple[Cell, ...]] = [
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


def _group_row(order: RunOrder, start: int, end: int) -> tuple[Cell, ...]:
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
