"""A few texts out of a large table of documents."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.collections.collection import read_wanted_texts
from heldout.collections.tables import parse_documents
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
