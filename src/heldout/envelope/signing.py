"""Signing keys: Ed25519, a team's in its own clone, an organiser's in their own vault.

Only what needs the private key is here. Whoever verifies has the public one, in
`board.log.signers`, so that no page is ever made near a private key.

Source: RFC 8032, section 5.1.
"""

import re
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from heldout.errors import StoreError

__all__ = ["new_signing_key", "public_key", "sign"]

_KEY_TEXT = re.compile(rb"HELDOUT-(?:TEAM|ORGANISER)-KEY-1 ([0-9a-f]{64})\n")


def new_signing_key(whose: Literal["TEAM", "ORGANISER"] = "TEAM") -> bytes:
    """A fresh private key as a line of text, from the operating system's randomness."""
    secret = Ed25519PrivateKey.generate().private_bytes_raw().hex()
    return f"HELDOUT-{whose}-KEY-1 {secret}\n".encode("ascii")


def public_key(private: bytes) -> str:
    """The public half of a private key, 64 hexadecimal digits.

    Raises:
        StoreError: the text is no private key.
    """
    return _parse(private).public_key().public_bytes_raw().hex()


def sign(private: bytes, message: bytes) -> str:
    """The signature of a message, 128 hexadecimal digits.

    Raises:
        StoreError: the text is no private key.
    """
    return _parse(private).sign(message).hex()


def _parse(private: bytes) -> Ed25519PrivateKey:
    found = _KEY_TEXT.fullmatch(private)
    if found is None:
        # The text is secret, so the message does not quote it.
        raise StoreError(
            "a signing key is damaged (.heldout/team of a team, identities/ of an organiser); "
            "restore it from a backup"
        )
    return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(found[1].decode("ascii")))
