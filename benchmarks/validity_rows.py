"""What the benchmark of the validity analyses measures: one explicit table."""

from collections.abc import Callable
from dataclasses import dataclass

from validity_scores import Simulated

__all__ = ["ROWS", "Row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One piece of work, done by us, by a peer and by the floor.

    Attributes:
        what: its name.
        ours: does all of it.
        peer: does a part of it as one would write it, and says what share of the whole that was.
        peer_name: who that is.
        floor: what nobody can do without.
        at_most_ratio: target, our seconds over the peer's.
        at_most_seconds: target, our seconds on the machine that the targets were set on.
    """

    what: str
    ours: Callable[[Simulated], object]
    peer: Callable[[Simulated], float] | None = None
    peer_name: str = ""
    floor: Callable[[Simulated], object] | None = None
    at_most_ratio: float | None = None
    at_most_seconds: float | None = None


ROWS: tuple[Row, ...] = ()
