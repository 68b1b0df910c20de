"""Annotators' forms as they come in: of a field that is there many times all values."""

from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import Depends, Request
from starlette.exceptions import HTTPException

__all__ = ["Fields", "Sent", "last_value", "read_fields"]

_LONGEST = 256 << 10
_FIELDS = 5_000

Fields = Mapping[str, Sequence[str]]
"""Name -> all values."""


async def read_fields(request: Request) -> Fields:
    """The fields of a form, of each all values.

    Raises:
        HTTPException: 413 it is too long; 400 it has too many fields, or is no UTF-8.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST:
            raise HTTPException(413)
    try:
        return parse_qs(
            body.decode(), keep_blank_values=True, max_num_fields=_FIELDS, errors="strict"
        )
    except ValueError:
        raise HTTPException(400) from None


Sent = Annotated[Fields, Depends(read_fields)]
"""The fields of a form, as a route's argument."""


def last_value(fields: Fields, name: str) -> str:
    """The last value of a field; empty where it is not there."""
    return fields.get(name, ("",))[-1]
