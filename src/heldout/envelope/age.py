"""The `age` form: every file is a plain age v1 file that the `age` program opens.

A fresh X25519 identity per submission is the submission's secret. The run tarball and the
metadata are encrypted to it; the identity's text line is encrypted to the board's recipients.
An X25519 stanza holds an ephemeral share and a wrapped key and nothing of the recipient, so
the public key of a submission stays unknown: only who holds the identity can make another
file that opens under it.

Source: the age v1 specification (C2SP/age), sections on the header and X25519.
"""

import contextlib
import io
import os
import queue
import re
import threading
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyrage  # type: ignore[import-untyped]  # ships no types; used in this module only

from heldout.envelope.keys import KeyPair, Plaintext, read_fully
from heldout.errors import SetupError, TrustError

HEADER_LIMIT = 4096
"""Largest age header that is read, bytes: room for more than 30 organisers.

The parser below us takes quadratic time in the header's length (160 s for 160 kB).
"""
_KEY_TEXT = re.compile(rb"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}\n")
_KEY_FILE_LIMIT = HEADER_LIMIT + 512
_HEADER = re.compile(rb"age-encryption\.org/v1\n-> .*?\n--- [A-Za-z0-9+/]{43}\n", re.DOTALL)
_QUEUE_CHUNKS = 16


def new_identity() -> KeyPair:
    """A fresh X25519 key pair for an organiser."""
    identity = pyrage.x25519.Identity.generate()
    return KeyPair(private=f"{identity}\n", recipient=str(identity.to_public()))


def recipient_of(private: str) -> str:
    """The `age1...` recipient of an identity file's text.

    Raises:
        SetupError: the text holds no identity, more than one, or a malformed one.
    """
    identities = _organiser_identities([private])
    if len(identities) != 1:
        raise SetupError(f"one age identity expected in the identity file, found {len(identities)}")
    return str(identities[0].to_public())


def short_recipient(recipient: str) -> str:
    """The first characters of a recipient, for a person to compare."""
    return f"{recipient[:7]}…"


def new_key() -> bytes:
    """A submission's secret: the text line of a fresh identity."""
    return f"{pyrage.x25519.Identity.generate()}\n".encode("ascii")


def seal_key(key: bytes, recipients: Sequence[str]) -> bytes:
    """The submission's identity line as an age file to every organiser.

    Raises:
        SetupError: no recipient, too many, or one that is not `age1...`.
    """
    if not recipients:
        raise SetupError("the board names no recipient; `heldout board rekey` adds an organiser")
    sealed = _encrypt(key, [_recipient(text) for text in recipients])
    if _HEADER.match(sealed[:HEADER_LIMIT]) is None:
        raise SetupError(f"{len(recipients)} recipients are more than a sealed key can have")
    return sealed


def open_key(blob: bytes, identities: Sequence[str]) -> bytes:
    """The submission's identity line.

    Args:
        blob: the bytes of `ID.key.age`.
        identities: organisers' identity files as text; any one of them is enough.

    Raises:
        TrustError: none of the identities opens it, or it holds anything but one identity.
        SetupError: one of the organisers' own identities is malformed.
    """
    known = _organiser_identities(identities)
    if len(blob) > _KEY_FILE_LIMIT:
        raise TrustError
    with contextlib.closing(_decrypt(io.BytesIO(blob), known)) as chunks:
        key = b"".join(chunks)
    _submission_identity(key)
    return key


def encrypt(plaintext: bytes, key: bytes) -> bytes:
    """An age file to the submission's own, never published, recipient.

    Raises:
        TrustError: the key is not an identity line.
    """
    return _encrypt(plaintext, [_submission_identity(key).to_public()])


def decrypt(source: BinaryIO, key: bytes) -> Plaintext:
    """Stream the plaintext of an age file.

    Chunks are authentic when they come; that the file is whole is known only when the
    iterator has ended by itself. The source is read from another thread, which has ended
    when the iterator is closed or exhausted.

    Args:
        source: ciphertext, read once from where it stands to its end.
        key: the submission's identity line.

    Raises:
        TrustError: in the course of the iteration, whatever is wrong with file or key.
    """
    yield from _decrypt(source, [_submission_identity(key)])


