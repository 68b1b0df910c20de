"""The database of a campaign, as the services that need it open it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from heldout.errors import StoreError
from heldout.judging.campaign.files import CampaignFolder
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.database.database import Database

DatabaseUrl = Annotated[
    str | None,
    Opt(
        "Database: Database: sqlite:///FILE or postgresql://… [campaign.sqlite, or DATABASE_URL].",
        names=("--database",),
        env="DATABASE_URL",
        metavar="URL",
    ),
]
"""`--database`; its default is `None`."""


@contextmanager
def opened_database(folder: CampaignFolder, url: str | None) -> "Iterator[Database]":
    """The campaign's database, closed afterwards.

    Args:
        folder: the campaign.
        url: of another database than the one in it.

    Raises:
        StoreError: there is none.
        DatabaseError: see `ErrorCode`.
    """
    from heldout.database.database import sqlite_url  # noqa: PLC0415 - needs the extra
    from heldout.judging.database.database import open_database  # noqa: PLC0415 - needs the extra

    if url is None and not folder.database.is_file():
        raise StoreError(f"{folder.database} is missing; `heldout serve` makes it")
    database = open_database(url or sqlite_url(folder.database.absolute()))
    try:
        yield database
    finally:
        database.close()
