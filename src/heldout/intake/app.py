"""The intake put together: database, folders, board, worker and mail, for `heldout serve`."""

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from heldout.board.store.uploads import FileLimits, UploadFolder
from heldout.database.database import Database, open_database, sqlite_url
from heldout.intake import form, mail, pages, service, sign_in, tables
from heldout.intake.api import PREFIX, make_api
from heldout.intake.board import PublicBoard
from heldout.intake.uploads import IntakeLimits, UploadStore
from heldout.intake.worker import DueWorker
from heldout.web.forms import make_application
from heldout.web.pages import Study

_PARTS = ".parts"
_FILE = "intake.sqlite"


def intake_file(uploads: Path) -> Path:
    """The intake's database in the folder of uploads, where no address is given."""
    return uploads / _FILE


def intake_database(uploads: Path, url: str, *, processes: int = 1) -> Database:
    """The intake's database.

    Args:
        uploads: the folder of uploads, which has it where no address is given.
        url: of `--database`, "" for none.
        processes: how many open it like this one.

    Raises:
        SetupError, DatabaseError: as `open_database`.
    """
    address = url or sqlite_url(intake_file(uploads).absolute())
    return open_database(address, tables.INTAKE, processes=processes)


def make_intake(
    database: Database,
    *,
    board: Path,
    uploads: Path,
    endings: tuple[str, str, str],
    is_team: Callable[[str], bool],
    root: str,
    key: bytes,
    clock: Callable[[], datetime],
    mailer: mail.Mailer | None = None,
    providers: Sequence[sign_in.Provider] = (),
    limits: FileLimits | None = None,
    most: IntakeLimits | None = None,
    pace: form.Pace | None = None,
) -> service.Intake:
    """The intake of a board.

    Args:
        database: open, with the intake's tables.
        board: folder of the board, or a clone of it.
        uploads: folder that the organiser's inbox reads.
        endings: what follows an id in the names of the three sealed files.
        is_team: whether a name is the handle of a team that registers.
        root: address of the pages.
        key: secret that signs what a browser brings back; all processes have the same.
        clock: the time, UTC.
        mailer: how notices are sent; `None` for none.
        providers: by which people may sign in.
        limits: most of a file; `None` for the defaults, as below.
        most: how much is taken in all.
        pace: how slow a sender may be.

    Raises:
        StoreError: the board cannot be read.
    """
    public = PublicBoard(board, clock)
    name = public.view().spec.name
    folder = UploadFolder(
        path=uploads, endings=endings, is_team=is_team, limits=limits or FileLimits()
    )
    store = UploadStore(
        database=database,
        parts=uploads / _PARTS,
        folder=folder,
        limits=most or IntakeLimits(),
        notifies=mailer is not None,
    )
    send = None if mailer is None else partial(_send, mailer, name, f"{root}/account", clock)
    worker = DueWorker(store=store, clock=clock, board=public, send=send)
    return service.Intake(
        store=store,
        board=public,
        worker=worker,
        clock=clock,
        root=root,
        key=key,
        study=Study(name=name),
        providers=tuple(providers),
        pace=pace or form.Pace(),
    )


def intake_parts(intake: service.Intake) -> tuple[list[APIRouter], Mapping[str, ASGIApp]]:
    """Its pages, and the API with the address below which it answers."""
    return [pages.public_routes(intake), pages.team_routes(intake)], {PREFIX: make_api(intake)}


def make_intake_app(intake: service.Intake) -> FastAPI:
    """The intake alone, where no campaign is served."""
    routers, mounts = intake_parts(intake)
    return make_application(intake.study, routers, mounts=mounts)


def start_worker(intake: service.Intake) -> threading.Event:
    """Start the intake's worker in a thread; setting what is returned ends it."""
    stop = threading.Event()
    threading.Thread(target=intake.worker.run, args=(stop,), daemon=True).start()
    return stop


def _send(
    mailer: mail.Mailer, board: str, page: str, clock: Callable[[], datetime], notice: mail.Notice
) -> None:
    """Send a notice.

    Raises:
        InputError: the address is none.
        StoreError: the mail server did not take it.
    """
    message = mail.make_message(
        notice.recipient,
        f"{board}: {notice.owner} is {notice.outcome}",
        f"{notice.owner}: {notice.outcome}.",
        f"More is on your team's page: {page}",
        sender=mailer.sender,
        now=clock(),
    )
    name = f"notice-{notice.id}-{notice.created:%Y%m%d%H%M%S}"
    message.replace_header("Message-ID", f"<{name}@{urlsplit(page).hostname}>")
    mailer.send(message)
