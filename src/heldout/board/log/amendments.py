"""What a team changed in its metadata, revision by revision."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import msgspec

from heldout.board.log.events import Entry
from heldout.board.log.history import Submission

__all__ = ["Amendment", "LastProposal", "last_proposal", "list_amendments", "list_proposed"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LastProposal:
    """Metadata that a published entry's team asked for and that are not in force.

    Attributes:
        at: time of the request, or of the refusal.
        files: name of each sealed file that it brought -> SHA-256.
        state: whether an organiser is still to decide, or has refused it.
        why: the reason of the refusal; "" while it waits.
    """

    at: datetime
    files: Mapping[str, str]
    state: Literal["waits", "declined"]
    why: str = ""


def last_proposal(entries: Iterable[Entry], submission: str) -> LastProposal | None:
    """What became of a team's last request, `None` where nothing waits and nothing was refused.

    Args:
        entries: a log, the public one too.
        submission: its id.
    """
    found: LastProposal | None = None
    for entry in entries:
        if entry.event.submission != submission:
            continue
        if entry.event.kind == "proposed":
            found = LastProposal(at=entry.time, files=entry.get("files"), state="waits")
        elif entry.event.kind == "declined" and found is not None:
            found = replace(found, at=entry.time, state="declined", why=str(entry.get("why")))
        elif entry.event.kind in ("amended", "updated"):
            found = None
    return found


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
