"""The JSON API, version 1: standings, a team's submissions and quota, and uploads that go on.

Its OpenAPI document is at `/api/v1/openapi.json`. What is refused is answered as a problem
document (RFC 9457) with one of the project's error codes.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

import pydantic
from fastapi import Depends, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from heldout.errors import InputError, Problem, StoreError, quote
from heldout.ids import Digest
from heldout.intake import board, form, service
from heldout.intake.teams import Team
from heldout.intake.uploads import Upload, UploadFile, cancel_upload, get_upload
from heldout.web import forms, guard, health

PREFIX = "/api/v1"
"""Where it answers."""

_MOST_JSON = 1 << 16
_MOST_ROWS = 1000
_MOST_OFFSET = 1 << 40
_PROBLEM_TYPE = "application/problem+json"
_SHARED = "public, max-age=30"
"""Everybody may keep the standings for so many seconds."""


class _Model(pydantic.BaseModel):
    """A document of the API; what it does not know it refuses.

    pydantic remembers up to 16,384 texts of JSON documents, for those that come again. Names of
    files never do: a server would grow with every upload.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, cache_strings="keys")


class ProblemDocument(_Model):
    """Why something was not done (RFC 9457)."""

    title: str
    status: int
    code: str = pydantic.Field(description="One of docs/reference/errors.md.")
    found: str
    expected: str
    hint: str


class StandingsAnswer(pydantic.BaseModel):
    """Rows of the leaderboard, as leaderboard.json has them."""

    total: int = pydantic.Field(description="Rows of the whole leaderboard.")
    offset: int
    next: int | None = pydantic.Field(description="Offset of the next rows; null at the end.")
    rows: list[dict[str, Any]]


class FileDocument(_Model):
    """A file of an upload."""

    name: str = pydantic.Field(min_length=1, max_length=200)
    bytes: int = pydantic.Field(ge=1, le=1 << 40, strict=True)
    sha256: str = pydantic.Field(pattern=r"^[0-9a-f]{64}$")


class NewUpload(_Model):
    """The files of one submission, of one update, or one registration."""

    files: list[FileDocument] = pydantic.Field(min_length=1, max_length=3)


class FileProgress(FileDocument):
    """A file, and how many of its bytes the server has."""

    received: int = pydantic.Field(ge=0)


class UploadDocument(_Model):
    """An upload."""

    id: str
    owner: str = pydantic.Field(description="Id of the submission, or handle of the team.")
    state: Literal["open", "complete", "accepted", "failed", "cancelled"] = pydantic.Field(
        description="open: files come; complete: all are here; accepted: the organiser has them."
    )
    files: list[FileProgress]


class ReceivedBytes(_Model):
    """How many bytes of a file the server has now."""

    received: int


class SubmissionDocument(_Model):
    """A submission of the team."""

    id: str
    state: str = pydantic.Field(description="How far it has come, as the team's page shows it.")
    why: str = pydantic.Field(description="The organiser's public reason; empty without.")
    sent: datetime | None = pydantic.Field(description="When the whole upload came.")
    received: datetime | None = pydantic.Field(description="The official time.")


class Submissions(_Model):
    """The team's submissions, the newest first."""

    total: int
    offset: int
    next: int | None
    submissions: list[SubmissionDocument]


class QuotaAnswer(_Model):
    """How much of its quota the team has used."""

    limit: int
    used: int
    since: datetime
    next_allowed: datetime | None = pydantic.Field(
        description="When the next submission may come; null where the board is closed."
    )


class UploadReceipt(_Model):
    """What the server has taken in whole."""

    id: str = pydantic.Field(description="Id of the submission, or handle of the team.")
    kind: Literal["submission", "registration"]
    received: datetime
    files: list[FileDocument]
    digest: str = pydantic.Field(description="SHA-256 of the lines that sha256sum writes of them.")


