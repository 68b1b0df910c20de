"""Dev and eval queries: disjoint, complete, near duplicates together."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.collections.collection import Collection, near_duplicate_groups, split_queries
from heldout.ids import DocId, QueryId


def collection(texts: list[str]) -> Collection:
    queries = {QueryId(f"q{number:03}"): text for number, text in enumerate(texts)}
    return Collection(
        documents={DocId("d1"): "text"},
        queries=queries,
        qrels={query: {DocId("d1"): 1} for query in queries},
    )


texts = st.lists(
    st.lists(st.sampled_from("abcdefgh"), max_size=6).map(" ".join), min_size=1, max_size=30
)


@given(texts, st.floats(0.1, 0.9), st.integers(0, 99))
def test_sides_are_disjoint_and_complete(texts: list[str], dev: float, seed: int) -> None:
    whole = collection(texts)
    split = split_queries(whole, dev=dev, rng=np.random.default_rng(seed))
    again = split_queries(whole, dev=dev, rng=np.random.default_rng(seed))
    assert split == again
    assert not set(split.dev.queries) & set(split.eval.queries)
    assert {**split.dev.queries, **split.eval.queries} == dict(whole.queries)
    for side in (split.dev, split.eval):
        assert list(side.queries) == list(side.qrels) == sorted(side.queries)
        assert side.documents is whole.documents


@given(texts, st.integers(0, 99))
def test_near_duplicates_stay_together(texts: list[str], seed: int) -> None:
    whole = collection(texts)
    split = split_queries(whole, dev=0.5, rng=np.random.default_rng(seed))
    for one in map(words, split.dev.queries.values()):
        for other in map(words, split.eval.queries.values()):
            assert not (one | other) or len(one & other) < 0.7 * len(one | other)


def words(text: str) -> set[str]:
    return set(text.split())


@given(st.integers(2, 60), st.floats(0.05, 0.95), st.integers(0, 99))
def test_the_share_is_met_where_nothing_is_near(size: int, dev: float, seed: int) -> None:
    whole = collection([f"text number{number}" for number in range(size)])
    split = split_queries(whole, dev=dev, rng=np.random.default_rng(seed))
    assert len(split.dev.queries) == int(np.ceil(dev * size))


def test_another_seed_gives_another_split() -> None:
    whole = collection([f"text number{number}" for number in range(40)])
    one, two = (split_queries(whole, dev=0.5, rng=np.random.default_rng(seed)) for seed in (0, 1))
    assert one.dev.queries != two.dev.queries


def test_groups_go_by_chains_of_similar_texts() -> None:
    groups = near_duplicate_groups(("a b c d", "A b c d e", "b c d e", "x y", "", "y x"))
    assert groups[0] == groups[1] == groups[2]
    assert groups[3] == groups[5]
    assert len(set(groups.tolist())) == 3


def test_no_texts_no_groups() -> None:
    assert near_duplicate_groups(()).tolist() == []


@pytest.mark.parametrize("dev", [0.0, 1.0, -0.1, float("nan")])
def test_an_empty_side_cannot_be_asked_for(dev: float) -> None:
    with pytest.raises(ValueError, match="share"):
        split_queries(collection(["a"]), dev=dev, rng=np.random.default_rng(0))


def _groups_of_all_pairs(texts: tuple[str, ...]) -> list[int]:
    """Groups by comparing each two texts, numbered by their first text."""
    words = [set(text.casefold().split()) for text in texts]
    group = list(range(len(texts)))
    for one, other in combinations(range(len(texts)), 2):
        union = words[one] | words[other]
        if union and len(words[one] & words[other]) >= 0.7 * len(union):
            old, new = group[other], group[one]
            group = [new if number == old else number for number in group]
    numbers = {number: place for place, number in enumerate(dict.fromkeys(group))}
    return [numbers[number] for number in group]


@given(
    st.lists(
        st.lists(st.sampled_from("abcdefgh"), max_size=9).map(" ".join), min_size=1, max_size=12
    )
)
def test_groups_are_those_of_comparing_all_pairs(texts: list[str]) -> None:
    assert near_duplicate_groups(tuple(texts)).tolist() == _groups_of_all_pairs(tuple(texts))


def test_many_queries_with_a_word_in_common_are_divided_in_little_memory() -> None:
    """All pairs of these would be 64 million."""
    texts = tuple(f"what is the w{number} of v{number}" for number in range(8_000))
    tracemalloc.start()
    groups = near_duplicate_groups(texts)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(np.unique(groups)) == 8_000
    assert most < 100 << 20
