"""What a participant is told: drafts, checks, status, updates; every call is a command."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from lab import NEXT, QUERIES, Lab, fresh_lab, git, run_text

from heldout.board.participant.draft import draft_id
from heldout.errors import InputError

lab = fresh_lab


def statuses(lab: Lab) -> Any:
    return lab.participant("status", "--json", now=NEXT).json["submissions"]


def test_all_of_the_metadata_is_told_at_once_with_its_fields(lab: Lab) -> None:
    submission = lab.draft("one")
    lab.fill(
        submission,
        team="",
        institution="-",
        model_description=" ",
        training_data="",
        type="ful ranking",
        paper="arxiv.org/abs/1",
        embargo_until="2029-01-01",
    )
    answer = lab.participant("check", submission).declined("metadata  7 problems\n")
    assert answer.out.endswith(
        "\n7 problems; nothing was sealed or sent. Fix them, then check again.\n"
    )
    found = lab.participant("check", submission, "--json").json
    assert {(p["code"], p["path"]) for p in found["problems"]} == {
        ("not-a-link", "metadata.json:paper"),
        ("team-named", "metadata.json:team"),
        ("institution-named", "metadata.json:institution"),
        ("description", "metadata.json:model_description"),
        ("training-data", "metadata.json:training_data"),
        ("type-known", "metadata.json:type"),
        ("embargo", "metadata.json:embargo_until"),
    }
    assert found["findings"] == []
    assert all(p["found"] and p["expected"] for p in found["problems"])
    lab.fill(submission, team=7)
    again = lab.participant("check", submission)
    assert again.out.count("metadata.json:team") == 1


def test_an_unknown_draft_is_told_with_those_there_are(lab: Lab) -> None:
    submission = lab.draft("one")
    folder = lab.clone / ".git/heldout/drafts/20261102-nobody"
    for command in ["check", "pack", "submit", "amend", "withdraw"]:
        answer = lab.participant(command, "20261102-nobody").refused()
        assert answer.err.startswith(f"error  no-draft  {folder}\n")
        assert answer.err.count("error ") == 1
        assert f"one of {submission}" in answer.err


def test_the_quota_counts_what_was_sent_from_here(lab: Lab) -> None:
    submission = lab.send("one")
    other = lab.draft("two", now=NEXT, seed=2)
    line = "1 of 2 used since 04 Oct (0 published, 1 sent from here and undecided); you may submit"
    assert line in lab.participant("check", other, now=NEXT).out
    lab.take_in(now=NEXT)
    assert lab.publish(submission, now=NEXT).code == 0
    lab.share()
    line = "1 of 2 used since 04 Oct (1 published, 0 sent from here and undecided); you may submit"
    assert line in lab.participant("check", other, now=NEXT).out


def test_what_was_withdrawn_and_is_sent_again_is_refused_for_what_it_is(lab: Lab) -> None:
    submission = lab.receive("one")
    assert lab.participant("withdraw", submission).code == 0
    lab.take_in()
    lab.fill(submission, withdrawn=False, revision=3)
    lab.send_unchecked(submission, now=NEXT)
    (receipt,) = lab.take_in(now=NEXT)["received"]
    (problem,) = receipt["problems"]
    assert (problem["code"], problem["found"]) == (
        "nothing-to-update",
        "a submission that was withdrawn",
    )
    assert problem["hint"] == "heldout draft makes a new id"


def test_an_embargo_that_cannot_be_is_refused_at_once(lab: Lab) -> None:
    dev, evaluation = lab.root / "dev.tsv", lab.root / "eval.tsv"
    runs: list[str | Path] = ["--dev", dev, "--eval", evaluation]
    for day in ["2026-11-02", "2020-01-01", "2027-08-03"]:
        lab.participant("draft", "x", *runs, "--embargo", day).refused(
            "error  embargo-day  --embargo", "up to 2027-08-02"
        )
    assert not (lab.clone / ".git/heldout/drafts").exists()


def test_what_the_log_has_decided_is_refused_here(lab: Lab) -> None:
    published, refused = lab.send("one"), lab.send("two", seed=2)
    lab.take_in()
    assert lab.publish(published).code == 0
    assert lab.organiser("reject", refused, "--why", "a copy").code == 0
    lab.push()
    answers = [
        (lab.participant("withdraw", published, now=NEXT), "published-stays"),
        (lab.participant("withdraw", refused, now=NEXT), "already-decided"),
        (lab.participant("amend", refused, now=NEXT), "already-decided"),
    ]
    for answer, code in answers:
        assert (answer.code, answer.out) == (1, "")
        assert code in answer.err
        assert "nothing was sent" in answer.err
    assert "it was refused: a copy" in answers[1][0].err
    changes: list[tuple[dict[str, Any], str]] = [
        ({"embargo_until": "2027-02-01"}, 'type "full ranking", an embargo until 2027-02-01'),
        ({"embargo_until": None, "type": "reranking"}, 'type "reranking", no embargo'),
    ]
    for fields, found in changes:
        lab.fill(published, **fields)
        answer = lab.participant("amend", published, now=NEXT).declined(
            "published-stays", found, 'type "full ranking", no embargo, as published'
        )
        assert (answer.code, answer.out) == (1, "")
    lab.fill(published, type="full ranking", code="https://example.org/code")
    assert lab.participant("amend", published, now=NEXT).code == 0


def test_an_extended_embargo_does_not_stop_an_amendment(lab: Lab) -> None:
    submission = lab.enter("one", embargo="2027-02-01")
    lab.organiser("extend", submission, "2027-03-01", "--why", "late").done()
    lab.push()
    lab.fill(submission, code="https://example.org/code")
    assert lab.participant("amend", submission, now=NEXT).code == 0
    assert [one["kind"] for one in lab.take_in(now=NEXT)["received"]] == ["updated"]


def test_a_refused_update_shows_in_the_status(lab: Lab) -> None:
    """A refusal leaves no event: what was sent last is held against what is in force."""
    submission = lab.enter("one")
    lab.fill(submission, embargo_until="2027-02-01")
    assert lab.participant("amend", submission, now=NEXT).code == 0  # the log is not public yet
    (receipt,) = lab.take_in(now=NEXT)["received"]
    (problem,) = receipt["problems"]
    assert problem["found"] == 'type "full ranking", an embargo until 2027-02-01'
    assert problem["expected"] == 'type "full ranking", no embargo, as published'
    lab.push()
    status = lab.participant("status", submission, now=NEXT)
    line = f"update    revision 2 was sent, revision 1 is in force: found {problem['found']}"
    assert line in status.out
    (row,) = statuses(lab)
    assert row["update"].startswith("revision 2 was sent, revision 1 is in force")


def test_the_receipt_can_be_made_by_hand_and_changes_with_the_metadata(lab: Lab) -> None:
    """As docs/reference/envelope.md says."""
    command = 'sha256sum "$id"* | LC_ALL=C sort -k 2 | sha256sum'
    page = Path(__file__).parents[2] / "docs" / "reference" / "envelope.md"
    assert command in page.read_text("utf-8")

    def by_hand() -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=lab.clone / ".git/heldout" / "sealed",
            env={**os.environ, "id": submission},
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.split()[0]

    submission = lab.draft("one")
    first = lab.participant("submit", submission, "--json").json["receipt"]
    assert first == by_hand()
    lab.take_in()
    lab.push()
    assert statuses(lab)[0]["receipt"] == first
    lab.fill(submission, code="https://example.org/code")
    second = lab.participant("amend", submission, "--json", now=NEXT).json["receipt"]
    assert second == by_hand() != first
    assert statuses(lab)[0]["receipt"] == first
    lab.take_in(now=NEXT)
    lab.push()
    assert statuses(lab)[0]["receipt"] == second


@pytest.mark.parametrize("name", ["x.lock", "x."])
def test_a_name_that_git_allows_for_no_branch_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no such branch"):
        draft_id(name, today=date(2026, 11, 20), embargoed=False)


def write_run(lab: Lab, submission: str, rename: Callable[[str], str]) -> None:
    """Give the documents of a draft's dev run other ids."""
    file = lab.clone / ".git/heldout/drafts" / submission / "dev.run"
    lines = [line.split("\t") for line in run_text("dev", 1).splitlines()]
    text = "".join(f"{query}\t{rename(document)}\t{rank}\n" for query, document, rank in lines)
    file.write_text(text)


