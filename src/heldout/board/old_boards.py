"""Takes over an old MS MARCO board: its table, read as published, becomes a board's log.

Each of the two boards was one CSV file in a git repository (Lin et al. 2022, §3).
Nobody checked what was typed into it, so ids, scores and types are missing or misspelt. Every cell
is kept as it stands; what is made of it is said beside it.

The CSV is not that of RFC 4180: a quote inside a quoted cell is written as a backslash and a quote,
and a backslash before anything else is a backslash. That is how the boards' own script wrote the
cells, so a cell may not end in a backslash. Cells with and without quotes mean the same.

Nothing is scored: neither the runs nor the held-out labels are at hand. The board is a record. Its
first event opens it, the second says which file was read and what was repaired, and each further
one is an entry, all at the time of the import. The day of an entry is a field of its event, since
it is only claimed, and no event is dated before the one above it.
"""

import csv
import re
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time
from io import StringIO
from pathlib import Path

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.board.log.events import Entry
from heldout.board.log.manifest import Identity, identity_fields, is_link, parse_day
from heldout.board.organiser import creation, rebuild
from heldout.board.rules import spec, spec_file, template
from heldout.board.scores.session import Session, begin_session
from heldout.board.scores.sets import digest_public
from heldout.board.standings.standings import Standings, make_standings
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault, check_apart
from heldout.envelope.bundle import new_identity, recipient_of
from heldout.errors import InputError, Problem, StoreError, quote
from heldout.ids import Digest, digest_bytes

_MOST_BYTES = 4 << 20
_MOST_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Layout:
    """One of the two tables.

    Attributes:
        name, title: of the board.
        task: what a system had to do.
        measure: of both scores, as ir_measures names it.
        depth: most documents per query.
        dev, eval: headings of the two scores.
    """

    name: str
    title: str
    task: str
    measure: str
    depth: int
    dev: str
    eval: str


LAYOUTS = tuple(Layout(**row) for row in spec.read_table("words")["old_boards"])
"""Both boards, told apart by the headings of their tables."""

_HEADINGS = ("id", "date", "", "description", "team", "paper", "code", "type", "tweet")
"""What both tables have beside the scores; "" is the column of signs."""

REPAIRS: Sequence[str] = spec.read_table("words")["repairs"].split()
"""Every kind of repair; docs/how-to/import.md says what each does."""

TYPES = ("full ranking", "reranking")
"""What the old boards had in the column `type`."""

