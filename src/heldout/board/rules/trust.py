"""When a board may tell more of its ranking than the scores.

Ranges of ranks, shares and counts carry bits about held-out labels: counts between two runs that
differ in one query give away that query's label. So nothing is told before the day that `[trust]`
in board.toml names; whom an entry is compared with is in `board.comparable`.
"""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Literal

import msgspec

__all__ = [
    "DEFAULT_PARTS",
    "PARTS",
    "Trust",
    "TrustPart",
    "check_trust",
    "due_day",
    "say_after",
]

TrustPart = Literal["ranges", "stability", "progress", "drift", "outcomes", "facets"]
"""What a page may tell of a ranking beside its scores."""

PARTS: tuple[TrustPart, ...] = (
    *("ranges", "stability", "progress"),
    *("drift", "outcomes", "facets"),
)
"""All of them, in the order of the page. Each draws from a stream of its own by its place here, so
a new one comes last."""

DEFAULT_PARTS: tuple[TrustPart, ...] = PARTS[:5]
"""What is told where `show` is left out. Facets tell of few queries each, so they are asked for."""

_DAYS = re.compile(r"([1-9][0-9]{0,3}) days?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[trust]`: what is told of the ranking beside the scores, and from when.

    Attributes:
        show: ranges of ranks, ranks under the bootstrap, records with their significance, official
            against dev scores, outcomes of neighbours in the ranking, standings by facet.
        after: `season`: when the season, or the board, is over. `closing`: when the board was
            closed for good. A delay, `30 days`: an entry so long after it was published. A day,
            `2027-04-01`: what was published before it. What waits for a delay or a day comes with
            the end of the season at the latest.
    """

    show: tuple[TrustPart, ...] = DEFAULT_PARTS
    after: str = "season"


def check_trust(trust: Trust) -> Iterator[tuple[str, object, str, str]]:
    """What is wrong with a `[trust]` table: key, value, what is expected, a hint."""
    if len(set(trust.show)) < len(trust.show):
        yield ("trust.show", ", ".join(trust.show), "each part once", "")
    if trust.after not in ("season", "closing") and _parse_after(trust.after) is None:
        expected = '"season", "closing", a delay as "30 days", or a day as "2027-04-01"'
        yield ("trust.after", trust.after, expected, "nothing is shown before it")


def _parse_after(text: str) -> timedelta | date | None:
    """A delay or a day; `None` for anything else."""
    if found := _DAYS.fullmatch(text):
        return timedelta(int(found[1]))
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def due_day(
    trust: Trust, published: date, *, last: date | None, closed: date | None
) -> date | None:
    """The first day on which an entry may be compared.

    Args:
        trust: the rule.
        published: when its score was released.
        last: last day of the board or season, `None` where there is none yet.
        closed: when the board was closed for good, `None` before.

    Returns:
        Never a day before it was published; `None` where the day is not known yet.
    """
    ends = [] if last is None or trust.after == "closing" else [last + timedelta(1)]
    ends += [] if closed is None else [closed]
    days = list(ends)
    after = _parse_after(trust.after)
    if isinstance(after, timedelta):
        days.append(published + min(after, date.max - published))
    elif isinstance(after, date) and published < after:
        days.append(after)
    return max(published, min(days)) if days else None


def say_after(trust: Trust, today: date, *, last: date | None) -> str:
    """When figures of what is published today are shown, in words that end a sentence.

    Args:
        trust: the rule.
        today: the day; a day in the rule that is not after it does not count any more.
        last: last day of the board or season, `None` where there is none yet.
    """
    after = _parse_after(trust.after)
    if isinstance(after, timedelta):
        days = "day" if after.days == 1 else "days"
        return f"{after.days} {days} after an entry is published"
    if isinstance(after, date) and today < after:
        return f"from {after:%d %b %Y} on, for entries published before that day"
    if trust.after == "closing" or last is None:
        return "once the board is closed"
    return f"from {last + timedelta(1):%d %b %Y} on"
