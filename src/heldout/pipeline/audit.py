"""Verifies both logs and what was made from them; changes nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heldout.board.events import Entry
from heldout.board.history import read_history
from heldout.errors import HeldoutError
from heldout.ids import digest_bytes
from heldout.store.repository import Repository
from heldout.store.vault import Vault

__all__ = ["Audit", "audit_board"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found.

    Attributes:
        events: events in the public log.
        checked: what was verified, in words.
        faults: what does not hold.
        notes: what holds and is worth telling.
    """

    events: int
    checked: tuple[str, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()


def audit_board(repository: Repository, vault_root: Path | None) -> Audit:
    """Verify a board's public log, and its vault where one is given."""
    checked = ["chain, times and openings of the public log", "sealed files against the log"]
    notes: list[str] = []
    try:
        public = repository.log()
        faults = [*_check_files(repository, public)]
        if vault_root is not None:
            checked += ["the vault's log, sealed files and labels", "both logs alike"]
            vault = Vault.open(vault_root, board=repository.root)
            faults += _check_vault(vault, public)
            later = len(vault.entries()) - len(public)
            notes += [f"{later} events are not public yet: heldout rebuild"] * (later > 0)
    except HeldoutError as error:
        return Audit(events=0, checked=(), faults=(str(error),))
    if not public:
        faults.append("log.jsonl is missing or empty")
    return Audit(
        events=len(public), checked=tuple(checked), faults=tuple(faults), notes=tuple(notes)
    )


def _check_files(repository: Repository, public: Sequence[Entry]) -> Iterator[str]:
    """Every published submission's sealed files are there, as they were received."""
    for submission in read_history(public).submissions.values():
        for name, digest in submission.files.items() if submission.status == "published" else ():
            file = repository.root / "submissions" / name
            if not file.is_file():
                yield f"submissions/{name} is missing"
            elif digest_bytes(file.read_bytes()) != digest:
                yield f"submissions/{name} is not the file that was received"


def _check_vault(vault: Vault, public: Sequence[Entry]) -> Iterator[str]:
    entries = vault.entries()
    for ours, theirs in zip(entries, public, strict=False):
        if ours.hash != theirs.hash:
            yield f"event {ours.event.seq} differs between the two logs"
            return
    if len(entries) < len(public):
        yield f"the vault lacks {len(public) - len(entries)} events of the public log"
    history = read_history(entries)
    for submission in history.submissions.values():
        for digest in submission.files.values():
            try:
                vault.sealed(digest)
            except HeldoutError as error:
                yield str(error)
    for name, digest in history.labels.items():
        file = vault.labels_file(name)
        if not file.is_file() or digest_bytes(file.read_bytes()) != digest:
            yield f"the labels of '{name}' are not those that the board was opened with"
