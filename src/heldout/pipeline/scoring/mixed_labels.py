"""Scores that stand beside each other and were made with different labels, which nothing may rank.

Labels are mended entry by entry: until the last one is scored anew, the mended ones are ranked by
other labels than the rest. Whoever corrects one entry alone chooses who is ranked by which.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from heldout.board.log.history import History, Submission
from heldout.board.rules.held_out import is_key, names_of_view
from heldout.board.rules.label_views import rules_told_by
from heldout.board.rules.spec import BoardSpec
from heldout.errors import printable
from heldout.pipeline.scoring.evidence import make_evidence
from heldout.pipeline.scoring.score_files import ScoreFile, read_kept
from heldout.store.vault import Vault

__all__ = ["MixedLabels", "ScoredWith", "find_mixed", "list_mixed", "say_mixed", "scored_with"]

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
        if (scores := read_kept(vault, submission)) is not None
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
