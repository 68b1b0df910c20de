"""Whose runs may be opened when a board ends: what its rules say, and what the team says.

A run is its team's. The rules say beforehand whether runs can be opened at all, the team's word is
in its sealed metadata and can be changed until the closing, and the stricter of the rules holds:
those of the day of submission, under which the team agreed, and those at the end.
"""

from collections.abc import Collection

from heldout.board.log.history import History, Submission
from heldout.board.rules.spec import OpenRuns
from heldout.board.rules.spec_file import parse_spec

__all__ = ["may_open_runs", "rule_for_runs"]

_STRICTEST_FIRST: tuple[OpenRuns, ...] = ("never", "with-consent", "always")


def rule_for_runs(history: History, submission: Submission) -> OpenRuns:
    """The stricter of the rules of the day of submission and those in force at the end."""
    texts = (history.rules_at(submission.received), history.rules[-1][1])
    rules = [parse_spec(text.encode()).archive.runs for text in texts]
    return min(rules, key=_STRICTEST_FIRST.index)


def may_open_runs(
    history: History, submission: Submission, *, agreed: Collection[str] = ()
) -> bool:
    """Whether the runs of an entry or baseline may be in the archive.

    Args:
        history: the board's, with the metadata in force.
        submission: a published entry, or a baseline.
        agreed: ids of entries whose teams agreed in another way than by their metadata. It counts
            only where the metadata says nothing: a "no" is never overruled.
    """
    rule = rule_for_runs(history, submission)
    if submission.baseline or rule == "never":
        return rule != "never"
    said = None if submission.identity is None else submission.identity.open_runs
    return (rule == "always" or submission.id in agreed) if said is None else said
