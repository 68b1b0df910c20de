"""What the analyses of a board are given: its entries as they came, their scores and days.

Progress, drift and teams need to know who sent a system and when. Scores per query carry tests and
intervals; an old table that holds means only can be described, and no more.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any, BinaryIO, Literal, Self

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, Problem, plural
from heldout.files.csv import parse_csv
from heldout.scoring import run_files, sources
from heldout.scoring.table import Better, ScoreTable, cut_table
from heldout.trec.orders import Order
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
        InputError: as `parse_csv`; else all problems at once, with their lines. Codes
            `entries-date`, `entries-baseline`, `entries-repeated`, `entries-missing`.
    """
    head, _, body = text.partition("\n")
    head = ",".join(name.strip().lower() for name in head.split(","))
    rows = {
        row.line: {name: cell.strip() for name, cell in row.cells.items()}
        for row in parse_csv(f"{head}\n{body}".encode(), path=path, needed=("id", "date"))
    }
    if problems := [*_check_rows(rows, path, systems or ())]:
        raise InputError(problems)
    entries = (
        BoardEntry(
            id=cells["id"],
            received=datetime.combine(date.fromisoformat(cells["date"]), time(), UTC),
            description=cells.get("description", ""),
            team=cells.get("team", ""),
            institution=cells.get("institution", ""),
            baseline=_BASELINE[cells.get("baseline", "").lower()],
        )
        for cells in rows.values()
        if systems is None or cells["id"] in systems
    )
    return tuple(sorted(entries, key=lambda entry: entry.received))


def _check_rows(
    rows: Mapping[int, Mapping[str, str]], path: str, systems: Sequence[str]
) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for line, cells in rows.items():
        name = cells["id"]
        if not _is_day(cells["date"]):
            found = repr(cells["date"][:100])
            yield _problem("entries-date", path, line, found, "a day as yyyy-mm-dd")
        if cells.get("baseline", "").lower() not in _BASELINE:
            found = repr(cells["baseline"][:100])
            yield _problem("entries-baseline", path, line, found, "yes, no or nothing")
        if name in seen:
            found = f"{name[:100]!r} again, first on line {seen[name]}"
            yield _problem("entries-repeated", path, line, found, "each system once")
        seen.setdefault(name, line)
    lacking = [system for system in systems if system not in seen]
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


def cut_known(table: ScoreTable | None, queries: AbstractSet[str], *, view: str) -> ScoreTable:
    """As `cut_table`, of a view that may have means alone.

    Args:
        table: of the view, `None` where only means are known.
        queries: those to keep.
        view: its name, for the error.

    Raises:
        InputError: code `no-query-scores`: only means are known.
    """
    if table is None:
        raise InputError.of("no-query-scores", f"view {view}")
    return cut_table(table, queries)


def cut_view(view: ViewScores, queries: AbstractSet[str]) -> ViewScores:
    """A view's scores on some of its queries; an entry without any there is absent.

    Raises:
        InputError: code `no-query-scores`: only means are known.
    """
    table = cut_known(view.table, queries, view=view.view)
    means = {system: mean for system in view.means if (mean := table.mean(system)) is not None}
    return replace(view, table=table, means=means)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """What an analysis over time is given.

    Attributes:
        board: entries with their days and scores.
        views: those that are looked at, the official one first.
        alike: pairs of nearly identical runs of different teams; `None` where no runs are known.
        orders: of the documents of runs, each once; none where scores are no runs'.
        source: how documents are ordered, in lines of `name      what there is to say`.
    """

    board: BoardScores
    views: tuple[ViewScores, ...]
    alike: tuple[AlikeRuns, ...] | None = None
    orders: tuple[Order, ...] = ()
    source: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Which entries and queries the scores are of, in lines of `name      words`."""
        return (*describe_view(self.board, self.views[0]), *self.source)

    @property
    def document(self) -> dict[str, Any]:
        """What JSON says of it."""
        return {"orders": list(self.orders)}

    @property
    def size(self) -> int:
        """Fewest queries of a view; 0 where only means are known."""
        return min(0 if view.table is None else len(view.table.queries) for view in self.views)

    def cut(self, queries: AbstractSet[str]) -> Self:
        """The same on some of the queries.

        Raises:
            InputError: code `no-query-scores`.
        """
        return replace(self, views=tuple(cut_view(view, queries) for view in self.views))

    def beside(
        self,
        view: str | None,
        kind: Literal["dev", "reserve"] | None = None,
        name: str | None = None,
    ) -> Self:
        """Look at a view, and at a second one beside it.

        Args:
            view: the first one; `None` for the one that ranks.
            kind: of the second one: public labels, or scores that are never released.
            name: of the second one; `None` for the first one of its kind with the same measure.

        Raises:
            InputError: code `no-view`.
        """
        first = self.board.view(view)
        if kind is None:
            return replace(self, views=(first,))
        find = self.board.dev_view if kind == "dev" else self.board.reserve_view
        return replace(self, views=(first, find(first) if name is None else self.board.view(name)))


def describe_view(board: BoardScores, view: ViewScores) -> tuple[tuple[str, str], ...]:
    """Return which entries and queries a view's scores are of, in lines of `name      words`."""
    entries = board.scored(view)
    baselines = sum(entry.baseline for entry in entries)
    unpublished = sum(not entry.published for entry in entries)
    counts = plural(len(entries) - baselines, "entry", "entries")
    counts += f" and {plural(baselines, 'baseline')}" if baselines else ""
    counts += f", {unpublished:,} of them unpublished" if unpublished else ""
    lacking = sum(not entry.baseline for entry in board.entries) - (len(entries) - baselines)
    has = "has" if lacking == 1 else "have"
    counts += f"; {lacking:,} more {has} no score here" if lacking else ""
    queries = (
        "" if view.table is None else f", {plural(len(view.table.queries), 'query', 'queries')}"
    )
    lines = [("board", f"{board.board}: {counts}"), ("view", f"{view.title}{queries}")]
    if view.table is None:
        lines.append(("", "means alone are known, so nothing is tested"))
    return tuple(lines)


def date_scores(
    first: sources.Scores,
    entries: Sequence[BoardEntry],
    *,
    name: str,
    second: sources.Scores | None = None,
    second_name: str = "",
    held_out: bool = True,
    order: Order | None = None,
) -> Dated:
    """Scores with the days on which their systems came, on no view yet.

    Args:
        first: official scores; the view is called `scores`.
        entries: a row for each system.
        name: what stands for the board's name.
        second: scores of the same systems on a second view; its queries are taken for others than
            those of the first.
        second_name: of the second view: `dev` or `reserve`.
        held_out: whether nobody but the organisers has the second view's labels.
        order: of documents, as asked for.
    """
    views = [_as_view("scores", first, first.table, held_out=True)]
    if second is not None:
        views.append(_as_view(second_name, first, second.table, held_out=held_out))
    board = BoardScores(
        board=name,
        entries=tuple(entries),
        views={view.view: view for view in views},
        primary="scores",
    )
    source = tuple(run_files.describe_orders(first.orders, given=order))
    return Dated(board=board, views=(), orders=first.orders, source=source)


def _as_view(name: str, scores: sources.Scores, table: ScoreTable, *, held_out: bool) -> ViewScores:
    means = {system: table.mean(system) for system in table.systems}
    return ViewScores(
        view=name,
        queries=name,
        measure=scores.measure,
        public=name != "reserve",
        held_out=held_out,
        means={system: mean for system, mean in means.items() if mean is not None},
        table=table,
        better=scores.better,
    )
