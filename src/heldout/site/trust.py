"""What the organisers have bound themselves to: commitments, keys, a final, the closing.

All of it is in the public log. A reader who keeps the first digest can hold the archive against it
when the board has ended.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heldout.board.log.events import Entry
from heldout.charts.days import day_words
from heldout.site.wording import clean, count

__all__ = ["TrustLine", "list_trust"]


_MOST_NAMES = 5
_TELLING = frozenset(("published", "baseline"))
_SCORING = frozenset(("corrected", "reviewed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustLine:
    """One event that others can check the organisers by.

    Attributes:
        when: its time, `2026-11-20T17:10:00Z`.
        when_words: its day, in words.
        says: what happened.
        why: the organisers' reason, in their words, or "".
        digest: what was committed to, as a salted digest, or "".
        event: its number in the public log.
    """

    when: str
    when_words: str
    says: str
    why: str
    digest: str
    event: int


def list_trust(entries: Iterable[Entry]) -> tuple[TrustLine, ...]:
    """Every such event of a public log, in order; an old board's record has none but its keys."""
    entries = tuple(entries)
    imported = any(entry.event.kind == "imported-board" for entry in entries)
    shown = (e for e in entries if not (imported and "labels" in e.event.sealed))
    return tuple(
        _line(entry, f"{says}{_say_left(entries, entry)}")
        for entry in shown
        if (says := _say(entry))
    )


def _say(entry: Entry) -> str:
    kind = entry.event.kind
    if kind == "closed-board":
        return "Closed for good: the archive opens labels, scores by query and the log"
    if kind == "named-finalists":
        return f"Named {count(len(entry.event.public['finalists']), 'finalist')}"
    if kind == "opened-final":
        return "Opened the final: the finalists' scores, once, and who wins"
    if kind == "rekeyed":
        return f"Keys of the organisers changed ({_say_keys(entry)})"
    if "labels" not in entry.event.sealed:
        return ""
    again = "" if kind == "opened-board" else "again "
    return f"Committed {again}to everything held out that decides a score"


def _say_left(entries: Sequence[Entry], commitment: Entry) -> str:
    """The entries that were not scored anew since, where others were: two sets of labels."""
    if "labels" not in commitment.event.sealed:
        return ""
    told = _list_scored(entries[: commitment.event.seq], _TELLING)
    since = _list_scored(entries[commitment.event.seq :], _SCORING)
    left = [name for name in told if name not in since]
    if not left or len(left) == len(told):
        return ""
    more = len(left) - _MOST_NAMES
    names = ", ".join(map(clean, left[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
    return (
        f"; {count(len(told) - len(left), 'earlier score')} computed again since, but not those of "
        f"{names}"
    )


def _list_scored(entries: Iterable[Entry], kinds: frozenset[str]) -> list[str]:
    names = (e.event.submission for e in entries if e.event.kind in kinds)
    return list(dict.fromkeys(name for name in names if name is not None))


def _say_keys(entry: Entry) -> str:
    parts = [
        f"{count(len(entry.event.public[field]), 'key')} {word}"
        for field, word in (("added", "added"), ("removed", "dropped"))
        if _is_list(entry.event.public.get(field))
    ]
    return ", ".join(parts) or "old ones destroyed"


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and len(value) > 0


def _line(entry: Entry, says: str) -> TrustLine:
    why = entry.event.public.get("why")
    return TrustLine(
        when=entry.event.at,
        when_words=day_words(entry.time),
        says=says,
        why=clean(why) if isinstance(why, str) else "",
        digest=entry.event.sealed.get("labels", ""),
        event=entry.event.seq,
    )
