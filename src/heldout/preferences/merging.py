"""Judgments from several places in one file: each once, and none is ever taken out."""

from collections.abc import Iterable

import msgspec

from heldout.preferences.judgments import Judgment

__all__ = ["merge_judgments"]


def merge_judgments(before: Iterable[Judgment], found: Iterable[Judgment]) -> tuple[Judgment, ...]:
    """What was there, in its order, then what is new.

    A judgment that is there stays as it is, but that its task may have been finished since.

    Args:
        before: in the file.
        found: in a database, or in a platform's results.
    """
    fresh = {_place(one): one for one in found}
    kept = [_finished(one, fresh.pop(_place(one), one)) for one in before]
    return (*kept, *fresh.values())


def _place(one: Judgment) -> Judgment:
    return msgspec.structs.replace(one, submitted=False)


def _finished(one: Judgment, later: Judgment) -> Judgment:
    return later if later.submitted else one