_MISSPELT = {"reraking": "reranking"}
_MARKS = {"": "", "🏆": "trophy", "🏛": "baseline"}
_VARIATION = "\ufe0f"  # asks for the coloured form of the sign before it
_INVISIBLE = ("Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,72}", re.ASCII)
_SCORE = re.compile(r"0(\.[0-9]{1,16})?|1(\.0{1,16})?", re.ASCII)
_FIRST_YEAR = 1990


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One place where what is used is not what stands in the file.

    Attributes:
        line: of the file, 1-based; that of the row's first cell.
        column: heading of the cell; "mark" for the column without a name.
        kind: what was repaired.
        found: the cell as it stands.
        made: what is used for it; "" for nothing.
    """

    line: int
    column: str
    kind: str
    found: str
    made: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OldEntry:
    """One row of an old board.

    Attributes:
        line: of the file, 1-based.
        cells: the row as it stands, in the order of the header.
        id: as given, or made.
        day: the day that the old board claims.
        mark: `trophy`, `baseline` or "", as the old board gave it.
        description, team: as given, without what nobody can see.
        paper, code: http or https addresses, or "".
        type: as given, a known misspelling aside.
        scores: `dev` and `eval` with the digits that were published; a missing one is left out.
    """

    line: int
    cells: tuple[str, ...]
    id: str
    day: date
    mark: str
    description: str
    team: str
    paper: str
    code: str
    type: str
    scores: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class OldTable:
    """A whole table.

    Attributes:
        layout: which board it is.
        name: the file's name, without folders.
        data: its bytes; the vault keeps them.
        header: its headings in their order.
        entries: its rows in their order.
        repairs: everything that was not used as it stands, in the order of the lines.
    """

    layout: Layout
    name: str
    data: bytes
    header: tuple[str, ...]
    entries: tuple[OldEntry, ...]
    repairs: tuple[Repair, ...]

    @property
    def digest(self) -> Digest:
        """SHA-256 of the file."""
        return digest_bytes(self.data)


def parse_table(data: bytes, *, path: str) -> OldTable:
    """Read the CSV file of an old board.

    Args:
        data: the file's bytes.
        path: its name, for errors.

    Raises:
        InputError: `unknown-table` for headings of another table, `no-date` for rows that cannot be
            dated, `bad-utf8`, `broken-csv`, `wrong-columns`, `empty-file`, `too-large`; with lines
            where there are any.
    """
    (line, header), *records = _read_records(data, path)
    headings = sorted(header)
    layout = next((x for x in LAYOUTS if sorted((*_HEADINGS, x.dev, x.eval)) == headings), None)
    if layout is None:
        raise InputError.of("unknown-table", path, quote(",".join(header)), line=line)
    rows = [_Row(line, dict(zip(header, cells, strict=True))) for line, cells in records]
    days = [row.read_day() for row in rows]
    undated = [row for row, day in zip(rows, days, strict=True) if day is None]
    if undated:
        where, year = f"{path}:date", _FIRST_YEAR
        raise InputError(
            Problem.of("no-date", where, quote(row.raw["date"]), line=row.line, first_year=year)
            for row in undated
        )
    dated = [(row, day) for row, day in zip(rows, days, strict=True) if day is not None]
    ids = _read_ids(dated)
    entries = [row.read_entry(day, id_, layout) for (row, day), id_ in zip(dated, ids, strict=True)]
    mark = Repair(line=1, column="id", kind="byte-order-mark", found="\ufeff", made="")
    return OldTable(
        layout=layout,
        name=Path(path).name,
        data=data,
        header=header,
        entries=tuple(entries),
        repairs=(
            *[mark] * data.startswith(BOM_UTF8),
            *(repair for row in rows for repair in row.repairs),
        ),
    )


def _read_records(data: bytes, path: str) -> list[tuple[int, tuple[str, ...]]]:
    """Read the header and the rows, each with its line; all of one width, blank lines skipped."""
    if len(data) > _MOST_BYTES:
        found, most = f"{len(data):,} bytes", f"at most {_MOST_BYTES:,}"
        raise InputError.of("too-large", path, found, most)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = "bytes that are not UTF-8"
        raise InputError.of("bad-utf8", path, found, "UTF-8", line=line) from None
    # The csv module takes every backslash for an escape; here only one before a quote is.
    plain = re.sub(r'\\(?!")', r"\\\\", text)
    reader = csv.reader(StringIO(plain, newline=""), escapechar="\\", strict=True)
    records, line = [], 1
    try:
        for cells in reader:
            if cells:
                records.append((line, tuple(cells)))
            line = reader.line_num + 1
    except csv.Error as error:
        found = f"a row that does not end as it began ({error})"
        raise InputError.of("broken-csv", path, found, line=line) from None
    if not 1 < len(records) <= _MOST_ROWS + 1:
        code = "too-large" if records else "empty-file"
        found = f"{max(0, len(records) - 1):,} rows below a header"
        raise InputError.of(code, path, found, f"1 to {_MOST_ROWS:,} rows")
    width = len(records[0][1])
    expected = f"{width}, as in the header"
    wrong = [
        Problem("wrong-columns", path, f"{len(cells)} cells", expected, line=line)
        for line, cells in records
        if len(cells) != width
    ]
    if wrong:
        raise InputError(wrong)
    return records


class _Row:
    """A row's cells by heading, and what was repaired in it so far."""

    def __init__(self, line: int, raw: Mapping[str, str]) -> None:
        self.line, self.raw = line, raw
        self.repairs: list[Repair] = []

    def report(self, kind: str, column: str, made: str) -> str:
        """Note a repair of a cell; what is used for it."""
        found, named = self.raw[column], column or "mark"
        self.repairs.append(Repair(line=self.line, column=named, kind=kind, found=found, made=made))
        return made

    def read(self, column: str) -> str:
        """Return a cell without what nobody can see."""
        found = self.raw[column]
        spaced = (" " if unicodedata.category(c) == "Cc" else c for c in found)
        shown = "".join(c for c in spaced if unicodedata.category(c) not in _INVISIBLE)
        made = " ".join(shown.split())
        if made != found:
            self.report("white-space" if shown == found else "invisible-character", column, made)
        return made

    def read_day(self) -> date | None:
        """Return the day of the date, or of the id; `None` where neither has one."""
        day = _as_day(self.read("date"))
        digits = re.match(r"(\d{4})(\d{2})(\d{2})", self.raw["id"].strip(), re.ASCII)
        if day is None and digits and (day := _as_day("-".join(digits.groups()))) is not None:
            self.report("date-from-id", "date", day.isoformat())
        return day

    def read_entry(self, day: date, name: str, layout: Layout) -> OldEntry:
        """Return what is used of the row.

        Args:
            day: of the entry.
            name: its id.
            layout: of the table.
        """
        scores = {"dev": self._read_score(layout.dev), "eval": self._read_score(layout.eval)}
        mark = self.read("").removesuffix(_VARIATION)
        if mark not in _MARKS:
            self.report("unknown-mark", "", "")
        return OldEntry(
            line=self.line,
            cells=tuple(self.raw.values()),
            id=name,
            day=day,
            mark=_MARKS.get(mark, ""),
            description=self.read("description"),
            team=self.read("team"),
            paper=self._read_link("paper"),
            code=self._read_link("code"),
            type=self._read_type(),
            scores={view: score for view, score in scores.items() if score},
        )

    def _read_type(self) -> str:
        given = self.read("type")
        if given in _MISSPELT:
            return self.report("misspelt-type", "type", _MISSPELT[given])
        return given if given in TYPES else self.report("unknown-type", "type", given)

    def _read_link(self, column: str) -> str:
        given = self.read(column)
        return given if not given or is_link(given) else self.report("not-a-link", column, "")

    def _read_score(self, column: str) -> str:
        given = self.read(column)
        if _SCORE.fullmatch(given):
            return given
        return self.report("not-a-score" if given else "no-score", column, "")


