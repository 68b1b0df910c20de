"""Pools and categories: who enters, once per text; and the study's arithmetic."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.judging.campaign.pools import (
    Candidate,
    Pool,
    build_pools,
    normalise,
    sample_pools,
    sizes,
)
from heldout.judging.studies.categories import split_queries

_DOCS = st.lists(st.sampled_from([f"d{n}" for n in range(12)]), min_size=1, max_size=4, unique=True)
_TOPS = st.dictionaries(
    st.sampled_from("ABCD"),
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), _DOCS.map(tuple)),
    min_size=1,
)
_QUERIES = {"q1": "one", "q2": "two", "q3": "three"}


def test_tops_and_the_first_label_are_pooled_each_once() -> None:
    tops = {"A": {"q1": ("d1",)}, "B": {"q1": ("d2",)}, "C": {"q1": ("d1",)}}
    (pool,) = build_pools(tops, {"q1": ["d9", "d8"]}, queries=_QUERIES)
    found = [(one.doc, one.runs, one.known) for one in pool.candidates]
    assert found == [("d1", ("A", "C"), False), ("d2", ("B",), False), ("d9", (), True)]
    assert pool.pairs == 3
    assert pool.known == pool.candidates[2]


def test_the_same_words_are_judged_once_and_the_known_answer_keeps_its_id() -> None:
    tops = {"A": {"q1": ("d1",)}, "B": {"q1": ("d2",)}}
    texts = {"d1": "The  ﬁrst\nanswer", "d2": "other", "d9": "the first answer "}
    (pool,) = build_pools(tops, {"q1": ["d9"]}, queries=_QUERIES, documents=texts)
    assert [(one.doc, one.same, one.runs) for one in pool.candidates] == [
        ("d2", (), ("B",)),
        ("d9", ("d1",), ("A",)),
    ]
    assert normalise("\uff21\u00a0B") == "a b"


def test_a_document_without_text_is_named() -> None:
    with pytest.raises(InputError, match="no-text"):
        build_pools({"A": {"q1": ("d1",)}}, {}, queries=_QUERIES, documents={"d2": "x"})


@given(tops=_TOPS, seed=st.integers(0, 99))
def test_order_of_runs_changes_nothing_and_sizes_add_up(
    tops: dict[str, dict[str, tuple[str, ...]]], seed: int
) -> None:
    pools = build_pools(tops, {"q1": ["d1"]}, queries=_QUERIES)
    turned = build_pools(dict(reversed(tops.items())), {"q1": ["d1"]}, queries=_QUERIES)
    assert pools == turned
    found = sizes(pools)
    assert sum(found.histogram.values()) == found.queries == len(pools)
    assert sum(size * (size - 1) // 2 * n for size, n in found.histogram.items()) == found.pairs
    fit = [pool for pool in pools if pool.pairs]
    some = sample_pools(pools, count=len(fit), rng=np.random.default_rng(seed))
    assert some == tuple(fit)
    with pytest.raises(InputError):
        sample_pools(pools, count=len(fit) + 1, rng=np.random.default_rng(seed))


def test_the_studys_mean_of_500_pools_cannot_be() -> None:
    # 4,210 pairs over 500 pools bound the mean: sum of n(n-1)/2 is least for equal sizes.
    least = 500 * 6.32 * (6.32 - 1) / 2
    assert least == pytest.approx(8_405.6)
    equal = [
        Pool(query=str(n), candidates=tuple(Candidate(doc=str(d)) for d in range(6 + (n < 160))))
        for n in range(500)
    ]
    assert sizes(equal).mean == pytest.approx(6.32)
    assert sizes(equal).pairs >= least


def test_a_query_is_a_where_the_run_puts_the_first_label_first() -> None:
    tops = {"q1": ("d1", "d2"), "q2": ("d1", "d2"), "q3": ("d1",), "q4": ("d3", "d1")}
    known = {"q1": ["d1", "d2"], "q2": ["d2", "d1"], "q3": ["d1"], "q4": []}
    found = split_queries(tops, known, queries=["q1", "q2", "q3", "q4", "q5"])
    assert [(one.query, one.category, one.known, one.other) for one in found] == [
        ("q1", "A", "d1", "d2"),
        ("q2", "B", "d2", "d1"),
    ]
