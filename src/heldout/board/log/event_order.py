"""After what each kind of event may come: a log in an order that cannot be is no board's log.

The chain shows that nobody moved an event, not that it could happen: a score of what was never
received, or of what was refused, can be chained as well as any other.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Literal

from heldout.board.log.event_fields import place_of
from heldout.board.log.events import AFTER_CLOSING, Entry
from heldout.errors import StoreError, quote

__all__ = ["FOLLOWS", "State", "check_order"]

State = Literal[
    "new",
    "received",
    "reviewed",
    "asked",
    "withdrawn",
    "rejected",
    "published",
    "imported",
    "baseline",
    "proposed",
    "embargoed",
]
"""What an entry is before an event: how far it has come; `new` for what no event named before.
A published one may also be `proposed`, under new metadata that wait, and `embargoed`."""

_PENDING: frozenset[State] = frozenset(("received", "reviewed", "asked"))
_SHOWN: frozenset[State] = frozenset(("published", "baseline"))
_PUBLISHED: frozenset[State] = frozenset(("published",))
_NEW: frozenset[State] = frozenset(("new",))

FOLLOWS: Mapping[str, AbstractSet[State]] = {
    "received": _NEW | _PENDING | {"rejected"},  # sent again, spoiled copies were refused before
    "reviewed": _PENDING | _SHOWN,  # of what is published: scored anew, and nothing told
    "score-shown": _PENDING,
    "asked": _PENDING,
    "updated": _PENDING | _PUBLISHED,
    "withdrawn": _PENDING,
    "rejected": _PENDING,
    "published": _PENDING,
    "corrected": _SHOWN,
    "proposed": _PUBLISHED,
    "amended": frozenset(("proposed",)),
    "declined": frozenset(("proposed",)),
    "extended": frozenset(("embargoed",)),
    "baseline": _NEW,
    "imported": _NEW,
}
"""Every kind of event about an entry, with what that may be before; a new one needs a line here."""


def check_order(entry: Entry, states: AbstractSet[State], *, closed: bool) -> None:
    """Refuse an event that cannot come where it stands.

    Args:
        entry: an event whose fields are right.
        states: what its entry is before it; empty for an event about the board.
        closed: whether the board was closed before.

    Raises:
        StoreError: with the event's number.
    """
    kind = entry.event.kind
    if closed and kind not in AFTER_CLOSING:
        raise StoreError(f"{place_of(entry)} came after the board was closed")
    if kind == "opened-board" and entry.event.seq:
        raise StoreError(f"{place_of(entry)} opens a board that is open")
    if states and not states & FOLLOWS[kind]:
        name, before = quote(entry.event.submission), " and ".join(sorted(states))
        raise StoreError(f"{place_of(entry)} cannot be: {name} is {before} before it")
