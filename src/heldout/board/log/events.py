"""The event log: append-only, each event holding the hash of the one before.

One chain, two readers. An event's hashed bytes hold public fields in the clear and private ones
as salted digests (`sealed`). The vault's line adds every value and salt (`opened`); the public
line of the same event adds only those that may be known today. So `events.jsonl` and `log.jsonl`
carry the same hashes, and a value that is revealed later can be checked against its old digest.

Hashes are taken of the event's bytes as written, never of a re-serialisation. The events
`opened-board` and `rekeyed` name the signers. From the first of them on, each event has a signature
of its hash by one who was a signer before it: so a signer is let in, or dropped, by a signer. The
hash fixes the event's number and, by the hash of the event before, all that came before it: a
signature counts for no other event, and for no other board. It stands beside the event and is no
part of the chain, so what is sealed can be opened later without a new one.

Source: RFC 8032 (Ed25519); the message begins with its purpose, so that it passes for no other.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from secrets import token_hex
from typing import Annotated, Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from heldout.errors import StoreError, quote
from heldout.ids import SALT, Digest, seal_digest

Hex64 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]

Hex128 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{128}\Z")]

LONGEST_SIGNER = 64
"""Most characters of a signer's name."""

Signers = Mapping[str, str]
"""Name -> public key; empty while events are not signed."""

SIGNER_KINDS = ("opened-board", "rekeyed")
"""The kinds of events that can name signers."""

_PURPOSE = b"heldout event\n"

_REMEMBERED = 1 << 16
_Named = Annotated[dict[str, Hex64], msgspec.Meta(min_length=1)]


class EventSignature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signature of an event.

    Attributes:
        key: the signer's public key.
        value: of `event_message`.
    """

    key: Hex64
    value: Hex128


def event_message(digest: str) -> bytes:
    """The bytes that are signed for an event.

    Args:
        digest: the event's hash.
    """
    return _PURPOSE + digest.encode()


def verify(key: str, message: bytes, signature: str) -> bool:
    """Check whether a signature of a message was made with the private half of a public key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
            bytes.fromhex(signature), message
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def signers_after(before: Signers, kind: str, public: Mapping[str, Any]) -> Signers:
    """Return who may sign after an event.

    Args:
        before: who could before it.
        kind: of the event.
        public: its public fields.

    Raises:
        ValueError: it names no signers, one twice, or what is no name or no key.
    """
    if kind not in SIGNER_KINDS or "signers" not in public:
        return before
    try:
        named = msgspec.convert(public["signers"], _Named)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if len(set(named.values())) < len(named):
        raise ValueError("two signers have one key")
    for name in named:
        if not 0 < len(name) <= LONGEST_SIGNER or not name.isprintable():
            raise ValueError(f"a signer's name is 1 to {LONGEST_SIGNER} printable characters")
    return named


def find_unsigned(digest: str, signature: EventSignature | None, signers: Signers) -> str:
    """Return what is wrong with an event's signature, "" where nothing is.

    Args:
        digest: the event's hash.
        signature: beside the event, `None` where it has none.
        signers: who could sign it: those before it, or those that it names where there were none.
    """
    if signature is None:
        return "the event is not signed, though the board's events are" if signers else ""
    if not signers:
        return "the event is signed, though the board names no signers"
    if signature.key not in signers.values():
        return f"signed with the key {signature.key[:16]}…, which is no signer's"
    if not _is_signed(signature.key, digest, signature.value):
        return f"the signature is not of this event by {name_of_key(signature.key, signers)}"
    return ""


def name_of_key(key: str, signers: Signers) -> str | None:
    """Return which signer's a public key is, `None` for none of them."""
    return next((name for name, known in signers.items() if known == key), None)


@lru_cache(maxsize=_REMEMBERED)
def _is_signed(key: str, digest: str, value: str) -> bool:
    """Each command reads several copies of one log: the same signature is verified once."""
    return verify(key, event_message(digest), value)


GENESIS = Digest("0" * 64)
"""What the first event names as its predecessor."""

SCHEMA = 2
"""The version of an event that is written now.

1: a sealed digest is of the salt's bytes followed by the value. 2: of both after their lengths.
"""

KINDS = frozenset(
    """
    opened-board changed-rules baseline received reviewed ran score-shown asked updated proposed
    amended declined withdrawn rejected published corrected extended imported-board imported rekeyed
    measured named-finalists opened-final ended-season closed-board changed-agreement registered
    revoked-registration
    """.split()  # noqa: SIM905 - a table of words reads as one
)
"""Every kind of event; `event_fields.EVENTS` has what each says."""


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is hashed. Field order is part of the format.

    Attributes:
        seq: 0 for the first event, then one more each.
        at: UTC time, to the second, `2026-11-20T17:10:00Z`; never before the event before.
        kind: one of `KINDS`.
        by: the organiser who acted, as they call themselves.
        submission: the submission it is about, or `None`.
        public: fields that anybody may read at once.
        sealed: field -> salted digest of its canonical JSON.
        prev: hash of the event before, `GENESIS` for the first.
        schema: version of this format.
    """

    seq: int
    at: str
    kind: str
    by: str
    submission: str | None
    public: dict[str, Any]
    sealed: dict[str, str]
    prev: str
    schema: int = SCHEMA


class Opening(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sealed field's value and the salt that its digest was made with."""

    value: Any
    salt: str


