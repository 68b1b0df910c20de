"""Run files as a first stage: the order that the file means, whatever its form."""

import gzip
import io
from zlib import crc32

import pytest
from small_task import small_task

from heldout.errors import InputError
from heldout.ids import QueryId
from heldout.rankers.methods import choose_method
from heldout.rankers.run import RunForm, format_run, read_run

FORMS: list[RunForm] = ["msmarco", "trec"]


def documents(content: bytes) -> dict[str, list[str]]:
    run = read_run(io.BytesIO(content), path="run")
    return {query: [hit.document for hit in hits] for query, hits in run.items()}


@pytest.mark.parametrize("form", FORMS)
def test_a_run_is_read_as_it_was_written(form: RunForm) -> None:
    run = choose_method("tfidf", {})(small_task())
    wanted = {query: [hit.document for hit in hits] for query, hits in run.items()}
    content = format_run(run, form=form, tag="x")
    assert documents(content) == wanted
    assert documents(gzip.compress(content)) == wanted
    scrambled = b"".join(sorted(content.splitlines(keepends=True), key=crc32))
    assert documents(scrambled) == wanted


def test_scores_decide_and_ties_go_by_id() -> None:
    content = b"# note\n7 Q0 a 1 1.0 t\n\n7 Q0 b 2 2.0 t\n007 Q0 b 1 3 t\n7 Q0 c 3 1 t\n"
    run = read_run(io.BytesIO(content), path="run")
    assert [tuple(hit) for hit in run[QueryId("7")]] == [("b", 2.0), ("c", 1.0), ("a", 1.0)]
    assert [tuple(hit) for hit in run[QueryId("007")]] == [("b", 3.0)]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"7 Q0 a 1 nan t\n", "score-nan"),
        (b"7 Q0 a 1 1 t\n7 Q0 a 2 0 t\n", "repeated-document"),
        (b"7 a b\n", "rank-not-a-number"),
        (b"", "empty"),
    ],
)
def test_a_broken_run_is_refused_as_everywhere(content: bytes, code: str) -> None:
    with pytest.raises(InputError, match=code):
        read_run(io.BytesIO(content), path="run")
