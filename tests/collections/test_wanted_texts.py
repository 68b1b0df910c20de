"""A few texts out of a large table of documents."""

import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.collections.tables import parse_documents
from heldout.collections.wanted_texts import find_texts, read_wanted_texts
from heldout.errors import InputError
from heldout.ids import DocId

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,3}", fullmatch=True), TEXT, min_size=1), st.data())
def test_what_is_wanted_is_what_the_whole_table_says(
    table: dict[str, str], data: st.DataObject
) -> None:
    content = "".join(f"{doc}\t{text}\n" for doc, text in table.items()).encode()
    wanted = data.draw(st.frozensets(st.sampled_from([*table, "ABSENT"])))
    found = read_wanted_texts(io.BytesIO(gzip.compress(content)), wanted, path="docs.tsv")
    whole = parse_documents(content, path="docs.tsv")
    assert found == {doc: whole[DocId(doc)] for doc in table if doc in wanted}


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b"d1\tone\nno tab here\n", "collection-row", 2),
        (b"d1\tone\nd2\ttwo\nd1\tagain\n", "collection-id", 3),
        (b"d2\t\xff\nd1\t\xff\xfe\n", "collection-encoding", 2),
    ],
)
def test_a_broken_line_is_named(content: bytes, code: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_wanted_texts(io.BytesIO(content), {"d1"}, path="docs.tsv")
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
    assert read_wanted_texts(io.BytesIO(content), {"d1", "d3"}, path="docs") == {"d1": "One a text"}


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        (b'{"_id": "d1", "text": "x"}\nd2\tx\n', "collection-row", 2),
        (b'{"name": "d1", "text": "x"}\n', "collection-row", 1),
        (b'{"_id": "d1", "text": "x"}\n{"_id": "d1", "text": "y"}\n', "collection-id", 2),
    ],
)
def test_a_broken_line_of_json_is_named(content: bytes, code: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_wanted_texts(io.BytesIO(content), {"d1"}, path="docs")
    assert [(one.code, one.line) for one in caught.value.problems] == [(code, line)]


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
    found = read_wanted_texts(io.BytesIO(table), {f"d{n}" for n in range(25)}, path="docs.tsv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found) == 25
    assert peak < 12e6
