"""Maintenance of a board's preference labels: challengers, tasks, and new versions of the labels.

What nobody has judged yet of the published runs challenges the best known answers. The queue is
stored nowhere: it follows from the published runs, the pools, the judgments and the labels.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.answers.answer import Answer, to_document
from heldout.answers.texts import write, write_facts
from heldout.board.log.submission import Submission
from heldout.board.organiser.rebuild import catch_up
from heldout.board.scores.compared import signatures_of
from heldout.board.scores.rescoring import check_set, list_published, read_published
from heldout.board.scores.session import Session
from heldout.database.times import format_time
from heldout.errors import InputError
from heldout.ids import digest_bytes, query_set_of
from heldout.judging.campaign import drawing, rows
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment, counted, format_judgments
from heldout.judging.campaign.pools import Pool, stand_for
from heldout.judging.campaign.settings import Mode, Settings, format_money
from heldout.judging.labels.labels import Algorithm, format_labels
from heldout.judging.labels.maintenance import (
    BUDGET,
    CAP,
    Challenge,
    LeadRule,
    Maintained,
    chance_of_lead,
    first_best,
    follow_challenges,
    is_challenge,
    list_challenges,
    pool_challengers,
    seen_documents,
    spread_labels,
)
from heldout.judging.services import boards, label_versions
from heldout.judging.services.pools import Documents, read_documents
from heldout.options import Opt, Seed
from heldout.progress_bar import SILENT, Progress
from heldout.trec.orders import Order
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.tops import Tops, read_tops


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignContent:
    """What a campaign holds, as its files have it.

    Attributes:
        settings: of the campaign.
        pools: before any challenge.
        challengers: documents of later runs, by query.
        tests: pairs with a known answer.
        tasks: all that were drawn.
        judgments: all that were recorded.
    """

    settings: Settings
    pools: tuple[Pool, ...]
    challengers: tuple[Pool, ...]
    tests: tuple[rows.Item, ...]
    tasks: tuple[rows.Task, ...]
    judgments: tuple[Judgment, ...]

    @property
    def seen(self) -> Mapping[str, set[str]]:
        """Query of a pool -> every document that was looked at, or whose text was."""
        return seen_documents(self.pools, self.challengers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """First documents of published runs that the latest labels of a set were made without.

    Attributes:
        query_set: its name.
        labels: name of the latest version.
        tops: how many: each query and document once.
    """

    query_set: str
    labels: str
    tops: int


def label(campaign: CampaignContent, rule: LeadRule, *, until: str | None = None) -> Maintained:
    """The best known answers by the judgments up to a time.

    A vote on a document that no published run showed says nothing, wherever it came from.

    Args:
        campaign: with pools and judgments.
        rule: when an answer is exchanged.
        until: ISO 8601 in UTC; `None` for all judgments.
    """
    votes = _count_valid(campaign, until)
    same = stand_for(campaign.pools)
    known = {
        (pool.query, one.doc)
        for pool in (*campaign.pools, *campaign.challengers)
        for one in pool.candidates
    }
    challenges = (
        one
        for one in votes
        if is_challenge(one.pair, same) and known >= {(one.query, one.left), (one.query, one.right)}
    )
    best = first_best(campaign.pools, votes, algorithm=rule.algorithm)
    return follow_challenges(best, challenges, rule)


def make_record(
    campaign: CampaignContent, query_set: str, rule: LeadRule, *, until: str | None = None
) -> tuple[Mapping[str, tuple[str, ...]], label_versions.LabelRecord]:
    """Labels by the judgments up to a time, and where they come from.

    Args:
        campaign: with pools and judgments.
        query_set: of the board.
        rule: when an answer is exchanged.
        until: ISO 8601 in UTC; `None` for the last judgment.

    Returns:
        Query -> best documents, under every id that has their text; and the record, whose version
        and parent are those of a first one.
    """
    until = until or max((one.answered_at for one in campaign.judgments), default="")
    recorded = [one for one in campaign.judgments if not until or one.answered_at <= until]
    found = label(campaign, rule, until=until or None)
    record = label_versions.LabelRecord(
        set=query_set,
        version=1,
        parent="",
        rule=rule,
        exclusion=campaign.settings.exclusion,
        failures=campaign.settings.failures,
        until=until,
        judgments=str(digest_bytes(format_judgments(recorded))),
        pools=str(digest_bytes(rows.format_rows(campaign.pools))),
        replaced=found.replaced,
        seen={query: tuple(sorted(docs)) for query, docs in sorted(campaign.seen.items())},
    )
    return spread_labels(found.best, campaign.pools, campaign.challengers), record


def _count_valid(campaign: CampaignContent, until: str | None) -> tuple[Judgment, ...]:
    return counted(
        campaign.judgments,
        exclusion=campaign.settings.exclusion,
        failures=campaign.settings.failures,
        until=until,
    )


def is_made_again(campaign: CampaignContent, version: label_versions.BoardLabels) -> bool:
    """Check whether a campaign's files of today give a version's labels, byte for byte."""
    record = version.record
    settings = msgspec.structs.replace(
        campaign.settings, exclusion=record.exclusion, failures=record.failures
    )
    then = replace(campaign, settings=settings)
    labels, again = make_record(then, record.set, record.rule, until=record.until or None)
    # Ids that were found later with the text of a label were not seen then.
    known = {
        q: [one for one in docs if one in record.seen.get(q, ())] for q, docs in labels.items()
    }
    same = digest_bytes(format_labels(known)) == version.digest
    return same and (again.judgments, again.pools) == (record.judgments, record.pools)


def weigh_challenges(campaign: CampaignContent, rule: LeadRule) -> tuple[Challenge, ...]:
    """Every challenger of a campaign against the best known answers of today."""
    return list_challenges(
        label(campaign, rule),
        campaign.pools,
        campaign.challengers,
        judgments=campaign.judgments,
        tasks=campaign.tasks,
        settings=campaign.settings,
        rule=rule,
    )


def draw_challenges(
    campaign: CampaignContent, challenges: Sequence[Challenge], *, seed: int
) -> tuple[rows.Task, ...]:
    """Tasks for what has to be judged: a batch for each number of judges that pairs still need.

    Args:
        campaign: with the tasks that are there.
        challenges: as `list_challenges` gives them.
        seed: of order, sides and tests; with the number of the batch it says which tasks come.

    Raises:
        InputError: code `too-few-tests`.
    """
    wanted = {
        (one.query, min(one.challenger, one.incumbent), max(one.challenger, one.incumbent)): n
        for one in sorted(challenges, key=lambda one: (-one.wanted, one.query))
        if (n := one.wanted)
    }
    batch = max((task.batch for task in campaign.tasks), default=0) + 1
    tests, settings = campaign.tests, campaign.settings
    return drawing.draw_batch(wanted, tests, settings, seed=seed, batch=batch, why="challenge")


def count_waiting(session: Session, entries: Collection[str] | None = None) -> tuple[Waiting, ...]:
    """Return what the latest preference labels of each query set were made without.

    Nothing is opened: the vault has hashes of the first documents of every run.

    Args:
        session: of the organiser.
        entries: ids of published ones; `None` for all of them.

    Returns:
        One for each set with such labels of which some top waits; baselines are not looked at.
    """
    chosen = [one for one in list_published(session) if entries is None or one.id in entries]
    found = []
    for query_set, versions in label_versions.list_versions(session).items():
        if unseen := _list_all_unseen(session, chosen, query_set, versions[-1].record.seen):
            found.append(Waiting(query_set=query_set, labels=versions[-1].name, tops=len(unseen)))
    return tuple(found)


_Hashes = Mapping[str, NDArray[np.uint64]]


def _hash_seen(seen: Mapping[str, Collection[str]]) -> _Hashes:
    return {
        query: hash_documents([doc.encode() for doc in sorted(set(docs))])
        for query, docs in seen.items()
    }


def _list_all_unseen(
    session: Session,
    entries: Iterable[Submission],
    query_set: str,
    seen: Mapping[str, Collection[str]],
) -> set[tuple[str, int]]:
    """First documents of entries that are not among those; nothing is opened."""
    hashed = _hash_seen(seen)
    return {top for one in entries for top in _list_unseen(session, one, query_set, hashed) or ()}


def _list_unseen(
    session: Session, entry: Submission, query_set: str, seen: _Hashes
) -> set[tuple[str, int]] | None:
    """Query and hash of each first document that is not among those.

    `None` where the vault has no hashes, as of a baseline.
    """
    signatures = signatures_of(session.vault, entry, repair=lambda _: False)
    if not signatures:
        return None
    return {
        (query, first)
        for run, one in signatures.items()
        if query_set_of(run) == query_set
        for query, first in zip(one.queries, one.documents[:, 0].tolist(), strict=True)
        if first and query in seen and first not in seen[query].tolist()
    }


# One round: challengers, tasks, a new version of the labels.

_MANY = 10
_MODES: Mapping[Mode, Algorithm] = {"paper": "tournament", "sequential": "sequential"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOptions:
    """Options of a round."""

    query_set: boards.QuerySet = None
    documents: Documents = None
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


def maintain(
    session: Session, folder: CampaignFolder, options: RoundOptions, *, progress: Progress = SILENT
) -> Answer:
    """Look for challengers, draw tasks for them, and publish a version where that is asked for.

    Args:
        session: of the board's organiser; its lock is held.
        folder: the campaign.
        options: what is done.
        progress: counts runs.

    Returns:
        What was found and done; money in hundredths of the currency.

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
    found: dict[str, Any] = {
        "set": name,
        "rule": rule,
        "error_of_one": chance_of_lead(rule.needed(1), rule.cap),
        "challengers": sum(len(row.candidates) for row in held.challengers),
        "waiting": len(_list_all_unseen(session, list_published(session), name, held.seen)),
        "challenges": challenges,
        "tasks": len(drawn),
        "price": len(drawn) * held.settings.task_price,
        "currency": held.settings.currency,
        "replaced": label(held, rule).replaced,
        "published": None if published is None else published.name,
        "scored": scored,
    }
    versions = [
        (one, label_versions.compare_version(session, one), is_made_again(held, one))
        for one in label_versions.list_versions(session).get(name, ())
    ]
    found["versions"] = [
        _version_document(one, change, same=same) for one, change, same in versions
    ]
    return Answer(
        answer=write("maintenance.headline", found=found),
        summary=write_facts(
            "maintenance.round",
            found=found,
            rule=rule,
            versions=versions,
            asked=sum(item.answer is None for task in drawn for item in task.items),
            undone=sum(one.drawn for one in challenges),
            outcomes={"open": 0, "won": 0, "stays": 0} | Counter(one.outcome for one in challenges),
            price=format_money(found["price"], found["currency"]),
            one=chance_of_lead(rule.lead, rule.cap),
            many=_MANY,
        ),
        tables=(),
        document=to_document(found),
    )


