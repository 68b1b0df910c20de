"""Forms as they come in: short, in UTF-8, and of the fields that a page sent out."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal, cast, get_args
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

from heldout.preferences.judgments import By, Reason
from heldout.store.judging.sittings import Choice, Side

__all__ = ["Form", "MissingChoiceError", "read_choice", "read_form"]

_LONGEST = 64 << 10
_FIELDS = 50
_SIDES: Mapping[str, Side] = {"a": "left", "b": "right"}
_CLOCK_DIGITS = 12
_MILLISECOND = timedelta(milliseconds=1)


class MissingChoiceError(Exception):
    """A form came without what it is for.

    Attributes:
        what: nothing was chosen, or "can't judge" without a reason.
    """

    def __init__(self, what: Literal["choice", "reason"]) -> None:
        self.what: Literal["choice", "reason"] = what
        super().__init__(what)


async def read_form(request: Request) -> Mapping[str, str]:
    """The fields of a form; of a field that is there twice the last.

    Raises:
        HTTPException: 413 it is too long; 400 it has too many fields.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST:
            raise HTTPException(413)
    try:
        fields = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_FIELDS
        )
    except ValueError:
        raise HTTPException(400) from None
    return dict(fields)


Form = Annotated[Mapping[str, str], Depends(read_form)]
"""The fields of a form, as a route's argument."""


def read_choice(fields: Mapping[str, str], *, since: timedelta) -> Choice:
    """What was chosen.

    Args:
        fields: of the form.
        since: how long ago the page was shown: nobody looked at it for longer.

    Raises:
        MissingChoiceError: nothing was chosen, or no reason.
    """
    chosen = fields.get("choice")
    side = _SIDES.get(chosen or "")
    if side is None and chosen != "none":
        raise MissingChoiceError("choice")
    reason = fields.get("reason")
    if side is None and reason not in get_args(Reason):
        raise MissingChoiceError("reason")
    by = fields.get("by")
    return Choice(
        side=side,
        reason=None if side else cast("Reason", reason),
        by=cast("By", by) if by in get_args(By) else "form",
        active_ms=_active_ms(fields.get("active_ms", ""), since),
    )


def _active_ms(text: str, since: timedelta) -> int | None:
    """What the script counted, at most the time that has passed."""
    if not (text.isascii() and text.isdigit() and len(text) <= _CLOCK_DIGITS):
        return None
    return max(0, min(int(text), since // _MILLISECOND))
