"""Scores that stand beside each other and were made with different labels, which nothing may rank.

Labels are corrected entry by entry: until the last one is scored again, the corrected ones are
ranked by other labels than the rest. Whoever corrects one entry alone chooses who is ranked by
which.

What a submission is compared with: all others that the vault knows.

How far a submission lies below the baselines, by scores that never leave the vault.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.policy.checks import Distance, paired_distance
from heldout.board.policy.ensembles import RunLikeness, find_likeness
from heldout.board.policy.identity import Entrant, list_entrants
from heldout.board.rules.changes import is_key, names_of_view, rules_told_by
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.comparisons import (
    digest_inputs,
    list_keys,
    read_comparison,
    read_sketches,
    refresh,
    store_comparison,
)
from heldout.board.scores.kept import (
    ScoreFile,
    make_evidence,
    read_key,
    read_scores,
    read_signatures,
    read_stored,
)
from heldout.board.store.vault import Vault
from heldout.errors import StoreError, printable
from heldout.ids import query_set_of
from heldout.scoring.measures import parse_measure
from heldout.trec.scans import Signature

T = TypeVar("T")

Repair = Callable[[str], bool]
"""Makes what the vault stores of a submission again; whether it could."""


def list_others(
    vault: Vault, history: History, submission: Submission, *, repair: Repair
) -> tuple[Entrant, ...]:
    """Everybody who ever submitted, with their keys where the vault knows them.

    Args:
        vault: of the board.
        history: what its log says.
        submission: whose day it is.
        repair: called for one whose scores are damaged or lost.
    """

    def read(name: str) -> str:
        other = history.submissions[name]
        lost = "scores" in other.kept and not vault.scores(name).is_file()
        return _read(partial(read_key, vault, name), name, "", lost=lost, repair=repair)

    keys = list_keys(vault, history.submissions, read)
    return list_entrants(history, day=submission.received.date(), keys=keys)


def compare_runs(
    vault: Vault, history: History, submission: Submission, *, repair: Repair
) -> Mapping[str, RunLikeness]:
    """Query set -> what runs that were received before are like the submission's.

    Of several seeds the first is compared: the others are like it, or a rule of their own says so.
    What was found is stored, and given again as long as all that it was made of is the same.

    Args:
        vault: of the board.
        history: what its log says.
        submission: the one that is judged.
        repair: called for one whose signatures are damaged or lost.
    """
    names = list(history.submissions)
    before = names[: names.index(submission.id)]
    signatures = signatures_of(vault, submission, repair=repair)
    runs = {name: one for name, one in signatures.items() if name == query_set_of(name)}
    if not runs:
        return {}
    sketches = {name: read_sketches(vault, name, run.queries) for name, run in runs.items()}

    def read(name: str) -> Mapping[str, Signature]:
        return signatures_of(vault, history.submissions[name], repair=repair)

    earlier = refresh(vault, before, sketches, read)
    own = hashlib.sha256(vault.signature(submission.id).read_bytes()).digest()
    made_of = digest_inputs(own, earlier)
    found = read_comparison(vault, submission.id, made_of)
    if found is not None:
        return found
    lost: set[str] = set()

    def read_run(query_set: str, name: str) -> Signature | None:
        found = read(name)
        if not found:
            lost.add(name)
        return found.get(query_set)

    found = {
        query_set: find_likeness(
            run, sketches[query_set].of(list(earlier)), partial(read_run, query_set)
        )
        for query_set, run in runs.items()
    }
    if not lost:  # what was not compared is, once its file is there again
        store_comparison(vault, submission.id, made_of, found)
    return found


def signatures_of(
    vault: Vault, submission: Submission, *, repair: Repair
) -> Mapping[str, Signature]:
    """As `read_signatures`; what is missing or damaged is made again, and empty where it cannot be.

    What waits and was never opened is opened here: a copy would else pass for whichever of the two
    is reviewed first.
    """
    name = submission.id
    expected = "signatures" in submission.kept or submission.status == "received"
    lost = expected and not vault.signature(name).is_file()
    return _read(partial(read_signatures, vault, name), name, {}, lost=lost, repair=repair)


def _read(read: Callable[[], T], name: str, otherwise: T, *, lost: bool, repair: Repair) -> T:
    """Read a file; where it is lost or damaged once more after a repair."""
    for repaired in (False, True):
        if lost or repaired:
            if not repair(name):
                return otherwise
            lost = False
        try:
            return read()
        except StoreError:
            continue
    return otherwise


def list_distances(
    vault: Vault, history: History, spec: BoardSpec, scores: ScoreFile
) -> tuple[Distance, ...]:
    """The distance of a submission from each baseline, in the view that ranks.

    Args:
        vault: has the baselines' scores.
        history: the organisers'.
        spec: the rules of the submission's day.
        scores: the submission's; without that view nothing can be said.

    Returns:
        In the order of the log. Baselines that were scored with other labels are left out.
    """
    view = spec.view(spec.primary)
    own = scores.views.get(view.name)
    if own is None:
        return ()
    distances = []
    better = parse_measure(view.measure).kind.better
    labels = f"{view.set}/{view.labels}" if view.labels else view.set
    for submission in history.submissions.values():
        kept = read_scores(vault, submission.id) if submission.baseline else None
        theirs = None if kept is None else kept.views.get(view.name)
        if kept is None or theirs is None or kept.labels.get(labels) != scores.labels.get(labels):
            continue
        errors = paired_distance(own.per_query, theirs.per_query, better=better)
        if errors is not None:
            distances.append(Distance(baseline=submission.id, errors=errors))
    return tuple(distances)


_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredWith:
    """With which labels an entry or a baseline was scored in a view that is told.

    Attributes:
        id: the entry.
        view: name of the view.
        labels: held-out file, as `board.held_out` names it -> SHA-256.
        last: whether these are the versions that were committed to last.
    """

    id: str
    view: str
    labels: Mapping[str, str]
    last: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedLabels:
    """A view whose scores were made with different versions of its labels.

    Attributes:
        view: its name.
        earlier: the entries and baselines whose scores were not made with the last version.
    """

    view: str
    earlier: tuple[str, ...]


def scored_with(
    history: History, submission: Submission, spec: BoardSpec, scores: ScoreFile
) -> Iterator[ScoredWith]:
    """The labels behind each score that was told; nothing from before they were noted.

    Args:
        history: with the commitments that are to be held against.
        submission: published.
        spec: the rules that it was told by.
        scores: of today.
    """
    for view in spec.views if scores.held_out else ():
        if view.name in submission.evidence and view.name in scores.views:
            labels = make_evidence(submission.id, view, scores).scored_with
            names = {name for name in names_of_view(view) if not is_key(name)}
            last = {name: digest for name, digest in history.labels.items() if name in names}
            yield ScoredWith(id=submission.id, view=view.name, labels=labels, last=labels == last)


def list_mixed(every: Iterable[ScoredWith]) -> tuple[MixedLabels, ...]:
    """The views whose scores were not all made with the same labels."""
    views: dict[str, list[ScoredWith]] = {}
    for one in every:
        views.setdefault(one.view, []).append(one)
    return tuple(
        MixedLabels(view=view, earlier=tuple(one.id for one in scored if not one.last))
        for view, scored in views.items()
        if any(one.labels != scored[0].labels for one in scored)
    )


def find_mixed(vault: Vault, history: History) -> tuple[MixedLabels, ...]:
    """The same of a vault; without reading a score where labels were never changed.

    Args:
        vault: with the scores.
        history: its log.
    """
    if not history.commitments[1:]:
        return ()
    published = (s for s in history.submissions.values() if s.status == "published")
    return list_mixed(
        one
        for submission in published
        if (scores := read_stored(vault, submission)) is not None
        for one in scored_with(
            history, submission, rules_told_by(history, submission, submission.evidence), scores
        )
    )


def say_mixed(mixed: MixedLabels) -> str:
    """A sentence that names the entries."""
    more = len(mixed.earlier) - _SHOWN
    names = ", ".join(map(printable, mixed.earlier[:_SHOWN])) + (
        f" and {more} more" if more > 0 else ""
    )
    return (
        f"view {printable(mixed.view)}: {names} scored with earlier labels than others beside "
        "them, so that their scores cannot be compared"
    )
