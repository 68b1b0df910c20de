"""Who comes: what each platform adds to the link, read from an address or a form."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import quote

import msgspec

from heldout.judging.campaign.settings import Platform
from heldout.judging.database.sittings import Visitor
from heldout.judging.platforms.links import is_signed
from heldout.web.guard import OldTokenError, read_value, sign_value

# Where an assignment's pages are.


@dataclass(frozen=True, slots=True)
class Addresses:
    """The pages of one assignment.

    Attributes:
        token: of the assignment.
    """

    token: str

    def item(self, position: int) -> str:
        """The page of an item."""
        return f"{self._root}/item/{position}"

    def keep(self, position: int) -> str:
        """Where the wish for more time is sent."""
        return f"{self.item(position)}/keep"

    @property
    def exit(self) -> str:
        """The page that stops."""
        return f"{self._root}/exit"

    @property
    def done(self) -> str:
        """The page of the end."""
        return f"{self._root}/done"

    @property
    def _root(self) -> str:
        return f"/a/{quote(self.token, safe='')}"


# Signed tokens: who may open an assignment's pages, and when each of its forms was shown.
#
# There are no cookies: inside a platform's frame they would not come back. A token stands in the
# address and in every form, is signed with the database's own key, and ends on a day.

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


MTURK_HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
"""Where a form may be handed in; any other address came from somebody else."""

_PROLIFIC_ID = re.compile(r"[0-9a-f]{24}")
_PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
_PLACEHOLDER = "ID"
"""Stands in the link that the organiser reads, where each judge's own id belongs."""

_NAMES: Mapping[Platform, tuple[str, str, str, str]] = {
    "link": ("worker", "", "", ""),
    "mturk": ("workerId", "assignmentId", "hitId", "turkSubmitTo"),
    "prolific": ("PROLIFIC_PID", "SESSION_ID", "STUDY_ID", ""),
}
"""What each calls the worker, the sitting, the study, and where to hand in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Somebody at the landing page.

    Attributes:
        fields: what the platform said, by its own names.
        visitor: who it is; `None` where that was not said.
        preview: the platform only shows the task.
        unsigned: an id, or none, without the signature that it needs here.
    """

    fields: Mapping[str, str]
    visitor: Visitor | None
    preview: bool = False
    unsigned: bool = False


def read_visit(
    platform: Platform, values: Mapping[str, str], *, signed_with: bytes | None = None
) -> Visit:
    """Read who comes; anything else among the values is dropped, and what cannot be printed.

    Args:
        platform: of the campaign.
        values: of an address or a form.
        signed_with: the campaign's secret where only ids that it signed are let in.

    Returns:
        Without a visitor where the id cannot be one of the platform's, such as a placeholder that
        it did not fill in, or where a form is to be handed in to somebody else.
    """
    names = _NAMES[platform]
    given = {name: values.get(name, "").strip() for name in names if name}
    fields = {name: value for name, value in given.items() if value and value.isprintable()}
    if "turkSubmitTo" in fields:
        fields["turkSubmitTo"] = fields["turkSubmitTo"].removesuffix("/")
    worker, place, study, submit_to = (fields.get(name, "") for name in names)
    if platform == "mturk" and place == _PREVIEW:
        return Visit(fields=fields, visitor=None, preview=True)
    if signed_with is not None:
        signature = values.get("sig", "")
        fields["sig"] = signature
        if not is_signed(signed_with, worker, signature):
            return Visit(fields={}, visitor=None, unsigned=True)
    visitor = Visitor(
        worker=worker,
        place=place,
        study=study,
        submit_to=submit_to,
        signed=signed_with is not None,
    )
    return Visit(fields=fields, visitor=visitor if _is_known(platform, visitor) else None)


def _is_known(platform: Platform, visitor: Visitor) -> bool:
    if platform == "mturk":
        return bool(visitor.worker and visitor.place) and visitor.submit_to in MTURK_HOSTS
    if platform == "prolific":
        return _PROLIFIC_ID.fullmatch(visitor.worker) is not None
    return visitor.signed or visitor.worker not in ("", _PLACEHOLDER)
