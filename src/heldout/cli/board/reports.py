"""What an organiser's commands answer: facts by templates, documents for a program."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from heldout.board.log.final import ExactScores, Final
from heldout.board.organiser import decide, finals, rebuild, review
from heldout.board.rules.changes import difference_facts, held_out_file
from heldout.board.rules.release import INDEPENDENT, release_score
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores import releasing, rescoring
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import NotedRules, Session
from heldout.board.standings.overdue import Overdue
from heldout.board.standings.standings import Row
from heldout.cli.printing import fill_facts
from heldout.errors import plural
from heldout.scoring.shards import Shard

Facts = list[tuple[str, str]]
Scores = Mapping[str, ViewScore] | None

_OF_A_NAME = ("amended", "declined")
"""What `publish` and `reject` do where a published entry's team asks for another name."""


def review_facts(result: review.Review, *, now: datetime) -> Facts:
    """Return what was sent, by whom and when; the problems of its files follow."""
    efficiency = None if result.manifest is None else result.manifest.efficiency
    stated = msgspec.to_builtins(efficiency) or {}
    costs = [f"{name} {value}" for name, value in stated.items() if value not in (None, "")]
    return fill_facts(
        "reviewed", result=result, now=now, waited=waited, costs=costs, shell=shlex.join
    )


def verdict_facts(result: review.Review, scores: Scores, spec: BoardSpec) -> Facts:
    """Return the findings, the scores where they were asked for, and what to call next."""
    return fill_facts(
        "judged", result=result, scores=scores, spec=spec, describe_true=releasing.describe_true
    )


