"""What an organiser's steps answer: lines for a person, documents for a program."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from heldout.board.log.final import ExactScores, Final
from heldout.board.log.manifest import Program
from heldout.board.organiser.decide import Decision
from heldout.board.organiser.finals import EndStep
from heldout.board.organiser.rebuild import Rebuilt
from heldout.board.organiser.review import Review
from heldout.board.rules.changes import difference_facts, held_out_file
from heldout.board.rules.release import INDEPENDENT, release_score
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.releasing import describe_released, describe_true
from heldout.board.scores.rescoring import ScoredAhead, Taken
from heldout.board.scores.score import ViewScore
from heldout.board.scores.session import NotedRules, Session
from heldout.board.scores.stored import RunReport
from heldout.board.standings.overdue import Overdue
from heldout.board.standings.standings import Row, Standings
from heldout.errors import plural, quote
from heldout.scoring.shards import Shard

Facts = list[tuple[str, str]]
_MOST_SHOWN = 3

_OF_A_NAME = ("amended", "declined")
"""What `publish` and `reject` do where a published entry's team asks for another name."""


def review_facts(result: Review, *, now: datetime) -> Facts:
    """Return what was sent, by whom and when; the problems of its files follow.

    Args:
        result: the review.
        now: the moment, for how long it waits.
    """
    submission = result.submission
    since = submission.waits_since
    waits = "" if since is None else f", waiting: {waited(now - since)}"
    before = "   (opened before)" if result.done_before else ""
    return [
        ("id", f"{submission.id}{before}"),
        ("arrived", f"{submission.received:%d %b %Y %H:%M} UTC{waits}"),
        ("status", submission.status),
        *_who(result),
        *[
            (word, f"{a.at:%d %b %Y}, {a.field}: {quote(a.before)} -> {quote(a.after)}")
            for word, amendments in (("changed", result.amendments), ("asks for", result.proposed))
            for a in amendments
        ],
        *[("runs", _run_line(name, run)) for name, run in result.scores.runs.items()],
        ("", ""),
    ]


def verdict_facts(result: Review, scores: Mapping[str, ViewScore] | None, spec: BoardSpec) -> Facts:
    """The findings, the scores where they were asked for (else `None`), and what to call next."""
    facts: Facts = [(f.severity, f"{f.rule}: {f.evidence}") for f in result.findings]
    facts = facts or [("findings", "none")]
    if any(finding.rule == "sealed" for finding in result.findings):
        facts.append(("hint", "it is damaged, or sealed for other keys than this board's has now:"))
        facts.append(("", "ask the team to clone this board again, and to submit from that clone"))
    if result.lost:
        names = ", ".join(result.lost)
        facts.append(("note", f"not compared with {names}: its files in the vault are damaged"))
    return [*facts, ("", ""), *_score_lines(result, scores, spec), *_next(result)]


