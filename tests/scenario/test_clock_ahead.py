"""A clock far ahead reveals nothing and dates no event; one before the log makes no page."""

import shutil

import pytest
from town import OTHER_TEAM, Town, copy_of, found_town, git

from heldout.board.store.sharing import DERIVED_FOLDERS

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"
REVEAL = "2027-06-01T00:00:00Z"
AHEAD = {"a typing error": "2062-01-05T10:00:00Z", "one year": "2027-11-02T10:00:00Z"}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """One entry under an embargo, one submission that waits, one that lies on the forge."""
    town = found_town(tmp_path_factory.mktemp("ahead"))
    town.enter("hidden", now=DAY, embargo="2027-06-01")
    town.send("waits", now=DAY, seed=2, team=OTHER_TEAM)
    town.take_in(now=DAY)
    town.send("comes", now=DAY, seed=3, team=OTHER_TEAM)
    return town


town = copy_of("begun")


def state(town: Town) -> dict[str, bytes]:
    """Board and vault, but for git's files and those that a vault can make again at any time."""
    files = (p for root in (town.board, town.vault) for p in root.rglob("*") if p.is_file())
    left = {".git", "lock", *DERIVED_FOLDERS}
    kept = {str(p): p.read_bytes() for p in files if not left & set(p.parts)}
    return {**kept, "HEAD": git(town.board, "rev-parse", "HEAD").encode()}


@pytest.mark.parametrize("clock", AHEAD)
def test_a_clock_ahead_reveals_nobody(begun: Town, clock: str) -> None:
    before = state(begun)
    answer = begun.organiser("rebuild", now=AHEAD[clock])
    assert (answer.code, answer.out) == (2, "")
    assert "after all that this board knows of, and would reveal 20261102-anon-" in answer.err
    assert "heldout rebuild --yes" in answer.err
    assert state(begun) == before


@pytest.mark.parametrize(
    "command", ["inbox", "review", "publish", "reject", "ask", "extend", "rekey"]
)
def test_a_clock_ahead_dates_no_event(begun: Town, command: str) -> None:
    (hidden,) = (row["id"] for row in begun.rows())
    told = {
        "review": ["20261102-waits"],
        "publish": ["20261102-waits", "--yes"],
        "reject": ["20261102-waits", "--why", "x"],
        "ask": ["20261102-waits", "Who are you?"],
        "extend": [hidden, "2062-03-01", "--why", "x"],
    }.get(command, [])
    words = ["board", "rekey", "--why", "x", "--yes"] if command == "rekey" else [command, *told]
    before = state(begun)
    answer = begun.organiser(*words, now=AHEAD["a typing error"])
    assert (answer.code, answer.out) == (2, "")
    assert "after all that this board knows of" in answer.err
    assert state(begun) == before


def test_a_reveal_on_its_day_needs_nobody_however_long_nothing_happened(town: Town) -> None:
    assert town.organiser("rebuild", now=REVEAL).code == 0
    assert town.rows()[0]["team"] == "Lighthouse Retrieval Group"


def test_after_a_reveal_by_a_wrong_clock_the_right_one_logs_nothing_and_says_what_to_do(
    town: Town,
) -> None:
    assert town.organiser("rebuild", now=REVEAL).code == 0  # months too early, and not refused
    before = state(town)
    for words in (["publish", "20261102-waits", "--yes"], ["inbox"], ["rebuild"]):
        answer = town.organiser(*words, now=NEXT)
        assert (answer.code, answer.out) == (2, "")
        assert "nothing was done: set the clock, or see docs/how-to/wrong-clock.md" in answer.err
        assert state(town) == before
    git(town.board, "reset", "-q", "--hard", "HEAD~1")  # as that page says; nobody has pulled it
    assert town.publish("20261102-waits", now=NEXT).code == 0
    assert [row["embargoed"] for row in town.rows()].count(True) == 1
    assert town.audit()["ok"]


def test_an_event_of_a_wrong_clock_that_nobody_has_seen_is_taken_back(town: Town) -> None:
    """The way that docs/how-to/wrong-clock.md describes: both folders as they were before it."""
    vault = town.vault.with_name("vault-before")
    shutil.copytree(town.vault, vault)
    commit = git(town.board, "rev-parse", "HEAD")
    ahead = "2027-05-30T10:00:00Z"
    assert town.organiser("reject", "20261102-waits", "--why", "x", now=ahead).code == 0
    answer = town.organiser("inbox", now=NEXT)
    assert answer.code == 2
    assert "events are never dated before others" in answer.err
    log = town.vault / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    assert log.read_bytes() == (vault / "events.jsonl").read_bytes()
    # What was rejected left the vault.
    shutil.copytree(vault / "sealed", town.vault / "sealed", dirs_exist_ok=True)
    git(town.board, "reset", "-q", "--hard", commit)
    assert town.organiser("inbox", now=NEXT).code == 0
    assert town.audit()["ok"]


def test_no_page_is_made_of_a_day_before_its_own_events(begun: Town) -> None:
    begun.share()
    before = {p: p.read_bytes() for p in (begun.clone / "leaderboard").rglob("*.*")}
    log_and_page = state(begun)
    early = "2026-11-01T10:00:00Z"
    for answer in (
        begun.organiser("rebuild", now=early),
        begun.participant("rebuild", now=early),
    ):
        assert (answer.code, answer.out) == (2, "")
        assert "events are never dated before others" in answer.err
    assert state(begun) == log_and_page
    assert {p: p.read_bytes() for p in before} == before
