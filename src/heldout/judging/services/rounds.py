"""One round of maintenance: challengers, tasks, a new version of a board's preference labels."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

from heldout.answers.answer import to_document
from heldout.board.organiser.rebuild import catch_up
from heldout.board.scores.published import check_set, list_published
from heldout.board.scores.session import Session
from heldout.database.times import format_time
from heldout.errors import plural
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.rows import Task
from heldout.judging.campaign.settings import Mode, Money, format_money
from heldout.judging.labels.labels import Algorithm
from heldout.judging.labels.maintenance import (
    BUDGET,
    CAP,
    LEAD,
    Challenge,
    LeadRule,
    Replacement,
    chance_of_lead,
)
from heldout.judging.services.boards import QuerySet
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
from heldout.judging.services.pools import Documents, read_documents
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress

_MANY = 10
_MODES: Mapping[Mode, Algorithm] = {"paper": "tournament", "sequential": "sequential"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """What a round does."""

    query_set: QuerySet = None
    documents: Documents = None
    lead: Annotated[
        int | None,
        Opt(
            f"Number of votes that a challenger leads by at least [as before, or {LEAD}].",
            least=1,
            metavar="N",
        ),
    ] = None
    cap: Annotated[
        int | None,
        Opt(f"Most votes on a challenge [as before, or {CAP}].", least=1, metavar="N"),
    ] = None
    budget: Annotated[
        float | None,
        Opt(
            "Chance that equally good challengers ever replace a query's first answer; 0 for no "
            f"control [as before, or {BUDGET}].",
            least=0,
            below=1,
            metavar="P",
        ),
    ] = None
    algorithm: Annotated[
        Algorithm | None,
        Opt(
            "Way to find the best of a pool before any challenge [as campaign.toml has it].",
            names=("--mode",),
        ),
    ] = None
    seed: Seed = 0
    publish: Annotated[
        bool, Opt("Publish the next version of the labels.", names=("--publish-labels",))
    ] = False
    public: Annotated[bool, Opt("Scores on that version in public [a reserve].")] = False
    measure: Annotated[
        str | None,
        Opt("Measure of its view [as before].", names=("-m", "--measure"), metavar="MEASURE"),
    ] = None
    until: Annotated[
        datetime | None, Opt("Last time (UTC) of answers that are used.", metavar="TIME")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A version of the labels, with what it changed.

    Attributes:
        labels: the version.
        same: whether the campaign's files of today give its labels.
        change: what it changed; `None` where there is nothing to compare it with.
    """

    labels: BoardLabels
    same: bool
    change: Change | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
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
    versions: tuple[ListedVersion, ...]


def maintain(
    session: Session, folder: CampaignFolder, options: RoundOptions, *, progress: Progress = SILENT
) -> Round:
    """Look for challengers, draw tasks for them, and publish a version where that is asked for.

    Args:
        session: of the board's organiser; its lock is held.
        folder: the campaign.
        options: what is done.
        progress: counts runs.

    Raises:
        InputError: a file has errors, code `unknown-set` or `no-judgments`.
        StoreError, TrustError: as of the board's runs.
    """
    texts = None if options.documents is None else read_documents(options.documents)
    spec = session.spec()
    name = options.query_set or spec.view(spec.on(session.now.date()).primary).set
    check_set(spec, name)
    held = read_campaign(folder)
    rule = _choose_rule(session, held, name, options)
    held = _take_challengers(session, folder, held, name, texts, progress=progress)
    challenges = weigh_challenges(held, rule)
    drawn = draw_challenges(held, challenges, seed=options.seed)
    if drawn:
        folder.write_tasks([*held.tasks, *drawn])
    published = publish_version(session, held, name, rule, options) if options.publish else None
    scored = score_new(session, name, progress=progress)
    catch_up(session, news=published is not None or bool(scored))
    return Round(
        query_set=name,
        rule=rule,
        challengers=sum(len(row.candidates) for row in held.challengers),
        waiting=count_unseen(session, name, held),
        challenges=challenges,
        drawn=drawn,
        price=len(drawn) * held.settings.task_price,
        currency=held.settings.currency,
        replaced=label(held, rule).replaced,
        published=None if published is None else published.name,
        scored=scored,
        versions=tuple(
            ListedVersion(
                labels=one, same=is_made_again(held, one), change=compare_version(session, one)
            )
            for one in list_versions(session).get(name, ())
        ),
    )


def read_campaign(folder: CampaignFolder) -> Campaign:
    """A campaign as its files have it."""
    return Campaign(
        settings=folder.settings(),
        pools=folder.pools(),
        challengers=folder.challengers(),
        tests=folder.tests(),
        tasks=folder.tasks(),
        judgments=folder.judgments(),
    )


def publish_version(
    session: Session, held: Campaign, query_set: str, rule: LeadRule, options: RoundOptions
) -> BoardLabels | None:
    """Make a version of the labels; `None` where it would be the one before.

    Raises:
        InputError: code `no-judgments`.
    """
    until = None if options.until is None else format_time(options.until)
    check_judged(held, until=until)
    labels, record = make_record(held, query_set, rule, until=until)
    return publish_labels(session, labels, record, measure=options.measure, public=options.public)


