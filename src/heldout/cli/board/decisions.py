"""What a decision and a rebuild left, as an organiser reads it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from heldout.board.organiser.decide import Decision
from heldout.board.organiser.rebuild import Rebuilt
from heldout.board.rules.changes import held_out_file
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.session import Desk, NotedRules
from heldout.board.standings.standings import Row, Standings
from heldout.board.store.repository import Repository
from heldout.cli.board.drafting import difference_facts
from heldout.cli.board.scores import say_released
from heldout.cli.printing import answers, print_facts, print_json
from heldout.errors import plural, quote

if TYPE_CHECKING:
    from heldout.judging.services.maintaining import Waiting


Facts = list[tuple[str, str]]
_MOST_SHOWN = 3

_OF_A_NAME = ("amended", "declined")
"""What `publish` and `reject` do where a published entry's team asks for another name."""


def report(
    desk: Desk,
    decisions: Sequence[Decision],
    rebuilt: Rebuilt,
    *,
    verb: str,
    as_json: bool,
    earlier: Sequence[str] = (),
    waiting: "Sequence[Waiting]" = (),
    following: Sequence[str] = (),
) -> None:
    """Say what became of submissions; exit code 1 where one is not as was asked for.

    Args:
        desk: where it was decided.
        decisions: one for each submission.
        rebuilt: what followed.
        verb: what was asked for, in the past tense.
        as_json: one JSON document.
        earlier: entries that are still scored with earlier labels.
        waiting: first documents that preference labels were made without.
        following: commands to call next, before all others.
    """
    if as_json:
        told: dict[str, Any] = {"earlier_labels": list(earlier)} if verb == "corrected" else {}
        if waiting:
            told["waiting"] = {one.query_set: one.tops for one in waiting}
        rows = [_decision_json(decision) for decision in decisions]
        print_json({"decisions": rows, **told, **rebuilt_json(rebuilt)})
    else:
        for decision in decisions:
            print_facts(answers(), _decision_facts(desk, decision, verb, rebuilt.standings))
        print_facts(answers(), rebuilt_facts(rebuilt))
        left = sum(s.waits_since is not None for s in desk.history().submissions.values())
        commands = [*following, *([f"heldout inbox   ({left} left)"] if left else [])]
        if verb == "published" and (missing := _list_missing(desk.spec())):
            lack = f"board.toml has no {' and no '.join(missing)}: readers of the page cannot tell"
            print_facts(answers(), [("warning", f"{lack} where to get them")])
        if earlier:
            count = plural(len(earlier), "entry is", "entries are")
            print_facts(answers(), [("earlier", f"{count} still scored with earlier labels")])
            commands.insert(0, f'heldout correct {" ".join(earlier)} --why "…"')
        for one in waiting:
            tops = plural(one.tops, "first document")
            print_facts(answers(), [("waiting", f"{tops} that {one.labels} was made without")])
        if waiting:
            commands.append("heldout prefer maintain CAMPAIGN --documents FILE")
        print_next(desk.repository, commands)
    if not all(decision.done for decision in decisions):
        raise click.exceptions.Exit(1)


def _list_missing(spec: BoardSpec) -> list[str]:
    """The addresses that a participant needs and board.toml does not state."""
    addresses = {"repository": spec.repository, "install": spec.install}
    return [key for key, address in addresses.items() if not address]


def print_next(repository: Repository, commands: Sequence[str]) -> None:
    """The commands to call next, and what is committed but not pushed yet."""
    lines = [*commands]
    unpushed = repository.git.unpushed() if repository.git.is_repository() else 0
    if unpushed:
        lines.append(f"not yet public: {plural(unpushed, 'commit')}; git push")
    heads = ["next", *[""] * len(lines)]
    if lines:
        print_facts(answers(), [("", ""), *zip(heads, lines, strict=False)])


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
    """What a rebuild logged, revealed and changed; baselines are no entries, as on the page."""
    rows = {row.id: row for row in rebuilt.standings.every}
    facts = [*rules_facts(rebuilt.rules), *difference_facts(rebuilt.differences)]
    if rebuilt.unlogged:
        files = ", ".join(_say_files(rebuilt.unlogged))
        facts.append(("changed", f"{files}: no score is told by it until the change is logged"))
        facts.append(("", 'put the old file back, or: heldout correct ID --why "…"'))
    if rebuilt.no_baseline:
        views = ", ".join(rebuilt.no_baseline)
        facts.append(("note", f"no baseline in {views}: no score can be published there before"))
        facts.append(("", "one is added: heldout board baseline (docs/board.md)"))
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
    return [*facts, ("rebuilt", f"{told}; {'everything was up to date' if still else changed}")]


