"""The annotators' way: who is there, all questions, one question a page. Plain forms.

An answer is on disk before the next page is shown; a page that could not save says so and keeps
what was chosen. Every answer can be changed, and nobody sees those of others. As for judges there
are no cookies: a signed token stands in the address and in every form.
"""

import hmac
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, FastAPI, Path, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from heldout.errors import InputError, StoreError
from heldout.survivorship.discarded.folder import QuestionFolder
from heldout.survivorship.discarded.questions import (
    LONGEST_NAME,
    LONGEST_NOTE,
    Answer,
    Form,
    Question,
    annotator_fault,
    annotator_name,
    answer_fault,
    latest,
    visible_note,
)
from heldout.web.forms import Fields, address_of, go_to, make_application
from heldout.web.guard import RETRY_SECONDS, respond
from heldout.web.pages import EndPage, Link, Study, render_template
from heldout.web.sessions import Attempts
from heldout.web.signing import BadTokenError, OldTokenError, PageSigner, Stamp

# The pages as values; every value is escaped where they become HTML.


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorPage:
    """Who is there?

    Attributes:
        study: of the window.
        title: the heading.
        name: what was typed before.
        problem: what has to be corrected; empty at first.
    """

    study: Study
    title: str
    name: str = ""
    problem: str = ""

    @property
    def longest_name(self) -> int:
        """Characters of a name."""
        return LONGEST_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A question in the list of all.

    Attributes:
        href: its page.
        text: the query.
        answer: what the annotator said; empty where nothing yet.
    """

    href: str
    text: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage:
    """All questions, for one annotator.

    Attributes:
        study: of the window.
        title: the heading.
        annotator: who is there.
        paragraphs: above the list.
        next: the first question without an answer; empty where there is none.
        button: what the link to it says.
        lines: every question.
    """

    study: Study
    title: str
    annotator: str
    paragraphs: tuple[str, ...]
    next: str
    button: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as it is shown.

    Attributes:
        number: its place, from 1; what ticking it sends.
        text: all of it.
        ticked: whether it is.
    """

    number: int
    text: str
    ticked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPage:
    """A query, its passages and what can be said of them.

    Attributes:
        study: of the window.
        form: what is asked.
        position: of the question, from 1.
        total: questions.
        query: its words.
        passages: in the order shown.
        choice: what is chosen already; empty at first.
        note: what was remarked.
        token: of the annotator.
        shown: signed stamp of this showing.
        action: where the form is sent.
        next: where a saved answer leads.
        place: under which the browser keeps what is not saved yet.
        replaces: answers that stand.
        back: the question before; empty on the first.
        all: the list of questions.
        problem: what has to be corrected; empty at first.
    """

    study: Study
    form: Form
    position: int
    total: int
    query: str
    passages: tuple[Passage, ...]
    choice: str
    note: str
    token: str
    shown: str
    action: str
    next: str
    place: str
    replaces: int
    back: str
    all: str
    problem: str

    @property
    def title(self) -> str:
        """Of the window."""
        return f"Question {self.position} of {self.total}"

    @property
    def button(self) -> str:
        """What the button says."""
        return "Save, next" if self.position < self.total else "Save"

    @property
    def longest_note(self) -> int:
        """Characters of a note."""
        return LONGEST_NOTE


_TEMPLATES: Mapping[type, str] = {
    AnnotatorPage: "annotator.html",
    OverviewPage: "questions.html",
    QuestionPage: "question.html",
}


# What they do.


def last_value(fields: Fields, name: str) -> str:
    """The last value of a field; empty where it is not there."""
    return fields.get(name, ("",))[-1]


