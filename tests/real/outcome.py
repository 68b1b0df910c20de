"""What a played board shows, held against the official table: figures, order, trophies, quota.

Everything here is read from the published files as plain JSON and computed again, so that nothing
of the board's own code vouches for itself.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from journey import PER_WINDOW, WINDOW_DAYS, Board

__all__ = [
    "Figure",
    "compare",
    "crowded_windows",
    "expected_order",
    "expected_trophies",
    "logged",
    "page_rows",
    "true_scores",
]

HALF_A_DIGIT = 0.00005 + 1e-9  # official figures have 4 decimals


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One published figure beside the official one.

    Attributes:
        run, view: whose it is.
        published, official: as printed, 4 decimals.
        difference: between the unrounded score in the vault and the official figure.
    """

    run: str
    view: str
    published: str
    official: str
    difference: float

    @property
    def is_equal(self) -> bool:
        """Whether every printed digit is the same."""
        return self.published == self.official

    @property
    def is_official(self) -> bool:
        """Whether it is the same figure: the official one may be rounded the other way."""
        return self.difference <= HALF_A_DIGIT


def page_rows(board: Board) -> list[dict[str, Any]]:
    """Rows of `leaderboard.json`, in their order; scores as the digits in the file."""
    text = (board.repository.root / "leaderboard" / "leaderboard.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text, parse_float=str)["rows"]
    return rows


def logged(board: Board, kind: str) -> Mapping[str, dict[str, Any]]:
    """Submission -> the event of that kind in the public log."""
    lines = (board.repository.root / "log.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line)["event"] for line in lines]
    return {event["submission"]: event for event in events if event["kind"] == kind}


def true_scores(board: Board, submission: str) -> Mapping[str, float]:
    """View -> unrounded score, from the vault."""
    text = (board.vault_root / "scores" / f"{submission}.json").read_text("utf-8")
    return {name: view["mean"] for name, view in json.loads(text)["views"].items()}


def compare(board: Board) -> Iterator[Figure]:
    """Every published figure with its official one."""
    entries = {str(name): entry for name, entry in board.ids().items()}
    for row in page_rows(board):
        entry = entries[row["id"]]
        true = true_scores(board, row["id"])
        for view, official in entry.scores.items():
            yield Figure(
                run=entry.run,
                view=view,
                published=row["scores"][view],
                official=official,
                difference=abs(true[view] - float(official)),
            )


def expected_order(board: Board) -> list[str]:
    """Ids by the official table: the better figure first, then the earlier, then by id."""
    days = {entry.run: day for day, entries in board.calendar.items() for entry in entries}
    primary = board.collection.primary
    ids = {str(name): entry for name, entry in board.ids().items()}
    return sorted(ids, key=lambda i: (-Decimal(ids[i].scores[primary]), days[ids[i].run], i))


def expected_trophies(board: Board) -> set[str]:
    """Runs whose official figure is above all that came before; on one day by name."""
    best = Decimal(-1)
    winners = set()
    for entries in board.calendar.values():
        for entry in sorted(entries, key=lambda entry: entry.run):
            score = Decimal(entry.scores[board.collection.primary])
            if score > best:
                best = score
                winners.add(entry.run)
    return winners


def crowded_windows(board: Board) -> list[str]:
    """Teams with more submissions than the quota in a window, by the public log's own times."""
    moments: dict[str, list[datetime]] = defaultdict(list)
    entries = {str(name): entry for name, entry in board.ids().items()}
    for name, event in logged(board, "received").items():
        moments[entries[name].team].append(datetime.fromisoformat(event["at"]))
    window = timedelta(days=WINDOW_DAYS)
    return [
        team
        for team, times in moments.items()
        if any(sum(t <= other < t + window for other in times) > PER_WINDOW for t in times)
    ]
