"""Every score equals its straightforward definition to the last bit."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from straightforward import evaluate_plainly

from heldout.scoring.evaluate import Evaluation, evaluate, prepare, score
from heldout.scoring.measures import MEASURES, Measure, parse_measure
from heldout.trec.qrels import read_qrels
from heldout.trec.ranking import JudgedRanking, Rankings
from heldout.trec.runs import scan_run

Qrels = Mapping[str, Mapping[str, int]]
GRADES = st.sampled_from([-2, -1, 0, 0, 0, 1, 1, 1, 2, 3, 4])
VALUES: dict[str, st.SearchStrategy[str]] = {
    "rel": st.integers(1, 5).map(str),
    "judged_only": st.sampled_from(["True", "False"]),
    "dcg": st.sampled_from(["'log2'", "'exp-log2'"]),
    "gains": st.dictionaries(st.integers(0, 4), st.integers(0, 20), max_size=4).map(
        lambda gains: "{" + ",".join(f"{grade}:{gain}" for grade, gain in gains.items()) + "}"
    ),
    "p": st.floats(0.01, 0.99).map(lambda p: f"{p:.4f}"),
    "max_rel": st.integers(4, 6).map(str),
}


@st.composite
def measures(draw: st.DrawFn, name: str) -> Measure:
    """A measure of this name with any of its parameters."""
    kind = MEASURES[name]
    chosen = [parameter for parameter in kind.parameters if draw(st.booleans())]
    if {"rel", "max_rel"} <= set(chosen):
        chosen.remove(draw(st.sampled_from(["rel", "max_rel"])))
    cut = kind.cutoff == "required" or (kind.cutoff == "optional" and draw(st.booleans()))
    depth = f"@{draw(st.sampled_from([1, 2, 5, 10, 20, 100, 2000]))}" if cut else ""
    inside = ",".join(f"{parameter}={draw(VALUES[parameter])}" for parameter in chosen)
    return parse_measure(f"{name}({inside}){depth}" if inside else f"{name}{depth}")


@st.composite
def topics(draw: st.DrawFn) -> tuple[dict[str, int], JudgedRanking | None]:
    """Judgments, and a list of any depth that has some of them; none where it is no answer."""
    grades = draw(st.lists(GRADES, max_size=draw(st.sampled_from([1, 3, 40]))))
    judgments = {f"d{place}": grade for place, grade in enumerate(grades)}
    found = draw(st.permutations(grades))[: draw(st.integers(0, len(grades)))]
    gaps = [draw(st.sampled_from([1, 1, 1, 2, 9, 200])) for _ in found]
    ranking = JudgedRanking(
        positions=np.cumsum(gaps, dtype=np.int64),
        grades=np.array(found, np.int64),
        retrieved=sum(gaps) + draw(st.sampled_from([0, 0, 1, 30])),
    )
    return judgments, ranking if draw(st.integers(0, 5)) else None


@st.composite
def runs(draw: st.DrawFn) -> tuple[dict[str, JudgedRanking], dict[str, dict[str, int]]]:
    """A run and judgments in which queries repeat each other."""
    kinds = draw(st.lists(topics(), min_size=1, max_size=3))
    queries = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=7))
    qrels = {f"q{number}": judgments for number, (judgments, _) in enumerate(queries)}
    rankings = {
        f"q{number}": ranking for number, (_, ranking) in enumerate(queries) if ranking is not None
    }
    return rankings, qrels


def pack(rankings: Mapping[str, JudgedRanking]) -> Rankings:
    """The same as four arrays."""
    queries = tuple(sorted(rankings))
    parts = [rankings[query] for query in queries]
    none = np.empty(0, np.int64)
    return Rankings(
        queries=queries,
        starts=np.cumsum([0, *(len(part.positions) for part in parts)], dtype=np.int64),
        positions=np.concatenate([none, *(part.positions for part in parts)]),
        grades=np.concatenate([none, *(part.grades for part in parts)]),
        retrieved=np.array([part.retrieved for part in parts], np.int64),
    )


def bits(value: float | None) -> str | None:
    return None if value is None else value.hex()


def assert_equal_to_definition(
    found: Evaluation, rankings: Mapping[str, JudgedRanking], qrels: Qrels
) -> None:
    plain = evaluate_plainly(rankings, qrels, found.scores)
    for measure, scores in found.scores.items():
        expected = plain.values[measure]
        assert found.queries == tuple(expected)
        ours = [bits(scores.value(index)) for index in range(len(found.queries))]
        assert ours == [bits(value) for value in expected.values()], measure
        assert bits(scores.mean) == bits(plain.means[measure]), measure
        assert scores.n == sum(value is not None for value in expected.values())
        assert scores.without_relevant == plain.without_relevant[measure]


# What asks for groups of documents has tests of its own: test_fairness.py.
@pytest.mark.parametrize("name", [name for name, kind in MEASURES.items() if not kind.exposure])
@given(run=runs(), data=st.data())
def test_equal_to_its_definition(
    name: str,
    run: tuple[dict[str, JudgedRanking], dict[str, dict[str, int]]],
    data: st.DataObject,
) -> None:
    rankings, qrels = run
    measure = data.draw(measures(name))
    assert_equal_to_definition(evaluate(rankings, qrels, [measure]), rankings, qrels)
    assert_equal_to_definition(evaluate(pack(rankings), qrels, [measure]), rankings, qrels)


TOGETHER = [
    *("RR@10", "RR(rel=2)", "nDCG@10", "nDCG", "nDCG(dcg='exp-log2')@20", "nDCG(gains={1:0,2:7})"),
    *("AP", "AP(rel=2)@100", "P@5", "P(rel=2,judged_only=True)@10", "R@1000", "Success(rel=2)@1"),
    *("Bpref", "Bpref(rel=2)", "RBP(rel=1)", "RBP(p=0.5,max_rel=4)", "ERR@20", "ERR", "FirstRel"),
    *("Unjudged@10", "Unjudged@1000", "AP(judged_only=True)"),
]


@given(run=runs())
def test_judgments_are_prepared_once_for_many_runs(
    run: tuple[dict[str, JudgedRanking], dict[str, dict[str, int]]],
) -> None:
    """Other measures and other runs leave a score as it is."""
    rankings, qrels = run
    lower = {
        query: replace(ranking, positions=ranking.positions + 1, retrieved=ranking.retrieved + 1)
        for query, ranking in rankings.items()
    }
    judged = prepare(qrels, [parse_measure(name) for name in TOGETHER])
    for scored in (rankings, lower, rankings):
        assert_equal_to_definition(score(pack(scored), judged), scored, qrels)


@pytest.mark.real
def test_equal_on_whole_runs(data: Callable[[str], Path]) -> None:
    folder = data("trec-covid-round1")
    with (folder / "qrels-round1.txt.gz").open("rb") as file:
        qrels = read_qrels(file, path="qrels").judgments
    judged = prepare(qrels, [parse_measure(name) for name in TOGETHER])
    paths = sorted((folder / "runs-full").glob("*.gz"))
    assert len(paths) == 24
    for path in paths[::3]:
        with path.open("rb") as file:
            rankings = scan_run(file, path=path.name, order="trec9", qrels=qrels).rankings
        assert_equal_to_definition(score(rankings, judged), rankings, qrels)
