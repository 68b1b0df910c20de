"""What `heldout prefer maintain` tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from heldout.cli.printing import plural
from heldout.pipeline.labels.label_changes import Change
from heldout.pipeline.labels.label_versions import BoardLabels
from heldout.preferences.challenges import Challenge
from heldout.preferences.maintenance import LeadRule, Replacement, chance_of_lead
from heldout.preferences.pricing import format_money
from heldout.preferences.settings import Money
from heldout.preferences.tasks import Task

__all__ = ["Maintenance", "ToldVersion", "maintained_facts", "maintained_value"]


_MANY = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldVersion:
    """A version as it is told.

    Attributes:
        labels: the version.
        same: whether the campaign's files of today give its labels.
        change: what it changed; `None` where there is nothing to compare it with.
    """

    labels: BoardLabels
    same: bool
    change: Change | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """What a call found and did.

    Attributes:
        query_set: the set.
        rule: when an answer is exchanged.
        challengers: first documents that the pools lack.
        waiting: those that were not looked at, for want of texts.
        challenges: each against the best known answers.
        drawn: new tasks.
        price: of these, in hundredths of the currency.
        currency: ISO 4217.
        replaced: best known answers, by the judgments of today.
        published: the version that was made, `None` where none was.
        scored: ids of what was scored on the labels of today.
        versions: all that there are.
    """

    query_set: str
    rule: LeadRule
    challengers: int
    waiting: int
    challenges: tuple[Challenge, ...]
    drawn: tuple[Task, ...]
    price: Money
    currency: str
    replaced: tuple[Replacement, ...]
    published: str | None
    scored: tuple[str, ...]
    versions: tuple[ToldVersion, ...]


def maintained_facts(found: Maintenance) -> list[tuple[str, str]]:
    """The same in lines of `name      what there is to say`."""
    return [*_facts(found), *_version_facts(found.versions)]


def _facts(found: Maintenance) -> list[tuple[str, str]]:
    counts = {state: _count(found.challenges, state) for state in ("open", "won", "stays")}
    asked = sum(item.answer is None for task in found.drawn for item in task.items)
    price = format_money(found.price, found.currency)
    waiting = sum(one.drawn for one in found.challenges)
    told = plural(len(found.challenges), "pair")
    unread = plural(found.waiting, "first document")
    facts = [("waiting", f"{unread} to look at: --documents has their texts")]
    facts = facts if found.waiting else []
    facts += [
        ("unjudged", f"{plural(found.challengers, 'first document')} that the pools lack"),
        (
            "compared",
            f"{told}: {counts['open']:,} open, {counts['won']:,} won, {counts['stays']:,} lost",
        ),
        (
            "drawn",
            f"{plural(len(found.drawn), 'task')} of {plural(asked, 'judgment')}: {price}",
        ),
    ]
    if waiting:
        facts.append(("", f"{plural(waiting, 'judgment')} drawn before have not come yet"))
    rule = found.rule
    told = f"{plural(len(found.replaced), 'best known answer')} by a lead of {rule.needed(1)}"
    more = " or more" if rule.budget else ""
    facts.append(("replaced", f"{told}{more}, within {plural(rule.cap, 'vote')}"))
    facts.append(("errors", _errors(rule)))
    if found.published is not None:
        facts.append(("published", f"{found.published}; {plural(len(found.scored), 'run')} scored"))
    elif found.scored:
        facts.append(("scored", f"{plural(len(found.scored), 'run')} on the labels of today"))
    return facts


def _errors(rule: LeadRule) -> str:
    """How often equally good challengers replace an answer."""
    if rule.budget:
        return (
            "challengers as good as a query's first answer ever replace it in at most "
            f"{rule.budget:.0%} of queries, however many come"
        )
    one = chance_of_lead(rule.lead, rule.cap)
    return (
        f"a challenger as good as the answer replaces it {one:.1%} of the time; after {_MANY} of "
        f"them the first answer is left in {(1 - one) ** _MANY:.1%}: --budget limits this"
    )


def _version_facts(versions: Sequence[ToldVersion]) -> list[tuple[str, str]]:
    facts = []
    for one in versions:
        record = one.labels.record
        told = f"{one.labels.name}: {plural(len(record.replaced), 'answer')} replaced"
        told += f", judgments up to {record.until}" if record.until else ""
        facts.append(("version", told))
        if not one.same:
            facts.append(("", "the campaign's files of today give other labels"))
        if one.change is not None:
            facts += _change_facts(one.change)
    return facts


def _change_facts(change: Change) -> list[tuple[str, str]]:
    size = f"{plural(change.entries, 'run')}, {plural(change.queries, 'query', 'queries')}"
    taus = "; ".join(
        f"{one.name} {'undefined' if one.tau is None else f'{one.tau:.2f}'}" for one in change.taus
    )
    told = f"; Kendall's tau: {taus}" if taus else ""
    facts = [("", f"against {change.before}: {size}{told}")]
    facts += [("", f"{move.id}: rank {move.before} -> {move.after}") for move in change.moves]
    return facts


def _count(challenges: Sequence[Challenge], outcome: str) -> int:
    return sum(one.outcome == outcome for one in challenges)


def maintained_value(found: Maintenance) -> dict[str, object]:
    """The same as JSON; money in hundredths of the currency."""
    return {
        "set": found.query_set,
        "lead": found.rule.lead,
        "cap": found.rule.cap,
        "budget": found.rule.budget,
        "error_of_one": chance_of_lead(found.rule.needed(1), found.rule.cap),
        "challengers": found.challengers,
        "waiting": found.waiting,
        "challenges": [
            {
                "query": one.query,
                "challenger": one.challenger,
                "incumbent": one.incumbent,
                "ahead": one.ahead,
                "behind": one.behind,
                "answers": one.answers,
                "outcome": one.outcome,
                "lead": one.lead,
            }
            for one in found.challenges
        ],
        "tasks": len(found.drawn),
        "price": found.price,
        "currency": found.currency,
        "replaced": [_replacement(one) for one in found.replaced],
        "published": found.published,
        "scored": list(found.scored),
        "versions": [_version_value(one) for one in found.versions],
    }


def _replacement(one: Replacement) -> dict[str, object]:
    return {"query": one.query, "before": list(one.before), "after": one.after, "at": one.at}


def _version_value(one: ToldVersion) -> dict[str, object]:
    record, change = one.labels.record, one.change
    return {
        "name": one.labels.name,
        "version": record.version,
        "parent": record.parent or None,
        "public": one.labels.view.public,
        "measure": one.labels.view.measure,
        "until": record.until or None,
        "sha256": one.labels.digest,
        "replaced": [_replacement(each) for each in record.replaced],
        "same": one.same,
        "change": None if change is None else _change_value(change),
    }


def _change_value(change: Change) -> dict[str, object]:
    return {
        "before": change.before,
        "entries": change.entries,
        "queries": change.queries,
        "taus": [
            {
                "name": one.name,
                "runs": one.runs,
                "tau": one.tau,
                "discordant": one.discordant,
                "pairs": one.pairs,
            }
            for one in change.taus
        ],
        "moves": [{"id": m.id, "before": m.before, "after": m.after} for m in change.moves],
    }
