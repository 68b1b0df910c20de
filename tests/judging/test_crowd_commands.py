"""`heldout prefer export --form mturk` and `import`: out to the platform, and back, by commands."""

import csv
import json
import stat
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from crowd_tasks import format_results, honest, make_task

from heldout.cli.program import main
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.campaign.judgments import counted
from heldout.judging.campaign.pools import Candidate, Pool, gather_texts
from heldout.judging.campaign.rows import Task

TOML = 'name = "Best answers"\npairs = 2\ntests = 1\nconsent = "You are 18."\n'
POOLS = tuple(
    Pool(
        query=query,
        text=f"asked {query}",
        candidates=tuple(
            Candidate(doc=f"{query}-{letter}", text=f"passage <{query}{letter}>")
            for letter in "abcx"
        ),
    )
    for query in "qr"
)
TASKS = (make_task(), make_task("1-00002-1", query="r"))
TEXTS = gather_texts(POOLS)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    place = tmp_path / "campaign"
    place.mkdir()
    (place / "campaign.toml").write_text(TOML)
    folder = CampaignFolder(place)
    folder.write_pools(POOLS)
    folder.write_tasks(TASKS)
    return place


def prefer(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, ["prefer", *map(str, arguments)], env={"DATABASE_URL": None})
    assert result.exit_code == status, result.output
    return " ".join(result.output.split())


def results(path: Path, *rows: tuple[Task, str, dict[str, str]], **changes: str) -> Path:
    path.write_bytes(format_results(rows, TEXTS, **changes))
    return path


def test_tasks_go_out_and_come_back_as_judgments(campaign: Path, tmp_path: Path) -> None:
    out = tmp_path / "hits"
    told = prefer("export", campaign, "--form", "mturk", "--out", out)
    assert "2 tasks of 3 questions: batch1-3.csv, batch1-3.html" in told
    rows = list(csv.DictReader(StringIO((out / "batch1-3.csv").read_text(), newline="")))
    assert [row["task"] for row in rows] == ["1-00001-1", "1-00002-1"]
    assert rows[0]["left_1"] == "passage &lt;qa&gt;"
    assert "${query_3}" in (out / "batch1-3.html").read_text()
    found = results(
        tmp_path / "r.csv",
        (TASKS[0], "W1", honest()),
        (TASKS[1], "W2", honest(choice_3="none", reason_3="same")),
    )
    told = prefer("import", found, campaign)
    assert "taken in 2 tasks, 6 judgments" in told
    judgments = CampaignFolder(campaign).judgments()
    assert len(counted(judgments)) == 3
    assert not {"W1", "W2"} & {one.worker for one in judgments}
    assert len({one.worker for one in judgments}) == 2
    review = (tmp_path / "r-reviewed.csv").read_text()
    assert [row["Approve"] for row in csv.DictReader(StringIO(review, newline=""))] == ["x", "x"]
    assert "nothing: batch 1 is judged" in prefer("export", campaign, "--form", "mturk")


def test_conditions_go_out_and_shares_come_back_as_bonuses(campaign: Path, tmp_path: Path) -> None:
    out, terms = tmp_path / "hits", campaign / "campaign.toml"
    prefer("export", campaign, "--form", "mturk", "--out", out)
    assert not (out / "qualifications.json").exists()
    terms.write_text(TOML + 'reward = 200\ncountries = ["US"]\napproved_tasks = 10000\n')
    told = prefer("export", campaign, "--form", "mturk", "--out", out)
    assert "qualifications.json: who may see the tasks" in told
    assert "set $0.67, the share of one answer" in told
    kinds = [
        row["QualificationTypeId"] for row in json.loads((out / "qualifications.json").read_text())
    ]
    assert kinds == ["00000000000000000071", "00000000000000000040"]
    stopped = (TASKS[0], "W1", {"choice_1": "left", "choice_2": "right"})
    told = prefer("import", results(tmp_path / "r.csv", stopped, Reward="$0.67"), campaign)
    assert "partial 1 task without every answer: not counted" in told
    assert "bonuses" in told
    place = tmp_path / "r-bonuses.csv"
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    (row,) = csv.DictReader(StringIO(place.read_text(), newline=""))
    assert (row["WorkerId"], row["BonusAmount"]) == ("W1", "0.67")
    whole = results(tmp_path / "s.csv", (TASKS[1], "W2", honest()), Reward="$2.00")
    assert "bonuses" not in prefer("import", whole, campaign)


def test_a_worker_keeps_the_name_from_file_to_file(campaign: Path, tmp_path: Path) -> None:
    prefer("import", results(tmp_path / "a.csv", (TASKS[0], "W1", honest())), campaign)
    prefer("import", results(tmp_path / "b.csv", (TASKS[1], "W1", honest())), campaign)
    judgments = CampaignFolder(campaign).judgments()
    assert (len(judgments), len({one.worker for one in judgments})) == (6, 1)


def test_names_are_not_made_with_a_key_that_was_cut(campaign: Path, tmp_path: Path) -> None:
    (campaign / "workers.key").write_bytes(b"")
    found = results(tmp_path / "a.csv", (TASKS[0], "W1", honest()))
    assert "workers.key is no key" in prefer("import", found, campaign, status=2)
    assert not CampaignFolder(campaign).judgments()


def test_the_key_of_names_and_all_files_of_workers_are_private(
    campaign: Path, tmp_path: Path
) -> None:
    found = results(tmp_path / "r.csv", (TASKS[0], "W1", honest(choice_2="left")))
    prefer("import", found, campaign)
    for place in (
        *(campaign / "workers.key", campaign / "judgments.jsonl"),
        *(tmp_path / "r-reviewed.csv", tmp_path / "r-barred.txt"),
    ):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600, place


def test_a_failed_task_is_kept_told_and_drawn_again(campaign: Path, tmp_path: Path) -> None:
    found = results(
        tmp_path / "r.csv",
        (TASKS[0], "W1", honest(choice_2="left")),
        (TASKS[1], "W2", honest()),
    )
    told = prefer("import", found, campaign)
    assert "failed 1 task: stored, and not counted" in told
    assert (tmp_path / "r-barred.txt").read_text() == "W1\n"
    told = prefer("export", campaign, "--form", "mturk", "--repeat", "--out", tmp_path)
    assert "drawn 1 task again" in told
    assert "1 task of 3 questions: batch2-3.csv" in told
    copy = CampaignFolder(campaign).tasks()[-1]
    assert (copy.task, copy.batch) == ("1-00001-1r", 2)
    again = results(tmp_path / "s.csv", (copy, "W3", dict.fromkeys(honest(), "none")))
    prefer("import", again, campaign)
    told = prefer("export", campaign, "--form", "mturk", "--repeat")
    assert "drawn 1 task again" in told  # "none" is no answer to a test
    told = prefer("export", campaign, "--form", "mturk", "--repeat", "--batch", 1)
    assert "drawn 0 tasks again" in told
    assert "nothing: batch 1 is judged" in told


def test_without_a_database_there_is_nothing_to_export(campaign: Path) -> None:
    for form in ("jsonl", "payments", "prolific-bonus"):
        told = prefer("export", campaign, "--form", form, status=2)
        assert "campaign.sqlite is missing" in told
    assert not (campaign / "campaign.sqlite").exists()
