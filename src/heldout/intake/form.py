"""Files as they come in over HTTP: a form with files, and how slow a sender may be.

Each piece goes on to disk, and no file is held in memory. Nothing is opened: the server has no key.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

import anyio
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from heldout.errors import InputError

_MOST_PARTS = 8
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


class FileSink(Protocol):
    """What takes the files."""

    def begin_file(self, name: str) -> None:
        """Begin the next file."""
        ...

    def write(self, data: bytes) -> None:
        """Go on with it."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class UploadForm:
    """Reads `multipart/form-data` and hands its files on; fields without a file are skipped.

    Args:
        content_type: the request's.
        sink: gets the files of the field `files`.

    Raises:
        InputError: code `upload-form`: it is no such form.
    """

    def __init__(self, content_type: str, sink: FileSink) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise _no_form("no form with files")
        self._sink = sink
        self._names: list[bytes] = [b"", b""]
        self._disposition = b""
        self._takes = False
        self._parts = 0
        self.ended = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_begin": self._begin_header,
                    "on_header_field": self._collect(0),
                    "on_header_value": self._collect(1),
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._begin_content,
                    "on_part_data": self._content,
                    "on_end": self._end,
                },
            )
        except FormParserError:
            raise _no_form("a form without a boundary") from None

    def write(self, data: bytes) -> None:
        """Go on reading.

        Raises:
            InputError: code `upload-form`; and what the sink raises.
        """
        try:
            self._parser.write(data)
        except FormParserError:
            raise _no_form("a form that is broken") from None

    def finish(self) -> None:
        """Check that the form came to its end.

        Raises:
            InputError: code `upload-cut`.
        """
        if not self.ended:
            raise cut_off("a form without its end")

    def _begin_part(self) -> None:
        self._parts += 1
        self._disposition, self._takes = b"", False
        if self._parts > _MOST_PARTS:
            raise _no_form(f"over {_MOST_PARTS} fields")

    def _begin_header(self) -> None:
        self._names = [b"", b""]

    def _collect(self, part: int) -> Callable[[bytes, int, int], None]:
        def collect(data: bytes, start: int, end: int) -> None:
            self._names[part] += data[start:end]

        return collect

    def _end_header(self) -> None:
        name, value = self._names
        if name.strip().lower() == b"content-disposition":
            self._disposition = value

    def _begin_content(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"filename", b"").decode("utf-8", "replace")
        # A form sent without choosing a file has one without a name.
        self._takes = options.get(b"name") == _FIELD.encode() and bool(name)
        if self._takes:
            self._sink.begin_file(name)

    def _content(self, data: bytes, start: int, end: int) -> None:
        if self._takes:
            self._sink.write(data[start:end])

    def _end(self) -> None:
        self.ended = True


async def read_form(request: Request, sink: FileSink, pace: Pace, *, most: int) -> None:
    """Read a whole form.

    One that is refused is read to its end too: else a browser would show a broken connection and
    not the reason.

    Args:
        request: what comes.
        sink: gets the files.
        pace: how slow it may come.
        most: bytes.

    Raises:
        InputError: code `upload-form`, `upload-cut` or `upload-too-large`, and those of the sink.
        TimeoutError: it came too slowly.
    """
    refused: InputError | None = None
    form: UploadForm | None = None
    try:
        form = UploadForm(request.headers.get("content-type", ""), sink)
    except InputError as error:
        refused = error
    async for data in read_pieces(request, pace):
        most -= len(data)
        if most < 0:
            raise too_large("more than three files of the largest size", "less in one form")
        if refused is None and form is not None:
            try:
                await run_in_threadpool(form.write, data)
            except InputError as error:
                refused = error
                sink.close()
    if refused is not None:
        raise refused
    if form is not None:
        form.finish()


async def read_pieces(request: Request, pace: Pace) -> AsyncIterator[bytes]:
    """The body, as long as it goes on, and fast enough.

    Raises:
        TimeoutError: it does not.
    """
    stream = request.stream()
    begun, got = anyio.current_time(), 0
    while True:
        due = begun + pace.grace + got / pace.rate
        with anyio.fail_after(max(0.0, min(pace.silence, due - anyio.current_time()))):
            try:
                data = await anext(stream)
            except StopAsyncIteration:
                return
        if data:
            got += len(data)
            yield data


def read_length(request: Request, *, most: int) -> int | None:
    """What a request says of its length, `None` where it says nothing; before a byte is read.

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
    """What came, or is said to come, is too large."""
    return InputError.of("upload-too-large", "upload", found, expected)


def cut_off(found: str, *, hint: str = "nothing was stored: send it again") -> InputError:
    """An upload ended before its end."""
    return InputError.of("upload-cut", "upload", found, "all of the files", hint=hint)


def _no_form(found: str) -> InputError:
    return InputError.of(
        code="upload-form",
        path="upload",
        found=found,
        expected=f"multipart/form-data with up to three files in the field {_FIELD}",
        hint=f"curl -F {_FIELD}=@FILE -F {_FIELD}=@FILE -F {_FIELD}=@FILE URL",
    )
