"""First lines that name columns, and files of other tools: the hint says what to do."""

from io import BytesIO

import pytest

from heldout.errors import InputError
from heldout.trec.qrels import read_qrels
from heldout.trec.runs import scan_run
from heldout.trec.text import LEFT_OUT, names_query

MSMARCO = "or 3 columns: query, document, rank, as for MS MARCO, in every line"


@pytest.mark.parametrize("cell", ["qid", "Query_ID", "query-id", "topic", "TopicNumber"])
def test_usual_headings_are_known(cell: str) -> None:
    assert names_query(cell)


@pytest.mark.parametrize("cell", ["", "1", "q1", "idea", "qid7", "topics"])
def test_queries_are_no_headings(cell: str) -> None:
    assert not names_query(cell)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("qid pid rank", LEFT_OUT),
        ("query-id\tcorpus-id\tscore", LEFT_OUT),
        ("query Q0 document rank", MSMARCO),
        ("q1 d1", MSMARCO),
        ("q1 Q0 d1 1 2.5 my run", "ids and run tags have no spaces"),
    ],
)
def test_the_hint_of_a_line_that_is_no_row(line: str, hint: str) -> None:
    scan = scan_run(BytesIO(f"{line}\n".encode()), path="a.run", order=None)
    (problem,) = (one for one in scan.problems if one.severity == "error")
    assert (problem.line, problem.hint) == (1, hint)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("query-id\tcorpus-id\tscore", LEFT_OUT),
        ("q1\td1\t1", "of query, document, grade make query, 0, document, grade"),
        ("q1 0 d1", "of query, document, grade make query, 0, document, grade"),
        ("q1 0 d1 1 more", ""),
    ],
)
def test_the_hint_of_a_line_that_is_no_judgment(line: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        read_qrels(BytesIO(f"q2 0 d2 1\n{line}\n".encode()), path="a.qrels")
    (problem,) = caught.value.problems
    assert (problem.line, problem.hint) == (2, hint)
