"""The organiser's pages: switch, price and progress, quality, pairs, workers, payments, the log.

Signing in is required, each form brings back its session's token, and forms of other sites are
refused. Nothing here reaches keys of a board or held-out labels. What the pages say is in the
templates.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import urlencode

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from heldout.database.database import Database
from heldout.database.times import format_time
from heldout.errors import plural
from heldout.judging.campaign.judgments import REASONS, counted
from heldout.judging.campaign.settings import (
    Money,
    Settings,
    describe_hourly,
    format_money,
    format_payments,
    totals,
)
from heldout.judging.database import organiser
from heldout.judging.database.campaigns import Campaign, read_campaign
from heldout.judging.database.organiser import AssignmentOverview, BatchProgress
from heldout.judging.platforms.links import completion_address, read_code, study_link
from heldout.judging.studies import judges
from heldout.web.forms import Form, address_of, go_to, read_count, refuse_elsewhere
from heldout.web.pages import render_template
from heldout.web.sessions import COOKIE, SESSION, Attempts, SessionSigner

PAGE = 100
"""Rows of a page."""

_SEED = 2021
_DRAWS = 1000
_SOON = timedelta(minutes=10)
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """An organiser at a page.

    Attributes:
        campaign: the campaign as it stands.
        form_token: for the forms of the page.
    """

    campaign: Campaign
    form_token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Admin:
    """The pages of one campaign's organiser.

    Attributes:
        database: the campaign's.
        token: what is asked for at the sign-in; see `check_token`.
        clock: the time, UTC.
        attempts: failed sign-ins.
        quick: of so many judgments the whole page of quality is computed at once.
    """

    database: Database
    token: str
    clock: Callable[[], datetime]
    attempts: Attempts = field(default_factory=Attempts)
    quick: int = 2_000

    def sign_in_page(self) -> Response:
        """Ask for the token."""
        return self._ask_token()

    def sign_in(self, request: Request, fields: Form) -> Response:
        """Open a session."""
        refuse_elsewhere(request)
        now, address = self.clock(), address_of(request)
        wait = self.attempts.wait(address, now=now)
        if wait is not None:
            minutes = plural(int(wait.total_seconds()) // 60 + 1, "minute")
            answer = self._ask_token(f"Too many tries. Try again in {minutes}.", status=429)
            answer.headers["Retry-After"] = str(int(wait.total_seconds()) + 1)
            return answer
        signer = self._signer(read_campaign(self.database))
        sign_outs = organiser.count_sign_outs(self.database)
        cookie = signer.open(fields.get("token", ""), sign_outs=sign_outs, now=now)
        if cookie is None:
            self.attempts.note(address, now=now)
            return self._ask_token("This is not the token.", status=403)
        opened = go_to("/admin")
        opened.set_cookie(
            COOKIE,
            cookie,
            max_age=int(SESSION.total_seconds()),
            path="/admin",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        return opened

    def sign_out(self, request: Request, fields: Form) -> Response:
        """End every session."""
        self._enter(request, fields)
        organiser.note_sign_out(self.database, now=self.clock())
        left = go_to("/admin/sign-in")
        left.delete_cookie(COOKIE, path="/admin", httponly=True, samesite="strict")
        return left

    def overview(self, request: Request) -> Response:
        """The switch, price, progress and leases."""
        entered = self._enter(request)
        every, terms = organiser.assignments(self.database), entered.campaign.batches
        batches = organiser.progress(self.database)
        return _page(
            entered,
            "overview",
            state=organiser.read_launch_state(self.database),
            batches=batches,
            terms=terms,
            price=_price(batches, terms),
            every=every,
            held=sorted(
                (one for one in every if one.state == "consented"),
                key=lambda one: (one.lease_until, one.assignment),
            ),
            uncounted=organiser.uncounted_pay(self.database),
            link=_link(str(request.base_url), entered.campaign),
            now=self.clock(),
        )

    def launch(self, request: Request, fields: Form) -> Response:
        """Let tasks be handed out; the price is written beside it."""
        campaign = self._enter(request, fields).campaign
        price = _price(organiser.progress(self.database), campaign.batches)
        note = format_money(price, campaign.settings.currency)
        organiser.set_launch(self.database, "launched", now=self.clock(), text=note)
        return go_to("/admin")

    def pause(self, request: Request, fields: Form) -> Response:
        """Hand out no more tasks."""
        self._enter(request, fields)
        organiser.set_launch(self.database, "paused", now=self.clock())
        return go_to("/admin")

    def quality(self, request: Request) -> Response:
        """Tests, agreement, sides, time; what takes seconds only where it is asked for."""
        entered = self._enter(request)
        settings, found = entered.campaign.settings, organiser.judgments(self.database)
        effects = len(found) <= self.quick or request.query_params.get("effects") == "yes"
        votes = counted(found, exclusion=settings.excludes, failures=settings.failures)
        # The same draws at each visit: a page that is loaded again says the same
        rng = np.random.default_rng(_SEED)
        docs = organiser.passage_lengths(self.database) if effects else {}
        shown = {(one.query, doc) for one in votes for doc in (one.left, one.right)} if docs else ()
        lengths = {slot: docs[slot[1]] for slot in shown}
        return _page(
            entered,
            "quality",
            judgments=len(found),
            effects=effects,
            quality=judges.judging_quality(found, settings),
            agreement=judges.judge_agreement(votes, rng, trials=_DRAWS if effects else 0),
            bias=judges.measure_bias(votes, lengths=lengths, effects=effects),
        )

    def pairs(self, request: Request) -> Response:
        """Pairs with an answer."""
        entered, query = self._enter(request), request.query_params.get("query", "").strip()
        answers: dict[tuple[str, str, str], Counter[str | None]] = {}
        for one in organiser.judgments(self.database):
            if one.answer is None and one.left and query in ("", one.query):
                answers.setdefault(one.pair, Counter())[one.preferred] += 1
        start = _start(request)
        return _page(
            entered, "pairs", query=query, answers=answers, pairs=sorted(answers), start=start
        )

    def pair(self, request: Request) -> Response:
        """The texts of a pair, and every answer that was ever given to it."""
        entered = self._enter(request)
        query, a, b = (request.query_params.get(name, "") for name in ("query", "a", "b"))
        texts = organiser.pair_texts(self.database, query, a, b)
        if texts is None or a == b:
            raise HTTPException(404)
        every, settings = organiser.judgments(self.database), entered.campaign.settings
        return _page(
            entered,
            "pair",
            texts=tuple(zip(("Query", a, b), texts, strict=True)),
            history=[one for one in every if one.pair == (query, min(a, b), max(a, b))],
            counting={*counted(every, exclusion=settings.excludes, failures=settings.failures)},
        )

    def workers(self, request: Request) -> Response:
        """Every worker by pseudonym; who is barred, and why."""
        entered, workers = self._enter(request), dict[str, list[AssignmentOverview]]()
        for one in organiser.assignments(self.database):
            workers.setdefault(one.worker, []).append(one)
        return _page(entered, "workers", workers=[*workers.values()])

    def payments(self, request: Request) -> Response:
        """Return what is due and what was paid; whose code is that?"""
        entered, asked = self._enter(request), request.query_params.get("code", "")
        number = read_code(entered.campaign.key, asked)
        every = organiser.assignments(self.database) if number is not None else ()
        payments, at = organiser.list_payments(self.database), request.query_params.get("marked")
        due = [one for one in payments if not one.paid_at]
        return _page(
            entered,
            "payments",
            totals=totals(payments),
            due=due,
            made=len(payments) - len(due),
            asked=asked,
            found=next((one for one in every if one.assignment == number), None),
            done=sum(one.paid_at == at for one in payments) if at else None,
        )

    def payments_file(self, request: Request) -> Response:
        """All payments as CSV."""
        self._enter(request)
        return Response(
            format_payments(organiser.list_payments(self.database)),
            media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="payments.csv"'},
        )

    def mark_paid(self, request: Request, fields: Form) -> Response:
        """Record payments as made, by their keys; those that were recorded before stay."""
        self._enter(request, fields)
        keys, now = set(fields.get("keys", "").split()), self.clock()
        for due in organiser.payments_due(self.database):
            if due.key in keys:
                organiser.record_payment(self.database, due, now=now)
        return go_to(f"/admin/payments?{urlencode({'marked': format_time(now)})}")

    def log(self, request: Request) -> Response:
        """Return what happened, the newest first."""
        entered, found = self._enter(request), organiser.events(self.database)[::-1]
        return _page(entered, "log", events=found, start=_start(request))

    def _enter(self, request: Request, fields: Mapping[str, str] | None = None) -> Entered:
        """Return who is there; a form has to be one of the session's own.

        Raises:
            HTTPException: 303 to the sign-in; 403 the form is another's.
        """
        campaign = read_campaign(self.database)
        signer = self._signer(campaign)
        cookie = request.cookies.get(COOKIE, "")
        sign_outs = organiser.count_sign_outs(self.database)
        session = signer.read(cookie, sign_outs=sign_outs, now=self.clock())
        if session is None:
            raise HTTPException(303, headers={"Location": "/admin/sign-in"})
        if fields is not None:
            refuse_elsewhere(request)
            if not signer.is_form_token(session, fields.get("form_token", "")):
                raise HTTPException(403)
        return Entered(campaign=campaign, form_token=signer.form_token(session))

    def _ask_token(self, problem: str = "", *, status: int = 200) -> HTMLResponse:
        settings = read_campaign(self.database).settings
        text = render_admin("sign-in", settings=settings, problem=problem)
        return HTMLResponse(text, status_code=status)

    def _signer(self, campaign: Campaign) -> SessionSigner:
        return SessionSigner(key=campaign.key, token=self.token)


def admin_routes(admin: Admin) -> APIRouter:
    """The addresses of the organiser's pages: `/admin…`."""
    router = APIRouter(prefix="/admin", default_response_class=HTMLResponse)
    router.get("/sign-in")(admin.sign_in_page)
    router.post("/sign-in")(admin.sign_in)
    router.post("/sign-out")(admin.sign_out)
    router.get("")(admin.overview)
    router.post("/launch")(admin.launch)
    router.post("/pause")(admin.pause)
    router.get("/quality")(admin.quality)
    router.get("/pairs")(admin.pairs)
    router.get("/pair")(admin.pair)
    router.get("/workers")(admin.workers)
    router.get("/payments")(admin.payments)
    router.post("/payments")(admin.mark_paid)
    router.get("/payments.csv")(admin.payments_file)
    router.get("/log")(admin.log)
    return router


