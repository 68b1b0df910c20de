"""Pages of a team: its invitation, its token, its submissions, the form that takes sealed files.

A cookie holds the session; each form brings back a token of it, and forms of other sites are
refused. No page has a script, and all of them work without one.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from heldout.database.database import Database
from heldout.errors import InputError, Problem, plural
from heldout.intake import api, service, teams
from heldout.intake.sign_in import Provider, SignIn, new_client, new_flow, read_flow, sign_flow
from heldout.web import guard, health, sessions
from heldout.web.forms import Form, go_to, network_of, read_count, refuse_elsewhere
from heldout.web.pages import render_template

UPLOAD = "/upload"
"""Where sealed files are sent by a form."""

_COOKIE = "heldout-team"
_FLOW_COOKIE = "heldout-sign-in"
_FLOW_SECONDS = 600
_ROWS = 50
_WRONG = "This is no token of a team. It may have been replaced by a newer one."
_UNTIED = (
    "No team knows this account. Sign in with the team's token first, and add the account on the "
    "team's page."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamVisitor:
    """Somebody of a team at a page."""

    team: teams.Team
    cookie: str

    @property
    def form_token(self) -> str:
        """What each form of the session has to send back."""
        return _form_token(self.cookie)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The pages of one intake."""

    intake: service.Intake

    @property
    def database(self) -> Database:
        """The intake's."""
        return self.intake.store.database

    def join_page(self, code: str) -> Response:
        """The invitation."""
        return self._join(code)

    def join(self, request: Request, code: str, fields: Form) -> Response:
        """Make the team, and show its token once."""
        refuse_elsewhere(request)
        if not _is_form_token(code, fields.get("form_token", "")):
            raise HTTPException(403)
        name, mail = fields.get("team", ""), fields.get("mail", "")
        try:
            _, token = self.intake.join(code, name=name, mail=mail)
        except InputError as error:
            if error.code.startswith("invitation"):
                return self._no_invitation(error)
            return self._join(code, team=name, mail=mail, problem=error)
        return self._show_token(request, token)

    def sign_in_page(self) -> Response:
        """Ask for the token."""
        return self._sign_in()

    def sign_in(self, request: Request, fields: Form) -> Response:
        """Open a session; wrong tokens slow down who sends them, and nobody who has a right one."""
        refuse_elsewhere(request)
        session = self.intake.open_session(fields.get("token", "").strip())
        if session is not None:
            return self._enter_as(request, session, go_to("/account"))
        address, now = network_of(request), self.intake.clock()
        wait = self.intake.attempts.wait(address, now=now)
        if wait is not None:
            minutes = plural(int(wait.total_seconds()) // 60 + 1, "minute")
            text = f"Too many tries. Try again in {minutes}."
            answer = self._sign_in(text, status=429, code="too-many-tries")
            answer.headers["Retry-After"] = str(int(wait.total_seconds()) + 1)
            return answer
        self.intake.attempts.note(address, now=now)
        return self._sign_in(_WRONG, status=403, code="team-token")

    def sign_out(self, request: Request, fields: Form) -> Response:
        """End the session."""
        entered = self._enter(request, fields)
        teams.close_session(self.database, entered.cookie, now=self.intake.clock())
        left = go_to("/sign-in")
        left.delete_cookie(_COOKIE, path="/", httponly=True, samesite="lax")
        return left

    def account(self, request: Request) -> Response:
        """The team's submissions."""
        entered = self._enter(request)
        start = read_count(request.query_params.get("start", "")) or 0
        return self._account(entered, start=start)

    def new_token(self, request: Request, fields: Form) -> Response:
        """Replace the token; every session and every added account ends with the old one."""
        entered = self._enter(request, fields)
        try:
            token = self.intake.new_token(entered.team, entered.cookie)
        except InputError as error:  # another request has ended the session
            return self._sign_in(_say(error), status=403, code=error.code)
        return self._show_token(request, token)

    def begin_flow(self, request: Request, provider: str, fields: Form) -> Response:
        """Go to a provider, to sign in or to add an account to the team."""
        ties = request.url.path.startswith("/account/")
        if ties:
            self._enter(request, fields)
        else:
            refuse_elsewhere(request)
        chosen = self._provider(provider)
        flow = new_flow(chosen, ties=ties)
        with new_client() as client:
            address = self._reach(chosen, client).address(flow)
        answer = go_to(address)
        answer.set_cookie(
            _FLOW_COOKIE,
            sign_flow(flow, key=self.intake.key),
            max_age=_FLOW_SECONDS,
            path="/sign-in",
            secure=_is_secure(request),
            httponly=True,
            samesite="lax",
        )
        return answer

    def end_flow(self, request: Request, provider: str) -> Response:
        """Somebody comes back from a provider."""
        flow = read_flow(request.cookies.get(_FLOW_COOKIE, ""), key=self.intake.key)
        chosen = self._provider(provider)
        if flow is None or flow.provider != chosen.key:
            return self._sign_in("This sign-in took too long. Begin again.", status=403)
        try:
            with new_client() as client:
                person = self._reach(chosen, client).subject(flow, dict(request.query_params))
        except InputError as error:
            answer = self._sign_in(_say(error), status=403, code=error.code)
        else:
            answer = self._arrive(request, chosen, person, ties=flow.ties)
        answer.delete_cookie(_FLOW_COOKIE, path="/sign-in", httponly=True, samesite="lax")
        return answer

    def upload_page(self, request: Request) -> Response:
        """The form that takes sealed files."""
        return self._upload_form(self._enter(request))

    async def upload(self, request: Request) -> Response:
        """Take the files of a form."""
        entered = await run_in_threadpool(self._enter, request, request.query_params)
        try:
            new, upload = await self.intake.take_form(entered.team, request)
        except InputError as error:
            return self._refuse(entered, error.problems[0])
        what = "registration" if upload.kind == "registration" else "submission"
        return self._page(
            "receipt",
            f"Your {what} is here" if new else "These files are here already",
            status=201 if new else 200,
            upload=upload,
            known=not new,
            received=f"{upload.completed:%d %B %Y, %H:%M:%S} UTC",
        )

    def _arrive(self, request: Request, provider: Provider, person: str, *, ties: bool) -> Response:
        """Tie a person to the team that is signed in, or open the person's team."""
        if ties:
            entered = self._enter(request)
            try:
                who, now = (entered.team.id, provider.key, person), self.intake.clock()
                teams.link_identity(self.database, *who, now=now, session=entered.cookie)
            except InputError as error:
                return self._account(entered, done=_say(error), code=error.code)
            done = f"You can sign in with {provider.title} from now on."
            return self._account(entered, done=done)
        session = self.intake.open_session((provider.key, person))
        if session is None:
            return self._sign_in(_UNTIED, status=403)
        return self._enter_as(request, session, go_to("/account"))

    def _enter(self, request: Request, fields: Mapping[str, str] | None = None) -> TeamVisitor:
        """Return who is there; a form has to be one of the session's own.

        Raises:
            HTTPException: 303 to the sign-in; 403 the form is another's.
        """
        cookie = request.cookies.get(_COOKIE, "")
        team = self.intake.team_of_session(cookie) if cookie else None
        if team is None:
            raise HTTPException(303, headers={"Location": "/sign-in"})
        if fields is not None:
            refuse_elsewhere(request)
            if not _is_form_token(cookie, fields.get("form_token", "")):
                raise HTTPException(403)
        return TeamVisitor(team=team, cookie=cookie)

    def _enter_as(self, request: Request, session: str, answer: Response) -> Response:
        answer.set_cookie(
            _COOKIE,
            session,
            max_age=int(sessions.SESSION.total_seconds()),
            path="/",
            secure=_is_secure(request),
            httponly=True,
            samesite="lax",  # a person who comes back from a provider has to be known
        )
        return answer

    def _show_token(self, request: Request, token: str) -> Response:
        shown = self._page("token", "Your team's token", token=token, root=self.intake.root)
        session = self.intake.open_session(token)
        return shown if session is None else self._enter_as(request, session, shown)

    def _join(
        self, code: str, *, team: str = "", mail: str = "", problem: InputError | None = None
    ) -> Response:
        try:
            invitation = teams.find_invitation(self.database, code, now=self.intake.clock())
        except InputError as error:
            return self._no_invitation(error)
        team_id = invitation.team
        return self._page(
            "join",
            f"Take part in {self.intake.study.name}",
            status=200 if problem is None else 422,
            code="" if problem is None else problem.code,
            until=_day(invitation.expires),
            action=f"/join/{code}",
            form_token=_form_token(code),
            known="" if team_id is None else teams.get_team(self.database, team_id).name,
            team=team,
            mail=mail,
            problem="" if problem is None else _say(problem),
        )

    def _no_invitation(self, error: InputError) -> Response:
        return self._sign_in(_say(error), status=service.status_of(error.code)[0], code=error.code)

    def _sign_in(self, problem: str = "", **answer: Any) -> Response:
        title, providers = "Sign in for your team", self.intake.providers
        page = self._page("sign-in", title, problem=problem, providers=providers, **answer)
        return self._leading_away(page)

    def _leading_away(self, answer: Response) -> Response:
        """A page whose forms end at a provider: browsers follow no form to a site unnamed."""
        forms = [one.origin for one in self.intake.providers]
        answer.headers["Content-Security-Policy"] = guard.content_policy(forms=forms)
        return answer

    def _account(
        self, entered: TeamVisitor, *, start: int = 0, done: str = "", code: str = ""
    ) -> Response:
        found = self.intake.overview(entered.team)
        rows, after = found.submissions[start : start + _ROWS], start + _ROWS
        page = self._page(
            "account",
            entered.team.name,
            code=code,
            found=found,
            now=self.intake.clock(),
            submissions=rows,
            more=f"/account?start={after}" if after < len(found.submissions) else "",
            root=self.intake.root,
            providers=self.intake.providers,
            tied=teams.list_providers(self.database, entered.team.id),
            form_token=entered.form_token,
            done=done,
        )
        return self._leading_away(page)

    def _upload_form(
        self, entered: TeamVisitor, problem: Problem | None = None, *, status: int = 200
    ) -> Response:
        return self._page(
            "upload",
            "Send a sealed submission",
            status=status,
            action=f"{UPLOAD}?form_token={entered.form_token}",
            names=tuple(f"yyyymmdd-NAME{ending}" for ending in self.intake.store.folder.endings),
            most=_in_words(self.intake.store.folder.limits.file_bytes),
            form_token=entered.form_token,
            problem=problem,
        )

    def _refuse(self, entered: TeamVisitor, problem: Problem) -> Response:
        status, headers = service.status_of(problem.code)
        answer = self._upload_form(entered, problem, status=status)
        answer.headers.update({**headers, health.ERROR_CODE: problem.code})
        return answer

    def _page(
        self, name: str, title: str, *, status: int = 200, code: str = "", **fields: object
    ) -> HTMLResponse:
        """Return a page; its template in `web/templates/intake` says which fields it shows."""
        page = {"study": self.intake.study, "title": title, **fields}
        headers = {health.ERROR_CODE: code} if code else None
        return HTMLResponse(render_template(f"intake/{name}.html", page), status, headers)

    def _provider(self, key: str) -> Provider:
        found = next((one for one in self.intake.providers if one.key == key), None)
        if found is None:
            raise HTTPException(404)
        return found

    def _reach(self, provider: Provider, client: httpx2.Client) -> SignIn:
        back = f"{self.intake.root}/sign-in/{provider.key}/back"
        return SignIn(provider=provider, client=client, back=back)


def public_routes(intake: service.Intake) -> APIRouter:
    """Return the address that everybody may use: the board's public files."""
    router = APIRouter()

    @router.get("/board.zip")
    def board_zip(request: Request) -> Response:
        found = intake.board.view().archive()
        name = {"Content-Disposition": 'attachment; filename="board.zip"'}
        return api.shared_answer(request, found.data, found.etag, "application/zip", **name)

    return router


def team_routes(intake: service.Intake) -> APIRouter:
    """The addresses of a team's pages."""
    pages = Pages(intake=intake)
    router = APIRouter(default_response_class=HTMLResponse)
    router.get("/join/{code}")(pages.join_page)
    router.post("/join/{code}")(pages.join)
    router.get("/sign-in")(pages.sign_in_page)
    router.post("/sign-in")(pages.sign_in)
    router.post("/sign-out")(pages.sign_out)
    router.get("/account")(pages.account)
    router.post("/account/token")(pages.new_token)
    router.post("/account/{provider}")(pages.begin_flow)
    router.post("/sign-in/{provider}")(pages.begin_flow)
    router.get("/sign-in/{provider}/back")(pages.end_flow)
    router.get(UPLOAD)(pages.upload_page)
    router.post(UPLOAD)(pages.upload)
    return router


def _form_token(secret: str) -> str:
    """A token of whoever has the cookie, or the invitation; it says nothing of either."""
    return hmac.new(secret.encode(), b"heldout form", hashlib.sha256).hexdigest()


def _is_form_token(secret: str, text: str) -> bool:
    return text.isascii() and hmac.compare_digest(_form_token(secret), text)


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https"


def _say(error: InputError) -> str:
    problem = error.problems[0]
    text = f"Found {problem.found}; expected {problem.expected}."
    return f"{text} {problem.hint[:1].upper()}{problem.hint[1:]}." if problem.hint else text


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def _in_words(size: int) -> str:
    """`1 GiB`, `20 KiB`."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << power:
            return f"{size / (1 << power):,.3g} {unit}"
    return f"{size:,} bytes"
