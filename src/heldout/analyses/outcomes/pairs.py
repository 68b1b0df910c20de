"""Outcomes of many pairs as tables and JSON, laid out as table 2 of the paper."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from heldout.analyses.outcomes.outcomes import Outcomes, fits_labels
from heldout.analyses.outcomes.tests import Line
from heldout.analyses.outcomes.verdicts import Judged, RunOrder
from heldout.analyses.outcomes.words import declare, pair_value, tell_family, tell_rules
from heldout.answers.table import Cell, Column, Table
from heldout.errors import plural

# Which of very many pairs a reader sees first.


def telling_pairs(result: Outcomes, *, most: int) -> tuple[Judged, ...]:
    """The pairs to show where there is not room for all.

    Args:
        result: of many pairs.
        most: how many, at least 1.

    Returns:
        All pairs in their order, if they are no more. Else up to half of them are neighbours in
        the line by verdict, from its head. Then come pairs with a verdict, those first whose runs
        stand nearest in the line: they show how fine a difference is told. Then come the others,
        by the smallest p of any of their tests.
    """
    if len(result.pairs) <= most:
        return result.pairs
    neighbours = _neighbours(result)[: most // 2]
    taken = {id(one) for one in neighbours}
    line = () if result.order is None else result.order.systems
    places = {name: place for place, name in enumerate(line)}
    others = [one for one in result.pairs if id(one) not in taken]
    others.sort(key=lambda one: _tells(one, places))
    return (*neighbours, *others[: most - len(neighbours)])


def _neighbours(result: Outcomes) -> list[Judged]:
    """Pairs of runs that follow each other in the line, where they were compared."""
    if result.order is None:
        return []
    named = {frozenset((one.pair.a.name, one.pair.b.name)): one for one in result.pairs}
    pairs = (named.get(frozenset(pair)) for pair in pairwise(result.order.systems))
    return [one for one in pairs if one is not None]


def _tells(one: Judged, places: Mapping[str, int]) -> tuple[bool, int, float]:
    """A key that is smaller where a pair tells more."""
    least = min((test.p for test in one.pair.tests.values() if test.p is not None), default=1.0)
    if one.verdict.better is None:
        return True, 0, least
    return False, abs(places[one.pair.a.name] - places[one.pair.b.name]), least


def facts(result: Outcomes) -> tuple[tuple[str, str], ...]:
    """How many pairs have a verdict, and where tests and means disagree."""
    words = [one.verdict.word for one in result.pairs]
    lines = [
        ("pairs", f"{len(words):,}, k = {result.k}"),
        (
            "verdicts",
            (
                f"{words.count('strict'):,} strict, {words.count('do no harm'):,} do no harm, "
                f"{words.count('no verdict'):,} none"
            ),
        ),
    ]
    apart, both = _count_opposed(result)
    lines.append(
        (
            "ESL, RR",
            (
                f"{plural(apart, 'pair')} {'is' if apart == 1 else 'are'} ordered "
                f"otherwise by ESL than by RR, {both} significantly"
            ),
        )
    )
    if result.order is not None and result.order.circles:
        lines.append(("circles", f"{_tell_circles(result.order)}: no line can show these verdicts"))
    return tuple(lines)


_TESTS: tuple[tuple[Line, Line], ...] = (("esl_signed_rank", "rr_signed_rank"), ("esl_t", "rr_t"))


def _count_opposed(result: Outcomes) -> tuple[int, int]:
    """Pairs whose means of ESL and RR favour different runs; those where both tests do too."""
    opposed = [one for one in result.pairs if opposes(one)]
    sure = [
        one
        for one in opposed
        if any(_both_hold(one, esl, rr, result.rules.alpha) for esl, rr in _TESTS)
    ]
    return len(opposed), len(sure)


def _both_hold(one: Judged, esl: Line, rr: Line, alpha: float) -> bool:
    """Whether both are significant, and by their own differences for different runs."""
    ps = one.corrected[esl], one.corrected[rr]
    longer, higher = one.pair.tests[esl].difference, one.pair.tests[rr].difference
    if longer is None or higher is None or longer * higher <= 0:
        return False
    return all(p is not None and p <= alpha for p in ps)


def opposes(one: Judged) -> bool:
    """Whether in case (3) one run has the lower ESL and the other the higher RR."""
    esl, rr = one.pair.esl, one.pair.rr
    if esl.a is None or esl.b is None or rr.a is None or rr.b is None:
        return False
    return (esl.a - esl.b) * (rr.b - rr.a) < 0


def tables(result: Outcomes, *, most: int | None = None) -> tuple[Table, ...]:
    """Counts and verdicts, search lengths, and the runs in a line.

    Args:
        result: of many pairs.
        most: rows for pairs at most, see `telling_pairs`; `None` for all pairs.
    """
    shown = telling_pairs(result, most=len(result.pairs) if most is None else most)
    order = () if result.order is None else (_order_table(result.order, result),)
    return (_found_table(result, shown), _rank_table(result, shown), *order)


def _tell_left_out(shown: Sequence[Judged], result: Outcomes) -> tuple[str, ...]:
    left = len(result.pairs) - len(shown)
    if not left:
        return ()
    return (
        (
            f"{plural(left, 'pair')} {'is' if left == 1 else 'are'} left out, --all "
            "shows them, as do --json, --markdown and --latex; "
            "shown: neighbours at the head of the line by verdict, then verdicts between runs "
            "that stand nearest in it, then pairs with the smallest p"
        ),
    )


def _found_table(result: Outcomes, shown: Sequence[Judged]) -> Table:
    columns = (
        Column(name="A"),
        Column(name="B"),
        Column(name="(1)", form="share", decimals=3),
        Column(name="A wins", form="share", decimals=3),
        Column(name="B wins", form="share", decimals=3),
        Column(name="(3)", form="share", decimals=3),
        Column(name="p", form="p"),
        Column(name="corrected", form="p"),
        Column(name="better"),
        Column(name="verdict"),
        Column(name="its p", form="p"),
    )
    size = result.queries
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.pair.a.name,
            one.pair.b.name,
            one.pair.neither / size,
            one.pair.a_only / size,
            one.pair.b_only / size,
            one.pair.both / size,
            one.pair.tests["binomial"].p,
            one.corrected["binomial"],
            one.verdict.better or "",
            one.verdict.word,
            _verdict_p(one),
        )
        for one in shown
    )
    return Table(
        title=f"Outcomes at k = {result.k}: shares of {plural(size, 'query', 'queries')}",
        columns=columns,
        rows=rows,
        notes=(
            *_tell_left_out(shown, result),
            (
                "(1) found by neither, (2) by one alone: A wins or B wins, (3) by both; p by the "
                "exact binomial on (2), undefined where no query is found by one alone"
            ),
            "where several documents are relevant the first one found counts",
            *tell_family(result),
            *tell_rules(result),
            (
                "its p: of the verdict; strict: the largest p that it needs; do no harm: twice the "
                "smaller p of its two ways"
            ),
        ),
    )


def _verdict_p(one: Judged) -> Cell:
    """The p that decided; blank without a verdict."""
    verdict = one.verdict
    return {"strict": verdict.p_strict, "do no harm": verdict.p_no_harm}.get(verdict.word, "")


def _rank_table(result: Outcomes, shown: Sequence[Judged]) -> Table:
    ps = [
        Column(name=f"{test} p" if not corrected else f"{test} corr.", form="p")
        for test in ("WSR", "t")
        for corrected in (False, True)
    ]
    columns = (
        Column(name="A"),
        Column(name="B"),
        Column(name="A ESL", form="score", decimals=2),
        Column(name="B ESL", form="score", decimals=2),
        *ps,
        Column(name="A RR", form="score"),
        Column(name="B RR", form="score"),
        *ps,
    )
    return Table(
        title="Case (3): search length (ESL) and reciprocal rank, where both found",
        columns=columns,
        rows=tuple(_rank_row(one) for one in shown),
        notes=(
            *_tell_left_out(shown, result),
            (
                "ESL: lower is better; WSR: signed-rank; t: paired t; no p where no query "
                "is found by both or no two differ"
            ),
            "case (3) is selected on its outcome: heldout compare shows Success@j for all queries",
        ),
    )


def _rank_row(one: Judged) -> tuple[Cell, ...]:
    tests, corrected, pair = one.pair.tests, one.corrected, one.pair
    return (
        pair.a.name,
        pair.b.name,
        pair.esl.a,
        pair.esl.b,
        tests["esl_signed_rank"].p,
        corrected["esl_signed_rank"],
        tests["esl_t"].p,
        corrected["esl_t"],
        pair.rr.a,
        pair.rr.b,
        tests["rr_signed_rank"].p,
        corrected["rr_signed_rank"],
        tests["rr_t"].p,
        corrected["rr_t"],
    )


def _order_table(order: RunOrder, result: Outcomes) -> Table:
    notes = [
        (
            f"{order.verdicts:,} of {plural(len(result.pairs), 'pair')} have a "
            "verdict; a run stands "
            "behind all that beat it, and by mean RR where no verdict decides"
        ),
        f"circles, which no line can show: {_tell_circles(order)}; runs of a circle stand "
        "together, by mean RR"
        if order.circles
        else "no circle: no runs beat each other in turn",
    ]
    return Table(
        title="A line by verdict",
        columns=(
            Column(name="place", form="count"),
            Column(name="run"),
            Column(name="below the one before"),
        ),
        rows=tuple(
            (place, name, _say_below(order, place - 1))
            for place, name in enumerate(order.systems, start=1)
        ),
        notes=tuple(notes),
    )


def _say_below(order: RunOrder, row: int) -> str:
    """What sets a run below the one before it."""
    if row == 0:
        return ""
    if any({*order.systems[row - 1 : row + 1]} <= {*cycle} for cycle in order.cycles):
        return "in a circle with it"
    return "by verdict" if order.told[row - 1] else "by mean RR"


def _tell_circles(order: RunOrder) -> str:
    """Each circle, closed, and how many runs are in others of the same group."""
    told = []
    for circle, cycle in zip(order.circles, order.cycles, strict=True):
        more = len(cycle) - len(circle)
        others = f" (with {plural(more, 'more run')} in circles with them)" if more else ""
        told.append(" > ".join((*circle, circle[0])) + others)
    return "; ".join(told)


def value(result: Outcomes, *, several: int | None = None) -> dict[str, Any]:
    """The whole result for JSON.

    Args:
        result: of many pairs.
        several: queries with several relevant documents; `None` where the labels are unknown.
    """
    apart, both = _count_opposed(result)
    return {
        "k": result.k,
        "queries": result.queries,
        "several_relevant": several,
        "fits_labels": fits_labels(several, result.queries),
        "pairs": [
            {"a": one.pair.a.name, "b": one.pair.b.name, **pair_value(one)} for one in result.pairs
        ],
        "esl_and_rr_disagree": {"pairs": apart, "significant": both},
        "order": None if result.order is None else _order_value(result.order),
        **({} if result.order is not None else {"why": "a single pair has no order"}),
        **declare(result),
        "digest": result.digest,
    }


def _order_value(order: RunOrder) -> dict[str, Any]:
    return {
        "systems": list(order.systems),
        "told": list(order.told),
        "cycles": [list(cycle) for cycle in order.cycles],
        "circles": [list(circle) for circle in order.circles],
        "verdicts": order.verdicts,
    }