class _Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    event: msgspec.Raw
    hash: str
    signature: EventSignature | msgspec.UnsetType = msgspec.UNSET
    opened: dict[str, Opening]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a log: the event, its hash, the bytes that were hashed, what is opened.

    `signature` is `None` where the board names no signers.
    """

    event: Event
    hash: Digest
    raw: bytes
    opened: Mapping[str, Opening]
    signature: EventSignature | None = None

    @property
    def time(self) -> datetime:
        """When it happened, in UTC."""
        return parse_time(self.event.at)

    def get(self, field: str) -> Any:
        """A field's value, public or opened; `None` where it is absent or still sealed."""
        if field in self.event.public:
            return self.event.public[field]
        opening = self.opened.get(field)
        return None if opening is None else opening.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An event before it has a place in the chain."""

    kind: str
    by: str
    submission: str | None = None
    public: Mapping[str, Any]
    sealed: Mapping[str, Any]


def format_time(moment: datetime) -> str:
    """UTC to the second, `2026-11-20T17:10:00Z`."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


@lru_cache(maxsize=1 << 10)  # the steps of a fold ask for the same
def parse_time(text: str) -> datetime:
    """The inverse of `format_time`; raises ValueError for anything else."""
    moment = datetime.fromisoformat(text)
    if format_time(moment) != text:
        raise ValueError(text)
    return moment


def new_salt() -> str:
    """Draw a salt: 16 random bytes as hexadecimal."""
    return token_hex(16)


def link(
    draft: Draft,
    last: Entry | None,
    *,
    at: datetime,
    new_salt: Callable[[], str] = new_salt,
    sign: Callable[[Digest], EventSignature] | None = None,
) -> Entry:
    """Put a draft behind the last event of a chain.

    Args:
        draft: what happened; its kind must be in `KINDS`.
        last: the last entry, or `None` to begin a chain.
        at: the time; must not lie before the last event.
        new_salt: gives 16 random bytes as hexadecimal at each call.
        sign: makes the signature of the event's hash, where the board names signers.

    Raises:
        StoreError: the clock went backwards.
    """
    if draft.kind not in KINDS:
        raise ValueError(draft.kind)
    check_clock(last, at)
    opened = {name: Opening(value=v, salt=new_salt()) for name, v in draft.sealed.items()}
    event = Event(
        seq=0 if last is None else last.event.seq + 1,
        at=format_time(at),
        kind=draft.kind,
        by=draft.by,
        submission=draft.submission,
        public=dict(draft.public),
        sealed={name: _seal(opening) for name, opening in opened.items()},
        prev=GENESIS if last is None else last.hash,
    )
    raw = msgspec.json.encode(event)
    digest = _hash(raw)
    signature = None if sign is None else sign(digest)
    return Entry(event=event, hash=digest, raw=raw, opened=opened, signature=signature)


def check_clock(last: Entry | None, at: datetime) -> None:
    """Refuse to go on where no event could be dated.

    Args:
        last: the last entry, or `None` before there is any.
        at: what the clock says.

    Raises:
        StoreError: the clock went backwards.
    """
    if last is not None and format_time(at) < last.event.at:
        raise StoreError(
            f"the clock says {format_time(at)}, but the last event is of {last.event.at}; "
            "set the clock, events are never dated before others"
        )


def redact(entry: Entry, fields: Iterable[str]) -> Entry:
    """The same entry with only the given sealed fields opened."""
    wanted = set(fields)
    opened = {name: value for name, value in entry.opened.items() if name in wanted}
    return replace(entry, opened=opened)


def format_entry(entry: Entry) -> bytes:
    """One line of a log, newline included."""
    line = _Line(
        event=msgspec.Raw(entry.raw),
        hash=entry.hash,
        signature=msgspec.UNSET if entry.signature is None else entry.signature,
        opened=dict(entry.opened),
    )
    return msgspec.json.encode(line, order="deterministic") + b"\n"


def parse_log(data: bytes, *, path: str) -> tuple[Entry, ...]:
    """Read a log and verify all of it: hashes, links, times, openings, signatures, every byte.

    Args:
        data: whole lines; an unfinished last line is the caller's to cut.
        path: name for errors.

    Raises:
        StoreError: with the line that breaks the chain.
    """
    chain = Chain()
    return tuple(chain.take(line, where=f"{path}:{n}") for n, line in enumerate(_lines(data), 1))


