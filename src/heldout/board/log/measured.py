"""What an event told of a ranking, as the page shows it."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import msgspec

from heldout.board.log.figures import Figures, LeftOut, list_wrong

__all__ = ["Measured", "read_measured"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What an event told of a ranking.

    Attributes:
        event: its number.
        at: its time.
        season: whose entries; "" for a board without seasons.
        view: what they were ranked by.
        due: the day from which it may be shown.
        seed: of what was drawn.
        entries: ids of those that were compared, in the order they came.
        left_out: id -> why it was not compared.
        figures: what is told.
        digest: salted digest of the scores by query.
    """

    event: int
    at: datetime
    season: str
    view: str
    due: date
    seed: int
    entries: tuple[str, ...]
    left_out: Mapping[str, LeftOut]
    figures: Figures
    digest: str

    @property
    def covered(self) -> frozenset[str]:
        """The ids that were looked at, compared or left out."""
        return frozenset((*self.entries, *self.left_out))


def read_measured(
    public: Mapping[str, Any], *, event: int, at: datetime, digest: str, known: AbstractSet[str]
) -> Measured:
    """What an event says whose fields are of the right types.

    Args:
        public: its public fields.
        event: its number.
        at: its time.
        digest: salted, of the scores.
        known: ids of what was published.

    Raises:
        ValueError: its figures do not fit its entries, or these are not published.
    """
    figures = msgspec.convert(public["figures"], Figures)
    entries = tuple(public["entries"])
    measured = Measured(
        event=event,
        at=at,
        season=public["season"],
        view=public["view"],
        due=date.fromisoformat(public["due"]),
        seed=public["seed"],
        entries=entries,
        left_out=dict(public["left_out"]),
        figures=figures,
        digest=digest,
    )
    wrong = [*list_wrong(figures, entries)]
    if measured.due > at.date():
        wrong.append("it was told before its day")
    if not measured.covered <= known or set(entries) & measured.left_out.keys():
        wrong.append("an entry is not published, or compared and left out")
    if wrong:
        raise ValueError("; ".join(wrong))
    return measured
