"""Parts of many runs: dealt alike everywhere, scored once, found by the last call."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from heldout.cli.program import main
from heldout.collections.named import load_qrels
from heldout.errors import InputError, SetupError
from heldout.ids import Digest
from heldout.scoring.cache import Key, ScoreCache, code_version
from heldout.scoring.evaluate import prepare
from heldout.scoring.measures import parse_measure
from heldout.scoring.score import Failed, Reading, Work, score_there
from heldout.scoring.shards import Shard, check_shared, parse_shard

RUNS = tuple(f"r{number}.run" for number in range(7))
JUDGED = ("--qrels", "dev.qrels", "-m", "RR@10", "-m", "nDCG@10")
PATIENCE = 30


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Seven runs of different lengths, in the folder that the test stands in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", str(tmp_path / "cache"))
    for number, name in enumerate(RUNS):
        lines = [
            f"q{query} Q0 d{(place * (2 * number + 1)) % 31} {place} {100 - place} t\n"
            for query in range(4 + number)
            for place in range(1, 31)
        ]
        Path(name).write_text("".join(lines), encoding="utf-8")
    qrels = [f"q{q} 0 d{d} {(q + d) % 3}\n" for q in range(12) for d in range(0, 30, 3)]
    Path("dev.qrels").write_text("".join(qrels), encoding="utf-8")
    return tmp_path / "cache"


def call(*arguments: str, runs: Sequence[str] = RUNS) -> Result:
    return CliRunner().invoke(main, ["evaluate", *runs, *JUDGED, *arguments])


def part(shard: str, *, runs: Sequence[str] = RUNS) -> dict[str, object]:
    done = call("--shard", shard, "--json", runs=runs)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_parts_are_all_runs_once_and_alike_in_size_in_whatever_order_runs_are_named() -> None:
    parts = [Shard(3, number).deal(RUNS) for number in (1, 2, 3)]
    assert sorted(path for one in parts for path in one) == list(RUNS)
    assert parts == [Shard(3, number).deal((*RUNS[::-1], *RUNS)) for number in (1, 2, 3)]
    assert [path for path, *_ in parts] == ["r6.run", "r5.run", "r4.run"]
    assert Shard(9, 8).deal(RUNS) == []
    assert Shard(1, 1).deal(["gone.run", "r0.run"]) == ["r0.run", "gone.run"]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("0/3", "count from 1"),
        ("4/3", "your scheduler's array"),
        ("3", "third of ten"),
        ("-1/3", "third of ten"),
        ("1/0", "your scheduler's array"),
        ("1/3/5", "third of ten"),
        ("", "third of ten"),
    ],
)
def test_what_is_no_part_is_said(text: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"bad-shard.*{hint}"):
        parse_shard(text)
    assert parse_shard("3/10") == Shard(number=3, of=10)


def test_the_last_call_finds_all_parts_and_prints_what_one_machine_prints() -> None:
    alone = call("--no-cache", "--csv", "--per-query").stdout
    found = [part(f"{number}/3") for number in (1, 2, 3)]
    assert [one["scored"] for one in found] == [3, 2, 2]
    assert len({str(one["plan"]) for one in found}) == 1
    last = call("--csv", "--per-query")
    assert last.stdout == alone
    assert "shards    all 3 parts are scored\n" in last.stderr
    assert "stored    7 of 7 runs as stored" in last.stderr


def test_a_part_that_is_missing_is_named_and_its_runs_are_scored(cache: Path) -> None:
    alone = call("--no-cache", "--csv").stdout
    part("1/3")
    part("3/3")
    last = call("--csv")
    assert last.stdout == alone
    assert "2 of 3 parts are scored; what is missing is scored now: 2/3" in last.stderr
    assert "stored    5 of 7 runs as stored" in last.stderr
    assert part("2/3")["stored_before"] == 2
    assert ScoreCache(root=cache, limit=None).folder.is_dir()


def test_parts_of_another_plan_are_said() -> None:
    part("1/2")
    assert "all" not in call("-m", "RR@10", runs=RUNS[:3]).stderr  # other runs: nothing to say
    fewer = CliRunner().invoke(main, ["evaluate", *RUNS, "--qrels", "dev.qrels", "-m", "RR@10"])
    assert "1 of 2 parts are scored" in fewer.stderr
    other = call("-m", "AP", "--order", "msmarco").stderr
    assert "of another plan: measures there: RR@10, nDCG@10, here: AP, RR@10, nDCG@10" in other
    assert "order there: by the columns, here: msmarco" in other
    assert "stored    0 of 7 runs as stored" in other
    Path("dev.qrels").write_text("q1 0 d3 1\n", encoding="utf-8")
    assert "of another plan: judgments there: " in call().stderr


def test_what_one_run_has_wrong_fails_that_run_alone() -> None:
    Path("r6.run").write_text("q1 Q0 d1 1 1 t\nq1 Q0 d1 2 1 t\n", encoding="utf-8")
    done = call("--shard", "1/1")
    assert done.exit_code == 1
    assert "scored    6, 0 of them stored before" in done.stdout
    assert "error  repeated-document  r6.run:2" in done.stderr
    assert call("--shard", "1/1", runs=["r6.run"]).exit_code == 2


@pytest.mark.skipif(sys.platform == "win32", reason="kills a process")
def test_a_part_that_was_killed_goes_on_where_it_was() -> None:
    os.mkfifo("pipe.run")  # nobody writes into it: the part waits there, after all files
    command = [sys.executable, "-m", "heldout", "evaluate", *RUNS, "pipe.run", *JUDGED]
    process = subprocess.Popen([*command, "--shard", "1/1", "--jobs", "1"])
    held = os.open("pipe.run", os.O_RDWR)
    end = time.monotonic() + PATIENCE
    while len(list(Path("cache").glob("scores-1/*/*/[0-9a-f]*"))) < len(RUNS):
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)
    os.close(held)
    assert not Path("cache/shards-1").exists()  # not finished, so not noted
    assert part("1/1")["stored_before"] == len(RUNS)


def test_scores_that_cannot_be_stored_fail_the_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ScoreCache, "add", lambda *_: False)
    done = call("--shard", "2/2")
    assert done.exit_code == 2
    assert "error  not-stored  r5.run\n" in done.stderr
    assert not Path("cache/shards-1").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--csv",), "without --csv"),
        (("--no-cache",), "without --no-cache"),
        (("--only", "x=y"), "without --only"),
        (("-m", "Rprec"), "not stored: Rprec"),
        (("--dask", "tcp://127.0.0.1:1"), "without --dask"),
    ],
)
def test_what_a_part_cannot_do_is_refused(options: Sequence[str], said: str) -> None:
    pytest.importorskip("ir_measures")
    done = call("--shard", "1/2", *options)
    assert (done.exit_code, said in done.stderr) == (2, True)


@pytest.mark.parametrize("named", ["", "off"])
def test_a_folder_must_be_named(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELDOUT_CACHE", named)
    done = call("--shard", "1/2")
    assert (done.exit_code, "HELDOUT_CACHE=/shared/scores" in done.stderr) == (2, True)


def test_a_folder_of_somebody_else_is_refused_and_harms_no_other_call(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = call("--csv").stdout
    someone = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: someone)
    with pytest.raises(SetupError, match=f"and this is user {someone}: score all"):
        check_shared(ScoreCache(root=cache, limit=None))
    assert call("--csv").stdout == alone

    def refuse(*_: object, **__: object) -> bool:
        raise PermissionError

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert not ScoreCache(root=cache).may_know(Key(qrels=Digest(""), order=None, code=""), 1)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"no scores can be stored in .*file/in: Not a directory"):
        check_shared(ScoreCache(root=tmp_path / "file" / "in", limit=None))


def test_a_folder_that_was_named_is_never_pruned(cache: Path) -> None:
    part("1/1")
    named = ScoreCache(root=cache, limit=None)
    records = sorted(cache.glob("scores-1/*/*/*"))
    named.prune()
    assert sorted(cache.glob("scores-1/*/*/*")) == records
    replace(named, limit=0).prune()
    assert not list(cache.glob("scores-1/*/*/*"))


def test_another_machine_scores_the_same_file_with_the_same_code_or_says_so(work: Work) -> None:
    path = Path("r0.run").absolute()
    status = path.stat()
    seen = status.st_size, status.st_mtime_ns
    same = score_there(work, "r0.run", str(path), seen)
    assert same.path == "r0.run"
    assert not isinstance(same, Failed)
    for elsewhere in (str(path), str(path.with_name("gone.run"))):
        other = score_there(work, "r0.run", elsewhere, (seen[0], seen[1] + 1))
        assert isinstance(other, Failed)
        assert (other.path, other.problems[0].code) == ("r0.run", "other-file")
    with pytest.raises(SetupError, match=r"a worker has other code: heldout .*; here: other;"):
        score_there(replace(work, code="other"), "r0.run", str(path), seen)
    path.write_text("nonsense\n", encoding="utf-8")
    wrong = score_there(work, "r0.run", str(path), (path.stat().st_size, path.stat().st_mtime_ns))
    assert isinstance(wrong, Failed)
    assert {problem.path for problem in wrong.problems} == {"r0.run"}


class LosesAll(Executor):
    """A cluster whose workers are all ended by one of the files."""

    def submit(self, *_: object, **__: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(BrokenExecutor("lost again and again"))
        return future


def test_a_run_that_ends_every_worker_fails_and_what_is_no_file_is_said_here() -> None:
    reading, qrels = Reading(executor=LosesAll()), load_qrels("dev.qrels")
    found = reading.score(["r0.run", "gone.run"], qrels, [parse_measure("RR@10")])
    codes = [one.problems[0].code for one in found if isinstance(one, Failed)]
    assert codes == ["worker-died", "unreadable-file"]


@pytest.fixture
def work() -> Work:
    qrels = load_qrels("dev.qrels")
    judged = prepare(qrels.judgments, [parse_measure("RR@10")])
    return Work(qrels=qrels, judged=judged, code=code_version())
