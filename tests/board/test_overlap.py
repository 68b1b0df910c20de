"""Queries that two sets share, held against a plain comparison of every pair."""

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.board.scores import describe as overlap
from heldout.board.scores.describe import find_overlap, normalise
from heldout.trec.queries import parse_queries

words = st.sampled_from(["list", "lists", "sort", "sorted", "a", "an", "tuple", "of", "keys"])
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
query_sets = st.dictionaries(st.sampled_from([str(n) for n in range(9)]), texts, max_size=6)


def plain_near(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, float]:
    """Query of theirs -> greatest cosine with another, by loops and dictionaries."""

    def grams(text: str) -> Counter[str]:
        padded = f" {text} "
        return Counter(padded[i : i + 3] for i in range(len(padded) - 2))

    every = [grams(text) for text in (*ours.values(), *theirs.values())]
    frequency = Counter(gram for one in every for gram in one)
    weight = {gram: 1 + math.log(len(every) / n) for gram, n in frequency.items()}

    def cosine(a: Counter[str], b: Counter[str]) -> float:
        dot = sum(n * b[gram] * weight[gram] ** 2 for gram, n in a.items())
        norms = [math.hypot(*(n * weight[g] for g, n in one.items())) for one in (a, b)]
        return dot / norms[0] / norms[1]

    best: dict[str, float] = {}
    for query, text in theirs.items():
        near = [cosine(grams(text), grams(t)) for q, t in ours.items() if q != query and t != text]
        if near:
            best[query] = max(near)
    return best


@given(query_sets, query_sets, st.sampled_from([0.3, 0.5, 0.8]))
def test_every_near_pair_is_found(a: dict[str, str], b: dict[str, str], threshold: float) -> None:
    expected = {q: c for q, c in plain_near(a, b).items() if c >= threshold}
    assert overlap.find_near(a, b, threshold) == pytest.approx(expected)
    assert find_overlap(("a", a), ("b", b), threshold=threshold).near == len(expected)


@given(query_sets, query_sets)
def test_shared_ids_and_texts(a: dict[str, str], b: dict[str, str]) -> None:
    found = find_overlap(("a", a), ("b", b))
    assert found.same_id == len(a.keys() & b.keys())
    assert found.same_id_other_text == sum(a[q] != b[q] for q in a.keys() & b.keys())
    same = {q for q in b if any(b[q] == a[other] for other in a if other != q)}
    assert found.same_text == len(same)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    a = {str(n): f"how to {word} a list" for n, word in enumerate(["sort", "copy", "join", "cut"])}
    b = {f"x{n}": f"how do i {word} lists" for n, word in enumerate(["sorted", "copy", "jam"])}
    whole = find_overlap(("a", a), ("b", b), threshold=0.4)
    monkeypatch.setattr(overlap, "_CELLS", 1)
    assert find_overlap(("a", a), ("b", b), threshold=0.4) == whole
    assert whole.near > 0


def test_a_set_and_itself_share_ids_and_nothing_else() -> None:
    one = {"1": "what is a tuple", "2": "sort keys"}
    found = find_overlap(("a", one), ("b", one))
    assert (found.same_id, found.same_id_other_text) == (2, 0)
    assert (found.same_text, found.near) == (0, 0)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("What  is a Tuple?", "what is a tuple"),
        ("\uff37hat is a tuple", "what is a tuple"),
        ("STRASSE", "stra\u00dfe"),
        ("snake_case", "snake case"),
        ("\u2026", "..."),
    ],
)
def test_texts_that_are_the_same(text: str, same: str) -> None:
    assert normalise(text) == normalise(same)


@pytest.mark.parametrize(("text", "other"), [("???", "!!!"), ("c 1", "c 2"), ("ab", "a b")])
def test_texts_that_are_not(text: str, other: str) -> None:
    assert normalise(text) != normalise(other)


@pytest.mark.parametrize("threshold", [0, -1, 1.1])
def test_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(ValueError, match=str(threshold)):
        find_overlap(("a", {}), ("b", {}), threshold=threshold)


@pytest.mark.real
def test_seven_thousand_by_seven_thousand(data: Callable[[str], Path]) -> None:
    file = data("qrels/queries.msmarco-passage.dev-subset.tsv.gz")
    given_texts = dict(parse_queries(file.read_bytes(), path="q").texts)
    renamed = {f"x{query}": text for query, text in given_texts.items()}
    start = time.process_time()
    found = find_overlap(("dev", given_texts), ("eval", renamed))
    assert time.process_time() - start < 20
    assert found.same_text == len(given_texts)
    assert found.near == 29
