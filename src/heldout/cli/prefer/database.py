"""The database of a campaign, as the commands that need it open it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from heldout.errors import StoreError
from heldout.store.campaign_files import CampaignFolder

if TYPE_CHECKING:
    from heldout.store.judging.database import Database

__all__ = ["database_option", "opened_database"]

database_option = click.option(
    "--database",
    "url",
    envvar="DATABASE_URL",
    metavar="URL",
    help="sqlite:///FILE or postgresql://… [campaign.sqlite, or DATABASE_URL].",
)
"""`--database`, which gives `url`."""


@contextmanager
def opened_database(folder: CampaignFolder, url: str | None) -> "Iterator[Database]":
    """The campaign's database, closed afterwards.

    Args:
        folder: the campaign.
        url: of another database than the one in it.

    Raises:
        StoreError: there is none.
        DatabaseError: see `Fault`.
    """
    from heldout.store.judging.database import open_database  # noqa: PLC0415 - needs the extra
    from heldout.store.judging.engines import sqlite_url  # noqa: PLC0415 - needs the extra

    if url is None and not folder.database.is_file():
        raise StoreError(f"{folder.database} is missing; `heldout serve` makes it")
    database = open_database(url or sqlite_url(folder.database.absolute()))
    try:
        yield database
    finally:
        database.close()
