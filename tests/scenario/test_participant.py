"""What a participant is told: drafts, checks, status, updates; every call is a command."""

import json
import os
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from town import QUERIES, Town, fresh_town, git, run_text

from heldout.board.participant.draft import draft_id
from heldout.errors import InputError

pytestmark = pytest.mark.slow
DAY = "2026-11-02T10:00:00Z"
LATER = "2026-11-03T10:00:00Z"


town = fresh_town


def statuses(town: Town) -> Any:
    return town.participant("status", "--json", now=LATER).json["submissions"]


def test_all_of_the_metadata_is_told_at_once_with_its_fields(town: Town) -> None:
    submission = town.draft("one", now=DAY)
    town.fill(
        submission,
        team="",
        institution="-",
        model_description=" ",
        training_data="",
        type="ful ranking",
        paper="arxiv.org/abs/1",
        embargo_until="2029-01-01",
    )
    answer = town.participant("check", submission, now=DAY)
    assert answer.code == 1
    assert "metadata  7 problems\n" in answer.out
    assert answer.out.endswith(
        "\n7 problems; nothing was sealed or sent. Fix them, then check again.\n"
    )
    found = town.participant("check", submission, "--json", now=DAY).json
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
    town.fill(submission, team=7)
    again = town.participant("check", submission, now=DAY)
    assert again.out.count("metadata.json:team") == 1


def test_an_unknown_draft_is_told_with_those_there_are(town: Town) -> None:
    submission = town.draft("one", now=DAY)
    folder = town.clone / ".git/heldout/drafts/20261102-nobody"
    for command in ["check", "pack", "submit", "amend", "withdraw"]:
        answer = town.participant(command, "20261102-nobody", now=DAY)
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith(f"error  no-draft  {folder}\n")
        assert answer.err.count("error ") == 1
        assert f"one of {submission}" in answer.err


def test_the_quota_counts_what_was_sent_from_here(town: Town) -> None:
    submission = town.send("one", now=DAY)
    other = town.draft("two", now=LATER, seed=2)
    line = "1 of 2 used since 04 Oct (0 published, 1 sent from here and undecided); you may submit"
    assert line in town.participant("check", other, now=LATER).out
    town.take_in(now=LATER)
    assert town.publish(submission, now=LATER).code == 0
    town.share()
    line = "1 of 2 used since 04 Oct (1 published, 0 sent from here and undecided); you may submit"
    assert line in town.participant("check", other, now=LATER).out


def test_what_was_withdrawn_and_is_sent_again_is_refused_for_what_it_is(town: Town) -> None:
    submission = town.send("one", now=DAY)
    town.take_in(now=DAY)
    assert town.participant("withdraw", submission, now=DAY).code == 0
    town.take_in(now=DAY)
    town.fill(submission, withdrawn=False, revision=3)
    town.send_unchecked(submission, now=LATER)
    (receipt,) = town.take_in(now=LATER)["received"]
    (problem,) = receipt["problems"]
    assert (problem["code"], problem["found"]) == (
        "nothing-to-update",
        "a submission that was withdrawn",
    )
    assert problem["hint"] == "heldout draft makes a new id"


def test_an_embargo_that_cannot_be_is_refused_at_once(town: Town) -> None:
    dev, evaluation = town.root / "dev.tsv", town.root / "eval.tsv"
    runs: list[str | Path] = ["--dev", dev, "--eval", evaluation]
    for day in ["2026-11-02", "2020-01-01", "2027-08-03"]:
        answer = town.participant("draft", "x", *runs, "--embargo", day, now=DAY)
        assert (answer.code, answer.out) == (2, "")
        assert "error  embargo-day  --embargo" in answer.err
        assert "up to 2027-08-02" in answer.err
    assert not (town.clone / ".git/heldout/drafts").exists()


