"""A Ladder says what a score is not above; under an embargo that would name the team."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from town import OTHER_TEAM, TEAM, Town, found_town, named

from heldout.board.log.events import Entry
from heldout.board.rules.release import UNTOLD
from heldout.board.store.repository import Repository

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
TWO_MONTHS = "2027-01-03T10:00:00Z"
REVEAL = "2027-03-01T00:00:00Z"
UNTIL = "2027-03-01"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    town = found_town(tmp_path)
    file = town.board / "board.toml"
    file.write_text(file.read_text().replace('rule = "rounded"', 'rule = "ladder"'))
    assert town.organiser("rebuild", now=DAY).code == 0
    town.push()
    town.pull()
    return town


def publish(
    town: Town,
    name: str,
    *,
    seed: int,
    now: str,
    embargo: str | None = None,
    team: Mapping[str, Any] = TEAM,
) -> str:
    submission = town.send(name, seed=seed, now=now, embargo=embargo, team=team)
    town.take_in(now=now)
    answer = town.organiser("publish", submission, "--yes", "--why", "fine", now=now)
    assert answer.code == 0, answer
    return submission


def said(town: Town) -> dict[str, str]:
    """Entry -> what the page says of its official score."""
    return {row["id"]: row["scores"]["eval"] or row["why"]["rank"] for row in town.rows()}


def published(town: Town, submission: str) -> Entry:
    (entry,) = [
        entry
        for entry in Repository(town.board).log()
        if (entry.event.submission, entry.event.kind) == (submission, "published")
    ]
    return entry


def public_text(town: Town, submission: str) -> str:
    """The public line of its publication, and its own page."""
    entry = published(town, submission)
    pages = list((town.board / "leaderboard").rglob(f"*{submission}*.html"))
    assert pages
    opened = {name: one.value for name, one in entry.opened.items()}
    return " ".join([str(entry.event.public), str(opened), *(p.read_text() for p in pages)])


def test_the_bar_of_an_embargoed_entry_does_not_name_its_team(town: Town) -> None:
    first = publish(town, "first", seed=1, now=DAY)
    bar = str(said(town)[first])
    hidden = publish(town, "second", seed=2, now=NEXT, embargo=UNTIL)
    assert said(town)[hidden] == UNTOLD
    assert bar not in public_text(town, hidden)
    assert first not in public_text(town, hidden)
    assert town.audit()["ok"]
    # Opened with the identity, so that the rule can be gone over.
    assert town.organiser("rebuild", now=REVEAL).code == 0
    assert said(town)[hidden] == f"not above {float(bar):.3f}"
    assert published(town, hidden).get("bars")["eval"] == first
    assert town.audit()["ok"]


def test_the_score_of_an_embargoed_entry_is_not_the_bar_of_an_open_one(town: Town) -> None:
    hidden = publish(town, "second", seed=1, now=DAY, embargo=UNTIL)
    bar = str(said(town)[hidden])
    later = publish(town, "third", seed=2, now=NEXT)
    assert said(town)[later] == UNTOLD
    assert bar not in public_text(town, later)
    assert hidden not in public_text(town, later)
    assert town.organiser("rebuild", now=REVEAL).code == 0
    assert said(town)[later] == f"not above {float(bar):.3f}"


def test_an_erratum_does_not_tell_it_either(town: Town) -> None:
    first = publish(town, "first", seed=1, now=DAY)
    hidden = publish(town, "second", seed=2, now=NEXT, embargo=UNTIL)
    answer = town.organiser("correct", hidden, "--why", "looked again", "--anyway", now=NEXT)
    assert answer.code == 0, answer
    (entry,) = [e for e in Repository(town.board).log() if e.event.kind == "corrected"]
    assert "not_above" not in {*entry.event.public, *entry.opened}
    assert said(town)[hidden] == UNTOLD
    assert str(said(town)[first]) not in str(entry.event.public)
    assert town.organiser("rebuild", now=REVEAL).code == 0
    assert said(town)[hidden].startswith("not above 0.")
    assert town.audit()["ok"]


def test_an_open_entry_says_what_it_is_not_above(town: Town) -> None:
    first = publish(town, "first", seed=1, now=DAY)
    second = publish(town, "second", seed=2, now=NEXT)
    assert said(town)[second] == f"not above {float(said(town)[first]):.3f}"
    assert OTHER_TEAM["team"] not in public_text(town, second)


def test_a_bar_does_not_tell_that_an_embargoed_entry_was_renamed(town: Town) -> None:
    """Old name, embargoed entry, new name: only the entry in the middle ties the two."""
    first = publish(town, "first", seed=1, now=DAY)
    bar = str(said(town)[first])
    hidden = publish(town, "second", seed=2, now=DAY, embargo=UNTIL)
    other = named("Foghorn")
    town.fill(hidden, team=other["team"], institution=other["institution"])
    town.send_unchecked(hidden, now=DAY)
    town.take_in(now=DAY)
    assert town.organiser("publish", hidden, "--yes", "--why", "a letter", now=DAY).code == 0
    town.push()
    town.pull()
    later = publish(town, "third", seed=3, now=TWO_MONTHS, team=other)
    assert said(town)[later] == UNTOLD
    assert bar not in public_text(town, later)
    assert first not in public_text(town, later)
    assert TEAM["team"] not in public_text(town, later)
    assert town.audit()["ok"]
    assert town.organiser("rebuild", now=REVEAL).code == 0
    assert said(town)[later] == f"not above {float(bar):.3f}"
    assert published(town, later).get("bars")["eval"] == first
    assert town.audit()["ok"]