def score_new(session: Session, query_set: str, *, progress: Progress = SILENT) -> tuple[str, ...]:
    """Score what is not scored on all versions; the ids of these entries."""
    versions = list_versions(session).get(query_set, ())
    if not versions:
        return ()
    with progress.steps("scoring", len(list_published(session))) as done:
        reason = f"scored on preference labels {versions[-1].name}"
        return tuple(decision.id for decision in score_versions(session, why=reason, done=done))


def _choose_rule(
    session: Session, held: Campaign, query_set: str, options: RoundOptions
) -> LeadRule:
    """The rule that was asked for; what was not is as in the version before."""
    versions = list_versions(session).get(query_set, ())
    before = versions[-1].record if versions else LeadRule(cap=CAP, budget=BUDGET)
    lead = options.lead or before.lead
    return LeadRule(
        lead=lead,
        cap=options.cap or max(lead, before.cap),
        algorithm=options.algorithm or _MODES[held.settings.mode],
        budget=before.budget if options.budget is None else options.budget,
    )


def _take_challengers(
    session: Session,
    folder: CampaignFolder,
    held: Campaign,
    query_set: str,
    documents: Mapping[str, str] | None,
    *,
    progress: Progress,
) -> Campaign:
    """The campaign with what is new; where it has texts nothing enters without one."""
    if documents is None and any(one.text for pool in held.pools for one in pool.candidates):
        return held
    with progress.steps("opening runs", len(list_published(session))) as done:
        found = find_challengers(session, query_set, held, documents=documents, done=done)
    if found != held.challengers:
        folder.write_challengers(found)
    return replace(held, challengers=found)


def round_facts(found: Round) -> list[tuple[str, str]]:
    """What was found and done, in lines of `name      what there is to say`."""
    facts, rule = [], found.rule
    if found.waiting:
        unread = plural(found.waiting, "first document")
        facts.append(("waiting", f"{unread} to look at: --documents has their texts"))
    outcomes = Counter(one.outcome for one in found.challenges)
    states = f"{outcomes['open']:,} open, {outcomes['won']:,} won, {outcomes['stays']:,} lost"
    asked = sum(item.answer is None for task in found.drawn for item in task.items)
    drawn = f"{plural(len(found.drawn), 'task')} of {plural(asked, 'judgment')}"
    facts += [
        ("unjudged", f"{plural(found.challengers, 'first document')} that the pools lack"),
        ("compared", f"{plural(len(found.challenges), 'pair')}: {states}"),
        ("drawn", f"{drawn}: {format_money(found.price, found.currency)}"),
    ]
    if waiting := sum(one.drawn for one in found.challenges):
        facts.append(("", f"{plural(waiting, 'judgment')} drawn before have not come yet"))
    replaced = f"{plural(len(found.replaced), 'best known answer')} by a lead of {rule.needed(1)}"
    more = " or more" if rule.budget else ""
    facts.append(("replaced", f"{replaced}{more}, within {plural(rule.cap, 'vote')}"))
    facts.append(("errors", _errors(rule)))
    scored = plural(len(found.scored), "run")
    if found.published is not None:
        facts.append(("published", f"{found.published}; {scored} scored"))
    elif found.scored:
        facts.append(("scored", f"{scored} on the labels of today"))
    for one in found.versions:
        facts += _version_facts(one)
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


def _version_facts(version: ListedVersion) -> list[tuple[str, str]]:
    record, change = version.labels.record, version.change
    until = f", judgments up to {record.until}" if record.until else ""
    replaced = plural(len(record.replaced), "answer")
    facts = [("version", f"{version.labels.name}: {replaced} replaced{until}")]
    if not version.same:
        facts.append(("", "the campaign's files of today give other labels"))
    if change is None:
        return facts
    size = f"{plural(change.entries, 'run')}, {plural(change.queries, 'query', 'queries')}"
    taus = "; ".join(
        f"{one.name} {'undefined' if one.tau is None else f'{one.tau:.2f}'}" for one in change.taus
    )
    taus = f"; Kendall's tau: {taus}" if taus else ""
    facts.append(("", f"against {change.before}: {size}{taus}"))
    return facts + [("", f"{one.id}: rank {one.before} -> {one.after}") for one in change.moves]


def round_document(found: Round) -> dict[str, object]:
    """The same as JSON; money in hundredths of the currency."""
    return to_document(
        {
            "set": found.query_set,
            "rule": found.rule,
            "error_of_one": chance_of_lead(found.rule.needed(1), found.rule.cap),
            "challengers": found.challengers,
            "waiting": found.waiting,
            "challenges": found.challenges,
            "tasks": len(found.drawn),
            "price": found.price,
            "currency": found.currency,
            "replaced": found.replaced,
            "published": found.published,
            "scored": found.scored,
            "versions": [_version_document(one) for one in found.versions],
        }
    )


def _version_document(version: ListedVersion) -> dict[str, object]:
    labels = version.labels
    record = to_document(labels.record)
    del record["seen"]
    return record | {
        "name": labels.name,
        "sha256": labels.digest,
        "public": labels.view.public,
        "measure": labels.view.measure,
        "same": version.same,
        "change": version.change,
    }
