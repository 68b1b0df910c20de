"""What the log says of registered teams and of the agreement: events folded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from heldout.board.log.events import Entry, parse_time
from heldout.board.log.registration import Registrant, parse_statement
from heldout.errors import StoreError

__all__ = ["Agreement", "Team", "agreements_since", "fold_team", "read_agreement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A text that teams agree to.

    Attributes:
        since: from when on it holds, UTC.
        path: the file that it was read from.
        digest: SHA-256 of its text.
        text: all of it.
    """

    since: datetime
    path: str
    digest: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Team:
    """A registered team.

    Attributes:
        handle: what it is called in public.
        key: its public key, 64 hexadecimal digits.
        registered: when the organisers took it in first, UTC.
        signed: when it signed last, by its own clock, UTC.
        agreements: what it agreed to, in order; "" for a registration without an agreement.
        registrant: who it is; `None` while sealed.
        revoked: when the organisers ended the registration, `None` while it stands.
        why: their reason.
    """

    handle: str
    key: str
    registered: datetime
    signed: datetime
    agreements: tuple[str, ...]
    registrant: Registrant | None = None
    revoked: datetime | None = None
    why: str = ""


def fold_team(teams: Mapping[str, Team], entry: Entry) -> Mapping[str, Team]:
    """The teams after an event `registered` or `revoked-registration` whose fields were checked.

    Raises:
        StoreError: the statement is none, or what is revoked never registered.
    """
    handle = entry.get("team")
    before = teams.get(handle)
    if entry.event.kind == "revoked-registration":
        if before is None:
            raise StoreError(f"event {entry.event.seq} revokes {handle}, which never registered")
        return {**teams, handle: replace(before, revoked=entry.time, why=entry.get("why"))}
    try:
        statement = parse_statement(entry.get("statement"))
    except ValueError:
        raise StoreError(f"event {entry.event.seq} holds no registration") from None
    sealed = entry.get("registrant")
    registrant = None if sealed is None else msgspec.convert(sealed, Registrant)
    agreed = () if before is None else before.agreements
    team = Team(
        handle=handle,
        key=statement.key,
        registered=entry.time if before is None else before.registered,
        signed=parse_time(statement.at),
        agreements=(*agreed, statement.agreement),
        registrant=registrant,
        revoked=None if before is None else before.revoked,
        why="" if before is None else before.why,
    )
    return {**teams, handle: team}


def read_agreement(entry: Entry) -> Agreement:
    """The agreement in an event `changed-agreement` whose fields were checked."""
    return Agreement(
        since=entry.time,
        path=entry.get("path"),
        digest=entry.get("sha256"),
        text=entry.get("text"),
    )


def agreements_since(agreements: Iterable[Agreement], moment: datetime) -> tuple[Agreement, ...]:
    """The agreement in force at a moment, and those after it, in order."""
    before = [agreement for agreement in agreements if agreement.since <= moment]
    after = [agreement for agreement in agreements if agreement.since > moment]
    return (*before[-1:], *after)
