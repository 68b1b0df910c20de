"""Depths of annotation, and what deeper annotation might show: words, tables, JSON, a picture."""

from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from heldout.answers.answer import Answer
from heldout.answers.table import Cell, Table, shorten
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts.axes import name_axis, score_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import MUTED, SOFT, cut
from heldout.survivorship.depths import extrapolation
from heldout.survivorship.depths.scores import (
    SHOWN,
    SHOWN_IS_FAVOURED,
    DepthTest,
    ScoreChange,
)
from heldout.survivorship.depths.study import NO_QUERY, DepthStudy

_MOST = 5
_CONSTANT = "all its scores are the same: nothing shows how they would vary"


_Figure = tuple[str, extrapolation.Predicted | None, float]
"""What it is called, what is expected, and what was observed where that is known."""


def _list_figures(
    one: extrapolation.Extrapolation, study: DepthStudy, known: extrapolation.Backtest | None = None
) -> list[_Figure]:
    """The number of queries, and the score of each system."""
    scores = study.scores
    names = ("queries", *(f"{scores.measure} {system}" for system in scores.systems))
    seen = (0.0,) * len(names) if known is None else (float(known.queries), *known.scores)
    return list(zip(names, (one.queries, *one.scores), seen, strict=True))


def _is_inside(expected: extrapolation.Predicted | None, seen: float) -> str | None:
    if expected is None:
        return None
    return "yes" if expected.low <= seen <= expected.high else "no"


def _tabulate_outlook(outlook: extrapolation.Outlook, study: DepthStudy) -> tuple[Table, ...]:
    """The extrapolation, and how the same model does within what was seen."""
    if outlook.why:
        return ()
    ahead = write_table(
        "depths.ahead",
        tuple(
            (f"{one.depth}", name, *_say_ends(name, found))
            for one in outlook.predicted
            for name, found, _ in _list_figures(one, study)
        ),
        options=study.options,
        undefined=None in outlook.predicted[-1].scores,
    )
    check = outlook.backtest
    if check is None:
        return (ahead,)
    rows = tuple(
        (
            *(name, f"{seen:,.0f}" if name == "queries" else seen),
            *(*_say_ends(name, found), _is_inside(found, seen)),
        )
        for name, found, seen in _list_figures(check.predicted, study, check)
    )
    undefined = None in check.predicted.scores
    return (ahead, write_table("depths.known", rows, check=check, undefined=undefined))


def _outlook_document(outlook: extrapolation.Outlook, study: DepthStudy) -> dict[str, Any]:
    systems, check = study.scores.systems, outlook.backtest
    known = None
    if check is not None:
        scores = dict(zip(systems, check.scores, strict=True))
        known = {"fitted": check.fitted, **_ahead_document(check.predicted, systems)}
        known["observed"] = {"queries": check.queries, "scores": scores}
    return {
        "why": outlook.why,
        "model": "logit of the hazard, and score added per query added, linear in log place",
        "trials": study.options.trials,
        "depths": [_ahead_document(one, systems) for one in outlook.predicted],
        "backtest_why": outlook.backtest_why,
        "backtest": known,
    }


def _ahead_document(one: extrapolation.Extrapolation, systems: Sequence[str]) -> dict[str, Any]:
    undefined = {"value": None, "low": None, "high": None, "why": _CONSTANT}
    queries, *scores = (
        undefined if found is None else asdict(found) | {"why": ""}
        for found in (one.queries, *one.scores)
    )
    scored = dict(zip(systems, scores, strict=True))
    return {"depth": one.depth, "queries": queries, "scores": scored}


def _say_ends(name: str, found: extrapolation.Predicted | None) -> tuple[Cell, Cell, Cell]:
    """Value and interval; whole queries among scores."""
    if found is None:
        return (None, None, None)
    if name != "queries":
        return (found.value, found.low, found.high)
    return (f"{found.value:,.0f}", f"{found.low:,.0f}", f"{found.high:,.0f}")


def answer_depths(study: DepthStudy) -> Answer:
    """Say what shallow annotation would have left, and what a deeper one might show."""
    return Answer(
        answer=_headline(study),
        summary=_summary(study),
        tables=_tables(study),
        short=_tables(study, most=_MOST),
        document=_document(study),
        chart=lambda: spec(study),
        title=_title(study),
    )


def _document(study: DepthStudy) -> dict[str, Any]:
    """The whole result for JSON."""
    options, scores = study.options, study.scores
    more = {} if study.outlook is None else {"outlook": _outlook_document(study.outlook, study)}
    left_out = "the source leaves out discarded queries"
    return {
        "measure": str(scores.measure),
        "systems": list(scores.systems),
        "runs": "order shown" if study.of_shown else "run files",
        "warnings": [SHOWN_IS_FAVOURED] if study.of_shown else [],
        "source": study.source,
        "discarded": study.discarded,
        "discarded_why": left_out if study.discarded is None else "",
        "first_only": options.first_only,
        "family_size": study.compared,
        "level": options.level,
        "seed": options.seed,
        "depths": [_depth_document(study, depth) for depth in range(len(scores.depths))],
        **more,
    }


