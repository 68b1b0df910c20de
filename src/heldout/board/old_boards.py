"""The tables of the MS MARCO leaderboards: read as published, every repair reported.

Each of the two boards was one CSV file in a git repository (Lin et al. 2022, §3).
Nobody checked what was typed into it, so ids, scores and types are missing or misspelt. Every cell
is kept as it stands; what is made of it is said beside it.
"""

import csv
import re
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, time
from io import StringIO
from pathlib import Path
from typing import Literal

from heldout.analyses.entries import BoardEntry, BoardScores, ViewScores
from heldout.board.log.events import Entry
from heldout.board.log.manifest import Identity, identity_fields, is_link, parse_day
from heldout.board.organiser.creation import first_signers
from heldout.board.organiser.rebuild import bring_up_to_date
from heldout.board.rules.spec_file import parse_spec
from heldout.board.rules.template import fill_template, format_recipients, quote_toml
from heldout.board.scores.session import Session, begin_session
from heldout.board.scores.sets import digest_public
from heldout.board.standings.standings import Standings, make_standings
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault, check_apart
from heldout.envelope.bundle import new_identity, recipient_of
from heldout.errors import InputError, Problem, StoreError, quote
from heldout.ids import Digest, digest_bytes

# The CSV dialect of the MS MARCO leaderboards.
#
# It is not RFC 4180: a quote inside a quoted cell is written as a backslash and a quote, and a
# backslash before anything else is a backslash. That is how the boards' own script wrote the
# cells, so a cell may not end in a backslash. Cells with and without quotes mean the same.

_MOST_BYTES = 4 << 20
_MOST_ROWS = 2000


@dataclass(frozen=True, slots=True)
class OldRow:
    """A row of cells, and the line of the file that it begins on, from 1."""

    line: int
    cells: tuple[str, ...]


def read_records(data: bytes, *, path: str) -> tuple[OldRow, ...]:
    """The header and at least one row, all of one width; blank lines are skipped.

    Args:
        data: the file's bytes; a byte order mark before them is left out.
        path: its name, for errors.

    Raises:
        InputError: `bad-utf8`, `broken-csv`, `wrong-columns`, `empty-file`, `too-large`, with lines
            where there are any.
    """
    records = _split(_decode(data, path), path)
    problems = list(_check_widths(records, path))
    if problems:
        raise InputError(problems)
    return tuple(records)


def _decode(data: bytes, path: str) -> str:
    if len(data) > _MOST_BYTES:
        found, most = f"{len(data):,} bytes", f"at most {_MOST_BYTES:,}"
        raise InputError(Problem(code="too-large", path=path, found=found, expected=most))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError.of(
            code="bad-utf8",
            path=path,
            line=data.count(b"\n", 0, error.start) + 1,
            found="bytes that are not UTF-8",
            expected="UTF-8",
        ) from None