_REFUSED = {
    "description": "Not done; `code` says why.",
    "content": {_PROBLEM_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
}
_REFUSALS: dict[int | str, dict[str, Any]] = {"4XX": _REFUSED, "5XX": _REFUSED}
"""What every call may answer besides, for the OpenAPI document."""


def _read_digits(text: object) -> object:
    """A whole number of an address, which has digits alone; pydantic would read `1_0` as 10."""
    if isinstance(text, str) and not (text.isascii() and text.isdigit()):
        raise ValueError("digits alone make a number here")
    return text


_Whole = Annotated[int, pydantic.BeforeValidator(_read_digits)]
_Offset = Annotated[_Whole, Query(ge=0, le=_MOST_OFFSET, description="Rows to leave out.")]
_Limit = Annotated[_Whole, Query(ge=1, le=_MOST_ROWS, description="Most rows.")]
_Name = Annotated[str, Path(min_length=1, max_length=200, pattern=r"^[^\x00]+$")]
"""PostgreSQL takes no text with a NUL."""


def make_api(intake: service.Intake) -> FastAPI:
    """The application that answers below `PREFIX`."""
    api = FastAPI(
        title="heldout",
        version="1",
        description=(
            "Standings of a board, a team's submissions and quota, and uploads of sealed files "
            "that go on where they stopped."
        ),
        openapi_url="/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        servers=[{"url": PREFIX}],
        root_path_in_servers=False,
    )
    _add_public(api, intake)
    team = _team_reader(intake)
    _add_team(api, intake, team)
    _add_uploads(api, intake, team)
    _add_handlers(api)
    described = api.openapi

    def describe() -> dict[str, Any]:
        document = described()
        schemas = document["components"]["schemas"]
        for model in (ProblemDocument, FileDocument):
            schemas.setdefault(model.__name__, model.model_json_schema())
        for unused in ("HTTPValidationError", "ValidationError"):  # answered as a problem here
            schemas.pop(unused, None)
        return document

    api.openapi = describe  # type: ignore[method-assign]  # the way that FastAPI documents
    return api


def _add_public(api: FastAPI, intake: service.Intake) -> None:
    @api.get(
        "/standings",
        response_model=StandingsAnswer,
        responses={304: {"description": "As before."}, **_REFUSALS},
        tags=["board"],
    )
    def standings(request: Request, offset: _Offset = 0, limit: _Limit = 100) -> Response:
        """The leaderboard's rows; the same bytes for everybody until the board changes."""
        page = intake.board.view().standings(offset=offset, limit=limit)
        return shared_answer(request, page.data, page.etag, "application/json")


def shared_answer(request: Request, data: bytes, etag: str, media: str, **headers: str) -> Response:
    """Bytes that everybody may keep for a while, or 304 for those who have them.

    Args:
        request: whose `If-None-Match` is compared.
        data: the bytes.
        etag: names them.
        media: their type.
        headers: further ones.
    """
    sent = {"ETag": etag, "Cache-Control": _SHARED, "Access-Control-Allow-Origin": "*", **headers}
    if etag in (one.strip() for one in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=sent)
    return Response(data, media_type=media, headers=sent)


_TeamReader = Callable[..., Team]


def _team_reader(intake: service.Intake) -> _TeamReader:
    """Return whose token a call brings."""
    bearer = HTTPBearer(auto_error=False, description="The team's token.")

    def read_team(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
    ) -> Team:
        team = None if credentials is None else intake.team_of_token(credentials.credentials)
        if team is not None:
            return team
        address, now = forms.network_of(request), intake.clock()
        wait = intake.attempts.wait(address, now=now)
        if wait is not None:
            minutes = int(wait.total_seconds()) // 60 + 1
            raise InputError.of("too-many-tries", "token", minutes=minutes)
        if credentials is not None:
            intake.attempts.note(address, now=now)
        raise refuse_token()

    return read_team


def refuse_token() -> InputError:
    """A call brought no token of a team."""
    return InputError.of("team-token", "token")


def _add_team(api: FastAPI, intake: service.Intake, team: _TeamReader) -> None:
    @api.get("/quota", responses=_REFUSALS, tags=["team"])
    def quota(who: Annotated[Team, Depends(team)]) -> QuotaAnswer:
        """Return how much of its quota the team has used, and when the next submission may come."""
        found = intake.overview(who)
        return QuotaAnswer(
            limit=found.quota.limit,
            used=len(found.quota.used),
            since=found.quota.since,
            next_allowed=None if found.closed else found.quota.next_allowed,
        )

    @api.get("/submissions", responses=_REFUSALS, tags=["team"])
    def submissions(
        who: Annotated[Team, Depends(team)], offset: _Offset = 0, limit: _Limit = 100
    ) -> Submissions:
        """The team's submissions, the newest first."""
        found = intake.overview(who).submissions
        after = offset + limit
        return Submissions(
            total=len(found),
            offset=offset,
            next=after if after < len(found) else None,
            submissions=[_submission(one) for one in found[offset:after]],
        )

    @api.get("/submissions/{submission}", responses=_REFUSALS, tags=["team"])
    def submission(submission: _Name, who: Annotated[Team, Depends(team)]) -> SubmissionDocument:
        """One submission of the team."""
        for one in intake.overview(who).submissions:
            if one.id == submission:
                return _submission(one)
        raise InputError.of("upload-unknown", "submission", quote(submission))


def _submission(one: board.ShownSubmission) -> SubmissionDocument:
    return SubmissionDocument(**asdict(one))


def _add_uploads(api: FastAPI, intake: service.Intake, team: _TeamReader) -> None:
    @api.post(
        "/uploads",
        status_code=201,
        responses={
            200: {"model": UploadDocument, "description": "It was begun before: go on with it."},
            **_REFUSALS,
        },
        openapi_extra=_body(NewUpload),
        tags=["uploads"],
    )
    async def begin(
        request: Request, response: Response, who: Annotated[Team, Depends(team)]
    ) -> UploadDocument:
        """Say which files come; whoever says the same again goes on with the same upload."""
        asked = await _read_model(request, NewUpload)
        files = [
            UploadFile(name=f.name, size=f.bytes, digest=Digest(f.sha256)) for f in asked.files
        ]
        new, upload = await run_in_threadpool(intake.begin, who, files, forms.network_of(request))
        response.status_code = 201 if new else 200
        return _upload(upload)

    @api.get("/uploads/{upload}", responses=_REFUSALS, tags=["uploads"])
    def show(upload: _Name, who: Annotated[Team, Depends(team)]) -> UploadDocument:
        """Return how many bytes of each file the server has."""
        return _upload(get_upload(intake.store, who.id, upload))

    @api.patch(
        "/uploads/{upload}/files/{name}",
        responses=_REFUSALS,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
                },
            }
        },
        tags=["uploads"],
    )
    async def append(
        upload: _Name,
        name: _Name,
        request: Request,
        who: Annotated[Team, Depends(team)],
        offset: Annotated[_Whole, Query(ge=0, le=_MOST_OFFSET, description="Bytes sent before.")],
    ) -> ReceivedBytes:
        """Go on with a file; what came before a cut stays."""
        return ReceivedBytes(received=await intake.append(who, upload, name, offset, request))

    @api.post(
        "/uploads/{upload}/finish",
        responses=_REFUSALS,
        tags=["uploads"],
    )
    def finish(upload: _Name, who: Annotated[Team, Depends(team)]) -> UploadReceipt:
        """Check the digests, and hand the files over to the organiser."""
        done = intake.finish(who, upload)
        return UploadReceipt(
            id=done.owner,
            kind="registration" if done.kind == "registration" else "submission",
            received=done.completed or done.created,
            files=[FileDocument(name=f.name, bytes=f.size, sha256=f.digest) for f in done.files],
            digest=done.digest,
        )

    @api.delete(
        "/uploads/{upload}",
        status_code=204,
        responses=_REFUSALS,
        tags=["uploads"],
    )
    def drop(upload: _Name, who: Annotated[Team, Depends(team)]) -> None:
        """Give up an upload that is under way."""
        cancel_upload(intake.store, who.id, upload, now=intake.clock())


