"""The page of one entry: what it is, how it stands, and the evidence of how it came there."""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from heldout.answers.text import clean
from heldout.board.log.events import format_time
from heldout.board.log.final import OpenedFinal
from heldout.board.rules.spec import BoardSpec
from heldout.board.site import rows, sections
from heldout.board.site.columns import COLUMNS, EntryColumn, full_text, read_table
from heldout.board.standings.standings import Row, Standings
from heldout.charts.axes import day_words

HISTORY_WORDS: Mapping[str, str] = read_table("history")
"""What each kind of event says on the page of its entry."""


class Moment(NamedTuple):
    """One event in an entry's history."""

    when: str
    when_words: str
    words: str
    hash: str


class Fact(NamedTuple):
    """What the entry has in a column of the leaderboard, in words."""

    column: EntryColumn
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPage:
    """`leaderboard/entries/ID.html`.

    Attributes:
        frame: around it.
        row: its line of the table.
        listed: the page of the table that has that line, `index.html` or `rows-2.html`.
        position: its rank in words.
        final: of a finalist whose scores are published: that, with the name of its view.
        facts: every column of the leaderboard that has something for this entry, and stands in no
            heading of the page.
        history: what happened to it, in order.
        permalink: its address, or "" where the board's address is not known.
        bibtex: how to cite it.
    """

    frame: sections.Frame
    row: rows.TableRow
    listed: str
    position: str
    final: tuple[OpenedFinal, str] | None
    facts: tuple[Fact, ...]
    history: tuple[Moment, ...]
    permalink: str
    bibtex: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySource:
    """What the page of an entry is made from.

    In a long table a new entry moves thousands of others by a rank. So there the page of each says
    among which hundred it is, and not its rank: it changes with what the entry itself changes, and
    stays the same with all else.

    Attributes:
        id: of the entry.
        digest: of everything that the page depends on.
        make: makes the page.
    """

    id: str
    digest: bytes
    make: Callable[[], EntryPage]


def list_entry_sources(
    standings: Standings, *, spec: BoardSpec, facts: sections.BoardFacts
) -> Iterator[EntrySource]:
    """List what the page of every public row is made from.

    Args:
        standings: of the board.
        spec: its rules.
        facts: its sizes and addresses.
    """
    shown, columns = rows.public_rows(standings), rows.make_columns(spec)
    positions = _find_positions(shown, columns[0])
    common, long = _digest_common(standings, shown, spec, facts), rows.is_long(len(shown))
    for at, (row, own) in enumerate(zip(shown, rows.digest_rows(standings), strict=True)):
        position = _say_position(row, positions, long=long)
        listed = rows.file_of_row(at, len(shown))
        said = f"{position}\n{listed}".encode()
        digest = hashlib.sha256(common + len(said).to_bytes(4, "big") + said + own).digest()
        make = partial(
            _make_page,
            rows.TableRow(row, columns),
            position=position,
            listed=listed,
            standings=standings,
            spec=spec,
            facts=facts,
        )
        yield EntrySource(id=row.id, digest=digest, make=make)


def _digest_common(
    standings: Standings, shown: Sequence[Row], spec: BoardSpec, facts: sections.BoardFacts
) -> bytes:
    """Of what all pages of entries depend on: rules, addresses, published figures, and the code."""
    covered = frozenset[str]() if standings.measured is None else standings.measured.covered
    named = tuple((row.id, row.identity) for row in shown if row.id in covered)
    digest = hashlib.sha256(digest_code())
    shared = (spec, facts.home, facts.repository, standings.measured, standings.final)
    finalists = tuple(row.id for row in standings.finalists)
    for part in (*shared, named, finalists, standings.season):
        data = msgspec.msgpack.encode(part, order="deterministic")
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


