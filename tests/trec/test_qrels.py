"""Qrels: read, refused, formatted back."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.trec.qrels import format_qrels, parse_qrels
from heldout.trec.reading.streams import Limits

IDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8
).filter(str.isprintable)
QUERY_IDS = IDS.filter(lambda text: not text.startswith("#"))
JUDGMENTS = st.dictionaries(
    QUERY_IDS,
    st.dictionaries(IDS, st.integers(-(10**9), 10**9), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)


@given(JUDGMENTS)
def test_round_trip(judgments: dict[str, dict[str, int]]) -> None:
    data = format_qrels(judgments)
    qrels = parse_qrels(data, path="q")
    assert {query: dict(grades) for query, grades in qrels.judgments.items()} == judgments
    assert list(qrels.judgments) == list(judgments)
    assert qrels.digest == hashlib.sha256(data).hexdigest()
    assert qrels.notes == ()


def test_blanks_tabs_and_any_second_column() -> None:
    data = b"1 0.5  010vptx3 2\n1\tQ0\ta\t-1\r\n 2 0 007 0"
    assert parse_qrels(data, path="q").judgments == {"1": {"010vptx3": 2, "a": -1}, "2": {"007": 0}}


def test_ids_are_text() -> None:
    qrels = parse_qrels(b"007 0 01 1\n7 0 1 0\n", path="q")
    assert qrels.judgments == {"007": {"01": 1}, "7": {"1": 0}}


def test_a_judgment_repeated_with_the_same_grade_is_a_note() -> None:
    qrels = parse_qrels(b"1 0 a 1\n1 0 a 1\n1 0 a 1\n", path="q")
    assert qrels.judgments == {"1": {"a": 1}}
    assert [(note.code, note.line) for note in qrels.notes] == [("repeated-judgment", 2)]


@pytest.mark.parametrize("usual", [b"", b"q9 0 d -1\n"])
def test_a_label_that_a_system_made_counts_and_is_told(usual: bytes) -> None:
    qrels = parse_qrels(usual + b"q1 0 pseudo 1\nq2 pseudo d2 1\n", path="f")
    assert (qrels.judgments["q1"], qrels.judgments["q2"]) == ({"pseudo": 1}, {"d2": 1})
    assert [(note.code, note.line) for note in qrels.notes] == [("pseudo-label", 2 + bool(usual))]


def test_comments_and_empty_lines_are_skipped_and_told() -> None:
    qrels = parse_qrels(b"# made by hand\n1 0 a 1\n\n", path="q")
    assert qrels.judgments == {"1": {"a": 1}}
    assert [(note.code, note.line) for note in qrels.notes] == [
        ("comment-line", 1),
        ("blank-line", 3),
    ]


@pytest.mark.parametrize(
    ("data", "code", "line"),
    [
        (b"", "empty-file", None),
        (b"# nothing\n", "empty-file", None),
        (b"1 0 a 1\n1 a 1\n", "wrong-columns", 2),
        (b"1 0 a b 1\n", "wrong-columns", 1),
        (b"1 0 a 1.0\n", "grade-not-a-number", 1),
        (b"1 0 a 1_0\n", "grade-not-a-number", 1),
        (b"1 0 a +1\n", "grade-not-a-number", 1),
        ("1 0 a \uff11\n".encode(), "grade-not-a-number", 1),
        (b"1 0 a " + b"9" * 5000 + b"\n", "grade-not-a-number", 1),
        (b"1 0 a 1\n2 0 a 1\n1 0 a 0\n", "conflicting-judgment", 3),
        (b"1 0 \xff 1\n", "bad-utf8", 1),
        (b"1 0 a\x1b[2J 1\n", "control-character", 1),
        ("1 0 a\u202eb 1\n".encode(), "control-character", 1),
        (b"1 0 a\x00 1\n", "nul-byte", 1),
    ],
)
def test_refused(data: bytes, code: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        parse_qrels(data, path="q")
    problem = caught.value.problems[0]
    assert (problem.code, problem.line, problem.path) == (code, line, "q")
    assert problem.expected
    assert str(problem).isprintable()


def test_all_problems_come_at_once_up_to_the_limit() -> None:
    data = b"1 0 a x\n" * 50 + b"1 0 a\n"
    with pytest.raises(InputError) as caught:
        parse_qrels(data, path="q", limits=Limits(problems=5))
    places = [(problem.code, problem.line) for problem in caught.value.problems]
    numbers = [("grade-not-a-number", line) for line in range(1, 5)]
    assert places == [*numbers, ("wrong-columns", 51)]
