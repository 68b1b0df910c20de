"""What organisers write of an embargoed submission is public at once, so it tells nobody's name."""

import pytest
from town import OTHER_TEAM, TEAM, Town, fresh_town

pytestmark = pytest.mark.slow
SENT = "2026-11-03T10:00:00Z"
DAY = "2026-11-05T10:00:00Z"
UNTIL = "2027-03-01"
AFTER = "2027-03-02T10:00:00Z"
NAME = str(TEAM["team"])


town = fresh_town


def is_told(town: Town) -> bool:
    return NAME in (town.board / "log.jsonl").read_text("utf-8")


@pytest.mark.parametrize("reviewed", [True, False])
def test_a_question_that_names_an_embargoed_team_is_refused_and_stays_unsaid(
    town: Town, *, reviewed: bool
) -> None:
    one = town.send("anon", now=SENT, embargo=UNTIL)
    town.take_in(now=DAY)
    if reviewed:
        assert town.organiser("review", one, now=DAY).code == 0
    before = town.kinds()
    for arguments in (
        ("ask", one, f"Which dataset, {NAME}?"),
        ("ask", one, f"Is {TEAM['paper']} the paper?"),
        ("reject", one, "--why", f"{TEAM['institution']} is over its quota"),
    ):
        answer = town.organiser(*arguments, now=DAY)
        assert answer.code == 2
        assert "telling-text" in answer.err
        assert "--yes" in answer.err
    assert town.kinds() == before
    assert not is_told(town)
    assert town.organiser("ask", one, "Which dataset is it?", now=DAY).code == 0
    # A word may only look so; who says --yes has looked.
    assert town.organiser("ask", one, "Which lighthouse queries?", "--yes", now=DAY).code == 0


def test_reasons_of_later_events_are_held_against_the_embargo_until_it_ends(town: Town) -> None:
    one = town.send("anon", now=SENT, embargo=UNTIL)
    town.take_in(now=DAY)
    assert town.publish(one, now=DAY).code == 0
    why = f"the review of the paper by {NAME} was delayed"
    for arguments in (
        ("extend", one, "2027-04-01", "--why", why),
        ("correct", one, "--why", why, "--anyway"),
    ):
        assert "telling-text" in town.organiser(*arguments, now=DAY).err
    assert not is_told(town)
    assert town.organiser("rebuild", now=AFTER).code == 0
    town.organiser("correct", one, "--why", why, "--anyway", now=AFTER).done()
    assert is_told(town)


def test_of_a_team_without_embargo_anything_may_be_said(town: Town) -> None:
    one = town.send("open", now=SENT)
    town.take_in(now=DAY)
    assert town.organiser("ask", one, f"Which dataset, {NAME}?", now=DAY).code == 0


def test_a_reason_ties_no_entry_to_one_that_an_embargo_hides(town: Town) -> None:
    """Junk under a suspected team's name; what a review says of others is pasted into a reason."""
    hidden = town.send("anon", now=SENT, embargo=UNTIL)
    junk = town.send("junk", now=SENT, seed=2)
    other = town.send("other", now=SENT, seed=3, team=OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.publish(hidden, now=DAY).code == 0
    assert town.organiser("review", junk, now=DAY).code in (0, 1)
    before = town.kinds()
    for why in (
        f"more than 2 runs of this team within 30 days, with {other} and one under embargo",
        f"nearly the same run as {hidden}",
        f"{NAME} has an entry already",
    ):
        answer = town.organiser("reject", junk, "--why", why, now=DAY)
        assert (answer.code, "telling-text" in answer.err) == (2, True), why
    answer = town.organiser("reject", other, "--why", f"{NAME} sent it, too", now=DAY)
    assert "telling-text" in answer.err
    assert town.kinds() == before
    assert not is_told(town)
    why = f"the same run as {other}, whose team nothing hides"
    assert town.organiser("reject", junk, "--why", why, now=DAY).code == 0


@pytest.mark.parametrize("suspected", [True, False])
def test_a_reason_does_not_speak_of_a_quota_that_a_hidden_entry_fills(
    town: Town, *, suspected: bool
) -> None:
    """Of the same name: its open entries can be counted, and are too few for a refusal."""
    hidden = town.send("anon", now=SENT, embargo=UNTIL)
    junk = town.send("junk", now=SENT, seed=2, team=TEAM if suspected else OTHER_TEAM)
    town.take_in(now=DAY)
    assert town.publish(hidden, now=DAY).code == 0
    assert town.organiser("review", junk, now=DAY).code in (0, 1)
    for why in (
        "refused by the quota",
        "too many submissions this month",
        "more than 2 runs of this team within 30 days",
        "your team has already two entries",
    ):
        answer = town.organiser("ask", junk, why, now=DAY)
        assert (answer.code, "telling-text" in answer.err) == (
            (2, True) if suspected else (0, False)
        )
    assert town.organiser("reject", junk, "--why", "not a new system", now=DAY).code == 0


def test_a_reason_does_not_count_the_entries_of_a_hidden_team(town: Town) -> None:
    one = town.send("anon", now=SENT, embargo=UNTIL)
    town.take_in(now=DAY)
    assert town.organiser("review", one, now=DAY).code == 0
    answer = town.organiser("reject", one, "--why", "refused by the quota", now=DAY)
    assert "telling-text" in answer.err
    assert town.organiser("ask", one, "Over its quota?", "--yes", now=DAY).code == 0
