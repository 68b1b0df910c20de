"""The forms in which a new collection comes: packed tables, BEIR's JSON lines, labels."""

import gzip
import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_collection import write_collection

from heldout.collections.collection import Collection
from heldout.collections.tables import (
    find_labels,
    is_beir_qrels,
    parse_beir_qrels,
    parse_beir_texts,
    read_labels,
    read_texts,
)
from heldout.errors import InputError
from heldout.ids import DocId, QueryId

SMALL = Collection(
    documents={DocId("d1"): "Title and text", DocId("d2"): "größer", DocId("d3"): ""},
    queries={QueryId("007"): "who", QueryId("7"): "what"},
    qrels={QueryId("007"): {DocId("d1"): 1, DocId("d2"): 0}, QueryId("7"): {DocId("d3"): 2}},
)
CORPUS = (
    '{"_id": "d1", "title": "Title", "text": "and\\ntext", "metadata": {"url": "x"}}\n'
    '{"_id": "d2", "title": "", "text": "größer"}\n\n'
    '{"_id": "d3", "text": ""}\n'
)
QUERIES = '{"_id": "007", "text": "who", "metadata": {}}\n{"_id": "7", "text": "what"}'
QRELS = "query-id\tcorpus-id\tscore\n007\td1\t1\n007\td2\t0\n7\td3\t2\n"


def write_beir(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text(CORPUS)
    (folder / "queries.jsonl").write_text(QUERIES)
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(QRELS)
    (folder / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n7\td1\t1\n")


def codes(caught: pytest.ExceptionInfo[InputError]) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in caught.value.problems]


def test_a_folder_of_beir_is_read_as_the_same_collection_in_tables(tmp_path: Path) -> None:
    for name in ("beir", "tables"):
        (tmp_path / name).mkdir()
    write_beir(tmp_path / "beir")
    write_collection(SMALL, tmp_path / "tables")
    for name in ("beir", "tables"):
        assert read_texts(tmp_path / name) == (SMALL.documents, SMALL.queries)
        labels = find_labels(tmp_path / name)
        assert labels is not None
        assert read_labels(labels) == SMALL.qrels


@pytest.mark.parametrize("name", ["tables", "beir"])
def test_packed_files_are_read_as_plain_ones(tmp_path: Path, name: str) -> None:
    if name == "beir":
        write_beir(tmp_path)
    else:
        write_collection(SMALL, tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert read_texts(tmp_path) == (SMALL.documents, SMALL.queries)
    labels = find_labels(tmp_path)
    assert labels is not None
    assert read_labels(labels) == SMALL.qrels


def test_labels_may_be_missing(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "qrels.txt").unlink()
    assert find_labels(tmp_path) is None


def test_two_files_of_one_kind_are_refused_and_both_named(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "qrels.tsv").write_text("7 0 d1 1\n")
    with pytest.raises(InputError) as caught:
        find_labels(tmp_path)
    assert codes(caught) == [("collection-twice", None)]
    assert caught.value.problems[0].found == "qrels.txt and qrels.tsv"
    (tmp_path / "documents.tsv.gz").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        read_texts(tmp_path)
    assert caught.value.problems[0].found == "documents.tsv and documents.tsv.gz"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", [("collection-empty", None)]),
        (b'{"_id": "a", "text": "x"}\n{"_id": "b"}\n', [("collection-row", 2)]),
        (b'{"_id": "a", "text": "x"\n', [("collection-row", 1)]),
        (b'\n{"_id": 7, "text": "x"}\n', [("collection-row", 2)]),
        (b'["a", "x"]\n', [("collection-row", 1)]),
        (b'{"_id": "a", "text": null}\n', [("collection-row", 1)]),
        (b'{"_id": "a", "text": "\xff"}\n', [("collection-row", 1)]),
        (b'{"_id": "a", "text": "\\ud800"}\n', [("collection-row", 1)]),
        (b'{"_id": "a b", "text": "x"}\n', [("collection-id", 1)]),
        (b'{"_id": "a\\u0000", "text": "x"}\n', [("collection-id", 1)]),
        (b'{"_id": "", "text": "x"}\n', [("collection-id", 1)]),
        (b'{"_id": "a", "text": "x"}\n{"_id": "a", "text": "y"}\n', [("collection-id", 2)]),
        (
            b'{"_id": "a", "text": "x", "deep": ' + b"[" * 99_999 + b"]" * 99_999 + b"}\n",
            [("collection-row", 1)],
        ),
    ],
)
def test_a_broken_line_is_named_with_its_place(
    content: bytes, expected: list[tuple[str, int | None]]
) -> None:
    with pytest.raises(InputError) as caught:
        parse_beir_texts(content, path="corpus.jsonl")
    assert codes(caught) == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("", [("collection-empty", None)]),
        ("q\td\n", [("wrong-columns", 2)]),
        ("q\td\t1\nq\td\t1.5\n", [("grade-not-a-number", 3)]),
        ("q\td\t1\n\nq\td\t2\n", [("conflicting-judgment", 4)]),
        ("q\td\t1000001\n", [("grade-too-large", 2)]),
    ],
)
def test_broken_judgments_of_beir_are_named_with_their_place(
    rows: str, expected: list[tuple[str, int | None]]
) -> None:
    with pytest.raises(InputError) as caught:
        parse_beir_qrels(f"query-id\tcorpus-id\tscore\n{rows}".encode(), path="test.tsv")
    assert codes(caught) == expected


def test_no_more_than_twenty_broken_lines_are_told() -> None:
    with pytest.raises(InputError) as caught:
        parse_beir_texts(b"{}\n" * 50, path="corpus.jsonl")
    assert len(caught.value.problems) == 20


def test_judgments_of_trec_are_not_taken_for_those_of_beir() -> None:
    assert is_beir_qrels(QRELS.encode())
    assert not is_beir_qrels(b"007 0 d1 1\n")
    assert not is_beir_qrels(b"\xff\xfe")


def test_what_is_no_collection_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_texts(tmp_path / "nowhere")
    assert codes(caught) == [("collection-file", None)]
    (problem,) = caught.value.problems
    assert problem.found == "no such folder"
    assert problem.expected == "documents.tsv or corpus.jsonl in the folder, plain or compressed"


def test_an_archive_of_another_kind_is_refused_without_a_traceback(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "documents.tsv").write_bytes(lzma.compress(b"d1\ttext\n" * 1000))
    with pytest.raises(InputError):
        read_texts(tmp_path)


@given(
    texts=st.dictionaries(
        st.from_regex(r"\A[A-Za-z0-9_.-]{1,8}\Z"), st.text(st.characters(codec="utf-8")), min_size=1
    )
)
def test_what_json_lines_say_is_read_on_one_line_each(texts: dict[str, str]) -> None:
    lines = "\n".join(json.dumps({"_id": key, "text": text}) for key, text in texts.items())
    found = parse_beir_texts(lines.encode(), path="corpus.jsonl")
    assert found == {key: " ".join(text.split()) for key, text in texts.items()}
    assert list(found) == list(texts)
