"""The organiser's pages: switch, price and progress, quality, pairs, workers, payments, the log.

Signing in is required, each form brings back its session's token, and forms of other sites are
refused. Nothing here reaches keys of a board or held-out labels.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from starlette.exceptions import HTTPException

from heldout.database.database import Database
from heldout.database.times import format_time
from heldout.errors import plural
from heldout.judging.campaign.payments import format_payments
from heldout.judging.campaign.settings import format_money
from heldout.judging.database import organiser, overviews
from heldout.judging.database import overviews as readings
from heldout.judging.database.campaigns import Campaign, read_campaign
from heldout.judging.database.organiser import list_payments, payments_due, record_payment
from heldout.judging.database.overviews import progress, uncounted_pay
from heldout.judging.pages import admin_quality, admin_views
from heldout.judging.pages import admin_views as admin_payments
from heldout.judging.pages.admin_pages import AdminPage, Section, SignInPage, render_admin
from heldout.judging.pages.admin_quality import LastResult, measure_quality, more_section
from heldout.judging.platforms.links import read_code, study_link
from heldout.web.forms import Form, address_of, go_to, read_count, refuse_elsewhere
from heldout.web.sessions import COOKIE, SESSION, Attempts, Session, SessionSigner

_WRONG = "This is not the token."


@dataclass(frozen=True, slots=True, kw_only=True)
class Entered:
    """An organiser at a page.

    Attributes:
        session: theirs.
        campaign: the campaign as it stands.
        form_token: for the forms of the page.
    """

    session: Session
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
        quick: of so many judgments the whole page of quality is worked out at once.
        last_quality: that page as it was last worked out.
        last_first: what of it takes no time, as it was last worked out.
    """

    database: Database
    token: str
    clock: Callable[[], datetime]
    attempts: Attempts = field(default_factory=Attempts)
    quick: int = 2_000
    last_quality: LastResult[tuple[Section, ...]] = field(default_factory=LastResult)
    last_first: LastResult[tuple[Section, ...]] = field(default_factory=LastResult)

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
            return self._ask_token(_WRONG, status=403)
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
        campaign, now = entered.campaign, self.clock()
        batches = progress(self.database)
        every = overviews.assignments(self.database)
        link = _link(str(request.base_url), campaign)
        price = admin_views.batch_price(batches, campaign.batches)
        state = organiser.read_launch_state(self.database)
        uncounted = uncounted_pay(self.database)
        sections = (
            admin_views.launch_section(state, price, campaign.settings, link, uncounted=uncounted),
            admin_views.progress_section(batches),
            admin_views.lease_section(
                organiser.leases(self.database),
                {one.assignment: one.items for one in every},
                now=now,
            ),
            *(
                (admin_views.price_section(batches, campaign.batches, every, uncounted),)
                if price
                else ()
            ),
        )
        return _page(entered, "Overview", "/admin", sections)

    def launch(self, request: Request, fields: Form) -> Response:
        """Let tasks be handed out; the price is written beside it."""
        campaign = self._enter(request, fields).campaign
        price = admin_views.batch_price(progress(self.database), campaign.batches)
        note = format_money(price, campaign.settings.currency)
        organiser.set_launch(self.database, "launched", now=self.clock(), text=note)
        return go_to("/admin")

    def pause(self, request: Request, fields: Form) -> Response:
        """Hand out no more tasks."""
        self._enter(request, fields)
        organiser.set_launch(self.database, "paused", now=self.clock())
        return go_to("/admin")

    def quality(self, request: Request) -> Response:
        """Tests, agreement, sides, time."""
        entered = self._enter(request)
        state, settings = readings.judged_so_far(self.database), entered.campaign.settings
        asked = state.judgments <= self.quick or request.query_params.get("effects") == "yes"
        if asked or self.last_quality.has(state):
            sections = self.last_quality.get(
                state, lambda: measure_quality(self.database, settings, effects=True)
            )
        else:
            first = self.last_first.get(
                state, lambda: measure_quality(self.database, settings, effects=False)
            )
            sections = (more_section(state.judgments), *first)
        return _page(entered, "Quality", "/admin/quality", sections)

    def pairs(self, request: Request) -> Response:
        """Pairs with an answer."""
        entered = self._enter(request)
        query = request.query_params.get("query", "").strip()
        found = readings.judgments(self.database)
        sections = admin_quality.pairs_sections(found, query=query, start=_start(request))
        return _page(entered, "Pairs", "/admin/pairs", sections)

    def pair(self, request: Request) -> Response:
        """The history of a pair."""
        entered = self._enter(request)
        query, a, b = (request.query_params.get(name, "") for name in ("query", "a", "b"))
        texts = organiser.pair_texts(self.database, query, a, b)
        if texts is None or a == b:
            raise HTTPException(404)
        history = readings.pair_history(self.database, query, a, b)
        sections = admin_quality.pair_sections((query, a, b), texts, history)
        return _page(entered, "A pair", "/admin/pairs", sections)

    def workers(self, request: Request) -> Response:
        """Every worker."""
        entered = self._enter(request)
        found = overviews.workers(self.database)
        sections = (admin_views.worker_section(found, entered.campaign.settings),)
        return _page(entered, "Workers", "/admin/workers", sections)

    def payments(self, request: Request) -> Response:
        """What is due and what was paid; whose code is that?"""
        entered = self._enter(request)
        campaign, asked = entered.campaign, request.query_params.get("code", "")
        number = read_code(campaign.key, asked)
        every = overviews.assignments(self.database) if number is not None else ()
        found = next((one for one in every if one.assignment == number), None)
        payments = list_payments(self.database)
        sections = (
            *admin_payments.payment_sections(payments, campaign.settings),
            admin_payments.code_section(asked, found),
        )
        at = request.query_params.get("marked", "")
        marked = sum(one.paid_at == at for one in payments)
        done = f"{plural(marked, 'payment')} marked as paid." if at else ""
        return _page(entered, "Payments", "/admin/payments", sections, done=done)

    def payments_file(self, request: Request) -> Response:
        """All payments as CSV."""
        self._enter(request)
        return Response(
            format_payments(list_payments(self.database)),
            media_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": 'attachment; filename="payments.csv"'},
        )

    def mark_paid(self, request: Request, fields: Form) -> Response:
        """Record payments as made, by their keys; those that were recorded before stay."""
        self._enter(request, fields)
        keys, now = set(fields.get("keys", "").split()), self.clock()
        for due in payments_due(self.database):
            if due.key in keys:
                record_payment(self.database, due, now=now)
        return go_to(f"/admin/payments?{urlencode({'marked': format_time(now)})}")

    def log(self, request: Request) -> Response:
        """What happened."""
        entered, start = self._enter(request), _start(request)
        found = readings.events(self.database)[::-1]
        shown = found[start : start + admin_views.PAGE]
        sections = (
            admin_views.log_section(shown, start, len(found)),
            *admin_views.pages_section("/admin/log?", start, len(found)),
        )
        return _page(entered, "Log", "/admin/log", sections)

    def _enter(self, request: Request, fields: Mapping[str, str] | None = None) -> Entered:
        """Who is there; a form has to be one of the session's own.

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
        return Entered(session=session, campaign=campaign, form_token=signer.form_token(session))

    def _ask_token(self, problem: str = "", *, status: int = 200) -> HTMLResponse:
        name = read_campaign(self.database).settings.name
        page = SignInPage(study=name, problem=problem)
        return HTMLResponse(render_admin(page), status_code=status)

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


def _page(
    entered: Entered, title: str, here: str, sections: tuple[Section, ...], *, done: str = ""
) -> HTMLResponse:
    settings = entered.campaign.settings
    page = AdminPage(
        study=settings.name,
        title=title,
        here=here,
        form_token=entered.form_token,
        sections=sections,
        done=done,
        language=settings.language,
    )
    return HTMLResponse(render_admin(page))


def _link(root: str, campaign: Campaign) -> str:
    if campaign.settings.signed:
        return "one for each judge: `heldout prefer links` writes them"
    return study_link(root, campaign.code, campaign.settings.platform)


def _start(request: Request) -> int:
    return read_count(request.query_params.get("start", "")) or 0
