"""Measures against trec_eval (through pytrec_eval), gdeval, and what must hold of each."""

import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from judged import DOCUMENTS, JUDGMENTS, LISTS, anchored, from_list, needs_their_parser, scores_of

from heldout.scoring.evaluate import evaluate
from heldout.scoring.measures import MEASURES, Params, parse_measure, summarise

RUNS = st.dictionaries(st.sampled_from("1234"), LISTS, max_size=4)
QRELS = st.dictionaries(st.sampled_from("1234"), JUDGMENTS, min_size=1, max_size=4)
# (ours, trec_eval's name, relevance level)
TREC_EVAL = [
    ("RR{}", "recip_rank", True),
    ("AP{}", "map", True),
    ("AP{}@5", "map_cut_5", True),
    ("P{}@5", "P_5", True),
    ("P{}@20", "P_20", True),
    ("R{}@5", "recall_5", True),
    ("R{}@100", "recall_100", True),
    ("Success{}@1", "success_1", True),
    ("Success{}@10", "success_10", True),
    ("Bpref{}", "bpref", True),
    ("nDCG", "ndcg", False),
    ("nDCG@5", "ndcg_cut_5", False),
    ("nDCG@100", "ndcg_cut_100", False),
]
EACH = [
    *("RR@10", "nDCG", "nDCG@5", "nDCG(dcg='exp-log2')@10", "nDCG(gains={1:0,3:7,4:7})@10"),
    *("AP", "AP(rel=2)@10", "P@5", "R(rel=2)@5", "Success@3", "Bpref", "RBP(p=0.5,rel=1)"),
    *("RBP(max_rel=4)@10", "ERR@20", "Unjudged@10", "RR(judged_only=True)"),
]


def one(measure: str, documents: list[str], judgments: Mapping[str, int]) -> float | None:
    """Score of a single list."""
    spec = parse_measure(measure)
    rankings = {"1": from_list(documents, judgments)}
    return evaluate(rankings, {"1": judgments}, [spec]).scores[spec].mean


def ours(
    run: Mapping[str, list[str]], qrels: Mapping[str, Mapping[str, int]], names: list[str]
) -> dict[str, dict[str, float | None]]:
    rankings = {query: from_list(docs, qrels.get(query, {})) for query, docs in run.items()}
    found = evaluate(rankings, qrels, [parse_measure(name) for name in names]).per_query()
    return {
        query: {str(measure): value for measure, value in row.items()}
        for query, row in found.items()
        if query in run
    }


@given(run=RUNS, free=QRELS, level=st.integers(1, 3), above=st.sampled_from([-1, 0, 1]))
def test_equal_to_trec_eval(
    run: dict[str, list[str]], free: dict[str, dict[str, int]], level: int, above: int
) -> None:
    qrels = {query: anchored(judgments, level + above) for query, judgments in free.items()}
    names = {
        str(parse_measure(name.format(f"(rel={level})" if binary else ""))): theirs
        for name, theirs, binary in TREC_EVAL
    }
    oracle = pytrec_eval.RelevanceEvaluator(
        qrels, set(pytrec_eval.supported_measures), relevance_level=level
    )
    expected = oracle.evaluate({query: scores_of(docs) for query, docs in run.items()})
    found = ours(run, qrels, list(names))
    assert set(found) == set(expected)
    for query, row in found.items():
        for name, theirs in names.items():
            assert row[name] == pytest.approx(expected[query][theirs], abs=1e-12), name


@given(documents=LISTS, free=JUDGMENTS, level=st.integers(1, 3))
def test_judged_only_is_option_j_of_trec_eval(
    documents: list[str], free: dict[str, int], level: int
) -> None:
    judgments = anchored(free, level)
    names = {"RR": "recip_rank", "AP": "map", "P": "P_5", "R": "recall_5", "Success": "success_5"}
    oracle = pytrec_eval.RelevanceEvaluator(
        {"1": judgments}, set(names.values()) | {"ndcg"}, relevance_level=level,
        judged_docs_only_flag=True,
    )  # fmt: skip
    expected = oracle.evaluate({"1": scores_of(documents)})["1"]
    for name, theirs in names.items():
        cut = "@5" if MEASURES[name].cutoff == "required" else ""
        value = one(f"{name}(rel={level},judged_only=True){cut}", documents, judgments)
        assert value == pytest.approx(expected[theirs], abs=1e-12)
    value = one("nDCG(judged_only=True)", documents, judgments)
    assert value == pytest.approx(expected["ndcg"], abs=1e-12)


