"""`heldout serve`: the judging pages of a campaign over HTTP."""

import errno
import multiprocessing
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, get_args

import click

from heldout.cli.options import add_option
from heldout.cli.printing import messages, print_facts
from heldout.envelope.bundle import file_names
from heldout.envelope.keys import Form
from heldout.errors import SetupError, StoreError, plural, quote
from heldout.ids import SubmissionId
from heldout.judging.services.prices import CampaignPath

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from heldout.board.site.intake import Intake
    from heldout.database.database import Database
    from heldout.judging.campaign.files import CampaignFolder
    from heldout.judging.campaign.settings import Settings
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


def find_token(variable: str) -> tuple[str, list[tuple[str, str]]]:
    """The token that an environment variable gives, or a new one; and what is printed of it.

    One that was given is known, and logs are read by others: nothing is printed of it.

    Raises:
        SetupError: the one that was given is too short.
    """
    from heldout.web.guard import check_token  # noqa: PLC0415 - heavy

    if given := os.environ.get(variable, ""):
        return check_token(given), []
    token = secrets.token_urlsafe(24)
    return token, [("token", token)]


def run_pages(app: "FastAPI | str", host: str, port: int, **options: Any) -> None:
    """Serve pages until interrupted.

    Args:
        app: the application, or the name of the function that makes it.
        host: where to listen.
        port: there.
        options: further ones of `uvicorn.run`.
    """
    import uvicorn  # noqa: PLC0415 - only for this

    from heldout.web.guard import server_options  # noqa: PLC0415 - the same

    options |= server_options()
    grace = _GRACE_SECONDS
    uvicorn.run(app, host=host, port=port, timeout_graceful_shutdown=grace, **options)


# What `heldout serve` needs to take uploads: its options, and how worker processes get them.
#
# Only the forms of names are taken from the envelope here, on the command line: the pages get
# texts and reach no key.

UPLOADS = "HELDOUT_UPLOADS"
"""Name of the variable with the folder that takes uploads; not set where none are taken."""

UPLOADS_FORM = "HELDOUT_UPLOADS_FORM"
"""Name of the variable with the envelope whose files are taken."""


def upload_options(command: click.decorators.FC) -> click.decorators.FC:
    """`--uploads DIR` and `--envelope`, for the arguments `uploads` and `envelope`."""
    folder = click.option(
        "--uploads",
        type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
        envvar=UPLOADS,
        metavar="DIR",
        help="Also take sealed files and registrations at /upload, into this folder, for "
        "`heldout inbox --from DIR`.",
    )
    envelope = click.option(
        "--envelope",
        type=click.Choice(get_args(Form)),
        default="age",
        show_default=True,
        help="Envelope of the board that they are for.",
    )
    return folder(envelope(command))


def intake_of(environ: Mapping[str, str]) -> "Intake | None":
    """The upload that the environment asks for; `None` where it asks for none.

    Raises:
        SetupError: there is no such folder or envelope.
    """
    folder = environ.get(UPLOADS, "")
    if not folder:
        return None
    form = environ.get(UPLOADS_FORM, "age")
    if form not in get_args(Form) or not Path(folder).is_dir():
        raise SetupError(f"no uploads: {quote(folder)} is no folder, or {quote(form)} no envelope")
    from heldout.board.site.intake import Intake  # noqa: PLC0415 - heavy
    from heldout.board.store.arrivals import is_team  # noqa: PLC0415 - only where it is served
    from heldout.board.store.uploads import UploadFolder  # noqa: PLC0415 - only where it is served

    endings = file_names("age" if form == "age" else "openssl", SubmissionId("")).all
    return Intake(
        folder=UploadFolder(path=Path(folder), endings=endings, is_team=is_team),
        clock=lambda: datetime.now(UTC),
    )


_DATABASE = "DATABASE_URL"
_TOKEN = "HELDOUT_ADMIN_TOKEN"  # noqa: S105 - the variable's name
_WORKERS = "HELDOUT_SERVE_WORKERS"
_FRONT = "HELDOUT_FRONT"
_LOG_REQUESTS = "HELDOUT_LOG_REQUESTS"
_LAST_PORT = 65_535
_PORTS = click.IntRange(1, _LAST_PORT)


