"""Links and completion codes for workers from anywhere.

A link of one's own is signed for the worker's id, so that nobody comes in another's name.

A code of one's own proves that this very task was finished: it names the assignment, and nobody
without the campaign's key can make one up. Where everybody has the same code it can be passed on.
"""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from urllib.parse import urlencode

from heldout.preferences.settings import Platform

__all__ = ["is_signed", "personal_code", "personal_link", "read_code", "study_link"]

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Base 32 as Crockford writes it: no I, L, O, U, which are misread."""

_MISREAD = str.maketrans("OIL", "011")
_CHECK = 8
_LONGEST = 40
_SIGNED_BYTES = 16
_PARAMETERS: Mapping[Platform, str] = {
    "link": "?worker=ID",
    "mturk": "",
    "prolific": "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
    "&SESSION_ID={{%SESSION_ID%}}",
}
"""What is added to the link that a platform is given; Mechanical Turk adds it by itself."""


def study_link(root: str, code: str, platform: Platform) -> str:
    """The link that a platform is given.

    Args:
        root: where the pages are served, as `https://judging.example`.
        code: the campaign's.
        platform: where workers come from; `ID` and what stands in braces is put in by it.
    """
    return f"{root.rstrip('/')}/j/{code}{_PARAMETERS[platform]}"


def personal_link(root: str, code: str, *, key: bytes, worker: str) -> str:
    """The link of one worker, which nobody without the campaign's key can make for another id.

    Args:
        root: where the pages are served.
        code: the campaign's.
        key: the campaign's secret.
        worker: the id by which the worker is paid.
    """
    fields = {"worker": worker, "sig": _sign(key, worker)}
    return f"{root.rstrip('/')}/j/{code}?{urlencode(fields)}"


def is_signed(key: bytes, worker: str, signature: str) -> bool:
    """Whether a signature is that of a worker's own link."""
    return signature.isascii() and hmac.compare_digest(_sign(key, worker), signature)


def personal_code(key: bytes, assignment: int) -> str:
    """The completion code of one assignment, as `1F-7K3M-9QXZ`.

    Args:
        key: the campaign's secret.
        assignment: its id, from 0.
    """
    check = _check(key, assignment)
    return f"{_encode(assignment)}-{check[:4]}-{check[4:]}"


def read_code(key: bytes, text: str) -> int | None:
    """The assignment whose code this is; `None` where it is nobody's.

    Case, blanks and dashes make no difference, nor do O for 0, I and L for 1.
    """
    plain = re.sub(r"[\s\-]", "", text).upper().translate(_MISREAD)
    if not _CHECK < len(plain) <= _LONGEST or set(plain) - set(_ALPHABET):
        return None
    assignment = 0
    for letter in plain[:-_CHECK]:
        assignment = assignment * 32 + _ALPHABET.index(letter)
    fits = hmac.compare_digest(_check(key, assignment), plain[-_CHECK:])
    return assignment if fits else None


def _sign(key: bytes, worker: str) -> str:
    """128 bits, in 22 letters that an address can hold."""
    digest = hmac.new(key, b"heldout personal link\0" + worker.encode(), hashlib.sha256).digest()
    return urlsafe_b64encode(digest[:_SIGNED_BYTES]).rstrip(b"=").decode()


def _check(key: bytes, assignment: int) -> str:
    """Eight letters, 40 bits, that only who has the key can tell."""
    message = f"heldout completion code {assignment}".encode()
    digest = hmac.new(key, message, hashlib.sha256).digest()
    return _encode(int.from_bytes(digest[:5])).rjust(_CHECK, "0")


def _encode(number: int) -> str:
    letters = ""
    while number or not letters:
        number, place = divmod(number, 32)
        letters = _ALPHABET[place] + letters
    return letters
