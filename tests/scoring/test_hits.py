"""What measures see of a run: integers, like queries together."""

from collections.abc import Mapping, Sequence

from judged import from_list

from heldout.scoring.evaluate import prepare, score
from heldout.scoring.measures import Hits, Patterns, find_patterns, parse_measure

QRELS: Mapping[str, Mapping[str, int]] = {
    "1": {"a": 1},
    "2": {"b": 1},
    "3": {"c": 1, "d": 0},
    "4": {"e": 1},
    "5": {"f": -1, "g": 1},
}
LISTS = {
    "1": ["x", "a"],
    "2": ["y", "b", "z"],
    "3": ["v", "c"],
    "5": ["f", "g"],
    "6": ["a"],
    "7": [],
}


def patterns(groups: Sequence[int], *, depth: int) -> Patterns:
    rankings = {query: from_list(docs, QRELS.get(query, {})) for query, docs in LISTS.items()}
    return find_patterns(rankings, tuple(QRELS), groups, depth=depth)


def test_alike_is_what_no_measure_can_tell_apart() -> None:
    found = patterns([0, 0, 1, 0, 0], depth=0)
    assert found.distinct == ((0, Hits((2,), (1,), 0)), (1, Hits((2,), (1,), 0)), (0, None))
    assert found.of_query.tolist() == [0, 0, 1, 2, 0]
    assert (found.unanswered, set(found.answered)) == (1, {"1", "2", "3", "5", "6"})


def test_lists_differ_by_length_as_deep_as_it_matters() -> None:
    assert patterns([0, 0, 0, 0, 0], depth=2).of_query.tolist() == [0, 0, 0, 1, 0]
    assert patterns([0, 0, 0, 0, 0], depth=3).of_query.tolist() == [0, 1, 0, 2, 0]


def test_no_query_at_all() -> None:
    found = find_patterns({}, (), (), depth=5)
    assert (found.distinct, found.of_query.tolist(), found.unanswered) == ((), [], 0)


def test_unjudged_sees_how_long_a_list_is() -> None:
    qrels = {"1": {"a": 1}, "2": {"b": 1}}
    rankings = {"1": from_list(["a", "x"], qrels["1"]), "2": from_list(["b"], qrels["2"])}
    rr, deep, shallow = (parse_measure(name) for name in ("RR@10", "Unjudged@5", "Unjudged@1"))
    found = score(rankings, prepare(qrels, [rr, deep, shallow])).scores
    assert found[rr].values.tolist() == [1.0, 1.0]
    assert found[deep].values.tolist() == [1 / 5, 0.0]
    assert found[shallow].values.tolist() == [0.0, 0.0]