@click.command
@add_option("campaign", CampaignPath, Path())
@click.option(
    "--database",
    "url",
    envvar=_DATABASE,
    metavar="URL",
    help="Database: sqlite:///FILE or postgresql://… [campaign.sqlite, or DATABASE_URL].",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", type=_PORTS, default=8000, show_default=True, help="Port to listen at.")
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes; on PostgreSQL they share the server's max_connections, less 10.",
)
@click.option(
    "--paused", is_flag=True, help="Hold the tasks back until the study is launched at /admin."
)
@click.option(
    "--proxy",
    metavar="ADDRESS",
    help="Address of the reverse proxy whose X-Forwarded-For header is trusted [none].",
)
@click.option(
    "--log-requests",
    is_flag=True,
    help="Print a line of JSON for each request: route, status, milliseconds, a random id.",
)
@click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    callback=lambda _context, _option, text: text and read_address(text),
    help="Address for the metrics of Prometheus, apart from the pages [none; HOST is 127.0.0.1].",
)
@upload_options
def serve(
    *,
    campaign: Path,
    url: str | None,
    host: str,
    port: int,
    workers: int,
    paused: bool,
    proxy: str | None,
    log_requests: bool,
    metrics: tuple[str, int] | None,
    uploads: Path | None,
    envelope: str,
) -> None:
    """Serve the judging pages of a campaign, and the upload of sealed files, until interrupted.

    What the campaign's directory has and the database has not, as new tasks, is loaded first; what
    people have seen already must not change. Without a campaign.toml the database alone is served.

    With --uploads sealed files are taken at /upload, also where there is no campaign.

    The pages are plain HTTP and cookies are not used. For people elsewhere, a server with a
    certificate has to stand in front; --proxy says from where it calls, so that wrong tokens at
    /admin are counted by who sent them. No address of a request is ever logged: it is a token.

    /health answers as long as the process does, /ready if database and folder can be used.

    \b
    Example:
      heldout serve campaign --port 8080
      heldout serve --uploads ../uploads
    """
    with needs_web():
        token, token_line = find_token(_TOKEN)
        check_port(host, port)
        root = f"http://{host}:{port}"
        what = _Served(root=root, token_line=token_line, paused=paused, uploads=uploads)
        address = _prepare(campaign, url, what, workers)
    os.environ[_DATABASE] = address  # for the worker processes, which open it themselves
    os.environ[_TOKEN] = token
    os.environ[_WORKERS] = str(workers)
    os.environ[UPLOADS] = str(uploads.absolute()) if uploads else ""
    os.environ[UPLOADS_FORM] = envelope
    os.environ[_FRONT] = proxy or ""
    os.environ[_LOG_REQUESTS] = "1" if log_requests else ""
    with counting_requests(metrics, address):
        run_pages(
            "heldout.cli.serving:served_app",
            host,
            port,
            factory=True,
            workers=workers,
            proxy_headers=proxy is not None,
            forwarded_allow_ips=proxy or "",
        )


