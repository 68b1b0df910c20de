"""MS MARCO QnA: what was shown and selected, and files that are broken anywhere."""

import gzip
import json
from collections.abc import Callable, Mapping
from io import BytesIO
from re import findall
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qna_files import COLUMNS, as_columns, pack, query

from heldout.errors import InputError
from heldout.survivorship.annotations import Annotations
from heldout.survivorship.reading.passages import passage_id
from heldout.survivorship.reading.qna import read_qna

TWO = [query(19699, [0, 1, 0]), query(7, [0, 0])]

_MARKS = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4), min_size=1, max_size=6)


def columns(value: object, *, texts: bool = True, compressed: bool = False) -> Annotations:
    data = value if isinstance(value, bytes) else pack(value, compressed=compressed)
    return read_qna(BytesIO(data), path="train.json", texts=texts)


def refused(read: Callable[[], Annotations]) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        read()
    assert all(problem.found and problem.expected for problem in caught.value.problems)
    return [(problem.code, problem.location) for problem in caught.value.problems]


def test_places_types_and_texts_come_out() -> None:
    found = columns(as_columns(TWO))
    first, second = found.records
    ids = [passage_id(f"passage {place} of 19699") for place in (1, 2, 3)]
    assert first.query == "19699"
    assert first.text == "what is 19699"
    assert first.kind == "DESCRIPTION"
    assert first.shown == tuple(ids)
    assert first.selected == {ids[1]: 2}
    assert first.texts[ids[0]] == "passage 1 of 19699"
    assert second.first is None
    assert (found.depth, found.open_ended, found.survived, found.discarded) == (3, False, 1, 1)
    assert found.notes == ()


@pytest.mark.slow
@given(marks=_MARKS, order=st.permutations(COLUMNS), compressed=st.booleans())
def test_the_order_of_columns_and_rows_does_not_matter(
    marks: list[list[int]], order: list[str], *, compressed: bool
) -> None:
    queries = [query(number, selected) for number, selected in enumerate(marks)]
    table = as_columns(queries, order)
    for column in order[1:]:
        table[column] = dict(reversed(table[column].items()))
    found = columns(table, compressed=compressed)
    other = columns(as_columns(queries))
    assert {one.query: one for one in found.records} == {one.query: one for one in other.records}
    assert (found.depth, found.survived) == (other.depth, other.survived)


def test_without_texts_nothing_but_ids_places_and_types_is_kept() -> None:
    found = columns(as_columns(TWO), texts=False)
    assert [one.text for one in found.records] == [None, None]
    assert all(not one.texts for one in found.records)
    assert [one.shown for one in found.records] == [
        one.shown for one in columns(as_columns(TWO)).records
    ]


def test_a_text_shown_twice_keeps_the_place_at_which_it_was_selected() -> None:
    found = columns(as_columns([query(1, [0, 0, 1], texts=["a", "b", "b"])]))
    (record,) = found.records
    assert record.shown == (passage_id("a"), passage_id("b"))
    assert record.selected == {passage_id("b"): 3}
    assert [note.code for note in found.notes] == ["repeated-passage"]
    assert found.depth == 3


def test_answers_without_a_selected_passage_and_the_reverse_are_told_apart() -> None:
    answered = {**query(1, [0, 0]), "answers": ["forty"]}
    unanswered = {**query(2, [1, 0]), "answers": ["No Answer Present."]}
    empty = {**query(3, [0, 0]), "answers": [""]}
    found = columns(as_columns([answered, unanswered, empty]))
    assert (found.survived, found.discarded) == (1, 2)
    assert [(note.code, note.found[:7]) for note in found.notes] == [
        ("answer-not-selected", "1 query"),
        ("selected-without-answer", "1 query"),
    ]
    assert all(note.severity == "note" for note in found.notes)