def _depth_document(study: DepthStudy, depth: int) -> dict[str, Any]:
    scores = study.scores
    counts, systems = scores.counts, scores.systems
    tests = {test.system: test for test in study.nested if test.depth == depth}
    order = next((one for one in study.orders if one.depth == depth), None)
    last = study.why_last if depth == len(counts) - 1 else ""
    error, error_why = study.nested_error(depth)
    empty = "" if counts[depth] else NO_QUERY
    return {
        "depth": scores.depths[depth],
        "name": scores.names[depth],
        "queries": counts[depth],
        "added": study.added[depth],
        "scores": dict(zip(systems, scores.means()[depth], strict=True)),
        "scores_why": empty,
        "p": {one: tests[one].p if one in tests else None for one in systems},
        "p_corrected": {one: tests[one].p_corrected if one in tests else None for one in systems},
        "why": {one: tests[one].why if one in tests else last for one in systems},
        "unanswered": dict(zip(systems, scores.unanswered[:, depth].tolist(), strict=True)),
        "nested_error": error,
        "nested_error_why": error_why,
        "tau": order.tau if order else None,
        "tau_why": order.why if order else last,
        "survivors": _by_system(study.survivors, depth),
        "change": _by_system(study.changes, depth, why=empty),
    }


def _by_system(
    found: Sequence[DepthTest | ScoreChange], depth: int, **more: str
) -> dict[str, dict[str, Any]]:
    documents = [asdict(one) for one in found if one.depth == depth]
    return {one.pop("system"): one | more for one in documents if one.pop("depth") == depth}


_MARK = "*"


def _headline(study: DepthStudy) -> str:
    """Say what shallow annotation would have left: queries, best score, order."""
    scores, rows = study.scores, study.scores.means()
    best = max(range(len(scores.systems)), key=lambda one: rows[-1][one] or 0.0)
    return write(
        "depths.headline",
        scores=scores,
        system=scores.systems[best],
        start=rows[0][best],
        end=rows[-1][best],
        tau=min((one.tau for one in study.orders if one.tau is not None), default=None),
    )


def _summary(study: DepthStudy) -> tuple[tuple[str, str], ...]:
    """Say who is left, what deeper annotation might show, and whether its model holds so far."""
    check = study.outlook.backtest if study.outlook else None
    figures = [] if check is None else _list_figures(check.predicted, study, check)
    held = [held for _, one, seen in figures if (held := _is_inside(one, seen))]
    return write_facts("depths.summary", study=study, held=held)


def _tables(study: DepthStudy, *, most: int | None = None) -> tuple[Table, ...]:
    """Scores at each depth, the test that fits, and what deeper annotation might show.

    Args:
        study: what was found.
        most: rows of each table behind the scores, and the extrapolation without its check, of
            which the summary has the result; `None` for all.
    """
    more = () if study.outlook is None else _tabulate_outlook(study.outlook, study)
    evidence = [*(more if most is None else more[:1])]
    if len(study.scores.depths) > 1:
        changes = (_change_table(study),) if study.adds_labels else ()
        evidence = [_test_table(study), *changes, *evidence]
    if most is not None:
        evidence = [shorten(table, most) for table in evidence]
    return (_score_table(study), *evidence)


def _score_table(study: DepthStudy) -> Table:
    scores = study.scores
    alpha = 1 - study.options.level
    significant = {
        (test.system, test.depth)
        for test in study.nested
        if test.p_corrected is not None and test.p_corrected < alpha
    }
    with_tau = any(one.tau is not None for one in study.orders)
    taus: dict[int, Cell] = {one.depth: one.tau for one in study.orders}
    rows: list[tuple[Cell, ...]] = []
    for depth, (name, queries, means) in enumerate(
        zip(scores.names, scores.counts, scores.means(), strict=True)
    ):
        cells = [
            f"{_MARK}{mean:.4f}" if (system, depth) in significant else mean
            for system, mean in zip(scores.systems, means, strict=True)
        ]
        # Of the last depth with itself there is no tau: nothing is undefined there
        tau = taus.get(depth, "")
        rows.append((name, queries, study.added[depth], *cells, *([tau] if with_tau else [])))
    missing = [
        (system, row[0], row[-1])
        for system, row in zip(scores.systems, scores.unanswered.tolist(), strict=True)
        if row[-1]
    ]
    tested = any(test.p is not None for test in study.nested)
    return write_table(
        "depths.scores",
        tuple(rows),
        study=study,
        scores=scores,
        options=study.options,
        taus=with_tau,
        shown=SHOWN,
        favoured=SHOWN_IS_FAVOURED,
        tested=tested,
        untested=[] if tested else sorted({test.why for test in study.nested}),
        no_query=NO_QUERY,
        missing=missing,
        no_tau=sorted({one.why for one in study.orders if one.why}) if with_tau else (),
        error=study.nested_error(0)[0],
    )


