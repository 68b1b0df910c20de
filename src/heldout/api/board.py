"""A board, read from Python: its standings, its history, its entries and its teams.

    board = Board("kb")                        # a clone, or any folder inside it
    board.standings().columns()["team"]
    board.entry("20261120-monot5").scores
    board.history().columns()

Everything comes from the public log of the folder, as the pages do, and has the digits of
`leaderboard/leaderboard.json`. Nothing is written and no vault is needed. Only `scores` opens one:
organisers analyse scores per query with it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from heldout.answers.table import Column, Table
from heldout.board.log import manifest, submission
from heldout.board.log.events import Entry, format_time
from heldout.board.log.history import History, list_renamed, names_of, read_history
from heldout.board.rules.spec import BoardSpec, View
from heldout.board.standings.standings import (
    Standings,
    current_standings,
    list_seasons,
    project,
    rank_listed,
)
from heldout.board.store.repository import find_board
from heldout.errors import InputError, plural, quote
from heldout.files.frames import Framed

if TYPE_CHECKING:
    from heldout.analyses.entries import BoardScores

Cell = str | float | bool | None
"""What a table has in a column: text, a number, a flag, or nothing."""


_DETAILS = ("institution", "paper", "code", "trophy", "embargoed", "baseline", "seeds")
"""Columns that a notebook does not show, nor what an entry cost; frames have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardTable(Framed):
    """Rows with the same columns.

    Attributes:
        names: of the columns, in order.
        rows: column -> cell.

    Example:
        for row in board.teams():
            print(row["team"], row["entries"])
    """

    names: tuple[str, ...]
    rows: tuple[Mapping[str, Cell], ...]

    def columns(self) -> dict[str, list[Cell]]:
        """Column -> its cells.

        Example:
            board.standings().columns()["team"]
        """
        return {name: _alike([row[name] for row in self.rows]) for name in self.names}

    def to_dict(self) -> dict[str, Any]:
        """The rows as JSON takes them."""
        return {"rows": [dict(row) for row in self.rows]}

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the columns that say anything."""
        from heldout.answers.notebook import to_html  # noqa: PLC0415 - a notebook alone needs it

        shown = [name for name in self._shown() if any(row[name] is not None for row in self.rows)]
        cells = tuple(
            tuple("" if row[name] is None else str(row[name]) for name in shown)
            for row in self.rows
        )
        columns = tuple(Column(name=name) for name in shown)
        return to_html(tables=[Table(title=self._title(), columns=columns, rows=cells)])

    def _shown(self) -> tuple[str, ...]:
        return self.names

    def _title(self) -> str:
        return plural(len(self.rows), "row")

    def __len__(self) -> int:
        """Return how many rows."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Cell]]:
        """The rows in order."""
        return iter(self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardStandings(BoardTable):
    """The leaderboard as of a moment, best first; entries without a rank come last.

    Attributes:
        board: name of the board.
        as_of: the moment, UTC.
        view: which ranks.
        measure: of that view.
        season: whose entries these are; "" for a board without seasons.
        document: all of it, as leaderboard.json has it.
    """

    board: str
    as_of: datetime
    view: str
    measure: str
    season: str
    document: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The document of `leaderboard/leaderboard.json`, with reasons for what is undefined."""
        return dict(self.document)

    def _shown(self) -> tuple[str, ...]:
        from heldout.board.site.columns import COSTS  # noqa: PLC0415 - draws charts too

        hidden = {*_DETAILS, *(column.key for column in COSTS)}
        return tuple(name for name in self.names if name not in hidden)

    def _title(self) -> str:
        day = self.as_of.date().isoformat()
        season = f", season {self.season}" if self.season else ""
        return f"{self.board}{season}, by {self.measure} ({self.view}), as of {day}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardView:
    """A public view: a measure on a query set.

    Attributes:
        name: of the view.
        measure: as in `RR@10`.
        set: name of the query set.
        held_out: whether the labels are held out.
        ranks: whether it ranks the board.
        final: whether its scores are published after the last day.
    """

    name: str
    measure: str
    set: str
    held_out: bool
    ranks: bool
    final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSubmission:
    """A submission or baseline, as far as the public log says it.

    Attributes:
        id: its id.
        status: how far it has come: `received`, `published`, `rejected` and so on.
        received, published: when, UTC; `published` is `None` before.
        rank: in the standings; `None` for baselines and for what is not ranked.
        scores: view -> published score.
        spreads: view -> standard deviation over seeds, of means over several runs.
        identity: who and what; `None` while it waits, was rejected, or is under an embargo.
        type: submission type; `None` while sealed.
        embargo_until: day of the reveal, `None` without an embargo.
        baseline: whether it is an organiser's.
        errata: time and reason of each correction.
        events: time and kind of each event about it.
        files: name of each sealed file -> SHA-256.
    """

    id: str
    status: str
    received: datetime
    published: datetime | None
    rank: int | None
    scores: Mapping[str, float]
    spreads: Mapping[str, float]
    identity: manifest.Identity | None
    type: str | None
    embargo_until: date | None
    baseline: bool
    errata: tuple[tuple[datetime, str], ...]
    events: tuple[tuple[datetime, str], ...]
    files: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        document: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return document

    def ir_metadata(self) -> str:
        """An ir_metadata header with what its team says, to be put above the rows of its run.

        Raises:
            InputError: code `no-identity`: nobody may know yet who sent it.

        Example:
            Path("with-header.run").write_text(entry.ir_metadata() + run)
        """
        from heldout.board.participant.run_header import describe_identity  # noqa: PLC0415 - rare
        from heldout.trec.ir_metadata import format_header  # noqa: PLC0415 - the same

        if self.identity is None:
            raise InputError.of(
                "no-identity",
                self.id,
                f"a submission that is {self.status}, without an identity in the public log",
            )
        return format_header(describe_identity(self.identity, tag=self.id)).decode()


class Board:
    """A board, read from its public folder.

    Attributes:
        path: the folder with board.toml and log.jsonl.

    Example:
        board = Board("kb")
        best = board.standings().rows[0]
        print(best["description"], best[board.primary])
    """

    def __init__(self, path: Path | str = ".") -> None:
        """Find the board.

        Args:
            path: its folder, or one inside it.

        Raises:
            StoreError: there is no board, or its log is missing or damaged.
        """
        self._repository = find_board(Path(path))
        self.path = self._repository.root
        self._rules = self._repository.spec()

    def __repr__(self) -> str:
        return f"Board({str(self.path)!r})"

    @property
    def name(self) -> str:
        """The board's short name."""
        return self._rules.name

    @property
    def title(self) -> str:
        """The heading of its page."""
        return self._rules.title

    @property
    def primary(self) -> str:
        """The view that ranks; of a board with seasons that of board.toml."""
        return self._rules.primary

    @property
    def views(self) -> tuple[BoardView, ...]:
        """The public views, the one that ranks first, then those published after the last day."""
        rules = self._rules
        public = sorted(rules.public_views, key=lambda view: view.name != rules.primary)
        return tuple(
            BoardView(
                name=view.name,
                measure=view.measure,
                set=view.set,
                held_out=rules.sets[view.set].held_out,
                ranks=view.name == rules.primary,
                final=view.final,
            )
            for view in (*public, *rules.final_views)
        )

    @property
    def seasons(self) -> tuple[str, ...]:
        """Names of the seasons, in order; none for a board without."""
        return tuple(season.name for season in self._rules.seasons)

    def standings(
        self,
        view: str | None = None,
        *,
        season: str | None = None,
        now: datetime | None = None,
    ) -> BoardStandings:
        """The leaderboard, as `leaderboard/leaderboard.json` has it.

        Args:
            view: a public view to rank by [the board's own].
            season: a season that has begun [the latest].
            now: the moment, UTC, which decides on embargoes and last days [the clock's].

        Raises:
            InputError: code `unknown-view` or `unknown-season`.

        Example:
            board.standings("dev").columns()["rank"]
        """
        moment = now or _clock()
        standings, rules = self._standings(season, moment)
        if view is not None and view != rules.primary:
            standings, rules = _rank_by(standings, rules, view)
        return _standings_table(standings, rules)

    def history(self) -> BoardTable:
        """Every event of the public log: what came, what was decided, what was published.

        Columns: `event` (its number), `time`, `kind`, `submission`, `why` (where it is public) and
        `by`, the organiser.

        Example:
            [row["submission"] for row in board.history() if row["kind"] == "published"]
        """
        names = ("event", "time", "kind", "submission", "why", "by")
        rows = (
            (
                entry.event.seq,
                format_time(entry.time),
                entry.event.kind,
                entry.event.submission,
                entry.get("why") or None,
                entry.event.by,
            )
            for entry in self._log
        )
        return _table(names, rows)

    def submissions(self) -> BoardTable:
        """Every submission and baseline, in the order they came.

        Columns: `id`, `status`, `received`, `decided`, `days` from one to the other, `baseline`,
        `type`, `team`, `embargo_until`. What is sealed is `None`.

        Example:
            sorted(row["days"] for row in board.submissions() if row["days"] is not None)
        """
        names = (
            *("id", "status", "received", "decided", "days", "baseline"),
            *("type", "team", "embargo_until"),
        )
        rows = (
            (
                one.id,
                one.status,
                format_time(one.received),
                None if decided is None else format_time(decided),
                None if decided is None else (decided - one.received).total_seconds() / 86_400,
                one.baseline,
                one.type,
                one.identity.team if one.identity is not None else None,
                None if one.embargo_until is None else one.embargo_until.isoformat(),
            )
            for one in self._history.submissions.values()
            for decided in (_decided(one),)
        )
        return _table(names, rows)

    def entry(self, id: str, *, now: datetime | None = None) -> BoardSubmission:  # noqa: A002 - its name in the log
        """One submission or baseline.

        Args:
            id: its id.
            now: the moment, UTC, which decides on its embargo [the clock's].

        Raises:
            InputError: code `unknown-submission`.

        Example:
            board.entry("20261120-monot5").identity.team
        """
        moment = now or _clock()
        history = read_history(project(self._log, now=moment))
        if id not in history.submissions:
            raise InputError.of(
                "unknown-submission",
                str(self.path),
                quote(id),
                "an id of the public log",
                "board.submissions() lists them",
            )
        own = self._rules
        seasons = [one.standings for one in list_seasons(self._log, own, now=moment)]
        every = seasons or [current_standings(self._log, own, now=moment)[0]]
        rows = [row for standings in every for row in standings.every if row.id == id]
        found = history.submissions[id]
        row = rows[0] if rows else None
        return BoardSubmission(
            id=found.id,
            status=found.status,
            received=found.received,
            published=found.published,
            rank=None if row is None else row.rank,
            scores={} if row is None else {v: float(text) for v, text in row.scores.items()},
            spreads={} if row is None else {v: float(text) for v, text in row.spreads.items()},
            identity=found.identity if row is None else row.identity,
            type=found.type,
            embargo_until=found.embargo_until,
            baseline=found.baseline,
            errata=found.errata,
            events=tuple((at, kind) for at, kind, _ in found.events),
            files=found.files,
        )

    def teams(self, *, now: datetime | None = None) -> BoardTable:
        """Teams with published entries that no embargo hides, in the order of their first.

        Columns: `team` and `institution` as last published, `entries`, `first` and `last` day of
        submission, `best_rank`. Names that an organiser joined are one team.

        Args:
            now: the moment, UTC [the clock's].

        Example:
            {row["team"]: row["entries"] for row in board.teams()}
        """
        moment = now or _clock()
        history = read_history(project(self._log, now=moment))
        renamed = list_renamed(history)
        ranks = {row["id"]: row["rank"] for row in self.standings(now=moment)}
        found: dict[frozenset[str], list[tuple[submission.Submission, manifest.Identity]]] = {}
        for one in history.submissions.values():
            if one.identity is not None and one.status == "published" and not one.baseline:
                names = names_of(renamed, [one.identity.team])
                found.setdefault(names, []).append((one, one.identity))
        names_ = ("team", "institution", "entries", "first", "last", "best_rank")
        return _table(names_, (_team_row(entries, ranks) for entries in found.values()))

    def registrations(self) -> BoardTable:
        """Registered teams by their handles, where the board asks for registration.

        Columns: `handle`, `registered`, `revoked`, `why`. Who a team is stays sealed.

        Example:
            len(board.registrations())
        """
        rows = (
            (
                team.handle,
                format_time(team.registered),
                None if team.revoked is None else format_time(team.revoked),
                team.why or None,
            )
            for team in self._history.teams.values()
        )
        return _table(("handle", "registered", "revoked", "why"), rows)

    def scores(
        self, vault: Path | str, *, unpublished: bool = False, now: datetime | None = None
    ) -> "BoardScores":
        """True scores per query of every entry, for an organiser's analyses.

        The vault is opened to be read alone.

        Args:
            vault: its folder.
            unpublished: also entries that wait for a decision or were rejected.
            now: the moment, UTC, which says whose season ranks [the clock's].

        Raises:
            StoreError: no vault of this board there, or nothing is published.
            TrustError: a run that has to be scored again does not open.

        Example:
            board.scores("../kb-vault").view().table
        """
        from heldout.board.scores.analyses_source import read_board_scores  # noqa: PLC0415 - heavy
        from heldout.board.scores.session import look_at  # noqa: PLC0415 - the same

        session = look_at(self._repository, Path(vault).absolute(), now=now or _clock())
        return read_board_scores(session, unpublished=unpublished)

    @cached_property
    def _log(self) -> tuple[Entry, ...]:
        return self._repository.log()

    @cached_property
    def _history(self) -> History:
        return read_history(self._log)

    def _standings(self, season: str | None, now: datetime) -> tuple[Standings, BoardSpec]:
        if season is None:
            return current_standings(self._log, self._rules, now=now)
        begun = {one.season.name: one for one in list_seasons(self._log, self._rules, now=now)}
        if season not in begun:
            known = ", ".join(begun) or "none"
            raise InputError.of("unknown-season", str(self.path), quote(season), known=known)
        return begun[season].standings, self._rules.in_season(begun[season].season)


def _clock() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)


