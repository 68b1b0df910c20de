"""Who may log events: the organisers' public keys in the log, and their signatures of its events.

The events `opened-board` and `rekeyed` name the signers. From the first of them on, each event has
a signature of one who was a signer before it: so a signer is let in, or dropped, by a signer. What
is signed is the event's hash, which fixes its number and, by the hash of the event before, all that
came before it: a signature counts for no other event, and for no other board. It stands beside the
event and is no part of the chain, so what is sealed can be opened later without a new one.

Source: RFC 8032 (Ed25519); the message begins with its purpose, so that it passes for no other.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = [
    "LONGEST_SIGNER",
    "SIGNER_KINDS",
    "Hex64",
    "Hex128",
    "Signature",
    "Signers",
    "event_message",
    "find_unsigned",
    "name_of_key",
    "signers_after",
    "verify",
]

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


class Signature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    """Whether a signature of a message was made with the private half of a public key."""
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(
            bytes.fromhex(signature), message
        )
    except (InvalidSignature, ValueError):
        return False
    return True


def signers_after(before: Signers, kind: str, public: Mapping[str, Any]) -> Signers:
    """Who may sign after an event.

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


def find_unsigned(digest: str, signature: Signature | None, signers: Signers) -> str:
    """What is wrong with an event's signature, "" where nothing is.

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
    """Which signer's a public key is, `None` for none of them."""
    return next((name for name, known in signers.items() if known == key), None)


@lru_cache(maxsize=_REMEMBERED)
def _is_signed(key: str, digest: str, value: str) -> bool:
    """Each command reads several copies of one log: the same signature is verified once."""
    return verify(key, event_message(digest), value)
