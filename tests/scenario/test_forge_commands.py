"""A board's forge, through the commands: what waits there is taken in, and answered once."""

import json
import re
from pathlib import Path

import pytest
from town import Town, call, found_town, git

from heldout.board.store import forges as hosted

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
NEXT = "2026-11-03T10:00:00Z"


@pytest.fixture
def town(tmp_path: Path) -> Town:
    """A town whose submissions are left in a folder."""
    town = found_town(tmp_path)
    (town.root / "left").mkdir()
    rules = town.board / "board.toml"
    table = f'\n[forge]\nkind = "folder"\nurl = "{town.root / "left"}"\n'
    rules.write_text(rules.read_text("utf-8") + table, "utf-8")
    assert town.organiser("rebuild", now=DAY).code == 0
    town.share()
    return town


def leave(town: Town, name: str) -> str:
    submission = town.draft(name, now=DAY)
    town.participant("submit", submission, "--to", town.root / "left", now=DAY).done()
    return submission


def test_what_was_left_is_taken_in_published_and_answered_once(town: Town) -> None:
    submission = leave(town, "one")
    assert [row["id"] for row in town.take_in(now=DAY)["received"]] == [submission]
    reply = town.root / "left" / f"{submission}.reply.txt"
    assert town.publish(submission, now=NEXT).code == 0
    told = reply.read_text("utf-8")
    score = f"{town.rows()[0]['scores']['eval']:.3f}"
    assert score in told
    assert not re.search(r"0\.\d{4,}", told), "never more digits than the page"
    assert town.publish(submission, now=NEXT).code == 0
    assert reply.read_text("utf-8") == told


def test_the_form_of_a_request_is_looked_at_without_checking_it_out(town: Town) -> None:
    submission = town.send("one", now=DAY)
    base = git(town.clone, "rev-parse", "main").strip()
    git(town.clone, "update-ref", "refs/pull/7/head", f"submission/{submission}")
    answer = town.participant("check", "--form", base, "refs/pull/7/head", now=DAY)
    assert (answer.code, submission in answer.out) == (0, True), answer
    git(town.clone, "checkout", "-qb", "bad")
    (town.clone / "board.toml").write_text("name = 1\n", "utf-8")
    git(town.clone, "commit", "-qam", "a change of the rules")
    git(town.clone, "checkout", "-q", "main")
    git(town.clone, "update-ref", "refs/pull/8/head", "bad")
    refused = town.participant("check", "--form", base, "refs/pull/8/head", "--json", now=DAY)
    assert refused.code == 1
    assert not refused.json["ok"]
    assert town.participant("check", now=DAY).code == 2


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("https://github.com/example/board", ".github/workflows/submission.yml"),
        ("https://gitlab.com/example/group/board", ".gitlab-ci.yml"),
        ("https://codeberg.org/example/board", ".forgejo/workflows/submission.yml"),
    ],
)
def test_a_new_board_has_the_workflow_of_its_forge(tmp_path: Path, address: str, path: str) -> None:
    for name in ("queries.tsv", "labels.qrels"):
        (tmp_path / name).write_text("q1\ta question\n" if "tsv" in name else "q1 0 d1 1\n")
    given: list[str | Path] = [
        "--eval",
        tmp_path / "queries.tsv",
        tmp_path / "labels.qrels",
        "--forge",
        address,
        "--install",
        "git+https://example.org/heldout.git@v0.1.0",
    ]
    board, vault = tmp_path / "board", tmp_path / "vault"
    call(tmp_path, "board", "new", board, "--vault", vault, *given, "--now", DAY).done()
    assert path in git(board, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    workflow = (board / path).read_text("utf-8")
    assert re.search(r'heldout"? check --form', workflow)
    assert "secrets." not in workflow
    readme = (board / "README.md").read_text("utf-8")
    for text in (workflow, readme):
        assert 'git+https://example.org/heldout.git@v0.1.0"' in text
        assert not re.search(r"pip install (--quiet )?\"?heldout", text)
    rules = (board / "board.toml").read_text("utf-8")
    assert f'repository = "{address}"' in rules
    assert "[forge]" in rules


@pytest.mark.parametrize(
    "address",
    [
        "heldout",
        "http://example.org/heldout.whl",
        "https://example.org/$(touch evil)",
        'https://example.org/x" && touch evil #',
        "https://example.org/x\ny",
        "--index-url https://example.org",
    ],
)
def test_an_address_that_is_none_or_would_be_run_by_a_shell_is_refused(
    town: Town, address: str
) -> None:
    rules = town.board / "board.toml"
    stated = f"install = {json.dumps(address)}"
    rules.write_text(rules.read_text("utf-8").replace('install = ""', stated), "utf-8")
    answer = town.organiser("rebuild", now=DAY)
    assert answer.code != 0
    assert "board.toml" in answer.err
    assert "install" in answer.err


def test_a_forge_that_cannot_be_reached_is_no_empty_inbox(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted, "_TRIES", 1)  # the waits between tries have tests of their own
    rules = town.board / "board.toml"
    folder = f'kind = "folder"\nurl = "{town.root / "left"}"'
    gone = 'kind = "forgejo"\nurl = "http://127.0.0.1:9"\nproject = "ir/board"'
    rules.write_text(rules.read_text("utf-8").replace(folder, gone), "utf-8")
    answer = town.organiser("inbox", now=DAY)
    assert answer.code == 1
    assert "the forge did not answer: what waits there is not known" in answer.out
    assert "empty" not in answer.out
    document = town.organiser("inbox", "--json", now=DAY)
    assert (document.code, document.json["silent"]) == (1, ["the forge"])
    town.organiser("inbox", "--no-fetch", now=DAY).done()


def test_a_remote_that_cannot_be_reached_is_no_empty_inbox(town: Town) -> None:
    git(town.board, "remote", "set-url", "origin", str(town.root / "nowhere"))
    answer = town.organiser("inbox", now=DAY)
    assert answer.code == 1
    assert "remote origin did not answer: what waits there is not known" in answer.out
    assert "empty" not in answer.out
