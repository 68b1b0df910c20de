"""Files of groups: of documents, of queries, and one group of queries."""

import io

import numpy as np
import pytest

from heldout.errors import InputError
from heldout.trec.groups import read_document_groups, read_facets, read_query_list
from heldout.trec.reading.streams import Limits
from heldout.trec.scanning.scanners import hash_documents


def problems_of(read: object, text: str) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as caught:
        read(io.BytesIO(text.encode()), path="f")  # type: ignore[operator]
    return [(problem.code, problem.line) for problem in caught.value.problems]


def test_a_document_in_several_groups_is_shared_by_weight() -> None:
    text = "d1\tnorth\nd2\tnorth\t3\nd2\tsouth\nd3\tnorth\nd3\tsouth\n"
    groups = read_document_groups(io.BytesIO(text.encode()), path="f")
    found = groups.profiles[groups.find(hash_documents([b"d1", b"d2", b"d3"]))]
    assert groups.names == ("north", "south")
    assert found.tolist() == [[1, 0], [0.75, 0.25], [0.5, 0.5]]
    assert groups.shares() == {"north": 0.75, "south": 0.25}


def test_the_order_of_the_rows_does_not_matter() -> None:
    rows = ["d2\tsouth\n", "d1\tnorth\n", "d2\tnorth\t3\n", "d3\tsouth\n"]
    hashes = hash_documents([b"d1", b"d2", b"d3", b"new"])
    seen = []
    for order in (rows, rows[::-1]):
        groups = read_document_groups(io.BytesIO("".join(order).encode()), path="f")
        places = groups.find(hashes)
        seen.append((groups.profiles[places[:3]].tolist(), places[3]))
    assert seen[0] == seen[1]
    assert seen[0][1] == -1


def test_a_name_of_a_group_may_have_blanks() -> None:
    groups = read_document_groups(io.BytesIO(b"d1\tLatin America\n"), path="f")
    assert groups.names == ("Latin America",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("empty-file", None)]),
        ("d1 A\n", [("wrong-columns", 1)]),
        ("d1\tA\t1\tmore\n", [("wrong-columns", 1)]),
        ("d1\t\n", [("wrong-columns", 1)]),
        ("d 1\tA\n", [("wrong-columns", 1)]),
        ("d1\tA\nd1\tA\n", [("repeated-group", 2)]),
        ("d1\tA\t0\n", [("bad-weight", 1)]),
        (
            "d1\tA\t-1\nd2\tA\tnan\nd3\tA\tinf\nd4\tA\t1e9\n",
            [("bad-weight", n) for n in (1, 2, 3, 4)],
        ),
        ("d1\tA\x1b[2J\n", [("control-character", 1)]),
    ],
)
def test_wrong_document_groups_are_told_with_their_lines(
    text: str, expected: list[tuple[str, int | None]]
) -> None:
    assert problems_of(read_document_groups, text) == expected


def test_bad_utf8_in_a_group_is_told() -> None:
    with pytest.raises(InputError) as caught:
        read_document_groups(io.BytesIO(b"d1\t\xff\n"), path="f")
    assert caught.value.problems[0].code == "bad-utf8"


def test_a_bomb_of_groups_is_refused() -> None:
    rows = "".join(f"d{i}\tgroup{i}\n" for i in range(1001))
    assert problems_of(read_document_groups, rows) == [("too-many-groups", None)]
    assert problems_of(read_facets, rows) == [("too-many-groups", None)]


def test_a_file_without_an_end_is_cut_off() -> None:
    limits = Limits(lines=10)
    with pytest.raises(InputError):
        read_document_groups(io.BytesIO(b"d\tA\n" * 100), path="f", limits=limits)


def test_a_query_may_have_several_facets() -> None:
    found = read_facets(io.BytesIO(b"q1\tshort\nq2\tlong\nq1\trare\n"), path="f")
    assert found == {"long": {"q2"}, "rare": {"q1"}, "short": {"q1"}}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [("empty-file", None)]),
        ("q1\n", [("wrong-columns", 1)]),
        ("q1\tA\tB\n", [("wrong-columns", 1)]),
        ("q1\tA\nq1\tA\n", [("repeated-group", 2)]),
    ],
)
def test_wrong_facets_are_told_with_their_lines(
    text: str, expected: list[tuple[str, int | None]]
) -> None:
    assert problems_of(read_facets, text) == expected


def test_a_list_of_queries() -> None:
    assert read_query_list(io.BytesIO(b"q1\n\n# a comment\nq2 \n"), path="f") == {"q1", "q2"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n", [("empty-file", None)]),
        ("q1 q2\n", [("wrong-columns", 1)]),
        ("q1\nq1\n", [("repeated-query", 2)]),
    ],
)
def test_wrong_lists_of_queries_are_told(text: str, expected: list[tuple[str, int | None]]) -> None:
    assert problems_of(read_query_list, text) == expected


def test_hashes_of_absent_places_find_nothing() -> None:
    groups = read_document_groups(io.BytesIO(b"d1\tA\n"), path="f")
    assert groups.find(np.zeros((2, 3), np.uint64)).tolist() == [[-1] * 3] * 2
