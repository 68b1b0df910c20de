"""`heldout serve`: a campaign's and a board's pages over HTTP; `heldout invite`: who may join."""

import errno
import hashlib
import os
import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from heldout.cli.context import open_board
from heldout.cli.options import command
from heldout.cli.printing import answers, fill_facts, messages, print_facts, print_json
from heldout.envelope.bundle import file_names
from heldout.errors import InputError, SetupError, StoreError, printable, quote
from heldout.ids import SubmissionId
from heldout.judging.campaign.files import CampaignPath
from heldout.options import Json, Opt

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from heldout.database.database import Database
    from heldout.intake.board import PublicBoard
    from heldout.intake.service import Intake
    from heldout.intake.teams import Team
    from heldout.web.health import Check


# Can a server listen there? Asked before anything is loaded or said.


def check_port(host: str, port: int) -> None:
    """Try to listen.

    Args:
        host: name or address of this machine.
        port: there.

    Raises:
        SetupError: another program listens there, or nobody can.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            text = f"port {port} of {host} is in use; choose another with --port, as {port + 1}"
            raise SetupError(text) from None
        raise SetupError(f"cannot listen at {host}, port {port}: {error.strerror}") from None


# What every command that serves pages does: say what is missing, find its token, run.

_GRACE_SECONDS = 10


@contextmanager
def needs_web() -> Iterator[None]:
    """Import or use what the extra `web` brings.

    Raises:
        SetupError: it is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise SetupError(
            f"the pages need {error.name}, which is not installed; pip install 'heldout[web]'"
        ) from error


# What `heldout serve` needs to take submissions of teams, and how worker processes get it.
#
# Only the forms of names are taken from the envelope here, on the command line: the pages get
# texts and reach no key.


def find_token() -> tuple[str, list[tuple[str, str]]]:
    """Return the organiser's token, of the environment or a new one; and what is printed of it.

    One that was given is known, and logs are read by others: nothing is printed of it.

    Raises:
        SetupError: the one that was given is too short.
    """
    from heldout.web.sessions import check_token

    if given := os.environ.get(_TOKEN, ""):
        return check_token(given), []
    token = secrets.token_urlsafe(24)
    return token, [("token", token)]


UPLOADS = "HELDOUT_UPLOADS"
"""Name of the variable with the folder that takes uploads; not set where none are taken."""

BOARD = "HELDOUT_BOARD"
"""Name of the variable with the folder of the board that they are for."""

ROOT = "HELDOUT_ROOT"
"""Name of the variable with the address of the pages, as people outside know it."""

Uploads = Annotated[
    Path | None,
    Opt(
        "Folder for what teams send, which `heldout inbox --from` reads.",
        env=UPLOADS,
        path="folder",
        exists=True,
    ),
]
"""`--uploads`."""

Root = Annotated[
    str | None,
    Opt("Address of the pages, as https://board.example.", env=ROOT, metavar="URL"),
]
"""`--root`."""


def _intake_of(environ: Mapping[str, str], database: "Database | None" = None) -> "Intake | None":
    """The intake that the environment asks for; `None` where it asks for none.

    Args:
        environ: of the process.
        database: open, where the intake shares it with a campaign.

    Raises:
        SetupError: mail or a provider is configured wrongly.
        StoreError: the board or the database cannot be read.
    """
    folder = environ.get(UPLOADS, "")
    if not folder:
        return None
    from heldout.board.store.arrivals import is_team
    from heldout.intake import app, mail, sign_in

    board, uploads = Path(environ[BOARD]), Path(folder)
    processes = int(environ[_WORKERS])
    envelope = open_board(board).spec().envelope
    if database is None:
        database = app.intake_database(uploads, environ[_INTAKE_DATABASE], processes=processes)
    return app.make_intake(
        database,
        board=board,
        uploads=uploads,
        endings=file_names(envelope, SubmissionId("")).all,
        is_team=is_team,
        root=environ[ROOT],
        key=hashlib.sha256(b"heldout intake\n" + environ[_TOKEN].encode()).digest(),
        clock=lambda: datetime.now(UTC),
        mailer=mail.read_mailer(environ),
        providers=sign_in.read_providers(environ),
    )


_DATABASE = "DATABASE_URL"
_TOKEN = "HELDOUT_ADMIN_TOKEN"  # noqa: S105 - the variable's name
_INTAKE_DATABASE = "HELDOUT_INTAKE_DATABASE"
_WORKERS = "HELDOUT_SERVE_WORKERS"
_LOG_REQUESTS = "HELDOUT_LOG_REQUESTS"


