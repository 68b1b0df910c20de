"""Ranges of ranks of the leaderboard's rows, out of what an event told of some of its entries.

What was not compared cannot be told apart: it may stand above or below anybody. So every entry
that was not compared widens the ranges of all others at their end by one rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from heldout.board.log.figures import LeftOut
from heldout.board.log.measured import Measured
from heldout.board.rules.trust import Trust, due_day, say_after

__all__ = ["RankRange", "find_measured", "is_stale", "list_ranges"]


_NEAR_OF_OLD = "nearly the same as an earlier entry, so not compared"
_LEFT_OUT: Mapping[LeftOut, str] = {
    "near": "nearly the same as others, so not compared",
    "incomplete": "no score for each query, so not compared",
    "withheld": "not compared; an embargo withholds why",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRange:
    """The ranks that an entry may have.

    Attributes:
        low, high: first and last; `None` where not told.
        why: the reason then, else "".
    """

    low: int | None = None
    high: int | None = None
    why: str = ""


def find_measured(
    measured: Sequence[Measured], *, season: str, view: str, now: datetime
) -> Measured | None:
    """The latest that may be shown at a moment; `None` where there is none.

    Args:
        measured: in order.
        season: whose entries, "" for a board without seasons.
        view: what ranks them.
        now: the moment, UTC.
    """
    return next(
        (
            one
            for one in reversed(measured)
            if (one.season, one.view) == (season, view) and one.due <= now.date()
        ),
        None,
    )


def is_stale(measured: Measured, corrected: Mapping[str, datetime]) -> bool:
    """Whether a compared entry was corrected since.

    Args:
        measured: what was told.
        corrected: id -> latest correction, of entries that had one.
    """
    return any(corrected.get(name, measured.at) > measured.at for name in measured.covered)


def list_ranges(
    measured: Measured | None,
    ranked: Mapping[str, date],
    trust: Trust | None,
    *,
    last: date | None,
    closed: date | None,
) -> Mapping[str, RankRange]:
    """The range of every entry that has a rank now, or why it has none.

    Args:
        measured: what was told, if anything was.
        ranked: id -> day of publication, of those that have a rank.
        trust: the rule of today, if there is one.
        last: last day of the board or season, `None` where there is none yet.
        closed: when the board was closed for good, `None` before.
    """
    known = {} if measured is None else _widen(measured, ranked)
    return {
        name: known.get(name)
        or RankRange(why=_say_why(name, day, measured, trust, last=last, closed=closed))
        for name, day in ranked.items()
    }


def _widen(measured: Measured, ranked: Mapping[str, date]) -> Mapping[str, RankRange]:
    ranges, entries = measured.figures.ranges, measured.entries
    if ranges is None or not set(entries) <= ranked.keys():
        return {}
    more = len(ranked) - len(entries)
    return {
        name: RankRange(low=low, high=high + more)
        for name, low, high in zip(entries, ranges.low, ranges.high, strict=True)
    }


def _say_why(
    name: str,
    published: date,
    measured: Measured | None,
    trust: Trust | None,
    *,
    last: date | None,
    closed: date | None,
) -> str:
    if measured is not None and name in measured.left_out:
        why = measured.left_out[name]
        # Events of old say it in their own words, so that their leaderboard.json stays as it is.
        old = why == "near" and measured.figures.alike is None
        return _NEAR_OF_OLD if old else _LEFT_OUT[why]
    if measured is not None and name in measured.entries:
        return measured.figures.why.get("ranges", "rank ranges were not computed")
    if trust is None or "ranges" not in trust.show:
        return "this board tells no rank ranges"
    day = due_day(trust, published, last=last, closed=closed)
    when = say_after(trust, published, last=last) if day is None else f"from {day} on"
    return f"published {when}"
