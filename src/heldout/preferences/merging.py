"""Judgments from several places in one file: each once, and none is ever taken out."""

from collections import defaultdict
from collections.abc import Iterable

from heldout.preferences.judgments import Judgment

__all__ = ["merge_judgments"]


def merge_judgments(before: Iterable[Judgment], found: Iterable[Judgment]) -> tuple[Judgment, ...]:
    """What was there, in its order, then what is new.

    A judgment that is there stays as it is, but that its task may have been finished since.

    Args:
        before: in the file.
        found: in a database, or in a platform's results.
    """
    fresh = dict(enumerate(found))
    places = defaultdict(list)
    for number in reversed(fresh):
        places[_place(fresh[number])].append(number)
    kept = []
    for one in before:
        again = places[_place(one)]
        kept.append(_finished(one, fresh.pop(again.pop()) if again else one))
    return (*kept, *fresh.values())


def _place(one: Judgment) -> tuple[object, ...]:
    """What never changes about a judgment, and tells it from every other."""
    return (
        *(one.worker, one.task, one.position, one.query, one.left, one.right),
        *(one.preferred, one.reason, one.shown_at, one.answered_at),
    )


def _finished(one: Judgment, later: Judgment) -> Judgment:
    return later if later.submitted else one
