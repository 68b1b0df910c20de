"""What a team may still change of a submission: one rule, here and where the organisers receive it.

A refusal leaves no event, so a team that sent what will be refused would wait for ever. Its own
clone therefore holds an update to the public log first.
"""

from collections.abc import Iterable
from datetime import date

from heldout.board.log.events import Entry
from heldout.board.log.history import History, read_history
from heldout.board.log.manifest import Manifest
from heldout.board.log.submission import Submission
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.errors import InputError, quote
from heldout.ids import SubmissionId


def check_update(
    log: Iterable[Entry], submission: SubmissionId, new: Manifest, *, withdrawn: bool
) -> None:
    """Refuse here what the organisers would refuse, by the public log.

    Args:
        log: the public log.
        submission: its id; one that the log does not know is not refused.
        new: the metadata that would be sent.
        withdrawn: whether it is to be taken back, else its metadata is to be changed.

    Raises:
        InputError: it is published and would be withdrawn or get another type or embargo, or it
            was refused or withdrawn, or the board is closed.
    """
    entries = tuple(log)
    history = read_history(entries)
    refuse_closed(history)
    known = history.submissions.get(submission)
    if known is None or known.pending:
        return
    if known.status != "published":
        what = "it was refused" if known.status == "rejected" else "it was withdrawn"
        why = f": {known.why}" if known.why else ""
        raise InputError.of("already-decided", known.id, what + why)
    if withdrawn:
        hint = "nothing was sent; the metadata can be changed: heldout amend"
        raise InputError.of("published-stays", str(submission), "it is published", hint=hint)
    refuse_changed_terms(_published_terms(entries, known), new)
    rules = parse_spec(history.rules_at(known.received).encode(), path="board.toml")
    refuse_closed_runs(rules.on(known.received.date()), new)


def refuse_closed(history: History) -> None:
    """Refuse to go on with anything for a board that takes nothing any more.

    Raises:
        InputError: the board was closed for good.
    """
    if history.closed is not None:
        found = f"a board that was closed for good on {history.closed:%d %b %Y}"
        raise InputError.of("board-closed", "log.jsonl", found)


def refuse_changed_terms(published: tuple[str, date | None], new: Manifest) -> None:
    """Refuse another type or embargo than a published entry came with.

    Args:
        published: its type, and the day of its reveal as the team asked for it.
        new: the metadata that an update brings.

    Raises:
        InputError: one of them is another.
    """
    if (new.type, new.embargo_until) != published:
        found, expected = (_say_terms(*one) for one in ((new.type, new.embargo_until), published))
        hint = "an embargo is moved by the organisers: ask them (heldout extend)"
        path = "metadata.json"
        raise InputError.of("published-stays", path, found, f"{expected}, as published", hint)


def refuse_closed_runs(spec: BoardSpec, new: Manifest) -> None:
    """On a board that opens all runs, a team that has learned its score cannot take them out.

    Raises:
        InputError: the update would.
    """
    if spec.archive.runs == "always" and new.open_runs is False:
        path, found = "metadata.json:open_runs", "false, of a published entry"
        expected = "true: this board opens the runs of every entry at its end"
        hint = "the board said so before the submission"
        raise InputError.of("published-stays", path, found, expected, hint)


def _published_terms(log: Iterable[Entry], known: Submission) -> tuple[str, date | None]:
    """Type and embargo at publication; an extension moved the embargo, and not the metadata."""
    own = (entry for entry in log if entry.event.submission == known.id)
    *_, event = (entry for entry in own if entry.event.kind == "published")
    until = event.get("embargo_until")
    return str(event.get("type")), None if until is None else date.fromisoformat(until)


def _say_terms(kind: str, until: date | None) -> str:
    embargo = "no embargo" if until is None else f"an embargo until {until}"
    return f"type {quote(kind)}, {embargo}"
