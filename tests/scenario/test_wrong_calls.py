"""What cannot be done is told in words: wrong calls, wrong places, and others at work there."""

import subprocess
import sys
from pathlib import Path

import pytest
from town import Answer, Town, call, found_town, founding, fresh_town, git

pytestmark = pytest.mark.slow
DAY_2 = "2026-11-02T10:00:00Z"
DAY_3 = "2026-11-03T10:00:00Z"


town = fresh_town


WRONG_CALLS = [
    ("review", "20261102-nobody"),
    ("publish", "20261102-nobody", "--yes"),
    ("publish", "../../etc", "--yes"),
    ("reject", "20261102-nobody", "--why", "x"),
    ("ask", "20261102-nobody", "x"),
    ("correct", "20261102-nobody", "--why", "x"),
    ("extend", "20261102-nobody", "2027-01-01", "--why", "x"),
    ("extend", "20261102-nobody", "some day", "--why", "x"),
    ("reject", "20261102-nobody"),
    ("publish",),
    ("inbox", "--from", "/nowhere"),
    ("check", "no id"),
    ("draft", "a b", "--dev", "x", "--eval", "y"),
    ("draft", "one", "--dev", "/nowhere", "--eval", "/"),
    ("draft", "one"),
    ("draft", "one", "--embargo", "soon"),
    ("board", "baseline", "no id", "--description", "x"),
]


def test_wrong_use_ends_with_2_and_says_why(town: Town) -> None:
    for arguments in WRONG_CALLS:
        participant = arguments[0] in ("check", "draft")
        who = town.participant if participant else town.organiser
        extra = () if arguments[0] in ("draft", "board") else ("--json",)
        answer = who(*arguments, *extra, now=DAY_2)
        assert (answer.code, answer.out) == (2, ""), answer
        assert answer.err


DECISIONS = {
    "reject": ("ID", "--why"),
    "correct": ("ID", "--anyway", "--why"),
    "extend": ("ID", "2027-03-01", "--why"),
    "ask": ("ID",),
    "publish": ("ID", "--yes", "--why"),
    "board rekey": ("--yes", "--why"),
    "board revoke": ("team-0123456789abcdef", "--why"),
    "archive": ("a.zip", "--yes", "--agreed", "ID", "--why"),
}


@pytest.mark.parametrize("command", DECISIONS)
def test_a_reason_that_says_nothing_is_none(town: Town, command: str) -> None:
    events, identities = town.kinds(), [*(town.vault / "identities").iterdir()]
    for why in ("", " \t", "\u200b\u2060", "…", "?!"):
        answer = town.organiser(*command.split(), *DECISIONS[command], why, now=DAY_2)
        assert (answer.code, answer.out) == (2, "")
        assert "says nothing, and it would stay in the log for good" in answer.err
        assert (town.kinds(), [*(town.vault / "identities").iterdir()]) == (events, identities)


