"""The database of a campaign, SQLite or PostgreSQL.

Of the other modules `campaigns` fills it, `claims` hands out tasks, `assignments` is what a judge
does with one, `overviews` and `organiser` are for the organiser; `tables` and `rows` are what lies
in it. `heldout.database` opens it and says what goes wrong; the wing's own codes are
`database-empty`, `payment-key` and `unknown-assignment`.
"""

from heldout.database import database
from heldout.database.database import Database, Schema
from heldout.judging.database.tables import metadata

CAMPAIGN = Schema(name="campaign", metadata=metadata)
"""The tables of a campaign."""


def open_database(url: str, *, processes: int = 1) -> Database:
    """Open the database of a campaign: see `heldout.database.database.open_database`.

    Raises:
        DatabaseError, SetupError: as there.
    """
    return database.open_database(url, CAMPAIGN, processes=processes)
