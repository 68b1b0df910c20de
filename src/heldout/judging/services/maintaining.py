"""Keeps the preference labels of a board alive: what of its published runs nobody has judged yet.

The queue is stored nowhere. It follows from the published runs, the pools, the judgments and the
labels, so it can be asked for at any time.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from heldout.board.log.submission import Submission
from heldout.board.scores.compared import signatures_of
from heldout.board.scores.published import list_published, read_published
from heldout.board.scores.session import Session
from heldout.errors import InputError
from heldout.ids import digest_bytes, query_set_of
from heldout.judging.campaign.drawing import draw_tasks
from heldout.judging.campaign.judgments import Judgment, counted, format_judgments
from heldout.judging.campaign.pools import Pool, stand_for
from heldout.judging.campaign.rows import Item, Task, format_rows
from heldout.judging.campaign.settings import Settings
from heldout.judging.labels.maintenance import (
    Challenge,
    LeadRule,
    Maintained,
    first_best,
    follow_challenges,
    is_challenge,
    list_challenges,
    pool_challengers,
    seen_documents,
    spread_labels,
)
from heldout.judging.services.label_versions import (
    BoardLabels,
    LabelRecord,
    format_labels,
    list_versions,
)
from heldout.trec.orders import Order
from heldout.trec.scanning.scanners import hash_documents
from heldout.trec.tops import Tops, read_tops


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
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
    tests: tuple[Item, ...]
    tasks: tuple[Task, ...]
    judgments: tuple[Judgment, ...]


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


def find_challengers(
    session: Session,
    query_set: str,
    campaign: Campaign,
    *,
    documents: Mapping[str, str] | None,
    done: Callable[[], None] = lambda: None,
) -> tuple[Pool, ...]:
    """The first documents of published runs that nobody has looked at, with those found before.

    Only runs with such a document are opened.

    Args:
        session: of the organiser.
        query_set: of the board, the pools' queries.
        campaign: with its pools.
        documents: id -> text; `None` where only ids are known.
        done: called after each run that was opened.

    Raises:
        InputError: code `no-text`; and as `read_published`.
        TrustError, StoreError: likewise.
    """
    seen = _hash_seen(seen_documents(campaign.pools, campaign.challengers))
    entries = [
        e for e in list_published(session) if _list_unseen(session, e, query_set, seen) != set()
    ]

    def read(source: BinaryIO, path: str, order: Order) -> Tops:
        return read_tops(source, path=path, depth=1, order=order)

    tops = read_published(session, query_set, entries, read, done=done)
    return pool_challengers(tops, campaign.pools, campaign.challengers, documents=documents)


def label(campaign: Campaign, rule: LeadRule, *, until: str | None = None) -> Maintained:
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


def check_judged(campaign: Campaign, *, until: str | None = None) -> None:
    """Refuse to publish labels that nobody judged.

    Raises:
        InputError: code `no-judgments`: none counts up to this time.
    """
    if not _count_valid(campaign, until):
        raise InputError.of(
            code="no-judgments",
            path="judgments.jsonl",
            found=f"{len(campaign.judgments):,} judgments, of which none counts",
            expected="at least one that counts, before labels are published",
            hint="`heldout prefer export` writes those of the judging pages",
        )


def make_record(
    campaign: Campaign, query_set: str, rule: LeadRule, *, until: str | None = None
) -> tuple[Mapping[str, tuple[str, ...]], LabelRecord]:
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
    seen = seen_documents(campaign.pools, campaign.challengers)
    record = LabelRecord(
        set=query_set,
        version=1,
        parent="",
        algorithm=rule.algorithm,
        lead=rule.lead,
        cap=rule.cap,
        budget=rule.budget,
        exclusion=campaign.settings.exclusion,
        failures=campaign.settings.failures,
        until=until,
        judgments=str(digest_bytes(format_judgments(recorded))),
        pools=str(digest_bytes(format_rows(campaign.pools))),
        replaced=found.replaced,
        seen={query: tuple(sorted(docs)) for query, docs in sorted(seen.items())},
    )
    return spread_labels(found.best, campaign.pools, campaign.challengers), record


def _count_valid(campaign: Campaign, until: str | None) -> tuple[Judgment, ...]:
    return counted(
        campaign.judgments,
        exclusion=campaign.settings.exclusion,
        failures=campaign.settings.failures,
        until=until,
    )


def is_made_again(campaign: Campaign, version: BoardLabels) -> bool:
    """Whether a campaign's files of today give a version's labels, byte for byte."""
    record = version.record
    settings = msgspec.structs.replace(
        campaign.settings, exclusion=record.exclusion, failures=record.failures
    )
    labels, again = make_record(
        replace(campaign, settings=settings),
        record.set,
        LeadRule(
            lead=record.lead, cap=record.cap, algorithm=record.algorithm, budget=record.budget
        ),
        until=record.until or None,
    )
    # Ids that were found later with the text of a label were not seen then.
    then = {q: [doc for doc in docs if doc in record.seen.get(q, ())] for q, docs in labels.items()}
    same = digest_bytes(format_labels(then)) == version.digest
    return same and (again.judgments, again.pools) == (record.judgments, record.pools)


def weigh_challenges(campaign: Campaign, rule: LeadRule) -> tuple[Challenge, ...]:
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
    campaign: Campaign, challenges: Sequence[Challenge], *, seed: int
) -> tuple[Task, ...]:
    """Tasks for what has to be judged: a batch for each number of judges that pairs still need.

    Args:
        campaign: with the tasks that are there.
        challenges: as `list_challenges` gives them.
        seed: of order, sides and tests; with the number of the batch it says which tasks come.

    Raises:
        InputError: code `too-few-tests`.
    """
    batch = max((task.batch for task in campaign.tasks), default=0)
    open_ones = sorted(
        (one for one in challenges if one.wanted), key=lambda one: (-one.wanted, one.query)
    )
    tasks: list[Task] = []
    for judges, group in groupby(open_ones, key=lambda one: one.wanted):
        batch += 1
        pairs = [
            (one.query, min(one.challenger, one.incumbent), max(one.challenger, one.incumbent))
            for one in group
        ]
        tasks += draw_tasks(
            pairs,
            campaign.tests,
            msgspec.structs.replace(campaign.settings, judges=judges),
            rng=np.random.Generator(np.random.PCG64([seed, batch])),
            batch=batch,
            why="challenge",
        )
    return tuple(tasks)


def count_unseen(session: Session, query_set: str, campaign: Campaign) -> int:
    """First documents of published entries that a campaign has not looked at; nothing is opened."""
    seen = _hash_seen(seen_documents(campaign.pools, campaign.challengers))
    return len(_list_all_unseen(session, list_published(session), query_set, seen))


def count_waiting(session: Session, entries: Collection[str] | None = None) -> tuple[Waiting, ...]:
    """What the latest preference labels of each query set were made without.

    Nothing is opened: the vault has hashes of the first documents of every run.

    Args:
        session: of the organiser.
        entries: ids of published ones; `None` for all of them.

    Returns:
        One for each set with such labels of which some top waits; baselines are not looked at.
    """
    chosen = [one for one in list_published(session) if entries is None or one.id in entries]
    found = []
    for query_set, versions in list_versions(session).items():
        seen = _hash_seen(versions[-1].record.seen)
        if unseen := _list_all_unseen(session, chosen, query_set, seen):
            found.append(Waiting(query_set=query_set, labels=versions[-1].name, tops=len(unseen)))
    return tuple(found)


_Hashes = Mapping[str, NDArray[np.uint64]]


def _hash_seen(seen: Mapping[str, Collection[str]]) -> _Hashes:
    return {
        query: hash_documents([doc.encode() for doc in sorted(set(docs))])
        for query, docs in seen.items()
    }


def _list_all_unseen(
    session: Session, entries: Iterable[Submission], query_set: str, seen: _Hashes
) -> set[tuple[str, int]]:
    return {top for one in entries for top in _list_unseen(session, one, query_set, seen) or ()}


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
