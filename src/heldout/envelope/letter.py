"""A few words for the organisers alone: sealed under a key of their own, in the board's form."""

from collections.abc import Sequence
from dataclasses import dataclass

from heldout.envelope import age, openssl
from heldout.envelope.bundle import open_key, open_metadata, seal_key, seal_metadata
from heldout.envelope.sealed import Form

__all__ = ["Letter", "open_letter", "seal_letter"]

_LIMIT = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Sealed words.

    Attributes:
        key: the letter's own secret, sealed for every organiser.
        words: sealed under that secret.
    """

    key: bytes
    words: bytes


def seal_letter(form: Form, words: bytes, recipients: Sequence[str]) -> Letter:
    """Seal words for the organisers; two calls never give equal bytes.

    Raises:
        SetupError: the recipients are missing, malformed or too many.
    """
    key = {"age": age, "openssl": openssl}[form].new_key()
    return Letter(key=seal_key(form, key, recipients), words=seal_metadata(form, words, key=key))


def open_letter(form: Form, letter: Letter, identities: Sequence[str]) -> bytes:
    """The words of a letter, at most 16 KiB.

    Raises:
        TrustError: none of the identities opens it, or it is damaged or too long.
        SetupError: an identity is malformed.
    """
    key = open_key(form, letter.key, identities)
    return open_metadata(form, letter.words, key=key, limit=_LIMIT)
