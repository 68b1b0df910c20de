"""Keys: the names, bindings and limits that both formats share, and signing keys.

Signing keys are Ed25519, a team's in its own clone, an organiser's in their own vault. Only what
needs the private key is here. Whoever verifies has the public one, in `board.log.signers`, so that
no page is ever made near a private key.

Source: RFC 8032, section 5.1.
"""

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from heldout.errors import StoreError
from heldout.ids import Digest, SubmissionId

Form = Literal["age", "openssl"]
"""`age`: authenticated, several organisers. `openssl`: byte-compatible with MS MARCO's scripts."""

Plaintext = Generator[bytes, None, None]
"""Decrypted pieces of any size; whole and sound only when it has ended by itself."""

METADATA_LIMIT = 1 << 20
"""Largest metadata file that is opened, bytes."""
RUN_LIMIT = 1 << 28
"""Largest run file as stored (compressed) that is opened unless the caller says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileNames:
    """Base names of the three files of one submission."""

    tar: str
    metadata: str
    key: str

    @property
    def all(self) -> tuple[str, str, str]:
        """All three: tar, metadata, key."""
        return (self.tar, self.metadata, self.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """A sealed submission.

    Attributes:
        names: what its files are called.
        files: base name to ciphertext; these three may be published.
        key: the submission's own secret as text; the participant keeps it to send a later
            revision of the metadata, and nobody else may see it.
    """

    names: FileNames
    files: Mapping[str, bytes]
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """An organiser's keys: `private` goes into the vault, `recipient` into the board."""

    private: str
    recipient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What the metadata says about the files that it came with.

    Attributes:
        submission_id: the submission that the metadata belongs to.
        revision: 1 for the first metadata file, greater for each later one.
        digests: name of each run to SHA-256 of its file as stored in the tarball.
    """

    submission_id: SubmissionId
    revision: int
    digests: Mapping[str, Digest]


def read_fully(source: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, fewer only at the end of the source."""
    parts: list[bytes] = []
    while size > 0 and (part := source.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


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