def _as_day(text: str) -> date | None:
    try:
        day = parse_day(text)
    except ValueError:
        return None
    return day if day.year >= _FIRST_YEAR else None


def _read_ids(rows: Sequence[tuple[_Row, date]]) -> list[str]:
    """Return the given ids where they are fit and the first of their name, else made ones.

    Those are `yyyymmdd-row-NNN`: the claimed day and the row's number below the header.
    """
    ids: list[str] = []
    kinds: list[str | None] = []
    taken: set[str] = set()
    for row, _ in rows:
        given = row.read("id")
        kind = None if given else "made-id"
        if given and (not _ID.fullmatch(given) or ".." in given):
            kind = "unfit-id"
        elif given.casefold() in taken:
            kind = "repeated-id"
        kinds.append(kind)
        ids.append(given)
        taken |= set() if kind else {given.casefold()}
    for number, ((row, day), kind) in enumerate(zip(rows, kinds, strict=True), 1):
        if kind is not None:
            made = f"{day:%Y%m%d}-row-{number:03d}"
            while made in taken:
                made += "-again"
            taken.add(made)
            ids[number - 1] = row.report(kind, "id", made)
    return ids


def scores_of_old_table(table: OldTable) -> BoardScores:
    """Return the entries of an MS MARCO leaderboard's file with the scores that it published.

    Entries of one day stand in the order of their ids, for the file has no times.
    """
    entries = sorted(table.entries, key=lambda entry: (entry.day, entry.id))
    return BoardScores(
        board=table.layout.name,
        entries=tuple(
            BoardEntry(
                id=entry.id,
                received=datetime.combine(entry.day, time(), UTC),
                description=entry.description,
                team=entry.team,
                baseline=entry.mark == "baseline",
            )
            for entry in entries
        ),
        views={
            name: ViewScores(
                view=name,
                queries=name,
                measure=table.layout.measure,
                public=True,
                held_out=name == "eval",
                means={e.id: float(e.scores[name]) for e in entries if name in e.scores},
            )
            for name in ("eval", "dev")
        },
        primary="eval",
    )


_RECORD = (
    "A record of the old board: dates, scores and trophies are as it published them; nothing was "
    "scored here, and nothing can be submitted."
)


def record_files(table: OldTable, *, recipient: str) -> Mapping[str, bytes]:
    """Path in the board -> content: board.toml, README.md, .gitignore, the public key.

    Args:
        table: the old board.
        recipient: public key of the vault, for a board has at least one.
    """
    layout, days = table.layout, [entry.day for entry in table.entries]
    texts = [text for entry in table.entries for text in entry.scores.values()]
    digits = max((len(text.partition(".")[2]) for text in texts), default=3)
    counts = Counter((repair.kind, repair.column) for repair in table.repairs)
    lines = [f"- {kind}, column {column}: {n}" for (kind, column), n in counts.items()]
    return {
        "board.toml": template.fill_template(
            "record.toml",
            **{name: getattr(layout, name) for name in ("name", "title", "measure", "depth")},
            task=f"{layout.task} {_RECORD}",
            opens=min(days),
            closes=max(days),
            decimals=min(max(digits, 1), 6),  # what board.toml allows
            types=TYPES,
            recipients=[recipient],
        ),
        "README.md": template.fill_template(
            "record.md",
            title=layout.title,
            source=table.name,
            digest=table.digest,
            entries=len(table.entries),
            repairs="\n".join(lines) or "- none",
        ),
        ".gitignore": b".writing-*\n",
        "keys/organisers.txt": template.format_recipients([recipient]),
    }


