"""What a team signs, and what the log says of teams: registrations, agreements, signatures.

A registration's statement is public. It binds the team's key to this board, to the agreement's
text and to the private fields, of which it shows a salted digest alone. A submission's signature
travels inside the seal, around the metadata: seen in public, one key under two submissions would
tie an embargoed one to an open one.

Source: RFC 8032 (Ed25519); each message begins with its purpose, so that none passes for another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated

import msgspec

from heldout.board.log.events import Entry, Hex64, Hex128, parse_time, verify
from heldout.errors import InputError, StoreError, quote
from heldout.ids import Digest, commitment, digest_bytes

_PURPOSE = b"heldout registration\n"

_SUBMISSION_PURPOSE = b"heldout submission\n"

_HANDLE_DIGITS = 16
Hex32 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}\Z")]

LONGEST_NAME = 200
"""Most characters of a name in a registration."""


class Statement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a team signs to register; all of it is public.

    Attributes:
        board: hash of the board's first event, so that it counts nowhere else.
        key: the team's public key.
        agreement: SHA-256 of the agreement's text, "" where the board has none.
        at: when it was signed, by the team's clock, UTC; a later one replaces an earlier one.
        private: of `registrant_digest`.
        schema: version of this format.
    """

    board: Hex64
    key: Hex64
    agreement: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{64})?\Z")]
    at: str
    private: Hex64
    schema: int = 1


class Registrant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who registers: for the organisers alone.

    Attributes:
        team: the name that its submissions have.
        institution: of the team; may be "".
        contact: where to reach it; may be "".
        salt: 16 random bytes as hexadecimal, so that nobody can try names on the digest.
    """

    team: str
    institution: str
    contact: str
    salt: Hex32


class RegistrationFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that a team sends.

    Attributes:
        statement: the text of a `Statement`, byte for byte as it was signed.
        signature: of `registration_message(statement)`.
        key: the file's own secret, sealed for the organisers, base64.
        registrant: a `Registrant`, sealed under that secret, base64.
    """

    statement: str
    signature: Hex128
    key: bytes
    registrant: bytes


def team_handle(key: str) -> str:
    """Return what a team is called in public: a digest of its public key."""
    return f"team-{digest_bytes(bytes.fromhex(key))[:_HANDLE_DIGITS]}"


def registrant_digest(registrant: Registrant) -> Digest:
    """The salted digest by which a statement commits to who made it."""
    return commitment(registrant.salt, msgspec.json.encode(registrant, order="deterministic"))


def registration_message(statement: str) -> bytes:
    """The bytes that are signed for a registration."""
    return _PURPOSE + statement.encode()


def submission_message(
    board: str, submission: str, *, revision: int, agreement: str, metadata: str
) -> bytes:
    """The bytes that are signed for a submission.

    Args:
        board: hash of the board's first event.
        submission: its id.
        revision: of its metadata.
        agreement: what the team had agreed to, "" for nothing.
        metadata: SHA-256 of the metadata, which holds the digests of the runs.
    """
    parts = [board, submission, str(revision), agreement, metadata]
    return _SUBMISSION_PURPOSE + msgspec.json.encode(parts)


def parse_statement(text: str) -> Statement:
    """Read a statement's text.

    Raises:
        ValueError: it is none.
    """
    try:
        statement = msgspec.json.decode(text.encode(), type=Statement)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from None
    parse_time(statement.at)
    if statement.schema != 1:
        raise ValueError(f"schema {statement.schema}")
    return statement


def read_registration(data: bytes, *, path: str) -> tuple[RegistrationFile, Statement]:
    """Read a registration file as far as everybody can: what is sealed in it is left alone.

    Args:
        data: the file.
        path: where it lies; its name is that of the team, `team-0123456789abcdef.json`.

    Raises:
        InputError: it is none, its key did not sign it, or it is named after another team.
    """
    try:
        file = msgspec.json.decode(data, type=RegistrationFile)
        statement = parse_statement(file.statement)
    except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
        raise InputError.of("not-a-registration", quote(path)) from None
    if not verify(statement.key, registration_message(file.statement), file.signature):
        raise bad_signature(path, "a signature that is not of the key that it names")
    if path.rpartition("/")[2] != f"{team_handle(statement.key)}.json":
        raise bad_signature(path, f"a registration of {team_handle(statement.key)}")
    return file, statement


def bad_signature(path: str, found: str) -> InputError:
    """That a registration is not the team's own, for this board."""
    return InputError.of("bad-signature", quote(path), found)


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
class RegisteredTeam:
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


def fold_team(teams: Mapping[str, RegisteredTeam], entry: Entry) -> Mapping[str, RegisteredTeam]:
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
    signed = parse_time(statement.at)
    known = before or RegisteredTeam(
        handle=handle, key="", registered=entry.time, signed=signed, agreements=()
    )
    agreements = (*known.agreements, statement.agreement)
    team = replace(
        known, key=statement.key, signed=signed, agreements=agreements, registrant=registrant
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
