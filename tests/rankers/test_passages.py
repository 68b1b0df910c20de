"""MaxP: passages cover the text, and the best one counts."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heldout.rankers.reranking import score_best_passage, split_passages
from heldout.rankers.run import TextPair

sizes = st.integers(1, 6)
texts = st.lists(st.sampled_from("abcde"), max_size=20).map(" ".join)


@given(st.integers(0, 40), sizes)
def test_passages_cover_every_word_and_none_is_longer(count: int, size: int) -> None:
    stride = max(1, size // 2)
    words = [str(number) for number in range(count)]
    passages = split_passages(" ".join(words), size=size)
    parts = [passage.split() for passage in passages]
    assert {word for part in parts for word in part} == set(words)
    assert all(len(part) <= size for part in parts)
    starts = [words.index(part[0]) for part in parts if part]
    assert starts == list(range(0, len(starts) * stride, stride))
    # No passage begins after another has reached the end.
    assert all(part[-1] != words[-1] for part in parts[:-1])


def test_a_short_text_is_left_as_it_is() -> None:
    assert split_passages("a \n b", size=2) == ["a \n b"]
    assert split_passages("", size=2) == [""]


def test_passages_of_no_words_are_refused() -> None:
    with pytest.raises(ValueError, match="size"):
        split_passages("a b c", size=0)


def count_a(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
    return np.array([pair.document.count("a") - len(pair.document) / 100 for pair in pairs])


@given(st.lists(texts, max_size=5), sizes)
def test_a_document_scores_as_its_best_passage(documents: list[str], size: int) -> None:
    pairs = [TextPair("q", document) for document in documents]
    found = score_best_passage(count_a, size=size)(pairs)
    brute = [
        max(count_a([TextPair("q", passage)])[0] for passage in split_passages(document, size=size))
        for document in documents
    ]
    assert found.tolist() == brute