@needs_their_parser
@given(run=RUNS, free=QRELS)
def test_mean_is_that_of_ir_measures(
    run: dict[str, list[str]], free: dict[str, dict[str, int]]
) -> None:
    """Its mean too counts unanswered queries 0; no list is empty, no query without judgments."""
    qrels = {query: anchored(judgments, 1) for query, judgments in free.items()}
    names = ["RR@10", "RR(rel=2)", "nDCG@10", "nDCG(gains={1:0,2:7})", "AP", "R@5", "Bpref(rel=2)"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        theirs: list[Any] = [ir_measures.parse_measure(name) for name in names]
    scores = {query: scores_of(docs) for query, docs in run.items()}
    # one at a time: asked together, nDCG may get the gains of nDCG(gains=...) (ir_measures 0.4.3)
    expected = {str(measure): measure.calc_aggregate(qrels, scores) for measure in theirs}
    rankings = {query: from_list(docs, qrels.get(query, {})) for query, docs in run.items()}
    found = evaluate(rankings, qrels, [parse_measure(name) for name in names])
    assert found.unanswered == len(set(qrels) - set(run))
    for measure, scored in found.scores.items():
        assert scored.mean == pytest.approx(expected[str(measure)], abs=1e-12)


def test_equal_to_gdeval(program: Callable[[str], str]) -> None:
    """gdeval.pl (in ir_measures) prints 5 decimals and takes numeric queries, grades up to 4."""
    program("perl")
    rng = random.Random(2)  # noqa: S311 -- test data, reproducible
    qrels = {
        str(query): {doc: rng.choice([-1, 0, 0, 1, 2, 3, 4]) for doc in rng.sample(DOCUMENTS, 20)}
        for query in range(1, 31)
    }
    run = {query: rng.sample(DOCUMENTS, rng.randint(1, 40)) for query in qrels}
    theirs = [
        ir_measures.ERR @ 20,
        ir_measures.nDCG(dcg="exp-log2") @ 5,
        ir_measures.nDCG(dcg="exp-log2") @ 20,
    ]
    scores = {query: scores_of(docs) for query, docs in run.items()}
    found = ours(run, qrels, [str(measure) for measure in theirs])
    compared = 0
    for query, measure, value in ir_measures.gdeval.iter_calc(theirs, qrels, scores):
        assert found[query][str(measure)] == pytest.approx(value, abs=6e-6)
        compared += 1
    assert compared == 90


# worked by hand: six documents, x and y unjudged
HAND = ["x", "a", "n", "b", "y", "c"]
HAND_JUDGMENTS = {"a": 1, "b": 3, "c": 2, "n": 0, "m": 0, "missed": 1, "pooled": -1}
BY_HAND = [
    ("RR", 1 / 2),
    ("RR(rel=2)", 1 / 4),
    ("RR(rel=2)@3", 0.0),
    ("AP", (1 / 2 + 2 / 4 + 3 / 6) / 4),
    ("AP@4", (1 / 2 + 2 / 4) / 4),
    ("P@10", 3 / 10),
    ("R@4", 2 / 4),
    ("Success@1", 0.0),
    ("Bpref", (1 + 1 / 2 + 1 / 2) / 4),
    ("RBP(p=0.5,rel=1)", (1 / 2**1 + 1 / 2**3 + 1 / 2**5) / 2),
    ("RBP(p=0.5,max_rel=3)", (1 / 2 / 3 + 3 / 2**3 / 3 + 2 / 2**5 / 3) / 2),
    ("RBP(p=0.5)", (1 / 2 + 3 / 2**3 + 2 / 2**5) / 2),
    ("ERR(max_rel=3)@4", (1 / 8) / 2 + (7 / 8) * (7 / 8) / 4),
    ("FirstRel", 2.0),
    ("FirstRel(rel=3)", 4.0),
    ("FirstRel(judged_only=True)", 1.0),
    ("FirstRel@1", None),
    ("Unjudged@5", 2 / 5),
    ("Unjudged@10", 2 / 10),
]


@pytest.mark.parametrize(("measure", "expected"), BY_HAND)
def test_by_hand(measure: str, expected: float | None) -> None:
    assert one(measure, HAND, HAND_JUDGMENTS) == pytest.approx(expected, abs=1e-15)


@given(run=RUNS, qrels=QRELS, seed=st.integers(0, 99))
def test_order_of_queries_does_not_matter(
    run: dict[str, list[str]], qrels: dict[str, dict[str, int]], seed: int
) -> None:
    names = [parse_measure(name) for name in EACH]
    rankings = {query: from_list(docs, qrels.get(query, {})) for query, docs in run.items()}
    shuffled = list(qrels.items())
    random.Random(seed).shuffle(shuffled)  # noqa: S311 -- test data, reproducible
    first = evaluate(rankings, qrels, names)
    second = evaluate(dict(reversed(rankings.items())), dict(shuffled), names)
    assert first.queries == second.queries
    for name in names:
        assert first.scores[name].mean == second.scores[name].mean
        assert first.scores[name].values.tolist() == second.scores[name].values.tolist()


@given(judgments=JUDGMENTS, rest=LISTS)
def test_oracle(judgments: dict[str, int], rest: list[str]) -> None:
    """The best possible list has the best possible score, and nothing beats it."""
    best = sorted(judgments, key=lambda doc: judgments[doc], reverse=True)
    relevant = any(grade > 0 for grade in judgments.values())
    for name in ("nDCG", "nDCG@3", "nDCG(dcg='exp-log2')@5", "AP", "RR", "R@40", "Bpref"):
        value = one(name, best, judgments)
        assert value == pytest.approx(float(relevant), abs=1e-12)
        other = one(name, rest, judgments)
        assert other is not None
        assert value is not None
        assert other <= value + 1e-12


def test_nothing_relevant_found() -> None:
    """A run of unjudged documents: 0 everywhere, all of its top unjudged."""
    nowhere = [f"other{number}" for number in range(20)]
    for name in EACH:
        assert one(name, nowhere, {"a": 1}) == (1.0 if name.startswith("Unjudged") else 0.0)
    assert one("FirstRel", nowhere, {"a": 1}) is None


def test_judged_gains_decide_what_is_relevant() -> None:
    def relevant(params: Params) -> int:
        return summarise((-1, 1, 1, 2), MEASURES["nDCG"], params).relevant

    assert relevant(Params()) == 3
    assert relevant(Params(gains=((2, 0),))) == 2
    assert relevant(Params(gains=((1, 0), (2, 0)))) == 0
    assert relevant(Params(rel=3)) == 0