@contextlib.contextmanager
def encrypting(target: BinaryIO, recipients: Sequence[str]) -> Iterator[BinaryIO]:
    """A stream whose plaintext becomes an age file to some people, whole when the block has ended.

    Args:
        target: where the ciphertext goes, from where it stands.
        recipients: at least one, each `age1...`.

    Raises:
        SetupError: no recipient, or one that is not `age1...`.
        OSError: the target cannot be written.
    """
    known = [_recipient(text) for text in recipients]
    if not known:
        raise SetupError("nobody to encrypt for: name a public key")
    inner, outer = os.pipe()
    aside = _Target(target)

    def run() -> None:
        # BaseException: a panic of the extension module is one.
        try:
            with os.fdopen(inner, "rb") as source:
                pyrage.encrypt_io(source, aside, known)
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            aside.failure = aside.failure or error

    thread = threading.Thread(target=run, name="age-encrypt", daemon=True)
    thread.start()
    try:
        with contextlib.suppress(BrokenPipeError), os.fdopen(outer, "wb") as plaintext:
            yield plaintext
    finally:
        thread.join()
    if aside.failure is not None:
        raise aside.failure


def decrypt_for(source: BinaryIO, identities: Sequence[str]) -> Plaintext:
    """Stream the plaintext of an age file that was encrypted for people.

    Args:
        source: ciphertext, read once from where it stands to its end.
        identities: identity files as text; any one of them is enough.

    Raises:
        TrustError: in the course of the iteration, whatever is wrong with file or key.
        SetupError: one of the identities is malformed.
    """
    yield from _decrypt(source, _organiser_identities(identities))


def is_age(head: bytes) -> bool:
    """Check whether a file that begins like this has the header of an age file, whole."""
    return _HEADER.match(head[:HEADER_LIMIT]) is not None


def _encrypt(plaintext: bytes, recipients: list[Any]) -> bytes:
    return bytes(pyrage.encrypt(plaintext, recipients))


def _decrypt(source: BinaryIO, identities: list[Any]) -> Plaintext:
    head = read_fully(source, HEADER_LIMIT)
    if not identities or _HEADER.match(head) is None:
        raise TrustError
    yield from _Pump(_Ciphertext(head, source), identities).chunks()


def _submission_identity(key: bytes) -> Any:
    if _KEY_TEXT.fullmatch(key) is None:
        raise TrustError
    try:
        return pyrage.x25519.Identity.from_str(key.decode("ascii").strip())
    except pyrage.IdentityError:
        raise TrustError from None


def _organiser_identities(texts: Sequence[str]) -> list[Any]:
    lines = [line.strip() for text in texts for line in text.splitlines()]
    try:
        return [
            pyrage.x25519.Identity.from_str(line)
            for line in lines
            if line and not line.startswith("#")
        ]
    except pyrage.IdentityError:
        # The text is secret, so the message does not quote it.
        raise SetupError("an organiser's age identity is malformed") from None


def _recipient(text: str) -> Any:
    try:
        return pyrage.x25519.Recipient.from_str(text.strip())
    except pyrage.RecipientError:
        raise SetupError(f"not an age recipient: {short_recipient(text)!r}") from None


class _Ciphertext:
    """The source for the decrypting thread; remembers why reading it failed."""

    def __init__(self, head: bytes, source: BinaryIO) -> None:
        self._head = io.BytesIO(head)
        self._source = source
        self.failure: Exception | None = None

    def read(self, size: int) -> bytes:
        try:
            return self._head.read(size) or self._source.read(size)
        except Exception as error:
            self.failure = error
            raise


class _Target:
    """Where the encrypting thread writes; remembers why that failed."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.failure: BaseException | None = None

    def write(self, data: bytes) -> int:
        try:
            return self._target.write(data)
        except Exception as error:
            self.failure = error
            raise

    def flush(self) -> None:
        self._target.flush()


class _Pump:
    """Decrypts in a thread and hands the plaintext over, a bounded number of chunks ahead."""

    def __init__(self, source: _Ciphertext, identities: list[Any]) -> None:
        self._source = source
        self._identities = identities
        self._queue: queue.Queue[bytes | None] = queue.Queue(_QUEUE_CHUNKS)
        self._abandoned = False
        self._clean = False

    def chunks(self) -> Plaintext:
        thread = threading.Thread(target=self._run, name="age-decrypt", daemon=True)
        thread.start()
        try:
            while (chunk := self._queue.get()) is not None:
                yield chunk
        finally:
            self._abandoned = True
            while thread.is_alive():
                # Makes room, so that a writer waiting on a full queue learns that it may stop.
                with contextlib.suppress(queue.Empty):
                    self._queue.get_nowait()
                thread.join(0.001)
        if self._source.failure is not None:
            raise self._source.failure
        if not self._clean:
            raise TrustError

    def _run(self) -> None:
        # BaseException: a panic of the extension module is one. Unclean is all we say of it.
        with contextlib.suppress(BaseException):
            pyrage.decrypt_io(self._source, self, self._identities)
            self._clean = True
        self._queue.put(None)

    def write(self, data: bytes) -> int:
        """Called by pyrage in the thread."""
        if self._abandoned:
            raise BrokenPipeError
        self._queue.put(data)
        return len(data)

    def flush(self) -> None:
        """Called by pyrage in the thread."""
