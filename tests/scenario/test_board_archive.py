"""At a board's end: one file from which anybody can score it again, and nothing that is private."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ended_board import Ended, audited, end_board
from lab import LAST, found_lab, run_text
from trusting import BASELINE, ONE, REVEALED, Files, forge, read_files


@pytest.fixture
def ended() -> Ended:
    return end_board()


def test_an_archive_is_sound_for_a_stranger_and_in_a_clone(ended: Ended, tmp_path: Path) -> None:
    for place in (tmp_path, ended.lab.board):
        answer = audited(ended.lab, ended.archive, at=place)
        assert (answer.code, answer.json["faults"]) == (0, []), answer
    assert ended.lab.kinds()[-1] == "closed-board"
    assert ended.lab.audit()["ok"]
    stranger = ended.lab.participant("audit", ended.archive, now=LAST, clone=tmp_path)
    assert "scores by query of 2 against their runs" in stranger.out
    assert f'"{ended.ids["hidden"]}" is under an embargo until 2027-02-01' in stranger.out


def test_it_holds_what_the_results_follow_from(ended: Ended) -> None:
    files = read_files(ended.archive)
    assert sum(name.startswith("evidence/") for name in files) == 6
    files = {name: data for name, data in files.items() if not name.startswith("evidence/")}
    one, hidden = ended.ids["one"], ended.ids["hidden"]
    assert set(files) == {
        *("README.md", "MANIFEST.json", "log.jsonl", "labels/eval.qrels", "qrels/dev.qrels"),
        *("queries/dev.tsv", "queries/eval.tsv"),
        *(f"scores/{name}.json" for name in (BASELINE, one, hidden)),
        *(f"runs/{BASELINE}/{name}" for name in ("dev", "eval")),
        *(f"runs/{one}/{name}.run" for name in ("dev", "eval")),
    }
    assert files[f"runs/{one}/eval.run"] == run_text("eval", 1).encode()
    assert files["labels/eval.qrels"] == (ended.lab.vault / "labels/eval.qrels").read_bytes()


def test_nothing_private_is_in_it(ended: Ended) -> None:
    data = b"".join(read_files(ended.archive).values())
    for secret in (b"AGE-SECRET-KEY", b"Driftwood", b"Harbour", b"North Coast"):
        assert secret not in data, secret
    assert b"Lighthouse" in data


def test_a_file_that_exists_is_not_written_over(ended: Ended) -> None:
    other = ended.archive.with_name("other.zip")
    other.write_bytes(b"mine")
    answer = ended.lab.organiser("archive", other, now=LAST)
    assert (answer.code, other.read_bytes()) == (2, b"mine")
    assert "holds something else" in answer.err


def test_after_the_reveal_the_identity_and_the_runs_are_in_it(ended: Ended, tmp_path: Path) -> None:
    lab = ended.lab.copy(tmp_path)
    answer = lab.organiser("archive", tmp_path / "late.zip", "--json", now=REVEALED)
    assert (answer.code, answer.json["archive"]["embargoed"]) == (0, []), answer
    files = read_files(tmp_path / "late.zip")
    assert b"North Coast" in files["log.jsonl"]
    assert f"runs/{ended.ids['hidden']}/eval.run" in files
    assert audited(lab, tmp_path / "late.zip").code == 0


def test_after_the_closing_an_erratum_can_come_and_the_archive_tells_it(
    ended: Ended, tmp_path: Path
) -> None:
    lab = ended.lab.copy(tmp_path)
    lab.repair("deval3 1", "other 1")
    lab.organiser("correct", ONE, "--why", "a wrong document", now=LAST).done()
    refused = lab.organiser("archive", tmp_path / "a.zip", now=LAST).refused()
    others = f"{BASELINE} {ended.ids['hidden']}"
    assert f'nothing was archived: heldout correct {others} --why "…"' in refused.err
    lab.organiser("correct", *others.split(), "--why", "a wrong document", now=LAST).done()
    assert lab.organiser("archive", tmp_path / "a.zip", now=LAST).code == 0
    found = audited(lab, tmp_path / "a.zip")
    assert (found.code, found.json["faults"]) == (0, [])
    older = audited(lab, ended.archive)
    assert (older.code, older.json["faults"]) == (0, [])


def test_the_readme_s_program_checks_the_labels(ended: Ended, tmp_path: Path) -> None:
    files = read_files(ended.archive)
    program = re.findall(r"```python\n(.*?)```", files["README.md"].decode(), re.DOTALL)[0]

    def verify(labels: bytes) -> str:
        for name in ("log.jsonl", "labels/eval.qrels"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(files[name])
        (tmp_path / "labels/eval.qrels").write_bytes(labels)
        command = [sys.executable, "-W", "ignore", "-c", program]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert verify(files["labels/eval.qrels"]) == "eval True\n"
    assert verify(files["labels/eval.qrels"] + b"\n") == "eval False\n"


VIEWS = """
[[views]]
name = "reserve"
set = "eval"
measure = "P@5"
public = false

[[views]]
name = "late"
set = "eval"
measure = "nDCG@5"
public = false
final = true

[baselines]"""


def test_private_views_stay_shut_and_final_ones_are_opened(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    lab.rule(("[baselines]", VIEWS), ("# closes = 2027-03-31", "closes = 2026-11-30"))
    name = lab.enter("one")
    lab.organiser("archive", tmp_path / "a.zip", "--yes", now="2026-11-30T23:59:59Z").refused(
        "sealed until 2026-11-30 is over"
    )
    assert lab.organiser("archive", tmp_path / "a.zip", "--yes", now=LAST).code == 0
    scores = json.loads(read_files(tmp_path / "a.zip")[f"scores/{name}.json"])
    assert set(scores["views"]) == {"dev", "eval", "late"}
    answer = audited(lab, tmp_path / "a.zip")
    assert (answer.code, answer.json["faults"]) == (0, [])

    def lower(files: Files) -> None:
        late = scores["views"]["late"]
        late["per_query"] = dict.fromkeys(late["per_query"], 0.0)
        late["mean"] = 0.0
        files[f"scores/{name}.json"] = json.dumps(scores).encode()

    forged = forge(tmp_path / "a.zip", lower, tmp_path / "x.zip")
    faults = "\n".join(audited(lab, forged).json["faults"])
    assert f'score of "{name}" does not follow' in faults


def test_only_an_archive_by_itself_is_audited(ended: Ended) -> None:
    ended.lab.participant("audit", ended.archive, "--receipt", ended.archive, now=LAST).refused()
