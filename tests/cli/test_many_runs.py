"""Many runs at once: the same bytes however they are read, and no file takes others with it."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from heldout.scoring import score as scoring
from heldout.scoring.evaluate import prepare
from heldout.scoring.measures import parse_measure
from heldout.scoring.score import Failed, Outcome, Scored, Work, score_run
from heldout.scoring.workers import spread
from heldout.trec.qrels import read_qrels

JUDGED = ("--qrels", "dev.qrels", "-m", "RR@10", "-m", "nDCG@10")
PATIENCE = 30


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve runs: one broken, one missing, one binary, two of the same name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELDOUT_CACHE", str(tmp_path / "cache"))
    qrels = "".join(f"q{q} 0 d{d} {(q + d) % 3}\n" for q in range(20) for d in range(0, 30, 3))
    Path("dev.qrels").write_text(qrels, encoding="utf-8")
    Path("other").mkdir()
    for number in range(8):
        Path(f"r{number}.run").write_text(run_text(number), encoding="utf-8")
    Path("other/r0.run").write_text(run_text(9), encoding="utf-8")
    Path("broken.run").write_text(run_text(1) + "q1 Q0 d1 1 1 t\n", encoding="utf-8")
    Path("binary.run").write_bytes(bytes(range(256)) * 40)
    return tmp_path


RUNS = (
    *("r0.run", "broken.run", "r1.run", "missing.run", "r2.run", "binary.run"),
    *("other/r0.run", "r3.run", "r4.run", "r5.run", "r6.run", "r7.run"),
)


def run_text(number: int) -> str:
    documents = [(place * (2 * number + 1)) % 31 for place in range(31)]
    return "".join(
        f"q{query} Q0 d{document} {place} {100 - place} t\n"
        for query in range(20)
        for place, document in enumerate(documents, start=1)
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "heldout", "evaluate", *arguments, *JUDGED]


def evaluate(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(*arguments), capture_output=True, check=False)


@pytest.mark.usefixtures("files")
def test_one_process_and_two_and_the_store_print_the_same_bytes() -> None:
    form = ("--json", "--per-query")
    one = evaluate(*RUNS, *form, "--jobs", "1", "--no-cache")
    two = evaluate(*RUNS, *form, "--jobs", "2")
    stored = evaluate(*RUNS, *form)
    assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr)
    assert (one.stdout, one.stderr) == (stored.stdout, stored.stderr)
    assert one.returncode == 1
    found = json.loads(one.stdout)
    good = [path for path in RUNS if path not in {"broken.run", "missing.run", "binary.run"}]
    assert [run["path"] for run in found["runs"]] == good
    assert [(run["path"], run["problems"][0]["code"]) for run in found["failed"]] == [
        ("broken.run", "repeated-document"),
        ("missing.run", "unreadable-file"),
        ("binary.run", "nul-byte"),
    ]


@pytest.mark.night
@pytest.mark.usefixtures("files")
def test_the_store_is_used_and_can_be_left_alone(files: Path) -> None:
    evaluate("r0.run", "--no-cache")
    assert not (files / "cache").exists()
    evaluate("r0.run", "broken.run")
    (record,) = (path for path in (files / "cache").rglob("*") if path.is_file())
    written = record.stat().st_mtime_ns
    inode = record.stat().st_ino
    evaluate("r0.run")
    assert record.stat().st_ino == inode
    assert record.stat().st_mtime_ns > written
    more = [*command("r0.run"), "-m", "AP"]
    first = subprocess.run(more, capture_output=True, check=True).stdout
    assert record.stat().st_ino != inode
    fresh = subprocess.run([*more, "--no-cache"], capture_output=True, check=True).stdout
    assert first == fresh


def work() -> Work:
    with Path("dev.qrels").open("rb") as source:
        qrels = read_qrels(source, path="dev.qrels")
    return Work(qrels=qrels, judged=prepare(qrels.judgments, [parse_measure("RR@10")]))


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("lanes", [1, 3, 40])
def test_any_executor_will_do(lanes: int) -> None:
    score = partial(score_run, work())
    done: list[None] = []
    outcomes = spread(
        RUNS,
        score,
        died=scoring.run_died,
        open_executor=lambda: ThreadPoolExecutor(1),
        lanes=lanes,
        done=lambda: done.append(None),
    )
    assert [outcome.path for outcome in outcomes] == list(RUNS)
    assert len(done) == len(RUNS)
    assert [isinstance(outcome, Scored) for outcome in outcomes] == [
        isinstance(score(path), Scored) for path in RUNS
    ]


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("error", "found"),
    [
        (OSError(errno.EIO, "Input/output error"), "Input/output error while it was read"),
        (MemoryError(), "no memory left while it was read"),
    ],
)
def test_a_file_that_breaks_off_has_failed(
    monkeypatch: pytest.MonkeyPatch, error: Exception, found: str
) -> None:
    def read(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(scoring, "scan_file", read)
    outcome = score_run(work(), "r0.run")
    assert isinstance(outcome, Failed)
    assert [(p.code, p.found) for p in outcome.problems] == [("unreadable-file", found)]


@pytest.mark.usefixtures("files")
def test_a_bug_is_no_failed_file() -> None:
    def score(path: str) -> Outcome:
        if path == "r2.run":
            raise ZeroDivisionError(path)
        return Failed(path=path, problems=(), counts={})

    with pytest.raises(ZeroDivisionError, match=r"r2\.run"):
        spread(
            RUNS,
            score,
            died=scoring.run_died,
            open_executor=lambda: ThreadPoolExecutor(1),
            lanes=2,
            done=lambda: None,
        )


def readers(path: Path) -> list[int]:
    """Processes that have this file open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = [handle.readlink() for handle in (process / "fd").iterdir()]
        except OSError:  # it ended, or closed a file, meanwhile
            continue
        if path in held and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


