"""Versions of a board's preference labels: each a file of the vault, a view, and its origin.

`labels/SET-pref-N.qrels` has the labels and `labels/SET-pref-N.json` their origin; the log commits
to both. Of a set whose labels are in the open both lie in the board's `qrels/`. No version is ever
edited: the next one has the next number and a view of its own, and every published run is scored on
it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import msgspec
import numpy as np

from heldout.board.organiser.decide import Decision, correct
from heldout.board.rules import changes, spec_file
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores.commitments import check_unchanged, compare_held_out
from heldout.board.scores.rescoring import Precomputed, check_set, list_published, rescore_each
from heldout.board.scores.session import Session, accept_rules
from heldout.board.scores.sets import load_sets
from heldout.board.scores.stored import ScoreFile, read_stored
from heldout.board.store.repository import SPEC
from heldout.errors import HeldoutError, InputError, StoreError
from heldout.files.durable import Folder
from heldout.ids import digest_bytes
from heldout.judging.campaign.settings import Exclusion
from heldout.judging.labels import maintenance, rescoring
from heldout.judging.labels.labels import format_labels
from heldout.scoring.measures import parse_measure
from heldout.stats.rank_correlation import Both, TauRange, find_taus

_MARK = "-pref-"
_PRIVATE, _OPEN = 0o600, 0o644


class LabelRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a version's labels come from: with the campaign's files they can be made again.

    Attributes:
        set: the query set.
        version: from 1.
        parent: the version before; empty for the first one.
        rule: when an answer was exchanged.
        exclusion: what a failed test excluded.
        failures: so many failed tests in a task excluded.
        until: the last judgment's time, ISO 8601 in UTC; empty where none has a time.
        judgments: SHA-256 of the judgments up to then.
        pools: SHA-256 of the pools.
        replaced: best known answers that challengers replaced, since the first version.
        seen: query -> every document that was looked at.
    """

    set: str
    version: int
    parent: str
    rule: maintenance.LeadRule
    exclusion: Exclusion
    failures: int
    until: str
    judgments: str
    pools: str
    replaced: tuple[maintenance.Replacement, ...]
    seen: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardLabels:
    """A version that a view of the board names.

    Attributes:
        name: of labels and view.
        view: of board.toml.
        record: where its labels come from.
        digest: SHA-256 of the labels.
    """

    name: str
    view: View
    record: LabelRecord
    digest: str


def list_versions(session: Session) -> Mapping[str, tuple[BoardLabels, ...]]:
    """Query set -> its versions of preference labels, in order; only sets that have some.

    Raises:
        StoreError: a record is missing or damaged.
    """
    found: defaultdict[str, list[BoardLabels]] = defaultdict(list)
    for view in session.spec().views:
        if view.labels is not None and view.labels.startswith(f"{view.set}{_MARK}"):
            found[view.set].append(_read_version(session, view, view.labels))
    return {
        name: tuple(sorted(versions, key=lambda one: one.record.version))
        for name, versions in found.items()
    }


