"""Upload of sealed files and registrations over HTTP: a form, and the same address for scripts.

The server stores files for `heldout inbox` and has no key to open them. It says what came; whether
it is a submission, the organiser's own machine finds out.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address, ip_network
from typing import Any, Protocol

import anyio
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from heldout.board.store.uploads import Delivery, UploadFolder, UploadReceipt
from heldout.errors import InputError, Problem
from heldout.web.forms import make_application
from heldout.web.pages import Study, render_template

# A form with files as it comes in: each piece goes on to disk, and no file is held in memory.

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
            raise _cut_off("a form without its end")

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


def _cut_off(found: str) -> InputError:
    return InputError.of(
        "upload-cut", "upload", found, "all of the files", hint="nothing was stored: send it again"
    )


def _no_form(found: str) -> InputError:
    return InputError.of(
        code="upload-form",
        path="upload",
        found=found,
        expected=f"multipart/form-data with up to three files in the field {_FIELD}",
        hint=f"curl -F {_FIELD}=@FILE -F {_FIELD}=@FILE -F {_FIELD}=@FILE URL",
    )


# The pages of the upload as values, and how they become HTML.


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPage:
    """The form.

    Attributes:
        study: of the window's title; whom to write to.
        action: where the form is sent.
        names: how the three files are called.
        most: of one file, in words.
        registers: registrations are taken too.
        problem: why an upload was not taken; `None` at first.
        title: the heading.
    """

    study: Study = field(default_factory=Study)
    action: str
    names: tuple[str, ...]
    most: str
    registers: bool = False
    problem: Problem | None = None
    title: str = "Send a sealed submission"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptPage:
    """What came.

    Attributes:
        study: of the window's title; whom to write to.
        receipt: what came.
        again: the page of the form.
    """

    study: Study = field(default_factory=Study)
    receipt: UploadReceipt
    again: str

    @property
    def title(self) -> str:
        """The heading."""
        if self.receipt.known:
            return "These files are here already"
        return f"Your {self.receipt.kind} is here"

    @property
    def received(self) -> str:
        """When, in words."""
        return f"{self.receipt.received:%d %B %Y, %H:%M:%S} UTC"


ADDRESS = "/upload"
"""Where files are sent."""

_STATUSES: Mapping[str, int] = {
    "upload-busy": 503,
    "upload-cut": 400,
    "upload-form": 400,
    "upload-full": 507,
    "upload-name": 422,
    "upload-set": 422,
    "upload-too-large": 413,
}
_RETRY_SECONDS = "120"
_OVERHEAD = 1 << 16
_LENGTH_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """An upload's page.

    Attributes:
        folder: where files go.
        clock: the time, UTC.
        study: of the window's title; whom to write to.
        silence: seconds without a byte after which an upload ends.
        longest: seconds after which it ends in any case.
        grace: seconds after which it has to have come at the least rate, from its beginning on.
        rate: bytes in a second, on average.
    """

    folder: UploadFolder
    clock: Callable[[], datetime]
    study: Study = field(default_factory=Study)
    silence: float = 60.0
    longest: float = 3600.0
    grace: float = 30.0
    rate: float = 1 << 14


def intake_routes(intake: Intake) -> APIRouter:
    """The form at `/upload`, and what it is sent to; JSON for those who accept nothing else."""
    router = APIRouter()

    @router.get(ADDRESS)
    def show() -> Response:
        return _answer_page(_form(intake))

    @router.post(ADDRESS)
    async def take(request: Request) -> Response:
        as_json = "application/json" in request.headers.get("accept", "")
        try:
            receipt = await _take(intake, request)
        except InputError as error:
            return _refuse(intake, error.problems[0], as_json=as_json)
        if as_json:
            return JSONResponse(_receipt_value(receipt), status_code=200 if receipt.known else 201)
        page = ReceiptPage(study=intake.study, receipt=receipt, again=ADDRESS)
        return _answer_page(page, status=200 if receipt.known else 201)

    return router


def make_upload_app(intake: Intake) -> FastAPI:
    """The upload alone, where no campaign is served."""
    return make_application(intake.study, [intake_routes(intake)])


async def _take(intake: Intake, request: Request) -> UploadReceipt:
    """Store what comes.

    Raises:
        InputError: it was not taken; what had come by then is gone again.
    """
    size = _check_length(request.headers.get("content-length", ""), intake.folder)
    manager = intake.folder.deliver(size=size, address=_address(request))
    delivery = await run_in_threadpool(manager.__enter__)
    try:
        with anyio.fail_after(intake.longest):
            await _read(delivery, request, intake)
        return await run_in_threadpool(delivery.finish, now=intake.clock())
    except (ClientDisconnect, TimeoutError):
        raise _cut_off("the connection broke or took too long") from None
    finally:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(manager.__exit__, None, None, None)


async def _read(delivery: Delivery, request: Request, intake: Intake) -> None:
    """Read the whole form.

    One that is refused is read to its end too: else a browser would show a broken connection and
    not the reason.
    """
    refused: InputError | None = None
    form: UploadForm | None = None
    most = _most_bytes(intake.folder)
    try:
        form = UploadForm(request.headers.get("content-type", ""), delivery)
    except InputError as error:
        refused = error
    async for data in _pieces(request, intake):
        most -= len(data)
        if most < 0:
            raise _too_large(intake.folder)
        if refused is None and form is not None:
            try:
                await run_in_threadpool(form.write, data)
            except InputError as error:
                refused = error
                delivery.close()
    if refused is not None:
        raise refused
    if form is not None:
        form.finish()


async def _pieces(request: Request, intake: Intake) -> AsyncIterator[bytes]:
    """The body, as long as it goes on, and fast enough: a slow sender keeps a place from others.

    Raises:
        TimeoutError: it does not.
    """
    stream = request.stream()
    begun, got = anyio.current_time(), 0
    while True:
        due = begun + intake.grace + got / intake.rate
        with anyio.fail_after(max(0.0, min(intake.silence, due - anyio.current_time()))):
            try:
                data = await anext(stream)
            except StopAsyncIteration:
                return
        if data:
            got += len(data)
            yield data


def _address(request: Request) -> str:
    """Whose places are counted together: an address, of IPv6 a network, "" for this machine.

    A server in front that was not named with --proxy calls from here for everybody.
    """
    host = "" if request.client is None else request.client.host
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if found.is_loopback:
        return ""
    return str(ip_network((found, 64 if found.version == 6 else 32), strict=False))  # noqa: PLR2004 - IPv6


def _check_length(said: str, folder: UploadFolder) -> int | None:
    """What it says of its length; refuse what is too long before a byte of it is read."""
    if not said.isascii() or not said.isdigit():
        return None
    digits = said.lstrip("0")
    if len(digits) > _LENGTH_DIGITS or int(digits or "0") > _most_bytes(folder):
        raise _too_large(folder)
    return int(digits or "0")


def _most_bytes(folder: UploadFolder) -> int:
    return len(folder.endings) * folder.limits.file_bytes + _OVERHEAD


def _too_large(folder: UploadFolder) -> InputError:
    return InputError.of(
        code="upload-too-large",
        path="upload",
        found="more than three files of the largest size",
        expected=f"at most {folder.limits.file_bytes:,} bytes each",
    )


def _form(intake: Intake, problem: Problem | None = None) -> UploadPage:
    return UploadPage(
        study=intake.study,
        action=ADDRESS,
        names=tuple(f"yyyymmdd-NAME{ending}" for ending in intake.folder.endings),
        most=_in_words(intake.folder.limits.file_bytes),
        registers=intake.folder.is_team is not None,
        problem=problem,
    )


def _refuse(intake: Intake, problem: Problem, *, as_json: bool) -> Response:
    status = _STATUSES.get(problem.code, 422)
    if as_json:
        shown = {name: getattr(problem, name) for name in ("code", "found", "expected", "hint")}
        answer: Response = JSONResponse({"problems": [shown]}, status_code=status)
    else:
        answer = _answer_page(_form(intake, problem), status=status)
    if problem.code == "upload-busy":
        answer.headers["Retry-After"] = _RETRY_SECONDS
    return answer


def _answer_page(page: UploadPage | ReceiptPage, *, status: int = 200) -> HTMLResponse:
    name = "upload.html" if isinstance(page, UploadPage) else "receipt.html"
    return HTMLResponse(render_template(name, page), status_code=status)


def _receipt_value(receipt: UploadReceipt) -> dict[str, Any]:
    return {
        receipt.kind: receipt.owner,
        "received": receipt.received.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "known": receipt.known,
        "files": [
            {"name": one.name, "bytes": one.size, "sha256": one.digest} for one in receipt.files
        ],
        "digest": receipt.digest,
    }


def _in_words(size: int) -> str:
    """`1 GiB`, `20 kB`."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):,.3g} {unit}"
    return f"{size:,} bytes"
