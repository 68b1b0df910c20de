"""Takes over an old MS MARCO board: its table becomes the log of a board of its own.

Nothing is scored: neither the runs nor the held-out labels are at hand. The board is a record. Its
first event opens it, the second says which file was read and what was repaired, and each further
one is an entry, all at the time of the import. The day of an entry is a field of its event, since
it is only claimed, and no event is dated before the one above it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from heldout.board.log.events import Entry
from heldout.board.log.manifest import Identity, identity_fields
from heldout.board.old_boards.legacy import TYPES, OldEntry, OldTable
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
from heldout.errors import InputError, Problem, StoreError

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