def import_board(
    root: Path, vault_root: Path, table: OldTable, *, now: datetime
) -> tuple[Session, Standings, bool]:
    """Make a board and a vault of an old board's table; a crash is made good by a second call.

    Args:
        root: the board's folder, which must not hold anything else.
        vault_root: the vault's folder, outside of it.
        table: the old board.
        now: the moment of the import, UTC.

    Returns:
        The session of the new board, its standings, and whether an earlier call had done all.

    Raises:
        StoreError: a folder is taken, also by the import of another file.
        InputError: `future-date`: an entry claims a day after the import.
    """
    check_apart(vault_root, root)
    late = [entry for entry in table.entries if entry.day > now.date()]
    if late:
        path, until = f"{table.name}:date", f"a day up to that of the import, {now:%Y-%m-%d}"
        raise InputError(
            Problem("future-date", path, entry.day.isoformat(), until, line=entry.line)
            for entry in late
        )
    repository, vault = Repository(root), Vault(vault_root)
    logged = vault.entries()
    unfinished = vault.is_unfinished(repository.root)
    same_log = len(repository.log()) == len(logged)
    done_before = not unfinished and _imported_digest(logged) == table.digest and same_log
    if not done_before:
        if not unfinished and root.exists() and {path.name for path in root.iterdir()} - {".git"}:
            raise StoreError(f"{root} is not empty; name a folder that does not exist yet")
        vault.check_new(board=root)
        root.mkdir(parents=True, exist_ok=True)
        repository.git.init()
        Vault.create(vault_root, board=root)
    with vault.locked(), repository.locked():
        if not done_before:
            _write_rules(repository, vault, table)
        session = begin_session(repository, vault, now=now)
        if not done_before:
            _log(session, table)
            rebuild.bring_up_to_date(session)
            vault.finish()
        standings = make_standings(vault.entries(), session.spec(), now=now)
    return session, standings, done_before


def differing_trophies(standings: Standings) -> tuple[str, ...]:
    """Return the ids of entries whose trophy, as the old board gave it or not, is not by the rule.

    The rule: strictly above everything before it, baselines too; of entries of the same day the
    one whose id sorts first comes first, for the old boards gave no times.
    """
    return tuple(row.id for row in standings.rows if row.trophy != row.trophy_by_rule)


def _imported_digest(entries: Sequence[Entry]) -> str | None:
    """Return which file a log was begun with, `None` where it has no import."""
    found = (str(e.get("sha256")) for e in entries if e.event.kind == "imported-board")
    return next(found, None)


def _write_rules(repository: Repository, vault: Vault, table: OldTable) -> None:
    if not vault.identities():
        vault.add_identity("organiser", new_identity("age").private)
    files = record_files(table, recipient=recipient_of("age", vault.identities()[0]))
    entries = vault.entries()
    same = _imported_digest(entries) in (None, table.digest)
    if not same or (entries and entries[0].get("board.toml") != files[SPEC].decode()):
        raise StoreError("another file's import was begun here; remove both folders, or finish it")
    for path, data in files.items():
        repository.write_file(path, data)
    spec_file.parse_spec(repository.files.read(SPEC))


def _log(session: Session, table: OldTable) -> None:
    """Log what an earlier call did not: the opening, the file, its rows by day."""
    entries = session.vault.entries()
    if not entries:
        rules = session.repository.tree_rules()
        files = digest_public(session.repository, spec_file.parse_spec(rules.encode()))
        public = {"board.toml": rules, "files": files, "signers": creation.first_signers(session)}
        session.log("opened-board", None, public=public, sealed={"labels": {}})
    if _imported_digest(entries) is None:
        session.vault.store_sealed(table.data)
        repairs = [asdict(repair) for repair in table.repairs]
        file = {"source": table.name, "sha256": table.digest, "header": list(table.header)}
        session.log("imported-board", None, public={**file, "repairs": repairs})
    known = session.history().submissions
    for entry in sorted(table.entries, key=lambda entry: (entry.day, entry.line)):
        if entry.id not in known:
            session.log("imported", entry.id, public=_entry_fields(entry))


def _entry_fields(entry: OldEntry) -> dict[str, object]:
    identity = Identity(
        team=entry.team,
        institution="",
        description=entry.description,
        paper=entry.paper,
        code=entry.code,
        training_data="",
    )
    return {
        "line": entry.line,
        "cells": list(entry.cells),
        "day": entry.day.isoformat(),
        "trophy": entry.mark == "trophy",
        "baseline": entry.mark == "baseline",
        "identity": identity_fields(identity),
        "type": entry.type,
        "scores": dict(entry.scores),
    }