def test_what_the_log_has_decided_is_refused_here(town: Town) -> None:
    published, refused = town.send("one", now=DAY), town.send("two", now=DAY, seed=2)
    town.take_in(now=DAY)
    assert town.publish(published, now=DAY).code == 0
    assert town.organiser("reject", refused, "--why", "a copy", now=DAY).code == 0
    town.push()
    answers = [
        (town.participant("withdraw", published, now=LATER), "published-stays"),
        (town.participant("withdraw", refused, now=LATER), "already-decided"),
        (town.participant("amend", refused, now=LATER), "already-decided"),
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
        town.fill(published, **fields)
        answer = town.participant("amend", published, now=LATER)
        assert (answer.code, answer.out) == (1, "")
        assert "published-stays" in answer.err
        assert found in answer.err
        assert 'type "full ranking", no embargo, as published' in answer.err
    town.fill(published, type="full ranking", code="https://example.org/code")
    assert town.participant("amend", published, now=LATER).code == 0


def test_an_extended_embargo_does_not_stop_an_amendment(town: Town) -> None:
    submission = town.enter("one", now=DAY, embargo="2027-02-01")
    town.organiser("extend", submission, "2027-03-01", "--why", "late", now=DAY).done()
    town.push()
    town.fill(submission, code="https://example.org/code")
    assert town.participant("amend", submission, now=LATER).code == 0
    assert [one["kind"] for one in town.take_in(now=LATER)["received"]] == ["updated"]


def test_a_refused_update_shows_in_the_status(town: Town) -> None:
    """A refusal leaves no event: what was sent last is held against what is in force."""
    submission = town.enter("one", now=DAY)
    town.fill(submission, embargo_until="2027-02-01")
    assert town.participant("amend", submission, now=LATER).code == 0  # the log is not public yet
    (receipt,) = town.take_in(now=LATER)["received"]
    (problem,) = receipt["problems"]
    assert problem["found"] == 'type "full ranking", an embargo until 2027-02-01'
    assert problem["expected"] == 'type "full ranking", no embargo, as published'
    town.push()
    status = town.participant("status", submission, now=LATER)
    line = f"update    revision 2 was sent, revision 1 is in force: found {problem['found']}"
    assert line in status.out
    (row,) = statuses(town)
    assert row["update"].startswith("revision 2 was sent, revision 1 is in force")


def test_the_receipt_can_be_made_by_hand_and_changes_with_the_metadata(town: Town) -> None:
    """As docs/reference/envelope.md says."""
    command = 'sha256sum "$id"* | LC_ALL=C sort -k 2 | sha256sum'
    page = Path(__file__).parents[2] / "docs" / "reference" / "envelope.md"
    assert command in page.read_text("utf-8")

    def by_hand() -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=town.clone / ".git/heldout" / "sealed",
            env={**os.environ, "id": submission},
            capture_output=True,
            check=True,
            text=True,
        )
        return done.stdout.split()[0]

    submission = town.draft("one", now=DAY)
    first = town.participant("submit", submission, "--json", now=DAY).json["receipt"]
    assert first == by_hand()
    town.take_in(now=DAY)
    town.push()
    assert statuses(town)[0]["receipt"] == first
    town.fill(submission, code="https://example.org/code")
    second = town.participant("amend", submission, "--json", now=LATER).json["receipt"]
    assert second == by_hand() != first
    assert statuses(town)[0]["receipt"] == first
    town.take_in(now=LATER)
    town.push()
    assert statuses(town)[0]["receipt"] == second


@pytest.mark.parametrize("name", ["x.lock", "x."])
def test_a_name_that_git_allows_for_no_branch_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no such branch"):
        draft_id(name, today=date(2026, 11, 20), embargoed=False)


def write_run(town: Town, submission: str, rename: Callable[[str], str]) -> None:
    """Give the documents of a draft's dev run other ids."""
    file = town.clone / ".git/heldout/drafts" / submission / "dev.run"
    lines = [line.split("\t") for line in run_text("dev", 1).splitlines()]
    text = "".join(f"{query}\t{rename(document)}\t{rank}\n" for query, document, rank in lines)
    file.write_text(text)


def test_ids_that_are_none_of_the_collection_s_stop_check_and_submit(town: Town) -> None:
    submission = town.draft("foreign", now=DAY)
    write_run(town, submission, lambda document: document.upper())
    checked = town.participant("check", submission, now=DAY)
    assert checked.code == 1
    said = " ".join(checked.out.split())
    assert "error no-common-document dev.run" in said
    assert "none of its 150 documents is judged in dev" in said
    assert 'did you mean "ddev0"?' in said
    assert 'as "DDEV0" from "ddev0"' in said
    sent = town.participant("submit", submission, now=DAY)
    assert sent.code == 1
    assert not git(town.clone, "branch", "--list", "submission/*")


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


