"""What a stranger's text, a held lock or a user with fewer rights does to a database."""

import time
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from small_campaign import NOW, load
from sqlalchemy import inspect, make_url

from databases import ENGINES, new_url, wiped
from heldout.database.database import Database, open_database
from heldout.database.errors import DatabaseError
from heldout.errors import InputError
from heldout.intake.tables import INTAKE
from heldout.intake.teams import (
    accept_invitation,
    create_invitation,
    find_invitation,
    find_team,
    link_identity,
    list_invitations,
    list_teams,
    open_session,
    replace_tokens,
)
from heldout.judging.database.assignments import Worker
from heldout.judging.database.claims import claim
from heldout.judging.database.organiser import assignments
from heldout.judging.database.tables import CAMPAIGN


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Database:
    """An empty database with the tables of the intake, of each engine in turn."""
    return wiped(request.param, INTAKE)


TEXTS = (
    "'; DROP TABLE teams; --",
    "\\'; SELECT pg_sleep(60); --",
    "$$; DELETE FROM teams; $$",
    "' OR '1'='1",
    "1; COMMIT; DROP TABLE jobs",
    '"; --',
    "%s %(x)s :x ? {0}",
    "U&'\\0041' E'\\000' \\x00 \\",
    "NULL",
    "/* */",
    "\ufffe\uffff\U0010ffff",
    "\u202eabc",
    "x" * 1_000_000,
)
"""What would be more than a text if it ever stood in a statement."""


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_no_text_is_more_than_a_text_to_the_intake(database: Database, number: int) -> None:
    """Nine places that take one: each stores it as it is, finds nothing, or refuses it."""
    hostile = TEXTS[number]
    _, secret = create_invitation(database, note=hostile, now=NOW)
    assert list_invitations(database)[0].note == hostile
    for mail in (hostile, ""):
        try:
            team = accept_invitation(database, secret, name=hostile, mail=mail, now=NOW)
        except InputError as error:
            assert error.code in ("team-name", "team-mail")  # noqa: PT017 - of either
        else:
            assert list_teams(database)[0].name == hostile
    if not list_teams(database):
        team = accept_invitation(database, secret, name="Harbor", mail="", now=NOW)
    day = timedelta(days=1)
    token = replace_tokens(database, team.id, now=NOW)
    session = open_session(database, token, now=NOW, valid=day)
    assert session is not None
    with pytest.raises(InputError, match="invitation-unknown"):
        find_invitation(database, hostile, now=NOW)
    assert find_team(database, hostile, now=NOW, kind="api") is None
    for opens in (hostile, (hostile, hostile)):
        assert open_session(database, opens, now=NOW, valid=day) is None
    if len(hostile) < 255:  # what a provider may call a person
        link_identity(database, team.id, "orcid", hostile, now=NOW, session=session)
        assert open_session(database, ("orcid", hostile), now=NOW, valid=day) is not None
    assert len(list_teams(database)) == 1
    names = set(database.read(lambda connection: inspect(connection).get_table_names()))
    assert set(INTAKE.metadata.tables) <= names


@pytest.mark.parametrize("engine", ENGINES)
def test_no_text_is_more_than_a_text_to_a_campaign(engine: str) -> None:
    judging = wiped(engine, CAMPAIGN)
    load(judging, queries=2 * len(TEXTS))
    taken = 0
    for number, hostile in enumerate((*TEXTS, "a\0b")):
        where = dict.fromkeys(("session_id", "study", "submit_to", "origin"), hostile)
        claim(judging, Worker(platform_id=f"w{number}", **where), batch=1, now=NOW)  # type: ignore[arg-type]  # texts
        try:
            claim(judging, Worker(platform_id=hostile), batch=1, now=NOW)
            taken += 1
        except InputError as error:
            assert error.code == "worker-id"  # noqa: PT017 - the others are counted
    assert len(assignments(judging)) == len(TEXTS) + 1 + taken


@pytest.fixture
def address() -> str:
    """A PostgreSQL database with the tables of the intake."""
    found = new_url("postgresql")
    open_database(found, INTAKE).close()
    return found


def plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def code_of(work: Callable[[], object]) -> str:
    with pytest.raises(DatabaseError) as caught:
        work()
    return caught.value.code


def test_a_lock_that_somebody_holds_is_given_up(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every thread of a server would wait for it, and no page be answered."""
    monkeypatch.setattr("heldout.database.database._PATIENCE_S", 1)
    opened = open_database(address, INTAKE)
    with psycopg.connect(plain(address)) as other:
        other.execute("LOCK TABLE teams IN ACCESS EXCLUSIVE MODE")
        other.execute("LOCK TABLE invitations IN ACCESS EXCLUSIVE MODE")
        for work in (
            lambda: list_teams(opened),
            lambda: create_invitation(opened, note="", now=NOW),
        ):
            began = time.monotonic()
            assert code_of(work) == "database-busy"
            assert time.monotonic() - began < 15
        other.rollback()
    create_invitation(opened, note="", now=NOW)
    assert len(list_invitations(opened)) == 1
    opened.close()


def test_a_user_with_fewer_rights_reads_or_is_refused_and_writes_nothing(address: str) -> None:
    with psycopg.connect(plain(address), autocommit=True) as owner:
        for role in ("held_reader", "held_nobody"):
            owner.execute(f"DROP ROLE IF EXISTS {role}")
            owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO held_reader")
    try:
        reader = open_database(str(make_url(address).set(username="held_reader")), INTAKE)
        assert list_teams(reader) == ()
        assert code_of(lambda: create_invitation(reader, note="", now=NOW)) == "database-read-only"
        assert list_invitations(reader) == ()
        reader.close()
        nobody = str(make_url(address).set(username="held_nobody"))
        assert code_of(lambda: open_database(nobody, INTAKE)) == "database-read-only"
    finally:
        with psycopg.connect(plain(address), autocommit=True) as owner:
            for role in ("held_reader", "held_nobody"):
                owner.execute(f"DROP OWNED BY {role}")
                owner.execute(f"DROP ROLE {role}")
