"""What a team can reach by changing names in its metadata, before publication and after it."""

import re
from typing import Any

import pytest
from town import OTHER_TEAM, TEAM, Answer, Town, fresh_town, named

from heldout.board.log.history import read_history
from heldout.board.log.submission import Submission
from heldout.board.policy.checks import counted
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

pytestmark = [pytest.mark.slow, pytest.mark.night]
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
THIRD = "2026-11-04T10:00:00Z"
THIRD_MONTH = "2027-01-04T10:00:00Z"
RENAMED = {"team": "Foghorn Ensemble", "institution": "Foghorn College"}


town = fresh_town


def resend(town: Town, submission: str, *, now: str, **fields: Any) -> dict[str, Any]:
    """Send new metadata as it is, without the checks of `heldout submit`; what became of it."""
    town.fill(submission, **fields)
    town.send_unchecked(submission, now=now)
    receipts = town.take_in(now=now)["received"]
    (receipt,) = [r for r in receipts if r["id"] == submission]
    return dict(receipt)


def shown(town: Town, submission: str) -> str:
    (row,) = [row for row in town.rows() if row["id"] == submission]
    return str(row["team"])


def known(town: Town, submission: str) -> Submission:
    vault = Vault.open(town.vault, board=town.board)
    return vault.history().submissions[submission]


def charged(town: Town, team: str) -> list[str]:
    """The submissions that use a team's quota."""
    history = Vault.open(town.vault, board=town.board).history()
    spec = Repository(town.board).spec()
    at = next(iter(history.submissions.values())).received
    return [s.id for s in counted(history, team, spec, at=at)]


def test_an_entry_is_renamed_only_by_an_organiser(town: Town) -> None:
    entry = town.enter("one", now=DAY, seed=1)
    assert resend(town, entry, now=NEXT, **RENAMED)["kind"] == "proposed"
    assert shown(town, entry) == TEAM["team"]
    (waiting,) = town.take_in(now=NEXT)["waiting"]
    assert (waiting["id"], waiting["status"]) == (entry, "proposed")
    review = town.organiser("review", entry, "--json", now=NEXT).json["reviews"][0]
    asked = {change["field"]: change["after"] for change in review["proposed"]}
    assert asked == RENAMED
    assert "published with the entry" in town.organiser("review", entry, now=NEXT).out
    told = ("--why", "the group has a new name")
    town.push()
    status = town.participant("status", entry, now=NEXT)
    assert "new name" in status.out
    assert "waits for an organiser since 03 Nov 2026" in status.out
    closing = town.organiser("archive", town.root / "a.zip", "--yes", now=NEXT)
    assert closing.code == 2
    assert f"{entry} waits for a decision (1 in all)" in closing.err
    answer = town.organiser("publish", entry, "--yes", *told, now=THIRD).done()
    assert re.search(rf"^ *amended +{entry}$", answer.out, re.MULTILINE)
    assert "published" not in answer.out
    assert shown(town, entry) == RENAMED["team"]
    assert town.kinds()[-2:] == ["proposed", "amended"]
    assert known(town, entry).counts_for == (TEAM["team"], RENAMED["team"])
    assert town.audit()["ok"]
    # The public log says the same, but not what was asked for before it was approved.
    public = Repository(town.board).log()
    assert read_history(public).submissions[entry].counts_for == (TEAM["team"], RENAMED["team"])
    assert {e.event.kind: dict(e.opened) for e in public}["proposed"] == {}


def test_a_name_that_an_organiser_refused_stays_away(town: Town) -> None:
    entry = town.enter("one", now=DAY, seed=1)
    resend(town, entry, now=NEXT, **RENAMED)
    answer = town.organiser("reject", entry, "--why", "who are they?", now=NEXT).done()
    assert re.search(rf"^ *declined +{entry}$", answer.out, re.MULTILINE)
    assert "rejected" not in answer.out
    town.push()
    status = town.participant("status", entry, now=NEXT)
    assert "refused on 03 Nov 2026: who are they?" in status.out
    assert shown(town, entry) == TEAM["team"]
    assert town.take_in(now=THIRD)["waiting"] == []
    assert known(town, entry).status == "published"
    assert charged(town, RENAMED["team"]) == []
    again = town.organiser("reject", entry, "--why", "once more", now=NEXT)
    assert (again.code, "already-decided" in again.err) == (2, True)
    # Everything but the name goes through at once, and a proposal that waits is replaced by it.
    resend(town, entry, now=THIRD, code="https://a.example/x", **RENAMED)
    assert known(town, entry).proposal is not None
    back = {"team": TEAM["team"], "institution": TEAM["institution"], "code": "https://b.example/x"}
    assert resend(town, entry, now=THIRD, **back)["kind"] == "updated"
    assert known(town, entry).proposal is None
    assert town.audit()["ok"]