def render_admin(name: str, *, settings: Settings, **values: object) -> str:
    """Return one of the organiser's pages as HTML.

    Args:
        name: of its template.
        settings: of the campaign.
        values: what else the template knows.
    """
    return render_template(
        f"admin/{name}.html",
        settings=settings,
        money=partial(format_money, currency=settings.currency),
        page=PAGE,
        **_WORDS,
        **values,
    )


def _page(entered: Entered, name: str, **values: object) -> HTMLResponse:
    settings, form_token = entered.campaign.settings, entered.form_token
    return HTMLResponse(render_admin(name, settings=settings, form_token=form_token, **values))


def _price(batches: Sequence[BatchProgress], terms: Mapping[int, Settings]) -> Money:
    """The price of every planned task, reward and fee."""
    return sum(one.tasks * terms[one.batch].task_price for one in batches if one.batch in terms)


def _link(root: str, campaign: Campaign) -> str:
    if campaign.settings.signed:
        return "one for each judge: `heldout prefer links` writes them"
    return study_link(root, campaign.code, campaign.settings.platform)


def _start(request: Request) -> int:
    return read_count(request.query_params.get("start", "")) or 0


# How the organiser's pages say times, shares and sums.


def _percent(share: float | None) -> str:
    """A share as `34.3%`; a dash where there is none."""
    return "–" if share is None else f"{share:.1%}"


