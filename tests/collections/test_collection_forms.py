"""The forms in which a new collection comes: packed tables, BEIR's JSON lines, labels."""

import gzip
import io
import json
import lzma
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_collection import write_collection

from heldout.collections import tables
from heldout.collections.collection import Collection
from heldout.collections.source import find_texts
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
        assert tables.read_texts(tmp_path / name) == (SMALL.documents, SMALL.queries)
        labels = tables.find_labels(tmp_path / name)
        assert labels is not None
        assert tables.read_labels(labels) == SMALL.qrels


@pytest.mark.parametrize("name", ["tables", "beir"])
def test_packed_files_are_read_as_plain_ones(tmp_path: Path, name: str) -> None:
    if name == "beir":
        write_beir(tmp_path)
    else:
        write_collection(SMALL, tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert tables.read_texts(tmp_path) == (SMALL.documents, SMALL.queries)
    labels = tables.find_labels(tmp_path)
    assert labels is not None
    assert tables.read_labels(labels) == SMALL.qrels


def test_labels_may_be_missing(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "qrels.txt").unlink()
    assert tables.find_labels(tmp_path) is None


def test_two_files_of_one_kind_are_refused_and_both_named(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "qrels.tsv").write_text("7 0 d1 1\n")
    with pytest.raises(InputError) as caught:
        tables.find_labels(tmp_path)
    assert codes(caught) == [("collection-twice", None)]
    assert caught.value.problems[0].found == "qrels.txt and qrels.tsv"
    (tmp_path / "documents.tsv.gz").write_bytes(b"")
    with pytest.raises(InputError) as caught:
        tables.read_texts(tmp_path)
    assert caught.value.problems[0].found == "documents.tsv and documents.tsv.gz"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", [("empty-file", None)]),
        (b'{"_id": "a", "text": "x"}\n{"_id": "b"}\n', [("collection-row", 2)]),
        (b'{"_id": "a", "text": "x"\n', [("collection-row", 1)]),
        (b'["a", "x"]\n', [("collection-row", 1)]),
        (b"a\tx\nb\t\xff\n", [("collection-encoding", 2)]),
        (b"a\tx\nb\n", [("collection-row", 2)]),
        (b"a\tx\n\n", [("collection-row", 2)]),
        (b"\tx\n", [("collection-id", 1)]),
        (b"a b\tx\n", [("collection-id", 1)]),
        (b"a\tx\nb\ty\na\tz\n", [("collection-id", 3)]),
        (b'{"_id": "a", "text": null}\n', [("collection-row", 1)]),
        (b'{"_id": "a", "text": "\xff"}\n', [("collection-row", 1)]),
        (b'{"_id": "a", "text": "\\ud800"}\n', [("collection-row", 1)]),
        (b'{"_id": "a b", "text": "x"}\n', [("collection-id", 1)]),
        (b'{"_id": "a\\u0000", "text": "x"}\n', [("collection-id", 1)]),
        (b'{"_id": "", "text": "x"}\n', [("collection-row", 1)]),
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
        tables.read_documents(io.BytesIO(content), path="corpus.jsonl")
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
        tables.parse_beir_qrels(f"query-id\tcorpus-id\tscore\n{rows}".encode(), path="test.tsv")
    assert codes(caught) == expected


@pytest.mark.parametrize("content", [b"{}\n", b"no tab\n"])
def test_no_more_than_twenty_broken_lines_are_told(content: bytes) -> None:
    with pytest.raises(InputError) as caught:
        tables.read_documents(io.BytesIO(content * 50), path="corpus.jsonl")
    assert len(caught.value.problems) == 20


def test_judgments_of_trec_are_not_taken_for_those_of_beir() -> None:
    assert tables.is_beir_qrels(QRELS.encode())
    assert not tables.is_beir_qrels(b"007 0 d1 1\n")
    assert not tables.is_beir_qrels(b"\xff\xfe")


def test_what_is_no_collection_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        tables.read_texts(tmp_path / "nowhere")
    assert codes(caught) == [("collection-file", None)]
    (problem,) = caught.value.problems
    assert problem.found == "no such folder"
    assert problem.expected == "documents.tsv or corpus.jsonl in the folder, plain or compressed"


def test_an_archive_of_another_kind_is_refused_without_a_traceback(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "documents.tsv").write_bytes(lzma.compress(b"d1\ttext\n" * 1000))
    with pytest.raises(InputError):
        tables.read_texts(tmp_path)


@given(
    texts=st.dictionaries(
        st.from_regex(r"\A[A-Za-z0-9_.-]{1,8}\Z"), st.text(st.characters(codec="utf-8")), min_size=1
    )
)
def test_what_json_lines_say_is_read_on_one_line_each(texts: dict[str, str]) -> None:
    lines = "\n".join(json.dumps({"_id": key, "text": text}) for key, text in texts.items())
    found = tables.read_documents(io.BytesIO(lines.encode()), path="corpus.jsonl")
    assert found == {key: " ".join(text.split()) for key, text in texts.items()}
    assert list(found) == list(texts)


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), TEXT, min_size=1), st.data())
def test_what_is_wanted_is_what_the_whole_table_says(
    table: dict[str, str], data: st.DataObject
) -> None:
    content = "".join(f"{doc}\t{text}\n" for doc, text in table.items()).encode()
    wanted = data.draw(st.frozensets(st.sampled_from([*table, "ABSENT"])))
    found = tables.read_documents(io.BytesIO(gzip.compress(content)), wanted, path="docs.tsv")
    whole = tables.read_documents(io.BytesIO(content), path="docs.tsv")
    assert found == {doc: whole[doc] for doc in table if doc in wanted}


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"d1\tone\nno tab here\n", "collection-row", 2),
        (b"d1\tone\nd2\ttwo\nd1\tagain\n", "collection-id", 3),
        (b"d2\t\xff\nd1\t\xff\xfe\n", "collection-encoding", 2),
        (b'{"_id": "d1", "text": "x"}\nd2\tx\n', "collection-row", 2),
        (b'{"name": "d1", "text": "x"}\n', "collection-row", 1),
        (b'{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n', "collection-id", 2),
    ],
)
def test_a_broken_line_among_wanted_texts_is_named(content: bytes, code: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        tables.read_documents(io.BytesIO(content), {"d1"}, path="docs.tsv")
    assert [(one.code, one.line) for one in caught.value.problems] == [(code, line)]


@pytest.mark.parametrize(
    "content",
    [
        b'{"_id": "d1", "title": "One", "text": "a\\ttext"}\n\n{"_id": "d2", "text": "x"}\n',
        b'{"pid": "d2", "passage": "x"}\n{"pid": "d1", "passage": "One a text", "spans": [1]}\n',
        b'{"docid": "d1", "url": "u", "title": "One", "body": "a text"}\n{"docid": "d2"}\n',
        b'{"id": "d1", "contents": "One\\na text"}\n',
        b"<DOC>\n<DOCNO> d1 </DOCNO>\n<HEAD>One</HEAD>\n<TEXT>a\n text</TEXT>\n</DOC>\n<DOC>\n",
        b"<doc><docno>d1</docno> One <p>a text</p></doc>\n<doc><docno>d2</docno>x</doc>\n",
        b"d1\tOne a text\nd2\tx\n",
    ],
    ids=["BEIR", "MS MARCO v2", "MS MARCO v2 documents", "Anserini", "TREC", "TREC line", "table"],
)
def test_forms_are_told_apart_by_their_first_line(content: bytes) -> None:
    assert tables.read_documents(io.BytesIO(content), {"d1", "d3"}, path="docs") == {
        "d1": "One a text"
    }


def test_several_sources_of_which_the_first_counts(tmp_path: Path) -> None:
    (tmp_path / "beir").mkdir()
    (tmp_path / "beir" / "corpus.jsonl").write_text('{"_id": "d1", "text": "one"}\n')
    (tmp_path / "more.tsv").write_text("d1\tanother\nd2\t" + "long " * 100 + "\n")
    sources = [str(tmp_path / "beir"), str(tmp_path / "more.tsv")]
    found = find_texts(sources, ["d1", "d2", "d3"], longest=9)
    assert found == {"d1": "one", "d2": "long long…"}
    with pytest.raises(InputError) as caught:
        find_texts([str(tmp_path)], ["d1"])
    assert [one.code for one in caught.value.problems] == ["collection-file"]


def test_only_what_is_wanted_is_held() -> None:
    """24 MB of table, of which 100 kB are held."""
    line = b"x" * 4000
    table = gzip.compress(b"".join(b"d%d\t%s\n" % (n, line) for n in range(6000)), 1)
    tracemalloc.start()
    found = tables.read_documents(io.BytesIO(table), {f"d{n}" for n in range(25)}, path="docs.tsv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == 25
    assert peak < 12e6


def test_windows_line_ends_and_a_missing_last_one() -> None:
    content = io.BytesIO(b"a\tx\r\nb\tone\tand a tab")
    assert tables.read_documents(content, path="p") == {"a": "x", "b": "one\tand a tab"}


def test_queries_are_read_as_any_query_file(tmp_path: Path) -> None:
    write_collection(SMALL, tmp_path)
    (tmp_path / "queries.tsv").write_text("1\tone\n1\ttwo\n")
    with pytest.raises(InputError) as caught:
        tables.read_texts(tmp_path)
    assert [problem.code for problem in caught.value.problems] == ["repeated-query"]
