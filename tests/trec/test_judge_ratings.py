"""Labels of several judges in one file."""

import gzip
from io import BytesIO

import pytest

from heldout.errors import InputError
from heldout.trec.judgments import read_ratings


def read(text: bytes) -> object:
    return read_ratings(BytesIO(text), path="labels")


def test_labels_are_found_by_judge_query_and_document() -> None:
    rows = b"q1 ann d1 2\nq1\tbob\td1\t0\n\nq2 ann d1 -1\nq1 ann d1 2\n"
    wanted = {"ann": {"q1": {"d1": 2}, "q2": {"d1": -1}}, "bob": {"q1": {"d1": 0}}}

    assert read(rows) == wanted
    assert read(gzip.compress(rows)) == wanted
    assert read(b"q1 ann d1 50.0\n") == {"ann": {"q1": {"d1": 50}}}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (b"q1 ann d1 2\nq1 ann d1\n", "wrong-columns", 2),
        (b"q1 ann d1 no_input\n", "grade-not-a-number", 1),
        (b"q1 ann d1 2.5\n", "grade-not-a-number", 1),
        (b"q1 ann d1 2\nq1 bob d1 1\nq1 ann d1 1\n", "conflicting-judgment", 3),
        (b"q1 ann d1 \xff\n", "bad-utf8", 1),
        (b"\n", "empty-file", None),
        (b"", "empty-file", None),
    ],
)
def test_what_is_no_label_is_told_with_its_line(text: bytes, code: str, line: int | None) -> None:
    with pytest.raises(InputError) as caught:
        read(text)

    assert [(one.code, one.line) for one in caught.value.problems] == [(code, line)]
