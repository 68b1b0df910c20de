"""Labels and scores at each depth of annotation."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.scoring.measures import parse_measure
from heldout.survivorship.annotations import Annotation, Annotations
from heldout.survivorship.depths.scores import DepthScores, pick_depths, score_depths, shown_ranks
from heldout.trec.tops import RunPositions

RR = parse_measure("RR@10")
K = 4


def annotate(
    selected: Mapping[str, Mapping[str, int]], *, depth: int = K, open_ended: bool = False
) -> Annotations:
    return Annotations(
        source="made up",
        records=[
            Annotation(query=QueryId(query), selected={DocId(d): at for d, at in docs.items()})
            for query, docs in selected.items()
        ],
        depth=depth,
        open_ended=open_ended,
        counts_discarded=True,
    )


def run_of(rankings: Mapping[str, Mapping[str, int]]) -> RunPositions:
    return RunPositions(found=rankings, retrieved=dict.fromkeys(rankings, 100))


documents = st.dictionaries(st.sampled_from("abcde"), st.integers(1, K), max_size=3)
annotated = st.dictionaries(st.sampled_from(["q1", "q2", "q3", "q4", "q5"]), documents, min_size=1)
ranked = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4", "q5"]),
    st.permutations("abcdefgh").map(lambda docs: {doc: at for at, doc in enumerate(docs, 1)}),
)


@given(annotated, ranked, st.sampled_from(["every label", "the first"]))
def test_each_depth_equals_its_own_evaluation(
    selected: dict[str, dict[str, int]], rankings: dict[str, dict[str, int]], which: str
) -> None:
    if not any(selected.values()):
        return
    runs = {"run": run_of(rankings)}
    scores = score_depths(annotate(selected), runs, RR, first_only=which == "the first")
    for at, depth in enumerate(range(1, K + 1)):
        kept = {q: [d for d, p in docs.items() if p <= depth] for q, docs in selected.items()}
        if which == "the first":
            kept = {q: sorted(docs, key=selected[q].__getitem__)[:1] for q, docs in kept.items()}
        kept = {query: docs for query, docs in kept.items() if docs}
        expected = [
            1 / min(rankings[query][doc] for doc in docs) if query in rankings else 0.0
            for query, docs in kept.items()
        ]
        assert scores.counts[at] == len(kept)
        assert scores.unanswered[0, at] == sum(query not in rankings for query in kept)
        mean = scores.means()[at][0]
        assert mean == (pytest.approx(sum(expected) / len(expected)) if expected else None)


def table(*systems: tuple[str, RunPositions], first_only: bool = False) -> DepthScores:
    selected = {"q1": {"a": 1, "b": 3}, "q2": {"c": 2}, "q3": {"d": 4}, "q4": {}}
    return score_depths(annotate(selected), dict(systems), RR, first_only=first_only)


def test_with_the_first_label_alone_a_deeper_one_changes_no_score() -> None:
    scores = table(("deep", run_of({"q1": {"a": 9, "b": 1}})), first_only=True)

    assert scores.values[0, 0].tolist() == pytest.approx([1 / 9] * 4)


def test_a_query_that_a_run_does_not_answer_counts_and_scores_0() -> None:
    scores = table(("run", run_of({"q1": {"a": 1}})))

    assert scores.means()[1] == (0.5,)
    assert scores.unanswered[0].tolist() == [0, 1, 1, 2]


def test_depths_beyond_the_last_are_refused_by_name() -> None:
    with pytest.raises(InputError) as refused:
        pick_depths(table(("run", run_of({}))), [2, 5])

    (problem,) = refused.value.problems
    assert (problem.code, problem.found, problem.expected) == (
        "depth-beyond-list",
        "depth 5",
        "a depth from 1 to 4",
    )


def test_some_depths_are_those_of_all_and_the_last_is_always_there() -> None:
    every = table(("run", run_of({"q1": {"a": 2}, "q3": {"d": 1}})))
    some = pick_depths(every, [2])

    assert some.names == ("2", "4")
    assert some.means() == (every.means()[1], every.means()[3])
    assert some.unanswered.tolist() == every.unanswered[:, [1, 3]].tolist()


def test_an_open_ended_depth_is_named_so() -> None:
    annotations = annotate({"q": {"a": 2}}, depth=2, open_ended=True)

    assert score_depths(annotations, {"run": run_of({})}, RR).names == ("1", "2+")


def test_annotations_that_selected_nothing_are_refused() -> None:
    with pytest.raises(InputError) as refused:
        score_depths(annotate({"q1": {}, "q2": {}}), {}, RR)

    assert refused.value.problems[0].code == "no-survivor"


def test_the_order_shown_is_a_run_of_what_was_shown() -> None:
    seen = Annotations(
        source="made up",
        records=[
            Annotation(
                query=QueryId("q1"),
                shown=(DocId("x"), DocId("a"), DocId("b")),
                selected={DocId("b"): 3, DocId("a"): 2},
            ),
            Annotation(query=QueryId("q2"), shown=(DocId("y"),)),
        ],
        depth=3,
        open_ended=False,
        counts_discarded=True,
    )
    places = shown_ranks(seen)

    assert places.found == {"q1": {"a": 2, "b": 3}, "q2": {}}
    assert places.retrieved == {"q1": 3, "q2": 1}


def test_a_source_that_does_not_tell_what_was_shown_has_no_order() -> None:
    with pytest.raises(InputError) as refused:
        shown_ranks(annotate({"q1": {"a": 1}}))

    assert refused.value.problems[0].code == "no-shown"
