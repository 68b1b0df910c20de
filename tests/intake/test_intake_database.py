"""The tables of the intake are made, migrated up and down, and share a database with a campaign."""

from dataclasses import replace
from pathlib import Path

import intake_stage
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from click.testing import CliRunner
from intake_stage import NOW, files_of, make_stage
from sqlalchemy import inspect, select, text

from databases import ENGINES, new_url
from heldout.cli import serving
from heldout.cli.program import main
from heldout.database.database import Schema, migrate, open_database
from heldout.database.errors import DatabaseError
from heldout.intake.notices import add_notice, list_notices
from heldout.intake.tables import INTAKE
from heldout.intake.teams import create_token, link_identity, list_teams
from heldout.intake.uploads import list_uploads
from heldout.judging.database.database import CAMPAIGN
from heldout.judging.database.tables import queries

url = intake_stage.url


def test_the_migrations_make_the_tables_that_the_code_names(url: str) -> None:
    database = open_database(url, INTAKE)
    options = {"version_table": INTAKE.version_table}
    found = database.read(
        lambda connection: compare_metadata(
            MigrationContext.configure(connection, opts=options), INTAKE.metadata
        )
    )
    assert found == []
    database.close()


def test_a_campaign_and_the_intake_share_one_database(url: str) -> None:
    """Each has its own version: one goes down and up again, and the other keeps its rows."""
    assert not set(CAMPAIGN.metadata.tables) & set(INTAKE.metadata.tables)
    both = open_database(url, CAMPAIGN, INTAKE)
    both.write(lambda connection: connection.execute(queries.insert().values(query="q", text="t")))
    migrate(both, INTAKE, "base")
    names = set(both.read(lambda connection: inspect(connection).get_table_names()))
    assert set(CAMPAIGN.metadata.tables) <= names
    assert not set(INTAKE.metadata.tables) & names
    both.close()
    again = open_database(url, INTAKE, CAMPAIGN)
    assert list_teams(again) == ()
    assert again.read(lambda one: one.execute(select(queries.c.query)).scalars().all()) == ["q"]
    again.close()


@pytest.mark.parametrize("schema", [INTAKE, CAMPAIGN], ids=lambda schema: schema.name)
def test_every_version_goes_down_to_the_one_before_and_up_again(url: str, schema: Schema) -> None:
    database = open_database(url, schema)
    migrate(database, schema, "base")
    assert database.read(schema.find_revision) is None
    migrate(database, schema, "0001")
    assert database.read(schema.find_revision) == "0001"
    migrate(database, schema)
    assert database.read(schema.find_revision) == schema.head
    database.close()


def test_a_full_intake_goes_down_and_its_tables_are_gone(url: str, tmp_path: Path) -> None:
    """Rows of every table stand in no migration's way."""
    database = open_database(url, INTAKE)
    stage = make_stage(database, tmp_path)
    team = stage.team("Harbor", mail="harbor@example.org")
    create_token(database, team.id, kind="api", name="laptop", now=NOW)
    link_identity(database, team.id, "github", "7", name="ann", now=NOW)
    stage.upload(team, files_of("one"))
    database.write(lambda one: add_notice(one, team.id, "failed", "x", {}, now=NOW))
    assert len(list_uploads(stage.store, team.id)) == len(list_notices(database)) == 1
    counts = database.read(
        lambda one: [
            one.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()  # noqa: S608 - our names
            for name in INTAKE.metadata.tables
        ]
    )
    assert min(counts) > 0
    migrate(database, INTAKE, "base")
    left = set(database.read(lambda connection: inspect(connection).get_table_names()))
    assert left == {INTAKE.version_table}
    database.close()