def publish_labels(
    session: Session,
    labels: Mapping[str, Sequence[str]],
    record: LabelRecord,
    *,
    measure: str | None,
    public: bool,
) -> BoardLabels | None:
    """Make a new version: labels and record in the vault, a view in board.toml, one event.

    Scores are not made here: `score_versions`.

    Args:
        session: its lock is held.
        labels: query -> best documents.
        record: where they come from; version and parent are set here.
        measure: of the view; `None` for that of the version before, or of the set's first view.
        public: whether scores on the labels are published.

    Returns:
        `None` where the labels are those of the latest version.

    Raises:
        InputError: code `unknown-set`; `every-score-public`: every entry's score would be published
            where `clear` withholds some; `no-labels`, `label-id`; `check_new_rules`'s.
        StoreError: a file that decides scores is not what the log commits to.
    """
    spec = session.spec()
    _check(spec, record.set, public=public)
    check_unchanged(compare_held_out(session.vault, session.history(), spec))
    if not any(labels.values()):
        raise InputError.of("no-labels", "judgments")
    versions = list_versions(session).get(record.set, ())
    data = format_labels(labels)
    if versions and versions[-1].digest == digest_bytes(data):
        return None
    number = versions[-1].record.version + 1 if versions else 1
    name = f"{record.set}{_MARK}{number}"
    if measure is None:
        own = (view.measure for view in spec.views if view.set == record.set)
        measure = versions[-1].view.measure if versions else next(own)
    view = View(name=name, set=record.set, measure=measure, labels=name, public=public)
    before = session.rules()
    after = f"{before.rstrip()}\n\n{_format_view(view)}"
    spec_file.parse_spec(after.encode(), path=SPEC)
    parent = versions[-1].name if versions else ""
    record = msgspec.structs.replace(record, version=number, parent=parent)
    folder = _folder(session, record.set)
    mode = _PRIVATE if spec.sets[record.set].held_out else _OPEN
    folder.write_whole(f"{name}.qrels", data, mode=mode)
    folder.write_whole(f"{name}.json", msgspec.json.encode(record), mode=mode)
    try:
        _take_rules(session, before, after, why=f"preference labels {name}: version {number}")
    except HeldoutError:
        for suffix in ("qrels", "json"):
            folder.delete(f"{name}.{suffix}")
        raise
    return BoardLabels(name=name, view=view, record=record, digest=str(digest_bytes(data)))


def score_versions(
    session: Session, *, why: str, done: Callable[[], None] = lambda: None
) -> tuple[Decision, ...]:
    """Score every published run again that is not scored on all versions.

    What was scored is not scored again, so a call after a crash goes on. Public scores are
    published by an erratum; of others the log vouches for the file alone.

    Args:
        session: its lock is held; the rules were logged.
        why: the reason; it is public where a score is published.
        done: called after each run.

    Raises:
        StoreError: a file that decides scores is not what the log commits to; or as below.
        TrustError, InputError: a run cannot be scored.
    """
    spec = session.spec()
    check_unchanged(compare_held_out(session.vault, session.history(), spec))
    versions = [one for each in list_versions(session).values() for one in each]
    sets = load_sets(session.repository, spec, vault=session.vault)
    lacking: dict[str, Mapping[str, str]] = {}
    for entry in list_published(session):
        stored = read_stored(session.vault, entry)
        if stored is None or _lacks(stored, versions, session.spec_at(entry.received)):
            lacking[entry.id] = {} if stored is None else stored.labels
        else:
            done()
    decisions = []
    ahead = Precomputed(session, sets)
    for name, scores in rescore_each(session, sets, list(lacking), ahead=ahead, done=done):
        repaired = not lacking[name].items() <= scores.labels.items()
        reason = f"{why}, and on labels that were repaired" if repaired else why
        decisions.append(correct(session, name, scores, why=reason))
    ahead.forget(lacking)
    return tuple(decisions)


def _lacks(stored: ScoreFile, versions: Sequence[BoardLabels], spec: BoardSpec) -> bool:
    """Check whether scores lack a version of a set that the entry had to answer."""
    return any(
        stored.labels.get(f"{one.view.set}/{one.view.labels}") != one.digest
        for one in versions
        if one.view.set in spec.sets
    )


def _folder(session: Session, query_set: str) -> Folder:
    """Return where the labels of a set lie."""
    if session.spec().sets[query_set].held_out:
        return session.vault.files.below("labels")
    return session.repository.files.below(str(PurePosixPath(changes.open_labels("any")).parent))


