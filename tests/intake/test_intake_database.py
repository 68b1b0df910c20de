"""The tables of the intake are made, and share a database with a campaign."""

from pathlib import Path

import intake_stage
import pytest
from sqlalchemy import select, text

from databases import ENGINES, new_url
from heldout.cli import serving
from heldout.database.database import open_database
from heldout.database.errors import DatabaseError
from heldout.intake.tables import INTAKE
from heldout.intake.teams import list_teams
from heldout.judging.database.tables import CAMPAIGN, queries

url = intake_stage.url


def test_a_campaign_and_the_intake_share_one_database(url: str) -> None:
    assert not set(CAMPAIGN.metadata.tables) & set(INTAKE.metadata.tables)
    both = open_database(url, CAMPAIGN, INTAKE)
    both.write(lambda connection: connection.execute(queries.insert().values(query="q", text="t")))
    both.close()
    again = open_database(url, INTAKE, CAMPAIGN)
    assert list_teams(again) == ()
    assert again.read(lambda one: one.execute(select(queries.c.query)).scalars().all()) == ["q"]
    again.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_of_another_program_are_left_alone(engine: str, tmp_path: Path) -> None:
    url = new_url(engine, tmp_path)
    database = open_database(url)
    database.write(lambda connection: connection.execute(text("CREATE TABLE teams (id INTEGER)")))
    with pytest.raises(DatabaseError) as caught:
        open_database(url, INTAKE)
    assert caught.value.code == "database-other"
    database.close()


def test_serve_opens_one_address_once(url: str) -> None:
    """Opened twice, each process would take its share of the server's connections twice."""
    environ = {"DATABASE_URL": url, "HELDOUT_INTAKE_DATABASE": url, "HELDOUT_SERVE_WORKERS": "2"}
    environ |= {"HELDOUT_UPLOADS": "uploads"}
    opened, shared = serving._open_databases(environ)
    assert opened is not None
    assert shared
    for schema in (CAMPAIGN, INTAKE):
        assert opened.read(schema.find_version) == schema.version
    opened.close()
    assert serving._open_databases({**environ, "DATABASE_URL": ""}) == (None, False)
    other, shared = serving._open_databases({**environ, "HELDOUT_INTAKE_DATABASE": ""})
    assert other is not None
    assert not shared
    other.close()