def test_ids_that_are_none_of_the_collection_s_stop_check_and_submit(lab: Lab) -> None:
    submission = lab.draft("foreign")
    write_run(lab, submission, lambda document: document.upper())
    checked = lab.participant("check", submission).declined()
    said = " ".join(checked.out.split())
    assert "error no-common-document dev.run" in said
    assert "none of its 150 documents is judged in dev" in said
    assert 'did you mean "ddev0"?' in said
    assert 'as "DDEV0" from "ddev0"' in said
    lab.participant("submit", submission).declined()
    assert not git(lab.clone, "branch", "--list", "submission/*")


_HEADER = """\
# ir_metadata.start
# schema version: 0.2
# actor:
#   team: Lighthouse Retrieval Group
# method:
#   description: monoT5 over the first stage
# resources:
#   runtime:
#     wallclock: 120 ms
# ir_metadata.end
"""


def test_a_draft_begins_with_what_the_header_of_its_runs_says(lab: Lab) -> None:
    for name in ("dev", "eval"):
        (lab.root / f"{name}.run").write_text(_HEADER + run_text(name, 1))
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    lab.participant("draft", "one", *runs).done(
        'taken     team "Lighthouse Retrieval Group", from actor: team in '
    )

    answer = lab.participant("draft", "two", *runs, "--json").json
    assert {one["field"] for one in answer["from_headers"]} == {
        *("team", "model_description", "efficiency.query_latency_ms")
    }
    submission = answer["id"]
    metadata = json.loads(
        (lab.clone / ".git/heldout/drafts" / submission / "metadata.json").read_text()
    )
    assert metadata["team"] == "Lighthouse Retrieval Group"
    assert metadata["efficiency"]["query_latency_ms"] == 120 / (2 * QUERIES)

    lab.fill(
        submission,
        team="North Coast Search",
        institution="Coast University",
        training_data="dev queries",
    )
    checked = lab.participant("check", submission, "--json").done()
    assert checked.json["problems"] == []
    lab.participant("submit", submission)
    lab.take_in(now=NEXT)
    assert lab.organiser("review", submission, "--json", now=NEXT).code == 0


