"""Registration from the first day to a published entry; every call is a command."""

from pathlib import Path

import pytest
from lab import NEXT, TEAM, Lab, found_lab, git
from registering import (
    AGREEMENT,
    LATER,
    admit,
    admitted_lab,
    asking_lab,
    findings,
    own_file,
    refusal,
    register,
)
from trusting import read_files

from heldout.ids import digest_bytes

STRANGER = {"team": "North Coast Search", "institution": "North Coast University", "contact": ""}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return asking_lab(tmp_path)


@pytest.fixture
def admitted(tmp_path: Path) -> Lab:
    """A lab where one team is registered."""
    return admitted_lab(tmp_path)


# the story


def test_a_team_registers_submits_and_is_published(admitted: Lab) -> None:
    handle = own_file(admitted)["handle"]
    submission = admitted.receive("one", now=NEXT)
    assert findings(admitted, submission) == []
    assert admitted.publish(submission, now=NEXT).code == 0
    assert [row["id"] for row in admitted.rows()] == [submission]
    listed = admitted.organiser("board", "teams", "--json", now=NEXT).json["teams"]
    assert [(t["team"], t["name"], t["agreed"]) for t in listed] == [(handle, TEAM["team"], True)]
    audit = admitted.audit()
    assert audit["ok"], audit
    admitted.participant("audit", "--json", now=NEXT).done()


def test_an_unregistered_team_is_told_how_to_register_and_is_refused(lab: Lab) -> None:
    submission = lab.draft("one")
    answer = lab.participant("check", submission).declined("team-registered")
    assert "heldout register --team" in answer.out.replace("\n", " ").replace("  ", " ")
    assert lab.participant("submit", submission).code == 1
    lab.send_unchecked(submission)
    lab.take_in()
    (said,) = findings(lab, submission)
    assert "heldout register" in said
    assert lab.publish(submission, now=NEXT).code == 1
    assert "published" not in lab.kinds()


