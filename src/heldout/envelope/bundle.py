"""A submission as three sealed files: what the rest of the package uses of the envelope.

Everything that can be wrong with a sealed submission is one `TrustError` with one text. Nothing
that was computed from a run file leaves `open_runs` before the whole container was verified:
decryption ended cleanly, every run came exactly once, the tarball ended, and the digests
are those in the metadata.

A message to the organisers alone is sealed under a key of its own, in the board's format.
"""

import contextlib
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Generic, Protocol, TypeVar

from heldout.envelope import age, keys, openssl
from heldout.envelope.archive import Member, pack_runs, read_members
from heldout.errors import InputError, Problem, TrustError
from heldout.ids import Digest, SubmissionId

T = TypeVar("T")

_BUFFER = 1 << 16
_PADDED = 1 << 12
"""Sealed JSON has a multiple of so many bytes; the limits of what is opened are multiples, too."""


class _Cipher(Protocol):
    """What each form's module provides."""

    def new_identity(self) -> keys.KeyPair: ...
    def recipient_of(self, private: str) -> str: ...
    def short_recipient(self, recipient: str) -> str: ...
    def new_key(self) -> bytes: ...
    def seal_key(self, key: bytes, recipients: Sequence[str]) -> bytes: ...
    def open_key(self, blob: bytes, identities: Sequence[str]) -> bytes: ...
    def encrypt(self, plaintext: bytes, key: bytes) -> bytes: ...
    def decrypt(self, source: BinaryIO, key: bytes) -> keys.Plaintext: ...


_CIPHERS: Mapping[keys.Form, _Cipher] = {"age": age, "openssl": openssl}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun(Generic[T]):
    """What came out of one run file of a verified submission.

    Attributes:
        member: its name in the tarball, `ID/RUN.suffix`.
        size: bytes as stored.
        digest: SHA-256 of the bytes as stored.
        value: what `consume` returned.
    """

    member: str
    size: int
    digest: Digest
    value: T


def file_names(form: keys.Form, submission_id: SubmissionId) -> keys.FileNames:
    """Return what the three files of a submission are called."""
    suffix, key = {"age": ("age", "key.age"), "openssl": ("enc", "key.bin.enc")}[form]
    return keys.FileNames(
        tar=f"{submission_id}.tar.{suffix}",
        metadata=f"{submission_id}-metadata.json.{suffix}",
        key=f"{submission_id}.{key}",
    )


def new_identity(form: keys.Form) -> keys.KeyPair:
    """A fresh key pair for an organiser, from the operating system's randomness."""
    return _CIPHERS[form].new_identity()


def recipient_of(form: keys.Form, private: str) -> str:
    """The public half of an organiser's private text.

    Raises:
        SetupError: the text is no private key of this form.
    """
    return _CIPHERS[form].recipient_of(private)


def short_recipient(form: keys.Form, recipient: str) -> str:
    """A recipient cut to what a person can compare: `age1q8f…` or `rsa-1b2c3d4e…`."""
    return _CIPHERS[form].short_recipient(recipient)


def seal(
    form: keys.Form,
    submission_id: SubmissionId,
    *,
    runs: Mapping[str, tuple[str, bytes]],
    metadata: bytes,
    recipients: Sequence[str],
    key: bytes | None = None,
) -> keys.Sealed:
    """Seal a submission under a key of its own; two calls never give equal bytes.

    Args:
        form: the board's form.
        submission_id: names the files and the folder in the tarball.
        runs: run's name to (suffix, run file's bytes, compressed as the board wants it).
        metadata: JSON; in the age form it must carry the id, the revision and the runs' digests.
            Blanks are added to it.
        recipients: the board's public keys; exactly one in the openssl form.
        key: that of the same submission where it is sealed again, else a fresh one is made.

    Raises:
        SetupError: the recipients are missing, malformed or too many.
        TrustError: the key is not a submission's key of this form.
    """
    cipher = _CIPHERS[form]
    names = file_names(form, submission_id)
    key = cipher.new_key() if key is None else key
    files = {
        names.tar: cipher.encrypt(pack_runs(submission_id, runs), key),
        names.metadata: seal_metadata(form, metadata, key=key),
        names.key: cipher.seal_key(key, recipients),
    }
    return keys.Sealed(names=names, files=files, key=key)