@pytest.mark.parametrize("how", ["missing", "folder", "two"])
def test_a_run_that_is_not_one_file_is_one_problem(lab: Lab, how: str) -> None:
    submission = lab.draft("one")
    lab.fill(submission, team="")
    run = lab.clone / ".git/heldout/drafts" / submission / "eval.run"
    if how == "two":
        run.with_name("eval.run.gz").write_bytes(b"")
    else:
        run.unlink()
    if how == "folder":
        run.mkdir()
    answer = lab.participant("check", submission).declined()
    expected = {"missing": "no run for 'eval'", "folder": "no file", "two": "eval.run.gz"}
    assert expected[how] in answer.out
    assert ("remove one" in answer.out) == (how == "two")
    assert "eval      no run that can be read" in answer.out
    assert "RR@10 0." in answer.out
    assert "metadata.json:team" in answer.out
    assert lab.participant("submit", submission).code == 1
    assert git(lab.forge, "for-each-ref", "refs/heads/submission") == ""
    assert not (lab.clone / ".git/heldout/keys").exists()


def test_status_of_a_draft_and_of_nothing(lab: Lab) -> None:
    submission = lab.draft("one")
    lab.participant("status", submission).done("a draft here, nothing sent")
    unknown = lab.participant("status", "20261102-nobody").declined(
        "no draft or submission of this id", submission
    )
    assert (unknown.code, unknown.out) == (1, "")
    lab.participant("submit", submission)
    assert "not received yet" in lab.participant("status", submission).out


def test_an_embargo_in_a_telling_id(lab: Lab) -> None:
    telling = lab.draft("lighthouse-one")
    lab.fill(telling, embargo_until="2026-12-10")
    out = lab.participant("check", telling).out
    assert "hidden    your git name (submit commits as Anonymous)\n" in out
    assert "the id says 'lighthouse'; heldout draft --embargo makes a neutral one" in out
    neutral = lab.draft("x", embargo="2026-12-10")
    found = lab.participant("check", neutral, "--json").json
    assert found["hidden"] == ["your git name (submit commits as Anonymous)"]
    assert not any("the id says" in warning for warning in found["warnings"])
    lab.fill(telling, embargo_until="2026-11-01")
    out = lab.participant("check", telling).out
    assert "note   embargo-over  metadata.json:embargo_until" in out
    assert "metadata  ok" in out
