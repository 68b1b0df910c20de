"""`heldout evaluate` and `heldout validate`, in process and as programs."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from calling import call, refused
from heldout.scoring.run_files import run_name

TREC = "q1 Q0 x 1 9.5 t\nq1 Q0 a 2 9.0 t\nq2 Q0 a 1 3 t\nnew Q0 a 1 3 t\n"
MSMARCO = "q1\ta\t1\nq2\tx\t1\nq2\ta\t2\nq3\tc\t1\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in [
        ("dev.qrels", "q1 0 a 1\nq1 0 b 0\nq2 0 a 2\nq3 0 c 1\nq4 0 c 0\n"),
        ("dense.run", TREC),
        ("bm25.tsv", MSMARCO),
        ("bad.tsv", "q1\ta\t1\nq1\ta\t2\n"),
        ("queries.tsv", "q1\tfirst query\nq2\tsecond query\n"),
    ]:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def json_of(*words: str) -> Any:
    return json.loads(call(*words, "--json").stdout)


@pytest.mark.usefixtures("files")
def test_scores_of_two_forms() -> None:
    done = call("evaluate", "dense.run", "bm25.tsv", "--qrels", "dev.qrels", "-m", "RR@10")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [
        "run     RR@10  unanswered",
        "dense  0.3750           2",
        "bm25   0.6250           1",
    ]
    assert "4 queries with judgments in dev.qrels" in done.stdout
    assert "1 without a relevant document count 0 (RR@10)" in done.stdout
    assert "1 query of dense without judgments ignored" in done.stdout
    assert "order     trec: score descending" in done.stdout
    assert "          chosen for runs with ranks alone (3 columns)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.usefixtures("files")
def test_json_shape() -> None:
    found = json_of("evaluate", "dense.run", "--qrels", "dev.qrels", "-m", "MRR@10", "--per-query")
    assert found["failed"] == []
    (run,) = found["runs"]
    assert (run["run"], run["path"], run["order"]) == ("dense", "dense.run", "trec")
    assert run["queries"] == 4
    assert run["scores"] == {"RR@10": 0.375}
    assert run["per_query"] == {
        "q1": {"RR@10": 0.5},
        "q2": {"RR@10": 1.0},
        "q3": {"RR@10": 0.0},
        "q4": {"RR@10": 0.0},
    }
    assert (run["unanswered"], run["ignored"], run["n"]) == (2, 1, {"RR@10": 4})
    assert run["why"] == {}


@pytest.mark.usefixtures("files")
def test_undefined_is_null_with_a_reason() -> None:
    arguments = ("dense.run", "--qrels", "dev.qrels", "-m", "FirstRel(rel=3)")
    (run,) = json_of("evaluate", *arguments)["runs"]
    assert run["scores"] == {"FirstRel(rel=3)": None}
    assert run["why"] == {"FirstRel(rel=3)": "no relevant document was found for any query"}
    done = call("evaluate", *arguments)
    assert done.stdout.splitlines()[1].split() == ["dense", "-", "2"]
    assert "FirstRel(rel=3) of dense: no relevant document was found" in done.stdout


@pytest.mark.usefixtures("files")
def test_a_mean_over_fewer_queries_says_so() -> None:
    done = call("evaluate", "dense.run", "--qrels", "dev.qrels", "-m", "FirstRel@10")
    assert "FirstRel@10 of dense: mean over 2 queries; in 2 nothing relevant" in done.stdout


@pytest.mark.usefixtures("files")
def test_broken_files_are_named_at_the_end() -> None:
    arguments = ("bad.tsv", "bm25.tsv", "nowhere.run", "--qrels", "dev.qrels", "-m", "RR@10")
    done = call("evaluate", *arguments)
    assert done.exit_code == 1
    assert "bm25" in done.stdout
    assert "bad" not in done.stdout
    assert "error  repeated-document  bad.tsv:2\n       found     " in done.stderr
    assert done.stderr.endswith(
        "2 of 3 files not scored:\n          bad.tsv: 1 problem\n          nowhere.run: 1 problem\n"
    )
    found = json_of("evaluate", *arguments)
    assert [run["run"] for run in found["runs"]] == ["bm25"]
    assert [(run["path"], run["problems"][0]["code"]) for run in found["failed"]] == [
        ("bad.tsv", "repeated-document"),
        ("nowhere.run", "unreadable-file"),
    ]
    assert found["failed"][0]["problems"][0]["line"] == 2


@pytest.mark.usefixtures("files")
def test_exit_codes() -> None:
    """1: some files cannot be scored. 2: none can, or the call is wrong."""
    judged = ("--qrels", "dev.qrels", "-m", "RR@10")
    assert call("evaluate", "bad.tsv", "bm25.tsv", *judged).exit_code == 1
    assert call("evaluate", "bad.tsv", *judged).exit_code == 2
    assert call("evaluate", "nowhere.run", *judged).exit_code == 2
    assert call("evaluate", *judged).exit_code == 2
    assert call("evaluate", "bm25.tsv", "--qrels", "dev.qrels").exit_code == 2
    assert call("evaluate", "bm25.tsv", "--qrels", "nowhere", "-m", "RR@10").exit_code == 2
    assert call("evaluate", "bm25.tsv", "--qrels", "bm25.tsv", "-m", "RR@10").exit_code == 2
    assert call("evaluate", "bm25.tsv", *judged, "--order", "score").exit_code == 2


@pytest.mark.usefixtures("files")
def test_runs_of_one_name_are_told_apart() -> None:
    Path("dir").mkdir()
    Path("dir/bm25.tsv.gz").write_bytes(gzip.compress(MSMARCO.encode()))
    done = call("evaluate", "bm25.tsv", "dir/bm25.tsv.gz", "--qrels", "dev.qrels", "-m", "RR@10")
    names = [line.split()[0] for line in done.stdout.splitlines()[1:3]]
    assert names == ["bm25.tsv", "dir/bm25.tsv.gz"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("runs/bm25.tsv.gz", "bm25"),
        ("input.NLE-run1", "input.NLE-run1"),
        ("a.b.run", "a.b"),
        (".run", ".run"),
        ("x.zst", "x"),
    ],
)
def test_run_names(path: str, name: str) -> None:
    assert run_name(path) == name


@pytest.mark.usefixtures("files")
def test_a_clean_run_validates() -> None:
    Path("good.tsv").write_text("q1\ta\t1\nq2\ta\t1\nq2\tb\t2\n", encoding="utf-8")
    done = call("validate", "good.tsv", "--queries", "queries.tsv", "--depth", "2")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "run       good.tsv",
        "found     no problems",
        "read      2 of 2 queries, 3 documents",
        "order     msmarco: by rank",
    ]
    found = json_of("validate", "good.tsv", "--queries", "queries.tsv")
    assert (found["path"], found["ok"], found["problems"]) == ("good.tsv", True, [])


BROKEN = "q1\ta\t1\nq1\ta\t2\nq1\tb\t3\nq9\ta\t1\nq1 oops\n"


@pytest.mark.usefixtures("files")
def test_every_problem_in_one_go() -> None:
    Path("broken.tsv").write_text(BROKEN, encoding="utf-8")
    arguments = ("broken.tsv", "--queries", "queries.tsv", "--depth", "2")
    done = call("validate", *arguments)
    assert done.exit_code == 1
    found = json_of("validate", *arguments)
    assert found["ok"] is False
    codes = {(problem["code"], problem["line"]) for problem in found["problems"]}
    assert codes >= {
        ("repeated-document", 2),
        ("too-many-documents", 3),
        ("unknown-query", 4),
        ("wrong-columns", 5),
        ("missing-query", None),
    }
    for problem in found["problems"]:
        assert {"code", "line", "found", "expected", "hint"} <= set(problem)
    for code, line in codes:
        assert f"error  {code}  broken.tsv" + (f":{line}\n" if line else "\n") in done.stdout


@pytest.mark.usefixtures("files")
def test_validate_needs_files_it_can_open() -> None:
    assert "unreadable-file  nowhere" in refused("validate", "nowhere", "--queries", "queries.tsv")
    assert call("validate", "bm25.tsv", "--queries", "nowhere").exit_code == 2
    assert call("validate", "bm25.tsv", "--queries", "queries.tsv", "--depth", "0").exit_code == 2


@pytest.mark.parametrize("command", ["evaluate", "validate"])
def test_help_has_an_example(command: str) -> None:
    done = call(command, "--help")
    assert re.search(rf"Examples?:\n    heldout {command} ", done.stdout)


def as_program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    start = "from heldout.cli.program import main; main()"
    return subprocess.run(
        [sys.executable, "-c", start, name, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.usefixtures("files")
def test_a_pipe_gets_plain_text() -> None:
    name = "evil\x1b[31m\u202e.tsv"
    Path(name).write_text("q1\ta\x1b[2J\t1\n", encoding="utf-8")
    done = as_program("validate", name, "--queries", "queries.tsv")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    text = (done.stdout + done.stderr).replace("\n", "")
    assert text.isprintable()
    assert "evil\\x1b[31m\\u202e.tsv" in text


@pytest.mark.usefixtures("files")
def test_no_common_query_gives_no_number() -> None:
    Path("other.tsv").write_text("x1\ta\t1\nx2\ta\t1\n", encoding="utf-8")
    judged = ("--qrels", "dev.qrels", "-m", "RR@10")
    done = refused("evaluate", "other.tsv", *judged)
    assert "error  no-common-query  other.tsv\n" in done
    assert "found     2 queries (x1, x2), none in the qrels" in done
    assert "answers to the 4 judged queries (q1, q2, q3)" in done
    found = json_of("evaluate", "other.tsv", "bm25.tsv", *judged)
    assert [run["run"] for run in found["runs"]] == ["bm25"]
    assert [run["problems"][0]["code"] for run in found["failed"]] == ["no-common-query"]


@pytest.mark.usefixtures("files")
def test_few_common_queries_are_noted_and_scored() -> None:
    """Unanswered queries still count 0: one perfect answer of four judged queries is 0.25."""
    Path("few.tsv").write_text("q2\ta\t1\n", encoding="utf-8")
    judged = ("--qrels", "dev.qrels", "-m", "RR@10")
    done = call("evaluate", "few.tsv", *judged)
    assert (done.exit_code, done.stdout.splitlines()[1]) == (0, "few  0.2500           3")
    assert "note   few-common-queries  few.tsv\n" in done.stderr
    assert "1 of its 1 query in the qrels, which judge 4" in done.stderr
    (run,) = json_of("evaluate", "few.tsv", *judged)["runs"]
    assert [note["code"] for note in run["notes"]] == ["few-common-queries"]


@pytest.mark.usefixtures("files")
def test_the_run_of_another_set_is_one_problem() -> None:
    Path("other.tsv").write_text("x1\ta\t1\nx2\ta\t1\nx3\ta\t1\n", encoding="utf-8")
    found = json_of("validate", "other.tsv", "--queries", "queries.tsv")
    assert found["counts"] == {"wrong-query-set": 1}
    (problem,) = found["problems"]
    assert problem["found"] == "0 of its 3 queries, x1 for example, in the query set"
    Path("one.tsv").write_text("x1\ta\t1\nx2\ta\t1\nq1\ta\t1\n", encoding="utf-8")
    counts = json_of("validate", "one.tsv", "--queries", "queries.tsv")["counts"]
    assert counts == {"missing-query": 1, "unknown-query": 2}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("wrong", ["run", "queries"])
def test_json_is_there_even_where_nothing_could_be_read(wrong: str) -> None:
    run, queries = ("nosuch", "queries.tsv") if wrong == "run" else ("bm25.tsv", "nosuch")
    done = call("validate", run, "--queries", queries, "--json")
    assert done.exit_code == 2
    found = json.loads(done.stdout)
    assert (found["path"], found["ok"]) == (run, False)
    assert [(p["code"], p["path"]) for p in found["problems"]] == [("unreadable-file", "nosuch")]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("evaluate bm25.tsv --qrels long -m RR", "grade-not-a-number"),
        ("validate bm25.tsv --queries long", "no-tab"),
    ],
)
def test_readers_say_how_many_problems_they_do_not_show(asked: str, code: str) -> None:
    Path("long").write_text("no tab here x\n" * 300, encoding="utf-8")
    done = call(*asked.split())
    shown = done.stderr.count("error  ")
    assert 0 < shown < 300
    assert f"and {300 - shown} more of {code}\n" in done.stderr