def test_a_board_without_the_table_asks_for_nothing(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    lab.participant("register", "--team", "Lighthouse", "--agree").refused("no-registration")
    submission = lab.receive("one")
    assert findings(lab, submission) == []
    assert "signature" not in str(lab.events())


def test_nothing_is_sent_without_consent(lab: Lab) -> None:
    lab.participant("register", "--team", TEAM["team"]).declined(
        "Nobody passes them on.", str(digest_bytes(AGREEMENT.encode()))
    )
    assert "registration/" not in git(lab.forge, "branch", "--list")
    assert not (lab.clone / ".git/heldout" / "team").exists()


def test_the_key_is_the_team_s_alone_and_a_second_call_finds_all_done(admitted: Lab) -> None:
    folder = admitted.clone / ".git/heldout" / "team"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert git(admitted.clone, "status", "--porcelain") == ""
    admitted.participant(
        *("register", "--team", TEAM["team"], "--institution", TEAM["institution"]),
        *("--contact", "ada@lighthouse.example"),
        now=NEXT,
    ).done("(done before)")
    assert admitted.take_in(now=NEXT)["received"] == []


def test_a_changed_agreement_is_a_dated_event_and_asks_again(admitted: Lab) -> None:
    first = admitted.receive("one")
    (admitted.board / "agreement.md").write_text(AGREEMENT + "Nor sells them.\n")
    admitted.take_in(now=NEXT)
    admitted.share()
    assert admitted.kinds().count("changed-agreement") == 2
    assert findings(admitted, first) == []
    second = admitted.draft("two", now=LATER, seed=2)
    answer = admitted.participant("check", second, now=LATER).declined()
    assert "has not agreed to agreement.md" in " ".join(answer.out.split())
    admitted.send_unchecked(second, now=LATER)
    admitted.take_in(now=LATER)
    (said,) = findings(admitted, second, now=LATER)
    assert "since 03 Nov 2026" in said
    register(admitted, now=LATER)
    admitted.take_in(now=LATER)
    admitted.share()
    assert admitted.participant("amend", second, now=LATER).code == 0
    admitted.take_in(now=LATER)
    assert findings(admitted, second, now=LATER) == []
    assert admitted.audit()["ok"]


# what others see


def test_the_public_log_neither_names_a_team_nor_ties_its_submissions(admitted: Lab) -> None:
    handle = own_file(admitted)["handle"]
    admitted.enter("one", now=NEXT, embargo="2027-03-01")
    admitted.share()
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


def test_the_archive_is_sound_and_gives_no_contact_away(admitted: Lab) -> None:
    admitted.enter("one", now=NEXT)
    data = b"".join(read_files(admitted.archive(now=LATER)).values())
    assert TEAM["team"].encode() in data
    assert b"ada@lighthouse.example" not in data
    admitted.organiser(
        "board", "revoke", own_file(admitted)["handle"], "--why", "x", now=LATER
    ).refused("board-closed")


def test_a_revoked_team_is_refused_and_what_was_published_stays(admitted: Lab) -> None:
    handle = own_file(admitted)["handle"]
    first = admitted.enter("one", now=NEXT)
    admitted.organiser("board", "revoke", handle, "--why", "passed on data", now=LATER).done()
    again = admitted.organiser("board", "revoke", handle, "--why", "passed on data", now=LATER)
    assert "(done before)" in again.out
    admitted.share()
    assert findings(admitted, first, now=LATER) == []
    second = admitted.draft("two", now=LATER, seed=2)
    assert admitted.participant("submit", second, now=LATER).code == 1
    admitted.send_unchecked(second, now=LATER)
    admitted.take_in(now=LATER)
    (said,) = findings(admitted, second, now=LATER)
    assert "revoked on 04 Nov 2026" in said
    admitted.participant("register", "--team", TEAM["team"], "--agree", now=LATER).declined(
        "passed on data"
    )
    assert admitted.audit()["ok"]


def test_a_lost_key_is_replaced_after_the_old_one_was_revoked(admitted: Lab) -> None:
    handle = own_file(admitted)["handle"]
    clone = admitted.new_clone("second-clone")
    register(admitted, now=NEXT, clone=clone)
    (receipt,) = admitted.take_in(now=NEXT)["received"]
    assert refusal(receipt) == ["name-registered"]
    admitted.organiser("board", "revoke", handle, "--why", "the key was lost", now=NEXT)
    (receipt,) = admitted.take_in(now=NEXT)["received"]
    assert receipt["kind"] == "registered"


def test_who_was_revoked_and_comes_again_under_a_new_key_is_told_to_the_organisers(
    admitted: Lab,
) -> None:
    handle = own_file(admitted)["handle"]
    admitted.organiser("board", "revoke", handle, "--why", "passed on data", now=NEXT)
    again = {"team": "Lighthouse Retrieva1 Group", "institution": "Another Place"}
    register(admitted, now=NEXT, clone=admitted.new_clone("second"), team=again)
    said = " ".join(admitted.organiser("inbox", now=NEXT).out.split())
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


def test_after_the_last_day_a_registered_team_can_agree_anew_and_no_other_can(lab: Lab) -> None:
    late = "2026-12-01T00:00:00Z"
    admit(lab)
    (lab.board / "agreement.md").write_text("Other terms.\n")
    lab.take_in(now=late)
    lab.share()
    admit(lab, now=late)
    clone = lab.new_clone("late")
    args = ("register", "--team", "Harbour Ranking", "--agree")
    lab.participant(*args, now=late, clone=clone).declined("registration-closed")
    assert lab.audit()["ok"]


def test_a_name_that_is_none_is_refused_before_anything_is_sent(lab: Lab) -> None:
    for name in ("", "anonymous", "Light\u202ehouse", "n" * 201):
        answer = lab.participant("register", "--team", name, "--agree").declined()
        assert "\u202e" not in answer.err
    assert "registration/" not in git(lab.forge, "branch", "--list")


def test_a_team_that_is_no_team_cannot_be_revoked(lab: Lab) -> None:
    answer = lab.organiser("board", "revoke", "team-\x1b[2J", "--why", "x", now=NEXT).refused(
        "unknown-team"
    )
    assert "\x1b" not in answer.err
