"""Rows that stand apart: brought together right, in little memory, leaving nothing behind."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from combinations import blocks_of, see_by_all
from hypothesis import given
from hypothesis import strategies as st
from naive_runs import SCANNERS, Row, format_run, integers, judged, ranked_documents
from odd_runs import GRADES, tied_runs

from heldout.trec import runs
from heldout.trec.orders import ORDERS, Order
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import Gathered

PIECES = st.lists(
    st.tuples(
        st.sampled_from([b"1", b"01", "ü".encode(), b"7\xff", b"x" * 300]),
        st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"") + b"\n")),
    ),
    max_size=40,
)


@pytest.fixture
def spilling() -> Iterator[None]:
    """Hardly anything is kept in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "Gathered", partial(Gathered, 64))
        yield


@given(pieces=PIECES, in_memory=st.sampled_from([0, 20, 200, 1 << 20]))
def test_lines_come_back_by_query(pieces: list[tuple[bytes, list[bytes]]], in_memory: int) -> None:
    expected: dict[bytes, tuple[list[bytes], list[int]]] = {}
    number = 0
    with closing(Gathered(in_memory, path="run")) as gathered:
        for query, lines in pieces:
            numbers = range(number + 1, number + 1 + len(lines))
            number = numbers.stop + 2  # lines between that are not gathered
            gathered.add(query, b"".join(lines), numbers)
            texts, places = expected.setdefault(query, ([], []))
            texts += lines
            places += numbers
            assert len(gathered) == len(expected)
        found = list(gathered.queries())
    assert found == [(b"".join(texts), places) for texts, places in expected.values()]


def test_what_does_not_fit_is_not_kept_in_memory() -> None:
    with closing(Gathered(1000, path="run")) as gathered:
        for number in range(1, 2000):
            gathered.add(b"%d" % (number % 7), b"x" * 90 + b"\n", [number])
            assert sum(len(text) for text, _ in gathered._lines.values()) <= 1000
        assert sum(text.count(b"\n") for text, _ in gathered.queries()) == 1999


@pytest.mark.usefixtures("spilling")
@pytest.mark.parametrize("order", ORDERS)
@given(rows=tied_runs(), qrels=GRADES, size=st.integers(16, 400))
def test_spilled_runs_are_the_naive_reading(
    order: Order, rows: list[Row], qrels: dict[str, dict[str, int]], size: int
) -> None:
    with blocks_of(size):
        seen = see_by_all(format_run(rows, trec=order != "msmarco"), order, qrels=qrels)
    assert integers(seen.scan) == judged(ranked_documents(rows, order), qrels)


BAD = {
    "rank-zero": b"q5\tnew\t0\n",
    "rank-not-a-number": b"q5\tnew\tx\n",
    "wrong-columns": b"q5\tnew\n",
    "bad-utf8": b"q5\tnew\xff\t41\n",
    "control-character": b"q5\t\x1b[2J\t41\n",
    "repeated-document": b"q5\td3\t41\n",
    "rank-repeated": b"q5\tnew\t40\n",
    "blank-line": b"\n",
    "comment-line": b"# q5\tnew\t41\n",
}


@pytest.mark.usefixtures("spilling")
@pytest.mark.parametrize("code", list(BAD))
@pytest.mark.parametrize("place", [0, 399])
def test_problems_keep_their_line(code: str, place: int) -> None:
    """40 ranks of 10 queries, round robin, and one line more."""
    lines = [b"q%d\td%d\t%d\n" % (query, r, r) for r in range(1, 41) for query in range(10)]
    after = code in {"repeated-document", "rank-repeated"}
    lines.insert(400 if after else place, BAD[code])
    with blocks_of(256):
        seen = see_by_all(b"".join(lines), "msmarco", qrels={})
    assert seen.scan.counts[code] == 1
    (problem,) = (problem for problem in seen.scan.problems if problem.code == code)
    assert problem.line == (401 if after else place + 1)
    assert seen.scan.facts.lines == 401


