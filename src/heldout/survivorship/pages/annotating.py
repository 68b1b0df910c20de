"""The annotators' way: who is there, all questions, one question a page. Plain forms.

An answer is on disk before the next page is shown; a page that could not save says so and keeps
what was chosen. Every answer can be changed, and nobody sees those of others. As for judges there
are no cookies: a signed token stands in the address and in every form.
"""

import hmac
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated
from urllib.parse import parse_qs

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Path, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from heldout.errors import InputError, StoreError
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import (
    Answer,
    Question,
    annotator_fault,
    annotator_name,
    answer_fault,
    latest,
    visible_note,
)
from heldout.survivorship.pages.pages import (
    AnnotatorPage,
    Line,
    OverviewPage,
    Passage,
    QuestionPage,
    render_annotating,
)
from heldout.web.guard import (
    RETRY_SECONDS,
    Attempts,
    BadTokenError,
    Guard,
    OldTokenError,
    add_handlers,
    read_value,
    respond,
    sign_value,
)
from heldout.web.pages import EndPage, Link, Study

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


_LOG = logging.getLogger("heldout.web")
_TOKEN_DAYS = 30
_WRONG = "That is not the token."
_STALE = (
    "You have answered this question in another window since. That answer stands and is shown "
    "here; to change it, choose again."
)
_UNSAVED = "Not saved: it could not be written just now. What you chose is kept here; save again."

