"""Tasks: what one worker does at a sitting; ten pairs and three tests (shallow-pooling, 3.1)."""

from typing import Literal

import msgspec

__all__ = ["Item", "Task", "Why"]

Why = Literal["pool", "challenge"]
"""Why a pair is judged: it lies in a pool; a new run's top challenges the best known answer."""


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pair as it is shown.

    Attributes:
        query: its id.
        left: id of passage A, shown left (above, on a phone).
        right: id of passage B.
        answer: of a test, the passage to be preferred; `None` for a pair that nobody knows.
    """

    query: str
    left: str
    right: str
    answer: str | None = None

    @property
    def pair(self) -> tuple[str, str, str]:
        """Query and the two ids, the lesser first: the same whatever the sides."""
        return (self.query, min(self.left, self.right), max(self.left, self.right))


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pairs in the order shown.

    Attributes:
        task: its id, unique in the campaign.
        items: in order.
        why: why its pairs are judged.
        batch: which drawing of tasks it came from, from 1.
    """

    task: str
    items: tuple[Item, ...]
    why: Why = "pool"
    batch: int = 1
