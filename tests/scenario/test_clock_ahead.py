"""A clock far ahead reveals nothing and dates no event; one before the log makes no page."""

import shutil

import pytest
from lab import NEXT, OTHER_TEAM, Lab, git, prepared

from heldout.board.store.sharing import DERIVED_FOLDERS

REVEAL = "2027-06-01T00:00:00Z"
AHEAD = {"a typing error": "2062-01-05T10:00:00Z", "one year": "2027-11-02T10:00:00Z"}


@prepared
def lab(lab: Lab) -> None:
    """One entry under an embargo, one submission that waits, one that lies on the forge."""
    lab.enter("hidden", embargo="2027-06-01")
    lab.receive("waits", seed=2, team=OTHER_TEAM)
    lab.send("comes", seed=3, team=OTHER_TEAM)


def state(lab: Lab) -> dict[str, bytes]:
    """Board and vault, but for git's files and those that a vault can make again at any time."""
    files = (p for root in (lab.board, lab.vault) for p in root.rglob("*") if p.is_file())
    left = {".git", "lock", *DERIVED_FOLDERS}
    rest = {str(p): p.read_bytes() for p in files if not left & set(p.parts)}
    return {**rest, "HEAD": git(lab.board, "rev-parse", "HEAD").encode()}


@pytest.mark.parametrize("clock", AHEAD)
def test_a_clock_ahead_reveals_nobody(lab: Lab, clock: str) -> None:
    before = state(lab)
    lab.organiser("rebuild", now=AHEAD[clock]).refused(
        "after all that this board knows of, and would reveal 20261102-anon-",
        "heldout rebuild --yes",
    )
    assert state(lab) == before


@pytest.mark.parametrize(
    "command", ["inbox", "review", "publish", "reject", "ask", "extend", "rekey"]
)
def test_a_clock_ahead_dates_no_event(lab: Lab, command: str) -> None:
    (hidden,) = (row["id"] for row in lab.rows())
    said = {
        "review": ["20261102-waits"],
        "publish": ["20261102-waits", "--yes"],
        "reject": ["20261102-waits", "--why", "x"],
        "ask": ["20261102-waits", "Who are you?"],
        "extend": [hidden, "2062-03-01", "--why", "x"],
    }.get(command, [])
    words = ["board", "rekey", "--why", "x", "--yes"] if command == "rekey" else [command, *said]
    before = state(lab)
    lab.organiser(*words, now=AHEAD["a typing error"]).refused("after all that this board knows of")
    assert state(lab) == before


def test_a_reveal_on_its_day_needs_nobody_however_long_nothing_happened(lab: Lab) -> None:
    assert lab.organiser("rebuild", now=REVEAL).code == 0
    assert lab.rows()[0]["team"] == "Lighthouse Retrieval Group"


def test_after_a_reveal_by_a_wrong_clock_the_right_one_logs_nothing_and_says_what_to_do(
    lab: Lab,
) -> None:
    assert lab.organiser("rebuild", now=REVEAL).code == 0  # months too early, and not refused
    before = state(lab)
    for words in (["publish", "20261102-waits", "--yes"], ["inbox"], ["rebuild"]):
        lab.organiser(*words, now=NEXT).refused(
            "nothing was done: set the clock, or see docs/how-to/wrong-clock.md"
        )
        assert state(lab) == before
    git(lab.board, "reset", "-q", "--hard", "HEAD~1")  # as that page says; nobody has pulled it
    assert lab.publish("20261102-waits", now=NEXT).code == 0
    assert [row["embargoed"] for row in lab.rows()].count(True) == 1
    assert lab.audit()["ok"]


def test_an_event_of_a_wrong_clock_that_nobody_has_seen_is_taken_back(lab: Lab) -> None:
    """The way that docs/how-to/wrong-clock.md describes: both folders as they were before it."""
    vault = lab.vault.with_name("vault-before")
    shutil.copytree(lab.vault, vault)
    commit = git(lab.board, "rev-parse", "HEAD")
    ahead = "2027-05-30T10:00:00Z"
    assert lab.organiser("reject", "20261102-waits", "--why", "x", now=ahead).code == 0
    lab.organiser("inbox", now=NEXT).refused("events are never dated before others")
    log = lab.vault / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    assert log.read_bytes() == (vault / "events.jsonl").read_bytes()
    # What was rejected left the vault.
    shutil.copytree(vault / "sealed", lab.vault / "sealed", dirs_exist_ok=True)
    git(lab.board, "reset", "-q", "--hard", commit)
    assert lab.organiser("inbox", now=NEXT).code == 0
    assert lab.audit()["ok"]


def test_no_page_is_made_of_a_day_before_its_own_events(lab: Lab) -> None:
    lab.share()
    before = {p: p.read_bytes() for p in (lab.clone / "leaderboard").rglob("*.*")}
    log_and_page = state(lab)
    early = "2026-11-01T10:00:00Z"
    for answer in (lab.organiser("rebuild", now=early), lab.participant("rebuild", now=early)):
        assert (answer.code, answer.out) == (2, "")
        assert "events are never dated before others" in answer.err
    assert state(lab) == log_and_page
    assert {p: p.read_bytes() for p in before} == before
