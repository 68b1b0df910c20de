"""The mean and its counts."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from judged import from_list

from heldout.errors import InputError
from heldout.scoring.evaluate import Evaluation, evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.ranking import JudgedRanking

RR = parse_measure("RR@10")
FIRST = parse_measure("FirstRel@10")
QRELS: Mapping[str, Mapping[str, int]] = {
    "q1": {"a": 1, "b": 0},
    "q2": {"a": 2},
    "q3": {"a": 0},
    "q4": {"a": -1},
    "q5": {},
    "007": {"a": 1},
}


def score(runs: Mapping[str, list[str]], excluded: frozenset[str] = frozenset()) -> Evaluation:
    rankings = {query: from_list(docs, QRELS.get(query, {})) for query, docs in runs.items()}
    return evaluate(rankings, QRELS, [RR, FIRST], excluded=excluded)


def test_the_rule() -> None:
    found = score({"q1": ["x", "a"], "q3": ["a"], "q5": ["a"], "7": ["a"], "new": ["a"]})
    assert found.queries == ("007", "q1", "q2", "q3", "q4")  # q5 has no judgment
    assert found.unanswered == 3  # 007 is not 7; q2; q4
    assert found.ignored == 3  # q5, 7 and new
    scores = found.scores[RR]
    assert (scores.n, scores.without_relevant, scores.why) == (5, 2, "")
    assert scores.mean == pytest.approx(0.5 / 5)
    assert scores.values.tolist() == [0, 0.5, 0, 0, 0]
    assert scores.defined.all()


def test_first_relevant_is_averaged_where_it_is_found() -> None:
    found = score({"q1": ["x", "a"], "q2": ["x"] * 0 + ["y", "z", "w", "a"], "007": ["n"]})
    scores = found.scores[FIRST]
    assert (scores.mean, scores.n) == (3.0, 2)
    assert scores.defined.tolist() == [False, True, True, False, False]
    assert found.per_query()["007"] == {RR: 0.0, FIRST: None}
    assert [scores.value(index) for index in range(5)] == [None, 2.0, 4.0, None, None]


def test_first_relevant_found_nowhere_is_no_number() -> None:
    scores = score({"q1": ["x"]}).scores[FIRST]
    assert (scores.mean, scores.n) == (None, 0)
    assert scores.why == "no relevant document was found for any query"


def test_excluded_queries_count_nowhere() -> None:
    found = score({"q1": ["a"], "q2": ["x", "a"]}, frozenset({"q1", "q3", "elsewhere"}))
    assert found.queries == ("007", "q2", "q4")
    assert (found.excluded, found.ignored, found.unanswered) == (2, 0, 2)
    assert found.scores[RR].mean == pytest.approx(0.5 / 3)


def test_no_judged_query_is_no_number() -> None:
    found = evaluate({"q1": from_list(["a"], {})}, {"q1": {}}, [RR])
    assert found.scores[RR].mean is None
    assert found.scores[RR].why == "there is no judged query"
    assert (found.queries, found.ignored) == ((), 1)


def test_an_empty_run_scores_zero() -> None:
    found = score({})
    assert (found.scores[RR].mean, found.unanswered) == (0.0, 5)


def test_an_empty_list_is_no_answer() -> None:
    empty = JudgedRanking(
        positions=np.array([], np.int64), grades=np.array([], np.int64), retrieved=0
    )
    found = evaluate({"q1": empty}, QRELS, [RR])
    assert (found.unanswered, found.scores[RR].mean) == (5, 0.0)


def test_without_relevant_follows_the_level() -> None:
    graded = parse_measure("RR(rel=2)")
    gains = parse_measure("nDCG(gains={1:0})")
    found = evaluate({}, QRELS, [graded, gains])
    assert found.scores[graded].without_relevant == 4
    assert found.scores[gains].without_relevant == 4


@pytest.mark.parametrize(
    ("measure", "hint"),
    [
        ("ERR(max_rel=1)@20", "ERR(max_rel=2)"),
        ("RBP(max_rel=1)", "RBP(max_rel=2)"),
    ],
)
def test_a_grade_above_the_scale_is_refused(measure: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        evaluate({}, QRELS, [parse_measure(measure)])
    (problem,) = caught.value.problems
    assert (problem.code, problem.found) == ("grade-above-maximum", "grade 2 for query q2")
    assert hint in problem.hint


def test_a_grade_that_would_overflow_is_refused() -> None:
    spec = parse_measure("nDCG(dcg='exp-log2')")
    with pytest.raises(InputError, match="grade-above-maximum"):
        evaluate({}, {"q": {"a": 1001}}, [spec])
    fits = {"q": {"a": 1000}}
    found = evaluate({"q": from_list(["x", "a"], fits["q"])}, fits, [spec])
    assert found.scores[spec].mean == pytest.approx(1 / math.log2(3))