def _rank_by(standings: Standings, rules: BoardSpec, name: str) -> tuple[Standings, BoardSpec]:
    """The same entries, ranked by another public view.

    Raises:
        InputError: code `unknown-view`.
    """
    from heldout.board.site.rows import make_columns  # noqa: PLC0415 - pages are not always read

    known: dict[str, View] = {view.name: view for view in (*rules.public_views, *rules.final_views)}
    if name not in known:
        expected = "one of " + ", ".join(known)
        raise InputError.of("unknown-view", rules.name, quote(name), expected)
    ranked = rank_listed(standings, known[name])
    if any(column.falls for column in make_columns(rules) if column.key == name):
        ranked = _turn_round(ranked, name)
    return ranked, msgspec.structs.replace(rules, primary=name)


def _turn_round(standings: Standings, view: str) -> Standings:
    """The standings of a view on which lower scores are better."""
    rows = sorted(standings.rows, key=lambda row: (Decimal(row.scores[view]), row.received, row.id))
    ranks = iter(range(1, len(rows) + 1))
    return replace(
        standings,
        rows=tuple(row if row.rank is None else replace(row, rank=next(ranks)) for row in rows),
    )


def _standings_table(standings: Standings, rules: BoardSpec) -> BoardStandings:
    """The rows of leaderboard.json with one column for each score, spread and standard error."""
    from heldout.board.site.columns import COSTS, ENTRY, RESULT  # noqa: PLC0415 - draws charts too
    from heldout.board.site.exports import format_json  # noqa: PLC0415 - the same
    from heldout.board.site.rows import make_columns  # noqa: PLC0415 - the same

    document = json.loads(format_json(standings, rules))
    columns = make_columns(rules)
    views = [column.key for column in columns]
    informing = [column.key for column in columns if column.for_information]
    before = [column.key for column in ENTRY]
    after = [column.key for column in (*RESULT, *COSTS)]
    spreads = [f"{view}_spread" for view in views]
    errors = [f"{view}_standard_error" for view in informing]
    names = _distinct([*before, *views, *after, *spreads, *errors])
    rows = tuple(
        dict(
            zip(
                names,
                [
                    *(row[key] for key in before),
                    *(row["scores"][view] for view in views),
                    *(row[key] for key in after),
                    *(row["spreads"].get(view) for view in views),
                    *(row.get("standard_errors", {}).get(view) for view in informing),
                ],
                strict=True,
            )
        )
        for row in document["rows"]
    )
    return BoardStandings(
        names=names,
        rows=rows,
        board=standings.board,
        as_of=standings.as_of,
        view=standings.primary,
        measure=rules.view(standings.primary).measure,
        season=standings.season,
        document=document,
    )