@lru_cache(maxsize=4)
def parse_again(data: bytes, *, path: str) -> tuple[Entry, ...]:
    """Read a log as `parse_log`: every step of a command asks for the same bytes.

    Raises:
        StoreError: with the line that breaks the chain.
    """
    return parse_log(data, path=path)


def _lines(data: bytes) -> Iterator[bytes]:
    """The lines without their ends, one at a time: all at once would be the log a second time."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end]
        start = end + 1


@dataclass(slots=True, kw_only=True)
class Chain:
    """How far a log was verified, and what the next line has to continue.

    Attributes:
        count: events so far.
        hash: of the last one, `GENESIS` before the first.
        at: its time; "" before the first.
        signers: who may sign the next one; empty where events are not signed.
    """

    count: int = 0
    hash: Digest = GENESIS
    at: str = ""
    signers: dict[str, str] = field(default_factory=dict)

    def take(self, line: bytes, *, where: str) -> Entry:
        """Verify one more line, without its newline: every byte of it.

        Raises:
            StoreError: it breaks the chain; `place` is named.
        """
        entry = _parse_line(line, where=where)
        _check_link(entry, self, where=where)
        self.signers = dict(_check_signed(entry, self.signers, where=where))
        self.count += 1
        self.hash, self.at = entry.hash, entry.event.at
        return entry


def read_verified(line: bytes) -> Entry:
    """An entry of a line that was verified before."""
    parsed = msgspec.json.decode(line, type=_Line)
    raw = bytes(parsed.event)
    signature = None if isinstance(parsed.signature, msgspec.UnsetType) else parsed.signature
    return Entry(
        event=msgspec.json.decode(raw, type=Event),
        hash=Digest(parsed.hash),
        raw=raw,
        opened=parsed.opened,
        signature=signature,
    )


def signers_of(entries: Sequence[Entry]) -> Signers:
    """Return who may sign the next event of a verified log; empty without signatures."""
    events = (entry.event for entry in reversed(entries))
    named = (
        signers_after({}, event.kind, event.public)
        for event in events
        if event.kind in SIGNER_KINDS and "signers" in event.public
    )
    return next(named, {})


def _parse_line(line: bytes, *, where: str) -> Entry:
    try:
        parsed = msgspec.json.decode(line, type=_Line)
        raw = bytes(parsed.event)
        event = msgspec.json.decode(raw, type=Event)
        parse_time(event.at)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise StoreError(f"{where}: not an event ({error})") from None
    if event.schema != SCHEMA or event.kind not in KINDS:
        raise StoreError(f"{where}: event '{event.kind}' of schema {event.schema} is unknown here")
    signature = None if isinstance(parsed.signature, msgspec.UnsetType) else parsed.signature
    entry = Entry(
        event=event,
        hash=Digest(parsed.hash),
        raw=raw,
        opened=parsed.opened,
        signature=signature,
    )
    if line.endswith(b"\r"):
        raise StoreError(
            f"{where}: Windows line ends, so git changed the files of this clone; make another: "
            "git clone -c core.autocrlf=false"
        )
    if format_entry(entry) != line + b"\n":
        raise StoreError(f"{where}: not written as heldout writes it")
    return entry


def _check_link(entry: Entry, before: Chain, *, where: str) -> None:
    if _hash(entry.raw) != entry.hash:
        raise StoreError(f"{where}: the event was changed, its hash does not match")
    if entry.event.prev != before.hash:
        raise StoreError(f"{where}: the chain is broken, an event is missing, added or moved")
    if entry.event.seq != before.count:
        raise StoreError(f"{where}: event number {entry.event.seq}, expected {before.count}")
    if entry.event.at < before.at:
        raise StoreError(f"{where}: dated before the event above it")
    for name, opening in entry.opened.items():
        right = SALT.fullmatch(opening.salt) and _seal(opening)
        if not right or entry.event.sealed.get(name) != right:
            raise StoreError(f"{where}: field '{name}' does not match its sealed digest")


def _check_signed(entry: Entry, before: Signers, *, where: str) -> Signers:
    """Refuse an event without the signature of a signer; gives who may sign the next one."""
    event = entry.event
    try:
        after = signers_after(before, event.kind, event.public)
    except ValueError as error:
        raise StoreError(f"{where}: field 'signers': {quote(str(error))}") from None
    if fault := find_unsigned(entry.hash, entry.signature, before or after):
        raise StoreError(
            f"{where}: {fault}; nobody but the board's organisers logs events, so take this log "
            "for none of theirs (docs/explanation/trust.md, Signed events)"
        )
    return after


def _seal(opening: Opening) -> str:
    return seal_digest(opening.salt, msgspec.json.encode(opening.value, order="deterministic"))


def _hash(raw: bytes) -> Digest:
    return Digest(hashlib.sha256(raw).hexdigest())
