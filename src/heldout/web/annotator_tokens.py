"""Signed tokens of annotators: whose pages these are, and what a form knew when it was shown.

As for judges there are no cookies: the token stands in the address and in every form.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from heldout.web.signed_values import OldTokenError, read_value, sign_value

__all__ = ["AnnotatorSigner", "Shown"]

_Seconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999_999)]


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
        return sign_value(
            _Pass(annotator=annotator, expires=int(expires.timestamp())),
            key=self.key,
            purpose="annotating.annotator",
        )

    def read_annotator(self, token: str, *, now: datetime) -> str:
        """The annotator's name.

        Raises:
            BadTokenError: it was not signed with this key as such a token.
            OldTokenError: it is over.
        """
        found = read_value(token, _Pass, key=self.key, purpose="annotating.annotator")
        if now.timestamp() >= found.expires:
            raise OldTokenError
        return found.annotator

    def sign_shown(self, shown: Shown) -> str:
        """The stamp as a field of a form."""
        return sign_value(shown, key=self.key, purpose="annotating.shown")

    def read_shown(self, text: str) -> Shown:
        """The stamp that a form sent back.

        Raises:
            BadTokenError: it was not signed with this key as a stamp.
        """
        return read_value(text, Shown, key=self.key, purpose="annotating.shown")
