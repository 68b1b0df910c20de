"""Depths of annotation, and what deeper annotation might show, as tables and JSON."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heldout.answers.table import UNDEFINED, Cell, Column, Form, Table
from heldout.errors import plural
from heldout.survivorship.depths.extrapolation import Backtest, Outlook, Predicted
from heldout.survivorship.depths.scores import SHOWN, SHOWN_IS_FAVOURED
from heldout.survivorship.depths.study import NO_QUERY, DepthStudy
from heldout.survivorship.depths.tests import DepthTest

_FAR = 2
_CONSTANT = "all its scores are the same: nothing tells how they would vary"
_DASH = f"{UNDEFINED}: {_CONSTANT}"


def outlook_facts(outlook: Outlook) -> list[tuple[str, str]]:
    """What is expected at the deepest depth, and whether the model held where it can be seen."""
    if outlook.why:
        return [("deeper", f"not extrapolated: {outlook.why}")]
    last = outlook.predicted[-1]
    told = [
        (
            "deeper",
            f"extrapolated to depth {last.depth}: {_say_count(last.queries)} queries with a label",
        )
    ]
    check = outlook.backtest
    if check is not None:
        held, figures = _held(check)
        told.append(
            (
                "",
                (
                    f"the same model, fitted to depths 1 to {check.fitted}, has {held} of the "
                    f"{plural(figures, 'figure')} of depth {check.predicted.depth} in its "
                    "intervals"
                ),
            )
        )
    return told


def outlook_tables(outlook: Outlook, study: DepthStudy) -> tuple[Table, ...]:
    """The extrapolation, and how the same model does within what was seen."""
    if outlook.why:
        return ()
    measure, systems = str(study.question.measure), study.scores.systems
    rows: list[tuple[Cell, ...]] = []
    for one in outlook.predicted:
        rows.append((f"{one.depth}", "queries", *_counts(one.queries)))
        rows += [
            (f"{one.depth}", f"{measure} {system}", *_ends(found))
            for system, found in zip(systems, one.scores, strict=True)
        ]
    ahead = Table(
        title="Extrapolated: what these queries would show if annotated deeper",
        columns=(
            Column(name="depth"),
            Column(name="figure"),
            Column(name="expected", form="score"),
            Column(name="low", form="score"),
            Column(name="high", form="score"),
        ),
        rows=tuple(rows),
        notes=(
            *_warnings(outlook, study),
            (
                "an extrapolation, not a measurement: the chance that a query without a label "
                "gets one at the next place, and what those queries add to a score, carried on as "
                "lines in the logarithm of the place"
            ),
            (
                f"low, high: {study.question.level:.0%}, from {study.question.trials:,} draws of "
                "queries, the scatter of places about the lines, and the chance of the queries to "
                "come; not from an error of the model"
            ),
            *([_DASH] if None in outlook.predicted[-1].scores else []),
        ),
    )
    if outlook.backtest is None:
        return (ahead,)
    return (ahead, _check_table(outlook.backtest, measure, systems))


def outlook_value(outlook: Outlook, study: DepthStudy) -> dict[str, Any]:
    """The same for JSON."""
    systems = study.scores.systems
    check = outlook.backtest
    return {
        "why": outlook.why,
        "model": "logit of the hazard, and score added per query added, linear in log place",
        "trials": study.question.trials,
        "warnings": _warnings(outlook, study),
        "depths": [
            {
                "depth": one.depth,
                "queries": _value(one.queries),
                "scores": dict(zip(systems, map(_value, one.scores), strict=True)),
            }
            for one in outlook.predicted
        ],
        "backtest_why": outlook.backtest_why,
        "backtest": None
        if check is None
        else {
            "fitted": check.fitted,
            "depth": check.predicted.depth,
            "queries": _value(check.predicted.queries) | {"observed": check.queries},
            "scores": {
                system: _value(found) | {"observed": seen}
                for system, found, seen in zip(
                    systems, check.predicted.scores, check.scores, strict=True
                )
            },
        },
    }


def _check_table(check: Backtest, measure: str, systems: Sequence[str]) -> Table:
    counts = _counts(check.predicted.queries)
    found = [
        (f"{measure} {system}", one, seen)
        for system, one, seen in zip(systems, check.predicted.scores, check.scores, strict=True)
    ]
    return Table(
        title=f"The same model fitted to depths 1 to {check.fitted}, at depth "
        f"{check.predicted.depth}, which is known",
        columns=(
            Column(name="figure"),
            Column(name="observed", form="score"),
            Column(name="expected", form="score"),
            Column(name="low", form="score"),
            Column(name="high", form="score"),
            Column(name="inside"),
        ),
        rows=(
            (
                "queries",
                f"{check.queries:,}",
                *counts,
                _inside_count(check),
            ),
            *(
                (name, seen, *_ends(one), None if one is None else _say(_inside(one, seen)))
                for name, one, seen in found
            ),
        ),
        notes=(
            "what is outside here shows an error of the model that no interval holds",
            *([_DASH] if None in check.predicted.scores else []),
        ),
    )


def _warnings(outlook: Outlook, study: DepthStudy) -> list[str]:
    """What is said of depths far beyond those that were seen."""
    last = study.scores.depths[-1]
    if not outlook.predicted or outlook.predicted[-1].depth <= _FAR * last:
        return []
    return [
        (
            f"depth {outlook.predicted[-1].depth} is more than {_FAR} times as deep as anybody "
            "looked: nothing here tells whether the lines stay lines so far, and no interval holds "
            "that"
        )
    ]


def _held(check: Backtest) -> tuple[int, int]:
    """Figures inside their intervals, of how many."""
    pairs = zip(check.predicted.scores, check.scores, strict=True)
    inside = [
        _inside(check.predicted.queries, check.queries),
        *(_inside(one, seen) for one, seen in pairs if one is not None),
    ]
    return sum(inside), len(inside)


def _inside(found: Predicted, seen: float) -> bool:
    return found.low <= seen <= found.high


def _inside_count(check: Backtest) -> str:
    return _say(_inside(check.predicted.queries, check.queries))


def _say(inside: bool) -> str:  # noqa: FBT001 - the answer itself
    return "yes" if inside else "no"


def _counts(found: Predicted) -> tuple[str, str, str]:
    """Whole queries among scores."""
    return f"{found.value:,.0f}", f"{found.low:,.0f}", f"{found.high:,.0f}"


def _say_count(found: Predicted) -> str:
    value, low, high = _counts(found)
    return f"{value} ({low} to {high})"


def _ends(found: Predicted | None) -> tuple[Cell, Cell, Cell]:
    return (None, None, None) if found is None else (found.value, found.low, found.high)


def _value(found: Predicted | None) -> dict[str, Any]:
    value, low, high = _ends(found)
    return {"value": value, "low": low, "high": high, "why": _CONSTANT if found is None else ""}


_UNTOLD = "the source leaves out discarded queries"


def value(study: DepthStudy) -> dict[str, Any]:
    """The whole result for JSON."""
    question, scores = study.question, study.scores
    more = {} if study.outlook is None else {"outlook": outlook_value(study.outlook, study)}
    return {
        "measure": str(question.measure),
        "systems": list(scores.systems),
        "runs": "order shown" if study.of_shown else "run files",
        "warnings": [SHOWN_IS_FAVOURED] if study.of_shown else [],
        "source": study.source,
        "discarded": study.discarded,
        "discarded_why": _UNTOLD if study.discarded is None else "",
        "first_only": question.first_only,
        "family": question.family,
        "family_size": study.family_size,
        "variances": question.variances,
        "level": question.level,
        "depths": [_depth_value(study, depth) for depth in range(len(scores.depths))],
        **more,
    }


def _depth_value(study: DepthStudy, depth: int) -> dict[str, Any]:
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
        "survivors": _tests_value(study.survivors, depth),
        "steps": _tests_value(study.steps, depth),
        "change": {
            one.system: {"labels": one.labels, "queries": one.queries, "why": empty}
            for one in study.changes
            if one.depth == depth
        },
    }


def _tests_value(tests: Sequence[DepthTest], depth: int) -> Mapping[str, Any]:
    return {
        one.system: {
            "queries": one.queries,
            "others": one.others,
            "difference": one.difference,
            "low": one.low,
            "high": one.high,
            "p": one.p,
            "p_corrected": one.p_corrected,
            "why": one.why,
        }
        for one in tests
        if one.depth == depth
    }


_MARK = "*"
_MOST_TOLD = 4
_LEAST_SHARE = 1e-4
_ENDS: tuple[tuple[str, Form], ...] = (
    ("low", "difference"),
    ("high", "difference"),
    ("corrected", "p"),
)


def facts(study: DepthStudy) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who is left, which way scores go, whether the order holds."""
    scores = study.scores
    counts, names = scores.counts, scores.names
    left = f"{counts[0]:,} with a label at depth {names[0]}"
    if len(counts) > 1:
        left += f", {counts[-1]:,} at depth {names[-1]}"
    if study.discarded is not None:
        annotated = counts[-1] + study.discarded
        left += f"; {study.discarded:,} of {annotated:,} annotated ones have none"
    lines = [("queries", left)]
    lines += [("" if place else "scores", text) for place, text in enumerate(_directions(study))]
    lines.append(("order", _order(study)))
    if study.outlook is not None:
        lines += outlook_facts(study.outlook)
    return tuple(lines)


