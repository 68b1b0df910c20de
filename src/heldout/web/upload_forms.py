"""A form with files as it comes in: each piece goes on to disk, and no file is held in memory."""

from collections.abc import Callable
from typing import Protocol

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from heldout.errors import InputError, Problem

__all__ = ["FileSink", "UploadForm"]

_MOST_PARTS = 8
_FIELD = "files"


class FileSink(Protocol):
    """What takes the files."""

    def begin_file(self, name: str) -> None:
        """Begin the next file."""
        ...

    def write(self, data: bytes) -> None:
        """Go on with it."""
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
            raise InputError(
                Problem(
                    code="upload-cut",
                    path="upload",
                    found="a form without its end",
                    expected="all of it",
                    hint="the connection broke; nothing was stored: send it again",
                )
            )

    def _begin_part(self) -> None:
        self._parts += 1
        self._disposition, self._takes = b"", False
        if self._parts > _MOST_PARTS:
            raise _no_form(f"over {_MOST_PARTS} fields")

    def _begin_header(self) -> None:
        self._names = [b"", b""]

    def _collect(self, place: int) -> Callable[[bytes, int, int], None]:
        def collect(data: bytes, start: int, end: int) -> None:
            self._names[place] += data[start:end]

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


def _no_form(found: str) -> InputError:
    return InputError(
        Problem(
            code="upload-form",
            path="upload",
            found=found,
            expected=f"multipart/form-data with up to three files in the field {_FIELD}",
            hint=f"curl -F {_FIELD}=@FILE -F {_FIELD}=@FILE -F {_FIELD}=@FILE URL",
        )
    )