Position = Annotated[int, Path(ge=1, le=1_000_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotating:
    """The pages of one folder's annotators.

    Attributes:
        folder: its files.
        key: the folder's secret.
        token: what is asked for at the beginning.
        clock: the time, UTC.
        attempts: wrong tokens.
    """

    folder: QuestionFolder
    key: bytes
    token: str
    clock: Callable[[], datetime]
    attempts: Attempts = field(default_factory=Attempts)

    def ask(self) -> Response:
        """Who is there?"""
        return self._ask()

    def begin(self, request: Request, fields: Sent) -> Response:
        """The annotator's own pages."""
        name = annotator_name(last_value(fields, "name"))
        given = last_value(fields, "token").strip()
        now, address = self.clock(), request.client.host if request.client else ""
        wait = self.attempts.wait(address, now=now)
        if wait is not None:
            minutes = int(wait.total_seconds()) // 60 + 1
            answer = self._ask(name, f"Too many tries. Minutes to wait: {minutes}.", status=429)
            answer.headers["Retry-After"] = str(int(wait.total_seconds()) + 1)
            return answer
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            self.attempts.note(address, now=now)
            return self._ask(name, _WRONG, status=403)
        fault = annotator_fault(name)
        if fault:
            return self._ask(name, fault, status=422)
        expires = now + timedelta(days=_TOKEN_DAYS)
        return _see(f"/t/{self._signer.sign_annotator(name, expires=expires)}")

    def overview(self, token: str) -> Response:
        """All questions, and what the annotator said."""
        annotator = self._open(token)
        given = self._given(annotator)
        return _page(self._overview(token, annotator, given))

    def question(self, token: str, position: Position) -> Response:
        """A question; the same at every refresh."""
        annotator = self._open(token)
        return self._show(token, annotator, position, self._given(annotator))

    def answer(self, token: str, position: Position, fields: Sent) -> Response:
        """Save an answer, and go on."""
        annotator, question = self._open(token, fields), self._question(position)
        shown = self._signer.read_shown(last_value(fields, "shown"))
        if (shown.annotator, shown.query) != (annotator, question.query):
            raise BadTokenError
        answer = self._read(question, shown, fields)
        fault = answer_fault(
            self.folder.form, choice=answer.choice, passages=answer.passages, note=answer.note
        )
        if fault:
            return self._again(token, position, answer, problem=fault, status=422)
        try:
            outcome = self.folder.append(answer)
        except StoreError as error:
            _LOG.error("an answer could not be saved: %s", error)
            refused = self._again(token, position, answer, problem=_UNSAVED, status=503)
            refused.headers["Retry-After"] = RETRY_SECONDS
            return refused
        if outcome == "stale":
            given = self._given(annotator)
            return self._show(token, annotator, position, given, problem=_STALE, status=409)
        return _see(self._next(token, position))

    def _read(self, question: Question, shown: Shown, fields: Fields) -> Answer:
        """What a form says; a passage that is not there is nobody's form."""
        numbers = {str(number): one.doc for number, one in enumerate(question.passages, 1)}
        ticked = set(fields.get("passage", ()))
        if not ticked <= numbers.keys():
            raise HTTPException(400)
        return Answer(
            query=question.query,
            annotator=shown.annotator,
            choice=last_value(fields, "choice"),
            passages=tuple(doc for number, doc in numbers.items() if number in ticked),
            note=visible_note(last_value(fields, "note")),
            replaces=shown.replaces,
            shown_at=_format_time(shown.shown_at),
            answered_at=_format_time(self.clock()),
        )

    def _show(
        self,
        token: str,
        annotator: str,
        position: int,
        given: Mapping[str, Answer],
        *,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        """A question with the answer that stands."""
        question = self._question(position)
        stands = given.get(question.query)
        shown = Shown(
            annotator=annotator,
            query=question.query,
            shown_ms=int(self.clock().timestamp() * 1000),
            replaces=stands.replaces + 1 if stands else 0,
        )
        page = self._question_page(token, position, shown, stands, problem)
        return _page(page, status=status)

    def _again(
        self, token: str, position: int, sent: Answer, *, problem: str, status: int
    ) -> Response:
        """A question with what was sent, which is not saved."""
        shown = Shown(
            annotator=sent.annotator,
            query=sent.query,
            shown_ms=int(datetime.fromisoformat(sent.shown_at).timestamp() * 1000),
            replaces=sent.replaces,
        )
        page = self._question_page(token, position, shown, sent, problem)
        return _page(page, status=status)

    def _question_page(
        self, token: str, position: int, shown: Shown, chosen: Answer | None, problem: str
    ) -> QuestionPage:
        question = self._question(position)
        ticked = chosen.passages if chosen else ()
        return QuestionPage(
            study=self._study,
            form=self.folder.form,
            position=position,
            total=len(self.folder.questions()),
            query=question.text,
            passages=tuple(
                Passage(number=number, text=one.text, ticked=one.doc in ticked)
                for number, one in enumerate(question.passages, 1)
            ),
            choice=chosen.choice if chosen else "",
            note=chosen.note if chosen else "",
            token=token,
            shown=self._signer.sign_shown(shown),
            action=_address(token, position),
            next=self._next(token, position),
            place=f"{self.folder.form.kind} {shown.annotator} {question.query}",
            replaces=shown.replaces,
            back=_address(token, position - 1) if position > 1 else "",
            all=f"/t/{token}",
            problem=problem,
        )

    def _overview(self, token: str, annotator: str, given: Mapping[str, Answer]) -> OverviewPage:
        form, total = self.folder.form, len(self.folder.questions())
        lines = tuple(
            Line(
                href=_address(token, position),
                text=one.text,
                answer=_name(form.choice(given[one.query].choice)) if one.query in given else "",
            )
            for position, one in enumerate(self.folder.questions(), 1)
        )
        first = next((line.href for line in lines if not line.answer), "")
        done = sum(bool(line.answer) for line in lines)
        ended = "All are answered; thank you. Any answer can still be changed."
        return OverviewPage(
            study=self._study,
            title=form.title,
            annotator=annotator,
            told=(
                f"{done:,} of {total:,} answered. "
                + (ended if not first else "Every answer is saved as you go on."),
            ),
            next=first,
            button="Go on" if done else "Begin",
            lines=lines,
        )

    def _next(self, token: str, position: int) -> str:
        return (
            _address(token, position + 1)
            if position < len(self.folder.questions())
            else f"/t/{token}"
        )

    def _question(self, position: int) -> Question:
        questions = self.folder.questions()
        if position > len(questions):
            raise HTTPException(404)
        return questions[position - 1]

    def _given(self, annotator: str) -> Mapping[str, Answer]:
        """Query -> what this annotator said last."""
        found = latest(self.folder.answers())
        return {query: one for (query, name), one in found.items() if name == annotator}

    def _open(self, token: str, fields: Fields | None = None) -> str:
        """Whose pages these are; a form has to bring the token of its address."""
        if fields is not None and last_value(fields, "token") != token:
            raise BadTokenError
        return self._signer.read_annotator(token, now=self.clock())

    def _ask(self, name: str = "", problem: str = "", *, status: int = 200) -> Response:
        title = self.folder.form.title
        return _page(
            AnnotatorPage(study=self._study, title=title, name=name, problem=problem), status=status
        )

    @property
    def _study(self) -> Study:
        return Study(name="heldout")

    @property
    def _signer(self) -> AnnotatorSigner:
        return AnnotatorSigner(key=self.key)


def make_annotating_app(annotating: Annotating) -> FastAPI:
    """The pages of a folder of questions: `/`, `/t/TOKEN` and `/t/TOKEN/question/N`."""
    router = APIRouter(default_response_class=HTMLResponse)
    router.get("/")(annotating.ask)
    router.post("/")(annotating.begin)
    router.get("/t/{token}")(annotating.overview)
    router.get("/t/{token}/question/{position}")(annotating.question)
    router.post("/t/{token}/question/{position}")(annotating.answer)
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.mount("/static", StaticFiles(packages=[("heldout.web", "static")]), name="static")
    app.include_router(router)
    app.add_api_route("/alive", lambda: PlainTextResponse("alive"), methods=["GET"])
    study = Study(name="heldout")
    add_handlers(app, study)
    app.add_exception_handler(StoreError, lambda _, error: _damaged(study, error))
    app.add_exception_handler(InputError, lambda _, error: _damaged(study, error))
    app.add_exception_handler(BadTokenError, lambda *_: _unknown(study))
    app.add_exception_handler(OldTokenError, lambda *_: _unknown(study))
    app.add_middleware(Guard, study=study)
    return app


def _unknown(study: Study) -> Response:
    page = EndPage(
        study=study,
        title="This address is not valid",
        paragraphs=("It is too old, or a part of it is missing. Your answers are kept.",),
        link=Link(href="/", text="Sign in again"),
    )
    return respond(page, status=403)


def _damaged(study: Study, error: Exception) -> Response:
    """The folder's files cannot be read: 503, so that the browser keeps what is not saved."""
    _LOG.error("the folder cannot be read: %s", error)
    page = EndPage(
        study=study,
        title="The answers can't be read just now",
        paragraphs=(
            "The files in which they are kept are broken. Nothing is saved until that is mended.",
            "Please tell whoever gave you the token; what is wrong is in their log.",
        ),
    )
    answer = respond(page, status=503)
    answer.headers["Retry-After"] = RETRY_SECONDS
    return answer


def _page(page: AnnotatorPage | OverviewPage | QuestionPage, *, status: int = 200) -> Response:
    return HTMLResponse(render_annotating(page), status_code=status)


def _name(choice: object) -> str:
    return str(getattr(choice, "name", ""))


def _address(token: str, position: int) -> str:
    return f"/t/{token}/question/{position}"


def _see(address: str) -> Response:
    return RedirectResponse(address, status_code=303)


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
