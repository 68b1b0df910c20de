"""A board's forge, through the commands: what waits there is taken in, and answered once."""

import json
import re
from pathlib import Path

import pytest
from lab import DAY, NEXT, Lab, Patch, call, found_lab, git

from heldout.board.store import forges as hosted


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab whose submissions are left in a folder."""
    lab = found_lab(tmp_path)
    (lab.root / "left").mkdir()
    lab.rule(more=f'\n[forge]\nkind = "folder"\nurl = "{lab.root / "left"}"\n')
    return lab


def leave(lab: Lab, name: str) -> str:
    submission = lab.draft(name)
    lab.participant("submit", submission, "--to", lab.root / "left").done()
    return submission


def test_what_was_left_is_taken_in_published_and_answered_once(lab: Lab) -> None:
    submission = leave(lab, "one")
    assert [row["id"] for row in lab.take_in()["received"]] == [submission]
    reply = lab.root / "left" / f"{submission}.reply.txt"
    assert lab.publish(submission, now=NEXT).code == 0
    said = reply.read_text("utf-8")
    score = f"{lab.rows()[0]['scores']['eval']:.3f}"
    assert score in said
    assert not re.search(r"0\.\d{4,}", said), "never more digits than the page"
    assert lab.publish(submission, now=NEXT).code == 0
    assert reply.read_text("utf-8") == said


def test_the_form_of_a_request_is_looked_at_without_checking_it_out(lab: Lab) -> None:
    submission = lab.send("one")
    base = git(lab.clone, "rev-parse", "main").strip()
    git(lab.clone, "update-ref", "refs/pull/7/head", f"submission/{submission}")
    lab.participant("check", "--form", base, "refs/pull/7/head").done(submission)
    git(lab.clone, "checkout", "-qb", "bad")
    (lab.clone / "board.toml").write_text("name = 1\n", "utf-8")
    git(lab.clone, "commit", "-qam", "a change of the rules")
    git(lab.clone, "checkout", "-q", "main")
    git(lab.clone, "update-ref", "refs/pull/8/head", "bad")
    refused = lab.participant("check", "--form", base, "refs/pull/8/head", "--json").declined()
    assert not refused.json["ok"]
    assert lab.participant("check").code == 2


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
    lab: Lab, address: str
) -> None:
    lab.edit(('install = ""', f"install = {json.dumps(address)}"))
    answer = lab.organiser("rebuild")
    assert answer.code != 0
    assert "board.toml" in answer.err
    assert "install" in answer.err


def test_a_forge_that_cannot_be_reached_is_no_empty_inbox(lab: Lab, monkeypatch: Patch) -> None:
    monkeypatch.setattr(hosted, "_TRIES", 1)  # the waits between tries have tests of their own
    folder = f'kind = "folder"\nurl = "{lab.root / "left"}"'
    gone = 'kind = "forgejo"\nurl = "http://127.0.0.1:9"\nproject = "ir/board"'
    lab.edit((folder, gone))
    answer = lab.organiser("inbox").declined(
        "the forge did not answer: what waits there is not known"
    )
    assert "empty" not in answer.out
    document = lab.organiser("inbox", "--json")
    assert (document.code, document.json["silent"]) == (1, ["the forge"])
    lab.organiser("inbox", "--no-fetch").done()


def test_a_remote_that_cannot_be_reached_is_no_empty_inbox(lab: Lab) -> None:
    git(lab.board, "remote", "set-url", "origin", str(lab.root / "nowhere"))
    answer = lab.organiser("inbox").declined(
        "remote origin did not answer: what waits there is not known"
    )
    assert "empty" not in answer.out