def test_an_entry_cannot_take_back_what_it_had_to_say(town: Town) -> None:
    entry = town.enter("one", now=DAY, seed=1)
    for fields, rule in (
        ({"model_description": ""}, "description"),
        ({"team": "anonymous"}, "team-named"),
        ({"institution": "n/a"}, "institution-named"),
        ({"training_data": ""}, "training-data"),
    ):
        receipt = resend(town, entry, now=NEXT, **{**TEAM, **fields})
        assert (receipt["kind"], [p["code"] for p in receipt["problems"]]) == ("refused", [rule])
        assert town.kinds()[-1] == "published"


def test_the_name_of_a_victim_costs_it_nothing(town: Town) -> None:
    """Renamed to the victim's name and back, an entry leaves nothing on the victim's account."""
    own = town.enter("own", now=DAY, seed=1)
    entry = town.enter("att", now=DAY, seed=2, team=OTHER_TEAM)
    names = {"team": TEAM["team"], "institution": TEAM["institution"]}
    assert resend(town, entry, now=NEXT, **names)["kind"] == "proposed"
    assert charged(town, TEAM["team"]) == [own]
    names = {"team": OTHER_TEAM["team"], "institution": OTHER_TEAM["institution"]}
    assert resend(town, entry, now=NEXT, **names)["kind"] == "updated"
    assert charged(town, TEAM["team"]) == [own]


def test_a_name_that_was_left_before_publication_costs_its_owner_nothing(town: Town) -> None:
    """Opened under the victim's name, then published under another."""
    entry = town.send("att", seed=2, now=DAY, team=TEAM)
    town.take_in(now=DAY)
    assert town.organiser("review", entry, now=DAY).code == 0
    assert charged(town, TEAM["team"]) == [entry]
    assert resend(town, entry, now=DAY, **OTHER_TEAM)["kind"] == "updated"
    assert town.organiser("publish", entry, "--yes", "--why", "x", now=DAY).code == 0
    assert charged(town, TEAM["team"]) == []
    assert charged(town, OTHER_TEAM["team"]) == [entry]


def test_a_new_name_while_it_waits_makes_no_room_in_the_quota(town: Town) -> None:
    for seed in (1, 2):
        town.enter(f"a{seed}", now=DAY, seed=seed)
    town.share()
    third = town.draft("a3", now=NEXT, seed=3)
    town.send_unchecked(third, now=NEXT)
    town.take_in(now=NEXT)
    assert town.organiser("review", third, now=NEXT).code == 1
    resend(town, third, now=NEXT, paper="", **RENAMED)
    answer = town.organiser("review", third, now=NEXT)
    assert answer.code == 1
    assert "quota" in answer.out
    assert town.publish(third, now=NEXT).code == 1


def test_an_entry_cannot_be_renamed_into_a_team_whose_quota_is_used(town: Town) -> None:
    for seed in (1, 2):
        town.enter(f"a{seed}", now=DAY, seed=seed)
    other = town.enter("b", now=DAY, seed=3, team=OTHER_TEAM)
    names = {"team": TEAM["team"], "institution": TEAM["institution"]}
    assert resend(town, other, now=NEXT, **names)["kind"] == "proposed"
    answer = town.organiser("publish", other, "--yes", "--why", "they are one", now=NEXT)
    assert answer.code == 1
    assert shown(town, other) == OTHER_TEAM["team"]


def rename(town: Town, entry: str, *, now: str) -> Answer:
    assert resend(town, entry, now=now, **RENAMED)["kind"] == "proposed"
    return town.organiser("publish", entry, "--yes", now=now)


def test_an_approved_new_name_gives_no_further_look(town: Town) -> None:
    """Of two entries one is renamed: the new name has no quota of its own."""
    first, second = (town.enter(f"a{seed}", now=DAY, seed=seed) for seed in (1, 2))
    answer = rename(town, first, now=NEXT)
    assert answer.code == 1
    assert re.search(r"a reason is needed \(--why\) for: .*renamed-entry", answer.out)
    assert town.organiser("publish", first, "--yes", "--why", "a letter", now=NEXT).code == 0
    assert charged(town, TEAM["team"]) == charged(town, RENAMED["team"]) == [first, second]
    town.share()
    third = town.draft("a3", now=THIRD, seed=3, team={**named("Foghorn"), **RENAMED})
    town.send_unchecked(third, now=THIRD)
    town.take_in(now=THIRD)
    refused = town.publish(third, now=THIRD)
    assert refused.code == 1
    assert f"more than 2 runs of this team within 30 days, with {first}, {second}" in refused.out
    assert town.audit()["ok"]
