"""What changed in a submission's metadata, as the log has it."""

import msgspec
from boardlog import BoardLog, make_manifest

from heldout.board.log.history import last_proposal, list_amendments, list_proposed

NAME = "20261101-a"


def test_each_revision_is_compared_with_the_one_before() -> None:
    log = BoardLog().open()
    now = make_manifest()
    log.receive(NAME)
    log.review(NAME, now)
    moments = []
    for team, paper in (("Lamp", now.paper), ("Lamp", ""), ("Lamp", "")):
        log.wait(days=1)
        now = msgspec.structs.replace(now, team=team, paper=paper, revision=now.revision + 1)
        log.update(NAME, now)
        moments.append(log.now)
    log.publish(NAME, now, "0.4")
    log.submit("20261101-b", make_manifest("Another"), "0.3")
    found = list_amendments(log.entries, NAME)
    assert [(change.at, change.field, change.before, change.after) for change in found] == [
        (moments[0], "team", "Lighthouse", "Lamp"),
        (moments[1], "paper", "https://example.org/papers/lighthouse", ""),
    ]
    assert list_amendments(log.entries, "20261101-b") == ()


def test_what_a_team_asks_for_is_compared_with_what_holds() -> None:
    log = BoardLog().open()
    log.submit(NAME, make_manifest(code=""), "0.4")
    assert list_proposed(log.history.submissions[NAME]) == ()
    asked = make_manifest("Lamp", institution="Institute of Lighthouse", paper="", revision=2)
    log.propose(NAME, msgspec.structs.replace(asked, description="BM25 by Lighthouse"))
    found = list_proposed(log.history.submissions[NAME])
    assert [(change.at, change.field, change.before, change.after) for change in found] == [
        (log.now, "team", "Lighthouse", "Lamp"),
        (log.now, "paper", "https://example.org/papers/lighthouse", ""),
        (log.now, "code", "", "https://example.org/code/lamp"),
    ]


def test_what_a_team_asked_for_waits_or_was_refused_until_something_newer_holds() -> None:
    log = BoardLog().open()
    log.submit(NAME, make_manifest(), "0.4")
    assert last_proposal(log.entries, NAME) is None
    log.propose(NAME, make_manifest("Lamp", revision=2))
    waits = last_proposal(log.entries, NAME)
    assert waits is not None
    assert (waits.state, waits.why, waits.at) == ("waits", "", log.now)
    log.wait(days=1)
    log.decline(NAME)
    refused = last_proposal(log.entries, NAME)
    assert refused is not None
    assert (refused.state, refused.at, refused.files) == ("declined", log.now, waits.files)
    assert refused.why
    assert last_proposal(log.entries, "20261101-b") is None
    log.update(NAME, make_manifest(revision=3))
    assert last_proposal(log.entries, NAME) is None