def _amount(hundredths: Money) -> str:
    """An amount without its currency: `0.77`."""
    return f"{hundredths // 100:,}.{hundredths % 100:02}"


def _moment(at: datetime) -> str:
    """A time as `21 Nov 14:02`, UTC."""
    return f"{at.astimezone(UTC):%d %b %H:%M}".lstrip("0")


def _ago(span: timedelta) -> str:
    """A span as a person says it: `12 minutes`, `3 hours`, `2 days`."""
    whole = max(0, int(span.total_seconds()))
    if whole < _MINUTE:
        return "less than a minute"
    if whole < _HOUR:
        return plural(whole // _MINUTE, "minute")
    return plural(whole // _HOUR, "hour") if whole < 2 * _DAY else plural(whole // _DAY, "day")


def _left(span: timedelta) -> str:
    if span < timedelta(0):
        return f"late by {_ago(-span)}"
    return f"{_ago(span)} left, ends soon" if span < _SOON else f"{_ago(span)} left"


def _seconds(value: float) -> str:
    """Seconds as `8.4 s` or `3 min 05 s`."""
    if value < 2 * _MINUTE:
        return f"{value:.1f} s"
    return f"{int(value) // _MINUTE} min {int(value) % _MINUTE:02} s"


_WORDS: Mapping[str, object] = {
    "plural": plural,
    "percent": _percent,
    "amount": _amount,
    "moment": _moment,
    "ago": _ago,
    "left": _left,
    "seconds": _seconds,
    "describe_hourly": describe_hourly,
    "describe_effect": judges.describe_effect,
    "completion_address": completion_address,
    "expected_alpha": judges.expected_alpha,
    "study": judges.STUDY_ACCURACY,
    "reasons": REASONS,
}
"""What every template of the organiser knows."""