def _upload(upload: Upload) -> UploadDocument:
    files = [
        FileProgress(name=f.name, bytes=f.size, sha256=f.digest, received=f.received)
        for f in upload.files
    ]
    return UploadDocument(id=upload.id, owner=upload.owner, state=upload.state, files=files)


def _body(model: type[pydantic.BaseModel]) -> dict[str, Any]:
    """The body of a call that is read by `_read_model`, for the OpenAPI document."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


Model = TypeVar("Model", bound=pydantic.BaseModel)


async def _read_model(request: Request, model: type[Model]) -> Model:
    """The body as a document; its size is checked before and while it is read.

    Raises:
        InputError: code `upload-too-large` or `request`.
    """
    try:
        data = await forms.read_body(request, _MOST_JSON)
    except HTTPException as error:
        if error.status_code != 413:  # noqa: PLR2004 - HTTP's
            raise
        raise form.too_large("a long document", f"at most {_MOST_JSON:,} bytes of JSON") from None
    try:
        return model.model_validate_json(data)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise _unreadable(where, first["msg"]) from None


def _unreadable(where: str, why: str) -> InputError:
    return InputError.of("request", where, quote(why), "what the API's description says")


def _add_handlers(api: FastAPI) -> None:
    """Answer every error as a problem document."""

    def answer(_request: Request, error: Exception) -> Response:
        if isinstance(error, InputError):
            return problem_answer(error.problems[0])
        if isinstance(error, RequestValidationError):
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the request"
            return problem_answer(_unreadable(where, str(first["msg"])).problems[0])
        if isinstance(error, HTTPException):
            found = Problem("request", "request", str(error.detail), "an address of the API")
            return problem_answer(found, error.status_code, dict(error.headers or {}))
        _LOG.error("the API cannot answer: %s", error)
        return problem_answer(_UNAVAILABLE, 503, {"Retry-After": guard.RETRY_SECONDS})

    def fail(_request: Request, _error: Exception) -> Response:
        return problem_answer(_BUG, 500, {})

    for kind in (InputError, RequestValidationError, HTTPException, StoreError):
        api.add_exception_handler(kind, answer)
    api.add_exception_handler(Exception, fail)


_LOG = logging.getLogger("heldout.web")
_UNAVAILABLE = Problem.of("server-unavailable", "server")
_BUG = Problem.of("server-error", "server")


def problem_answer(
    problem: Problem, status: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """A problem as an answer."""
    known, more = service.status_of(problem.code)
    status = known if status is None else status
    document = {
        "title": f"found {problem.found}; expected {problem.expected}",
        "status": status,
        "code": problem.code,
        "found": problem.found,
        "expected": problem.expected,
        "hint": problem.hint,
    }
    sent = {**more, **(headers or {}), health.ERROR_CODE: problem.code}
    return JSONResponse(document, status, sent, media_type=_PROBLEM_TYPE)