@pytest.mark.usefixtures("spilling")
def test_a_query_that_is_too_large_is_refused_wherever_its_rows_stand() -> None:
    rows = [("q1", f"d{rank}", rank, "") for rank in range(1, 60)]
    others = [("q2", f"d{rank}", rank, "") for rank in range(1, 60)]
    apart = [row for pair in zip(rows, others, strict=True) for row in pair]
    for lines in (rows, [*rows, *others], apart, apart[::-1]):
        data = format_run(lines, trec=False)
        size = len(format_run(rows, trec=False))
        for limit, counts in ((size // 2, {"query-too-large": 1}), (size, {})):
            with blocks_of(64):
                seen = see_by_all(
                    data,
                    "msmarco",
                    qrels={},
                    limits=Limits(query_bytes=limit),
                )
            assert seen.scan.counts == counts
            assert seen.scan.ok == (not counts)


def test_a_query_within_one_block_is_refused_as_one_that_stands_apart() -> None:
    rows = [*(("1", f"d{rank}", rank, "") for rank in range(1, 9)), ("2", "d1", 1, "")]
    limits = Limits(query_bytes=20)
    for lines in (sorted(rows, key=lambda row: row[2]), rows):
        data = format_run(lines, trec=False)
        seen = see_by_all(data, "msmarco", qrels={}, limits=limits)
        assert seen.scan.counts == {"query-too-large": 1}


QUERIES = 1000
DEPTH = 700
PROGRAM = """
import json, re, sys
from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.runs import scan_run
from heldout.trec.reading.sources import open_input
from pathlib import Path

path, scanner, order = sys.argv[1:]
judged = [(query, query + 7 * place) for query in range(1000) for place in range(9)]
qrels = {f"q{query}": {} for query, _ in judged}
for query, document in judged:
    qrels[f"q{query}"][f"d{document:08d}"] = 1
with open_input(Path(path)) as source:
    found = scan_run(source, path="run", order=order, qrels=qrels, scanner=scanner)
scores = evaluate(found.rankings, qrels, [parse_measure("AP"), parse_measure("nDCG@10")]).scores
print(json.dumps({
    "scores": [score.mean.hex() for score in scores.values()],
    "tops": found.signature.documents.tobytes().hex()[:4096],
    "queries": found.facts.queries,
    # Not ru_maxrss: it begins with what the process had that started this one.
    "peak": int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]),
}))
"""


def _write(path: Path, *, apart: bool) -> Path:
    """20 MB; each query's scores fall with its ranks."""
    rng = random.Random(7)  # noqa: S311 - a test's data
    offsets = [rng.randrange(3) for _ in range(QUERIES)]
    with path.open("w") as file:
        outer, inner = (range(1, DEPTH + 1), range(QUERIES))
        pairs = (
            ((query, rank) for rank in outer for query in inner)
            if apart
            else ((query, rank) for query in inner for rank in outer)
        )
        for query, rank in pairs:
            document = query + rank * (1 + offsets[query])
            file.write(f"q{query} Q0 d{document:08d} {rank} {DEPTH - rank} t\n")
    return path


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("scanner", [name for name in SCANNERS if name != "plain"])
def test_memory_is_bounded_and_nothing_is_left(tmp_path: Path, scanner: str) -> None:
    found = {}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for apart in (True, False):
        path = _write(tmp_path / "run", apart=apart)
        assert path.stat().st_size > 19_000_000
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(path), scanner, "trec"],
            check=True,
            capture_output=True,
            text=True,
            env={"TMPDIR": str(temporary), "SQLITE_TMPDIR": str(temporary)},
        )
        found[apart] = json.loads(done.stdout)
        assert list(temporary.iterdir()) == []
    peaks = {apart: result.pop("peak") / 1024 for apart, result in found.items()}
    assert found[True] == found[False]
    assert found[True]["queries"] == QUERIES
    assert peaks[True] < 100, peaks


@pytest.mark.parametrize("data", [b"1\ta\t1\n2\ta\t1\n1\tb\t2\n", b"1\ta\t1\n2\ta\t1\n1\tb\0\t2\n"])
def test_temporary_files_are_gone_after_a_scan(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a refusal."""
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    monkeypatch.setattr(runs, "Gathered", partial(Gathered, 0))
    see_by_all(data, "msmarco", qrels={})
    assert list(tmp_path.iterdir()) == []
