"""`heldout prefer maintain`: a board's preference labels, as new runs come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, get_args

import click

from heldout.board.organiser.rebuild import catch_up
from heldout.board.scores.published import check_set, list_published
from heldout.board.scores.session import Desk
from heldout.cli.context import Place, at_board
from heldout.cli.judging.campaign import campaign_argument
from heldout.cli.judging.pool_source import read_documents
from heldout.cli.options import one_argument
from heldout.cli.printing import answers, print_facts, print_json, progress, reports_errors
from heldout.errors import plural
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import format_time
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import Mode, Money, format_money
from heldout.judging.labels.maintenance import (
    BUDGET,
    CAP,
    LEAD,
    Challenge,
    LeadRule,
    Replacement,
    chance_of_lead,
)
from heldout.judging.labels.versions import Algorithm
from heldout.judging.services.label_versions import (
    BoardLabels,
    Change,
    compare_version,
    list_versions,
    publish_labels,
    score_versions,
)
from heldout.judging.services.maintaining import (
    Campaign,
    check_judged,
    count_unseen,
    draw_challenges,
    find_challengers,
    is_made_again,
    label,
    make_record,
    weigh_challenges,
)

# What `heldout prefer maintain` tells.

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


_MODES: Mapping[Mode, Algorithm] = {"paper": "tournament", "sequential": "sequential"}


class Asked(NamedTuple):
    """What was asked for of the rule; `None` where nothing was."""

    lead: int | None
    cap: int | None
    budget: float | None
    algorithm: Algorithm | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What was asked for of new labels.

    Attributes:
        publish: make a version if the labels are new.
        public: its scores are told.
        measure: of its view; `None` for that of the version before, or of the set.
        until: only answers up to this time.
    """

    publish: bool = False
    public: bool = False
    measure: str | None = None
    until: datetime | None = None


_wish = one_argument(
    "wish",
    Wish,
    click.option("--publish-labels", "publish", is_flag=True, help="Make the next version."),
    click.option("--public", is_flag=True, help="Its scores are told [a reserve]."),
    click.option("-m", "--measure", metavar="MEASURE", help="Of its view [as before]."),
    click.option(
        "--until",
        type=click.DateTime(["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"]),
        metavar="TIME",
        help="Labels of answers up to this time alone, in UTC.",
    ),
)


