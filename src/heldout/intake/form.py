"""Files as they come in over HTTP: a form with files, and how slow a sender may be.

Nothing is opened: the server has no key. Files of a form lie in `TMPDIR` until the form is whole.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import anyio
from fastapi import Request
from python_multipart.exceptions import FormParserError
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from heldout.errors import InputError

_MOST_FILES = 8
_MOST_FIELDS = 8
_MOST_FIELD = 1 << 16
_FIELD = "files"
_LENGTH_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How slow a sender may be: one who is slow on purpose keeps a slot from others.

    Attributes:
        silence: seconds without a byte after which an upload ends.
        longest: seconds after which it ends in any case.
        grace: seconds after which it has to have come at the least rate, from its beginning on.
        rate: bytes in a second, on average.
    """

    silence: float = 60.0
    longest: float = 3600.0
    grace: float = 30.0
    rate: float = 1 << 14


async def read_form(request: Request, pace: Pace, *, most: int) -> FormData:
    """Read a whole form; it is to be closed, which removes its files.

    One that is refused is read to its end too: else a browser would show a broken connection and
    not the reason.

    Args:
        request: what comes.
        pace: how slow it may come.
        most: bytes.

    Raises:
        InputError: code `upload-form` or `upload-too-large`.
        TimeoutError, ClientDisconnect: it came too slowly, or not to its end.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise _no_form("no form with files")

    async def read() -> AsyncGenerator[bytes, None]:
        left = most
        async for data in read_pieces(request, pace):
            left -= len(data)
            if left < 0:
                raise too_large("more than three files of the largest size", "less in a form")
            yield data

    pieces = read()
    parser = MultiPartParser(
        request.headers,
        pieces,
        max_files=_MOST_FILES,
        max_fields=_MOST_FIELDS,
        max_part_size=_MOST_FIELD,
    )
    try:
        return await parser.parse()
    except (MultiPartException, FormParserError) as error:
        async for _ in pieces:
            pass
        raise _no_form("a form that is broken, or has more fields") from error


def list_files(form: FormData) -> list[UploadFile]:
    """Return the files of a form; one sent without choosing a file has one without a name."""
    found = [one for one in form.getlist(_FIELD) if isinstance(one, UploadFile)]
    return [one for one in found if one.filename]


async def read_pieces(request: Request, pace: Pace) -> AsyncGenerator[bytes, None]:
    """Yield the body, as long as it goes on, and fast enough.

    Raises:
        TimeoutError: it does not.
    """
    stream = request.stream()
    begun, got = anyio.current_time(), 0
    while True:
        due = begun + min(pace.longest, pace.grace + got / pace.rate)
        with anyio.fail_after(max(0.0, min(pace.silence, due - anyio.current_time()))):
            try:
                data = await anext(stream)
            except StopAsyncIteration:
                return
        if data:
            got += len(data)
            yield data


def read_length(request: Request, *, most: int) -> int | None:
    """Return what a request says of its length, `None` for nothing; before a byte is read.

    Raises:
        InputError: code `upload-too-large`.
    """
    said = request.headers.get("content-length", "")
    if not said.isascii() or not said.isdigit():
        return None
    digits = said.lstrip("0")
    if len(digits) > _LENGTH_DIGITS or int(digits or "0") > most:
        raise too_large("more bytes than an upload may have", f"at most {most:,} bytes")
    return int(digits or "0")


def too_large(found: str, expected: str) -> InputError:
    """Make the error of what is too large."""
    return InputError.of("upload-too-large", "upload", found, expected)


def cut_off(found: str, *, hint: str = "nothing was stored: send it again") -> InputError:
    """Make the error of an upload that ended before its end."""
    return InputError.of("upload-cut", "upload", found, "all of the files", hint=hint)


def _no_form(found: str) -> InputError:
    return InputError.of("upload-form", "upload", found, field=_FIELD)
