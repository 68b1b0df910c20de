"""What a page says of a board that neither its standings nor its rules hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from heldout.board.rules.spec import BoardSpec, Example
from heldout.ids import Digest
from heldout.site.trust import TrustLine

__all__ = ["BoardFacts", "SetFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFacts:
    """Sizes of one query set.

    Attributes:
        queries: how many queries a submission answers.
        judged: how many of them a mean is taken over; `None` where nothing was published.
    """

    queries: int
    judged: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardFacts:
    """A board's sizes and addresses.

    Attributes:
        sets: name of a query set -> its sizes.
        events: number of events in the public log.
        head: hash of the last of them.
        example: a query and its answer, `None` where there is none to show.
        repository: address of the board's repository, or "".
        home: address under which `leaderboard/` is published, or ""; permalinks use it.
        trust: what others can check the organisers by, in order.
        closed: when the board was closed for good, `None` before.
        versions: the rules since the first submission, each with its first day, in order.
    """

    sets: Mapping[str, SetFacts] = field(default_factory=dict)
    events: int
    head: Digest
    example: Example | None = None
    repository: str = ""
    home: str = ""
    trust: tuple[TrustLine, ...] = ()
    closed: datetime | None = None
    versions: tuple[tuple[date, BoardSpec], ...] = ()
