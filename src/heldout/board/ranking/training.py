"""Small data: whether an entry states few enough training pairs to be listed in a view.

Nobody checks what is stated. A view for systems that learn from few examples keeps those that
learn from many from crowding them out, as far as teams say which they are. Source:
fostering-coopetition, section 5.
"""

from collections.abc import Iterable, Mapping

from heldout.board.log.manifest import Identity
from heldout.board.rules.spec import View

__all__ = ["list_reasons"]


def list_reasons(views: Iterable[View], identity: Identity | None) -> Mapping[str, str]:
    """Why an entry is not listed in some views: view -> reason, of no other view.

    Args:
        views: those without `training_at_most` list every entry.
        identity: what its team says of it; `None` while an embargo hides that.
    """
    reasons = {
        view.name: _say_reason(view.training_at_most, identity)
        for view in views
        if view.training_at_most is not None
    }
    return {name: reason for name, reason in reasons.items() if reason}


def _say_reason(most: int, identity: Identity | None) -> str:
    if identity is None:
        return "training pairs withheld by an embargo"
    pairs = None if identity.efficiency is None else identity.efficiency.training_pairs
    if pairs is None:
        return "training pairs not stated"
    return f"{pairs:,} training pairs, more than {most:,}" if pairs > most else ""
