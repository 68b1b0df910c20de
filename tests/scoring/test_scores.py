"""ScoreTable: missing is not zero, and a wrong table is told by its lines."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.scoring.table import parse_scores, table_of


def test_missing_is_not_zero() -> None:
    table = table_of({"A": {"q1": 0.5, "q2": None}, "B": {"q2": 0.0, "q3": 1.0}})
    assert table.systems == ("A", "B")
    assert table.queries == ("q1", "q2", "q3")
    assert table.known.tolist() == [[True, False, False], [False, True, True]]
    assert table.values.tolist() == [[0.5, 0, 0], [0, 0, 1]]
    assert (table.mean("A"), table.mean("B"), table.complete) == (0.5, 0.5, False)


def test_a_system_without_scores_has_no_mean() -> None:
    assert table_of({"A": {"q": None}}).mean("A") is None


def test_it_cannot_be_changed() -> None:
    table = table_of({"A": {"q": 1.0}})
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 0
    with pytest.raises(ValueError, match="read-only"):
        table.known[0, 0] = False


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_only_finite_scores(score: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        table_of({"A": {"q": score}})


def test_queries_in_a_given_order() -> None:
    assert table_of({"A": {"a": 1.0, "b": 2.0}}, queries=["b", "c"]).values.tolist() == [[2, 0]]
    with pytest.raises(ValueError, match="twice"):
        table_of({"A": {"a": 1.0}}, queries=["a", "a"])


def test_the_digest_sees_everything_that_counts() -> None:
    first = table_of({"A": {"q": 0.0, "r": 1.0}})
    assert first.digest == table_of({"A": {"q": -0.0, "r": 1.0}}).digest
    others = [
        table_of({"A": {"q": None, "r": 1.0}}),
        table_of({"A": {"q": 0.0, "r": 1.5}}),
        table_of({"B": {"q": 0.0, "r": 1.0}}),
        table_of({"A": {"q": 0.0, "s": 1.0}}),
    ]
    assert len({first.digest, *(other.digest for other in others)}) == 5


NAMES = st.text(alphabet='ab7,"\n é', min_size=1).map(lambda text: "n" + text.strip() + "n")
SCORES = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@given(
    st.lists(NAMES, min_size=1, max_size=4, unique=True),
    st.lists(NAMES, min_size=1, max_size=4, unique=True),
    st.data(),
)
def test_csv_round_trip(systems: list[str], queries: list[str], data: st.DataObject) -> None:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    scores = {name: {query: data.draw(SCORES) for query in queries} for name in systems}
    lines = [",".join(["query", *map(cell, systems)])]
    for query in queries:
        row = [scores[name][query] for name in systems]
        lines.append(",".join([cell(query), *("" if x is None else repr(x) for x in row)]))
    read = parse_scores("\n".join(lines) + "\n", path="t.csv")
    assert read.digest == table_of(scores, queries=queries).digest


def test_without_a_query_column() -> None:
    table = parse_scores("A,B\n1,2\n\n3,\n", path="t.csv")
    assert table.systems == ("A", "B")
    assert table.queries == ("1", "2")
    assert table.known.tolist() == [[True, True], [True, False]]


def problems(text: str) -> list[tuple[str, int | None]]:
    with pytest.raises(InputError) as caught:
        parse_scores(text, path="t.csv")
    assert {problem.path for problem in caught.value.problems} == {"t.csv"}
    return [(problem.code, problem.line) for problem in caught.value.problems]


def test_every_problem_has_its_line() -> None:
    text = "query,A,B\nq1,1,2\nq1,1,nan\nq2,1\nq3,x,1_0\n\nq4,1,2,3\n"
    assert problems(text) == [
        ("scores-number", 3),
        ("scores-repeated-query", 3),
        ("scores-columns", 4),
        ("scores-number", 5),
        ("scores-number", 5),
        ("scores-columns", 7),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "scores-empty"),
        ("query,A\n", "scores-empty"),
        ("query\nq1\n", "scores-header"),
        ("A,A\n1,2\n", "scores-header"),
        ("A,,B\n1,2,3\n", "scores-header"),
        ('A,B\n"1,2\n', "scores-syntax"),
        ('A,B\n"1"x,2\n', "scores-syntax"),
    ],
)
def test_refused(text: str, code: str) -> None:
    assert problems(text)[0][0] == code


def test_a_file_that_is_no_table_of_scores_is_told_in_a_few_lines() -> None:
    rows = "".join(f"20200811{n},team {n},0.3\n" for n in range(100))
    with pytest.raises(InputError) as refused:
        parse_scores(f"id,team,score\n{rows}", path="board.csv")

    error = refused.value
    assert error.counts == {"scores-number": 100}
    assert [problem.line for problem in error.problems] == [*range(2, 12)]


def test_a_first_column_of_names_without_the_heading_has_a_hint() -> None:
    with pytest.raises(InputError) as refused:
        parse_scores("document,A\nt1,0.5\nt2,0.25\n", path="t.csv")

    assert {p.hint for p in refused.value.problems} == {
        "head the first column `query` if it names the queries"
    }
