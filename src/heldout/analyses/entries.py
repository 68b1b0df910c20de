"""What the analyses of a board are given: its entries in the order they came, and their scores.

Progress, drift and teams need to know who sent a system and when. Scores per query carry tests and
intervals; an old table that holds means only can be described, and no more.
"""

import csv
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from io import StringIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem
from heldout.scoring.table import Better, ScoreTable
from heldout.trec.reading.streams import Limits, open_rows
from heldout.trec.text import show

_ONLY_SCORES = "with --runs or --scores: --dev-scores TABLE.csv has the scores on dev"
_ONLY_RESERVE = "with --runs or --scores: --reserve-scores TABLE.csv has the scores on the reserve"


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
        held_out: whether nobody but the organisers has its labels.
        means: score by id; an entry without one is absent.
        table: the same by query, in the order of `means`; `None` where only means are known.
        better: whether `higher` or `lower` scores are better.
        for_information: whether its released scores only inform: feedback, or with noise.
    """

    view: str
    queries: str
    measure: str
    public: bool
    held_out: bool
    means: Mapping[str, float]
    table: ScoreTable | None = None
    better: Better = "higher"
    for_information: bool = False

    @property
    def title(self) -> str:
        """View and measure, as in `eval RR@10`."""
        return f"{self.view} {self.measure}"

    def signed(self, score: float) -> float:
        """A score so that more is better."""
        return score if self.better == "higher" else -score

    def rows(self, entries: Sequence[BoardEntry]) -> NDArray[np.float64] | None:
        """Scores of entries by query; `None` where only means are known.

        Raises:
            InputError: code `missing-scores`: one of them lacks a score for a query.
        """
        if self.table is None:
            return None
        at = [self.table.systems.index(entry.id) for entry in entries]
        known = self.table.known[at]
        if not known.all():
            lacking = [e.id for e, row in zip(entries, known, strict=True) if not row.all()]
            raise InputError.of(
                "missing-scores",
                f"view {self.view}",
                f"no score for some queries: {', '.join(lacking[:3])}",
                f"every entry on the same {len(self.table.queries):,} queries",
            )
        return self.table.values[at]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlikeRuns:
    """Two entries whose runs are nearly the same, by the board's rule for variants.

    Attributes:
        a, b: their ids.
        rbo: mean rank-biased overlap of their first ten documents.
    """

    a: str
    b: str
    rbo: float


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
        raise InputError.of(
            "no-view", "--view", repr(wanted[:100]), f"one of {', '.join(self.views)}"
        )

    def dev_view(self, official: ViewScores) -> ViewScores:
        """The view with labels that everybody has, of the official one's measure.

        Raises:
            InputError: code `no-view`: there is none.
        """
        others = [v for v in self.views.values() if v.view != official.view and not v.held_out]
        return _first_of(others, official, "a view whose labels are public", hint=_ONLY_SCORES)

    def reserve_view(self, public: ViewScores) -> ViewScores:
        """The view whose scores are never released, of the public one's measure.

        Raises:
            InputError: code `no-view`: there is none.
        """
        others = [v for v in self.views.values() if v.view != public.view and not v.public]
        return _first_of(
            others,
            public,
            "a view with public = false in board.toml",
            hint=(
                "--view dev --reserve eval asks the same of labels that everybody has; "
                f"{_ONLY_RESERVE}"
            ),
        )

    def scored(self, *views: ViewScores) -> tuple[BoardEntry, ...]:
        """The entries that have a score on each of the views, in the order they came."""
        return tuple(e for e in self.entries if all(e.id in view.means for view in views))


def _first_of(
    views: Sequence[ViewScores], like: ViewScores, expected: str, *, hint: str = ""
) -> ViewScores:
    for view in views:
        if view.measure == like.measure:
            return view
    raise InputError.of("no-view", "--view", f"no such view of {like.measure}", expected, hint)


# Reads who sent which system and when, for scores that do not come from a board.

_NEEDED = ("id", "date")
_OPTIONAL = ("team", "institution", "description", "baseline")
_BASELINE = {"": False, "no": False, "yes": True, "false": False, "true": True}


def parse_entries(
    text: str, *, path: str, systems: Sequence[str] | None = None
) -> tuple[BoardEntry, ...]:
    """Read a CSV table with a row for each system.

    Its header names `id` and `date`, and may name `team`, `institution`, `description` and
    `baseline`; other columns are left alone. A date is a day as yyyy-mm-dd, `baseline` is `yes`,
    `no` or empty.

    Args:
        text: the file's text.
        path: its name, for errors.
        systems: every system that must have a row; others are left out.

    Returns:
        Entries by day; those of one day as they stand in the table.

    Raises:
        InputError: all problems at once, with their lines. Codes `entries-syntax`,
            `entries-header`, `entries-columns`, `entries-date`, `entries-baseline`,
            `entries-repeated`, `entries-missing`.
    """
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InputError(
            _problem("entries-syntax", path, reader.line_num, str(error), "a CSV table")
        ) from error
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    body = [(line, [cell.strip() for cell in row]) for line, row in rows[1:]]
    problems = [*_check_header(header, path)]
    if not problems:
        problems = [*_check_rows(header, body, path), *_check_systems(header, body, path, systems)]
    if problems:
        raise InputError(problems)
    entries = (_as_entry(dict(zip(header, row, strict=True))) for _, row in body)
    chosen = [entry for entry in entries if systems is None or entry.id in systems]
    return tuple(sorted(chosen, key=lambda entry: entry.received))


def _as_entry(cells: Mapping[str, str]) -> BoardEntry:
    return BoardEntry(
        id=cells["id"],
        received=datetime.combine(date.fromisoformat(cells["date"]), time(), UTC),
        description=cells.get("description", ""),
        team=cells.get("team", ""),
        institution=cells.get("institution", ""),
        baseline=_BASELINE[cells.get("baseline", "").lower()],
    )


def _check_header(header: Sequence[str], path: str) -> Iterator[Problem]:
    known = [name for name in header if name in (*_NEEDED, *_OPTIONAL)]
    if not set(_NEEDED) <= set(header) or len(set(known)) < len(known):
        found = repr(",".join(header)[:100])
        expected = f"{' and '.join(_NEEDED)}, and once each {', '.join(_OPTIONAL)} if you like"
        yield _problem("entries-header", path, 1, found, expected)


def _check_rows(
    header: Sequence[str], body: Sequence[tuple[int, Sequence[str]]], path: str
) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for line, row in body:
        if len(row) != len(header):
            expected = f"{len(header)}, as in the header"
            yield _problem("entries-columns", path, line, f"{len(row)} columns", expected)
            continue
        cells = dict(zip(header, row, strict=True))
        if not _is_day(cells["date"]):
            yield _problem(
                "entries-date", path, line, repr(cells["date"][:100]), "a day as yyyy-mm-dd"
            )
        if cells.get("baseline", "").lower() not in _BASELINE:
            found = repr(cells["baseline"][:100])
            yield _problem("entries-baseline", path, line, found, "yes, no or nothing")
        if cells["id"] in seen:
            found = f"{cells['id'][:100]!r} again, first on line {seen[cells['id']]}"
            yield _problem("entries-repeated", path, line, found, "each system once")
        seen.setdefault(cells["id"], line)


def _check_systems(
    header: Sequence[str],
    body: Sequence[tuple[int, Sequence[str]]],
    path: str,
    systems: Sequence[str] | None,
) -> Iterator[Problem]:
    at = header.index("id")
    named = {row[at] for _, row in body if len(row) > at}
    lacking = [system for system in systems or () if system not in named]
    if lacking:
        found = f"no row for {', '.join(lacking[:3])}"
        found += f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""  # noqa: PLR2004 - as shown
        yield _problem("entries-missing", path, None, found, "a row for each system with scores")


def read_institutions(
    source: BinaryIO, *, path: str, limits: Limits | None = None
) -> Mapping[str, str]:
    """Read where teams work to the end of a file: plain, gzip, bzip2 or zstd.

    Args:
        source: its bytes: `team<TAB>institution` in each line.
        path: its name for messages.
        limits: how much is read.

    Returns:
        Institution by `fold_name` of a team.

    Raises:
        InputError: all problems up to `limits.problems`: `wrong-columns`, `repeated-group`,
            `bad-utf8`, `control-character`, and those of `TextReader`.
    """
    found: dict[str, str] = {}
    layout = "team, one tab, institution"
    with open_rows(source, path=path, limits=limits, prose=True) as (log, rows):
        for number, line in rows:
            team, tab, institution = (part.strip(" ") for part in line.decode().partition("\t"))
            if not (team and tab and institution) or "\t" in institution:
                log.add(_problem("wrong-columns", path, number, show(line), layout))
            elif fold_name(team) in found:
                again = f"{team[:100]!r} again"
                log.add(_problem("repeated-group", path, number, again, "each team once"))
            else:
                found[fold_name(team)] = institution
    return found


def fold_name(name: str) -> str:
    """Case, width and spaces folded, as where quotas are counted."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _problem(code: str, path: str, line: int | None, found: str, expected: str) -> Problem:
    return Problem(code=code, path=path, line=line, found=found, expected=expected)
