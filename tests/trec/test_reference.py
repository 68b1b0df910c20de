"""A run against a reference that keeps every row, sorts everything and knows only definitions."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import naive_runs
import pytest
import pytrec_eval
from combinations import blocks_of, see_by_all
from hypothesis import given
from hypothesis import strategies as st
from odd_runs import DOCUMENTS, GRADES, QUERIES, tied_runs

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import parse_measure
from heldout.trec.orders import ORDERS, Order

Ranking = Sequence[str]
Grades = Mapping[str, int]
Qrels = dict[str, dict[str, int]]


def gains(ranking: Ranking, grades: Grades) -> list[int]:
    """Of each place; what is not judged, or judged below 0, gains nothing."""
    return [max(grades.get(document, 0), 0) for document in ranking]


def relevant(grades: Grades) -> set[str]:
    return {document for document, grade in grades.items() if grade >= 1}


def reciprocal_rank(ranking: Ranking, grades: Grades) -> float:
    for place, document in enumerate(ranking, start=1):
        if document in relevant(grades):
            return 1 / place
    return 0.0


def precision(ranking: Ranking, grades: Grades, k: int) -> float:
    return len(set(ranking[:k]) & relevant(grades)) / k


def recall(ranking: Ranking, grades: Grades, k: int) -> float:
    wanted = relevant(grades)
    return len(set(ranking[:k]) & wanted) / len(wanted) if wanted else 0.0


def average_precision(ranking: Ranking, grades: Grades) -> float:
    """The mean, over the relevant documents, of precision where each stands."""
    wanted = relevant(grades)
    places = [place for place, document in enumerate(ranking, start=1) if document in wanted]
    found = sum(precision(ranking, grades, place) for place in places)
    return found / len(wanted) if wanted else 0.0


def discounted_gain(values: Sequence[int]) -> float:
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(values, start=1))


def ndcg(ranking: Ranking, grades: Grades, k: int | None = None) -> float:
    ideal = discounted_gain(sorted(gains([*grades], grades), reverse=True)[:k])
    return discounted_gain(gains(ranking, grades)[:k]) / ideal if ideal else 0.0


REFERENCE: dict[str, Callable[[Ranking, Grades], float]] = {
    "RR": reciprocal_rank,
    "P@1": lambda ranking, grades: precision(ranking, grades, 1),
    "P@5": lambda ranking, grades: precision(ranking, grades, 5),
    "R@3": lambda ranking, grades: recall(ranking, grades, 3),
    "R@100": lambda ranking, grades: recall(ranking, grades, 100),
    "AP": average_precision,
    "nDCG": ndcg,
    "nDCG@3": lambda ranking, grades: ndcg(ranking, grades, 3),
}
PYTREC_EVAL = {
    "RR": "recip_rank",
    "P@5": "P_5",
    "R@100": "recall_100",
    "AP": "map",
    "nDCG": "ndcg",
    "Bpref": "bpref",
}
NEAR = 1e-12


def scores_of(data: bytes, order: Order, qrels: Qrels, names: Sequence[str]) -> dict[Any, Any]:
    """Query -> measure -> score, the same by every scanner."""
    seen = see_by_all(data, order, qrels=qrels)
    measures = {name: parse_measure(name) for name in names}
    found = evaluate(seen.scan.rankings, qrels, list(measures.values())).per_query()
    return {
        query: {name: scores[measure] for name, measure in measures.items()}
        for query, scores in found.items()
    }


def reference_scores(rows: Sequence[naive_runs.Row], order: Order, qrels: Qrels) -> dict[Any, Any]:
    ranked = naive_runs.ranked_documents(rows, order)
    return {
        query: {name: score(ranked.get(query, []), grades) for name, score in REFERENCE.items()}
        for query, grades in qrels.items()
    }


def assert_near(found: dict[Any, Any], expected: dict[Any, Any]) -> None:
    assert found.keys() == expected.keys()
    for query, scores in expected.items():
        assert found[query] == pytest.approx(scores, rel=NEAR, abs=NEAR), query


@pytest.mark.parametrize("order", ORDERS)
@given(rows=tied_runs(), qrels=GRADES, size=st.integers(16, 400))
def test_a_shuffled_tied_run_scores_as_the_reference(
    order: Order, rows: list[naive_runs.Row], qrels: Qrels, size: int
) -> None:
    data = naive_runs.format_run(rows, trec=order != "msmarco")
    with blocks_of(size):
        run = naive_runs.scan(data, order, qrels=qrels)
        found = scores_of(data, order, qrels, [*REFERENCE])
    ranked = naive_runs.ranked_documents(rows, order)
    assert naive_runs.integers(run) == naive_runs.judged(ranked, qrels)
    assert list(run.rankings) == sorted(ranked, key=str.encode)
    tops = dict(zip(run.signature.queries, run.signature.documents.tolist(), strict=True))
    assert {query: [*filter(None, top)] for query, top in tops.items()} == {
        query: [naive_runs.hash_document(document.encode()) for document in documents]
        for query, documents in ranked.items()
    }
    assert_near(found, reference_scores(rows, order, qrels))


@given(
    rows=tied_runs(),
    qrels=st.dictionaries(
        st.sampled_from(QUERIES[:4]),
        st.dictionaries(st.sampled_from(DOCUMENTS[:8]), st.integers(0, 3)),
        min_size=1,
    ).map(lambda qrels: {query: grades for query, grades in qrels.items() if grades}),
)
def test_trec9_scores_as_pytrec_eval(rows: list[naive_runs.Row], qrels: Qrels) -> None:
    run: dict[str, dict[str, float]] = {}
    for query, document, _, score in rows:
        run.setdefault(query, {})[document] = float(score)
    found = scores_of(naive_runs.format_run(rows, trec=True), "trec9", qrels, [*PYTREC_EVAL])
    oracle: Any = (
        pytrec_eval.RelevanceEvaluator(qrels, set(PYTREC_EVAL.values())) if qrels else None
    )
    expected = oracle.evaluate(run) if oracle else {}
    assert set(expected) == set(run) & set(qrels)
    for query, scores in expected.items():
        theirs = {name: scores[their_name] for name, their_name in PYTREC_EVAL.items()}
        assert found[query] == pytest.approx(theirs, rel=NEAR, abs=NEAR), query
    for query in set(found) - set(run):
        assert set(found[query].values()) == {0.0}


def test_float32_twins_tie_only_under_trec9() -> None:
    pairs = {"1": "1.00000001", "0.1": "0.10000000149011612", "16777216": "16777217",
             "1234567890.1234567": "1234567890.1234568", "0": "1e-50"}  # fmt: skip
    qrels: Qrels = {"q": {"a": 1}}
    for low, high in pairs.items():
        data = f"q Q0 a 1 {high} t\nq Q0 b 2 {low} t\n".encode()
        exact = float(high) > float(low)
        assert scores_of(data, "trec", qrels, ["RR"])["q"]["RR"] == (1.0 if exact else 0.5)
        assert scores_of(data, "trec9", qrels, ["RR"])["q"]["RR"] == 0.5
        assert scores_of(data, "msmarco", qrels, ["RR"])["q"]["RR"] == 1.0


def test_zeros_of_both_signs_tie() -> None:
    for first, second in (("0", "-0.0"), ("-0", "0e5"), ("-0e-9", "+0.")):
        data = f"q Q0 a 1 {first} t\nq Q0 b 2 {second} t\n".encode()
        for order in ("trec", "trec9"):
            assert scores_of(data, order, {"q": {"a": 1}}, ["RR"])["q"]["RR"] == 0.5


def test_ids_are_text_and_fall_bytewise() -> None:
    """All tie: é (0xC3), then a, 9, 7, 10, 07 and 007, whatever order they come in."""
    best = ["é", "a", "9", "7", "10", "07", "007"]
    rows = [("7", document, rank, "1") for rank, document in enumerate(sorted(best), start=1)]
    rows += [("07", "7", 1, "1")]
    data = naive_runs.format_run(rows, trec=True)
    for order in ("trec", "trec9"):
        for place, document in enumerate(best, start=1):
            found = scores_of(data, order, {"7": {document: 1}, "07": {"7": 1}}, ["RR"])
            assert found["7"]["RR"] == 1 / place
            assert found["07"]["RR"] == 1.0


JUDGED: Qrels = {"1": {"a": 3, "b": 0, "c": 1, "d": 2, "x": 1}, "2": {"a": 1}, "3": {"b": 0}}


def answer(scores: Mapping[str, float], query: str = "1") -> list[naive_runs.Row]:
    ranked = sorted(scores, key=lambda document: (-scores[document], document))
    return [
        (query, document, rank, repr(scores[document])) for rank, document in enumerate(ranked, 1)
    ]


ORACLE = {"a": 3.0, "d": 2.0, "c": 1.5, "x": 1.0, "b": 0.0}
ABSURD: dict[str, tuple[list[naive_runs.Row], dict[str, float]]] = {
    "oracle": (answer(ORACLE), {"nDCG": 1.0, "AP": 1.0, "RR": 1.0, "R@100": 1.0, "P@5": 0.8}),
    "reversed": (
        answer({document: -score for document, score in ORACLE.items()}),
        {"RR": 0.5, "AP": (1 / 2 + 2 / 3 + 3 / 4 + 4 / 5) / 4, "P@1": 0.0, "R@3": 0.5},
    ),
    "one document": (answer({"a": 1.0}), {"RR": 1.0, "AP": 0.25, "P@5": 0.2, "R@100": 0.25}),
    "one wrong document": (answer({"b": 1.0}), dict.fromkeys(REFERENCE, 0.0)),
    "nothing judged": (answer({"u": 2.0, "v": 1.0}), dict.fromkeys(REFERENCE, 0.0)),
    "another query": (answer(ORACLE, "9"), dict.fromkeys(REFERENCE, 0.0)),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", list(ABSURD))
def test_absurd_systems(name: str, order: Order) -> None:
    rows, expected = ABSURD[name]
    data = naive_runs.format_run(rows, trec=order != "msmarco")
    found = scores_of(data, order, JUDGED, [*REFERENCE])
    assert_near(found, reference_scores(rows, order, JUDGED))
    assert {measure: found["1"][measure] for measure in expected} == pytest.approx(expected)
    assert set(found["2"].values()) == set(found["3"].values()) == {0.0}


@pytest.mark.parametrize("order", ["trec", "trec9"])
def test_a_constant_system_gains_nothing_from_the_order_of_its_lines(order: Order) -> None:
    """x, d, c, b, a by id: with equal scores nobody can put the right document first."""
    rows = [("1", document, rank, "7.5") for rank, document in enumerate("adcxb", start=1)]
    found = scores_of(naive_runs.format_run(rows, trec=True), order, JUDGED, [*REFERENCE])
    tidy = scores_of(naive_runs.format_run(rows[::-1], trec=True), order, JUDGED, [*REFERENCE])
    assert found == tidy
    expected = {
        name: score(["x", "d", "c", "b", "a"], JUDGED["1"]) for name, score in REFERENCE.items()
    }
    assert found["1"] == pytest.approx(expected, rel=NEAR)
    assert found["1"]["nDCG"] < 1


@pytest.mark.parametrize("data", [b"", b"\n", b"# nothing\n"])
def test_an_empty_run_has_no_scores(data: bytes) -> None:
    for order in ORDERS:
        found = see_by_all(data, order, qrels=JUDGED)
        assert found.scan.counts["empty-file"] == 1
        assert found.scores == ()


def test_the_reference_tells_orders_apart() -> None:
    """So that a scanner that ignored the order could not pass."""
    rows = [("1", "a", 3, "1.00000001"), ("1", "b", 2, "1.0"), ("1", "c", 1, "0.5")]
    ranked = [tuple(naive_runs.ranked_documents(rows, order)["1"]) for order in ORDERS]
    assert all(one != other for one, other in pairwise(ranked))
    assert len(naive_runs.SCANNERS) >= 2
