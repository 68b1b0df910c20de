"""What a team can reach by changing names in its metadata, before publication and after it."""

import re
from typing import Any

import pytest
from lab import DAY, NEXT, OTHER_TEAM, TEAM, Answer, Lab, fresh_lab, named

from heldout.board.log.history import read_history
from heldout.board.log.submission import Submission
from heldout.board.policy.checks import counted
from heldout.board.store.repository import Repository
from heldout.board.store.vault import Vault

pytestmark = pytest.mark.night
THIRD = "2026-11-04T10:00:00Z"
RENAMED = {"team": "Foghorn Ensemble", "institution": "Foghorn College"}


lab = fresh_lab


def resend(lab: Lab, submission: str, *, now: str, **fields: Any) -> dict[str, Any]:
    """Send new metadata as it is, without the checks of `heldout submit`; what became of it."""
    lab.fill(submission, **fields)
    lab.send_unchecked(submission, now=now)
    receipts = lab.take_in(now=now)["received"]
    (receipt,) = [r for r in receipts if r["id"] == submission]
    return dict(receipt)


def shown(lab: Lab, submission: str) -> str:
    (row,) = [row for row in lab.rows() if row["id"] == submission]
    return str(row["team"])


def known(lab: Lab, submission: str) -> Submission:
    vault = Vault.open(lab.vault, board=lab.board)
    return vault.history().submissions[submission]


def charged(lab: Lab, team: str) -> list[str]:
    """The submissions that use a team's quota."""
    history = Vault.open(lab.vault, board=lab.board).history()
    spec = Repository(lab.board).spec()
    at = next(iter(history.submissions.values())).received
    return [s.id for s in counted(history, team, spec, at=at)]


def test_an_entry_is_renamed_only_by_an_organiser(lab: Lab) -> None:
    entry = lab.enter("one", seed=1)
    assert resend(lab, entry, now=NEXT, **RENAMED)["kind"] == "proposed"
    assert shown(lab, entry) == TEAM["team"]
    (waiting,) = lab.take_in(now=NEXT)["waiting"]
    assert (waiting["id"], waiting["status"]) == (entry, "proposed")
    review = lab.organiser("review", entry, "--json", now=NEXT).json["reviews"][0]
    assert {change["field"]: change["after"] for change in review["proposed"]} == RENAMED
    assert "published with the entry" in lab.organiser("review", entry, now=NEXT).out
    args = ("--why", "the group has a new name")
    lab.push()
    status = lab.participant("status", entry, now=NEXT)
    assert "new name" in status.out
    assert "waits for an organiser since 03 Nov 2026" in status.out
    lab.organiser("archive", lab.root / "a.zip", "--yes", now=NEXT).refused(
        f"{entry} waits for a decision (1 in all)"
    )
    answer = lab.organiser("publish", entry, "--yes", *args, now=THIRD).done()
    assert re.search(rf"^ *amended +{entry}$", answer.out, re.MULTILINE)
    assert "published" not in answer.out
    assert shown(lab, entry) == RENAMED["team"]
    assert lab.kinds()[-2:] == ["proposed", "amended"]
    assert known(lab, entry).counts_for == (TEAM["team"], RENAMED["team"])
    assert lab.audit()["ok"]
    # The public log says the same, but not what was asked for before it was approved.
    public = Repository(lab.board).log()
    assert read_history(public).submissions[entry].counts_for == (TEAM["team"], RENAMED["team"])
    assert {e.event.kind: dict(e.opened) for e in public}["proposed"] == {}


def test_a_name_that_an_organiser_refused_stays_away(lab: Lab) -> None:
    entry = lab.enter("one", seed=1)
    resend(lab, entry, now=NEXT, **RENAMED)
    answer = lab.organiser("reject", entry, "--why", "who are they?", now=NEXT).done()
    assert re.search(rf"^ *declined +{entry}$", answer.out, re.MULTILINE)
    assert "rejected" not in answer.out
    lab.push()
    status = lab.participant("status", entry, now=NEXT)
    assert "refused on 03 Nov 2026: who are they?" in status.out
    assert shown(lab, entry) == TEAM["team"]
    assert lab.take_in(now=THIRD)["waiting"] == []
    assert known(lab, entry).status == "published"
    assert charged(lab, RENAMED["team"]) == []
    lab.organiser("reject", entry, "--why", "once more", now=NEXT).refused("already-decided")
    # Everything but the name goes through at once, and a proposal that waits is replaced by it.
    resend(lab, entry, now=THIRD, code="https://a.example/x", **RENAMED)
    assert known(lab, entry).proposal is not None
    back = {"team": TEAM["team"], "institution": TEAM["institution"], "code": "https://b.example/x"}
    assert resend(lab, entry, now=THIRD, **back)["kind"] == "updated"
    assert known(lab, entry).proposal is None
    assert lab.audit()["ok"]


