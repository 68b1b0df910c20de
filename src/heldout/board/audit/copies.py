"""An audit held against what others have: a participant's receipt, an older copy of the log."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from heldout.board.audit.audit import Audit
from heldout.board.log.events import parse_log
from heldout.board.log.history import check_continues
from heldout.board.participant.checks import LogCopies, read_copies
from heldout.board.participant.receipts import (
    Receipt,
    ReceiptCheck,
    check_receipt,
    list_changes,
    read_receipt,
)
from heldout.board.store.repository import Repository
from heldout.errors import HeldoutError, plural


def hold_against(
    repository: Repository, found: Audit, receipt: Path | None, earlier: Path | None
) -> tuple[Audit, ReceiptCheck | None]:
    """What a receipt or an older log adds to an audit.

    Args:
        repository: a clone of the board.
        found: the audit.
        receipt: file of a receipt, `None` for none.
        earlier: file of an older log, `None` for none.

    Raises:
        StoreError: the receipt cannot be read.
    """
    faults, notes, checked = [*found.faults], [*found.notes], [*found.checked]
    result = None
    try:
        copies = read_copies(repository)
        older = [copies.here]
        if earlier is not None:
            older.append(parse_log(earlier.read_bytes(), path=earlier.name))
            checked.append(f"{earlier.name}, which it continues")
            faults += check_continues(older[-1], copies.newest)
        faults += copies.find_faults()
        notes += copies.say_behind()
        for copy in older:
            broken = [*check_continues(copy, copies.newest)]
            notes += [] if broken else list_changes(copy, copies.newest)
    except HeldoutError as error:
        copies, faults = None, [*faults, str(error)]
    if receipt is not None and copies is not None and copies.newest:
        kept = read_receipt(receipt)
        result = check_receipt(kept, copies.newest)
        faults += result.faults
        checked.append("the receipt")
        notes += _say_behind(copies, kept)
    audit = replace(
        found,
        checked=tuple(checked),
        faults=tuple(dict.fromkeys(faults)),
        notes=tuple(dict.fromkeys(notes)),
    )
    return audit, result


def _say_behind(copies: LogCopies, receipt: Receipt) -> Iterator[str]:
    """That this clone is behind: no fault of the organisers."""
    if len(copies.newest) > len(copies.here):
        yield (
            f"the receipt was held against {copies.board}'s newer log of "
            f"{plural(len(copies.newest), 'event')}; git pull {copies.board} brings it here"
        )
    elif receipt.seen.seq >= len(copies.newest):
        yield "if origin did not answer, this clone may only be behind: git pull, then call again"
