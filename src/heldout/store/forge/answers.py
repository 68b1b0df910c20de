"""Answers of a forge: read up to a limit, decoded strictly, explained without the token."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from heldout.errors import quote
from heldout.store.forge.protocol import ForgeError

__all__ = ["BODY_LIMIT", "Answer", "decode", "explain"]

T = TypeVar("T")

BODY_LIMIT = 8 << 20
"""Most bytes of one answer that are read."""

_MEANINGS: Mapping[int, str] = {
    401: "the token is missing, wrong or expired (HELDOUT_FORGE_TOKEN)",
    403: "the token may not do this (HELDOUT_FORGE_TOKEN)",
    404: "no such project or request, or the token may not see it",
    405: "it cannot be merged as it is",
    406: "it cannot be merged as it is",
    409: "its head is not the commit that was read any more, or somebody else was faster",
    410: "it is gone",
    422: "the forge does not take this",
    451: "the forge may not show it",
}
_LINE = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One HTTP answer.

    Attributes:
        status: HTTP status.
        headers: names in lower case.
        body: its first bytes, at most `BODY_LIMIT`.
        whole: whether that is all of it.
        more: whether a `Link` header, or GitLab's `X-Next-Page`, names a next page; `None` where
            neither was sent.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    whole: bool
    more: bool | None

    @property
    def text(self) -> str:
        """The begin of the body, for looking at what it says."""
        return self.body[: 1 << 12].decode("utf-8", "replace")


def decode(answer: Answer, kind: type[T]) -> T:
    """The body as a value of the documented shape.

    Raises:
        ForgeError: it is too large, no JSON, or of another shape.
    """
    if not answer.whole:
        raise ForgeError(f"the forge's answer is over {BODY_LIMIT >> 20} MiB, or compressed")
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except msgspec.ValidationError as error:
        raise ForgeError(f"the forge answered another JSON than documented: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = quote(answer.headers.get("content-type", "nothing said"), limit=40)
        raise ForgeError(f"the forge answered no JSON (its type: {told})") from None


def explain(answer: Answer, *, token: str) -> str:
    """A refusal in words: what the status means here, and what the forge said.

    Args:
        answer: of a status that is no success.
        token: taken out of what the forge said, should it say it back.
    """
    meaning = _MEANINGS.get(answer.status, "")
    if answer.headers.get("location"):
        meaning = _tell_redirect(answer.headers["location"])
    said = _message(answer)
    said = said.replace(token, "…") if token else said
    told = f"status {answer.status}" + (f": {meaning}" if meaning else "")
    return f"{told}; it says {quote(said, limit=_LINE)}" if said else told


def _tell_redirect(location: str) -> str:
    try:
        host = urlsplit(location).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    where = f" to {quote(host, limit=60)}" if host else ""
    return f"it sends us elsewhere{where}, and no redirect is followed; mend the address"


def _message(answer: Answer) -> str:
    """The message in an error's JSON; GitHub and Forgejo have `message`, GitLab also `error`."""
    try:
        table = msgspec.json.decode(answer.body, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    said = table.get("message") or table.get("error") or ""
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()
