"""The story of a board by its commands: from an empty folder to a page, and the ways it may go."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab import (
    DAY,
    NEXT,
    OTHER_TEAM,
    Answer,
    Lab,
    environment,
    found_lab,
    founding,
    fresh_lab,
    git,
    run_text,
    write_inputs,
)

lab = fresh_lab


def program(lab: Lab, *arguments: str, cwd: Path, **variables: str) -> Answer:
    """The real program, as a process."""
    done = subprocess.run(
        [Path(sys.executable).with_name("heldout"), *arguments],
        cwd=cwd,
        env={**environment(lab.root), **variables},
        capture_output=True,
        check=False,
        text=True,
    )
    assert "Traceback" not in done.stderr
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def test_from_a_run_to_the_page_with_the_real_program(lab: Lab) -> None:
    """Everybody stands in a subfolder, and the vault is named by the environment."""
    submission = lab.draft("one")
    inside = lab.clone / ".git/heldout/drafts" / submission
    program(lab, "check", submission, "--now", DAY, cwd=inside).done(
        f"next      heldout submit {submission}"
    )
    program(lab, "submit", submission, "--now", DAY, cwd=inside).done("pushed to origin")
    at, vault = lab.board / "queries", str(lab.vault)
    program(lab, "inbox", "--now", DAY, cwd=at, HELDOUT_VAULT=vault).done()
    words = ("publish", submission, "--yes", "--now", DAY)
    said = program(lab, *words, cwd=at, HELDOUT_VAULT=vault).done()
    assert re.search(r"released  RR@10 0\.\d{3}, n = 30 \(dev 0\.\d{3}\)\n", said.out)
    assert "standing  rank 1 of 1; best so far\n" in said.out
    page = (lab.board / "leaderboard" / "index.html").read_text()
    assert "Lighthouse Retrieval Group" in page
    assert [row["id"] for row in lab.rows()] == [submission]
    assert lab.audit() == {"ok": True, "events": 4, "faults": [], "notes": []}


def test_the_participant_follows_the_submission(lab: Lab) -> None:
    def status() -> Any:
        lab.push()
        (row,) = lab.participant("status", "--json").json["submissions"]
        return row

    submission = lab.draft("one")
    nothing = lab.participant("status", "--json").json
    assert nothing == {"submissions": [], "closed": None, "due": []}
    packed = lab.participant("pack", submission, "--json").json
    assert status()["status"] == "draft"
    assert packed["done_before"] is False
    sent = lab.participant("submit", submission, "--json").json
    assert (sent["done_before"], sent["receipt"]) == (True, packed["receipt"])
    lab.take_in()
    assert status()["status"] == "received"
    assert status()["receipt"] == sent["receipt"]
    assert lab.organiser("ask", submission, "Which group?").code == 0
    assert (status()["status"], status()["why"]) == ("asked", "Which group?")
    lab.fill(submission, team="Lighthouse Retrieval Group, Room 3")
    assert lab.participant("amend", submission, now=NEXT).code == 0
    assert lab.take_in(now=NEXT)["received"][0]["kind"] == "updated"
    lab.organiser("review", submission, now=NEXT)
    assert lab.publish(submission, now=NEXT).code == 0
    row = status()
    assert (row["status"], row["queries"]) == ("published", {"dev": 30, "eval": 30})
    assert row["scores"] == lab.rows()[0]["scores"]
    shown = lab.participant("status", submission, now=NEXT).out
    assert all(f"{view} {score:.3f} (n = 30)" in shown for view, score in row["scores"].items())
    assert lab.rows()[0]["team"] == "Lighthouse Retrieval Group, Room 3"
    assert lab.rows()[0]["date"] == "2026-11-02"


def test_by_pull_request(lab: Lab) -> None:
    """A forge keeps `refs/pull/31/head`; the participant has no right to push branches."""
    git(lab.forge, "config", "receive.denyCurrentBranch", "refuse")
    submission = lab.draft("one")
    git(lab.clone, "remote", "set-url", "--push", "origin", str(lab.root / "nowhere"))
    lab.participant("submit", submission).declined(
        "send it from a fork: git remote rename origin upstream"
    )
    tip = f"submission/{submission}:refs/pull/31/head"
    git(lab.clone, "push", "-q", str(lab.forge), tip)
    (receipt,) = lab.take_in()["received"]
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
    assert lab.publish(submission).code == 0


def test_a_board_of_the_openssl_form(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    root = lab.root / "ms"
    root.mkdir()
    write_inputs(root)
    assert lab.call(*founding(root), "--envelope", "openssl").code == 0
    git(root, "clone", "-q", "board", "clone")
    other = Lab(root)
    for query_set in ("dev", "eval"):
        (root / f"{query_set}.txt").write_text(run_text(query_set, 1))
        subprocess.run(["bzip2", str(root / f"{query_set}.txt")], check=True)
    runs: list[str | Path] = ["--dev", root / "dev.txt.bz2", "--eval", root / "eval.txt.bz2"]
    submission = other.participant("draft", "one", *runs, "--json").json["id"]
    other.fill(submission, **OTHER_TEAM)
    inbox = root / "inbox"
    other.participant("submit", submission, "--to", inbox).done()
    assert sorted(path.name for path in inbox.iterdir()) == [
        f"{submission}-metadata.json.enc",
        f"{submission}.key.bin.enc",
        f"{submission}.tar.enc",
    ]
    first = (inbox / f"{submission}-metadata.json.enc").read_bytes()
    take: list[str | Path] = ["inbox", "--from", inbox, "--json"]
    assert other.organiser(*take).json["received"][0]["kind"] == "received"
    other.fill(submission, paper="https://example.org/new")
    other.participant("amend", submission, "--to", inbox)
    assert other.organiser(*take).json["received"][0]["kind"] == "updated"
    (inbox / f"{submission}-metadata.json.enc").write_bytes(first)
    for name in (f"{submission}.tar.enc", f"{submission}.key.bin.enc"):
        (inbox / name).unlink()
    (replay,) = other.organiser(*take, now=NEXT).json["received"]
    assert [problem["code"] for problem in replay["problems"]] == ["stale-revision"]
    assert other.publish(submission, now=NEXT).code == 0
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


def test_json_is_one_document_and_nothing_else(lab: Lab) -> None:
    submission = lab.send("one")
    for command, keys in SHAPES.items():
        ids = (submission,) if command in ("review", "publish") else ()
        more = ("--yes",) if command == "publish" else ()
        answer = lab.organiser(command, *ids, *more, "--json")
        assert set(answer.json) == set(keys.split()), command
        assert answer.err == ""
    document = json.loads((lab.board / "leaderboard/leaderboard.json").read_text())
    assert {"board", "as_of", "rows"} <= set(document)
    assert {
        *("rank", "id", "date", "team", "description", "paper", "code", "type", "scores"),
        *("trophy", "embargoed", "baseline", "rank_low", "rank_high"),
    } <= set(document["rows"][0])
    checked = lab.participant("check", submission, "--json").json
    assert {"id", "ok", "scores", "problems", "findings", "warnings"} <= set(checked)


def test_a_wrong_baseline_is_told(lab: Lab) -> None:
    for query_set in ("dev", "eval"):
        (lab.root / f"{query_set}.run").write_text(run_text(query_set, 9))
    name = ["board", "baseline", "20261101-x", "--description", "x"]
    for runs in (
        ("--dev", "{root}/dev.run"),
        ("--dev", "{root}/dev.run", "--eval", "{root}/eval.run", "--run", "test={root}/dev.run"),
        ("--dev", "{root}/dev.run", "--eval", "{root}/missing.run"),
        ("--dev", "{root}/dev.run", "--eval", "{root}/dev.run"),
    ):
        args = [text.format(root=lab.root) for text in runs]
        assert lab.organiser(*name, *args).refused().err


def test_the_score_is_hidden_until_asked_for(lab: Lab) -> None:
    submission = lab.receive("one")
    (hidden,) = lab.organiser("review", submission, "--json").json["reviews"]
    assert hidden["scores"] is None
    assert "score-shown" not in lab.kinds()
    assert "computed, hidden" in lab.organiser("review", submission).out
    for _ in range(2):
        said = lab.organiser("review", submission, "--score", "--json")
    (shown,) = said.json["reviews"]
    assert lab.kinds().count("score-shown") == 1
    lab.publish(submission)
    assert lab.rows()[0]["scores"] == shown["scores"]


def test_withdrawn_before_anybody_looked(lab: Lab) -> None:
    submission = lab.send("one")
    lab.participant("withdraw", submission)
    lab.take_in()
    lab.publish(submission).declined("it is withdrawn")
    assert lab.publish(submission).code == 1
    assert lab.kinds()[1:] == ["received", "withdrawn"]
    assert lab.rows() == []
