"""Signed values that leave the server and come back: in addresses, forms and cookies.

Pages that ask one person after the other set no cookie: inside a platform's frame it would not come
back. A token stands in the address and in every form, is signed with the owner's own key, and ends
on a day.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import msgspec
from itsdangerous import BadData, URLSafeSerializer

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999_999)]
_LONGEST = 2_000
Kind = TypeVar("Kind", bound=msgspec.Struct)


class TokenError(Exception):
    """A token is not signed here, not of this kind, or altered; one error for every cause.

    Attributes:
        status: of the answer: 403, or 410 of a token that was signed here, and is over.
    """

    def __init__(self, *, old: bool = False) -> None:
        super().__init__()
        self.status = 410 if old else 403


def sign_value(value: msgspec.Struct | str, *, key: bytes, purpose: str) -> str:
    """The value as text for an address or a form.

    Args:
        value: what is signed; its fields can be read by whoever has the text.
        key: the secret.
        purpose: part of what is signed: a value of one purpose is never taken for another's.
    """
    return str(_serializer(key, purpose).dumps(msgspec.to_builtins(value)))


def read_value(text: str, kind: type[Kind], *, key: bytes, purpose: str) -> Kind:
    """The value that was signed.

    Args:
        text: what came back, of any length.
        kind: of the value.
        key: the secret.
        purpose: as when it was signed.

    Raises:
        TokenError: it was not signed with this key for this purpose as such a value.
    """
    if len(text) > _LONGEST or not text.isascii():
        raise TokenError
    try:
        return msgspec.convert(_serializer(key, purpose).loads(text), kind)
    except (BadData, msgspec.ValidationError) as error:
        raise TokenError from error


def _serializer(key: bytes, purpose: str) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=f"heldout.web.{purpose}")


class _SignedPass(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True
):
    """Whose pages, and until when."""

    owner: str
    expires: _Seconds


class Stamp(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a form knew when it was shown.

    Attributes:
        owner: whose it is.
        item: what was asked.
        shown_ms: when the page left the server, milliseconds since 1970 in UTC.
        replaces: revision of the answer that stood then; 0 where there was none.
    """

    owner: str
    item: str
    shown_ms: _Milliseconds
    replaces: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def shown_at(self) -> datetime:
        """When the page left the server, UTC."""
        return datetime.fromtimestamp(self.shown_ms / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSigner:
    """Signs and reads the tokens of somebody's pages, and the stamps of their forms.

    Attributes:
        key: the secret.
        pages: which; part of what is signed.
    """

    key: bytes
    pages: str

    def sign_owner(self, owner: str, *, expires: datetime) -> str:
        """The token of somebody's pages; it opens nothing from that time on."""
        value = _SignedPass(owner=owner, expires=int(expires.timestamp()))
        return sign_value(value, key=self.key, purpose=f"{self.pages}.owner")

    def read_owner(self, token: str, *, now: datetime) -> str:
        """Return whose pages a token opens.

        Raises:
            TokenError: it was not signed with this key as such a token, or is over.
        """
        found = read_value(token, _SignedPass, key=self.key, purpose=f"{self.pages}.owner")
        if now.timestamp() >= found.expires:
            raise TokenError(old=True)
        return found.owner

    def sign_stamp(self, stamp: Stamp) -> str:
        """The stamp as a field of a form."""
        return sign_value(stamp, key=self.key, purpose=f"{self.pages}.stamp")

    def read_stamp(self, text: str) -> Stamp:
        """The stamp that a form sent back.

        Raises:
            TokenError: it was not signed with this key as a stamp.
        """
        return read_value(text, Stamp, key=self.key, purpose=f"{self.pages}.stamp")
