"""Signed tokens of annotators: whose pages these are, and what a form knew when it was shown.

As for judges there are no cookies: the token stands in the address and in every form.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import msgspec
from itsdangerous import BadData, URLSafeSerializer

from heldout.web.tokens import BadTokenError, OldTokenError

__all__ = ["AnnotatorSigner", "Shown"]

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999_999)]
_LONGEST = 2_000
Kind = TypeVar("Kind", bound=msgspec.Struct)


class _Pass(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """Whose pages, and until when."""

    annotator: str
    expires: _Seconds


class Shown(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a form knew when it was shown.

    Attributes:
        annotator: whose it is.
        query: the question's.
        shown_ms: when the page left the server, milliseconds since 1970 in UTC.
        replaces: answers of the annotator to this question that stood then.
    """

    annotator: str
    query: str
    shown_ms: _Milliseconds
    replaces: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def shown_at(self) -> datetime:
        """When the page left the server, UTC."""
        return datetime.fromtimestamp(self.shown_ms / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorSigner:
    """Signs and reads tokens.

    Attributes:
        key: the folder's secret.
    """

    key: bytes

    def sign_annotator(self, annotator: str, *, expires: datetime) -> str:
        """The token of an annotator's pages."""
        return self._sign("annotator", _Pass(annotator=annotator, expires=int(expires.timestamp())))

    def read_annotator(self, token: str, *, now: datetime) -> str:
        """The annotator's name.

        Raises:
            BadTokenError: it was not signed with this key as such a token.
            OldTokenError: it is over.
        """
        found = self._read("annotator", token, _Pass)
        if now.timestamp() >= found.expires:
            raise OldTokenError
        return found.annotator

    def sign_shown(self, shown: Shown) -> str:
        """The stamp as a field of a form."""
        return self._sign("shown", shown)

    def read_shown(self, text: str) -> Shown:
        """The stamp that a form sent back.

        Raises:
            BadTokenError: it was not signed with this key as a stamp.
        """
        return self._read("shown", text, Shown)

    def _sign(self, purpose: str, value: msgspec.Struct) -> str:
        return str(self._serializer(purpose).dumps(msgspec.to_builtins(value)))

    def _read(self, purpose: str, text: str, kind: type[Kind]) -> Kind:
        if len(text) > _LONGEST or not text.isascii():
            raise BadTokenError
        try:
            return msgspec.convert(self._serializer(purpose).loads(text), kind)
        except (BadData, msgspec.ValidationError) as error:
            raise BadTokenError from error

    def _serializer(self, purpose: str) -> URLSafeSerializer:
        # The purpose is part of what is signed, so that a stamp is never taken for a token.
        return URLSafeSerializer(self.key, salt=f"heldout.web.annotating.{purpose}")
