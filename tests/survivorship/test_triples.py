"""Training triples: what a depth leaves, random samples as small, and triples made of labels."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.ids import DocId, QueryId
from heldout.survivorship.training.triples import (
    ALL,
    Condition,
    Sampler,
    SelectedRanks,
    Triple,
    TripleCounts,
    TripleDraw,
    draw_triples,
    make_triples,
    paper_conditions,
)

DEPTH = 10


def count_triples(triples: Sequence[Triple]) -> TripleCounts:
    return TripleCounts(per_label=Counter((one.query, one.positive) for one in triples))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def select(
    sequence: Sequence[Triple],
    places: SelectedRanks,
    condition: Condition,
    *,
    seed: int,
    limit: int | None = None,
) -> TripleDraw:
    """What one condition leaves."""
    wanted = [(condition, seed)]
    try:
        draws, _ = draw_triples(lambda: sequence, places, wanted, source="t", limit=limit)
    except InputError:  # code `no-triples`
        return TripleDraw(takes=lambda _: False)
    return draws[0]


@st.composite
def labelled_sequences(draw: st.DrawFn) -> tuple[SelectedRanks, list[Triple]]:
    """Labels at random places, and triples of them in any order, with repetitions."""
    places: dict[QueryId, dict[DocId, int]] = {}
    for number in range(draw(st.integers(1, 8))):
        shown = draw(st.lists(st.integers(1, DEPTH), min_size=1, max_size=3, unique=True))
        places[QueryId(f"q{number}")] = {DocId(f"p{number}-{place}"): place for place in shown}
    labels = [(query, doc) for query, docs in places.items() for doc in docs]
    picked = draw(st.lists(st.sampled_from(labels), min_size=1, max_size=40))
    sequence = [Triple(*label, DocId(f"n{number}")) for number, label in enumerate(picked)]
    return places, sequence


def is_subsequence(part: list[Triple], whole: list[Triple]) -> bool:
    rest = iter(whole)
    return all(triple in rest for triple in part)


@given(labelled_sequences(), st.integers(1, DEPTH))
def test_a_depth_keeps_the_order_and_exactly_what_was_shown_there(
    made: tuple[SelectedRanks, list[Triple]], depth: int
) -> None:
    places, sequence = made
    kept = select(sequence, places, Condition(depth=depth), seed=0).triples
    assert is_subsequence(kept, sequence)
    assert all(places[one.query][one.positive] <= depth for one in kept)
    left = [one for one in sequence if one not in kept]
    assert all(places[one.query][one.positive] > depth for one in left)


@given(labelled_sequences())
def test_deeper_annotation_never_has_less(made: tuple[SelectedRanks, list[Triple]]) -> None:
    places, sequence = made
    found = [
        set(select(sequence, places, Condition(depth=d), seed=0).triples) for d in range(1, 11)
    ]
    assert all(less <= more for less, more in pairwise(found))
    assert found[-1] == set(select(sequence, places, ALL, seed=0).triples) == set(sequence)


@given(labelled_sequences(), st.integers(1, DEPTH), st.integers(0, 5))
def test_a_sample_is_as_small_in_queries_labels_and_triples(
    made: tuple[SelectedRanks, list[Triple]], depth: int, seed: int
) -> None:
    places, sequence = made
    shallow = select(sequence, places, Condition(depth=depth), seed=seed)
    control = select(sequence, places, Condition(like=depth), seed=seed)
    assert control.counts.queries == shallow.counts.queries
    assert len(control.triples) + control.missing == len(shallow.triples)
    assert is_subsequence(control.triples, sequence)
    if not shallow.triples:
        return
    whole = count_triples(sequence)
    sample = Sampler(count_triples(shallow.triples), whole, rng(seed))
    assert (
        control.counts.labels == len(sample.labels) == shallow.counts.labels - sample.missing_labels
    )
    # Labels are missing only where the queries drawn have no other.
    if sample.missing_labels:
        drawn = {query for query, _ in sample.labels}
        assert sample.labels == {label for label in whole.per_label if label[0] in drawn}


def test_what_one_label_of_two_loses_is_not_taken_for_depth() -> None:
    places = {QueryId(f"q{n}"): {DocId("p1"): 1, DocId("p3"): 3} for n in range(50)}
    sequence = [
        Triple(query, positive, DocId(f"n{turn}"))
        for turn in range(4)
        for query, shown in places.items()
        for positive in shown
    ]
    shallow = select(sequence, places, Condition(depth=1), seed=0)
    control = select(sequence, places, Condition(like=1), seed=0)
    assert (shallow.counts.queries, shallow.counts.labels, len(shallow.triples)) == (50, 50, 200)
    assert (control.counts.queries, control.counts.labels, len(control.triples)) == (50, 50, 200)


def test_each_label_of_a_query_is_as_likely_to_be_in_a_sample() -> None:
    labels = {(QueryId("q"), DocId(f"p{n}")): 1 + n for n in range(5)}
    whole = TripleCounts(per_label=labels)
    wanted = TripleCounts(per_label={label: 1 for label, _ in zip(labels, "ab", strict=False)})
    drawn = np.zeros(5)
    for seed in range(1000):
        for _, document in Sampler(wanted, whole, rng(seed)).labels:
            drawn[int(document.removeprefix("p"))] += 1
    # Two of five: Binomial(1000, 2/5), five standard deviations are 78.
    assert abs(drawn - 400).max() < 78


@given(labelled_sequences(), st.integers(0, 5))
def test_a_sample_as_small_as_all_is_all(
    made: tuple[SelectedRanks, list[Triple]], seed: int
) -> None:
    _, sequence = made
    counts = count_triples(sequence)
    assert all(map(Sampler(counts, counts, rng(seed)).takes, sequence))


@given(labelled_sequences(), st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_within_a_seed_a_larger_share_holds_the_smaller(
    made: tuple[SelectedRanks, list[Triple]], one: float, other: float
) -> None:
    places, sequence = made
    small, large = Condition(share=min(one, other)), Condition(share=max(one, other))
    less = select(sequence, places, small, seed=3)
    more = select(sequence, places, large, seed=3)
    assert set(less.triples) <= set(more.triples)
    assert less.counts.queries >= 1


def test_every_query_is_as_likely_to_be_in_a_sample() -> None:
    # Queries with many triples are no more likely: labels are what is sampled.
    places = {QueryId(f"q{n}"): {DocId(f"p{n}"): 1 if n < 3 else 7} for n in range(12)}
    sequence = [
        Triple(QueryId(f"q{n}"), DocId(f"p{n}"), DocId(f"x{turn}"))
        for n in range(12)
        for turn in range(1 + n)
    ]
    drawn = np.zeros(12)
    for seed in range(600):
        found = select(sequence, places, Condition(like=1), seed=seed)
        assert found.counts.queries == 3
        for query in {triple.query for triple in found.triples}:
            drawn[int(query.removeprefix("q"))] += 1
    # Binomial(600, 1/4): five standard deviations are 53.
    assert abs(drawn - 150).max() < 53


def test_each_triple_that_may_go_is_as_likely_to_go() -> None:
    sequence = [Triple(QueryId("q"), DocId("p"), DocId(f"n{turn}")) for turn in range(9)]
    whole = count_triples(sequence)
    wanted = count_triples(sequence[:4])
    stayed = np.zeros(9)
    for seed in range(800):
        for triple in filter(Sampler(wanted, whole, rng(seed)).takes, sequence):
            stayed[int(triple.negative.removeprefix("n"))] += 1
    assert stayed[0] == 800
    # Three of the other eight stay: Binomial(800, 3/8), five standard deviations are 69.
    assert abs(stayed[1:] - 300).max() < 69


@given(
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 30),
    st.integers(0, 3),
)
def test_made_triples_never_have_a_selected_document_as_negative(
    queries: int, negatives: int, depth: int, seed: int
) -> None:
    places = {QueryId(f"q{n}"): {DocId("d1"): 2, DocId("d4"): 5} for n in range(queries)}
    ranked = {QueryId(f"q{n}"): [DocId(f"d{d}") for d in range(depth)] for n in range(queries)}
    found = make_triples(places, ranked, negatives=negatives, rng=rng(seed))
    assert found == make_triples(places, ranked, negatives=negatives, rng=rng(seed))
    assert len(set(found)) == len(found)
    assert not any(one.negative in places[one.query] for one in found)
    others = depth - sum(
        document in {DocId("d1"), DocId("d4")} for document in ranked[QueryId("q0")]
    )
    assert len(found) == queries * 2 * min(negatives, others)


def test_the_beginning_of_made_triples_knows_every_label() -> None:
    places = {QueryId(f"q{n}"): {DocId(f"p{n}"): 1} for n in range(20)}
    ranked = {query: [DocId(f"x{n}") for n in range(9)] for query in places}
    found = make_triples(places, ranked, negatives=5, rng=rng())
    for turn in range(5):
        assert {one.query for one in found[20 * turn : 20 * (turn + 1)]} == set(places)
    assert [one.query for one in found[:20]] != [one.query for one in found[20:40]]


def test_a_query_that_the_run_does_not_answer_has_no_triple() -> None:
    places = {QueryId("a"): {DocId("p"): 1}, QueryId("b"): {DocId("p"): 1}}
    found = make_triples(places, {QueryId("a"): [DocId("n")]}, negatives=3, rng=rng())
    assert found == (Triple(QueryId("a"), DocId("p"), DocId("n")),)


@pytest.mark.parametrize(
    "settings",
    [{"depth": 0}, {"like": -1}, {"share": 0.0}, {"share": 1.5}, {"depth": 1, "like": 1}],
)
def test_conditions_that_mean_nothing_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="Condition"):
        Condition(**settings)  # type: ignore[arg-type]


def test_the_names_of_conditions_are_those_of_the_paper() -> None:
    found = paper_conditions([5, 1, 5], controls=[1])
    assert [one.name for one in found] == ["r=1", "r=5", "all", "all, as few as r=1"]
    assert [one.folder for one in found] == ["r1", "r5", "all", "all-like-r1"]


def test_what_there_are_no_steps_for_is_left_out_and_the_control_follows() -> None:
    places = {QueryId(f"q{n}"): {DocId(f"p{n}"): 1 + n % 2} for n in range(40)}
    sequence = [Triple(q, next(iter(docs)), DocId("n")) for q, docs in places.items()]
    shallow = select(sequence, places, Condition(depth=1), seed=0, limit=12)
    control = select(sequence, places, Condition(like=1), seed=0, limit=12)
    assert len(shallow.triples) == len(control.triples) == 12
    assert len(select(sequence, places, ALL, seed=0, limit=12).triples) == 12