def members(session: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, owner = status.read_text("utf-8").rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == session and state != "Z":
            found.append(int(status.parts[2]))
    return found


def wait_for(what: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextmanager
def reading(*pipes: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`heldout evaluate` on pipes into which nobody writes yet, and on good runs."""
    for pipe in pipes:
        os.mkfifo(pipe)
    arguments = command("r0.run", *map(str, pipes), "r1.run", "r2.run", "--jobs", "2")
    # What ignores interrupts hands that on, as a shell does to what it starts in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    writers = [os.open(pipe, os.O_RDWR) for pipe in pipes]  # so that to open one is not to wait
    try:
        for pipe in pipes:
            wait_for(partial(readers, pipe))
        yield process
    finally:
        for writer in writers:
            os.close(writer)
        for left in members(process.pid):
            os.kill(left, signal.SIGKILL)
        process.communicate()


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
def test_a_worker_that_is_killed_is_named_and_the_others_come_out(files: Path) -> None:
    pipe = files / "pipe.run"
    with reading(pipe) as process:
        (worker,) = readers(pipe)
        assert worker != process.pid
        os.kill(worker, signal.SIGKILL)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert [line.split()[0] for line in out.decode().splitlines()[1:4]] == ["r0", "r1", "r2"]
    assert f"error  worker-died  {pipe}\n" in err.decode()
    assert err.decode().endswith(f"1 of 4 files not scored:\n          {pipe}: 1 problem\n")
    assert b"Traceback" not in err


@linux
@pytest.mark.parametrize("whole_group", [True, pytest.param(False, marks=pytest.mark.night)])
def test_an_interrupt_leaves_no_process_behind(files: Path, *, whole_group: bool) -> None:
    with reading(files / "one.run", files / "two.run") as process:
        send = os.killpg if whole_group else os.kill
        send(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        wait_for(lambda: not members(process.pid))
    assert process.returncode == 1
    assert err.decode().split() == ["Aborted!"]


@pytest.mark.night
@linux
def test_workers_end_with_a_parent_that_is_killed(files: Path) -> None:
    with reading(files / "one.run", files / "two.run") as process:
        process.kill()
        process.wait(timeout=PATIENCE)
        wait_for(lambda: not members(process.pid))


@linux
@pytest.mark.usefixtures("files")
def test_a_person_sees_progress_and_what_was_stored() -> None:
    evaluate("r0.run")
    person, program = os.openpty()
    process = subprocess.Popen(
        command("r0.run", "r1.run", "--jobs", "2"), stdout=subprocess.PIPE, stderr=program
    )
    os.close(program)
    seen = bytearray()
    try:
        while some := os.read(person, 4096):
            seen += some
    except OSError:  # the other end is closed
        os.close(person)
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert b"reading runs" in seen
    assert b"stored    1 of 2 runs as stored" in seen
    assert b"\x1b" not in out
