"""What a team changed in its metadata, revision by revision."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from heldout.board.events import Entry

__all__ = ["Amendment", "list_amendments"]

_KINDS = frozenset({"reviewed", "updated", "withdrawn", "published"})


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
    fields = dict(entry.get("identity") or {})
    costs = fields.pop("efficiency", None) or {}
    fields |= {f"efficiency.{name}": value for name, value in costs.items()}
    for name in ("type", "embargo_until"):
        if name in entry.opened or name in entry.event.public:
            fields[name] = entry.get(name)
    return {name: _text(value) for name, value in fields.items()}


def _text(value: object) -> str:
    """As the metadata file has it, without quotes; "" for nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
