"""A review on one screen: what a person decides by."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from heldout.board.log.manifest import Manifest
from heldout.board.policy.table import Finding
from heldout.board.rules.release import release_score
from heldout.board.rules.spec import BoardSpec
from heldout.cli.console import Console
from heldout.cli.printing import ago, plural, print_facts, print_problems, problem_json
from heldout.cli.scores import say_true
from heldout.errors import quote
from heldout.pipeline.deciding.review import Review
from heldout.pipeline.scoring.score import ViewScore
from heldout.pipeline.scoring.score_files import RunReport

__all__ = ["print_review", "review_json", "waited"]


def print_review(
    console: Console,
    result: Review,
    scores: Mapping[str, ViewScore] | None,
    spec: BoardSpec,
    *,
    now: datetime,
) -> None:
    """Print a review.

    Args:
        console: where to.
        result: the review.
        scores: the true scores where they were asked for, else `None`.
        spec: the board's rules.
        now: the moment, for how long it waits.
    """
    submission = result.submission
    since = submission.waits_since
    waits = "" if since is None else f", waiting: {waited(now - since)}"
    before = "   (opened before)" if result.done_before else ""
    print_facts(
        console,
        [
            ("id", f"{submission.id}{before}"),
            ("arrived", f"{submission.received:%d %b %Y %H:%M} UTC{waits}"),
            ("status", submission.status),
            *_who(result),
            *_amended(result),
            *[("runs", _run_line(name, run)) for name, run in result.scores.runs.items()],
            ("", ""),
        ],
    )
    print_problems(console, result.scores.metadata_problems)
    for run in result.scores.runs.values():
        print_problems(console, run.problems, counts=run.counts)
    print_facts(console, [_finding_line(finding) for finding in result.findings])
    if not result.findings:
        print_facts(console, [("findings", "none")])
    if result.lost:
        told = f"not compared with {', '.join(result.lost)}: its files in the vault are damaged"
        print_facts(console, [("note", told)])
    print_facts(console, [("", ""), *_score_lines(result, scores, spec), *_next(result)])


def waited(span: timedelta) -> str:
    """How long something waits: `3 hours`, or `just now`."""
    return "just now" if span < timedelta(minutes=1) else ago(span)


def review_json(
    result: Review, scores: Mapping[str, ViewScore] | None, spec: BoardSpec
) -> dict[str, Any]:
    """A review as JSON; scores with the released digits, and only where they were asked for."""
    shown = None
    if scores is not None:
        shown = {
            name: float(release_score(score.mean, decimals=spec.decimals))
            for name, score in scores.items()
        }
    return {
        "id": result.submission.id,
        "status": result.submission.status,
        "received": result.submission.received.isoformat(),
        "findings": [
            {"rule": f.rule, "severity": f.severity, "evidence": f.evidence}
            for f in result.findings
        ],
        "problems": {
            name: [problem_json(problem) for problem in run.problems]
            for name, run in result.scores.runs.items()
        },
        "amendments": [
            {"at": a.at.isoformat(), "field": a.field, "before": a.before, "after": a.after}
            for a in result.amendments
        ],
        "proposed": [
            {"field": a.field, "before": a.before, "after": a.after} for a in result.proposed
        ],
        "scores": shown,
        "open_runs": None if result.manifest is None else result.manifest.open_runs,
        "lost": list(result.lost),
        "done_before": result.done_before,
    }


_OPEN_RUNS: Mapping[bool | None, str] = {
    True: "yes: the team agrees that they are opened at the board's end",
    False: "no",
    None: "not said, which is no",
}


def _who(result: Review) -> list[tuple[str, str]]:
    manifest, quota = result.manifest, result.quota
    if manifest is None or quota is None:
        return []
    until = manifest.embargo_until
    embargo = "no embargo" if until is None else f"embargo until {until:%d %b %Y}"
    team = ", ".join(name for name in (manifest.institution, manifest.team) if name)
    used = f"{len(quota.used)} of {quota.limit} in its window"
    links = [link for link in (manifest.paper, manifest.code) if link]
    return [
        ("team", f"{team}; {used}"),
        ("system", f"{manifest.description}; {manifest.type}; {embargo}"),
        *[("link", link) for link in links],
        ("trained", manifest.training_data or "not said"),
        ("open runs", _OPEN_RUNS[manifest.open_runs]),
        *_costs(manifest),
    ]


def _costs(manifest: Manifest) -> list[tuple[str, str]]:
    """What the team says that its system costs."""
    stated = msgspec.to_builtins(manifest.efficiency) if manifest.efficiency is not None else {}
    words = [f"{name} {value}" for name, value in stated.items() if value not in (None, "")]
    return [("cost", ", ".join(words))] if words else []


def _amended(result: Review) -> list[tuple[str, str]]:
    """What the team changed, a line for each field."""
    return [
        (word, f"{a.at:%d %b %Y}, {a.field}: {quote(a.before)} -> {quote(a.after)}")
        for word, amendments in (("changed", result.amendments), ("asks for", result.proposed))
        for a in amendments
    ]


def _run_line(name: str, run: RunReport) -> str:
    odd = [
        (run.queries_tied, "with ties"),
        (run.queries_displaced, "whose ranks and scores disagree"),
    ]
    notes = "".join(f"; {plural(count, 'query', 'queries')} {what}" for count, what in odd if count)
    return (
        f"{name}: {plural(run.queries, 'query', 'queries')}, "
        f"{plural(run.documents, 'document')}{notes}"
    )


def _finding_line(finding: Finding) -> tuple[str, str]:
    return (finding.severity, f"{finding.rule}: {finding.evidence}")


def _score_lines(
    result: Review, scores: Mapping[str, ViewScore] | None, spec: BoardSpec
) -> list[tuple[str, str]]:
    if not result.scores.views:
        return [("score", "none: it could not be scored")]
    if scores is None and result.submission.status == "published":
        return [("score", "published with the entry; what is proposed changes none")]
    if scores is None:
        return [("score", "computed, hidden while you judge by the rules (--score shows it)")]
    return [
        (
            "score",
            _score_line(name, score, spec),
        )
        for name, score in scores.items()
    ]


def _score_line(name: str, score: ViewScore, spec: BoardSpec) -> str:
    return (
        f"{name} {score.measure} {say_true(score, decimals=spec.decimals)}, "
        f"n = {score.n:,}, {score.unanswered:,} unanswered, "
        f"{score.without_relevant:,} without a relevant document{_say_groups(score)}"
    )


def _say_groups(score: ViewScore) -> str:
    """Which groups of queries a summary is of: the worst, or the best and the worst."""
    return f"; {' over '.join(map(quote, score.groups))}" if score.groups else ""


def _next(result: Review) -> list[tuple[str, str]]:
    if result.submission.waits_since is None:
        return []
    name = result.submission.id
    reason = ' --why "…"' if result.needs_reason else ""
    publish = [] if result.stands_against else [("next", f"heldout publish {name}{reason}")]
    rest = [f'heldout reject {name} --why "…"']
    rest += [f'heldout ask {name} "…"'] if result.submission.pending else []
    lines = [*publish, *[("", line) for line in rest]]
    return [("", ""), ("next", lines[0][1]), *lines[1:]]