def _split(text: str, path: str) -> list[OldRow]:
    # The csv module takes every backslash for an escape; here only one before a quote is.
    plain = re.sub(r'\\(?!")', r"\\\\", text)
    reader = csv.reader(StringIO(plain, newline=""), escapechar="\\", strict=True)
    records, line = [], 1
    try:
        for cells in reader:
            if cells:
                records.append(OldRow(line, tuple(cells)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError.of(
            code="broken-csv",
            path=path,
            line=line,
            found=f"a row that does not end as it began ({error})",
            expected='cells that hold a comma in quotes, a quote in them as \\"',
        ) from None
    if not 1 < len(records) <= _MOST_ROWS + 1:
        code = "too-large" if records else "empty-file"
        found = f"{max(0, len(records) - 1):,} rows below a header"
        expected = f"1 to {_MOST_ROWS:,} rows"
        raise InputError(Problem(code=code, path=path, found=found, expected=expected))
    return records


def _check_widths(records: Sequence[OldRow], path: str) -> Iterator[Problem]:
    width = len(records[0].cells)
    for record in records:
        if len(record.cells) != width:
            yield Problem(
                code="wrong-columns",
                path=path,
                line=record.line,
                found=f"{len(record.cells)} cells",
                expected=f"{width}, as in the header",
            )


# The headings of the two MS MARCO leaderboards, by which their tables are told apart.


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One of the two tables.

    Attributes:
        name: short name of the board.
        title: heading of its page.
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

    @property
    def headings(self) -> frozenset[str]:
        """Every heading of the table; "" is that of the column of signs."""
        common = ("id", "date", "", "description", "team", "paper", "code", "type", "tweet")
        return frozenset((*common, self.dev, self.eval))


LAYOUTS = (
    Layout(
        name="msmarco-doc",
        title="MS MARCO Document Ranking",
        task="Rank the 3.2 million web pages of MS MARCO for each query.",
        measure="RR@100",
        depth=100,
        dev="MRR@100 (Dev)",
        eval="MRR@100 (Eval)",
    ),
    Layout(
        name="msmarco-passage",
        title="MS MARCO Passage Ranking",
        task="Rank the 8.8 million passages of MS MARCO for each query.",
        measure="RR@10",
        depth=1000,
        dev="dev",
        eval="eval",
    ),
)
"""Both boards, told apart by the headings of their tables."""


def find_layout(header: OldRow, *, path: str) -> Layout:
    """The layout that has just these headings.

    Raises:
        InputError: `unknown-table`.
    """
    for layout in LAYOUTS:
        if layout.headings == set(header.cells) and len(header.cells) == len(layout.headings):
            return layout
    raise InputError.of(
        code="unknown-table",
        path=path,
        line=header.line,
        found=quote(",".join(header.cells)),
        expected="the headings of the document or the passage leaderboard of MS MARCO",
        hint="docs/how-to/import.md has both",
    )


Mark = Literal["", "trophy", "baseline"]
"""What stood in the column without a name."""

RepairKind = Literal[
    "byte-order-mark",
    "invisible-character",
    "white-space",
    "made-id",
    "unfit-id",
    "repeated-id",
    "date-from-id",
    "misspelt-type",
    "unknown-type",
    "unknown-mark",
    "not-a-link",
    "no-score",
    "not-a-score",
]
"""Every kind of repair; docs/how-to/import.md says what each does."""

TYPES = ("full ranking", "reranking")
"""What the old boards had in the column `type`."""

_MISSPELT = {"reraking": "reranking"}
_MARKS: Mapping[str, Mark] = {"": "", "🏆": "trophy", "🏛": "baseline"}
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
    kind: RepairKind
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
        mark: trophy or baseline, as the old board gave it.
        description, team: as given, without what nobody can see.
        paper, code: http or https addresses, or "".
        type: as given, a known misspelling aside.
        scores: `dev` and `eval` with the digits that were published; a missing one is left out.
    """

    line: int
    cells: tuple[str, ...]
    id: str
    day: date
    mark: Mark
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
        digest: SHA-256 of the file.
        header: its headings in their order.
        entries: its rows in their order.
        repairs: everything that was not used as it stands, in the order of the lines.
    """

    layout: Layout
    digest: Digest
    header: tuple[str, ...]
    entries: tuple[OldEntry, ...]
    repairs: tuple[Repair, ...]


def parse_table(data: bytes, *, path: str) -> OldTable:
    """Read the CSV file of an old board.

    Args:
        data: the file's bytes.
        path: its name, for errors.

    Raises:
        InputError: `unknown-table` for headings of another table, `no-date` for rows that cannot be
            dated, and those of `read_records`; each with its line.
    """
    header, *records = read_records(data, path=path)
    layout = find_layout(header, path=path)
    rows = [
        _Row(record=one, raw=dict(zip(header.cells, one.cells, strict=True))) for one in records
    ]
    dated = [(row, day) for row in rows if (day := _read_day(row)) is not None]
    if len(dated) < len(rows):
        known = {row.record.line for row, _ in dated}
        raise InputError(_undated(row, path) for row in rows if row.record.line not in known)
    ids = _read_ids(dated)
    entries = tuple(
        _read_entry(row, day, name, layout) for (row, day), name in zip(dated, ids, strict=True)
    )
    byte_order = Repair(line=1, column="id", kind="byte-order-mark", found="\ufeff", made="")
    mark = [byte_order] if data.startswith(BOM_UTF8) else []
    return OldTable(
        layout=layout,
        digest=digest_bytes(data),
        header=header.cells,
        entries=entries,
        repairs=(*mark, *(repair for row in rows for repair in row.repairs)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row's cells by heading, and what was repaired in it so far."""

    record: OldRow
    raw: Mapping[str, str]
    repairs: list[Repair] = field(default_factory=list)

    def read(self, column: str) -> str:
        """A cell without what nobody can see."""
        found = self.raw[column]
        spaced = (" " if unicodedata.category(c) == "Cc" else c for c in found)
        shown = "".join(c for c in spaced if unicodedata.category(c) not in _INVISIBLE)
        made = " ".join(shown.split())
        if shown != found:
            self.report("invisible-character", column, made)
        elif made != found:
            self.report("white-space", column, made)
        return made

    def report(self, kind: RepairKind, column: str, made: str) -> None:
        """Note a repair of a cell."""
        found, line = self.raw[column], self.record.line
        named = column or "mark"
        self.repairs.append(Repair(line=line, column=named, kind=kind, found=found, made=made))


def _undated(row: _Row, path: str) -> Problem:
    return Problem(
        code="no-date",
        path=f"{path}:date",
        line=row.record.line,
        found=quote(row.raw["date"]),
        expected=f"a day as yyyy/mm/dd from {_FIRST_YEAR} on, in the date or before the id's name",
    )


def _read_day(row: _Row) -> date | None:
    day = _as_day(row.read("date"))
    if day is not None:
        return day
    digits = re.match(r"(\d{4})(\d{2})(\d{2})", row.raw["id"].strip(), re.ASCII)
    day = _as_day("-".join(digits.groups())) if digits else None
    if day is not None:
        row.report("date-from-id", "date", day.isoformat())
    return day


def _as_day(text: str) -> date | None:
    try:
        day = parse_day(text)
    except ValueError:
        return None
    return day if day.year >= _FIRST_YEAR else None


def _read_ids(rows: Sequence[tuple[_Row, date]]) -> list[str]:
    """The given ids where they are fit and the first of their name, else made ones.

    Those are `yyyymmdd-row-NNN`: the claimed day and the row's number below the header.
    """
    ids: list[str] = []
    kinds: list[RepairKind | None] = []
    taken: set[str] = set()
    for row, _ in rows:
        given = row.read("id")
        kind: RepairKind | None = None if given else "made-id"
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
            ids[number - 1] = made
            row.report(kind, "id", made)
    return ids


def _read_entry(row: _Row, day: date, name: str, layout: Layout) -> OldEntry:
    scores = {"dev": _read_score(row, layout.dev), "eval": _read_score(row, layout.eval)}
    mark = row.read("").removesuffix(_VARIATION)
    if mark not in _MARKS:
        row.report("unknown-mark", "", "")
    return OldEntry(
        line=row.record.line,
        cells=row.record.cells,
        id=name,
        day=day,
        mark=_MARKS.get(mark, ""),
        description=row.read("description"),
        team=row.read("team"),
        paper=_read_link(row, "paper"),
        code=_read_link(row, "code"),
        type=_read_type(row),
        scores={view: score for view, score in scores.items() if score is not None},
    )


def _read_type(row: _Row) -> str:
    given = row.read("type")
    if given in _MISSPELT:
        row.report("misspelt-type", "type", _MISSPELT[given])
        return _MISSPELT[given]
    if given not in TYPES:
        row.report("unknown-type", "type", given)
    return given


def _read_link(row: _Row, column: str) -> str:
    given = row.read(column)
    if not given or is_link(given):
        return given
    row.report("not-a-link", column, "")
    return ""


def _read_score(row: _Row, column: str) -> str | None:
    given = row.read(column)
    if _SCORE.fullmatch(given):
        return given
    row.report("not-a-score" if given else "no-score", column, "")
    return None


def scores_of_old_table(table: OldTable) -> BoardScores:
    """The entries of an MS MARCO leaderboard's file with the scores that it published.

    Entries of one day stand in the order of their ids, for the file has no times.
    """
    entries = sorted(table.entries, key=lambda entry: (entry.day, entry.id))
    views = {
        name: ViewScores(
            view=name,
            queries=name,
            measure=table.layout.measure,
            public=True,
            held_out=name == "eval",
            means={e.id: float(e.scores[name]) for e in entries if name in e.scores},
        )
        for name in ("eval", "dev")
    }
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
        views=views,
        primary="eval",
    )


# The files that the record of an old board begins with, as text.


_RECORD = (
    "A record of the old board: dates, scores and trophies are as it published them; nothing was "
    "scored here, and nothing can be submitted."
)


def record_files(table: OldTable, *, source: str, recipient: str) -> Mapping[str, bytes]:
    """Path in the board -> content: board.toml, README.md, .gitignore, the public key.

    Args:
        table: the old board.
        source: name of its file.
        recipient: public key of the vault, for a board has at least one.
    """
    layout, days = table.layout, [entry.day for entry in table.entries]
    counts = Counter((repair.kind, repair.column) for repair in table.repairs)
    lines = [f"- {kind}, column {column}: {n}" for (kind, column), n in counts.items()]
    words = {
        "name": quote_toml(layout.name),
        "title": quote_toml(layout.title),
        "task": quote_toml(f"{layout.task} {_RECORD}"),
        "opens": min(days).isoformat(),
        "closes": max(days).isoformat(),
        "decimals": str(_decimals(table)),
        "types": quote_toml(TYPES),
        "recipients": quote_toml([recipient]),
        "measure": quote_toml(layout.measure),
        "depth": str(layout.depth),
    }
    plain = {
        "title": layout.title,
        "source": source,
        "digest": table.digest,
        "entries": str(len(table.entries)),
        "repairs": "\n".join(lines) or "- none",
    }
    return {
        "board.toml": fill_template("record.toml", words),
        "README.md": fill_template("record.md", plain),
        ".gitignore": b".writing-*\n",
        "keys/organisers.txt": format_recipients([recipient]),
    }


def _decimals(table: OldTable) -> int:
    """The most digits after the point that a score has, within what board.toml allows."""
    texts = [text for entry in table.entries for text in entry.scores.values()]
    most = max((len(text.partition(".")[2]) for text in texts), default=3)
    return min(max(most, 1), 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class OldBoardFile:
    """The file of an old board.

    Attributes:
        name: the file's name, without folders.
        data: its bytes; the vault keeps them.
        table: what was read from them.
    """

    name: str
    data: bytes
    table: OldTable


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenOver:
    """What an import left.

    Attributes:
        session: of the new board.
        standings: its rows.
        done_before: whether an earlier call had done all of it.
    """

    session: Session
    standings: Standings
    done_before: bool


def import_board(root: Path, vault_root: Path, source: OldBoardFile, *, now: datetime) -> TakenOver:
    """Make a board and a vault of an old board's table; a crash is made good by a second call.

    Args:
        root: the board's folder, which must not hold anything else.
        vault_root: the vault's folder, outside of it.
        source: the old board.
        now: the moment of the import, UTC.

    Raises:
        StoreError: a folder is taken, also by the import of another file.
        InputError: `future-date`: an entry claims a day after the import.
    """
    check_apart(vault_root, root)
    _check_days(source, now)
    repository, vault = Repository(root), Vault(vault_root)
    logged = vault.entries()
    unfinished = vault.is_unfinished(repository.root)
    done_before = (
        not unfinished
        and _imported_digest(logged) == source.table.digest
        and len(repository.log()) == len(logged)
    )
    if not done_before:
        if not unfinished and root.exists() and {path.name for path in root.iterdir()} - {".git"}:
            raise StoreError(f"{root} is not empty; name a folder that does not exist yet")
        vault.check_new(board=root)
        root.mkdir(parents=True, exist_ok=True)
        repository.git.init()
        Vault.create(vault_root, board=root)
    with vault.locked(), repository.locked():
        if not done_before:
            _write_rules(repository, vault, source)
        session = begin_session(repository, vault, now=now)
        if not done_before:
            _log(session, source)
            bring_up_to_date(session)
            vault.finish()
        standings = make_standings(vault.entries(), session.spec(), now=now)
    return TakenOver(session=session, standings=standings, done_before=done_before)


def differing_trophies(standings: Standings) -> tuple[str, ...]:
    """Ids of the entries whose trophy, as the old board gave it or not, is not what the rule says.

    The rule: strictly above everything before it, baselines too; of entries of the same day the
    one whose id sorts first comes first, for the old boards gave no times.
    """
    return tuple(row.id for row in standings.rows if row.trophy != row.trophy_by_rule)


def _check_days(source: OldBoardFile, now: datetime) -> None:
    problems = [
        Problem(
            code="future-date",
            path=f"{source.name}:date",
            line=entry.line,
            found=entry.day.isoformat(),
            expected=f"a day up to that of the import, {now:%Y-%m-%d}",
        )
        for entry in source.table.entries
        if entry.day > now.date()
    ]
    if problems:
        raise InputError(problems)


def _imported_digest(entries: Sequence[Entry]) -> str | None:
    """Return which file a log was begun with, `None` where it has no import."""
    found = (str(e.get("sha256")) for e in entries if e.event.kind == "imported-board")
    return next(found, None)


def _write_rules(repository: Repository, vault: Vault, source: OldBoardFile) -> None:
    if not vault.identities():
        vault.add_identity("organiser", new_identity("age").private)
    recipient = recipient_of("age", vault.identities()[0])
    files = record_files(source.table, source=source.name, recipient=recipient)
    entries = vault.entries()
    same = _imported_digest(entries) in (None, source.table.digest)
    if not same or (entries and entries[0].get("board.toml") != files[SPEC].decode()):
        raise StoreError("another file's import was begun here; remove both folders, or finish it")
    for path, data in files.items():
        repository.write_file(path, data)
    parse_spec(repository.files.read(SPEC))


def _log(session: Session, source: OldBoardFile) -> None:
    """Every event that an earlier call did not log: the opening, the file, its rows by day."""
    entries = session.vault.entries()
    if not entries:
        rules = session.repository.tree_rules()
        files = digest_public(session.repository, parse_spec(rules.encode()))
        public = {"board.toml": rules, "files": files, "signers": first_signers(session)}
        session.log("opened-board", None, public=public, sealed={"labels": {}})
    if _imported_digest(entries) is None:
        session.vault.store_sealed(source.data)
        session.log("imported-board", None, public=_table_fields(source))
    known = session.history().submissions
    for entry in sorted(source.table.entries, key=lambda entry: (entry.day, entry.line)):
        if entry.id not in known:
            session.log("imported", entry.id, public=_entry_fields(entry))


def _table_fields(source: OldBoardFile) -> dict[str, object]:
    return {
        "source": source.name,
        "sha256": source.table.digest,
        "header": list(source.table.header),
        "repairs": [asdict(repair) for repair in source.table.repairs],
    }


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