def tables(study: DepthStudy) -> tuple[Table, ...]:
    """Scores at each depth, the test that fits, and what deeper annotation might show."""
    more = () if study.outlook is None else outlook_tables(study.outlook, study)
    if len(study.scores.depths) == 1:
        return (_score_table(study), *more)
    changes = (_change_table(study),) if study.adds_labels else ()
    return (_score_table(study), _test_table(study), *changes, *more)


def _directions(study: DepthStudy) -> Iterator[str]:
    """What a score is at the first depth and at the last, for the best systems."""
    scores = study.scores
    rows = scores.means()
    order = sorted(range(len(scores.systems)), key=lambda one: -(rows[-1][one] or 0.0))
    for system in order[:_MOST_TOLD]:
        first, last = rows[0][system], rows[-1][system]
        start = "undefined" if first is None else f"{first:.4f}"
        told = f"{scores.systems[system]}: {study.question.measure} {start} at depth "
        told += scores.names[0]
        if len(scores.depths) > 1:
            told += f", {last or 0.0:.4f} at depth {scores.names[-1]}"
        yield told
    if len(order) > _MOST_TOLD:
        yield f"and {plural(len(order) - _MOST_TOLD, 'more system')}, below"


def _order(study: DepthStudy) -> str:
    known = [(one.tau, one.depth) for one in study.orders if one.tau is not None]
    if not known:
        why = next((one.why for one in study.orders), study.why_last)
        return f"not compared: {why}"
    low, depth = min(known)
    least = f"Kendall's tau with the order on all labels is {low:.3f} or more"
    if low < 1:
        return f"{least}, the least at depth {study.scores.names[depth]}"
    return f"the same {plural(len(study.scores.systems), 'system')} in the same order at each depth"


