"""The C of the compiled scanner, under sanitizers, against slow ways to say the same."""

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from naive_runs import integers, scan

from heldout.trec.orders import Order
from heldout.trec.reading.streams import Limits
from heldout.trec.scanning.scanners import BROKEN, hash_documents, make_scanner

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fuzz"))

from collide import absorb, colliding_ids, unabsorb
from differential import run_seeded
from inputs import make_inputs, pack
from scores import compare, make_tokens

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
CORE = FUZZ.parent / "src" / "heldout" / "trec" / "scanning"
STORED = FUZZ / "corpus" / "scan_core.bin"
compiled = pytest.mark.skipif(
    find_spec("heldout.trec.scanning._scan") is None, reason="built without a C compiler"
)
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
COMPILE = ["-std=c11", "-O1", "-DSTANDALONE", "-DMOST_SEGMENTS=9", f"-I{FUZZ}", f"-I{CORE}"]


@pytest.fixture(scope="module")
def harness(program: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """fuzz/scan_core.c as a program, with the sanitizers that the compiler has."""
    built = tmp_path_factory.mktemp("harness") / "scan_core"
    command = [program("cc"), *COMPILE, str(FUZZ / "scan_core.c"), "-lm", "-o", str(built)]
    if subprocess.run([*command, *SANITIZERS], capture_output=True, check=False).returncode:
        subprocess.run(command, check=True)
    return built


@pytest.mark.slow
def test_the_scanner_says_what_the_slow_way_says_and_stays_in_its_memory(
    harness: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    made.write_bytes(pack(make_inputs(200, np.random.default_rng(3))))
    # leaks are counted by the harness; the sanitizer's own count needs ptrace
    environ = {"ASAN_OPTIONS": "detect_leaks=0:quarantine_size_mb=16"}
    ran = subprocess.run(
        [harness, STORED, made], env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("made: 200 inputs\n")


def test_the_harness_stops_where_the_scanner_is_wrong(
    program: Callable[[str], str], tmp_path: Path
) -> None:
    """Otherwise the test above would show nothing; fuzz/mutants.py breaks it in many more ways."""
    core = (CORE / "_scan_core.h").read_text()
    broken = core.replace("!(row->key < row[-1].key)", "row->key > row[-1].key")
    assert broken != core
    (tmp_path / "_scan_core.h").write_text(broken)
    (tmp_path / "made").write_bytes(pack(make_inputs(50, np.random.default_rng(3))))
    source = [f"-I{tmp_path}", *COMPILE, str(FUZZ / "scan_core.c"), "-lm"]
    subprocess.run([program("cc"), *source, "-o", str(tmp_path / "broken")], check=True)
    ran = subprocess.run(
        [tmp_path / "broken", STORED, tmp_path / "made"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode < 0
    assert "not so: told->flags == flags" in ran.stderr


def test_scanners_say_the_same_of_files_made_to_be_odd() -> None:
    run_seeded(seed=11, runs=150)


@compiled
@pytest.mark.parametrize(
    ("tag", "code"), [(b"\xff", "bad-utf8"), ("\u200b".encode(), "control-character")]
)
def test_a_tag_that_is_no_text_is_told_of_each_query(tag: bytes, code: str) -> None:
    """What a row shares with the one before is not looked at again, but is still there."""
    run = b"a 0 x 1 1 %b\nb 0 x 1 1 %b\nc 0 x 1 1 t\n" % (tag, tag)
    assert scan(run, "trec").counts == {code: 2}


def test_a_line_with_a_control_character_is_no_row_to_any_scanner() -> None:
    run = b"a 0 x 1 1 t\nb\x01 0 x 1 1 t\na 0 y 2 .5 t\nb 0 x 1 1 t\n"
    found = scan(run, "trec", limits=Limits(queries=1))
    assert found.counts == {"control-character": 1, "too-many-queries": 1}


@compiled
@pytest.mark.parametrize("order", ["trec", "trec9"])
def test_scores_are_read_as_python_and_numpy_read_them(order: Order) -> None:
    verdict = compare(make_tokens(10_000, np.random.default_rng(5)), order)
    assert verdict.wrong == ()
    assert verdict.read > verdict.cases // 2


@pytest.mark.slow
def test_more_queries_than_one_scan_may_have() -> None:
    queries = 5000
    run = b"".join(b"q%d Q0 d 1 1 t\n" % query for query in range(queries))
    found = scan(run, "trec", qrels={"q4999": {"d": 1}, "q4096": {"d": 2}})
    assert found.facts.queries == queries
    assert [integers(found)[query][1] for query in ("q4095", "q4096", "q4999")] == [[], [2], [1]]


def test_the_hash_can_be_undone() -> None:
    rng = np.random.default_rng(1)
    states, words = rng.integers(0, 1 << 64, size=(2, 1000), dtype=np.uint64)
    assert (unabsorb(absorb(states, words)) ^ states == words).all()


def _collisions(count: int) -> tuple[bytes, list[str]]:
    """A query of ids with one hash, scores falling; the ids, and one more that is not in it."""
    ids = colliding_ids(count + 1, rng=np.random.default_rng(2))
    assert len(set(ids)) == count + 1
    assert len(set(hash_documents(ids).tolist())) == 1
    rows = [b"q Q0 %b %d %d t\n" % (id_, row + 1, -row) for row, id_ in enumerate(ids[:-1])]
    return b"".join(rows), [id_.decode() for id_ in ids]


@pytest.mark.parametrize("count", [100, 2000])
def test_ids_that_collide_are_told_apart(count: int) -> None:
    run, ids = _collisions(count)
    qrels = {"q": {ids[7]: 1, ids[count - 1]: 3, ids[count]: 2}}
    assert integers(scan(run, "trec", qrels=qrels)) == {"q": ([8, count], [1, 3], count)}


@compiled
@pytest.mark.parametrize(("count", "flag"), [(100, 0), (2000, BROKEN)])
def test_ids_that_collide_are_given_up_after_so_many_lookups(count: int, flag: int) -> None:
    """Not a matter of seconds: lookups are counted, so that the bound holds on every machine."""
    scanner = make_scanner("compiled", {}, columns=6, order="trec", depth=0)
    (segment,) = scanner.scan(_collisions(count)[0], last=True).segments
    assert segment.flags == flag
    assert segment.rows == count
