"""`heldout prefer export` from a database that judges filled through the pages."""

import csv
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from judging_stage import Stage, Stages

from heldout.cli.program import main
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import Judgment, counted, merge_judgments, parse_judgments

ADA, BOB = "5f" * 12, "6e" * 12


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
    with Stages(tmp_path / "pages") as made:
        made.folder.mkdir()
        yield made


def export(stage: Stage, folder: Path, *arguments: object) -> str:
    url = str(stage.database.engine.url)
    command = ["prefer", "export", str(folder), "--database", url, *map(str, arguments)]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_an_export_says_order_times_and_a_random_name(stages: Stages, tmp_path: Path) -> None:
    stage = stages.make()
    stage.finish(stage.begin("ada"), 4, q2="b")
    told = export(stage, tmp_path)
    assert "4 judgments" in told
    assert "4 of them new" in told
    text = (tmp_path / "judgments.jsonl").read_bytes()
    assert b"ada" not in text
    first, second, *_ = parse_judgments(text, path="judgments.jsonl")
    assert (first.left, first.preferred) == ("q1-1-a", "q1-1-a")
    assert (second.left, second.preferred) == ("q1-2-a", "q1-2-b")
    assert first.shown_at == first.answered_at == "2026-11-21T12:00:00.000Z"
    assert len(first.worker) >= 16


def test_a_later_export_only_adds_and_finishes(stages: Stages, tmp_path: Path) -> None:
    stage = stages.make()
    root = stage.begin("ada")
    stage.answer(root, 1)
    export(stage, tmp_path)
    (before,) = CampaignFolder(tmp_path).judgments()
    assert not before.submitted
    stage.clock.pass_by(minutes=1)
    stage.answer(root, 1, "b")
    stage.finish(root, 4, q1="b")
    assert "4 of them new" in export(stage, tmp_path)
    after = CampaignFolder(tmp_path).judgments()
    assert len(after) == 5
    assert (after[0].answered_at, after[0].submitted) == (before.answered_at, True)
    assert {one.preferred for one in counted(after)} == {"q1-1-b", "q1-2-a", "q1-4-a"}
    assert "0 of them new" in export(stage, tmp_path)


def test_judgments_from_elsewhere_stay(stages: Stages, tmp_path: Path) -> None:
    stage = stages.make()
    elsewhere = Judgment(query="q", left="a", right="b", preferred="a", worker="w", task="mturk")
    CampaignFolder(tmp_path).write_judgments([elsewhere])
    stage.finish(stage.begin("ada"), 4)
    export(stage, tmp_path)
    assert CampaignFolder(tmp_path).judgments()[0] == elsewhere
    other = tmp_path / "database.jsonl"
    export(stage, tmp_path, "--out", other)
    assert len(parse_judgments(other.read_bytes(), path="o")) == 4


def test_merging_again_or_from_nothing_changes_nothing() -> None:
    one = Judgment(query="q", left="a", right="b", preferred="a", worker="w", task="t", position=1)
    assert merge_judgments([one], [one]) == (one,)
    assert merge_judgments([one], []) == (one,)
    assert merge_judgments([], [one]) == (one,)
    other = msgspec.structs.replace(one, preferred="b")
    changed = (one, other, one)  # all in one moment: the last of them stands
    assert merge_judgments([], changed) == changed
    assert merge_judgments(changed[:1], changed) == changed
    assert merge_judgments(changed, changed) == changed


def test_payments_are_exported_with_their_keys(stages: Stages, tmp_path: Path) -> None:
    stage = stages.make()
    stage.finish(stage.begin("ada"), 4)
    told = export(stage, tmp_path, "--form", "payments")
    assert "due $2.00 paid $0.00" in told
    (row,) = csv.DictReader(StringIO((tmp_path / "payments.csv").read_text(), newline=""))
    assert (row["platform_id"], row["kind"], row["amount"]) == ("ada", "base", "2.00")


def test_prolific_gets_whom_to_approve_to_ask_and_to_pay(stages: Stages, tmp_path: Path) -> None:
    stage = stages.make(platform="prolific")
    for worker, study in ((ADA, "study1"), (BOB, "study1"), ("7d" * 12, "../forged")):
        address = f"{stage.link}?PROLIFIC_PID={worker}&STUDY_ID={study}&SESSION_ID={worker[0]}"
        fields = {"PROLIFIC_PID": worker, "STUDY_ID": study, "SESSION_ID": worker[0], "batch": "1"}
        assert stage.client.get(address).status_code == 200
        answer = stage.client.post(f"{stage.link}/consent", data=fields)
        if answer.status_code != 303:
            continue
        root = answer.headers["location"].rpartition("/item/")[0]
        if worker == ADA:
            stage.finish(root, 4)
        else:
            stage.answer(root, 1)
            stage.post(f"{root}/exit", {"token": root.removeprefix("/a/")})
    told = export(stage, tmp_path, "--form", "prolific-bonus", "--out", tmp_path / "p")
    assert "study1: approve 1 ($2.00), ask 1 for a return, bonuses of $0.50" in told
    assert (tmp_path / "p" / "study1-approve.txt").read_text() == f"{ADA}\n"
    assert (tmp_path / "p" / "study1-return.txt").read_text() == f"{BOB}\n"
    assert (tmp_path / "p" / "study1-bonus.csv").read_text() == f"{BOB},0.50\n"
    assert "$0.50 in 1 payment without an id of Prolific's" in told