def _score_table(study: DepthStudy) -> Table:
    scores = study.scores
    alpha = 1 - study.question.level
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
        title=f"{study.question.measure} on the labels of each depth of annotation"
        + (", the first label of a query alone" if study.question.first_only else ""),
        columns=(
            Column(name="depth"),
            Column(name="queries", form="count"),
            Column(name="added", form="count"),
            *(Column(name=system, form="score") for system in scores.systems),
            *([Column(name="tau", form="score", decimals=3)] if with_tau else []),
        ),
        rows=tuple(rows),
        notes=tuple(_score_notes(study)),
    )


def _score_notes(study: DepthStudy) -> Iterator[str]:
    scores = study.scores
    if study.of_shown:
        yield f"`{SHOWN}`: {SHOWN_IS_FAVOURED}"
    if len(scores.depths) > 1:
        yield from _star_notes(study)
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
        yield "tau: Kendall's tau-b of the systems at this depth and at the last"
        whys = sorted({one.why for one in study.orders if one.why})
        yield from (f"{UNDEFINED} for tau: {why}" for why in whys)


def _star_notes(study: DepthStudy) -> Iterator[str]:
    """What the star means, and what it is worth."""
    question, scores = study.question, study.scores
    alpha = 1 - question.level
    if all(test.p is None for test in study.nested):
        whys = sorted({test.why for test in study.nested})
        yield f"nothing is tested against the last depth: {'; '.join(whys)}"
        return
    kind = "Student" if question.variances == "student" else "Welch"
    yield (
        f"{_MARK}: differs from the last depth, unpaired t ({kind}) as in the paper, "
        f"p < {alpha:.2g} {_say_family(study)}"
    )
    error, _ = study.nested_error(0)
    if study.adds_labels:
        yield (
            "queries here have several labels; the star may mean these, and not other queries: "
            "see the table of what makes scores differ"
        )
    elif error is not None:
        yield (
            "the last depth holds the queries of all others, so this test is very "
            f"conservative: where depth means nothing, an uncorrected p is below {alpha:.2g} "
            f"in {_share(error)} of samples at depth {scores.names[0]}, and in fewer at each "
            "deeper one; the test that fits stands below"
        )