def read_campaign(folder: CampaignFolder) -> CampaignContent:
    """A campaign as its files have it."""
    return CampaignContent(
        settings=folder.settings(),
        pools=folder.pools(),
        challengers=folder.challengers(),
        tests=folder.tests(),
        tasks=folder.tasks(),
        judgments=folder.judgments(),
    )


def publish_version(
    session: Session, held: CampaignContent, query_set: str, rule: LeadRule, options: RoundOptions
) -> label_versions.BoardLabels | None:
    """Make a version of the labels; `None` where it would be the one before.

    Raises:
        InputError: code `no-judgments`.
    """
    until = None if options.until is None else format_time(options.until)
    if not _count_valid(held, until):
        found = f"{len(held.judgments):,} judgments, of which none counts"
        raise InputError.of("no-judgments", "judgments.jsonl", found)
    labels, record = make_record(held, query_set, rule, until=until)
    return label_versions.publish_labels(
        session, labels, record, measure=options.measure, public=options.public
    )


def score_new(session: Session, query_set: str, *, progress: Progress = SILENT) -> tuple[str, ...]:
    """Score what is not scored on all versions; the ids of these entries."""
    versions = label_versions.list_versions(session).get(query_set, ())
    if not versions:
        return ()
    with progress.steps("scoring", len(list_published(session))) as done:
        reason = f"scored on preference labels {versions[-1].name}"
        return tuple(
            decision.id
            for decision in label_versions.score_versions(session, why=reason, done=done)
        )


