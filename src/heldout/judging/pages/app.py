"""The application: one campaign's pages over HTTP."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from fastapi import APIRouter, FastAPI
from fastapi.responses import PlainTextResponse
from starlette.staticfiles import StaticFiles

from heldout.judging.database.campaigns import read_campaign
from heldout.judging.database.database import Database, DatabaseError
from heldout.judging.pages.judge import Judging, judging_routes
from heldout.judging.pages.questions import study_of
from heldout.web.guard import Guard, add_handlers


def utc_now() -> datetime:
    """The time, UTC."""
    return datetime.now(UTC)


def make_app(
    database: Database,
    *,
    clock: Callable[[], datetime] = utc_now,
    routers: Iterable[APIRouter] = (),
) -> FastAPI:
    """The pages of the campaign that a database holds.

    Args:
        database: open; who opened it closes it.
        clock: the time, UTC.
        routers: further pages, as those of the organiser.

    Raises:
        DatabaseError: code `database-empty`: no campaign was loaded yet; or the database is gone.
    """
    campaign = read_campaign(database)
    study, mturk = study_of(campaign.settings), campaign.settings.platform == "mturk"
    app = FastAPI(openapi_url=None, redirect_slashes=False)
    app.mount("/static", StaticFiles(packages=[("heldout.web", "static")]), name="static")
    for router in (
        judging_routes(Judging(database=database, campaign=campaign, clock=clock)),
        *routers,
    ):
        app.include_router(router)
    app.add_api_route("/alive", lambda: PlainTextResponse("alive"), methods=["GET"])
    add_handlers(
        app,
        study,
        mturk=mturk,
        is_missing=lambda error: (
            isinstance(error, DatabaseError) and error.code == "unknown-assignment"
        ),
    )
    app.add_middleware(Guard, study=study, mturk=mturk)
    return app