@cache
def digest_code() -> bytes:
    """Of the code and templates that make pages."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for room in (here, here.parents[1] / "charts", here.parents[1] / "answers"):
        for path in sorted(room.rglob("*")):
            if path.suffix in (".py", ".html", ".toml"):
                digest.update(path.read_bytes())
    return digest.digest()


def _make_page(
    short: rows.TableRow,
    *,
    position: str,
    listed: str,
    standings: Standings,
    spec: BoardSpec,
    facts: sections.BoardFacts,
) -> EntryPage:
    row, line = short.row, replace(short, whole=True)
    home = rows.safe_link(facts.home)
    permalink = f"{home.rstrip('/')}/entries/{line.page}" if home else ""
    title = short.system if not row.embargoed else f"{rows.ANONYMOUS} entry"
    named = f"{title} – {clean(spec.title)}"
    return EntryPage(
        frame=sections.make_frame(named, position, standings, spec, facts, root="../"),
        row=line,
        listed=listed,
        position=position,
        final=_find_final(row, standings, spec),
        facts=tuple(
            Fact(column, words)
            for column in COLUMNS
            if not column.heading and (words := full_text(column, row))
        ),
        history=tuple(_list_moments(row, short.columns[0], spec)),
        permalink=permalink,
        bibtex=format_bibtex(line, board=clean(spec.title), link=permalink),
    )


def _find_final(row: Row, standings: Standings, spec: BoardSpec) -> tuple[OpenedFinal, str] | None:
    view, final = spec.finalists_view, standings.final
    opened = None if final is None else final.opened
    if view is None or opened is None or row.id not in opened.scores:
        return None
    return opened, f"{clean(view.set)} {clean(view.measure)}"


def format_bibtex(row: rows.TableRow, *, board: str, link: str) -> str:
    """A BibTeX entry whose fields hold the team's words and nothing that TeX would obey."""
    team = rows.ANONYMOUS if row.identity is None else row.identity.team
    score = row.primary
    scored = f"{_tex(score.column.title)} {score.text}, " if score.text else ""
    fields = {
        "author": f"{{{_tex(team)}}}",
        "title": f"{{{_tex(row.system)}}}",
        "year": row.day[:4],
        "note": f"{scored}{_tex(board)} leaderboard",
        "url": re.sub(r"[{}\\%]", "", link),
    }
    width = max(map(len, fields))
    lines = [f"  {name:<{width}} = {{{value}}}," for name, value in fields.items() if value]
    key = re.sub(r"[^A-Za-z0-9._-]", "-", row.id)
    return "\n".join([f"@misc{{{key},", *lines, "}"])


_TEX = {
    "\\": r"{\textbackslash}",
    "{": r"{\textbraceleft}",
    "}": r"{\textbraceright}",
    "^": r"{\textasciicircum}",
    "~": r"{\textasciitilde}",
    '"': r"{\textquotedbl}",
    **{c: f"\\{c}" for c in "#$%&_"},
}


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)


def _list_moments(row: Row, column: rows.ViewColumn, spec: BoardSpec) -> Iterator[Moment]:
    kinds = [kind for _, kind, _ in row.events]
    for number, (at, kind, digest) in enumerate(row.events):
        words = HISTORY_WORDS.get(kind, clean(kind))
        if kind == "reviewed" and "ran" in kinds[number:]:
            words = "Opened in the vault"  # its program has not written a run yet
        elif kind == "published":
            words = _say_published(row, column, spec, at)
        elif kind == "corrected" and at in row.added:
            words = "Scored on a new view; no earlier score changed"
        moment = f"{day_words(at)}, {at:%H:%M} UTC"
        yield Moment(format_time(at), moment, words, clean(digest))


def _say_published(row: Row, column: rows.ViewColumn, spec: BoardSpec, at: datetime) -> str:
    """Say what an approval released: nothing yet on a one-shot board, perhaps no score at all."""
    if spec.kind == "one-shot" and spec.closes is not None and at.date() <= spec.closes:
        return f"Approved and published; all scores are published after {day_words(spec.closes)}"
    if column.key in row.untold:
        return "Approved and published; no score released"
    if any(kind == "ended-season" for _, kind, _ in row.events):
        return "Approved and published"
    return HISTORY_WORDS["published"]


def _find_positions(shown: Sequence[Row], column: rows.ViewColumn) -> Mapping[str, tuple[int, int]]:
    """Id -> rank when it was submitted, and how many entries there were with it."""
    entries = [row for row in shown if not row.baseline and not row.unranked]
    found: dict[str, tuple[int, int]] = {}
    before: list[Decimal] = []  # scores below zero, so that the best is the first
    for row in sorted(entries, key=lambda row: (row.received, row.id)):
        score = -Decimal(row.scores[column.key])
        at = bisect_right(before, score)
        before.insert(at, score)
        found[row.id] = at + 1, len(before)
    return found


def _say_position(row: Row, positions: Mapping[str, tuple[int, int]], *, long: bool = False) -> str:
    if row.unranked:
        return f"Without a rank: {row.unranked}"
    if row.rank is None:
        return "A baseline of the organisers, without a rank"
    ranks = rows.say_range(row.rank_low, row.rank_high)
    possible = f" (range {ranks})" if ranks else ""
    then, of = positions[row.id]
    if long:
        return f"Among ranks {rows.say_block(row.rank)}; rank {then} of {of} when it was submitted"
    now = f"Rank {row.rank} of {len(positions)}{possible}"
    return now if then == row.rank else f"{now}; rank {then} of {of} when it was submitted"
