"""Passages known by their text: whatever their spelling, a collection gives them its ids."""

import gzip
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.ids import QueryId
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.reading.passages import (
    missing_texts,
    name_passages,
    passage_id,
    read_names,
    repair_encoding,
    seen_documents,
)

TEXTS = ["naïve “quotes” … 日本 — ok", "Ärger über 5 € und ½", "plain", "smile 😀 now"]


def read_as(text: str, encoding: str) -> str:
    """The text as a program spells it that takes UTF-8 for something else."""
    if encoding == "latin-1":
        return text.encode().decode("latin-1")
    return "".join(
        bytes([byte]).decode("cp1252", errors="ignore") or chr(byte) for byte in text.encode()
    )


def annotated(*texts: str) -> Annotations:
    ids = tuple(map(passage_id, texts))
    record = Annotation(
        query=QueryId("q1"),
        shown=ids,
        selected={ids[-1]: len(ids)},
        texts=dict(zip(ids, texts, strict=True)),
    )
    return Annotations(
        source="qna", records=(record,), depth=len(ids), open_ended=False, counts_discarded=True
    )


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
def test_wrong_spellings_are_mended_once_or_twice_wrong(text: str, encoding: str) -> None:
    wrong = read_as(text, encoding)
    assert repair_encoding(wrong) == text
    assert repair_encoding(read_as(wrong, encoding)) == text
    assert repair_encoding(f"{text} {wrong}") == f"{text} {text}"
    assert passage_id(f" {wrong}\n") == passage_id(text)


def test_right_spellings_stay_as_they_are() -> None:
    for text in (*TEXTS, "Ã", "à la carte", "Â", "é" * 50):
        assert repair_encoding(text) == text


@given(text=st.text())
def test_mending_never_fails_and_is_over_after_one_call_of_ordinary_text(text: str) -> None:
    repaired = repair_encoding(text)
    assert passage_id(text) == passage_id(repaired)
    assert len(passage_id(text)) == 16
    assert len(repaired) <= len(text)


def test_lone_surrogates_have_an_id_too() -> None:
    assert passage_id("\ud800") != passage_id("?")


def test_a_collection_names_passages_and_says_which_it_lacks() -> None:
    found = annotated("café one", "two", "three")
    rows = [f"11\t{read_as('café one', 'cp1252')}", "12\tother", "13\t two ", "14\ttwo", ""]
    table = gzip.compress("\n".join(rows).encode())
    names = read_names(BytesIO(table), seen_documents(found), path="collection.tsv")
    assert set(names.values()) == {"11", "13"}
    named = name_passages(found, names, path="collection.tsv")
    (record,) = named.records
    third = passage_id("three")
    assert record.shown == ("11", "13", third)
    assert record.selected == {third: 3}
    assert record.texts == {"11": "café one", "13": "two", third: "three"}
    (note,) = named.notes
    assert (note.code, note.severity) == ("unmatched-passage", "note")
    assert note.found == "1 passage missing of 3 that were shown"


def test_a_collection_without_any_of_the_passages_is_refused() -> None:
    found = annotated("one")
    with pytest.raises(InputError) as caught:
        name_passages(found, {}, path="collection.tsv")
    assert caught.value.problems[0].code == "no-common-document"


def test_texts_that_are_known_are_not_missing() -> None:
    found = annotated("one", "two")
    assert missing_texts(found) == frozenset()
    (record,) = found.records
    bare = replace(found, records=(replace(record, texts={}),))
    assert missing_texts(bare) == seen_documents(bare) == {passage_id("one"), passage_id("two")}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (b"no tab", "collection-row"),
        (b"\ttext", "collection-id"),
        (b"a b\ttext", "collection-id"),
        (b"a\t\xff", "collection-encoding"),
    ],
)
def test_a_bad_row_is_named_with_its_line(row: bytes, code: str) -> None:
    with pytest.raises(InputError) as caught:
        read_names(BytesIO(b"a\tone\n" + row + b"\n"), frozenset(), path="collection.tsv")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == (code, 2)
