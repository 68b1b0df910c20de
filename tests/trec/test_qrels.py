"""Qrels: read, refused, formatted back."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.trec.qrels import format_qrels, parse_qrels, unscale
from heldout.trec.reading.streams import Limits

IDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8
).filter(str.isprintable)
QUERY_IDS = IDS.filter(lambda text: not text.startswith("#"))
JUDGMENTS = st.dictionaries(
    QUERY_IDS,
    st.dictionaries(IDS.filter("0".__ne__), st.integers(-(10**6), 10**6), min_size=1, max_size=4),
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
    assert {note.code for note in qrels.notes} <= {"nothing-relevant", "grade-far-above"}


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
        (b"1 0 a 1.5\n", "grade-not-a-number", 1),
        (b"1 0 a 1.\n2 0 b .\n", "grade-not-a-number", 2),
        (b"1 0 a nan\n", "grade-not-a-number", 1),
        (b"1 0 a 1e99\n", "grade-too-large", 1),
        (b"1 0 a 1\n1 0 a 1.0\n1 0 a 2.0\n", "conflicting-judgment", 3),
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


def test_whole_numbers_are_read_however_they_are_written() -> None:
    qrels = parse_qrels(b"1 0 a 50.0\n1 0 b 3\n1 0 c 2e1\n1 0 d -1.00\n", path="q")
    assert (qrels.judgments, qrels.scale) == ({"1": {"a": 50, "b": 3, "c": 20, "d": -1}}, 1)


def test_decimals_are_read_where_they_are_asked_for() -> None:
    data = b"1 0 a 0.25\n1 0 b 3\n2 0 c .5\n2 0 d -1\n2 0 e 1e-3\n2 0 f 0\n"
    qrels = parse_qrels(data, path="q", whole_for=None)
    assert qrels.scale == 1000
    assert unscale(qrels) == {
        "1": {"a": 0.25, "b": 3},
        "2": {"c": 0.5, "d": -1, "e": 0.001, "f": 0},
    }
    assert all(type(grade) is int for one in qrels.judgments.values() for grade in one.values())
    third = parse_qrels(b"1 0 a 0.3333333333333333\n", path="q", whole_for=None)
    assert (third.judgments, third.scale) == ({"1": {"a": 333_333_333_333}}, 10**12)
    with pytest.raises(InputError) as caught:
        parse_qrels(data, path="q", whole_for="P@10")
    problem = caught.value.problems[0]
    assert (problem.code, problem.line) == ("grade-not-a-number", 1)
    assert problem.expected == "a whole number, which P@10 needs"


def test_all_problems_come_at_once_up_to_the_limit() -> None:
    data = b"1 0 a x\n" * 50 + b"1 0 a\n"
    with pytest.raises(InputError) as caught:
        parse_qrels(data, path="q", limits=Limits(problems=5))
    places = [(problem.code, problem.line) for problem in caught.value.problems]
    numbers = [("grade-not-a-number", line) for line in range(1, 5)]
    assert places == [*numbers, ("wrong-columns", 51)]


@pytest.mark.parametrize("usual", [b"", b"q9 1 d 00\n"], ids=["usual lines", "odd ones"])
@pytest.mark.parametrize("iterations", [(1, 0), (1, 1), (2, 3)])
def test_grades_in_the_second_column_are_refused(usual: bytes, iterations: tuple[int, int]) -> None:
    one, other = iterations
    data = usual + b"q1 %d a 0\nq1 %d b 0\n" % (one, other)

    assert refused(data) == ["grades-swapped"]


@pytest.mark.parametrize("iteration", [b"0", b"Q0", b"0.5"])
def test_grades_that_are_all_0_are_a_note_where_no_other_column_has_them(iteration: bytes) -> None:
    qrels = parse_qrels(b"q1 %b a 0\nq2 %b b 0\n" % (iteration, iteration), path="f")

    assert [note.code for note in qrels.notes] == ["nothing-relevant"]


def test_documents_in_the_second_column_are_refused() -> None:
    assert refused(b"q1 d1 0 1\nq2 d2 Q0 0\n") == ["documents-swapped"]
    assert parse_qrels(b"q1 0 0 1\nq2 0 7 0\n", path="f").notes == ()


def test_rounds_of_judging_beside_real_grades_are_no_matter() -> None:
    assert parse_qrels(b"q1 1 a 0\nq1 2 b 1\nq1 3 c 0\n", path="f").notes == ()


def test_grades_below_0_alone_are_a_note() -> None:
    qrels = parse_qrels(b"q1 1 a -1\nq1 2 b -2\n", path="f")
    assert [note.found for note in qrels.notes] == ["no grade above -1"]


@pytest.mark.parametrize("grade", [b"999999999999", b"20261122", b"-1000001"])
def test_a_grade_of_no_scale_is_refused(grade: bytes) -> None:
    assert refused(b"q1 0 a 1\nq1 0 b %b\n" % grade) == ["grade-too-large"]


def test_a_grade_far_above_the_others_is_a_note() -> None:
    qrels = parse_qrels(b"q1 0 a 1\nq1 0 b 3\nq1 0 c 31\n", path="f")
    assert [note.found for note in qrels.notes] == ["grade 31, and 3 is the next highest"]

    assert parse_qrels(b"q1 0 a 1\nq1 0 b 10\nq1 0 c 100\n", path="f").notes == ()
    assert parse_qrels(b"q1 0 a 1000\nq1 0 b 0\n", path="f").notes == ()


def test_a_run_is_told_once_and_not_line_by_line() -> None:
    with pytest.raises(InputError) as error:
        parse_qrels(b"q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\n" * 40, path="f")

    (problem,) = error.value.problems
    assert (problem.code, problem.line) == ("looks-like-a-run", 1)
    assert error.value.counts == {}


def test_a_line_too_many_columns_long_is_no_run() -> None:
    assert refused(b"q1 0 a 1\nq1 Q0 b 2 1.5 t\n") == ["wrong-columns"]


def refused(data: bytes) -> list[str]:
    with pytest.raises(InputError) as error:
        parse_qrels(data, path="f")
    return [problem.code for problem in error.value.problems]