@command
def serve(
    *,
    campaign: CampaignPath = Path(),
    url: Annotated[
        str | None,
        Opt(
            "Database: sqlite:///FILE or postgresql://… [campaign.sqlite, or DATABASE_URL].",
            names=("--database",),
            env=_DATABASE,
            metavar="URL",
        ),
    ] = None,
    host: Annotated[str, Opt("Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, Opt("Port to listen at.", least=1, most=65_535)] = 8000,
    workers: Annotated[
        int,
        Opt(
            "Processes; on PostgreSQL they share the server's max_connections, less 10.",
            least=1,
            most=64,
        ),
    ] = 1,
    paused: Annotated[
        bool, Opt("Hold the tasks back until the study is launched at /admin.")
    ] = False,
    proxy: Annotated[
        str | None,
        Opt(
            "Address of the reverse proxy whose X-Forwarded-For header is trusted [none].",
            metavar="ADDRESS",
        ),
    ] = None,
    log_requests: Annotated[
        bool,
        Opt("Print a line of JSON for each request: route, status, milliseconds, a random id."),
    ] = False,
    board: Annotated[
        Path | None,
        Opt(
            "Folder of the board whose teams send to --uploads; a clone follows its remote.",
            path="folder",
            exists=True,
            env=BOARD,
        ),
    ] = None,
    uploads: Uploads = None,
    root: Root = None,
) -> None:
    """Serve the judging pages of a campaign, or a board's pages for teams, until interrupted.

    What the campaign's directory has and the database has not, as new tasks, is loaded first; what
    people have seen already must not change. Without a campaign.toml and --board the database alone
    is served.

    With --board and --uploads, teams that `heldout invite` invited send their sealed files and see
    how far they have come, also where there is no campaign. GitHub, ORCID and mail are configured
    in the environment: docs/how-to/accept-uploads.md.

    The pages are plain HTTP; judges get no cookies. For people elsewhere, a server with a
    certificate has to stand in front; --proxy says from where it calls, so that wrong tokens are
    counted by who sent them. No address of a request is ever logged: it is a token.

    /health answers as long as the process does, /ready if database and folder can be used.

    \b
    Example:
      heldout serve campaign --port 8080
      heldout serve --board kb --uploads ../uploads --root https://board.example
    """
    if (board is None) != (uploads is None):
        raise click.UsageError("--board and --uploads go together")
    with needs_web():
        import uvicorn

        token, token_line = find_token()
        check_port(host, port)
        here = f"http://{host}:{port}"
        public = (root or here).rstrip("/")
        settings = {
            _TOKEN: token,
            _WORKERS: str(workers),
            UPLOADS: str(uploads.absolute()) if uploads else "",
            BOARD: str(board.absolute()) if board else "",
            ROOT: public,
            _INTAKE_DATABASE: url or "",
            _LOG_REQUESTS: "1" if log_requests else "",
        }
        # What is wrong is said before anything is served.
        intake = _intake_of({**os.environ, **settings})
        if intake is not None:
            intake.store.database.close()
        address, facts = _prepare(campaign, url, here, workers, paused=paused, alone=bool(uploads))
    facts += token_line if address else []
    facts += [("teams", f"{public}/sign-in, into {uploads}")] if uploads else []
    print_facts(messages(), [*facts, ("stop", "Ctrl+C")])
    # For the worker processes, which open everything themselves.
    os.environ.update({**settings, _DATABASE: address})
    uvicorn.run(
        "heldout.cli.serving:served_app",
        host=host,
        port=port,
        factory=True,
        workers=workers,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy or "",
        timeout_graceful_shutdown=_GRACE_SECONDS,
        access_log=False,
        server_header=False,
        log_level="warning",
    )


def served_app() -> "ASGIApp":
    """The application over the database that `DATABASE_URL` names, with what an operator asks."""
    from heldout.web.health import Readiness, Watched, check_folder, log_request, ready_route

    app, checks = _make_pages()
    if uploads := os.environ.get(UPLOADS):
        checks["uploads"] = partial(check_folder, Path(uploads))
    app.include_router(ready_route(Readiness(checks)))
    return Watched(app, log_request) if os.environ.get(_LOG_REQUESTS) else app


def _make_pages() -> "tuple[FastAPI, dict[str, Check]]":
    """The pages, and the checks of what they need."""
    from heldout.database.database import check_schemas
    from heldout.intake import app, tables
    from heldout.judging.database.tables import CAMPAIGN
    from heldout.judging.pages.admin import Admin, admin_routes
    from heldout.judging.pages.judge import make_app, utc_now

    database, shared = _open_databases(os.environ)
    intake = _intake_of(os.environ, database if shared else None)
    checks: dict[str, Check] = {}
    if intake is not None:
        app.start_worker(intake)
        checks["teams"] = partial(check_schemas, intake.store.database, tables.INTAKE)
        checks["board"] = partial(check_board, intake.board)
    if database is None:
        if intake is None:
            raise SetupError("there is nothing to serve: no campaign, and no --board")
        return app.make_intake_app(intake), checks
    admin = Admin(database=database, token=os.environ[_TOKEN], clock=utc_now)
    routers, mounts = ([], {}) if intake is None else app.intake_parts(intake)
    checks["database"] = partial(check_schemas, database, CAMPAIGN)
    return make_app(database, routers=[admin_routes(admin), *routers], mounts=mounts), checks


def _open_databases(environ: Mapping[str, str]) -> "tuple[Database | None, bool]":
    """Open the campaign's database, `None` without one; say whether the intake is in it too.

    One address is opened once: each process has its share of the server's connections once.
    """
    from heldout.database.database import open_database
    from heldout.intake.tables import INTAKE
    from heldout.judging.database.tables import CAMPAIGN

    url = environ[_DATABASE]
    if not url:
        return None, False
    shared = bool(environ.get(UPLOADS)) and url == environ[_INTAKE_DATABASE]
    schemas = (CAMPAIGN, INTAKE) if shared else (CAMPAIGN,)
    return open_database(url, *schemas, processes=int(environ[_WORKERS])), shared


def check_board(board: "PublicBoard") -> str:
    """Check whether the board can be read; a `StoreError` says why not."""
    board.view()
    return "ok"


def _prepare(
    campaign: Path, url: str | None, root: str, workers: int, *, paused: bool, alone: bool
) -> tuple[str, list[tuple[str, str]]]:
    """Load what is new; return the database's address, "" for none, and what is served of it.

    Args:
        campaign: its folder.
        url: of the database, `None` for the folder's.
        root: address of the pages.
        workers: processes that share the database.
        paused: hand out nothing before it is launched.
        alone: whether there is something to serve without a campaign.
    """
    import heldout.judging.pages.judge  # noqa: F401 - what is not installed is reported first
    from heldout.database.database import sqlite_url
    from heldout.judging.campaign.files import CampaignFolder
    from heldout.judging.campaign.settings import format_money
    from heldout.judging.database import campaigns, tables
    from heldout.judging.database.organiser import read_launch_state, set_launch, uncounted_pay
    from heldout.judging.platforms.links import study_link

    folder = CampaignFolder(campaign)
    has_files = folder.has("campaign.toml")
    if not has_files and alone:
        return "", []
    if url is None and not has_files:
        raise StoreError(f"{campaign} is no campaign; `heldout prefer pool` begins one")
    address, loaded = url or sqlite_url(folder.database.absolute()), None
    database = tables.open_database(address, processes=workers)
    try:
        if has_files:
            texts, now = (*folder.pools(), *folder.challengers()), datetime.now(UTC)
            given = folder.settings(kind=None)
            loaded = campaigns.load_campaign(database, given, texts, folder.tasks(), now=now)
        found = campaigns.read_campaign(database)
        if paused and read_launch_state(database) == "new":
            set_launch(database, "paused", now=datetime.now(UTC))
        state, spent = read_launch_state(database), uncounted_pay(database).is_spent
    finally:
        database.close()
    settings = found.settings
    return address, fill_facts(
        "served",
        settings=settings,
        loaded=loaded,
        campaign=campaign,
        root=root,
        link=study_link(root, found.code, settings.platform),
        amount=format_money(settings.reward, settings.currency),
        state=state,
        spent=spent,
    )


# Who may join: the organiser calls this where the server's database is.


@command
def invite(
    *,
    team: Annotated[
        str | None,
        Opt(
            "Team that lost its token; without, a team that joins.", argument=True, metavar="[TEAM]"
        ),
    ] = None,
    uploads: Uploads = None,
    url: Annotated[
        str | None,
        Opt(
            "Database of the server [intake.sqlite in the folder of uploads].",
            names=("--database",),
            env=_DATABASE,
            metavar="URL",
        ),
    ] = None,
    root: Root = None,
    note: Annotated[str, Opt("Whom the link is for; you alone see it.", metavar="TEXT")] = "",
    mail: Annotated[str | None, Opt("Address to send the link to.", metavar="ADDRESS")] = None,
    listed: Annotated[bool, Opt("List teams and open invitations.", names=("--list",))] = False,
    bar: Annotated[bool, Opt("Shut TEAM out: its tokens open nothing any more.")] = False,
    as_json: Json = False,
) -> None:
    """Invite a team to send submissions to `heldout serve`: prints a link that works once.

    A team that lost its token gets a link to its own account: name the team. Call this where the
    server's database is.

    \b
    Example:
      heldout invite --uploads ../uploads --root https://board.example
      heldout invite --uploads ../uploads --list
    """
    if uploads is None:
        raise click.UsageError("which folder of uploads? --uploads DIR, or set HELDOUT_UPLOADS")
    if bar and team is None:
        raise click.UsageError("--bar needs the name of a team")
    with needs_web():
        from heldout.intake.app import intake_database
        from heldout.intake.teams import close_team

        database = intake_database(uploads, url or "")
    try:
        now = datetime.now(UTC).replace(microsecond=0)
        found = None if team is None else _find_team(database, team)
        if listed:
            facts, document = _list_teams(database, now)
        elif bar and found is not None:
            close_team(database, found.id, now=now)
            text = (
                f"{printable(found.name)}: its tokens and sign-ins open nothing; what it sent stays"
            )
            facts, document = [("shut out", text)], {"team": found.name, "barred": now}
        else:
            facts, document = _invite(database, found, root=root, note=note, mail=mail, now=now)
    finally:
        database.close()
    if as_json:
        print_json(document)
    else:
        print_facts(answers(), facts)


Answered = tuple[list[tuple[str, str]], dict[str, Any]]
"""Facts for a person, and the document for a program."""


def _invite(
    database: "Database",
    team: "Team | None",
    *,
    root: str | None,
    note: str,
    mail: str | None,
    now: datetime,
) -> Answered:
    """Make an invitation, and send it where an address is given."""
    from heldout.intake import mail as mails
    from heldout.intake.teams import create_invitation, list_alike, list_teams

    if not root:
        raise click.UsageError("which address do the pages have? --root URL, or set HELDOUT_ROOT")
    alike = [] if team is None else list_alike(team.name, list_teams(database))
    if team is not None and any(one.closed is None for one in alike):
        raise InputError.of(
            "team-alike", "TEAM", f"{team.name!a}, which looks like {alike[0].name!a}"
        )
    mailer = mails.read_mailer(os.environ) if mail else None
    if mail and mailer is None:
        raise SetupError(f"no mail server: set {mails.SERVER} and {mails.SENDER}")
    to = mails.check_mail_address(mail or "")
    invitation, secret = create_invitation(
        database, note=note or to, now=now, team=None if team is None else team.id
    )
    link = f"{root.rstrip('/')}/join/{secret}"
    if mailer is not None:
        board = root.partition("://")[2].rstrip("/")
        until = f"{invitation.expires.day} {invitation.expires:%B %Y, %H:%M} UTC"
        message = mails.make_message(
            to,
            f"Take part in {board}",
            f"You are invited to take part in {board}.",
            link,
            f"The link works once, until {until}.",
            sender=mailer.sender,
            now=now,
        )
        mailer.send(message)
    facts = fill_facts("invited", link=link, team=team, ends=invitation.expires, to=to)
    return facts, {"link": link, "expires": invitation.expires, "sent": to or None}


def _list_teams(database: "Database", now: datetime) -> Answered:
    from heldout.intake.teams import list_alike, list_invitations, list_teams

    teams = list_teams(database)
    invitations = [
        one for one in list_invitations(database) if one.used is None and one.expires > now
    ]
    shown = [(one, bool(list_alike(one.name, teams))) for one in teams]
    facts = fill_facts("teams", teams=shown, invitations=invitations)
    document = {
        "teams": [{"name": one.name, "since": one.created, "barred": one.closed} for one in teams],
        "invitations": [
            {"note": one.note, "created": one.created, "expires": one.expires}
            for one in invitations
        ],
    }
    return facts, document


def _find_team(database: "Database", name: str) -> "Team":
    from heldout.board.log.manifest import team_key
    from heldout.intake.teams import list_teams

    for team in list_teams(database):
        if team_key(team.name) == team_key(name):
            return team
    raise InputError.of("team-unknown", "TEAM", quote(name))
