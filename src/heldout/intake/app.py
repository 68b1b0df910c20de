"""The intake put together: database, folders, board, worker and mail, for `heldout serve`."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from heldout.board.store.uploads import Limits, UploadFolder
from heldout.database.database import Database, open_database, sqlite_url
from heldout.errors import StoreError
from heldout.intake.api import PREFIX, make_api
from heldout.intake.board import STATES, PublicBoard, View
from heldout.intake.form import Pace
from heldout.intake.hand_over import intake_worker
from heldout.intake.mail import Mailer, make_message, state_letter
from heldout.intake.notices import Notice, add_notice
from heldout.intake.pages import public_routes, team_routes
from heldout.intake.service import Intake
from heldout.intake.sign_in import Provider
from heldout.intake.tables import INTAKE
from heldout.intake.teams import list_teams
from heldout.intake.uploads import IntakeLimits, UploadStore, list_uploads
from heldout.web.forms import make_application
from heldout.web.pages import Study

_PARTS = ".parts"
_FILE = "intake.sqlite"
_OLDEST = timedelta(days=7)
_TOLD = ("received", "published", "rejected", "asked")
_LOG = logging.getLogger("heldout.intake")


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
    return open_database(address, INTAKE, processes=processes)


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
    mailer: Mailer | None = None,
    providers: Sequence[Provider] = (),
    limits: Limits | None = None,
    most: IntakeLimits | None = None,
    pace: Pace | None = None,
) -> Intake:
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
        limits: most of a file and of the folder; `None` for the defaults, as below.
        most: uploads under way.
        pace: how slow a sender may be.

    Raises:
        StoreError: the board cannot be read.
    """
    public = PublicBoard(board, clock)
    name = public.view().spec.name
    folder = UploadFolder(path=uploads, endings=endings, is_team=is_team, limits=limits or Limits())
    store = UploadStore(
        database=database, parts=uploads / _PARTS, folder=folder, limits=most or IntakeLimits()
    )
    worker = intake_worker(store, clock=clock)
    if mailer is not None:
        letters = _Letters(mailer=mailer, board=name, page=f"{root}/account", clock=clock)
        worker = intake_worker(store, clock=clock, send=letters.send)
        watch = _Watch(store=store, board=public, clock=clock, clear=worker.idle)
        worker = replace(worker, idle=watch.look)
    return Intake(
        store=store,
        board=public,
        worker=worker,
        clock=clock,
        root=root,
        key=key,
        study=Study(name=name),
        providers=tuple(providers),
        pace=pace or Pace(),
    )


def intake_parts(intake: Intake) -> tuple[list[APIRouter], Mapping[str, ASGIApp]]:
    """Its pages, and the API with the address below which it answers."""
    return [public_routes(intake), team_routes(intake)], {PREFIX: make_api(intake)}


def make_intake_app(intake: Intake) -> FastAPI:
    """The intake alone, where no campaign is served."""
    routers, mounts = intake_parts(intake)
    return make_application(intake.study, routers, mounts=mounts)


def start_worker(intake: Intake) -> threading.Event:
    """Do the intake's jobs in a thread; setting what is returned ends it."""
    stop = threading.Event()
    threading.Thread(target=intake.worker.run, args=(stop,), daemon=True).start()
    return stop


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Writes notices of what the log says, while there is no job: called about once a second."""

    store: UploadStore
    board: PublicBoard
    clock: Callable[[], datetime]
    clear: Callable[[], None]
    _seen: View | None = None

    def look(self) -> None:
        self.clear()
        try:
            view = self.board.view()
        except StoreError as error:
            _LOG.warning("notices wait: %s", error)
            return
        if view is not self._seen:
            self._notify(view, self.clock())
            self._seen = view

    def _notify(self, view: View, now: datetime) -> None:
        """Write a notice for every submission of a team that the log says something new of."""
        for team in list_teams(self.store.database):
            for owner in {one.owner for one in list_uploads(self.store, team.id)}:
                known = view.history.submissions.get(owner)
                if known is None or known.status not in _TOLD or not known.events:
                    continue
                if now - known.events[-1][0] > _OLDEST:
                    continue
                details = {"owner": owner, "state": STATES[known.status]}
                told = partial(
                    add_notice,
                    team=team.id,
                    kind=known.status,
                    key=owner,
                    details=details,
                    now=now,
                )
                self.store.database.write(told)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Letters:
    """Makes mails of notices, and sends them."""

    mailer: Mailer
    board: str
    page: str
    clock: Callable[[], datetime]
    words: Mapping[str, str] = field(
        default_factory=lambda: {"accepted": "here, and waits for the organiser"}
    )

    def send(self, notice: Notice) -> None:
        """Send one.

        Raises:
            InputError: the address is none.
            StoreError: the mail server did not take it.
        """
        details = notice.details
        state = str(details.get("state") or self.words.get(notice.kind, "not accepted"))
        letter = state_letter(
            notice.recipient,
            board=self.board,
            submission=str(details["owner"]),
            state=state,
            page=self.page,
        )
        message = make_message(letter, sender=self.mailer.sender, now=self.clock())
        name = f"notice-{notice.id}-{notice.created:%Y%m%d%H%M%S}"
        message.replace_header("Message-ID", f"<{name}@{_host(self.page)}>")
        self.mailer.send(message)


def _host(page: str) -> str:
    return page.partition("://")[2].partition("/")[0].partition(":")[0]
