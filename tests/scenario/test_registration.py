"""Registration from the first day to a published entry; every call is a command."""

import zipfile
from pathlib import Path

import pytest
from registering_town import (
    AGREEMENT,
    DAY,
    LATER,
    NEXT,
    admit,
    admitted_town,
    asking_town,
    findings,
    own_file,
    publish_board,
    refusal,
    register,
)
from town import TEAM, Town, found_town, git

from heldout.ids import digest_bytes

pytestmark = pytest.mark.slow
STRANGER = {"team": "North Coast Search", "institution": "North Coast University", "contact": ""}


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return asking_town(tmp_path)


@pytest.fixture
def admitted(tmp_path: Path) -> Town:
    """A town where one team is registered."""
    return admitted_town(tmp_path)


# the story


def test_a_team_registers_submits_and_is_published(admitted: Town) -> None:
    handle = own_file(admitted)["handle"]
    submission = admitted.send("one", now=NEXT)
    admitted.take_in(now=NEXT)
    assert findings(admitted, submission) == []
    assert admitted.publish(submission, now=NEXT).code == 0
    assert [row["id"] for row in admitted.rows()] == [submission]
    listed = admitted.organiser("board", "teams", "--json", now=NEXT).json["teams"]
    assert [(t["team"], t["name"], t["agreed"]) for t in listed] == [(handle, TEAM["team"], True)]
    audit = admitted.audit()
    assert audit["ok"], audit
    admitted.participant("audit", "--json", now=NEXT).done()


def test_an_unregistered_team_is_told_how_to_register_and_is_refused(town: Town) -> None:
    submission = town.draft("one", now=DAY)
    answer = town.participant("check", submission, now=DAY)
    assert answer.code == 1
    assert "team-registered" in answer.out
    assert "heldout register --team" in answer.out.replace("\n", " ").replace("  ", " ")
    assert town.participant("submit", submission, now=DAY).code == 1
    town.send_unchecked(submission, now=DAY)
    town.take_in(now=DAY)
    (told,) = findings(town, submission)
    assert "heldout register" in told
    assert town.publish(submission, now=NEXT).code == 1
    assert "published" not in town.kinds()


