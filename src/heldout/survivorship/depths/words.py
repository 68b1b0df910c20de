"""Depths of annotation, and what deeper annotation might show: words, tables, JSON, a picture."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from heldout.answers.answer import Answer
from heldout.answers.sentence import name_one
from heldout.answers.table import UNDEFINED, Cell, Column, Table, columns, shorten
from heldout.charts.axes import name_axis, score_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import MUTED, SOFT, cut
from heldout.errors import plural
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
_DASH = f"{UNDEFINED}: {_CONSTANT}"


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


def _summarise_outlook(outlook: extrapolation.Outlook, study: DepthStudy) -> list[tuple[str, str]]:
    """Say what is expected at the deepest depth, and whether the model held where it is known."""
    if outlook.why:
        return [("deeper", f"not extrapolated: {outlook.why}")]
    last = outlook.predicted[-1]
    expected, low, high = _say_ends("queries", last.queries)
    text = f"depth {last.depth}: {expected} ({low} to {high}) queries with a label"
    lines = [("deeper", f"extrapolated to {text}")]
    check = outlook.backtest
    if check is not None:
        figures = _list_figures(check.predicted, study, check)
        inside = [held for _, one, seen in figures if (held := _is_inside(one, seen))]
        text = (
            f"the same model, fitted to depths 1 to {check.fitted}, has {inside.count('yes')} of "
            f"the {plural(len(inside), 'figure')} of depth {check.predicted.depth} in its intervals"
        )
        lines.append(("", text))
    return lines


def _tabulate_outlook(outlook: extrapolation.Outlook, study: DepthStudy) -> tuple[Table, ...]:
    """The extrapolation, and how the same model does within what was seen."""
    if outlook.why:
        return ()
    options, check = study.options, outlook.backtest
    ends = columns("score", "expected", "low", "high")
    ahead = Table(
        title="Extrapolated: what these queries would show if annotated deeper",
        columns=(*columns("text", "depth", "figure"), *ends),
        rows=tuple(
            (f"{one.depth}", name, *_say_ends(name, found))
            for one in outlook.predicted
            for name, found, _ in _list_figures(one, study)
        ),
        notes=(
            "an extrapolation, not a measurement",
            *([_DASH] if None in outlook.predicted[-1].scores else []),
        ),
        method=(
            (
                "the chance that a query without a label "
                "gets one at the next place, and what those queries add to a score, carried on as "
                "lines in the logarithm of the place"
            ),
            (
                f"low, high: {options.level:.0%}, from {options.trials:,} draws of queries, the "
                "scatter of places about the lines, and the chance of the queries to come; not "
                "from an error of the model"
            ),
        ),
    )
    if check is None:
        return (ahead,)
    known = Table(
        title=f"The same model fitted to depths 1 to {check.fitted}, at depth "
        f"{check.predicted.depth}, which is known",
        columns=(
            Column(name="figure"),
            *columns("score", "observed"),
            *ends,
            Column(name="inside"),
        ),
        rows=tuple(
            (
                *(name, f"{seen:,.0f}" if name == "queries" else seen),
                *(*_say_ends(name, found), _is_inside(found, seen)),
            )
            for name, found, seen in _list_figures(check.predicted, study, check)
        ),
        notes=(
            "what is outside here shows an error of the model that no interval holds",
            *([_DASH] if None in check.predicted.scores else []),
        ),
    )
    return (ahead, known)


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
_LEAST_SHARE = 1e-4


def _headline(study: DepthStudy) -> str:
    """Say what shallow annotation would have left: queries, best score, order."""
    scores = study.scores
    first, last = scores.names[0], scores.names[-1]
    if len(scores.depths) == 1:
        return f"{plural(scores.counts[-1], 'query has', 'queries have')} a label at depth {last}."
    rows = scores.means()
    best = max(range(len(scores.systems)), key=lambda one: rows[-1][one] or 0.0)
    start, end = rows[0][best], rows[-1][best]
    system = name_one(scores.systems[best])
    known = [one.tau for one in study.orders if one.tau is not None]
    order = ""
    if known:
        order = f"; the order of systems has a tau of {min(known):.3f} or more"
        if min(known) >= 1:
            order = "; the order of systems stays"
    left = f"At depth {first} {scores.counts[0]:,} of {scores.counts[-1]:,} queries have a label"
    if start is None or end is None:
        return f"{left}, so {study.scores.measure} of {system} is undefined there{order}."
    return (
        f"{left}, and {study.scores.measure} of {system} is {start:.4f} against {end:.4f} at "
        f"depth {last}{order}."
    )


def _summary(study: DepthStudy) -> tuple[tuple[str, str], ...]:
    """Say who is left, and what deeper annotation might show."""
    scores = study.scores
    counts, names = scores.counts, scores.names
    left = f"{counts[0]:,} with a label at depth {names[0]}"
    if len(counts) > 1:
        left += f", {counts[-1]:,} at depth {names[-1]}"
    if study.discarded is not None:
        annotated = counts[-1] + study.discarded
        left += f"; {study.discarded:,} of {annotated:,} annotated ones have none"
    more = [] if study.outlook is None else _summarise_outlook(study.outlook, study)
    return (("queries", left), *more)


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
    return Table(
        title=f"{study.scores.measure} on the labels of each depth of annotation"
        + (", the first label of a query alone" if study.options.first_only else ""),
        columns=(
            Column(name="depth"),
            *columns("count", "queries", "added"),
            *columns("score", *scores.systems),
            *(columns("score", "tau", decimals=3) if with_tau else ()),
        ),
        rows=tuple(rows),
        notes=tuple(_score_notes(study)),
        method=tuple(_score_method(study)),
    )


def _score_notes(study: DepthStudy) -> Iterator[str]:
    scores = study.scores
    if study.of_shown:
        yield f"`{SHOWN}`: {SHOWN_IS_FAVOURED}"
    if len(scores.depths) > 1:
        yield _star_note(study)
    if not scores.counts[0]:
        yield f"{UNDEFINED}: {NO_QUERY}"
    missing = [
        f"{system} {row[0]:,} at depth {scores.names[0]}, {row[-1]:,} at depth {scores.names[-1]}"
        for system, row in zip(scores.systems, scores.unanswered.tolist(), strict=True)
        if row[-1]
    ]
    if missing:
        yield (
            f"queries that a run does not answer score 0 and count: {'; '.join(missing)}. Left "
            "out, the numbers of queries would be smaller by so many"
        )
    if any(one.tau is not None for one in study.orders):
        for why in sorted({one.why for one in study.orders if one.why}):
            yield f"{UNDEFINED} for tau: {why}"


def _score_method(study: DepthStudy) -> Iterator[str]:
    """Say what the star is worth, and what tau compares."""
    scores, alpha = study.scores, 1 - study.options.level
    error, _ = study.nested_error(0)
    if study.adds_labels and any(test.p is not None for test in study.nested):
        yield (
            "queries here have several labels; the star may mean these, and not other queries: "
            "see the table of what makes scores differ"
        )
    elif error is not None and any(test.p is not None for test in study.nested):
        share = f"{error:.2%}" if error >= _LEAST_SHARE else f"fewer than {_LEAST_SHARE:.2%}"
        yield (
            "the last depth holds the queries of all others, so this test is very "
            f"conservative: where depth means nothing, an uncorrected p is below {alpha:.2g} "
            f"in {share} of samples at depth {scores.names[0]}, and in fewer at each "
            "deeper one; the test that fits stands below"
        )
    if any(one.tau is not None for one in study.orders):
        yield "tau: Kendall's tau-b of the systems at this depth and at the last"


def _star_note(study: DepthStudy) -> str:
    """Say what the star means."""
    if all(test.p is None for test in study.nested):
        whys = sorted({test.why for test in study.nested})
        return f"nothing is tested against the last depth: {'; '.join(whys)}"
    return (
        f"{_MARK}: differs from the last depth, unpaired t (Student) as in the paper, "
        f"p < {1 - study.options.level:.2g} {_say_family(study)}"
    )


def _say_family(study: DepthStudy) -> str:
    if study.compared == 1:
        return "without a correction: it is one test"
    return f"by Bonferroni over the {study.compared:,} depths of a system"


def _test_table(study: DepthStudy) -> Table:
    why = sorted({one.why for one in study.survivors if one.why})
    shown = attrgetter("system", "difference", "low", "high", "p_corrected")
    return Table(
        title="Do the queries that a depth leaves out differ from those that it has?",
        columns=(
            *columns("text", "depth", "system"),
            *columns("difference", "left out", "low", "high"),
            Column(name="corrected", form="p"),
        ),
        rows=tuple((study.scores.names[one.depth], *shown(one)) for one in study.survivors),
        notes=(f"{UNDEFINED}: {'; '.join(why)}",) if why else (),
        method=tuple(_test_method(study)),
    )


def _test_method(study: DepthStudy) -> Iterator[str]:
    yield (
        f"left out: {study.scores.measure} of queries that have a label only deeper, less that "
        "of queries with a label at the depth. Both sides with all labels"
    )
    if study.adds_labels:
        yield (
            "queries of a shallow depth have more labels, and one of many is found sooner; with "
            "--first-only each query has one"
        )
    else:
        yield "deeper depths add queries, and no label to a query that changes its score"
    yield (
        f"two samples without a common query: Welch's t, two-sided, with "
        f"{study.options.level:.0%} intervals; corrected {_say_family(study)}"
    )


def _change_table(study: DepthStudy) -> Table:
    return Table(
        title=f"What makes {study.scores.measure} at the last depth differ from that at each",
        columns=(
            *columns("text", "depth", "system"),
            *columns("difference", "all", "by more labels", "by other queries"),
        ),
        rows=tuple(
            (
                study.scores.names[one.depth],
                one.system,
                None if one.labels is None or one.queries is None else one.labels + one.queries,
                one.labels,
                one.queries,
            )
            for one in study.changes
        ),
        notes=(
            (
                "by more labels: of the queries that have a label at the depth; by other queries: "
                "those that have one only deeper. Both add up to all"
            ),
        ),
    )


MOST_LINES = 8
"""Systems that the picture shows at most, the best ones."""


def _title(study: DepthStudy) -> str:
    """Return what the picture shows."""
    scores = study.scores
    shown = min(MOST_LINES, len(scores.systems))
    which = plural(shown, "system")
    if shown < len(scores.systems):
        which = f"the best {shown} of {len(scores.systems):,} systems"
    return (
        f"{study.scores.measure} of {which} on the labels of each depth of annotation, from "
        f"{scores.names[0]} to {scores.names[-1]}" + (" and extrapolated" if _ahead(study) else "")
    )


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