def test_an_administrator_goes_back_before_an_earlier_heldout_is_installed(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The earlier one refuses the tables, and says how the later one takes them back."""
    later = later_schema(tmp_path)
    database = open_database(url, later)
    make_stage(database, tmp_path).team("Harbor")
    with pytest.raises(DatabaseError, match="serve --tables intake=0001") as caught:
        open_database(url, INTAKE)
    assert caught.value.code == "database-newer"

    def serve(asked: str, *options: str) -> tuple[int, str]:
        told = [*options, "--tables", asked]
        result = CliRunner(env={"DATABASE_URL": url}).invoke(main, ["serve", *told])
        return result.exit_code, result.output

    monkeypatch.setattr("heldout.intake.tables.INTAKE", later)
    code, said = serve("show")
    assert code == 0
    assert " ".join(said.split()) == "intake 0002 known campaign=0001, intake=0002, intake=0001"
    for wrong in ("intake", "intake=base", "intake=0003", "down"):
        assert serve(wrong)[0] == 2
    assert serve("campaign=0001")[0] == 2
    assert database.read(later.find_revision) == "0002"
    code, said = serve("intake=0001")
    assert (code, said.split()[:4]) == (0, ["intake", "0001;", "was", "0002"])
    database.close()
    earlier = open_database(url, INTAKE)
    columns = earlier.read(lambda one: inspect(one).get_columns("teams"))
    assert "colour" not in [column["name"] for column in columns]
    assert [team.name for team in list_teams(earlier)] == ["Harbor"]
    earlier.close()
    gone = f"sqlite:///{tmp_path}/gone.sqlite"
    assert serve("show", "--database", gone)[0] == 2
    assert not (tmp_path / "gone.sqlite").exists()


def later_schema(folder: Path) -> Schema:
    """The intake of a later heldout, whose teams have a colour."""
    versions = folder / "later" / "versions"
    versions.mkdir(parents=True)
    for name in ("env.py", "versions/first_tables.py"):
        (folder / "later" / name).write_text((INTAKE.migrations / name).read_text())
    (versions / "second.py").write_text(
        "from alembic import op\nfrom sqlalchemy import Column, Text\n"
        'revision, down_revision = "0002", "0001"\nbranch_labels = depends_on = None\n\n\n'
        'def upgrade():\n    op.add_column("teams", Column("colour", Text))\n\n\n'
        'def downgrade():\n    op.drop_column("teams", "colour")\n'
    )
    return replace(INTAKE, migrations=folder / "later")


def test_a_migration_that_fails_leaves_all_as_it_was(url: str, tmp_path: Path) -> None:
    """SQLite too undoes the tables that were made."""
    versions = tmp_path / "broken" / "versions"
    versions.mkdir(parents=True)
    for name in ("env.py", "versions/first_tables.py"):
        (tmp_path / "broken" / name).write_text((INTAKE.migrations / name).read_text())
    (versions / "second.py").write_text(
        'from alembic import op\nrevision, down_revision = "0002", "0001"\n'
        "branch_labels = depends_on = None\n\n\ndef upgrade():\n"
        '    op.drop_table("jobs")\n    op.execute("INSERT INTO nowhere VALUES (1)")\n'
    )
    database = open_database(url, INTAKE)
    stage = make_stage(database, tmp_path)
    stage.team("Harbor")
    broken = Schema(
        name="intake",
        metadata=INTAKE.metadata,
        migrations=tmp_path / "broken",
        version_table=INTAKE.version_table,
    )
    with pytest.raises(Exception, match="nowhere"):
        migrate(database, broken)
    assert database.read(INTAKE.find_revision) == "0001"
    names = database.read(lambda connection: inspect(connection).get_table_names())
    assert "jobs" in names
    assert [team.name for team in list_teams(database)] == ["Harbor"]
    database.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_tables_of_another_program_are_left_alone(engine: str, tmp_path: Path) -> None:
    url = new_url(engine, tmp_path)
    database = open_database(url)
    database.write(lambda connection: connection.execute(text("CREATE TABLE jobs (id INTEGER)")))
    with pytest.raises(DatabaseError) as caught:
        migrate(database, INTAKE)
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
        assert opened.read(schema.find_revision) == schema.head
    opened.close()
    assert serving._open_databases({**environ, "DATABASE_URL": ""}) == (None, False)
    other, shared = serving._open_databases({**environ, "HELDOUT_INTAKE_DATABASE": ""})
    assert other is not None
    assert not shared
    other.close()
