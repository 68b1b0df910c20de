"""What the analyses of a board are given: its entries in the order they came, and their scores.

Progress, drift and teams need to know who sent a system and when. Scores per query carry tests and
intervals; an old table that holds means only can be described, and no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from heldout.errors import InputError, Problem
from heldout.scores import ScoreTable

__all__ = ["BoardEntry", "BoardScores", "ViewScores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardEntry:
    """A system on a board.

    Attributes:
        id: unique on the board.
        received: when it came, UTC; of an old table the first moment of the day that it claims.
        description: what the system is, as its team wrote it.
        team: who sent it; "" where nobody says.
        institution: where they work; "" where nobody says.
        baseline: whether it is an organiser's own.
        published: whether its score was released.
    """

    id: str
    received: datetime
    description: str = ""
    team: str = ""
    institution: str = ""
    baseline: bool = False
    published: bool = True

    @property
    def day(self) -> date:
        """The day it came."""
        return self.received.date()

    @property
    def name(self) -> str:
        """What it is called in tables and charts."""
        return self.description or self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewScores:
    """The scores of a board's entries on one view.

    Attributes:
        view: its name.
        queries: name of the query set; views with the same one share their queries.
        measure: what was measured, as ir_measures names it.
        public: whether its scores are released; one that is not is a reserve.
        means: score by id; an entry without one is absent.
        table: the same by query, in the order of `means`; `None` where only means are known.
        better: whether `higher` or `lower` scores are better.
    """

    view: str
    queries: str
    measure: str
    public: bool
    means: Mapping[str, float]
    table: ScoreTable | None = None
    better: str = "higher"

    @property
    def title(self) -> str:
        """View and measure, as in `eval RR@10`."""
        return f"{self.view} {self.measure}"

    def signed(self, score: float) -> float:
        """A score so that more is better."""
        return score if self.better == "higher" else -score


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardScores:
    """A board's entries and their scores.

    Attributes:
        board: its name.
        entries: in the order they came; baselines stand where they were added.
        views: by name, in the board's order.
        primary: the view that ranks the board.
    """

    board: str
    entries: tuple[BoardEntry, ...]
    views: Mapping[str, ViewScores]
    primary: str

    def view(self, name: str | None = None) -> ViewScores:
        """A view's scores; without a name those of the view that ranks.

        Raises:
            InputError: code `no-view`.
        """
        wanted = name or self.primary
        if wanted in self.views:
            return self.views[wanted]
        raise InputError(
            Problem(
                code="no-view",
                path="--view",
                found=repr(wanted[:100]),
                expected=f"one of {', '.join(self.views)}",
            )
        )

    def scored(self, view: ViewScores) -> tuple[BoardEntry, ...]:
        """The entries that have a score on a view, in the order they came."""
        return tuple(entry for entry in self.entries if entry.id in view.means)
