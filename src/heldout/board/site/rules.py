"""The rules of a board in words (`rules.txt`), what a page needs beside them, its audit trail.

The audit trail is what the public log has of commitments, keys and finals: whoever has stored the
first digest can hold the archive against it.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import islice
from typing import NamedTuple

from heldout.answers.text import clean
from heldout.board.log.events import Entry
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec import BoardSpec, Example
from heldout.board.site.rows import make_columns
from heldout.board.site.words import count, read_template
from heldout.board.standings.overdue import find_ending, say_season
from heldout.charts.axes import day_words
from heldout.ids import Digest

_MOST_NAMES = 5
_PUBLISHING = frozenset(("published", "baseline"))

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


class RuleText(NamedTuple):
    """A rule: what it is about, and what it says."""

    about: str
    says: str


def list_rules(
    spec: BoardSpec, versions: Sequence[tuple[date, BoardSpec]] = ()
) -> tuple[RuleText, ...]:
    """Every rule that board.toml sets, in the order in which a participant meets them.

    Args:
        spec: the rules of today.
        versions: the rules since the first submission, each with its first day, in order; a rule
            that was another one in one of them says since when it holds.
    """
    rules, before = _read_rules(spec), [(day, _read_rules(old)) for day, old in versions]
    return tuple(
        RuleText(about, says + _say_since(about, says, before)) for about, says in rules.items()
    )


def _read_rules(spec: BoardSpec) -> Mapping[str, str]:
    """Read what a rule is about and what it says, as `rules.txt` has them."""
    own = next((season.name for season in spec.seasons if season.view == spec.primary), "")
    text = read_template("rules.txt").render(
        spec=spec,
        secret=[key for key, queries in spec.sets.items() if queries.secret],
        part=make_columns(spec)[0].part,
        season_ends=find_ending(spec, own) is not None,
        not_clear=NOT_CLEAR,
    )
    sections = (
        section.partition("\n") for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    )
    found = {about: re.sub("[ \n]+", " ", says).strip() for about, _, says in sections}
    return {about: says for about, says in found.items() if says}


def _say_since(about: str, says: str, versions: Sequence[tuple[date, Mapping[str, str]]]) -> str:
    """The first day of a rule, if there was another one before."""
    others = [n for n, (_, rules) in enumerate(versions) if rules.get(about, "") != says]
    if not others or others[-1] + 1 >= len(versions):
        return ""
    return f" In force since {day_words(versions[others[-1] + 1][0])}."


Heads = Callable[[], Iterable[tuple[str, str | None]]]
"""Gives kind and submission of every event of a log, in order."""


def list_trust(entries: Iterable[Entry], *, heads: Heads) -> tuple[TrustLine, ...]:
    """Return what others can check the organisers by; an old board's record has none but its keys.

    Args:
        entries: those of a public log that are about no submission, in order.
        heads: of the whole log.
    """
    entries = tuple(entries)
    imported = any(entry.event.kind == "imported-board" for entry in entries)
    shown = (e for e in entries if not (imported and "labels" in e.event.sealed))
    return tuple(_trust_line(e, says, heads) for e in shown if (says := _say_event(e)))


_SAYS = {
    "closed-board": "Closed for good: the archive opens labels, scores by query and the log",
    "opened-final": "Opened the final: the finalists' scores, once, and who wins",
}


def _say_event(entry: Entry) -> str:
    kind = entry.event.kind
    if kind in _SAYS:
        return _SAYS[kind]
    if kind == "named-finalists":
        return f"Named {count(len(entry.event.public['finalists']), 'finalist')}"
    if kind == "ended-season":
        return f"Ended {say_season(entry.event.public['season'])}: exact scores"
    if kind == "rekeyed":
        return f"Keys of the organisers changed ({_say_keys(entry)})"
    if "labels" not in entry.event.sealed:
        return ""
    again = "" if kind == "opened-board" else "again "
    return f"Committed {again}to everything held out that decides a score"


def _say_left_behind(heads: Heads, commitment: Entry) -> str:
    """The entries that were not scored again since, where others were: two sets of labels."""
    if "labels" not in commitment.event.sealed:
        return ""
    every = iter(heads())
    earlier = _list_names(islice(every, commitment.event.seq), _PUBLISHING)
    since = frozenset(_list_names(every, _SCORING)) if earlier else frozenset()
    left = [name for name in earlier if name not in since]
    if not left or len(left) == len(earlier):
        return ""
    more = len(left) - _MOST_NAMES
    names = ", ".join(map(clean, left[:_MOST_NAMES])) + (f" and {more} more" if more > 0 else "")
    return (
        f"; {count(len(earlier) - len(left), 'earlier score')} computed again since, but not "
        f"those of {names}"
    )


def _list_names(heads: Iterable[tuple[str, str | None]], kinds: frozenset[str]) -> list[str]:
    return list(dict.fromkeys(name for kind, name in heads if name is not None and kind in kinds))


def _say_keys(entry: Entry) -> str:
    parts = [
        f"{count(len(changed), 'key')} {word}"
        for field, word in (("added", "added"), ("removed", "dropped"))
        if isinstance(changed := entry.event.public.get(field), Sequence) and changed
    ]
    return ", ".join(parts) or "old ones destroyed"


def _trust_line(entry: Entry, says: str, heads: Heads) -> TrustLine:
    why = entry.event.public.get("why")
    return TrustLine(
        when=entry.event.at,
        when_words=day_words(entry.time),
        says=says + _say_left_behind(heads, entry),
        why=clean(why) if isinstance(why, str) else "",
        digest=entry.event.sealed.get("labels", ""),
        event=entry.event.seq,
    )