_LOG = logging.getLogger("heldout.web")
_STUDY = Study(name="heldout")
_TOKEN_DAYS = 30
_WRONG = "This is not the token."
_STALE = (
    "You have answered this question in another window. That answer is stored and shown "
    "here; to change it, choose again."
)
_UNSAVED = (
    "Not saved: the server could not write it. Your choice is still on this page: save again."
)

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

    def begin(self, request: Request, fields: Fields) -> Response:
        """The annotator's own pages."""
        name = annotator_name(last_value(fields, "name"))
        given = last_value(fields, "token").strip()
        now, address = self.clock(), address_of(request)
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
        return go_to(f"/t/{self._signer.sign_owner(name, expires=expires)}")

    def overview(self, token: str) -> Response:
        """All questions, and what the annotator said."""
        annotator = self._open(token)
        given = self._given(annotator)
        return _page(self._overview(token, annotator, given))

    def question(self, token: str, position: Position) -> Response:
        """A question; the same at every refresh."""
        annotator = self._open(token)
        return self._show(token, annotator, position, self._given(annotator))

    def answer(self, token: str, position: Position, fields: Fields) -> Response:
        """Save an answer, and go on."""
        annotator, question = self._open(token, fields), self._question(position)
        shown = self._signer.read_stamp(last_value(fields, "shown"))
        if (shown.owner, shown.item) != (annotator, question.query):
            raise BadTokenError
        answer = self._read(question, shown, fields)
        fault = answer_fault(
            self.folder.form, choice=answer.choice, passages=answer.passages, note=answer.note
        )
        if fault:
            return _page(self._question_page(token, position, shown, answer, fault), status=422)
        try:
            outcome = self.folder.append(answer)
        except StoreError as error:
            _LOG.error("an answer could not be saved: %s", error)
            page = self._question_page(token, position, shown, answer, _UNSAVED)
            refused = _page(page, status=503)
            refused.headers["Retry-After"] = RETRY_SECONDS
            return refused
        if outcome == "stale":
            given = self._given(annotator)
            return self._show(token, annotator, position, given, problem=_STALE, status=409)
        return go_to(self._next(token, position))

    def _read(self, question: Question, shown: Stamp, fields: Fields) -> Answer:
        """What a form says; a passage that is not there is nobody's form."""
        numbers = {str(number): one.doc for number, one in enumerate(question.passages, 1)}
        ticked = set(fields.get("passage", ()))
        if not ticked <= numbers.keys():
            raise HTTPException(400)
        return Answer(
            query=question.query,
            annotator=shown.owner,
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
        shown = Stamp(
            owner=annotator,
            item=question.query,
            shown_ms=int(self.clock().timestamp() * 1000),
            replaces=stands.replaces + 1 if stands else 0,
        )
        page = self._question_page(token, position, shown, stands, problem)
        return _page(page, status=status)

    def _question_page(
        self, token: str, position: int, shown: Stamp, chosen: Answer | None, problem: str
    ) -> QuestionPage:
        question = self._question(position)
        ticked = chosen.passages if chosen else ()
        return QuestionPage(
            study=_STUDY,
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
            shown=self._signer.sign_stamp(shown),
            action=_address(token, position),
            next=self._next(token, position),
            place=f"{self.folder.form.kind} {shown.owner} {question.query}",
            replaces=shown.replaces,
            back=_address(token, position - 1) if position > 1 else "",
            all=f"/t/{token}",
            problem=problem,
        )

    def _overview(self, token: str, annotator: str, given: Mapping[str, Answer]) -> OverviewPage:
        form, total = self.folder.form, len(self.folder.questions())
        names = {one.value: one.name for one in form.choices}
        lines = tuple(
            Line(
                href=_address(token, position),
                text=one.text,
                answer=names[given[one.query].choice] if one.query in given else "",
            )
            for position, one in enumerate(self.folder.questions(), 1)
        )
        first = next((line.href for line in lines if not line.answer), "")
        done = sum(bool(line.answer) for line in lines)
        ended = "You have answered every question. Thank you. You can still change any answer."
        return OverviewPage(
            study=_STUDY,
            title=form.title,
            annotator=annotator,
            paragraphs=(
                f"{done:,} of {total:,} answered. "
                + (ended if not first else "Every answer is saved when you continue."),
            ),
            next=first,
            button="Continue" if done else "Begin",
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
        return self._signer.read_owner(token, now=self.clock())

    def _ask(self, name: str = "", problem: str = "", *, status: int = 200) -> Response:
        title = self.folder.form.title
        return _page(
            AnnotatorPage(study=_STUDY, title=title, name=name, problem=problem), status=status
        )

    @property
    def _signer(self) -> PageSigner:
        return PageSigner(key=self.key, pages="annotating")


def make_annotating_app(annotating: Annotating) -> FastAPI:
    """The pages of a folder of questions: `/`, `/t/TOKEN` and `/t/TOKEN/question/N`."""
    router = APIRouter(default_response_class=HTMLResponse)
    router.get("/")(annotating.ask)
    router.post("/")(annotating.begin)
    router.get("/t/{token}")(annotating.overview)
    router.get("/t/{token}/question/{position}")(annotating.question)
    router.post("/t/{token}/question/{position}")(annotating.answer)
    app = make_application(_STUDY, [router])
    app.add_exception_handler(StoreError, _damaged)
    app.add_exception_handler(InputError, _damaged)
    app.add_exception_handler(BadTokenError, _unknown)
    app.add_exception_handler(OldTokenError, _unknown)
    return app


def _unknown(_request: Request, _error: Exception) -> Response:
    page = EndPage(
        study=_STUDY,
        title="This address is not valid",
        paragraphs=("It is too old or incomplete. Your answers are stored.",),
        link=Link(href="/", text="Sign in again"),
    )
    return respond(page, status=403)


def _damaged(_request: Request, error: Exception) -> Response:
    """The folder's files cannot be read: 503, so that the browser keeps what is not saved."""
    _LOG.error("the folder cannot be read: %s", error)
    page = EndPage(
        study=_STUDY,
        title="The server can't read the answers",
        paragraphs=(
            "Their files are damaged. Nothing is saved until that is repaired.",
            "Please tell the person who gave you the token. Their log has the reason.",
        ),
    )
    answer = respond(page, status=503)
    answer.headers["Retry-After"] = RETRY_SECONDS
    return answer


def _page(page: AnnotatorPage | OverviewPage | QuestionPage, *, status: int = 200) -> Response:
    return HTMLResponse(render_template(_TEMPLATES[type(page)], page), status_code=status)


def _address(token: str, position: int) -> str:
    return f"/t/{token}/question/{position}"


def _format_time(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