def test_an_entry_cannot_take_back_what_it_had_to_say(lab: Lab) -> None:
    entry = lab.enter("one", seed=1)
    for fields, rule in (
        ({"model_description": ""}, "description"),
        ({"team": "anonymous"}, "team-named"),
        ({"institution": "n/a"}, "institution-named"),
        ({"training_data": ""}, "training-data"),
    ):
        receipt = resend(lab, entry, now=NEXT, **{**TEAM, **fields})
        assert (receipt["kind"], [p["code"] for p in receipt["problems"]]) == ("refused", [rule])
        assert lab.kinds()[-1] == "published"


def test_the_name_of_a_victim_costs_it_nothing(lab: Lab) -> None:
    """Renamed to the victim's name and back, an entry leaves nothing on the victim's account."""
    own = lab.enter("own", seed=1)
    entry = lab.enter("att", seed=2, team=OTHER_TEAM)
    names = {"team": TEAM["team"], "institution": TEAM["institution"]}
    assert resend(lab, entry, now=NEXT, **names)["kind"] == "proposed"
    assert charged(lab, TEAM["team"]) == [own]
    names = {"team": OTHER_TEAM["team"], "institution": OTHER_TEAM["institution"]}
    assert resend(lab, entry, now=NEXT, **names)["kind"] == "updated"
    assert charged(lab, TEAM["team"]) == [own]


def test_a_name_that_was_left_before_publication_costs_its_owner_nothing(lab: Lab) -> None:
    """Opened under the victim's name, then published under another."""
    entry = lab.receive("att", seed=2, team=TEAM)
    assert lab.organiser("review", entry).code == 0
    assert charged(lab, TEAM["team"]) == [entry]
    assert resend(lab, entry, now=DAY, **OTHER_TEAM)["kind"] == "updated"
    assert lab.organiser("publish", entry, "--yes", "--why", "x").code == 0
    assert charged(lab, TEAM["team"]) == []
    assert charged(lab, OTHER_TEAM["team"]) == [entry]


def test_a_new_name_while_it_waits_makes_no_room_in_the_quota(lab: Lab) -> None:
    for seed in (1, 2):
        lab.enter(f"a{seed}", seed=seed)
    lab.share()
    third = lab.draft("a3", now=NEXT, seed=3)
    lab.send_unchecked(third, now=NEXT)
    lab.take_in(now=NEXT)
    assert lab.organiser("review", third, now=NEXT).code == 1
    resend(lab, third, now=NEXT, paper="", **RENAMED)
    lab.organiser("review", third, now=NEXT).declined("quota")
    assert lab.publish(third, now=NEXT).code == 1


def test_an_entry_cannot_be_renamed_into_a_team_whose_quota_is_used(lab: Lab) -> None:
    for seed in (1, 2):
        lab.enter(f"a{seed}", seed=seed)
    other = lab.enter("b", seed=3, team=OTHER_TEAM)
    names = {"team": TEAM["team"], "institution": TEAM["institution"]}
    assert resend(lab, other, now=NEXT, **names)["kind"] == "proposed"
    lab.organiser("publish", other, "--yes", "--why", "they are one", now=NEXT).declined()
    assert shown(lab, other) == OTHER_TEAM["team"]


def rename(lab: Lab, entry: str, *, now: str) -> Answer:
    assert resend(lab, entry, now=now, **RENAMED)["kind"] == "proposed"
    return lab.organiser("publish", entry, "--yes", now=now)


def test_an_approved_new_name_gives_no_further_look(lab: Lab) -> None:
    """Of two entries one is renamed: the new name has no quota of its own."""
    first, second = (lab.enter(f"a{seed}", seed=seed) for seed in (1, 2))
    answer = rename(lab, first, now=NEXT).declined()
    assert re.search(r"a reason is needed \(--why\) for: .*renamed-entry", answer.out)
    assert lab.organiser("publish", first, "--yes", "--why", "a letter", now=NEXT).code == 0
    assert charged(lab, TEAM["team"]) == charged(lab, RENAMED["team"]) == [first, second]
    lab.share()
    third = lab.draft("a3", now=THIRD, seed=3, team={**named("Foghorn"), **RENAMED})
    lab.send_unchecked(third, now=THIRD)
    lab.take_in(now=THIRD)
    lab.publish(third, now=THIRD).declined(
        f"more than 2 runs of this team within 30 days, with {first}, {second}"
    )
    assert lab.audit()["ok"]
