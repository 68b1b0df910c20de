"""Depths of annotation as tables and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heldout.errors import plural
from heldout.report.outlook import outlook_facts, outlook_tables, outlook_value
from heldout.report.table import UNDEFINED, Cell, Column, Form, Table
from heldout.survivorship.depth_study import DepthStudy
from heldout.survivorship.depth_tests import DepthTest, nested_error

__all__ = ["facts", "tables", "value"]

_MARK = "*"
_SHOWN = 4
_ENDS: tuple[tuple[str, Form], ...] = (
    ("low", "difference"),
    ("high", "difference"),
    ("corrected", "p"),
)


def facts(study: DepthStudy) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines: who is left, which way scores go, whether the order holds."""
    scores = study.scores
    counts, names = scores.counts, scores.names
    left = f"{counts[0]:,} with a label at depth {names[0]}, {counts[-1]:,} at depth {names[-1]}"
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
    changes = (_change_table(study),) if _adds_labels(study) else ()
    return (_score_table(study), _test_table(study), *changes, *more)


def value(study: DepthStudy) -> dict[str, Any]:
    """The whole result for JSON."""
    question, scores = study.question, study.scores
    more = {} if study.outlook is None else {"outlook": outlook_value(study.outlook, study)}
    return {
        "measure": str(question.measure),
        "systems": list(scores.systems),
        "source": study.source,
        "discarded": study.discarded,
        "first_only": question.first_only,
        "family": question.family,
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
    shared = counts[depth] / counts[-1]
    return {
        "depth": scores.depths[depth],
        "name": scores.names[depth],
        "queries": counts[depth],
        "added": counts[depth] - (counts[depth - 1] if depth else 0),
        "scores": dict(zip(systems, scores.means()[depth], strict=True)),
        "p": {one: tests[one].p if one in tests else None for one in systems},
        "p_corrected": {one: tests[one].p_corrected if one in tests else None for one in systems},
        "why": {one: test.why for one, test in tests.items() if test.why},
        "unanswered": dict(zip(systems, scores.unanswered[:, depth].tolist(), strict=True)),
        "nested_error": nested_error(shared) if 0 < shared < 1 else None,
        "tau": order.tau if order else None,
        "tau_why": order.why if order else "",
        "survivors": _tests_value(study.survivors, depth),
        "steps": _tests_value(study.steps, depth),
        "change": {
            one.system: {"labels": one.labels, "queries": one.queries}
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


def _directions(study: DepthStudy) -> Iterator[str]:
    """What a score is at the first depth and at the last, for the best systems."""
    scores = study.scores
    rows = scores.means()
    order = sorted(range(len(scores.systems)), key=lambda one: -(rows[-1][one] or 0.0))
    for system in order[:_SHOWN]:
        first, last = rows[0][system], rows[-1][system]
        start = "undefined" if first is None else f"{first:.4f}"
        told = f"{scores.systems[system]}: {study.question.measure} {start} at depth "
        yield f"{told}{scores.names[0]}, {last or 0.0:.4f} at depth {scores.names[-1]}"
    if len(order) > _SHOWN:
        yield f"and {plural(len(order) - _SHOWN, 'more system')}, below"


def _order(study: DepthStudy) -> str:
    known = [(one.tau, one.depth) for one in study.orders if one.tau is not None]
    if not known:
        why = next((one.why for one in study.orders), "there is one depth alone")
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
    taus = {one.depth: one.tau for one in study.orders}
    rows: list[tuple[Cell, ...]] = []
    for depth, (name, queries, means) in enumerate(
        zip(scores.names, scores.counts, scores.means(), strict=True)
    ):
        added = queries - (scores.counts[depth - 1] if depth else 0)
        cells = [
            f"{_MARK}{mean:.4f}" if (system, depth) in significant else mean
            for system, mean in zip(scores.systems, means, strict=True)
        ]
        rows.append((name, queries, added, *cells, *([taus.get(depth)] if with_tau else [])))
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
    question, scores = study.question, study.scores
    alpha = 1 - question.level
    if len(scores.depths) > 1:
        kind = "Student" if question.variances == "student" else "Welch"
        yield (
            f"{_MARK}: differs from the last depth, unpaired t ({kind}) as in the paper, "
            f"p < {alpha:.2g} {_say_family(study)}"
        )
        shared = scores.counts[0] / scores.counts[-1]
        if 0 < shared < 1:
            error = nested_error(shared, alpha=alpha)
            yield (
                "the last depth holds the queries of all others, so this test is very "
                f"conservative: where depth means nothing, an uncorrected p is below {alpha:.2g} "
                f"in {error:.2%} of samples at depth {scores.names[0]}, and in fewer at each "
                "deeper one; the test that fits stands below"
            )
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
    if len(scores.systems) > 1 and study.orders and study.orders[0].tau is not None:
        yield "tau: Kendall's tau-b of the systems at this depth and at the last"


def _say_family(study: DepthStudy) -> str:
    depths, systems = len(study.scores.depths) - 1, len(study.scores.systems)
    family = study.question.family
    if isinstance(family, int):
        return f"by Bonferroni over {plural(family, 'test')}"
    return {
        "systems": f"by Bonferroni over the {plural(depths, 'depth')} of a system",
        "depths": f"by Bonferroni over the {plural(systems, 'system')} of a depth",
        "all": f"by Bonferroni over all {plural(depths * systems, 'test')}",
        "none": "without a correction",
    }[family]


def _test_table(study: DepthStudy) -> Table:
    tests = list(zip(study.survivors, study.steps, strict=True))
    why = sorted({one.why for pair in tests for one in pair if one.why})
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
        notes=(*_test_notes(study), *(f"{UNDEFINED}: {one}" for one in why)),
    )


def _test_notes(study: DepthStudy) -> Iterator[str]:
    yield (
        f"left out: {study.question.measure} of queries that have a label only deeper, less that "
        "of queries with a label at the depth; next depth: of those that it adds, less the same. "
        "Both sides with all labels"
    )
    if _adds_labels(study):
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


def _told(one: DepthTest) -> tuple[Cell, ...]:
    return one.difference, one.low, one.high, one.p_corrected


def _adds_labels(study: DepthStudy) -> bool:
    """Whether more labels of the same queries change a score."""
    return any(one.labels for one in study.changes)


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
