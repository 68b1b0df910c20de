"""What cannot be done is told in words: wrong calls, wrong places, and others at work there."""

import fcntl
from pathlib import Path

import pytest
from lab import DAY, NEXT, Answer, Lab, found_lab, founding, fresh_lab, git

lab = fresh_lab


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


def test_wrong_use_ends_with_2_and_says_why(lab: Lab) -> None:
    for arguments in WRONG_CALLS:
        participant = arguments[0] in ("check", "draft")
        who = lab.participant if participant else lab.organiser
        extra = () if arguments[0] in ("draft", "board") else ("--json",)
        assert who(*arguments, *extra, now=DAY).refused().err


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
def test_a_reason_that_says_nothing_is_none(lab: Lab, command: str) -> None:
    events, identities = lab.kinds(), [*(lab.vault / "identities").iterdir()]
    for why in ("", " \t", "\u200b\u2060", "…", "?!"):
        lab.organiser(*command.split(), *DECISIONS[command], why).refused(
            "says nothing, and it would stay in the log for good"
        )
        assert (lab.kinds(), [*(lab.vault / "identities").iterdir()]) == (events, identities)


def test_a_vault_inside_the_board_is_refused(lab: Lab) -> None:
    arguments = list(founding(lab.root))
    arguments[2], arguments[4] = lab.root / "new", lab.root / "new" / "vault"
    lab.call(*arguments).refused("inside the board")
    assert not (lab.root / "new").exists()
    link = lab.root / "innocent"
    link.symlink_to(lab.board / "queries")
    arguments[2], arguments[4] = lab.board, link
    assert "inside the board" in lab.call(*arguments).err


def test_without_a_vault_nothing_is_committed_and_the_answer_says_so(lab: Lab) -> None:
    before = git(lab.clone, "rev-parse", "HEAD")
    lab.participant("rebuild").done("without a vault nothing is committed")
    assert git(lab.clone, "rev-parse", "HEAD") == before
    git(lab.clone, "checkout", "-q", "leaderboard")
    assert git(lab.clone, "status", "--porcelain") == ""
    (lab.clone / "log.jsonl").unlink()
    lab.participant("rebuild").refused()
    assert git(lab.clone, "status", "--porcelain") == "D log.jsonl"


def test_a_vault_that_others_may_read_is_refused(lab: Lab) -> None:
    assert oct((lab.vault).stat().st_mode)[-3:] == "700"
    assert oct((lab.vault / "identities" / "organiser.txt").stat().st_mode)[-3:] == "600"
    lab.vault.chmod(0o750)
    lab.organiser("inbox").refused(f"chmod 700 {lab.vault}")


def test_a_second_heldout_is_told_to_wait(lab: Lab) -> None:
    submission = lab.draft("one")

    def inbox() -> Answer:
        return lab.organiser("inbox", "--json")

    def submit() -> Answer:
        return lab.participant("submit", submission, "--json")

    for lock, command in (
        (lab.vault / "lock", inbox),
        (lab.board / ".git/heldout/lock", inbox),
        (lab.clone / ".git/heldout/lock", submit),
    ):
        with lock.open("a") as held:  # by a file of its own, as another process has it
            fcntl.flock(held, fcntl.LOCK_EX)
            command().refused("another heldout is at work here")
        command().done()


def test_another_boards_vault_or_an_old_copy_is_refused(lab: Lab, tmp_path: Path) -> None:
    backup = (lab.vault / "events.jsonl").read_bytes()
    submission = lab.receive("one")
    (lab.vault / "events.jsonl").write_bytes(backup)
    lab.organiser("rebuild", now=NEXT).refused("lacks")
    assert submission in (lab.board / "log.jsonl").read_text()
    (lab.vault / "events.jsonl").unlink()
    answer = lab.organiser("rebuild", now=NEXT, accepts=False)
    assert "restore it from the backup" in answer.err
    (lab.vault / "events.jsonl").write_bytes(backup)
    (tmp_path / "other").mkdir()
    other = found_lab(tmp_path / "other")
    other.receive("two")
    place: list[str | Path] = ["--board", other.board, "--vault", lab.vault, "--now", NEXT]
    lab.call("rebuild", *place).refused("lacks")


def test_what_the_system_refuses_is_told_without_a_traceback(lab: Lab) -> None:
    submission = lab.draft("one")
    lab.participant("submit", submission, "--to", "/dev/null/x").refused("Not a directory")
    arguments = list(founding(lab.root))
    arguments[2], arguments[4] = Path("/dev/null/board"), lab.root / "new-vault"
    lab.call(*arguments).refused()
    lab.participant("submit", submission)
    lab.take_in()
    (lab.vault / "scores").rmdir()
    (lab.vault / "scores").write_text("no folder")
    assert lab.organiser("review", submission).code == 2


def test_a_time_that_is_none(lab: Lab) -> None:
    for now in ("yesterday", "", "0001-01-01", "9999-12-31T23:59:59Z", "12:00"):
        lab.organiser("rebuild", "--json", now=now).refused("--now")


def test_a_founding_does_not_go_on_in_a_strangers_folder(lab: Lab) -> None:
    """An unfinished vault opens the way for its own board only."""
    (lab.vault / "founding").write_text(str(lab.board))
    home = lab.root / "home"
    home.mkdir()
    (home / "README.md").write_text("mine")
    arguments = list(founding(lab.root))
    arguments[2] = home
    assert lab.call(*arguments).code == 2
    assert (home / "README.md").read_text() == "mine"