def rebuilt_json(rebuilt: Rebuilt) -> dict[str, Any]:
    """The same for a program."""
    return {
        "entries": sum(not row.baseline for row in rebuilt.standings.every),
        "changed": rebuilt.changed,
        "commit": rebuilt.commit,
        "revealed": list(rebuilt.revealed),
        "unlogged": [f"labels/{held_out_file(name)}" for name in rebuilt.unlogged],
        "unknown": list(rebuilt.unknown),
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
        told = "; ".join(f"{name} {say_released(row, name, spec)}" for name in row.scores)
        return ("released", f"{row.unranked}" + (f" ({told})" if told else ""))
    others = "; ".join(f"{n} {say_released(row, n, spec)}" for n in row.scores if n != first)
    beside = f" ({others})" if others else ""
    measure = spec.view(first).measure
    return (
        "released",
        f"{measure} {say_released(row, first, spec)}, n = {row.counts[first]:,}{beside}",
    )


def standing_fact(row: Row, standings: Standings, *, bar: bool) -> tuple[str, str]:
    """Where an entry stands, and whether it holds the record.

    Args:
        row: the entry.
        standings: all of them.
        bar: whether a baseline can hold the record.
    """
    if row.unranked:
        return ("standing", f"no rank: {row.unranked}")
    scores = {r.id: Decimal(r.scores[standings.primary]) for r in standings.rows}
    counted = [r for r in standings.rows if bar or not r.baseline]
    record = max(scores[r.id] for r in counted)
    if row.baseline:
        return ("standing", "a baseline: no rank")
    entries = sum(not r.baseline for r in standings.rows)
    place = f"rank {row.rank} of {entries}"
    if row.trophy and scores[row.id] == record:
        return ("standing", f"{place}; best so far")
    then = "best when it came, " if row.trophy else ""
    return ("standing", f"{place}; {then}the record stays {record}")


def _decision_json(decision: Decision) -> dict[str, Any]:
    return {
        "id": decision.id,
        "done": decision.done,
        "done_before": decision.done_before,
        "why": decision.why_not,
        "event": decision.event,
        "kind": decision.kind or None,
    }


def _decision_facts(desk: Desk, decision: Decision, verb: str, standings: Standings) -> Facts:
    if not decision.done:
        reasons = [("", reason) for reason in decision.why_not]
        return [("refused", f"{decision.id}: nothing was published"), *reasons]
    verb = decision.kind if decision.kind in _OF_A_NAME else verb
    before = "   (done before)" if decision.done_before else ""
    facts = [(verb, f"{decision.id}{before}")]
    if decision.event is not None:
        facts.append(
            ("logged", f"event {decision.event} by {desk.by}, {desk.now:%d %b %Y %H:%M} UTC")
        )
    row = next((row for row in standings.every if row.id == decision.id), None)
    if row is None or verb not in ("published", "corrected"):
        return facts
    spec = desk.spec()
    if decision.before:
        facts += _changes(decision, row)
    return [
        *facts,
        released_fact(row, spec),
        standing_fact(row, standings, bar=spec.baselines.bar),
    ]


def _changes(decision: Decision, row: Row) -> Facts:
    """Each score before and after a correction."""
    facts = [
        (name, f"{old} -> {new}" if old != new else f"{old}, as before")
        for name, old in decision.before.items()
        for new in [row.scores.get(name, "not told")]
    ]
    if decision.event is None:
        facts.append(("note", "no score changed; no erratum was logged (--anyway logs the reason)"))
    return facts