def seal_metadata(form: keys.Form, metadata: bytes, *, key: bytes) -> bytes:
    """Metadata under a submission's key, also a later revision under the key of the first.

    Blanks after the JSON fill up 4 KiB: the size of a sealed file is public, and would tell the
    length of the names in it.

    Raises:
        TrustError: the key is not a submission's key of this form.
    """
    size = -(-len(metadata) // _PADDED) * _PADDED
    return _CIPHERS[form].encrypt(metadata.ljust(size), key)


def seal_key(form: keys.Form, key: bytes, recipients: Sequence[str]) -> bytes:
    """A submission's key for other recipients, when a board's organisers change.

    Raises:
        SetupError: the recipients are missing, malformed or too many.
    """
    return _CIPHERS[form].seal_key(key, recipients)


def open_key(form: keys.Form, blob: bytes, identities: Sequence[str]) -> bytes:
    """A submission's key, from its key file and the organisers' private texts.

    Raises:
        TrustError: none of the identities opens it, or it holds anything but one key.
        SetupError: an identity is malformed.
    """
    return _CIPHERS[form].open_key(blob, identities)


def open_metadata(
    form: keys.Form, blob: bytes, *, key: bytes, limit: int = keys.METADATA_LIMIT
) -> bytes:
    """The metadata's bytes.

    Args:
        form: the board's form.
        blob: the bytes of the sealed metadata file.
        key: from the key file of the *first* submission of this id, so that a later revision
            is proven to come from the same sender.
        limit: most bytes of plaintext.

    Raises:
        TrustError: it does not open, or is larger than `limit`.
    """
    metadata = bytearray()
    with contextlib.closing(_CIPHERS[form].decrypt(io.BytesIO(blob), key)) as chunks:
        for chunk in chunks:
            metadata += chunk
            if len(metadata) > limit:
                raise TrustError
    return bytes(metadata)


def open_runs(
    form: keys.Form,
    source: BinaryIO,
    *,
    key: bytes,
    submission_id: SubmissionId,
    runs: Collection[str],
    binding: keys.Binding | None,
    consume: Callable[[str, BinaryIO], T],
    limit: int = keys.RUN_LIMIT,
) -> dict[str, OpenedRun[T]]:
    """Stream every run file through `consume`; return only when everything was verified.

    Args:
        form: the board's form.
        source: the sealed tarball, read once, in the age form from another thread.
        key: the submission's key.
        submission_id: the folder that the members must be in.
        runs: names of the runs, each of which must come exactly once: `SET`, `SET~2` and so on.
        binding: what the metadata says; required in the age form, and held against the files
            in the openssl form where there is one.
        consume: called once per run file with its name and a stream of its stored bytes,
            whose `name` is the member's. It need not read to the end. The bytes are not yet
            verified: it must have no effect but its return value.
        limit: largest run file as stored, bytes.

    Returns:
        Run to what `consume` returned, with the file's name, size and digest.

    Raises:
        TrustError: anything about the container is wrong. It takes precedence over InputError.
        InputError: the problems that `consume` raised, of all the run files together.
    """
    values: dict[str, T] = {}
    seen: dict[str, Member] = {}
    problems: list[Problem] = []
    with contextlib.closing(_CIPHERS[form].decrypt(source, key)) as plaintext:
        for member in read_members(plaintext, submission_id=submission_id, runs=runs, limit=limit):
            try:
                with io.BufferedReader(member, _BUFFER) as stream:
                    values[member.run] = consume(member.run, stream)
            except InputError as error:
                problems += error.problems
            member.finish()
            seen[member.run] = member
    digests = {run: member.digest for run, member in seen.items()}
    check_binding(form, binding, submission_id=submission_id, digests=digests)
    if problems:
        raise InputError(problems)
    return {
        run: OpenedRun(member=one.name, size=one.size, digest=one.digest, value=values[run])
        for run, one in seen.items()
    }


def check_binding(
    form: keys.Form,
    claimed: keys.Binding | None,
    *,
    submission_id: SubmissionId,
    digests: Mapping[str, Digest],
    newer_than: int = 0,
) -> None:
    """Hold what the metadata says against the files that it came with.

    Args:
        form: in the age form a binding is required; the openssl form has it where our own
            `pack` made the files, and MS MARCO's scripts wrote none.
        claimed: from the metadata; None where it says nothing.
        submission_id: the id that the files arrived under.
        digests: run to SHA-256 of the run file as stored, of every one that came.
        newer_than: the last accepted revision; 0 for a first submission.

    Raises:
        TrustError: another id, other files, or a revision that is not newer (a replay).
    """
    if claimed is None and form == "openssl":
        return
    if (
        claimed is None
        or claimed.submission_id != submission_id
        or claimed.revision <= newer_than
        or dict(claimed.digests) != dict(digests)
    ):
        raise TrustError


_LIMIT = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedMessage:
    """Sealed words.

    Attributes:
        key: the message's own secret, sealed for every organiser.
        words: sealed under that secret.
    """

    key: bytes
    words: bytes


def seal_message(form: keys.Form, words: bytes, recipients: Sequence[str]) -> SealedMessage:
    """Seal JSON for the organisers, with blanks added; two calls never give equal bytes.

    Raises:
        SetupError: the recipients are missing, malformed or too many.
    """
    key = _CIPHERS[form].new_key()
    return SealedMessage(
        key=seal_key(form, key, recipients), words=seal_metadata(form, words, key=key)
    )


def open_message(form: keys.Form, message: SealedMessage, identities: Sequence[str]) -> bytes:
    """The words of a message, at most 16 KiB.

    Raises:
        TrustError: none of the identities opens it, or it is damaged or too long.
        SetupError: an identity is malformed.
    """
    key = open_key(form, message.key, identities)
    return open_metadata(form, message.words, key=key, limit=_LIMIT)
