"""The application: one campaign's pages over HTTP."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from heldout.database.database import Database
from heldout.database.errors import DatabaseError
from heldout.judging.database.campaigns import read_campaign
from heldout.judging.pages.judge import Judging, judging_routes
from heldout.judging.pages.questions import study_of
from heldout.web.forms import make_application


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
    campaign = read_campaign(database)
    judging = Judging(database=database, campaign=campaign, clock=clock)
    return make_application(
        study_of(campaign.settings),
        (judging_routes(judging), *routers),
        mounts=mounts,
        mturk=campaign.settings.platform == "mturk",
        is_missing=lambda error: (
            isinstance(error, DatabaseError) and error.code == "unknown-assignment"
        ),
    )