def _test_table(study: DepthStudy) -> Table:
    shown = attrgetter("system", "difference", "low", "high", "p_corrected")
    rows = tuple((study.scores.names[one.depth], *shown(one)) for one in study.survivors)
    why = sorted({one.why for one in study.survivors if one.why})
    return write_table("depths.left_out", rows, study=study, why=why)


def _change_table(study: DepthStudy) -> Table:
    rows = tuple(
        (
            study.scores.names[one.depth],
            one.system,
            None if one.labels is None or one.queries is None else one.labels + one.queries,
            one.labels,
            one.queries,
        )
        for one in study.changes
    )
    return write_table("depths.changes", rows, study=study)


MOST_LINES = 8
"""Systems that the picture shows at most, the best ones."""


def _title(study: DepthStudy) -> str:
    """Return what the picture shows."""
    shown = min(MOST_LINES, len(study.scores.systems))
    return write("depths.title", study=study, shown=shown, ahead=_ahead(study))


_NAME = 22


def spec(study: DepthStudy) -> Plot:
    """A line for each system, named at its end; extrapolated parts are dashed, in their intervals.

    A filled mark is a depth whose queries differ from those that have a label only deeper.
    """
    scores, last = study.scores, study.scores.means()[-1]
    order = sorted(range(len(last)), key=lambda one: -(last[one] or 0.0))[:MOST_LINES]
    ahead = [(one, pair) for one in order for pair in _expected(study, one)]
    seen = [row[one] for row in scores.means() for one in order]
    names = {float(at): name for at, name in zip(scores.depths, scores.names, strict=True)}
    plot = Plot(
        x=name_axis(
            names | {float(one.depth): str(one.depth) for one in _ahead(study)},
            first=float(scores.depths[-1]),
        ),
        y=score_axis(
            [
                *(score for score in seen if score is not None),
                *(end for _, (_, one) in ahead for end in (one.low, one.high)),
            ]
        ),
        head=str(study.scores.measure),
        foot="depth of annotation",
        height=320,
    )
    for system, (depth, one) in ahead:
        name = f"{scores.systems[system]}, depth {depth}"
        tip = f"{name}, extrapolated: {one.low:.4f} to {one.high:.4f}"
        plot.box((depth - 0.12, depth + 0.12), (one.low, one.high), SOFT, tip)
    for system in order:
        known = [(at, score) for at, score, _ in _seen(study, system)]
        later = [(float(depth), one.value) for depth, one in _expected(study, system)]
        plot.line(known, MUTED)
        plot.line([known[-1], *later], MUTED, dash=True)
        plot.end([*known, *later][-1][1], cut(scores.systems[system], _NAME))
    # Filled ones last, so that no other system's hollow one hides them
    for filled in (False, True):
        for system in order:
            plot.dots(_spots(study, system, filled=filled), "disc" if filled else "circle")
    plot.key("disc", "its queries differ from those with a label only deeper")
    if _ahead(study):
        plot.key("dashed", "extrapolated, with intervals", MUTED)
    if study.of_shown:
        plot.key("!", "shown: labels were chosen from this order, which favours it")
    return plot


def _spots(study: DepthStudy, system: int, *, filled: bool) -> list[tuple[float, float, str]]:
    """The depths of a system that differ from deeper ones significantly, or the others."""
    name, alpha = study.scores.systems[system], 1 - study.options.level
    differ = {
        test.depth
        for test in study.survivors
        if test.system == name and test.p_corrected is not None and test.p_corrected < alpha
    }
    return [
        (at, score, f"{name}, depth {study.scores.names[index]}: {score:.4f}")
        for at, score, index in _seen(study, system)
        if (index in differ) == filled
    ]


def _ahead(study: DepthStudy) -> tuple[extrapolation.Extrapolation, ...]:
    return study.outlook.predicted if study.outlook else ()


def _expected(study: DepthStudy, system: int) -> list[tuple[int, extrapolation.Predicted]]:
    """Depth and score of what is extrapolated; none for a system that has no prediction."""
    pairs = [(ahead.depth, ahead.scores[system]) for ahead in _ahead(study)]
    return [(depth, one) for depth, one in pairs if one is not None]


def _seen(study: DepthStudy, system: int) -> list[tuple[float, float, int]]:
    """Depth, score and place of each depth at which a query has a label."""
    rows = zip(study.scores.depths, study.scores.means(), strict=True)
    return [
        (float(depth), score, index)
        for index, (depth, row) in enumerate(rows)
        if (score := row[system]) is not None
    ]