def test_a_vault_inside_the_board_is_refused(town: Town) -> None:
    arguments = list(founding(town.root))
    arguments[2], arguments[4] = town.root / "new", town.root / "new" / "vault"
    answer = call(town.root, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert "inside the board" in answer.err
    assert not (town.root / "new").exists()
    link = town.root / "innocent"
    link.symlink_to(town.board / "queries")
    arguments[2], arguments[4] = town.board, link
    assert "inside the board" in call(town.root, *arguments).err


def test_without_a_vault_nothing_is_committed_and_the_answer_says_so(town: Town) -> None:
    before = git(town.clone, "rev-parse", "HEAD")
    answer = town.participant("rebuild", now=DAY_2).done()
    assert "without a vault nothing is committed" in answer.out
    assert git(town.clone, "rev-parse", "HEAD") == before
    git(town.clone, "checkout", "-q", "leaderboard")
    assert git(town.clone, "status", "--porcelain") == ""
    (town.clone / "log.jsonl").unlink()
    answer = town.participant("rebuild", now=DAY_2)
    assert (answer.code, answer.out) == (2, "")
    assert git(town.clone, "status", "--porcelain") == "D log.jsonl"


def test_a_vault_that_others_may_read_is_refused(town: Town) -> None:
    assert oct((town.vault).stat().st_mode)[-3:] == "700"
    assert oct((town.vault / "identities" / "organiser.txt").stat().st_mode)[-3:] == "600"
    town.vault.chmod(0o750)
    answer = town.organiser("inbox", now=DAY_2)
    assert (answer.code, answer.out) == (2, "")
    assert f"chmod 700 {town.vault}" in answer.err


def test_a_second_heldout_is_told_to_wait(town: Town) -> None:
    submission = town.draft("one", now=DAY_2)
    hold = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.flock(f, 2); print(); input()"

    def inbox() -> Answer:
        return town.organiser("inbox", "--json", now=DAY_2)

    def submit() -> Answer:
        return town.participant("submit", submission, "--json", now=DAY_2)

    for lock, answer in (
        (town.vault / "lock", inbox),
        (town.board / ".git/heldout/lock", inbox),
        (town.clone / ".git/heldout/lock", submit),
    ):
        with subprocess.Popen(
            [sys.executable, "-c", hold, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            told = answer()
            holder.communicate(b"\n")
        assert (told.code, told.out) == (2, "")
        assert "another heldout is at work here" in told.err
        assert answer().code == 0


def test_another_boards_vault_or_an_old_copy_is_refused(town: Town, tmp_path: Path) -> None:
    backup = (town.vault / "events.jsonl").read_bytes()
    submission = town.send("one", now=DAY_2)
    town.take_in(now=DAY_2)
    (town.vault / "events.jsonl").write_bytes(backup)
    answer = town.organiser("rebuild", now=DAY_3)
    assert (answer.code, answer.out) == (2, "")
    assert "lacks" in answer.err
    assert submission in (town.board / "log.jsonl").read_text()
    (town.vault / "events.jsonl").unlink()
    answer = town.organiser("rebuild", now=DAY_3, accepts=False)
    assert "restore it from the backup" in answer.err
    (town.vault / "events.jsonl").write_bytes(backup)
    (tmp_path / "other").mkdir()
    other = found_town(tmp_path / "other")
    other.send("two", now=DAY_2)
    other.take_in(now=DAY_2)
    place: list[str | Path] = ["--board", other.board, "--vault", town.vault, "--now", DAY_3]
    answer = call(town.root, "rebuild", *place)
    assert (answer.code, answer.out) == (2, "")
    assert "lacks" in answer.err


def test_what_the_system_refuses_is_told_without_a_traceback(town: Town) -> None:
    submission = town.draft("one", now=DAY_2)
    answer = town.participant("submit", submission, "--to", "/dev/null/x", now=DAY_2)
    assert (answer.code, answer.out) == (2, "")
    assert "Not a directory" in answer.err
    arguments = list(founding(town.root))
    arguments[2], arguments[4] = Path("/dev/null/board"), town.root / "new-vault"
    answer = call(town.root, *arguments)
    assert (answer.code, answer.out) == (2, "")
    town.participant("submit", submission, now=DAY_2)
    town.take_in(now=DAY_2)
    (town.vault / "scores").rmdir()
    (town.vault / "scores").write_text("no folder")
    assert town.organiser("review", submission, now=DAY_2).code == 2


def test_a_time_that_is_none(town: Town) -> None:
    for now in ("yesterday", "", "0001-01-01", "9999-12-31T23:59:59Z", "12:00"):
        answer = town.organiser("rebuild", "--json", now=now)
        assert (answer.code, answer.out) == (2, "")
        assert "--now" in answer.err


def test_a_founding_does_not_go_on_in_a_strangers_folder(town: Town) -> None:
    """An unfinished vault opens the way for its own board only."""
    (town.vault / "founding").write_text(str(town.board))
    home = town.root / "home"
    home.mkdir()
    (home / "README.md").write_text("mine")
    arguments = list(founding(town.root))
    arguments[2] = home
    assert call(town.root, *arguments).code == 2
    assert (home / "README.md").read_text() == "mine"
