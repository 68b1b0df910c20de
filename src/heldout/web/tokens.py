"""Signed tokens: who may open an assignment's pages, and when each of its forms was shown.

There are no cookies: inside a platform's frame they would not come back. A token stands in the
address and in every form, is signed with the database's own key, and ends on a day.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from heldout.web.signed_values import OldTokenError, read_value, sign_value

__all__ = ["Signer", "Stamp"]

_Id = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999)]
_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=99_999_999_999_999)]


class _Pass(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What an assignment's token says: whose pages, and until when."""

    assignment: _Id
    expires: _Seconds


class Stamp(msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True):
    """What a form knew when it was shown.

    Attributes:
        assignment: its id.
        position: of the item, from 1.
        shown_ms: when the page left the server, milliseconds since 1970 in UTC.
        replaces: revision of the answer that stood then; 0 where there was none.
    """

    assignment: _Id
    position: Annotated[int, msgspec.Meta(ge=1)]
    shown_ms: _Milliseconds
    replaces: Annotated[int, msgspec.Meta(ge=0)]

    @property
    def shown_at(self) -> datetime:
        """When the page left the server, UTC."""
        return datetime.fromtimestamp(self.shown_ms / 1000, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs and reads tokens.

    Attributes:
        key: the campaign's secret.
    """

    key: bytes

    def sign_assignment(self, assignment: int, *, expires: datetime) -> str:
        """The token of an assignment's pages.

        Args:
            assignment: its id.
            expires: the token opens nothing from this time on.
        """
        seconds = int(expires.timestamp())
        return sign_value(
            _Pass(assignment=assignment, expires=seconds), key=self.key, purpose="assignment"
        )

    def read_assignment(self, token: str, *, now: datetime) -> int:
        """The assignment's id.

        Raises:
            BadTokenError: it was not signed with this key as such a token.
            OldTokenError: it is over.
        """
        found = read_value(token, _Pass, key=self.key, purpose="assignment")
        if now.timestamp() >= found.expires:
            raise OldTokenError
        return found.assignment

    def sign_stamp(self, stamp: Stamp) -> str:
        """The stamp as a field of a form."""
        return sign_value(stamp, key=self.key, purpose="stamp")

    def read_stamp(self, text: str) -> Stamp:
        """The stamp that a form sent back.

        Raises:
            BadTokenError: it was not signed with this key as a stamp.
        """
        return read_value(text, Stamp, key=self.key, purpose="stamp")