def waited(span: timedelta) -> str:
    """Return how long something waits: `3 hours`, or `just now`."""
    if span < timedelta(minutes=1):
        return "just now"
    hours = int(span.total_seconds() // 3600)
    day = 24
    if hours >= 2 * day:
        return plural(hours // day, "day")
    return plural(hours, "hour") if hours else plural(int(span.total_seconds() // 60), "minute")


def review_document(
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
    stated = msgspec.to_builtins(manifest.efficiency) or {}
    costs = [f"{name} {value}" for name, value in stated.items() if value not in (None, "")]
    return [
        ("team", f"{team}; {used}"),
        ("system", f"{manifest.description}; {manifest.type}; {embargo}"),
        *_program_lines(manifest.program),
        *[("link", link) for link in links],
        ("trained", manifest.training_data or "not said"),
        ("open runs", _OPEN_RUNS[manifest.open_runs]),
        *([("season", "this entry stands for its team at the end")] * manifest.season_entry),
        *([("cost", ", ".join(costs))] if costs else []),
    ]


def _program_lines(program: Program | None) -> list[tuple[str, str]]:
    """Return what is to be run; the image is what an organiser has to fetch first."""
    if program is None:
        return []
    return [
        ("image", program.image),
        ("command", shlex.join(program.command) or "the one of the image"),
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


def _score_lines(
    result: Review, scores: Mapping[str, ViewScore] | None, spec: BoardSpec
) -> list[tuple[str, str]]:
    if not result.scores.views:
        return [("score", "none: it could not be scored")]
    if scores is None and result.submission.status == "published":
        return [("score", "published with the entry; what is proposed changes none")]
    if scores is None:
        return [("score", "computed, hidden while you judge by the rules (--score shows it)")]
    return [("score", _score_line(name, score, spec)) for name, score in scores.items()]


def _score_line(name: str, score: ViewScore, spec: BoardSpec) -> str:
    # Which groups of queries a summary is of: the worst, or the best and the worst.
    groups = f"; {' over '.join(map(quote, score.groups))}" if score.groups else ""
    return (
        f"{name} {score.measure} {describe_true(score, decimals=spec.decimals)}, "
        f"n = {score.n:,}, {score.unanswered:,} unanswered, "
        f"{score.without_relevant:,} without a relevant document{groups}"
    )


def _next(result: Review) -> list[tuple[str, str]]:
    if result.submission.waits_since is None:
        return []
    name = result.submission.id
    reason = ' --why "…"' if result.needs_reason else ""
    publish = [] if result.stands_against else [("next", f"heldout publish {name}{reason}")]
    if any(finding.rule == "not-run" for finding in result.findings):
        publish = [("next", f"heldout run {name}")]
    rest = [f'heldout reject {name} --why "…"']
    rest += [f'heldout ask {name} "…"'] if result.submission.pending else []
    lines = [*publish, *[("", line) for line in rest]]
    return [("", ""), ("next", lines[0][1]), *lines[1:]]


def rules_facts(rules: NotedRules | None) -> Facts:
    """That an edited board.toml was logged, and what changed in it."""
    if rules is None:
        return []
    files = _say_files(rules.files)
    keys = ", ".join((*rules.keys, *rules.public, *files)) or "comments or layout only"
    return [("logged", f"changed-rules (event {rules.event}): {keys}")]


def _say_files(names: Sequence[str]) -> list[str]:
    return [f"labels/{held_out_file(name)} in the vault" for name in names]


def rebuilt_facts(rebuilt: Rebuilt) -> Facts:
    """Say what a rebuild logged, revealed and changed; baselines are no entries."""
    rows = {row.id: row for row in rebuilt.standings.every}
    facts = [*rules_facts(rebuilt.rules), *difference_facts(rebuilt.differences)]
    if rebuilt.unlogged:
        files = ", ".join(_say_files(rebuilt.unlogged))
        facts.append(
            ("changed", f"{files}: no score is computed with it until the change is logged")
        )
        facts.append(("", 'put the old file back, or: heldout correct ID --why "…"'))
    if rebuilt.no_baseline:
        views = ", ".join(rebuilt.no_baseline)
        facts.append(("note", f"no baseline in {views}: no score can be published there before"))
        facts.append(("", "one is added: heldout board baseline (docs/reference/board.md)"))
    who = {name: rows[name].identity for name in rebuilt.revealed}
    facts += [("revealed", f"{name}: {one.team}") for name, one in who.items() if one is not None]
    baselines = sum(row.baseline for row in rows.values())
    told = plural(len(rows) - baselines, "entry", "entries")
    told += f", {plural(baselines, 'baseline')}" if baselines else ""
    changed = f"{plural(rebuilt.changed, 'file')} changed"
    still = not rebuilt.changed and rebuilt.commit is None
    if rebuilt.unknown:
        shown = ", ".join(quote(path) for path in rebuilt.unknown[:_MOST_SHOWN])
        more = len(rebuilt.unknown) - _MOST_SHOWN
        shown += f" and {more:,} more" if more > 0 else ""
        facts.append(("note", f"heldout did not write {shown}: left alone, and not committed"))
    facts += [*overdue_facts(rebuilt.overdue), *end_facts(rebuilt.ends)]
    return [*facts, ("rebuilt", f"{told}; {'everything was up to date' if still else changed}")]


def overdue_facts(overdue: Sequence[Overdue]) -> Facts:
    """Return what only the vault can open although its day has come, a line each."""
    return [("due", f"{one}; only the vault can publish it: heldout rebuild") for one in overdue]


def overdue_document(overdue: Sequence[Overdue]) -> list[dict[str, Any]]:
    """The same for a program."""
    return [{"what": one.what, "since": one.since} for one in overdue]


def rebuilt_document(rebuilt: Rebuilt) -> dict[str, Any]:
    """The same for a program."""
    return {
        "entries": sum(not row.baseline for row in rebuilt.standings.every),
        "changed": rebuilt.changed,
        "commit": rebuilt.commit,
        "revealed": list(rebuilt.revealed),
        "unlogged": [f"labels/{held_out_file(name)}" for name in rebuilt.unlogged],
        "unknown": list(rebuilt.unknown),
        "due": overdue_document(rebuilt.overdue),
        "seasons": [end_document(one) for one in rebuilt.ends],
        "changed_rules": None if rebuilt.rules is None else list(rebuilt.rules.keys),
    }


def released_fact(row: Row, spec: BoardSpec) -> tuple[str, str]:
    """The released scores: the one that ranks, the others beside it.

    Args:
        row: the entry.
        spec: the board's rules; of a board of seasons those of the entry's season count.
    """
    first = spec.on(row.received.date()).primary
    if first not in row.scores:
        told = "; ".join(f"{name} {describe_released(row, name, spec)}" for name in row.scores)
        return ("released", f"{row.unranked}" + (f" ({told})" if told else ""))
    others = "; ".join(f"{n} {describe_released(row, n, spec)}" for n in row.scores if n != first)
    beside = f" ({others})" if others else ""
    measure = spec.view(first).measure
    return (
        "released",
        f"{measure} {describe_released(row, first, spec)}, n = {row.counts[first]:,}{beside}",
    )


def _rank_fact(row: Row, record: Decimal | None, *, primary: str, entries: int) -> tuple[str, str]:
    """Return where an entry stands, and whether it holds the record."""
    if row.unranked:
        return ("standing", f"no rank: {row.unranked}")
    if row.baseline:
        return ("standing", "a baseline: no rank")
    place = f"rank {row.rank} of {entries}"
    if row.trophy and Decimal(row.scores[primary]) == record:
        return ("standing", f"{place}; best so far")
    then = "best when it came, " if row.trophy else ""
    return ("standing", f"{place}; {then}the record stays {record}")


def decision_document(decision: Decision) -> dict[str, Any]:
    """A decision for a program."""
    return {
        "id": decision.id,
        "done": decision.done,
        "done_before": decision.done_before,
        "why": decision.why_not,
        "event": decision.event,
        "kind": decision.kind or None,
    }


def decision_facts(
    session: Session, decisions: Iterable[Decision], verb: str, standings: Standings
) -> Facts:
    """Return what became of some submissions.

    Args:
        session: of the organiser who decided.
        decisions: one for each submission.
        verb: what was asked for, in the past tense.
        standings: those of the page now.
    """
    spec, primary = session.spec(), standings.primary
    rows = {row.id: row for row in standings.every}
    counted = [row for row in standings.rows if spec.baselines.bar or not row.baseline]
    record = max((Decimal(row.scores[primary]) for row in counted), default=None)
    entries = sum(not row.baseline for row in standings.rows)
    facts: Facts = []
    for decision in decisions:
        row = rows.get(decision.id)
        done = decision.kind if decision.kind in _OF_A_NAME else verb
        facts += _decided_facts(session, decision, done)
        if row is not None and decision.done and done in ("published", "corrected"):
            facts += _changes(decision, row) if decision.before else []
            facts.append(released_fact(row, spec))
            facts.append(_rank_fact(row, record, primary=primary, entries=entries))
    return facts


def _decided_facts(session: Session, decision: Decision, verb: str) -> Facts:
    """Return what was done, and the event of it; why not, where nothing was."""
    if not decision.done:
        reasons = [("", reason) for reason in decision.why_not]
        return [("refused", f"{decision.id}: nothing was published"), *reasons]
    before = "   (done before)" if decision.done_before else ""
    facts = [(verb, f"{decision.id}{before}")]
    if decision.event is not None:
        facts.append(
            ("logged", f"event {decision.event} by {session.by}, {session.now:%d %b %Y %H:%M} UTC")
        )
    return facts


def part_facts(found: ScoredAhead, shard: Shard, *, entries: int) -> Facts:
    """Say what was scored of a part of a correction, and what is left.

    Args:
        found: of the part.
        shard: which part.
        entries: how many entries all parts have.
    """
    scored, before = len(found.scored) + len(found.before), len(found.before)
    own = scored + len(found.left) + len(found.failed)
    facts = [
        ("shard", f"{shard}: {own:,} of {plural(entries, 'entry', 'entries')}"),
        ("scored", f"{scored:,}, {before:,} of them stored before"),
        ("stored", f"in {found.stored_in}; nothing was logged or published"),
    ]
    if found.left:
        names = ", ".join(found.left)
        facts.append(("left", f"{names}: without --shard, since a signature is missing"))
    return facts


def part_document(found: ScoredAhead, shard: Shard, *, entries: int) -> dict[str, Any]:
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


def ahead_facts(found: Taken, *, among: int) -> Facts:
    """Return how many scores a correction took from its parts; nothing where there were none."""
    facts = []
    if found.used or found.others:
        entries = plural(among, "entry", "entries")
        facts.append(("stored", f"{found.used:,} of {entries} as --shard stored them"))
    if found.others:
        others = plural(found.others, "entry", "entries")
        facts.append(("", f"{others} of another plan scored again"))
    return facts


def _changes(decision: Decision, row: Row) -> Facts:
    """Each score before and after a correction."""
    facts = [
        (name, f"{old} -> {new}" if old != new else f"{old}, as before")
        for name, old in decision.before.items()
        for new in [row.scores.get(name, "not published")]
    ]
    if decision.event is None:
        facts.append(("note", "no score changed; no erratum was logged (--anyway logs the reason)"))
    return facts


def final_facts(known: Final) -> Facts:
    """The finalists, and where the final is opened their scores and who wins."""
    opened = known.opened
    if opened is None:
        return [("", name) for name in known.finalists]
    return [
        *_score_facts(opened, below=opened.below),
        ("winner", f"{opened.winner}, the earliest that is not clearly below the best"),
        *_luck_facts(opened),
    ]


def _score_facts(opened: ExactScores, *, below: Collection[str] = ()) -> Facts:
    """The scores, the highest first."""
    names = sorted(opened.scores, key=lambda name: -float(opened.scores[name]))
    mark = "  clearly below"
    return [("", f"{opened.scores[name]}  {name}{mark * (name in below)}") for name in names]


def _luck_facts(opened: ExactScores) -> Facts:
    luck = opened.luck or "none, for there is one entry"
    return [
        ("luck", f"{luck}: how far the best of so many lies above its worth on average"),
        *([("", INDEPENDENT)] if opened.luck else []),
    ]


def end_facts(ends: Iterable[EndStep]) -> Facts:
    """The seasons that ended, with the exact scores, and those that wait."""
    facts: Facts = []
    for one in ends:
        if one.end is None:
            waits = f"{one.season or 'the board'} is over; its exact scores wait for {one.waits}"
            facts.append(("season", waits))
        else:
            opened = one.end.opened
            facts.append(("season", f"{one.season or 'the board'} ended (event {opened.event})"))
            facts += [*_score_facts(opened), *_luck_facts(opened)]
    return facts


def end_document(one: EndStep) -> dict[str, Any]:
    """A season that ended, or waits, for a program."""
    if one.end is None:
        return {"season": one.season, "waits": one.waits}
    end = one.end
    return {
        "season": one.season,
        "event": end.opened.event,
        "view": end.view,
        "named": list(end.named),
        **_score_document(end.opened),
    }


def final_document(known: Final) -> dict[str, Any]:
    """The final for a program."""
    opened = known.opened
    document: dict[str, Any] = {"view": known.view, "finalists": list(known.finalists)}
    if opened is None:
        return document
    won = {"best": opened.best, "below": list(opened.below), "winner": opened.winner}
    return {**document, **_score_document(opened), **won}


def _score_document(opened: ExactScores) -> dict[str, Any]:
    return {
        "scores": dict(opened.scores),
        "queries": opened.queries,
        "luck": opened.luck or None,
    }
