"""The story of a board by its commands: from an empty folder to a page, and the ways it may go."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from town import (
    OTHER_TEAM,
    Answer,
    Town,
    call,
    environment,
    found_town,
    founding,
    fresh_town,
    git,
    run_text,
    write_inputs,
)

pytestmark = pytest.mark.slow
DAY_2 = "2026-11-02T10:00:00Z"
DAY_3 = "2026-11-03T10:00:00Z"


town = fresh_town


def program(town: Town, *arguments: str, cwd: Path, **variables: str) -> Answer:
    """The real program, as a process."""
    done = subprocess.run(
        [Path(sys.executable).with_name("heldout"), *arguments],
        cwd=cwd,
        env={**environment(town.root), **variables},
        capture_output=True,
        check=False,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def test_from_a_run_to_the_page_with_the_real_program(town: Town) -> None:
    """Everybody stands in a subfolder, and the vault is named by the environment."""
    submission = town.draft("one", now=DAY_2)
    inside = town.clone / ".git/heldout/drafts" / submission
    checked = program(town, "check", submission, "--now", DAY_2, cwd=inside).done()
    assert f"next      heldout submit {submission}" in checked.out
    sent = program(town, "submit", submission, "--now", DAY_2, cwd=inside).done()
    assert "pushed to origin" in sent.out
    session = {"cwd": town.board / "queries", "HELDOUT_VAULT": str(town.vault)}
    assert program(town, "inbox", "--now", DAY_2, **session).code == 0  # type: ignore[arg-type]  # a Path and text
    told = program(town, "publish", submission, "--yes", "--now", DAY_2, **session)  # type: ignore[arg-type]  # the same
    assert told.code == 0, told.err
    assert re.search(r"released  RR@10 0\.\d{3}, n = 30 \(dev 0\.\d{3}\)\n", told.out)
    assert "standing  rank 1 of 1; best so far\n" in told.out
    page = (town.board / "leaderboard" / "index.html").read_text()
    assert "Lighthouse Retrieval Group" in page
    assert [row["id"] for row in town.rows()] == [submission]
    assert town.audit() == {"ok": True, "events": 4, "faults": [], "notes": []}


def test_the_participant_follows_the_submission(town: Town) -> None:
    def status() -> Any:
        town.push()
        (row,) = town.participant("status", "--json", now=DAY_2).json["submissions"]
        return row

    submission = town.draft("one", now=DAY_2)
    nothing = town.participant("status", "--json", now=DAY_2).json
    assert nothing == {"submissions": [], "closed": None, "due": []}
    packed = town.participant("pack", submission, "--json", now=DAY_2).json
    assert status()["status"] == "draft"
    assert packed["done_before"] is False
    sent = town.participant("submit", submission, "--json", now=DAY_2).json
    assert (sent["done_before"], sent["receipt"]) == (True, packed["receipt"])
    town.take_in(now=DAY_2)
    assert status()["status"] == "received"
    assert status()["receipt"] == sent["receipt"]
    assert town.organiser("ask", submission, "Which group?", now=DAY_2).code == 0
    assert (status()["status"], status()["why"]) == ("asked", "Which group?")
    town.fill(submission, team="Lighthouse Retrieval Group, Room 3")
    assert town.participant("amend", submission, now=DAY_3).code == 0
    assert town.take_in(now=DAY_3)["received"][0]["kind"] == "updated"
    town.organiser("review", submission, now=DAY_3)
    assert town.publish(submission, now=DAY_3).code == 0
    row = status()
    assert (row["status"], row["queries"]) == ("published", {"dev": 30, "eval": 30})
    assert row["scores"] == town.rows()[0]["scores"]
    shown = town.participant("status", submission, now=DAY_3).out
    assert all(f"{view} {score:.3f} (n = 30)" in shown for view, score in row["scores"].items())
    assert town.rows()[0]["team"] == "Lighthouse Retrieval Group, Room 3"
    assert town.rows()[0]["date"] == "2026-11-02"


def test_by_pull_request(town: Town) -> None:
    """A forge keeps `refs/pull/31/head`; the participant has no right to push branches."""
    git(town.forge, "config", "receive.denyCurrentBranch", "refuse")
    submission = town.draft("one", now=DAY_2)
    git(town.clone, "remote", "set-url", "--push", "origin", str(town.root / "nowhere"))
    refused = town.participant("submit", submission, now=DAY_2)
    assert refused.code == 1
    assert "send it from a fork: git remote rename origin upstream" in refused.err
    tip = f"submission/{submission}:refs/pull/31/head"
    git(town.clone, "push", "-q", str(town.forge), tip)
    (receipt,) = town.take_in(now=DAY_2)["received"]
    assert receipt == {
        "id": submission,
        "team": "",
        "source": "pull request 31",
        "kind": "received",
        "mark": "",
        "printed_before": False,
        "notes": [],
        "problems": [],
    }
    assert town.publish(submission, now=DAY_2).code == 0


def test_a_board_of_the_openssl_form(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    root = town.root / "ms"
    root.mkdir()
    write_inputs(root)
    assert call(town.root, *founding(root), "--envelope", "openssl").code == 0
    git(root, "clone", "-q", "board", "clone")
    other = Town(root)
    for query_set in ("dev", "eval"):
        text = run_text(query_set, 1)
        (root / f"{query_set}.txt").write_text(text)
        subprocess.run(["bzip2", str(root / f"{query_set}.txt")], check=True)
    runs: list[str | Path] = ["--dev", root / "dev.txt.bz2", "--eval", root / "eval.txt.bz2"]
    submission = other.participant("draft", "one", *runs, "--json", now=DAY_2).json["id"]
    other.fill(submission, **OTHER_TEAM)
    inbox = root / "inbox"
    other.participant("submit", submission, "--to", inbox, now=DAY_2).done()
    assert sorted(path.name for path in inbox.iterdir()) == [
        f"{submission}-metadata.json.enc",
        f"{submission}.key.bin.enc",
        f"{submission}.tar.enc",
    ]
    first = (inbox / f"{submission}-metadata.json.enc").read_bytes()
    take: list[str | Path] = ["inbox", "--from", inbox, "--json"]
    assert other.organiser(*take, now=DAY_2).json["received"][0]["kind"] == "received"
    other.fill(submission, paper="https://example.org/new")
    other.participant("amend", submission, "--to", inbox, now=DAY_2)
    assert other.organiser(*take, now=DAY_2).json["received"][0]["kind"] == "updated"
    (inbox / f"{submission}-metadata.json.enc").write_bytes(first)
    for name in (f"{submission}.tar.enc", f"{submission}.key.bin.enc"):
        (inbox / name).unlink()
    (replay,) = other.organiser(*take, now=DAY_3).json["received"]
    assert [problem["code"] for problem in replay["problems"]] == ["stale-revision"]
    assert other.publish(submission, now=DAY_3).code == 0
    assert other.rows()[0]["paper"] == "https://example.org/new"
    assert other.audit()["ok"]


REBUILT = "entries changed commit revealed unlogged unknown due changed_rules seasons"
SHAPES = {
    "inbox": "silent unfetched received waiting reveals due earlier_labels",
    "review": "reviews",
    "publish": f"decisions {REBUILT}",
    "rebuild": REBUILT,
    "audit": "ok events checked faults notes unchecked signers stamps receipts",
}


def test_json_is_one_document_and_nothing_else(town: Town) -> None:
    submission = town.send("one", now=DAY_2)
    for command, keys in SHAPES.items():
        ids = (submission,) if command in ("review", "publish") else ()
        more = ("--yes",) if command == "publish" else ()
        answer = town.organiser(command, *ids, *more, "--json", now=DAY_2)
        assert set(answer.json) == set(keys.split()), command
        assert answer.err == ""
    document = json.loads((town.board / "leaderboard/leaderboard.json").read_text())
    assert {"board", "as_of", "rows"} <= set(document)
    assert {
        *("rank", "id", "date", "team", "description", "paper", "code", "type", "scores"),
        *("trophy", "embargoed", "baseline", "rank_low", "rank_high"),
    } <= set(document["rows"][0])
    checked = town.participant("check", submission, "--json", now=DAY_2).json
    assert {"id", "ok", "scores", "problems", "findings", "warnings"} <= set(checked)


def test_a_wrong_baseline_is_told(town: Town) -> None:
    for query_set in ("dev", "eval"):
        (town.root / f"{query_set}.run").write_text(run_text(query_set, 9))
    name = ["board", "baseline", "20261101-x", "--description", "x"]
    for runs in (
        ("--dev", "{root}/dev.run"),
        ("--dev", "{root}/dev.run", "--eval", "{root}/eval.run", "--run", "test={root}/dev.run"),
        ("--dev", "{root}/dev.run", "--eval", "{root}/missing.run"),
        ("--dev", "{root}/dev.run", "--eval", "{root}/dev.run"),
    ):
        told = [text.format(root=town.root) for text in runs]
        answer = town.organiser(*name, *told, now=DAY_2)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err


def test_the_score_is_hidden_until_asked_for(town: Town) -> None:
    submission = town.send("one", now=DAY_2)
    town.take_in(now=DAY_2)
    (hidden,) = town.organiser("review", submission, "--json", now=DAY_2).json["reviews"]
    assert hidden["scores"] is None
    assert "score-shown" not in town.kinds()
    assert "computed, hidden" in town.organiser("review", submission, now=DAY_2).out
    for _ in range(2):
        told = town.organiser("review", submission, "--score", "--json", now=DAY_2)
    (shown,) = told.json["reviews"]
    assert town.kinds().count("score-shown") == 1
    town.publish(submission, now=DAY_2)
    assert town.rows()[0]["scores"] == shown["scores"]


def test_withdrawn_before_anybody_looked(town: Town) -> None:
    submission = town.send("one", now=DAY_2)
    town.participant("withdraw", submission, now=DAY_2)
    town.take_in(now=DAY_2)
    refused = town.publish(submission, now=DAY_2)
    assert refused.code == 1
    assert "it is withdrawn" in refused.out
    assert town.publish(submission, now=DAY_2).code == 1
    assert town.kinds()[1:] == ["received", "withdrawn"]
    assert town.rows() == []
