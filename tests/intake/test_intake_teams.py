"""Invitations, accounts, tokens and identities."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import intake_stage
import pytest
from intake_stage import NOW, Stage, make_stage
from sqlalchemy import select

from heldout.database.database import Database
from heldout.errors import InputError
from heldout.intake.tables import INTAKE, tokens
from heldout.intake.teams import (
    MOST_TOKENS,
    accept_invitation,
    check_token,
    close_team,
    create_invitation,
    create_token,
    find_by_identity,
    find_invitation,
    get_team,
    hash_secret,
    link_identity,
    list_identities,
    list_invitations,
    list_teams,
    list_tokens,
    open_session,
    replace_tokens,
    revoke_invitation,
    revoke_token,
    set_mail,
)

database = intake_stage.database
stage = intake_stage.stage
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def code_of(work: object, *given: object, **named: object) -> str:
    with pytest.raises(InputError) as caught:
        work(*given, **named)  # type: ignore[operator]  # any function
    return caught.value.code


def test_an_invitation_registers_one_team_once(database: Database) -> None:
    invitation, secret = create_invitation(database, note="Ann", now=NOW)
    assert find_invitation(database, secret, now=NOW).note == "Ann"
    team = accept_invitation(database, secret, name="  Harbor   Lab ", mail="a@b.org", now=NOW)
    assert (team.name, team.mail, team.closed) == ("Harbor Lab", "a@b.org", None)
    assert get_team(database, team.id) == team
    (known,) = list_invitations(database)
    assert (known.id, known.team, known.used) == (invitation.id, team.id, NOW)
    again = {"name": "Other", "mail": "", "now": NOW}
    assert code_of(accept_invitation, database, secret, **again) == "invitation-used"
    assert code_of(accept_invitation, database, "x", **again) == "invitation-unknown"


def test_an_invitation_that_ended_or_was_revoked_registers_nobody(database: Database) -> None:
    _, late = create_invitation(database, note="", now=NOW, valid=HOUR)
    revoked, ended = create_invitation(database, note="", now=NOW)
    revoke_invitation(database, revoked.id, now=NOW)
    for secret, at in ((late, NOW + HOUR), (ended, NOW)):
        found = code_of(accept_invitation, database, secret, name="X", mail="", now=at)
        assert found == "invitation-expired"
    assert list_teams(database) == ()


def test_a_refused_registration_leaves_the_invitation_open(database: Database) -> None:
    _, first = create_invitation(database, note="", now=NOW)
    accept_invitation(database, first, name="Harbor", mail="", now=NOW)
    _, secret = create_invitation(database, note="", now=NOW)
    for name, mail, code in (
        ("\uff28ARBOR", "", "team-taken"),
        ("H\u0430rbor", "", "team-name"),  # Cyrillic a
        ("Harb\u00f3r", "", "team-alike"),
        ("Har-bor", "", "team-alike"),
        ("HarbOr", "", "team-taken"),
        ("Harb0r", "", "team-alike"),
        (" ", "", "team-name"),
        ("a" * 101, "", "team-name"),
        ("a\x00", "", "team-name"),
        ("New", "nobody", "team-mail"),
        ("New", "a@b\r\nBcc: c@d", "team-mail"),
    ):
        assert code_of(accept_invitation, database, secret, name=name, mail=mail, now=NOW) == code
    assert accept_invitation(database, secret, name="New", mail="", now=NOW).name == "New"


def test_of_many_who_use_one_invitation_at_once_one_registers(database: Database) -> None:
    _, secret = create_invitation(database, note="", now=NOW)

    def accept(number: int) -> str:
        try:
            return accept_invitation(database, secret, name=f"T{number}", mail="", now=NOW).name
        except InputError as error:
            return error.code

    with ThreadPoolExecutor(6) as pool:
        found = sorted(pool.map(accept, range(6)))
    assert found[1:] == ["invitation-used"] * 5
    assert [team.name for team in list_teams(database)] == found[:1]


def test_a_team_that_lost_its_token_gets_back_in_by_a_link(stage: Stage) -> None:
    team = stage.team("Harbor", mail="a@b.org")
    _, secret = create_invitation(stage.database, note="", now=NOW, team=team.id)
    found = accept_invitation(stage.database, secret, name="ignored", mail="", now=NOW)
    assert found == team
    assert code_of(create_invitation, stage.database, note="", now=NOW, team=99) == "team-unknown"


def test_a_new_token_ends_all_that_a_thief_of_the_old_one_made(stage: Stage) -> None:
    team, opened = stage.team("Harbor"), stage.database
    stolen = replace_tokens(opened, team.id, now=NOW)
    thief = open_session(opened, stolen, now=NOW, valid=DAY)
    assert thief is not None
    assert thief[0] == team
    link_identity(opened, team.id, "github", "666", name="eve", now=NOW, session=thief[1])
    assert open_session(opened, ("github", "666"), now=NOW, valid=DAY) is not None
    fresh = replace_tokens(opened, team.id, now=NOW)
    assert open_session(opened, stolen, now=NOW, valid=DAY) is None
    assert open_session(opened, ("github", "666"), now=NOW, valid=DAY) is None
    over: dict[str, Any] = {"now": NOW, "session": thief[1]}
    assert code_of(replace_tokens, opened, team.id, **over) == "team-token"
    assert code_of(link_identity, opened, team.id, "github", "666", name="", **over) == "team-token"
    assert [one.kind for one in list_tokens(opened, team.id, now=NOW)] == ["api"]
    assert check_token(opened, fresh, now=NOW) is not None


def test_a_session_of_another_team_asks_for_nothing(stage: Stage) -> None:
    team, other, opened = stage.team("Harbor"), stage.team("Quay"), stage.database
    session = open_session(opened, replace_tokens(opened, other.id, now=NOW), now=NOW, valid=DAY)
    assert session is not None
    given: dict[str, Any] = {"now": NOW, "session": session[1]}
    assert code_of(replace_tokens, opened, team.id, **given) == "team-token"


def test_who_signs_in_while_the_token_is_replaced_has_no_session_afterwards(
    database: Database, tmp_path: Path
) -> None:
    stage = make_stage(database, tmp_path)
    team = stage.team("Harbor")
    stolen = replace_tokens(database, team.id, now=NOW)
    gate = threading.Barrier(6)

    def enter(number: int) -> None:
        gate.wait()
        if number == 0:
            replace_tokens(database, team.id, now=NOW)
        for _ in range(3):
            open_session(database, stolen, now=NOW, valid=DAY)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(enter, range(6)))
    assert [one.kind for one in list_tokens(database, team.id, now=NOW)] == ["api"]


def test_of_a_token_only_a_hash_is_stored(stage: Stage) -> None:
    team = stage.team("Harbor")
    token, secret = create_token(stage.database, team.id, kind="api", name="laptop", now=NOW)
    assert len(secret) >= 43
    stored = stage.database.read(
        lambda connection: [
            str(tuple(row))
            for table in INTAKE.metadata.tables.values()
            for row in connection.execute(select(table))
        ]
    )
    assert not any(secret in row for row in stored)
    assert sum(hash_secret(secret) in row for row in stored) == 1
    found = check_token(stage.database, secret, now=NOW)
    assert found == (team, token)


def test_a_token_opens_nothing_once_it_ended_was_revoked_or_its_team_is_shut_out(
    stage: Stage,
) -> None:
    team, other = stage.team("Harbor"), stage.team("Quay")
    opened, known = stage.database, {"kind": "session", "name": "", "now": NOW}
    short, first = create_token(opened, team.id, **known, valid=HOUR)  # type: ignore[arg-type]  # as named
    long, second = create_token(opened, team.id, kind="api", name="", now=NOW)
    assert check_token(opened, first, now=NOW + HOUR) is None
    assert check_token(opened, first, now=NOW, kind="api") is None
    assert check_token(opened, "heldout_nothing", now=NOW) is None
    assert not revoke_token(opened, other.id, long.id, now=NOW)
    close_team(opened, team.id, now=NOW)
    assert check_token(opened, second, now=NOW) is None
    close_team(opened, team.id, now=None)
    assert check_token(opened, second, now=NOW) is not None
    assert [one.id for one in list_tokens(opened, team.id, now=NOW)] == [short.id, long.id]
    assert revoke_token(opened, team.id, long.id, now=NOW)
    assert check_token(opened, second, now=NOW) is None
    assert list_tokens(opened, team.id, now=NOW + HOUR) == ()


def test_when_a_token_was_used_is_known_to_some_minutes(stage: Stage) -> None:
    """Not every request writes."""
    team = stage.team("Harbor")
    _, secret = create_token(stage.database, team.id, kind="api", name="", now=NOW)
    for minutes in (0, 4, 10):
        check_token(stage.database, secret, now=NOW + timedelta(minutes=minutes))
        (row,) = stage.database.read(lambda one: one.execute(select(tokens.c.used_at)).all())
        assert row.used_at == NOW + timedelta(minutes=10 if minutes == 10 else 0)


def test_a_team_has_so_many_tokens_and_its_oldest_session_ends(stage: Stage) -> None:
    team = stage.team("Harbor")
    for number in range(MOST_TOKENS + 2):
        create_token(stage.database, team.id, kind="session", name=str(number), now=NOW)
    names = [one.name for one in list_tokens(stage.database, team.id, now=NOW)]
    assert names == [str(number) for number in range(2, MOST_TOKENS + 2)]
    for number in range(MOST_TOKENS):
        create_token(stage.database, team.id, kind="api", name=str(number), now=NOW)
    more = {"kind": "api", "name": "", "now": NOW}
    assert code_of(create_token, stage.database, team.id, **more) == "token-limit"


def test_an_identity_signs_in_as_one_team(stage: Stage) -> None:
    team, other, opened = stage.team("Harbor"), stage.team("Quay"), stage.database
    for _ in range(2):
        link_identity(opened, team.id, "github", "7", name="ann", now=NOW)
    given = (opened, other.id, "github", "7")
    assert code_of(link_identity, *given, name="ann", now=NOW) == "identity-taken"
    assert find_by_identity(opened, "github", "7") == team
    assert find_by_identity(opened, "orcid", "7") is None
    assert [(one.provider, one.name) for one in list_identities(opened, team.id)] == [
        ("github", "ann")
    ]
    close_team(opened, team.id, now=NOW)
    assert find_by_identity(opened, "github", "7") is None


def test_a_team_changes_its_mail(stage: Stage) -> None:
    team = stage.team("Harbor", mail="a@b.org")
    set_mail(stage.database, team.id, " c@d.org ")
    assert get_team(stage.database, team.id).mail == "c@d.org"
    assert code_of(set_mail, stage.database, team.id, "c d@e") == "team-mail"
    assert code_of(get_team, stage.database, 99) == "team-unknown"
