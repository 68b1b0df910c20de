"""A collection as a folder of tables."""

from pathlib import Path

import pytest
from written_collection import write_collection

from heldout.collections.collection import Collection
from heldout.collections.tables import parse_documents, read_texts
from heldout.errors import InputError
from heldout.ids import DocId, QueryId

SMALL = Collection(
    documents={DocId("d1"): "one\tand a tab", DocId("d2"): "Zwei: größer", DocId("d3"): ""},
    queries={QueryId("007"): "who", QueryId("7"): "what"},
    qrels={QueryId("007"): {DocId("d1"): 1, DocId("d2"): 0}, QueryId("7"): {DocId("d3"): 2}},
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path / "new" / "folder")
    assert read_texts(tmp_path / "new" / "folder") == (SMALL.documents, SMALL.queries)


def test_judgments_are_trec_qrels(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    assert (tmp_path / "qrels.txt").read_text() == "007 0 d1 1\n007 0 d2 0\n7 0 d3 2\n"


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"", "collection-empty", None),
        (b"a\tx\nb\t\xff\n", "collection-encoding", 2),
        (b"a\tx\nb\n", "collection-row", 2),
        (b"a\tx\n\n", "collection-row", 2),
        (b"\tx\n", "collection-id", 1),
        (b"a b\tx\n", "collection-id", 1),
        (b"a\tx\nb\ty\na\tz\n", "collection-id", 3),
    ],
)
def test_what_is_wrong_is_said_with_its_line(content: bytes, code: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_documents(content, path="documents.tsv")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.path) == (code, line, "documents.tsv")


def test_no_more_than_twenty_problems() -> None:
    with pytest.raises(InputError) as caught:
        parse_documents(b"no tab\n" * 50, path="documents.tsv")
    assert len(caught.value.problems) == 20


def test_windows_line_ends_and_a_missing_last_one() -> None:
    assert parse_documents(b"a\tx\r\nb\ty", path="p") == {"a": "x", "b": "y"}


def test_queries_are_read_as_any_query_file(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "queries.tsv").write_text("1\tone\n1\ttwo\n")
    with pytest.raises(InputError) as caught:
        read_texts(tmp_path)
    assert [problem.code for problem in caught.value.problems] == ["repeated-query"]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_texts(tmp_path)
    assert caught.value.problems[0].code == "collection-file"
    assert caught.value.problems[0].path.endswith("documents.tsv")
