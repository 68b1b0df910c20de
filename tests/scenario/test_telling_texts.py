"""What organisers write of an embargoed submission is public at once, so it tells nobody's name."""

import pytest
from lab import NEXT, OTHER_TEAM, TEAM, Lab, fresh_lab

DAY = "2026-11-05T10:00:00Z"
UNTIL = "2027-03-01"
AFTER = "2027-03-02T10:00:00Z"
NAME = str(TEAM["team"])


lab = fresh_lab


def is_told(lab: Lab) -> bool:
    return NAME in (lab.board / "log.jsonl").read_text("utf-8")


@pytest.mark.parametrize("reviewed", [True, pytest.param(False, marks=pytest.mark.night)])
def test_a_question_that_names_an_embargoed_team_is_refused_and_stays_unsaid(
    lab: Lab, *, reviewed: bool
) -> None:
    one = lab.send("anon", now=NEXT, embargo=UNTIL)
    lab.take_in(now=DAY)
    if reviewed:
        assert lab.organiser("review", one, now=DAY).code == 0
    before = lab.kinds()
    for arguments in (
        ("ask", one, f"Which dataset, {NAME}?"),
        ("ask", one, f"Is {TEAM['paper']} the paper?"),
        ("reject", one, "--why", f"{TEAM['institution']} is over its quota"),
    ):
        lab.organiser(*arguments, now=DAY).refused("telling-text", "--yes")
    assert lab.kinds() == before
    assert not is_told(lab)
    assert lab.organiser("ask", one, "Which dataset is it?", now=DAY).code == 0
    # A word may only look so; who says --yes has looked.
    assert lab.organiser("ask", one, "Which lighthouse queries?", "--yes", now=DAY).code == 0


def test_reasons_of_later_events_are_held_against_the_embargo_until_it_ends(lab: Lab) -> None:
    one = lab.send("anon", now=NEXT, embargo=UNTIL)
    lab.take_in(now=DAY)
    assert lab.publish(one, now=DAY).code == 0
    why = f"the review of the paper by {NAME} was delayed"
    for arguments in (
        ("extend", one, "2027-04-01", "--why", why),
        ("correct", one, "--why", why, "--anyway"),
    ):
        assert "telling-text" in lab.organiser(*arguments, now=DAY).err
    assert not is_told(lab)
    assert lab.organiser("rebuild", now=AFTER).code == 0
    lab.organiser("correct", one, "--why", why, "--anyway", now=AFTER).done()
    assert is_told(lab)


def test_a_reason_ties_no_entry_to_one_that_an_embargo_hides(lab: Lab) -> None:
    """Junk under a suspected team's name; what a review says of others is pasted into a reason."""
    hidden = lab.send("anon", now=NEXT, embargo=UNTIL)
    junk = lab.send("junk", now=NEXT, seed=2)
    other = lab.send("other", now=NEXT, seed=3, team=OTHER_TEAM)
    lab.take_in(now=DAY)
    assert lab.publish(hidden, now=DAY).code == 0
    assert lab.organiser("review", junk, now=DAY).code in (0, 1)
    before = lab.kinds()
    for why in (
        f"more than 2 runs of this team within 30 days, with {other} and one under embargo",
        f"nearly the same run as {hidden}",
        f"{NAME} has an entry already",
    ):
        lab.organiser("reject", junk, "--why", why, now=DAY).refused("telling-text")
    answer = lab.organiser("reject", other, "--why", f"{NAME} sent it, too", now=DAY)
    assert "telling-text" in answer.err
    assert lab.kinds() == before
    assert not is_told(lab)
    why = f"the same run as {other}, whose team nothing hides"
    assert lab.organiser("reject", junk, "--why", why, now=DAY).code == 0


@pytest.mark.parametrize("suspected", [True, False])
def test_a_reason_does_not_speak_of_a_quota_that_a_hidden_entry_fills(
    lab: Lab, *, suspected: bool
) -> None:
    """Of the same name: its open entries can be counted, and are too few for a refusal."""
    hidden = lab.send("anon", now=NEXT, embargo=UNTIL)
    junk = lab.send("junk", now=NEXT, seed=2, team=TEAM if suspected else OTHER_TEAM)
    lab.take_in(now=DAY)
    assert lab.publish(hidden, now=DAY).code == 0
    assert lab.organiser("review", junk, now=DAY).code in (0, 1)
    for why in (
        "refused by the quota",
        "too many submissions this month",
        "more than 2 runs of this team within 30 days",
        "your team has already two entries",
    ):
        answer = lab.organiser("ask", junk, why, now=DAY)
        assert (answer.code, "telling-text" in answer.err) == (
            (2, True) if suspected else (0, False)
        )
    assert lab.organiser("reject", junk, "--why", "not a new system", now=DAY).code == 0


def test_a_reason_does_not_count_the_entries_of_a_hidden_team(lab: Lab) -> None:
    one = lab.send("anon", now=NEXT, embargo=UNTIL)
    lab.take_in(now=DAY)
    assert lab.organiser("review", one, now=DAY).code == 0
    answer = lab.organiser("reject", one, "--why", "refused by the quota", now=DAY)
    assert "telling-text" in answer.err
    assert lab.organiser("ask", one, "Over its quota?", "--yes", now=DAY).code == 0