def _read_version(session: Session, view: View, labels: str) -> BoardLabels:
    folder = _folder(session, view.set)
    file, qrels = folder.file(f"{labels}.json"), folder.file(f"{labels}.qrels")
    for one in (file, qrels):
        if not one.is_file():
            raise StoreError(f"{one} is missing; restore it from the backup")
    try:
        record = msgspec.json.decode(file.read_bytes(), type=LabelRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(f"{file} is damaged; restore it from the backup") from None
    digest = str(digest_bytes(qrels.read_bytes()))
    return BoardLabels(name=view.name, view=view, record=record, digest=digest)


def _check(spec: BoardSpec, query_set: str, *, public: bool) -> None:
    check_set(spec, query_set)
    if public and spec.sets[query_set].held_out and spec.release.rule != "rounded":
        raise InputError.of(
            "every-score-public", "--public", f'release.rule = "{spec.release.rule}"'
        )


def _take_rules(session: Session, before: str, after: str, *, why: str) -> None:
    """Put new rules in force, or leave the old ones."""
    session.repository.write_file(SPEC, after.encode())
    try:
        accept_rules(session, why=why)
    except HeldoutError:
        session.repository.write_file(SPEC, before.encode())
        raise


def _format_view(view: View) -> str:
    reserve = "" if view.public else "public = false\n"
    return (
        f'[[views]]\nname = "{view.name}"\nset = "{view.set}"\nmeasure = "{view.measure}"\n'
        f'labels = "{view.labels}"\n{reserve}'
    )


# What a version of labels changed in the ranking of everything published.
#
# It is stored nowhere: it follows from the scores by query, which the vault has and the log
# vouches for.


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An entry whose rank is another one; equal scores share the best of their ranks."""

    id: str
    before: int
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingChange:
    """What a version changed in the ranking.

    Attributes:
        version: its name.
        before: the view that it is compared with: the version before, or the set's own labels.
        entries: published entries and baselines with a score on both.
        queries: with a score of each of them on both: ranks are by the means over these.
        taus: over all, and over the best ten before; empty for fewer than two entries.
        moves: entries with another rank, in the order of their ranks now.
    """

    version: str
    before: str
    entries: int
    queries: int
    taus: tuple[TauRange, ...]
    moves: tuple[Move, ...]


def compare_version(session: Session, version: BoardLabels) -> RankingChange | None:
    """Return what a version changed in the ranking of everything published.

    Args:
        session: of the organiser.
        version: whose scores the vault has.

    Returns:
        `None` where the set has no view with the same measure to compare with.
    """
    before = version.record.parent or _own_view(session.spec(), version.view)
    if before is None:
        return None
    ids, pairs = [], []
    for entry in list_published(session):
        stored = read_stored(session.vault, entry)
        if stored is not None and {before, version.name} <= stored.views.keys():
            ids.append(entry.id)
            pairs.append([stored.views[name].per_query for name in (before, version.name)])
    known = [{q for q, value in one.items() if value is not None} for both in pairs for one in both]
    queries = sorted(set.intersection(*known)) if known else []
    taus: tuple[TauRange, ...] = ()
    moves: list[Move] = []
    if queries:
        sign = 1.0 if parse_measure(version.view.measure).kind.better == "higher" else -1.0
        values = np.array([[[one[q] for q in queries] for one in both] for both in pairs], float)
        first, second = sign * values.mean(axis=2).T
        taus = find_taus(ids, Both(before=first, after=second)) if len(ids) > 1 else ()
        ranks = (rescoring.rank_means(one.tolist()) for one in (first, second))
        moves = [
            Move(id=one, before=b, after=a) for one, b, a in zip(ids, *ranks, strict=True) if a != b
        ]
    return RankingChange(
        version=version.name,
        before=before,
        entries=len(ids) if queries else 0,
        queries=len(queries),
        taus=taus,
        moves=tuple(sorted(moves, key=lambda one: (one.after, one.id))),
    )


def _own_view(spec: BoardSpec, view: View) -> str | None:
    """The first view of the set on its own labels, all queries, the same measure."""
    return next(
        (
            one.name
            for one in spec.views
            if (one.set, one.measure, one.labels, one.files) == (view.set, view.measure, None, ())
            and (one.part, one.noise) == (view.part, None)
        ),
        None,
    )