def waited(span: timedelta) -> str:
    """Return how long something waits: `3 hours`, or `just now`."""
    if span < timedelta(minutes=1):
        return "just now"
    hours = int(span.total_seconds() // 3600)
    day = 24
    if hours >= 2 * day:
        return plural(hours // day, "day")
    return plural(hours, "hour") if hours else plural(int(span.total_seconds() // 60), "minute")


def review_document(result: review.Review, scores: Scores, spec: BoardSpec) -> dict[str, Any]:
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
        "findings": msgspec.to_builtins(result.findings),
        "problems": {
            name: [asdict(problem) for problem in run.problems]
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


def _list_held_out(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"labels/{held_out_file(name)} in the vault" for name in names)


def rules_facts(rules: NotedRules | None) -> Facts:
    """That an edited board.toml was logged, and what changed in it."""
    return fill_facts("rules_logged", rules=rules, held_out=_list_held_out)


def rebuilt_facts(rebuilt: rebuild.Rebuilt) -> Facts:
    """Say what a rebuild logged, revealed and changed; baselines are no entries."""
    return fill_facts(
        "rebuilt",
        rebuilt=rebuilt,
        rows={row.id: row for row in rebuilt.standings.every},
        differences=difference_facts(rebuilt.differences),
        held_out=_list_held_out,
        ranked=_rank,
        independent=INDEPENDENT,
    )


def overdue_facts(overdue: Sequence[Overdue]) -> Facts:
    """Return what only the vault can open although its day has come, a line each."""
    return fill_facts("overdue", overdue=overdue)


def overdue_document(overdue: Sequence[Overdue]) -> list[dict[str, Any]]:
    """The same for a program."""
    return [{"what": one.what, "since": one.since} for one in overdue]


def rebuilt_document(rebuilt: rebuild.Rebuilt) -> dict[str, Any]:
    """Return what a rebuild did, for a program."""
    return {
        "entries": sum(not row.baseline for row in rebuilt.standings.every),
        "changed": rebuilt.changed,
        "commit": rebuilt.commit,
        "revealed": list(rebuilt.revealed),
        "unlogged": [f"labels/{held_out_file(name)}" for name in rebuilt.unlogged],
        "unknown": list(rebuilt.unknown),
        "due": overdue_document(rebuilt.overdue),
        "seasons": [_end_document(one) for one in rebuilt.ends],
        "changed_rules": None if rebuilt.rules is None else list(rebuilt.rules.keys),
    }


def released_text(row: Row, spec: BoardSpec) -> str:
    """The released scores: the one that ranks, the others beside it.

    Args:
        row: the entry.
        spec: the board's rules; of a board of seasons those of the entry's season count.
    """
    first = spec.on(row.received.date()).primary
    texts = {name: f"{name} {releasing.describe_released(row, name, spec)}" for name in row.scores}
    own = str(row.unranked)
    if texts.pop(first, ""):
        score = releasing.describe_released(row, first, spec)
        own = f"{spec.view(first).measure} {score}, n = {row.counts[first]:,}"
    return own + (f" ({'; '.join(texts.values())})" if texts else "")


def decision_document(decision: decide.Decision) -> dict[str, Any]:
    """A decision for a program."""
    return {
        "id": decision.id,
        "done": decision.done,
        "done_before": decision.done_before,
        "why": decision.why_not,
        "event": decision.event,
        "kind": decision.kind or None,
    }


def decision_facts(session: Session, outcome: decide.Outcome, verb: str) -> Facts:
    """Return what became of some submissions.

    Args:
        session: of the organiser who decided.
        outcome: what became of them.
        verb: what was asked for, in the past tense.
    """
    spec, standings = session.spec(), outcome.rebuilt.standings
    rows = {row.id: row for row in standings.every}
    counted = [row for row in standings.rows if spec.baselines.bar or not row.baseline]
    record = max((Decimal(row.scores[standings.primary]) for row in counted), default=None)
    decided = []
    for one in outcome.decisions:
        done = one.kind if one.kind in _OF_A_NAME else verb
        shown = one.done and done in ("published", "corrected")
        decided.append((one, done, rows.get(one.id) if shown else None))
    return fill_facts(
        "decided",
        decided=decided,
        session=session,
        ahead=outcome.ahead,
        entries=sum(not row.baseline for row in standings.rows),
        record=record,
        is_record=lambda row: Decimal(row.scores[standings.primary]) == record,
        released=lambda row: released_text(row, spec),
    )


def part_facts(found: rescoring.ScoredAhead, shard: Shard, *, entries: int) -> Facts:
    """Say what was scored of a part of a correction, and what is left.

    Args:
        found: of the part.
        shard: which part.
        entries: how many entries all parts have.
    """
    return fill_facts("part", found=found, shard=shard, entries=entries)


def part_document(found: rescoring.ScoredAhead, shard: Shard, *, entries: int) -> dict[str, Any]:
    """The same for a program."""
    return {
        "shard": shard.number,
        "of": shard.of,
        "stored_in": str(found.stored_in),
        "entries": entries,
        "scored": len(found.scored) + len(found.before),
        "stored_before": len(found.before),
        "left": found.left,
        "failed": [
            {"id": name, "problems": [asdict(one) for one in problems]}
            for name, problems in found.failed.items()
        ],
    }


def final_facts(known: Final, event: int | None) -> Facts:
    """The finalists, and where the final is opened their scores and who wins."""
    return fill_facts("final", known=known, event=event, ranked=_rank, independent=INDEPENDENT)


def _rank(opened: ExactScores) -> list[tuple[str, str]]:
    """List entries and scores, the highest first."""
    return sorted(opened.scores.items(), key=lambda one: -float(one[1]))


def _end_document(one: finals.EndStep) -> dict[str, Any]:
    """A season that ended, or waits, for a program."""
    if one.end is None:
        return {"season": one.season, "waits": one.waits}
    opened = one.end.opened
    about = {"event": opened.event, "view": one.end.view, "named": list(one.end.named)}
    return {"season": one.season, **about, **_score_document(opened)}


def final_document(known: Final) -> dict[str, Any]:
    """The final for a program."""
    opened = known.opened
    document: dict[str, Any] = {"view": known.view, "finalists": list(known.finalists)}
    if opened is None:
        return document
    won = {"best": opened.best, "below": list(opened.below), "winner": opened.winner}
    return {**document, **_score_document(opened), **won}


def _score_document(opened: ExactScores) -> dict[str, Any]:
    return {"scores": dict(opened.scores), "queries": opened.queries, "luck": opened.luck or None}