@click.command
@campaign_argument
@click.option("--set", "query_set", metavar="NAME", help="Of the pools [the set that ranks].")
@click.option("--documents", metavar="FILE", help="Texts: id, tab, text. Without, only ids.")
@click.option(
    "--lead",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Votes that a challenger has to lead by at least [as before, or {LEAD}].",
)
@click.option(
    "--cap",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Most votes on a challenge [as before, or {CAP}].",
)
@click.option(
    "--budget",
    type=click.FloatRange(min=0, max=1, max_open=True),
    metavar="P",
    help="Chance that equally good challengers ever replace a query's first answer; 0 for no "
    f"control [as before, or {BUDGET}].",
)
@click.option(
    "--mode",
    "algorithm",
    type=click.Choice(get_args(Algorithm)),
    help="How the best of a pool was found before any challenge [as campaign.toml has it].",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@_wish
@at_board
@reports_errors
def maintain(
    *,
    campaign: Path,
    query_set: str | None,
    documents: str | None,
    lead: int | None,
    cap: int | None,
    budget: float | None,
    algorithm: Algorithm | None,
    seed: int,
    wish: Wish,
    place: Place,
) -> None:
    """Keep a board's preference labels alive: challenges, new versions, what these changed.

    The first documents of published runs that nobody has judged challenge the best known answers.
    Tasks are drawn for the judgments that are missing. A challenger that leads takes the answer's
    place: the more challengers a query has met, the larger the lead, so that equally good ones
    replace its first answer in no more than --budget of queries. --publish-labels makes a version
    of the labels, which is a view of the board, and scores every published run on it. A version is
    never edited.

    \b
    Examples:
      heldout prefer maintain campaign --documents documents.tsv
      heldout prefer maintain campaign --publish-labels
    """
    folder = CampaignFolder(campaign)
    texts = None if documents is None else read_documents(documents)
    with place.desk(page=wish.publish) as desk:
        spec = desk.spec()
        name = query_set or spec.view(spec.on(desk.now.date()).primary).set
        check_set(spec, name)
        held = _read(folder)
        rule = _choose_rule(desk, held, name, Asked(lead, cap, budget, algorithm))
        held = _take_challengers(desk, folder, held, name, texts)
        challenges = weigh_challenges(held, rule)
        drawn = draw_challenges(held, challenges, seed=seed)
        if drawn:
            folder.write_tasks([*held.tasks, *drawn])
        published, scored = _label(desk, held, name, rule, wish)
        outcome = Maintenance(
            query_set=name,
            rule=rule,
            challengers=sum(len(row.candidates) for row in held.challengers),
            waiting=count_unseen(desk, name, held),
            challenges=challenges,
            drawn=drawn,
            price=len(drawn) * (held.settings.reward + held.settings.fee),
            currency=held.settings.currency,
            replaced=label(held, rule).replaced,
            published=published,
            scored=scored,
            versions=_list_versions(desk, held, name),
        )
    if place.as_json:
        print_json(maintained_value(outcome))
    else:
        print_facts(answers(), maintained_facts(outcome))


def _choose_rule(desk: Desk, held: Campaign, query_set: str, asked: Asked) -> LeadRule:
    """The rule that was asked for; what was not is as in the version before."""
    before = list_versions(desk).get(query_set, ())
    record = before[-1].record if before else None
    lead = asked.lead or (LEAD if record is None else record.lead)
    cap = asked.cap or (CAP if record is None else record.cap)
    kept = BUDGET if record is None else record.budget
    return LeadRule(
        lead=lead,
        cap=cap if asked.cap else max(lead, cap),
        algorithm=asked.algorithm or _MODES[held.settings.mode],
        budget=kept if asked.budget is None else asked.budget,
    )


def _read(folder: CampaignFolder) -> Campaign:
    return Campaign(
        settings=folder.settings(),
        pools=folder.pools(),
        challengers=folder.challengers(),
        tests=folder.tests(),
        tasks=folder.tasks(),
        judgments=folder.judgments(),
    )


def _take_challengers(
    desk: Desk,
    folder: CampaignFolder,
    held: Campaign,
    query_set: str,
    documents: Mapping[str, str] | None,
) -> Campaign:
    """The campaign with what is new; where it has texts nothing enters without one."""
    if documents is None and any(one.text for pool in held.pools for one in pool.candidates):
        return held
    with progress("opening runs", len(list_published(desk))) as done:
        found = find_challengers(desk, query_set, held, documents=documents, done=done)
    if found != held.challengers:
        folder.write_challengers(found)
    return replace(held, challengers=found)


def _label(
    desk: Desk, held: Campaign, query_set: str, rule: LeadRule, wish: Wish
) -> tuple[str | None, tuple[str, ...]]:
    """Make a version if that was asked for; score what is not scored on all versions."""
    made = None
    if wish.publish:
        until = None if wish.until is None else format_time(wish.until.replace(tzinfo=UTC))
        check_judged(held, until=until)
        labels, record = make_record(held, query_set, rule, until=until)
        made = publish_labels(desk, labels, record, measure=wish.measure, public=wish.public)
    versions = list_versions(desk).get(query_set, ())
    scored: tuple[str, ...] = ()
    if versions:
        with progress("scoring", len(list_published(desk))) as done:
            why = f"scored on preference labels {versions[-1].name}"
            decisions = score_versions(desk, why=why, done=done)
        scored = tuple(decision.id for decision in decisions)
    catch_up(desk, news=made is not None or bool(scored))
    return (None if made is None else made.name), scored


def _list_versions(desk: Desk, held: Campaign, query_set: str) -> tuple[ToldVersion, ...]:
    return tuple(
        ToldVersion(labels=one, same=is_made_again(held, one), change=compare_version(desk, one))
        for one in list_versions(desk).get(query_set, ())
    )
