"""The judge's pages: consent, one pair a page, stopping, the end; and the application of them.

Plain forms; the script only helps. Whoever holds an assignment's token sees its pages: there are no
cookies and no sign-in. An answer is saved before the next page is shown, and a page that could not
save says so and shows the choice.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Path, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.errors import InputError, StoreError, plural
from heldout.judging.campaign.judgments import By, Choice, Reason, Side
from heldout.judging.campaign.questions import CANNOT, FORMS, QuestionForm, find_answer_fault
from heldout.judging.campaign.settings import Platform, Settings
from heldout.judging.database import assignments, campaigns, claims, organiser
from heldout.judging.database.assignments import LONGEST_WORKER, Answered, Assignment, Shown, Worker
from heldout.judging.database.claims import NoTask, Offer
from heldout.judging.pages import questions
from heldout.web import guard, pages, sessions
from heldout.web.forms import Form, address_of, go_to, make_application, network_of, read_count
from heldout.web.signing import PageSigner, Stamp, TokenError

# What a form says.

_SIDES: Mapping[str, Side] = {"a": "left", "b": "right"}
_MILLISECOND = timedelta(milliseconds=1)


def read_choice(
    fields: Mapping[str, str],
    form: QuestionForm | None,
    docs: Sequence[str],
    *,
    since: timedelta,
) -> Choice | str:
    """Return what was chosen; or what is missing, in a sentence.

    Args:
        fields: of the form.
        form: what was asked of a query with all passages; `None` for a pair.
        docs: ids of these passages, in the order shown.
        since: how long ago the page was shown: nobody looked at it for longer.
    """
    chosen, by = fields.get("choice", ""), fields.get("by")
    how = cast("By", by) if by in get_args(By) else "form"
    active_ms = _active_ms(fields.get("active_ms", ""), since)
    if form is not None and chosen != CANNOT:
        ticked = tuple(doc for number, doc in enumerate(docs, 1) if f"tick-{number}" in fields)
        fault = find_answer_fault(form, chosen, ticked)
        return fault or Choice(side=chosen, by=how, active_ms=active_ms, ticked=ticked)
    side = _SIDES.get(chosen)
    if side is None and form is None and chosen != "none":
        return questions.TEXTS.missing["choice"]
    reason = fields.get("reason") if form is None else "other"
    if side is None and reason not in get_args(Reason):
        return questions.TEXTS.missing["reason"]
    why = None if side else cast("Reason", reason)
    return Choice(side=side, reason=why, by=how, active_ms=active_ms)


def _active_ms(text: str, since: timedelta) -> int | None:
    """Return what the script counted, at most the time that has passed."""
    counted = read_count(text)
    return None if counted is None else max(0, min(counted, since // _MILLISECOND))


_LOG = logging.getLogger("heldout.web")
_ORIGIN_DIGITS = 16
_TOKEN_DAYS = 30
"""Long after any lease: who has finished can look up the code again."""

_STALE = (
    "You have answered this question in another window. That answer is stored and shown here; to "
    "change it, choose again."
)
_LATER = ("waiting", "paused", "elsewhere")
_SENT_AGAIN = ("token", "stamp", "choice", "reason", "by", "active_ms")
_CHANGED = "The terms have changed since you opened this page. Please read them again."

Position = Annotated[int, Path(ge=1, le=100_000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The pages of one campaign's judges.

    Attributes:
        database: the campaign's.
        campaign: its link code, key and terms.
        clock: the time, UTC.
        exits: tasks that were stopped early, by address: after five in 15 minutes, who comes from
            there without a signed link is given no new task for a while.
    """

    database: Database
    campaign: campaigns.Campaign
    clock: Callable[[], datetime]
    exits: sessions.Attempts = field(default_factory=sessions.Attempts)

    def start(self) -> Response:
        """The first page, for who opens the server's address by itself."""
        study, link = pages.Study(), ("/admin", "Sign in as the organiser")
        return guard.respond_briefly(
            study, *questions.TEXTS.notices["start"], mturk=self._mturk, link=link
        )

    def landing(self, code: str, request: Request) -> Response:
        """Return what is agreed to, before any pair."""
        self._check_code(code)
        arrival = self._arrival(request.query_params)
        return self._ended(arrival) or self._offer(arrival, request)

    def consent(self, code: str, request: Request, fields: Form) -> Response:
        """Give out a task."""
        self._check_code(code)
        arrival, batch = self._arrival(fields), read_count(fields.get("batch", ""))
        if arrival.worker is None:
            known = arrival.preview or arrival.unsigned
            return self._offer(arrival, request, problem="" if known else self._no_worker)
        if batch is None:
            return self._offer(arrival, request)
        return self._ended(arrival) or self._begin(arrival, arrival.worker, batch, request)

    def item(self, token: str, position: Position) -> Response:
        """A pair; the same at every refresh."""
        addresses, assignment = questions.Addresses(token), self._open(token)
        shown = assignments.item(self.database, assignment, position)
        if shown is None:
            held = assignments.get_assignment(self.database, assignment)
            at = held.first_open or held.items
            return self._notice("no item", held, link=_go_on(addresses, at), status=404)
        held = shown.assignment
        if not held.open:
            return go_to(addresses.done)
        if held.first_open is not None and position > held.first_open:
            return self._ahead(held, addresses, position)
        return self._show(shown, addresses)

    def answer(self, token: str, position: Position, fields: Form) -> Response:
        """Save an answer; after the last one, submit."""
        addresses, assignment = questions.Addresses(token), self._open(token, fields)
        stamp = self._signer.read_stamp(fields.get("stamp", ""))
        if (stamp.owner, stamp.item) != (str(assignment), str(position)):
            raise TokenError
        try:
            return self._save(addresses, assignment, stamp, fields)
        except StoreError as error:
            if isinstance(error, DatabaseError) and error.code == "unknown-assignment":
                raise
            _LOG.error("an answer could not be saved: %s", error)
            return self._unsaved(addresses, position, fields)

    def extend(self, token: str, position: Position, fields: Form) -> Response:
        """Lengthen the lease: somebody needs more time."""
        addresses, assignment = questions.Addresses(token), self._open(token, fields)
        assignments.resume(self.database, assignment, now=self.clock())
        return go_to(addresses.item(position))

    def stop(self, token: str) -> Response:
        """Return what is the worker's, before stopping."""
        addresses = questions.Addresses(token)
        held = assignments.get_assignment(self.database, self._open(token))
        if not held.open:
            return go_to(addresses.done)
        title = "Stop here?"
        return self._respond("exit", held.settings, title=title, held=held, addresses=addresses)

    def stopped(self, token: str, request: Request, fields: Form) -> Response:
        """Stop."""
        assignment, now = self._open(token, fields), self.clock()
        if assignments.get_assignment(self.database, assignment).open:
            self.exits.note(address_of(request), now=now)
        assignments.exit_assignment(self.database, assignment, now=now)
        return go_to(questions.Addresses(token).done)

    def done(self, token: str) -> Response:
        """The end, whichever it was."""
        held = assignments.get_assignment(self.database, self._open(token))
        if held.open:
            return go_to(questions.Addresses(token).item(held.first_open or held.items))
        return self._respond(
            "ended",
            held.settings,
            title=questions.say_end(held),
            held=held,
            code=questions.completion_code(held, self.campaign.key),
            hand_in=questions.hand_in(held),
            link=None,
        )

    def _save(
        self, addresses: questions.Addresses, assignment: int, stamp: Stamp, fields: Form
    ) -> Response:
        now, position = self.clock(), int(stamp.item)
        form = FORMS.get(self.campaign.settings.kind)
        shown = form and assignments.item(self.database, assignment, position)
        docs = [one.doc for one in shown.passages] if shown else []
        choice = read_choice(fields, form, docs, since=now - stamp.shown_at)
        if isinstance(choice, str):
            shown = shown or assignments.item(self.database, assignment, position)
            if shown is None:
                raise TokenError
            return self._show(shown, addresses, sent=fields, problem=choice, status=422)
        found = assignments.answer(
            self.database,
            assignment,
            position,
            choice,
            replaces=stamp.replaces,
            shown_at=stamp.shown_at,
            now=now,
        )
        if found is None:
            raise TokenError
        return self._after(found, addresses, now)

    def _after(self, found: Answered, addresses: questions.Addresses, now: datetime) -> Response:
        """Return where an answer leads."""
        shown, held = found.shown, found.shown.assignment
        if found.outcome == "stale":
            return self._show(shown, addresses, problem=_STALE, status=409)
        if found.outcome == "ahead":
            return self._ahead(held, addresses, shown.position)
        if found.outcome == "ended":
            link = (addresses.done, "How the task ended")
            title, said = "This answer came too late", {"held": held, "code": "", "hand_in": None}
            return self._respond("late", held.settings, title=title, status=409, link=link, **said)
        if shown.position < held.items:
            return go_to(addresses.item(shown.position + 1))
        assignments.submit(self.database, held.id, now=now)
        return go_to(addresses.done)

    def _show(
        self,
        shown: Shown,
        addresses: questions.Addresses,
        *,
        sent: Mapping[str, str] | None = None,
        problem: str = "",
        status: int = 200,
    ) -> Response:
        now = self.clock()
        stamp = Stamp(
            owner=str(shown.assignment.id),
            item=str(shown.position),
            shown_ms=int(now.timestamp() * 1000),
            replaces=shown.revision,
        )
        settings, form = shown.assignment.settings, FORMS.get(shown.assignment.settings.kind)
        choice, reason = questions.find_chosen(shown, sent)
        return self._respond(
            "item" if form is None else "question",
            settings,
            status=status,
            title=f"Question {shown.position} of {shown.assignment.items}",
            shown=shown,
            form=form,
            passages=questions.show_passages(shown, sent),
            choice=choice,
            reason=reason,
            addresses=addresses,
            campaign=self.campaign.code,
            stamp=self._signer.sign_stamp(stamp),
            left=max(0, int((shown.assignment.lease_until - now).total_seconds())),
            problem=problem,
        )

    def _unsaved(
        self, addresses: questions.Addresses, position: int, sent: Mapping[str, str]
    ) -> Response:
        """The database does not answer: the choice is on the page, and is sent again from there."""
        fields = {
            name: text
            for name, text in sent.items()
            if name in _SENT_AGAIN or name.startswith("tick-")
        }
        title, *said = questions.TEXTS.notices["unsaved"]
        chosen = questions.TEXTS.choices.get(sent.get("choice", ""), "an answer")
        answer = self._respond(
            "end",
            self.campaign.settings,
            status=503,
            title=title,
            paragraphs=[one.format(chosen=chosen) for one in said],
            code="",
            hand_in=questions.HandIn(action=addresses.item(position), fields=fields, button="Next"),
            link=None,
        )
        answer.headers["Retry-After"] = guard.RETRY_SECONDS
        return answer

    def _arrival(self, values: Mapping[str, str]) -> questions.LandingVisitor:
        key = self.campaign.key if self.campaign.settings.signed else None
        return questions.read_arrival(self._platform, values, signed_with=key)

    def _ended(self, arrival: questions.LandingVisitor) -> Response | None:
        """The end of what was done at this place of the platform: each is paid once."""
        found = assignments.ended_at(self.database, arrival.worker) if arrival.worker else None
        return None if found is None else go_to(self._addresses(found).done)

    def _begin(
        self, arrival: questions.LandingVisitor, worker: Worker, batch: int, request: Request
    ) -> Response:
        now, address = self.clock(), address_of(request)
        worker = self._from(request, worker)
        if (wait := self.exits.wait(address, now=now)) is not None and not worker.signed:
            known = claims.offer(self.database, worker, now=now)
            if isinstance(known, Offer) and known.assignment is None:
                minutes = plural(int(wait.total_seconds()) // 60 + 1, "minute")
                answer = self._notice("too many", status=429, minutes=minutes)
                answer.headers["Retry-After"] = str(int(wait.total_seconds()) + 1)
                return answer
        try:
            found = claims.claim(self.database, worker, batch=batch, now=now)
        except InputError:
            unsigned = self.campaign.settings.signed
            nobody = questions.LandingVisitor(fields={}, worker=None, unsigned=unsigned)
            return self._offer(nobody, request, problem=self._no_worker)
        if isinstance(found, Assignment):
            addresses = self._addresses(found.id)
            return go_to(addresses.item(found.first_open or found.items))
        if found.why == "changed":
            return self._offer(arrival, request, problem=_CHANGED)
        return self._no_task(found, arrival)

    @property
    def _no_worker(self) -> str:
        """Answer where nothing that can be a worker's id was entered."""
        label, meaning = questions.ask_worker(self.campaign.settings)
        asked = f"Please enter {label[0].lower()}{label[1:]} ({meaning})"
        return f"{asked}: at most {LONGEST_WORKER} characters."

    def _addresses(self, assignment: int) -> questions.Addresses:
        expires = self.clock() + timedelta(days=_TOKEN_DAYS)
        return questions.Addresses(self._signer.sign_owner(str(assignment), expires=expires))

    def _from(self, request: Request, worker: Worker | None) -> Worker:
        """Return who comes, with a digest of their network's address."""
        found = network_of(request)
        digest = hmac.new(self.campaign.key, b"network " + found.encode(), hashlib.sha256)
        origin = digest.hexdigest()[:_ORIGIN_DIGITS] if found else ""
        return replace(worker or Worker(platform_id=""), origin=origin)

    def _offer(
        self, arrival: questions.LandingVisitor, request: Request, *, problem: str = ""
    ) -> Response:
        """The landing page, for who comes."""
        if arrival.unsigned:
            return self._notice("unsigned", status=403)
        asks = arrival.worker is None and self._platform == "link"
        if arrival.worker is None and not arrival.preview and not asks:
            return self._notice("unknown", status=400)
        comes = self._from(request, arrival.worker)
        found = claims.offer(self.database, comes, now=self.clock())
        if isinstance(found, NoTask):
            return self._no_task(found, arrival)
        settings = found.settings
        return self._respond(
            "consent",
            settings,
            status=422 if problem else 200,
            title="Before you begin",
            offer=found,
            paragraphs=questions.split_paragraphs(settings.consent),
            action=f"/j/{self.campaign.code}/consent",
            fields=arrival.fields,
            asks=questions.ask_worker(settings) if asks else None,
            preview=arrival.preview,
            problem=problem,
            **self._last_end(arrival if found.assignment is None else None),
        )

    def _no_task(self, found: NoTask, arrival: questions.LandingVisitor) -> Response:
        if found.why == "paused" and organiser.uncounted_pay(self.database).is_spent:
            _LOG.warning("a judge got no task: those that do not count earned too much; see /admin")
        again = f"/j/{self.campaign.code}?{urlencode(arrival.fields)}"
        return self._respond(
            "no-task",
            found.settings,
            status=403 if found.why == "barred" else 200,
            title=questions.TEXTS.no_task[found.why],
            found=found,
            **self._last_end(arrival),
            hand_in=None,
            link=(again, "Try again") if found.why in _LATER else None,
        )

    def _last_end(self, arrival: questions.LandingVisitor | None) -> dict[str, object]:
        """Return what a worker ended before, and its code, for who came by its own signed link.

        An id alone is known to others: they would read what its owner earned, and the code.
        """
        last, worker = None, arrival and arrival.worker
        if worker and worker.signed:
            last = assignments.last_ended(self.database, worker.platform_id)
        code = questions.completion_code(last, self.campaign.key) if last else ""
        return {"last": last, "code": code}

    def _open(self, token: str, fields: Mapping[str, str] | None = None) -> int:
        """The assignment of a token; a form has to bring the token of its address.

        Raises:
            TokenError: it is forged, the form's is another, or it is over.
        """
        if fields is not None and fields.get("token") != token:
            raise TokenError
        return int(self._signer.read_owner(token, now=self.clock()))

    def _check_code(self, code: str) -> None:
        if not secrets.compare_digest(code.encode(), self.campaign.code.encode()):
            raise HTTPException(404)

    def _ahead(self, held: Assignment, addresses: questions.Addresses, position: int) -> Response:
        link = _go_on(addresses, held.first_open or position)
        return self._notice("ahead", held, link=link, status=409, position=position)

    def _notice(
        self,
        which: str,
        held: Assignment | None = None,
        *,
        status: int,
        link: tuple[str, str] | None = None,
        **words: object,
    ) -> Response:
        """A page that says one thing; see `TEXTS`."""
        settings = self.campaign.settings
        if held is not None:
            settings = held.settings
            words |= {"answered": held.answered, "items": held.items}
        said = [one.format(**words) for one in questions.TEXTS.notices[which]]
        return guard.respond_briefly(
            questions.study_of(settings), *said, status=status, mturk=self._mturk, link=link
        )

    def _respond(
        self, template: str, settings: Settings, *, title: str, status: int = 200, **values: object
    ) -> HTMLResponse:
        study, mturk = questions.study_of(settings), self._mturk
        return guard.respond(
            template, study, values, title=title, status=status, mturk=mturk, **questions.WORDS
        )

    @property
    def _platform(self) -> Platform:
        return self.campaign.settings.platform

    @property
    def _mturk(self) -> bool:
        return self._platform == "mturk"

    @property
    def _signer(self) -> PageSigner:
        return PageSigner(key=self.campaign.key, pages="judging")


def _go_on(addresses: questions.Addresses, position: int) -> tuple[str, str]:
    return addresses.item(position), f"Continue with question {position}"


def judging_routes(judging: Judging) -> APIRouter:
    """The addresses of the judging pages: `/j/CODE` and `/a/TOKEN/…`."""
    router = APIRouter(default_response_class=HTMLResponse)
    router.get("/")(judging.start)
    router.get("/j/{code}")(judging.landing)
    router.post("/j/{code}/consent")(judging.consent)
    router.get("/a/{token}/item/{position}")(judging.item)
    router.post("/a/{token}/item/{position}")(judging.answer)
    router.post("/a/{token}/item/{position}/keep")(judging.extend)
    router.get("/a/{token}/exit")(judging.stop)
    router.post("/a/{token}/exit")(judging.stopped)
    router.get("/a/{token}/done")(judging.done)
    return router


def utc_now() -> datetime:
    """The time, UTC."""
    return datetime.now(UTC)


def make_app(
    database: Database,
    *,
    clock: Callable[[], datetime] = utc_now,
    routers: Iterable[APIRouter] = (),
    mounts: Mapping[str, ASGIApp] | None = None,
) -> FastAPI:
    """The pages of the campaign that a database holds.

    Args:
        database: open; who opened it closes it.
        clock: the time, UTC.
        routers: further pages, as those of the organiser.
        mounts: applications that answer below an address.

    Raises:
        DatabaseError: code `database-empty`: no campaign was loaded yet; or the database is gone.
    """
    campaign = campaigns.read_campaign(database)
    judging = Judging(database=database, campaign=campaign, clock=clock)
    return make_application(
        questions.study_of(campaign.settings),
        (judging_routes(judging), *routers),
        mounts=mounts,
        mturk=campaign.settings.platform == "mturk",
        is_missing=lambda error: (
            isinstance(error, DatabaseError) and error.code == "unknown-assignment"
        ),
    )