def _choose_rule(
    session: Session, held: CampaignContent, query_set: str, options: RoundOptions
) -> LeadRule:
    """The rule that was asked for; what was not is as in the version before."""
    versions = label_versions.list_versions(session).get(query_set, ())
    before = versions[-1].record.rule if versions else LeadRule(cap=CAP, budget=BUDGET)
    return LeadRule(
        lead=before.lead,
        cap=options.cap or before.cap,
        algorithm=options.algorithm or _MODES[held.settings.mode],
        budget=before.budget if options.budget is None else options.budget,
    )


def _take_challengers(
    session: Session,
    folder: CampaignFolder,
    held: CampaignContent,
    query_set: str,
    documents: Mapping[str, str] | None,
    *,
    progress: Progress,
) -> CampaignContent:
    """The campaign with the first documents of published runs that nobody has looked at.

    Where it has texts nothing enters without one. Only runs with such a document are opened.
    """
    if documents is None and any(one.text for pool in held.pools for one in pool.candidates):
        return held
    seen, published = _hash_seen(held.seen), list_published(session)
    entries = [one for one in published if _list_unseen(session, one, query_set, seen) != set()]

    def read(source: BinaryIO, path: str, order: Order) -> Tops:
        return read_tops(source, path=path, depth=1, order=order)

    with progress.steps("opening runs", len(published)) as done:
        tops = read_published(session, query_set, entries, read, done=done)
    found = pool_challengers(tops, held.pools, held.challengers, documents=documents)
    if found != held.challengers:
        folder.write_challengers(found)
    return replace(held, challengers=found)


def _version_document(
    labels: label_versions.BoardLabels, change: label_versions.RankingChange | None, *, same: bool
) -> dict[str, object]:
    record = to_document(labels.record)
    del record["seen"]
    return record | {
        "name": labels.name,
        "sha256": labels.digest,
        "public": labels.view.public,
        "measure": labels.view.measure,
        "same": same,
        "change": change,
    }
