"""Invitations, accounts, tokens and identities."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import intake_stage
import pytest
from intake_stage import NOW, Stage, make_stage

from heldout.database.database import Database
from heldout.errors import InputError
from heldout.intake.teams import (
    MOST_SESSIONS,
    Team,
    accept_invitation,
    close_session,
    close_team,
    create_invitation,
    find_invitation,
    find_team,
    get_team,
    link_identity,
    list_invitations,
    list_providers,
    list_teams,
    open_session,
    replace_tokens,
)

database = intake_stage.database
stage = intake_stage.stage
team = intake_stage.team
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


def test_an_invitation_that_ended_registers_nobody(database: Database) -> None:
    _, late = create_invitation(database, note="", now=NOW, valid=HOUR)
    given: dict[str, Any] = {"name": "X", "mail": "", "now": NOW + HOUR}
    assert code_of(accept_invitation, database, late, **given) == "invitation-expired"
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
    link_identity(opened, team.id, "github", "666", now=NOW, session=thief)
    assert open_session(opened, ("github", "666"), now=NOW, valid=DAY) is not None
    fresh = replace_tokens(opened, team.id, now=NOW)
    assert open_session(opened, stolen, now=NOW, valid=DAY) is None
    assert open_session(opened, ("github", "666"), now=NOW, valid=DAY) is None
    over: dict[str, Any] = {"now": NOW, "session": thief}
    assert code_of(replace_tokens, opened, team.id, **over) == "team-token"
    assert code_of(link_identity, opened, team.id, "github", "666", **over) == "team-token"
    assert find_team(opened, thief, now=NOW, kind="session") is None
    assert find_team(opened, fresh, now=NOW, kind="api") == team


def test_a_session_of_another_team_asks_for_nothing(stage: Stage) -> None:
    team, other, opened = stage.team("Harbor"), stage.team("Quay"), stage.database
    session = open_session(opened, replace_tokens(opened, other.id, now=NOW), now=NOW, valid=DAY)
    assert session is not None
    given: dict[str, Any] = {"now": NOW, "session": session}
    assert code_of(replace_tokens, opened, team.id, **given) == "team-token"


def test_who_signs_in_while_the_token_is_replaced_has_no_session_afterwards(
    database: Database, tmp_path: Path
) -> None:
    stage = make_stage(database, tmp_path)
    team = stage.team("Harbor")
    stolen = replace_tokens(database, team.id, now=NOW)
    gate = threading.Barrier(6)

    def enter(number: int) -> list[str | None]:
        gate.wait()
        if number == 0:
            replace_tokens(database, team.id, now=NOW)
        return [open_session(database, stolen, now=NOW, valid=DAY) for _ in range(3)]

    with ThreadPoolExecutor(6) as pool:
        sessions = [one for some in pool.map(enter, range(6)) for one in some if one is not None]
    assert [find_team(database, one, now=NOW, kind="session") for one in sessions] == [
        None for _ in sessions
    ]


def enter(stage: Stage, team: Team) -> tuple[str, str]:
    """A new token of a team, and a session that it opened."""
    token = replace_tokens(stage.database, team.id, now=NOW)
    session = open_session(stage.database, token, now=NOW, valid=HOUR)
    assert session is not None
    return token, session


def test_a_token_opens_nothing_once_it_ended_or_its_team_is_shut_out(stage: Stage) -> None:
    team, opened = stage.team("Harbor"), stage.database
    token, session = enter(stage, team)
    assert find_team(opened, session, now=NOW, kind="session") == team
    assert find_team(opened, session, now=NOW + HOUR, kind="session") is None
    assert find_team(opened, session, now=NOW, kind="api") is None
    assert find_team(opened, "heldout_nothing", now=NOW, kind="api") is None
    close_team(opened, team.id, now=NOW)
    assert find_team(opened, token, now=NOW, kind="api") is None
    close_team(opened, team.id, now=None)
    assert find_team(opened, token, now=NOW, kind="api") is not None
    close_session(opened, token, now=NOW)  # a token is no session
    assert find_team(opened, token, now=NOW, kind="api") is not None
    close_session(opened, session, now=NOW)
    assert find_team(opened, session, now=NOW, kind="session") is None


def test_a_team_has_so_many_sessions_and_its_oldest_ends(stage: Stage, team: Team) -> None:
    token, first = enter(stage, team)
    more = [open_session(stage.database, token, now=NOW, valid=HOUR) for _ in range(MOST_SESSIONS)]
    found = [find_team(stage.database, str(one), now=NOW, kind="session") for one in (first, *more)]
    assert found == [None, *[team] * MOST_SESSIONS]


def test_an_identity_signs_in_as_one_team(stage: Stage) -> None:
    team, other, opened = stage.team("Harbor"), stage.team("Quay"), stage.database
    (_, own), (_, theirs) = enter(stage, team), enter(stage, other)
    for _ in range(2):
        link_identity(opened, team.id, "github", "7", now=NOW, session=own)
    given: dict[str, Any] = {"now": NOW, "session": theirs}
    assert code_of(link_identity, opened, other.id, "github", "7", **given) == "identity-taken"
    session = open_session(opened, ("github", "7"), now=NOW, valid=HOUR)
    assert find_team(opened, str(session), now=NOW, kind="session") == team
    assert open_session(opened, ("orcid", "7"), now=NOW, valid=HOUR) is None
    assert list_providers(opened, team.id) == {"github"}
    close_team(opened, team.id, now=NOW)
    assert open_session(opened, ("github", "7"), now=NOW, valid=HOUR) is None
    assert code_of(get_team, opened, 99) == "team-unknown"
