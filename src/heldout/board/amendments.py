"""What a team changed in its metadata, revision by revision."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from heldout.board.events import Entry
from heldout.board.history import Submission

__all__ = ["Amendment", "list_amendments", "list_proposed"]

_KINDS = frozenset({"reviewed", "updated", "withdrawn", "published", "amended"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """One field that is not what it was.

    Attributes:
        at: time of the event that brought it.
        field: its name in the log.
        before: what it said; "" for nothing.
        after: what it says from then on.
    """

    at: datetime
    field: str
    before: str
    after: str


def list_amendments(entries: Iterable[Entry], submission: str) -> tuple[Amendment, ...]:
    """Every change of a submission's metadata, in order.

    Args:
        entries: a log; by the public one only what is revealed is seen.
        submission: its id.
    """
    return tuple(_changes(entries, submission))


def list_proposed(submission: Submission) -> tuple[Amendment, ...]:
    """What a published entry's team asks to change, and an organiser has not decided on."""
    proposal, now = submission.proposal, submission.identity
    if proposal is None or proposal.identity is None or now is None:
        return ()
    before, after = (_flatten(msgspec.to_builtins(one)) for one in (now, proposal.identity))
    return tuple(
        Amendment(
            at=proposal.at, field=name, before=before.get(name, ""), after=after.get(name, "")
        )
        for name in {**before, **after}
        if before.get(name, "") != after.get(name, "")
    )


def _changes(entries: Iterable[Entry], submission: str) -> Iterator[Amendment]:
    known: dict[str, str] = {}
    for entry in entries:
        if entry.event.submission != submission or entry.event.kind not in _KINDS:
            continue
        said = _said(entry)
        gone = {name: "" for name in known if name.startswith("efficiency.")} if said else {}
        for field, after in {**gone, **said}.items():
            if known and known.get(field, "") != after:
                yield Amendment(
                    at=entry.time, field=field, before=known.get(field, ""), after=after
                )
        known |= {**gone, **said}


def _said(entry: Entry) -> dict[str, str]:
    """The metadata that an event brings, as text."""
    said = _flatten(entry.get("identity") or {})
    for name in ("type", "embargo_until"):
        if name in entry.opened or name in entry.event.public:
            said[name] = _text(entry.get(name))
    return said


def _flatten(identity: Mapping[str, Any]) -> dict[str, str]:
    fields = dict(identity)
    costs = fields.pop("efficiency", None) or {}
    fields |= {f"efficiency.{name}": value for name, value in costs.items()}
    return {name: _text(value) for name, value in fields.items()}


def _text(value: object) -> str:
    """As the metadata file has it, without quotes; "" for nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
