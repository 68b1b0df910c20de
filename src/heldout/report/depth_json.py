"""Depths of annotation as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from heldout.report.outlook import outlook_value
from heldout.survivorship.depths.depth_study import NO_QUERY, DepthStudy
from heldout.survivorship.depths.depth_tests import DepthTest
from heldout.survivorship.depths.shown import SHOWN_IS_FAVOURED

__all__ = ["value"]

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