def test_a_draft_begins_with_what_the_header_of_its_runs_says(town: Town) -> None:
    for name in ("dev", "eval"):
        (town.root / f"{name}.run").write_text(_HEADER + run_text(name, 1))
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    said = town.participant("draft", "one", *runs, now=DAY).done()
    assert 'taken     team "Lighthouse Retrieval Group", from actor: team in ' in said.out

    answer = town.participant("draft", "two", *runs, "--json", now=DAY).json
    assert {one["field"] for one in answer["from_headers"]} == {
        *("team", "model_description", "efficiency.query_latency_ms"),
    }
    submission = answer["id"]
    metadata = json.loads(
        (town.clone / ".git/heldout/drafts" / submission / "metadata.json").read_text()
    )
    assert metadata["team"] == "Lighthouse Retrieval Group"
    assert metadata["efficiency"]["query_latency_ms"] == 120 / (2 * QUERIES)

    town.fill(
        submission,
        team="North Coast Search",
        institution="Coast University",
        training_data="dev queries",
    )
    checked = town.participant("check", submission, "--json", now=DAY).done()
    assert checked.json["problems"] == []
    town.participant("submit", submission, now=DAY)
    town.take_in(now=LATER)
    assert town.organiser("review", submission, "--json", now=LATER).code == 0


def test_a_draft_takes_measurements_from_a_file_beside_its_runs(town: Town) -> None:
    for name in ("dev", "eval"):
        (town.root / f"{name}.run").write_text(run_text(name, 1))
    beside = town.root / "ir-metadata.yml"
    beside.write_text(_HEADER.replace("# ", ""))
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    answer = town.participant("draft", "one", *runs, "--ir-metadata", beside, "--json", now=DAY)
    assert {one["path"] for one in answer.json["from_headers"]} == {str(beside)}

    beside.write_text("a: 1\na: 2\n")
    refused = town.participant("draft", "two", *runs, "--ir-metadata", beside, now=DAY)
    assert refused.code == 2
    assert f"error  ir-metadata-yaml  {beside}:2" in refused.err
    assert not (town.clone / ".git/heldout/drafts" / "20261102-two").exists()


@pytest.mark.parametrize("how", ["missing", "folder", "two"])
def test_a_run_that_is_not_one_file_is_one_problem(town: Town, how: str) -> None:
    submission = town.draft("one", now=DAY)
    town.fill(submission, team="")
    run = town.clone / ".git/heldout/drafts" / submission / "eval.run"
    if how == "two":
        run.with_name("eval.run.gz").write_bytes(b"")
    else:
        run.unlink()
    if how == "folder":
        run.mkdir()
    answer = town.participant("check", submission, now=DAY)
    assert answer.code == 1, answer
    expected = {"missing": "no run for 'eval'", "folder": "no file", "two": "eval.run.gz"}
    assert expected[how] in answer.out
    assert ("remove one" in answer.out) == (how == "two")
    assert "eval      no run that can be read" in answer.out
    assert "RR@10 0." in answer.out
    assert "metadata.json:team" in answer.out
    assert town.participant("submit", submission, now=DAY).code == 1
    assert git(town.forge, "for-each-ref", "refs/heads/submission") == ""
    assert not (town.clone / ".git/heldout/keys").exists()


def test_status_of_a_draft_and_of_nothing(town: Town) -> None:
    submission = town.draft("one", now=DAY)
    told = town.participant("status", submission, now=DAY)
    assert (told.code, "a draft here, nothing sent" in told.out) == (0, True)
    unknown = town.participant("status", "20261102-nobody", now=DAY)
    assert (unknown.code, unknown.out) == (1, "")
    assert "no draft or submission of this id" in unknown.err
    assert submission in unknown.err
    town.participant("submit", submission, now=DAY)
    assert "not received yet" in town.participant("status", submission, now=DAY).out


def test_an_embargo_in_a_telling_id(town: Town) -> None:
    telling = town.draft("lighthouse-one", now=DAY)
    town.fill(telling, embargo_until="2026-12-10")
    out = town.participant("check", telling, now=DAY).out
    assert "hidden    your git name (submit commits as Anonymous)\n" in out
    assert "the id says 'lighthouse'; heldout draft --embargo makes a neutral one" in out
    neutral = town.draft("x", now=DAY, embargo="2026-12-10")
    found = town.participant("check", neutral, "--json", now=DAY).json
    assert found["hidden"] == ["your git name (submit commits as Anonymous)"]
    assert not any("the id says" in warning for warning in found["warnings"])
    town.fill(telling, embargo_until="2026-11-01")
    out = town.participant("check", telling, now=DAY).out
    assert "note   embargo-over  metadata.json:embargo_until" in out
    assert "metadata  ok" in out
