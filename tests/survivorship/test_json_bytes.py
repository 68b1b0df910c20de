"""Bytes that JSON may not have, wherever a file is cut into pieces."""

import json
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qna_files import as_columns, query

from heldout.errors import InputError, Problem
from heldout.survivorship.reading.qna import (
    CARRIED,
    find_bad_utf8,
    find_half_pair,
    read_qna_columns,
)

MANY = [query(n, [0, 1]) for n in range(12_000)]


def refused(data: bytes) -> Problem:
    with pytest.raises(InputError) as caught:
        read_qna_columns(BytesIO(data), path="train.json")
    (problem,) = caught.value.problems
    return problem


def first_found(text: bytes, sizes: list[int]) -> list[int]:
    """Halves of pairs found piece by piece, as `ColumnReader` does, by their place in the text."""
    found, carried, end = [], b"", 0
    for size in (*sizes, len(text)):
        piece = text[end : end + size]
        end += len(piece)
        carried = carried[-CARRIED:] + piece
        at = find_half_pair(carried, ended=end == len(text))
        if at is not None:
            found.append(end - len(carried) + at)
    return found


@given(
    parts=st.lists(st.sampled_from(["\\ud83d\\ude00", "\\\\ud800", "x", "\\\\", "é", "\\n"])),
    sizes=st.lists(st.integers(1, 9)),
    half=st.booleans(),
)
def test_a_half_pair_is_found_however_the_text_is_cut(
    parts: list[str], sizes: list[int], *, half: bool
) -> None:
    before = f'"{"".join(parts)}'
    text = (before + ("\\uD8aF" if half else "") + 'z"').encode()
    found = first_found(text, sizes)

    assert set(found) == ({len(before.encode())} if half else set())


@given(text=st.text(min_size=1), at=st.integers(0, 99), skip=st.integers(0, 3))
def test_a_byte_that_is_no_utf8_is_found_where_it_stands(text: str, at: int, skip: int) -> None:
    before = text[: at % len(text)].encode()
    assert find_bad_utf8(text.encode()[skip:], ended=True) is None
    assert find_bad_utf8(before + b"\xff" + text[at % len(text) :].encode(), ended=False) == len(
        before
    )


def test_a_character_cut_at_the_end_of_a_piece_goes_on_and_at_the_end_of_a_file_does_not() -> None:
    assert find_bad_utf8("aé".encode()[:-1], ended=False) is None
    assert find_bad_utf8("aé".encode()[:-1], ended=True) == 1
    assert find_bad_utf8("é".encode()[1:] + b"a", ended=True) is None


def test_a_file_in_latin1_is_told_by_its_first_wrong_byte() -> None:
    text = json.dumps(as_columns(MANY))
    at = text.index("what is 6000")
    data = (text[:at] + "é" + text[at:]).encode("latin-1")
    problem = refused(data)

    assert problem.code == "broken-json"
    assert problem.found == f"byte 0xe9, which is no UTF-8, at byte {at:,}"


@pytest.mark.parametrize("half", [r"\ud800", r"\ud800\u0041"])
def test_half_of_a_surrogate_pair_is_refused_as_in_json_lines(half: str) -> None:
    text = json.dumps(as_columns(MANY[:3]))
    at = text.index("what is 1")
    problem = refused((text[:at] + half + text[at:]).encode())

    assert problem.code == "broken-json"
    assert f"half of a surrogate pair at byte {at:,}" in problem.found
