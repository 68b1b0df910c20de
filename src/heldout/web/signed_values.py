"""Values that leave the server and come back: signed, so that nobody can change or make one."""

from typing import TypeVar

import msgspec
from itsdangerous import BadData, URLSafeSerializer

__all__ = ["BadTokenError", "OldTokenError", "read_value", "sign_value"]

_LONGEST = 2_000
Kind = TypeVar("Kind", bound=msgspec.Struct)


class BadTokenError(Exception):
    """Not signed here, not of this kind, or altered; one error for every cause."""


class OldTokenError(Exception):
    """Signed here, and over."""


def sign_value(value: msgspec.Struct, *, key: bytes, purpose: str) -> str:
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
        BadTokenError: it was not signed with this key for this purpose as such a value.
    """
    if len(text) > _LONGEST or not text.isascii():
        raise BadTokenError
    try:
        return msgspec.convert(_serializer(key, purpose).loads(text), kind)
    except (BadData, msgspec.ValidationError) as error:
        raise BadTokenError from error


def _serializer(key: bytes, purpose: str) -> URLSafeSerializer:
    return URLSafeSerializer(key, salt=f"heldout.web.{purpose}")
