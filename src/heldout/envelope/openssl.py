"""The `openssl` form: byte-compatible with the scripts of the MS MARCO boards.

- The submission's secret is what `openssl rand -base64 32` prints: 44 characters and a newline.
- It is sealed to the organiser's one RSA key with PKCS#1 v1.5, newline included.
- The other files are `openssl enc -aes-256-cbc -pbkdf2`: `Salted__`, 8 bytes of salt,
  AES-256-CBC with PKCS#7 padding; the key and IV are 48 bytes of PBKDF2-HMAC-SHA256 with
  10,000 iterations over the secret's first line without its newline.

There is no MAC. A changed file is refused only where the change breaks the padding, the tarball
or the bound digests; docs/reference/envelope.md says what this form cannot promise.

Source: Lin et al. 2022, §3.1 (4) and the packing scripts of the two boards.
"""

import base64
import hashlib
import os
import re
from collections.abc import Sequence
from typing import BinaryIO

from cryptography.hazmat.primitives import padding, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from heldout.envelope.keys import KeyPair, Plaintext, read_fully
from heldout.errors import SetupError, TrustError

_KEY_TEXT = re.compile(rb"[A-Za-z0-9+/]{43}=\n")
_MAGIC = b"Salted__"
_SALT_BYTES = 8
_ITERATIONS = 10_000
_CHUNK = 1 << 16
_RSA_BITS = 2048


def new_identity() -> KeyPair:
    """A fresh RSA-2048 key pair: PKCS#8 PEM and SubjectPublicKeyInfo PEM, as the boards have."""
    private = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return KeyPair(private=pem.decode("ascii"), recipient=_public_pem(private))


def recipient_of(private: str) -> str:
    """The public PEM of a private one.

    Raises:
        SetupError: not an unencrypted RSA private key in PEM.
    """
    return _public_pem(_private_key(private))


def short_recipient(recipient: str) -> str:
    """A name for an RSA key that a person can compare: the start of its file's SHA-256."""
    return f"rsa-{hashlib.sha256(recipient.strip().encode()).hexdigest()[:8]}…"


def new_key() -> bytes:
    """A submission's secret: 32 random bytes as base64 and a newline, 45 bytes."""
    return base64.b64encode(os.urandom(32)) + b"\n"


def seal_key(key: bytes, recipients: Sequence[str]) -> bytes:
    """The submission's secret under the organiser's RSA key.

    Raises:
        SetupError: not exactly one recipient, or not an RSA public key in PEM.
    """
    if len(recipients) != 1:
        raise SetupError(
            f"the openssl form has exactly one recipient, found {len(recipients)}; "
            "the age form has several"
        )
    try:
        public = serialization.load_pem_public_key(recipients[0].encode())
    except ValueError:
        raise SetupError("the board's public key is not PEM") from None
    if not isinstance(public, rsa.RSAPublicKey):
        raise SetupError("the openssl form needs an RSA public key")
    return public.encrypt(key, PKCS1v15())


def open_key(blob: bytes, identities: Sequence[str]) -> bytes:
    """The submission's secret.

    Args:
        blob: the bytes of `ID.key.bin.enc`.
        identities: the organiser's private keys in PEM, an older one too where it was replaced.

    Raises:
        TrustError: none opens it.
        SetupError: an organiser's own key is unreadable.
    """
    for private in [_private_key(text) for text in identities]:
        try:
            key = private.decrypt(blob, PKCS1v15())
        except ValueError:
            continue
        # Wrong padding is answered with random bytes (implicit rejection), hence the form check.
        if _KEY_TEXT.fullmatch(key):
            return key
    raise TrustError


def encrypt(plaintext: bytes, key: bytes) -> bytes:
    """As `openssl enc -aes-256-cbc -pbkdf2 -pass file:KEY` writes it, with a fresh salt.

    Raises:
        TrustError: the key is not a submission's secret.
    """
    salt = os.urandom(_SALT_BYTES)
    encryptor = _cipher(key, salt).encryptor()
    padder = padding.PKCS7(AES.block_size).padder()
    padded = padder.update(plaintext) + padder.finalize()
    return _MAGIC + salt + encryptor.update(padded) + encryptor.finalize()


def decrypt(source: BinaryIO, key: bytes) -> Plaintext:
    """Stream the plaintext of such a file.

    Nothing is authenticated: a chunk may be garbled. That the padding is right is known only
    when the iterator has ended by itself.

    Args:
        source: ciphertext, read once from where it stands to its end.
        key: the submission's secret.

    Raises:
        TrustError: in the course of the iteration, whatever is wrong with file or key.
    """
    head = read_fully(source, len(_MAGIC) + _SALT_BYTES)
    if len(head) != len(_MAGIC) + _SALT_BYTES or not head.startswith(_MAGIC):
        raise TrustError
    decryptor = _cipher(key, head[len(_MAGIC) :]).decryptor()
    unpadder = padding.PKCS7(AES.block_size).unpadder()
    while block := source.read(_CHUNK):
        yield unpadder.update(decryptor.update(block))
    try:
        tail = unpadder.update(decryptor.finalize()) + unpadder.finalize()
    except ValueError:
        raise TrustError from None
    yield tail


def _cipher(key: bytes, salt: bytes) -> Cipher[CBC]:
    if _KEY_TEXT.fullmatch(key) is None:
        raise TrustError
    derived = _derive(key.strip(), salt)
    return Cipher(AES(derived[:32]), CBC(derived[32:]))


def _derive(password: bytes, salt: bytes) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password, salt, _ITERATIONS, dklen=48)


def _private_key(text: str) -> rsa.RSAPrivateKey:
    try:
        private = serialization.load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError):
        # The text is secret, so the message does not quote it.
        raise SetupError("an organiser's private key is not unencrypted PEM") from None
    if not isinstance(private, rsa.RSAPrivateKey):
        raise SetupError("the openssl form needs an RSA private key")
    return private


def _public_pem(private: rsa.RSAPrivateKey) -> str:
    pem = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem.decode("ascii")
