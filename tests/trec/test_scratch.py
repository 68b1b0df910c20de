"""Where there is no room for temporary files, the run that needs them is refused, and no other."""

import gzip
import io
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from naive_runs import SCANNERS, scan_by

from heldout.scoring.evaluate import prepare
from heldout.scoring.measures import parse_measure
from heldout.scoring.score import Failed, Scored, Work, score_run
from heldout.trec import runs
from heldout.trec import runs as gathering
from heldout.trec.qrels import parse_qrels
from heldout.trec.reading import sources
from heldout.trec.runs import Gathered
from heldout.trec.scans import Scan

QUERIES, DEPTH = 100, 200
APART = b"".join(
    b"q%d\tdocument%d\t%d\n" % (query, rank, rank)
    for rank in range(1, DEPTH + 1)
    for query in range(QUERIES)
)
TOGETHER = b"".join(b"q%d\tdocument1\t1\n" % query for query in range(QUERIES))


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file can be written to beyond so many bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class Pipe(io.RawIOBase):
    """A source that cannot be read again."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self.inner.read(size)


def scan(source: io.BytesIO | Pipe, scanner: str) -> Scan:
    return scan_by(scanner, source, path="run", order="msmarco")


def refusal(found: Scan) -> tuple[str, str, str]:
    (problem,) = found.problems
    assert not found.ok
    return problem.code, problem.path, problem.found


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly anything is kept in memory, by the database neither."""
    monkeypatch.setattr(runs, "Gathered", partial(Gathered, 1 << 14))
    monkeypatch.setattr(gathering, "_CACHE_KIB", 16)


@pytest.mark.usefixtures("spilling")
@pytest.mark.parametrize("room", [0, 1 << 14, 1 << 16, 1 << 18])
def test_rows_that_stand_apart_and_find_no_room(room: int) -> None:
    """The database fails where it is made, in the middle, or where rows are found again."""
    for scanner in SCANNERS:
        with files_of_at_most(room):
            found = scan(io.BytesIO(APART), scanner)
        code, path, what = refusal(found)
        assert (code, path) == ("no-scratch", "run")
        assert what.startswith("no room for a temporary file: ")
    assert scan(io.BytesIO(APART), scanner).ok


def test_a_pipe_that_finds_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be stored is not taken for the end."""
    monkeypatch.setattr(sources, "_IN_MEMORY", 1 << 12)
    packed = gzip.compress(TOGETHER, 0) + bytes(1 << 20)
    for data in (APART * 2, packed):
        for scanner in SCANNERS:
            with files_of_at_most(1 << 13):
                found = scan(Pipe(data), scanner)
            code, path, _ = refusal(found)
            assert (code, path) == ("no-scratch", "run")


@pytest.mark.usefixtures("spilling")
def test_others_are_scored_where_one_finds_no_room(tmp_path: Path) -> None:
    (tmp_path / "apart.run").write_bytes(APART)
    (tmp_path / "together.run").write_bytes(TOGETHER)
    qrels = parse_qrels(b"q1 0 document1 1\n", path="qrels")
    measure = parse_measure("RR@10")
    work = Work(qrels=qrels, judged=prepare(qrels.judgments, [measure]))
    with files_of_at_most(1 << 14):
        apart, together = (
            score_run(work, str(tmp_path / f"{name}.run")) for name in ("apart", "together")
        )
    assert isinstance(apart, Failed)
    assert [problem.code for problem in apart.problems] == ["no-scratch"]
    assert isinstance(together, Scored)
    assert together.evaluation.scores[measure].mean == 1.0