def _share(error: float) -> str:
    return f"{error:.2%}" if error >= _LEAST_SHARE else f"fewer than {_LEAST_SHARE:.2%}"


def _say_family(study: DepthStudy) -> str:
    family, size = study.question.family, study.family_size
    if family == "none" or size == 1:
        return "without a correction" + ("" if family == "none" else ": it is one test")
    if isinstance(family, int):
        return f"by Bonferroni over {size:,} tests"
    return {
        "systems": f"by Bonferroni over the {size:,} depths of a system",
        "depths": f"by Bonferroni over the {size:,} systems of a depth",
        "all": f"by Bonferroni over all {size:,} tests",
    }[family]


def _test_table(study: DepthStudy) -> Table:
    tests = list(zip(study.survivors, study.steps, strict=True))
    return Table(
        title="Do the queries that a depth leaves out differ from those that it has?",
        columns=(
            Column(name="depth"),
            Column(name="system"),
            Column(name="left out", form="difference"),
            *(Column(name=name, form=form) for name, form in _ENDS),
            Column(name="next depth", form="difference"),
            *(Column(name=name, form=form) for name, form in _ENDS),
        ),
        rows=tuple(
            (study.scores.names[out.depth], out.system, *_told(out), *_told(step))
            for out, step in tests
        ),
        notes=(
            *_test_notes(study),
            *_dashes(study, "left out", study.survivors),
            *_dashes(study, "next depth", study.steps),
        ),
    )


def _test_notes(study: DepthStudy) -> Iterator[str]:
    yield (
        f"left out: {study.question.measure} of queries that have a label only deeper, less that "
        "of queries with a label at the depth; next depth: of those that it adds, less the same. "
        "Both sides with all labels"
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
        f"{study.question.level:.0%} intervals; corrected {_say_family(study)}"
    )


def _dashes(study: DepthStudy, column: str, tests: Sequence[DepthTest]) -> Iterator[str]:
    """Why there are dashes in a column, and in which rows."""
    systems: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
    for one in tests:
        if one.why:
            systems[one.depth, one.why].append(one.system)
    depths: defaultdict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for (depth, why), names in systems.items():
        depths[why, tuple(names)].append(study.scores.names[depth])
    for (why, those), where in depths.items():
        of = "" if len(those) == len(study.scores.systems) else f" of {', '.join(those)}"
        yield f"{UNDEFINED} in {column} at depth {', '.join(where)}{of}: {why}"


def _told(one: DepthTest) -> tuple[Cell, ...]:
    return one.difference, one.low, one.high, one.p_corrected


def _change_table(study: DepthStudy) -> Table:
    return Table(
        title=f"What makes {study.question.measure} at the last depth differ from that at each",
        columns=(
            Column(name="depth"),
            Column(name="system"),
            Column(name="all", form="difference"),
            Column(name="by more labels", form="difference"),
            Column(name="by other queries", form="difference"),
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