def _alike(cells: list[Any]) -> list[Cell]:
    """Whole numbers among others as what the others are: frames take one type in a column."""
    if not any(isinstance(cell, float) for cell in cells):
        return cells
    return [float(cell) if type(cell) is int else cell for cell in cells]


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, each once: a view called `team` becomes `team_2`."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 2
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found[own] = None
    return tuple(found)


def _table(names: tuple[str, ...], rows: Iterable[Sequence[Cell]]) -> BoardTable:
    return BoardTable(names=names, rows=tuple(dict(zip(names, row, strict=True)) for row in rows))


def _decided(one: submission.Submission) -> datetime | None:
    """Return when it was published or rejected last; `None` where nobody decided."""
    times = [at for at, kind, _ in one.events if kind in ("published", "rejected", "baseline")]
    return times[-1] if times else None


def _team_row(
    entries: Sequence[tuple[submission.Submission, manifest.Identity]], ranks: Mapping[Cell, Cell]
) -> tuple[Cell, ...]:
    days = sorted(one.received.date().isoformat() for one, _ in entries)
    last = max(entries, key=lambda each: each[0].received)[1]
    positions = [rank for one, _ in entries if isinstance(rank := ranks.get(one.id), int)]
    best = min(positions, default=None)
    return last.team, last.institution, len(entries), days[0], days[-1], best