def read_address(text: str) -> tuple[str, int]:
    """`[HOST:]PORT`, where HOST is this machine's own address by default.

    Raises:
        click.BadParameter: it is none.
    """
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) <= _LAST_PORT:
        raise click.BadParameter(f"{text!r} is no port, and no HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


@contextmanager
def counting_requests(address: tuple[str, int] | None, database: str) -> Iterator[None]:
    """Serve metrics of the worker processes that are started in the block.

    Args:
        address: where; `None` for no metrics.
        database: address of the one whose jobs are counted, "" for none.

    Raises:
        SetupError: the address cannot be listened at.
    """
    if address is None:
        yield
        return
    from heldout.web.health import served_metrics  # noqa: PLC0415 - heavy

    check_port(*address)
    with needs_web(), served_metrics(*address, partial(_count_jobs, database)):
        yield


def _count_jobs(url: str) -> Mapping[tuple[str, str], int]:
    """How many jobs a database has, by kind and state; none where it is no intake's."""
    from heldout.database.database import open_database  # noqa: PLC0415 - needs the extra
    from heldout.intake.jobs import count_jobs  # noqa: PLC0415 - the same
    from heldout.intake.tables import INTAKE  # noqa: PLC0415 - the same

    if not url:
        return {}
    database = open_database(url)
    try:
        known = database.read(INTAKE.find_revision) is not None
        counts = count_jobs(database) if known else {}
        return {(kind, state): number for (kind, state), number in counts.items()}
    finally:
        database.close()


def served_app() -> "ASGIApp":
    """The application over the database that `DATABASE_URL` names, with what an operator asks."""
    from heldout.web.health import Readiness, check_folder, health_routes, watch_requests  # noqa: PLC0415 - heavy

    app, checks = _make_pages()
    if uploads := os.environ.get(UPLOADS):
        checks["uploads"] = partial(check_folder, Path(uploads))
    app.include_router(health_routes(Readiness(checks)))
    return watch_requests(app, os.environ, log=bool(os.environ.get(_LOG_REQUESTS)))


def _make_pages() -> "tuple[FastAPI, dict[str, Check]]":
    """The pages, and the checks of what they need."""
    from heldout.board.site.intake import intake_routes, make_upload_app  # noqa: PLC0415 - heavy
    from heldout.database.database import check_schemas  # noqa: PLC0415 - heavy
    from heldout.judging.database.database import CAMPAIGN, open_database  # noqa: PLC0415 - heavy
    from heldout.judging.pages.admin import Admin, admin_routes  # noqa: PLC0415 - heavy
    from heldout.judging.pages.app import make_app, utc_now  # noqa: PLC0415 - heavy
    from heldout.web.guard import Connection  # noqa: PLC0415 - heavy

    Thread(target=_end_with_parent, daemon=True).start()
    Connection.front = os.environ.get(_FRONT, "")
    intake = intake_of(os.environ)
    if intake is not None and not os.environ[_DATABASE]:
        return make_upload_app(intake), {}
    database = open_database(os.environ[_DATABASE], processes=int(os.environ[_WORKERS]))
    admin = Admin(database=database, token=os.environ[_TOKEN], clock=utc_now)
    routers = [admin_routes(admin)] + ([] if intake is None else [intake_routes(intake)])
    checks: dict[str, Check] = {"database": partial(check_schemas, database, CAMPAIGN)}
    return make_app(database, routers=routers), checks


def _end_with_parent() -> None:
    """End this worker when the process that started it is gone: it would keep the port for ever."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)  # requests under way are answered first
    time.sleep(_GRACE_SECONDS)
    os._exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Served:
    """What a call asked for, beside the campaign.

    Attributes:
        root: address of the pages.
        token_line: what is printed of the organiser's token.
        paused: hand out nothing before it is launched.
        uploads: where sealed files go.
    """

    root: str
    token_line: Sequence[tuple[str, str]]
    paused: bool
    uploads: Path | None


def _prepare(campaign: Path, url: str | None, what: _Served, workers: int) -> str:
    """Load what is new, say what is served, and give the database's address, "" for none."""
    import heldout.judging.pages.app  # noqa: F401, PLC0415 - what is not installed is told before all else
    from heldout.database.database import sqlite_url  # noqa: PLC0415 - needs the extra
    from heldout.judging.campaign.files import CampaignFolder  # noqa: PLC0415 - heavy
    from heldout.judging.database.campaigns import read_campaign  # noqa: PLC0415 - heavy
    from heldout.judging.database.database import open_database  # noqa: PLC0415 - needs the extra
    from heldout.judging.database.organiser import read_launch_state, set_launch  # noqa: PLC0415 - heavy
    from heldout.judging.platforms.links import study_link  # noqa: PLC0415 - heavy

    folder = CampaignFolder(campaign)
    address = url or sqlite_url(folder.database.absolute())
    has_files = folder.has("campaign.toml")
    uploads = what.uploads
    sent = [] if uploads is None else [("uploads", f"{what.root}/upload, into {uploads}")]
    if url is None and not has_files and uploads is not None:
        print_facts(messages(), [*sent, ("stop", "Ctrl+C")])
        return ""
    if url is None and not has_files:
        raise _no_campaign(campaign)
    database = open_database(address, processes=workers)
    try:
        facts = _load(database, folder) if has_files else []
        found = read_campaign(database)
        if what.paused and read_launch_state(database) == "new":
            set_launch(database, "paused", now=datetime.now(UTC))
        state = read_launch_state(database)
    finally:
        database.close()
    link = (
        f"a link each: heldout prefer links {campaign} --root {what.root}"
        if found.settings.signed
        else study_link(what.root, found.code, found.settings.platform)
    )
    facts = [("study", found.settings.name), *facts, ("judges", link)]
    if promise := _promise(found.settings):
        facts.append(("pay", promise))
    if state == "paused":
        facts.append(("paused", "nobody is given a task before it is launched at /admin"))
    facts.append(("organiser", f"{what.root}/admin"))
    print_facts(messages(), [*facts, *what.token_line, *sent, ("stop", "Ctrl+C")])
    return address


def _promise(settings: "Settings") -> str:
    """What the pages promise for a task; "" where judges are colleagues, who are not paid."""
    from heldout.judging.campaign.settings import format_money  # noqa: PLC0415 - heavy

    if settings.reward:
        amount = format_money(settings.reward, settings.currency)
        return f"the pages promise {amount} a task (reward in campaign.toml)"
    if settings.platform == "link":
        return ""
    return "the pages promise no pay: reward = 0 in campaign.toml, whatever the platform pays"


def _no_campaign(folder: Path) -> StoreError:
    for name in ("triage", "answerable"):
        if (folder / f"{name}.jsonl").is_file():
            return StoreError(f"{folder} is served by `heldout survive {name} {folder} --serve`")
    return StoreError(f"{folder} is no campaign; `heldout prefer pool` begins one")


def _load(database: "Database", folder: "CampaignFolder") -> list[tuple[str, str]]:
    """Load what is new; what there is to say of it."""
    from heldout.judging.database.campaigns import load_campaign  # noqa: PLC0415 - heavy

    texts = (*folder.pools(), *folder.challengers())
    loaded = load_campaign(
        database, folder.settings(), texts, folder.tasks(), now=datetime.now(UTC)
    )
    facts = [("loaded", plural(loaded.tasks, "new task"))]
    if loaded.waiting:
        names = ", ".join(loaded.waiting)
        facts.append(("note", f"tasks loaded before have their own {names}"))
    return facts
