"""The file of a run that is being made: kills, torn lines, and files that are something else."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_task import small_task

from heldout.errors import InputError, StoreError
from heldout.ids import DocId, QueryId, digest_bytes
from heldout.rankers.reranking import digest_reranking, open_partial
from heldout.rankers.run import Run, Task, rank_scores

DIGEST = digest_bytes(b"settings")
ONE, OTHER = QueryId("007"), QueryId("7\n")


def first_run(task: Task) -> Run:
    documents = sorted(task.documents)
    return {
        query: rank_scores(documents, np.arange(len(documents), dtype=np.float64), 5)
        for query in task.queries
    }


def test_what_was_added_is_found_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.partial"
    scores = [1.5, -0.1, 1e-300]
    begun = open_partial(path, DIGEST)
    begun.add(ONE, scores)
    begun.add(OTHER, [])
    found = open_partial(path, DIGEST)
    assert (len(begun), len(found)) == (0, 2)
    assert list(found.find(ONE) or ()) == scores
    assert found.find(OTHER) == ()
    assert found.find(QueryId("7")) is None
    found.path.unlink()
    assert not path.exists()


@given(cut=st.integers(0, 400))
def test_a_file_torn_anywhere_goes_on_from_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("torn") / "run.partial"
    begun = open_partial(path, DIGEST)
    for number in range(5):
        begun.add(QueryId(str(number)), [number / 3])
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    found = open_partial(path, DIGEST)
    for number in range(len(found), 5):
        assert found.find(QueryId(str(number))) is None
        found.add(QueryId(str(number)), [number / 3])
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\x01\n",
        b"q1 Q0 d1 1 1.0 tag\n",
        b"no line at all",
        b'{"reranking":"other"}\n{"query":"7","scores":[1.0]}\n',
        b'{"reranking":"other","more":1}\n',
        b"[]\n",
    ],
    ids=["binary", "a run", "a text", "scores of others", "other keys", "other JSON"],
)
def test_a_file_that_is_something_else_is_not_overwritten(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.partial"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"rerank-partial .*give --fresh"):
        open_partial(path, DIGEST)
    assert path.read_bytes() == content
    assert len(open_partial(path, DIGEST, fresh=True)) == 0


@pytest.mark.parametrize("torn", [b"", b'{"query":"7","sco'], ids=["the head", "a torn line"])
def test_a_call_that_failed_before_its_first_query_blocks_no_other(
    tmp_path: Path, torn: bytes
) -> None:
    path = tmp_path / "run.partial"
    open_partial(path, digest_bytes(b"of a model that gave NaN"))
    path.write_bytes(path.read_bytes() + torn)
    open_partial(path, DIGEST).add(ONE, [1.0])
    assert len(open_partial(path, DIGEST)) == 1


def test_a_damaged_line_and_all_behind_it_are_scored_again(tmp_path: Path) -> None:
    path = tmp_path / "run.partial"
    begun = open_partial(path, DIGEST)
    begun.add(ONE, [1.0])
    with path.open("ab") as file:
        file.write(b'{"query":"8","scores":[NaN]}\n{"query":"9","scores":[1.0]}\n')
    found = open_partial(path, DIGEST)
    assert len(found) == 1
    assert len(path.read_bytes().splitlines()) == 2


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        open_partial(tmp_path, DIGEST)


def test_the_digest_depends_on_every_input() -> None:
    task = small_task()
    first = first_run(task)
    other = Task(
        documents={**task.documents, DocId("d3"): "x"}, queries=task.queries, depth=task.depth
    )
    asked = Task(documents=task.documents, queries={**task.queries, ONE: "x"}, depth=task.depth)
    turned = {query: hits[::-1] for query, hits in first.items()}
    digests = [
        digest_reranking(task, first, depth=5, scorer="a"),
        digest_reranking(task, first, depth=4, scorer="a"),
        digest_reranking(task, first, depth=5, scorer="b"),
        digest_reranking(task, {}, depth=5, scorer="a"),
        digest_reranking(other, first, depth=5, scorer="a"),
        digest_reranking(asked, first, depth=5, scorer="a"),
        digest_reranking(task, turned, depth=5, scorer="a"),
    ]
    assert len(set(digests)) == len(digests)


KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from heldout.ids import DocId, QueryId, digest_bytes
from heldout.rankers.reranking import open_partial
from heldout.rankers.reranking import rerank
from heldout.rankers.run import Task, rank_scores
from heldout.rankers.run import write_run

place, deadly = Path(sys.argv[1]), int(sys.argv[2])
documents = {DocId(f"d{n}"): str(n) for n in range(9)}
task = Task(documents=documents, queries={QueryId(f"q{n}"): "" for n in range(6)}, depth=9)
first = {query: rank_scores(sorted(documents), np.arange(9.0), 9) for query in task.queries}
calls = 0

def score(pairs):
    global calls
    calls += 1
    if calls == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.array([float(np.sin(int(pair.document))) for pair in pairs])

partial = open_partial(place / "run.partial", digest_bytes(b"these settings"))
run = rerank(task, first, score, depth=5, finished=partial)
write_run(run, place / "run", form="trec", tag="x")
partial.path.unlink()
print(calls)
"""


def test_a_killed_run_goes_on_and_gives_the_same_bytes(tmp_path: Path) -> None:
    def play(folder: Path, deadly: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", KILLED, str(folder), str(deadly)]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=dict(os.environ)
        )

    killed, whole = tmp_path / "killed", tmp_path / "whole"
    assert play(killed, 3).returncode == -signal.SIGKILL
    assert not (killed / "run").exists()
    assert play(killed, 3).returncode == -signal.SIGKILL
    assert play(killed, 0).stdout.split() == ["2"]
    assert play(whole, 0).stdout.split() == ["6"]
    assert (killed / "run").read_bytes() == (whole / "run").read_bytes()
    assert [path.name for path in killed.iterdir()] == ["run"]