def test_a_board_without_the_table_asks_for_nothing(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    answer = town.participant("register", "--team", "Lighthouse", "--agree", now=DAY)
    assert answer.code == 2
    assert "no-registration" in answer.err
    submission = town.send("one", now=DAY)
    town.take_in(now=DAY)
    assert findings(town, submission) == []
    assert "signature" not in str(town.events())


def test_nothing_is_sent_without_consent(town: Town) -> None:
    answer = town.participant("register", "--team", TEAM["team"], now=DAY)
    assert answer.code == 1
    assert "Nobody passes them on." in answer.err
    assert str(digest_bytes(AGREEMENT.encode())) in answer.err
    assert "registration/" not in git(town.forge, "branch", "--list")
    assert not (town.clone / ".git/heldout" / "team").exists()


def test_the_key_is_the_team_s_alone_and_a_second_call_finds_all_done(admitted: Town) -> None:
    folder = admitted.clone / ".git/heldout" / "team"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert git(admitted.clone, "status", "--porcelain") == ""
    answer = admitted.participant(
        *("register", "--team", TEAM["team"], "--institution", TEAM["institution"]),
        *("--contact", "ada@lighthouse.example"),
        now=NEXT,
    ).done()
    assert "(done before)" in answer.out
    assert admitted.take_in(now=NEXT)["received"] == []


def test_a_changed_agreement_is_a_dated_event_and_asks_again(admitted: Town) -> None:
    first = admitted.send("one", now=DAY)
    admitted.take_in(now=DAY)
    (admitted.board / "agreement.md").write_text(AGREEMENT + "Nor sells them.\n")
    admitted.take_in(now=NEXT)
    publish_board(admitted)
    assert admitted.kinds().count("changed-agreement") == 2
    assert findings(admitted, first) == []
    second = admitted.draft("two", now=LATER, seed=2)
    answer = admitted.participant("check", second, now=LATER)
    assert answer.code == 1
    assert "has not agreed to agreement.md" in " ".join(answer.out.split())
    admitted.send_unchecked(second, now=LATER)
    admitted.take_in(now=LATER)
    (told,) = findings(admitted, second, now=LATER)
    assert "since 03 Nov 2026" in told
    register(admitted, now=LATER)
    admitted.take_in(now=LATER)
    publish_board(admitted)
    assert admitted.participant("amend", second, now=LATER).code == 0
    admitted.take_in(now=LATER)
    assert findings(admitted, second, now=LATER) == []
    assert admitted.audit()["ok"]


# what others see


def test_the_public_log_neither_names_a_team_nor_ties_its_submissions(admitted: Town) -> None:
    handle = own_file(admitted)["handle"]
    admitted.enter("one", now=NEXT, embargo="2027-03-01")
    publish_board(admitted)
    key = own_file(admitted)["key"]
    lines = (admitted.clone / "log.jsonl").read_text().splitlines()
    assert [handle in line or key in line for line in lines].count(True) == 1
    text = "\n".join([*lines, git(admitted.forge, "log", "--all", "--format=%an %ae %B")])
    for secret in (TEAM["team"], TEAM["institution"], "ada@lighthouse.example", "Someone Here"):
        assert secret not in "\n".join(lines)
    assert f"Registration of {handle}" in text
    author = git(admitted.forge, "log", "-1", "--format=%an", f"registration/{handle}")
    assert author == "Anonymous"
    pages = "".join(p.read_text() for p in (admitted.board / "leaderboard").rglob("*.html"))
    assert handle not in pages


def test_the_archive_is_sound_and_gives_no_contact_away(admitted: Town) -> None:
    admitted.enter("one", now=NEXT)
    file = admitted.root / "kb.zip"
    assert admitted.organiser("archive", file, "--yes", now=LATER).code == 0
    assert admitted.participant("audit", file, now=LATER, clone=admitted.board).code == 0
    with zipfile.ZipFile(file) as archive:
        data = b"".join(archive.read(name) for name in archive.namelist())
    assert TEAM["team"].encode() in data
    assert b"ada@lighthouse.example" not in data
    answer = admitted.organiser(
        "board", "revoke", own_file(admitted)["handle"], "--why", "x", now=LATER
    )
    assert answer.code == 2
    assert "board-closed" in answer.err


def test_a_revoked_team_is_refused_and_what_was_published_stays(admitted: Town) -> None:
    handle = own_file(admitted)["handle"]
    first = admitted.enter("one", now=NEXT)
    admitted.organiser("board", "revoke", handle, "--why", "passed on data", now=LATER).done()
    again = admitted.organiser("board", "revoke", handle, "--why", "passed on data", now=LATER)
    assert "(done before)" in again.out
    publish_board(admitted)
    assert findings(admitted, first, now=LATER) == []
    second = admitted.draft("two", now=LATER, seed=2)
    assert admitted.participant("submit", second, now=LATER).code == 1
    admitted.send_unchecked(second, now=LATER)
    admitted.take_in(now=LATER)
    (told,) = findings(admitted, second, now=LATER)
    assert "revoked on 04 Nov 2026" in told
    answer = admitted.participant("register", "--team", TEAM["team"], "--agree", now=LATER)
    assert answer.code == 1
    assert "passed on data" in answer.err
    assert admitted.audit()["ok"]


def test_a_lost_key_is_replaced_after_the_old_one_was_revoked(admitted: Town) -> None:
    handle = own_file(admitted)["handle"]
    clone = admitted.new_clone("second-clone")
    register(admitted, now=NEXT, clone=clone)
    (receipt,) = admitted.take_in(now=NEXT)["received"]
    assert refusal(receipt) == ["name-registered"]
    admitted.organiser("board", "revoke", handle, "--why", "the key was lost", now=NEXT)
    (receipt,) = admitted.take_in(now=NEXT)["received"]
    assert receipt["kind"] == "registered"


def test_who_was_revoked_and_comes_again_under_a_new_key_is_told_to_the_organisers(
    admitted: Town,
) -> None:
    handle = own_file(admitted)["handle"]
    admitted.organiser("board", "revoke", handle, "--why", "passed on data", now=NEXT)
    again = {"team": "Lighthouse Retrieva1 Group", "institution": "Another Place"}
    register(admitted, now=NEXT, clone=admitted.new_clone("second"), team=again)
    answer = admitted.organiser("inbox", now=NEXT)
    said = " ".join(answer.out.split())
    assert f'nearly the same name, "{TEAM["team"]}", the same contact: {handle}, revoked' in said
    assert "passed on data" in said
    second, first = sorted(
        admitted.organiser("board", "teams", "--json", now=NEXT).json["teams"],
        key=lambda team: len(team["notes"]),
        reverse=True,
    )
    assert (first["team"], first["notes"]) == (handle, [])
    assert len(second["notes"]) == 1
    register(admitted, now=NEXT, clone=admitted.new_clone("third"), team=STRANGER)
    assert admitted.take_in(now=NEXT)["received"][0]["notes"] == []


def test_after_the_last_day_a_registered_team_can_agree_anew_and_no_other_can(town: Town) -> None:
    late = "2026-12-01T00:00:00Z"
    admit(town)
    (town.board / "agreement.md").write_text("Other terms.\n")
    town.take_in(now=late)
    publish_board(town)
    admit(town, now=late)
    clone = town.new_clone("late")
    told = ("register", "--team", "Harbour Ranking", "--agree")
    answer = town.participant(*told, now=late, clone=clone)
    assert answer.code == 1
    assert "registration-closed" in answer.err
    assert town.audit()["ok"]


def test_a_name_that_is_none_is_refused_before_anything_is_sent(town: Town) -> None:
    for name in ("", "anonymous", "Light\u202ehouse", "n" * 201):
        answer = town.participant("register", "--team", name, "--agree", now=DAY)
        assert answer.code == 1, name
        assert "\u202e" not in answer.err
    assert "registration/" not in git(town.forge, "branch", "--list")


def test_a_team_that_is_no_team_cannot_be_revoked(town: Town) -> None:
    answer = town.organiser("board", "revoke", "team-\x1b[2J", "--why", "x", now=NEXT)
    assert answer.code == 2
    assert "unknown-team" in answer.err
    assert "\x1b" not in answer.err