BAD_VALUES: Mapping[str, tuple[str, Any]] = {
    "is_selected 2": ("passages", [{"is_selected": 2, "passage_text": "a"}]),
    "is_selected true": ("passages", [{"is_selected": True, "passage_text": "a"}]),
    "is_selected null": ("passages", [{"is_selected": None, "passage_text": "a"}]),
    "no is_selected": ("passages", [{"passage_text": "a"}]),
    "text a number": ("passages", [{"is_selected": 0, "passage_text": 3}]),
    "passages an object": ("passages", {"0": {"is_selected": 0, "passage_text": "a"}}),
    "query a list": ("query", ["what"]),
    "id a fraction": ("query_id", 1.5),
    "answers a text": ("answers", "yes"),
    "type a number": ("query_type", 3),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_a_value_of_another_kind_is_named_with_its_place(case: str) -> None:
    column, value = BAD_VALUES[case]
    queries = [TWO[0], {**TWO[1], column: value}]
    assert refused(lambda: columns(as_columns(queries))) == [
        ("bad-annotation", f"train.json:{column}.1")
    ]


def test_a_query_that_was_shown_nothing_is_named() -> None:
    queries = [TWO[0], {**TWO[1], "passages": []}]
    assert refused(lambda: columns(as_columns(queries))) == [
        ("no-passages", "train.json:passages.1")
    ]


@pytest.mark.parametrize(
    ("query_id", "code"), [(19699, "repeated-query"), ("a b", "no-query-id"), ("", "no-query-id")]
)
def test_an_id_twice_or_none_is_named(query_id: object, code: str) -> None:
    queries = [TWO[0], {**TWO[1], "query_id": query_id}]
    assert refused(lambda: columns(as_columns(queries))) == [(code, "train.json:query_id.1")]


@pytest.mark.parametrize("column", COLUMNS[:-1])
def test_a_missing_column_is_named(column: str) -> None:
    rest = [name for name in COLUMNS if name != column]
    with pytest.raises(InputError) as caught:
        columns(as_columns(TWO, rest))
    (problem,) = caught.value.problems
    assert (problem.code, problem.found) == ("missing-column", f"no {column}")


def test_columns_of_different_lengths_are_named_wherever_the_key_is_missing() -> None:
    short = as_columns(TWO)
    del short["query"]["1"]
    assert refused(lambda: columns(short)) == [("column-lengths", "train.json:query.1")]
    del short["answers"]["1"], short["query_id"]["1"]
    assert refused(lambda: columns(short)) == [
        ("column-lengths", f"train.json:{column}.1") for column in ("query_id", "query", "answers")
    ]


def test_a_key_twice_in_a_column_is_named() -> None:
    text = json.dumps(as_columns(TWO)).replace('"query": {"0"', '"query": {"0": "x", "0"')
    assert refused(lambda: columns(text.encode())) == [("repeated-record", "train.json:query.0")]


@given(cut=st.integers(1, 900))
def test_a_file_cut_short_anywhere_is_refused_and_never_half_read(cut: int) -> None:
    whole = pack(as_columns(TWO))
    ((code, _),) = refused(lambda: columns(whole[: -(cut % (len(whole) - 1)) - 1]))
    assert code == "broken-json"


def test_broken_json_in_the_middle_is_named_with_the_value_at_which_it_breaks() -> None:
    text = pack(as_columns([query(n, [0, 1]) for n in range(12_000)]))
    middle = text.index(b'"6000": [{')
    broken = text[:middle] + b'"6000": [}' + text[middle + 10 :]
    with pytest.raises(InputError) as caught:
        columns(broken, texts=False)
    (problem,) = caught.value.problems
    assert (problem.code, problem.path) == ("broken-json", "train.json:passages.6000")
    begin, end = (int(word.replace(",", "")) for word in findall("[0-9,]{7,}", problem.found))
    assert begin <= middle <= end
    assert "unallowed token" in problem.found


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "broken-json"),
        (b"  \n", "broken-json"),
        (b"[1]", "not-columns"),
        (b'{"query": [1]}', "not-columns"),
        (b'{"query": {"0": NaN}}', "broken-json"),
        (b'{"query": {"0": "\xff"}}', "broken-json"),
        (b'{"query": {"0": "\x00"}}', "broken-json"),
        (b'{"query_id": {"0": 1e999}}', "broken-json"),
        (b'{"query_id": {"0": 99999999999999999999}}', "broken-json"),
        (b'{"query": {"0": "a"}} trailing', "broken-json"),
        (b'{"query": {"0": "a"}}{"query": {"0": "a"}}', "broken-json"),
        (b'{"query": {}}', "missing-column"),
        (b"{}", "missing-column"),
        (b'{"a": {"0": ' + b"[" * 100_000, "not-columns"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_what_is_no_table_of_columns_is_refused(data: bytes, code: str) -> None:
    found = refused(lambda: columns(data))
    assert {one for one, _ in found} == {code}


def test_an_integer_of_many_digits_does_not_crash_the_parser() -> None:
    data = b'{"query_id": {"0": ' + b"9" * 5_000 + b"}}"
    assert refused(lambda: columns(data)) == [("broken-json", "train.json:query_id.0")]


def test_a_value_of_100_mb_is_refused_before_it_is_whole() -> None:
    packed = gzip.compress(
        b'{"query": {"0": "a", "1": "' + bytes(100 << 20).replace(b"\0", b"x"), 1
    )
    assert refused(lambda: columns(packed)) == [("line-too-long", "train.json:query.1")]


def test_a_byte_order_mark_is_skipped_and_told() -> None:
    mark = b"\xef\xbb\xbf"
    found = columns(mark + pack(as_columns(TWO)))
    assert found.survived == 1
    assert [note.code for note in found.notes] == ["byte-order-mark"]


def test_an_archive_cut_short_is_refused() -> None:
    packed = pack(as_columns([query(n, [0, 1]) for n in range(3_000)]), compressed=True)
    assert refused(lambda: columns(packed[:-100]))[0][0] == "truncated-archive"
