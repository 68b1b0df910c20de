"""The best run that anybody has sent, in a view: what a new score is compared with by the ratchet.

A run counts once an event has answered for it in the view: every baseline, and every published
entry, whether its score was published or not, for good. A submission that was rejected or withdrawn
was never answered. An imported entry has no scores by query, and neither has a baseline from before
runs were kept. Of equally good runs the earlier one counts.

All runs are compared by their scores of today. As long as some are scored with earlier labels than
others, or their scores are not known, nothing is compared.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from heldout.board.log.events import Entry
from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.rules.changes import is_key, names_of_view, release_rule_at
from heldout.board.rules.release import is_higher, score_vector
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.scores.kept import Evidence
from heldout.errors import InputError, Problem, StoreError, printable

_ANSWERS = ("baseline", "published")
_AGAIN = ("corrected", "reviewed")
_SHOWN = 5
Read = Callable[[str], Evidence]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """What a new score is compared with in a view.

    Attributes:
        run: the best run that anybody has sent.
        digest: under which the vault keeps its scores by query.
        baseline: the baseline with the best published score, by which the jitter is measured.
    """

    run: Evidence
    digest: str
    baseline: Evidence


def is_answered(submission: Submission, view: str) -> bool:
    """Whether an event has answered for a run in a view, so that later runs are held against it."""
    if submission.status != "published" or (submission.baseline and not submission.runs):
        return False
    return view in submission.scores or view in submission.untold


def best_baseline(history: History, view: str) -> Submission | None:
    """The baseline with the best published score in a view; of equal ones the first."""
    known = [s for s in history.submissions.values() if s.baseline and is_answered(s, view)]
    return max(known, key=lambda one: Decimal(one.scores[view]), default=None)


def list_without_baseline(history: History, spec: BoardSpec) -> tuple[str, ...]:
    """The views in which no score can be published yet: by the ratchet, or with noise.

    By the ratchet there is nothing to compare it with; noise is in a baseline's standard errors.

    Args:
        history: the organisers'.
        spec: the rules of a day.
    """
    ratchet = spec.release.rule == "ratchet"
    views = (
        view
        for view in spec.public_views
        if view.noise is not None
        or (ratchet and spec.sets[view.set].held_out and not view.for_information)
    )
    return tuple(view.name for view in views if best_baseline(history, view.name) is None)


def values_of(evidence: Evidence) -> NDArray[np.float64]:
    """Its scores by query, as the release rule takes them."""
    return score_vector(evidence.score.per_query, n=evidence.score.n)


def has_labels_in_force(evidence: Evidence, view: View, history: History) -> bool:
    """Whether scores were made with the labels that the log commits to now.

    The key does not count: it never changes, and a run may be older than it.
    """
    names = {name for name in names_of_view(view) if not is_key(name)}
    now = {name: digest for name, digest in history.labels.items() if name in names}
    return now == evidence.scored_with


def best_of(runs: Iterable[Evidence]) -> Evidence:
    """The best of some runs by their mean, of equal ones the first.

    Args:
        runs: in the order in which they were answered, scored with the same labels; at least one.

    Raises:
        StoreError: two of them are not scored on the same queries.
    """
    best, *others = runs
    for run in others:
        if _queries(run) != _queries(best):
            raise StoreError(
                f"{printable(run.id)} is scored on other queries than {printable(best.id)} in view "
                f'{run.view}; score it again first: heldout correct {printable(run.id)} --why "…"'
            )
        best = run if is_higher(values_of(run), values_of(best)) else best
    return best


def find_best(entries: Sequence[Entry], history: History, view: View, read: Read) -> Best:
    """The best run of a view.

    Few files are read: the best of all is the better of the run that was answered last and the one
    that it was compared with. All are read once scores have been made again since.

    Args:
        entries: the vault's log, with every field opened.
        history: what it says.
        view: the view.
        read: gives the evidence of a digest.

    Raises:
        InputError: code `no-baseline`: the view has none.
        StoreError: a run is scored with other labels than those in force, or its scores by query
            are not known.
    """
    baseline = best_baseline(history, view.name)
    if baseline is None:
        raise InputError(_no_baseline(view.name))
    last = _list_last(entries, history, view.name)
    names = _list_all(entries, history, view.name) if last is None else last
    asked = list(dict.fromkeys((*names, baseline.id)))
    if not _are_in_force(asked, history, view, read):
        every = _list_all(entries, history, view.name)
        wrong = [name for name in every if not _are_in_force([name], history, view, read)]
        raise StoreError(_say_mixed(view.name, wrong))
    digests = {name: history.submissions[name].evidence[view.name] for name in asked}
    runs = {name: read(digest) for name, digest in digests.items()}
    best = best_of(runs[name] for name in names)
    return Best(run=best, digest=digests[best.id], baseline=runs[baseline.id])


def _list_last(entries: Sequence[Entry], history: History, view: str) -> list[str] | None:
    """The runs of which one is the best, from the last answers; `None` where all have to be asked.

    Answers by another rule do not say what the best run was, so that all back to one that does, or
    to the first, are asked.
    """
    names: list[str] = []
    for entry in reversed(entries):
        name = str(entry.event.submission)
        if entry.event.kind in _AGAIN and view in (entry.get("evidence") or {}):
            return None
        if entry.event.kind not in _ANSWERS or not is_answered(history.submissions[name], view):
            continue
        names.append(name)
        bar = (entry.get("bars") or {}).get(view)
        received = history.submissions[name].received
        if bar is not None and release_rule_at(history, received) == "ratchet":
            names.append(bar)
            break
    return list(dict.fromkeys(reversed(names)))


def _list_all(entries: Sequence[Entry], history: History, view: str) -> list[str]:
    """Every run that was answered, in the order of the answers."""
    names = (str(e.event.submission) for e in entries if e.event.kind in _ANSWERS)
    return [name for name in names if is_answered(history.submissions[name], view)]


def _are_in_force(names: Iterable[str], history: History, view: View, read: Read) -> bool:
    """Whether the scores by query of all these runs are known, by the labels of today."""
    digests = (history.submissions[name].evidence.get(view.name) for name in names)
    return all(
        digest is not None and has_labels_in_force(read(digest), view, history)
        for digest in digests
    )


def _queries(run: Evidence) -> frozenset[str]:
    return frozenset(q for q, value in run.score.per_query.items() if value is not None)


def _say_mixed(view: str, names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(map(printable, names[:_SHOWN])) + (f" and {more} more" if more > 0 else "")
    listed = " ".join(map(printable, names))
    return (
        f"view {view}: no score is published while {shown} {'is' if len(names) == 1 else 'are'} "
        "not scored with the labels of today, for a new score is compared with the best run; score "
        f'every run again first: heldout correct {listed} --why "…"'
    )


def _no_baseline(view: str) -> Problem:
    return Problem(
        code="no-baseline",
        path=f"view {view}",
        found="no baseline",
        expected="a baseline with which the first score is compared: release.rule is ratchet",
        hint="add a run of the organisers' own first: heldout board baseline NAME --run SET=FILE",
    )
