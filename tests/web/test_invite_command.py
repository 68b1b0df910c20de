"""`heldout invite`: a link, who joined, and who is shut out; no server is needed."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import update

from heldout.board.log.manifest import team_key
from heldout.cli.program import main
from heldout.intake.app import intake_database
from heldout.intake.tables import teams
from heldout.intake.teams import accept_invitation, create_invitation, find_team, replace_tokens

CLEAN = dict.fromkeys(("DATABASE_URL", "HELDOUT_ROOT", "HELDOUT_UPLOADS", "HELDOUT_SMTP"))
ROOT = ("--root", "https://board.example")


def invite(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner(env=CLEAN).invoke(main, ["invite", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def document(*arguments: str | Path) -> Any:
    code, output = invite(*arguments, "--json")
    assert code == 0, output
    return json.loads(output)


def test_a_link_is_made_listed_used_and_a_team_is_shut_out(tmp_path: Path) -> None:
    here, now = ("--uploads", tmp_path), datetime.now(UTC)
    link = document(*here, *ROOT, "--note", "the group in the north")["link"]
    assert link.startswith("https://board.example/join/heldout_")
    listed = document(*here, "--list")
    assert [one["note"] for one in listed["invitations"]] == ["the group in the north"]
    assert link.rpartition("/")[2] not in json.dumps(listed)
    database = intake_database(tmp_path, "")
    secret = link.rpartition("/")[2]
    team = accept_invitation(database, secret, name="Harbor", mail="", now=now)
    token = replace_tokens(database, team.id, now=now)
    assert [one["name"] for one in document(*here, "--list")["teams"]] == ["Harbor"]
    again = document("harbor", *here, *ROOT)["link"].rpartition("/")[2]
    assert accept_invitation(database, again, name="", mail="", now=now).id == team.id
    assert find_team(database, token, now=now, kind="api") is not None
    assert document("Harbor", *here, "--bar")["team"] == "Harbor"
    assert find_team(database, token, now=now, kind="api") is None
    assert "shut out" in invite(*here, "--list")[1]
    database.close()
    assert (tmp_path / "intake.sqlite").stat().st_mode & 0o077 == 0


def test_teams_whose_names_look_alike_are_shown_and_get_no_link(tmp_path: Path) -> None:
    """As an earlier version let them join: today the second is refused."""
    here, now = ("--uploads", tmp_path), datetime.now(UTC)
    database = intake_database(tmp_path, "")
    for name in ("Zebra Crew", "Harbor", "false"):
        _, secret = create_invitation(database, note="", now=now)
        accept_invitation(database, secret, name=name, mail="", now=now)
    false = "Z\u0435bra Crew"
    row = update(teams).where(teams.c.name == "false").values(name=false, key=team_key(false))
    database.write(lambda connection: connection.execute(row))
    database.close()
    listed = invite(*here, "--list")[1]
    assert "as 'Zebra Crew' it looks like another" in listed
    assert "as 'Z\\u0435bra Crew' it looks like another" in listed
    assert listed.count("looks like") == 2
    for name in ("zebra crew", false):
        code, output = invite(name, *here, *ROOT)
        assert code != 0
        assert "team-alike" in output
    assert document(false, *here, "--bar")["team"] == false
    assert "/join/" in document("Zebra Crew", *here, *ROOT)["link"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "which folder of uploads"),
        (("--uploads", "{here}"), "which address"),
        (("--uploads", "{here}", "--bar"), "name of a team"),
        (("--uploads", "{here}", "--bar", "nobody"), "team-unknown"),
        (("--uploads", "{here}", *ROOT, "--mail", "a@example.org"), "no mail server"),
        (("--uploads", "{here}/gone", "--list"), "does not exist"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    code, output = invite(*(one.format(here=tmp_path) for one in arguments))
    assert code == 2
    assert says in " ".join(output.split())
