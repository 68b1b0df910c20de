"""Both engines for the tests of the judging database.

A test module takes the fixture it needs: `database = judging_databases.database`.
"""

from pathlib import Path

import pytest

from databases import ENGINES, new_url, wiped
from heldout.database.database import Database
from heldout.judging.database.tables import CAMPAIGN


@pytest.fixture(params=ENGINES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, of each engine in turn."""
    return new_url(request.param, tmp_path)


@pytest.fixture
def sqlite_database() -> Database:
    """An open SQLite database without a campaign, where one engine shows it."""
    return wiped("sqlite", CAMPAIGN)


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Database:
    """An open database without a campaign, of each engine in turn."""
    return wiped(request.param, CAMPAIGN)
