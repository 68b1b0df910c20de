"""Entries of which a board may tell more than their scores by now."""

from dataclasses import dataclass
from datetime import date

from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.trust import Trust

__all__ = ["Due"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Entries of a season, or of a board without seasons, that may be compared by now.

    Attributes:
        spec: the rules, of the season.
        trust: what is told.
        season: its name.
        ranked: ids by released score, the best first.
        since: the latest of the days from which they may be.
    """

    spec: BoardSpec
    trust: Trust
    season: str
    ranked: tuple[str, ...]
    since: date
