"""Dense retrieval: the ranking with vectors of our own, the encoder where it is installed."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from small_task import small_task

from heldout.ids import DocId, QueryId
from heldout.rankers.dense import DenseSettings, load_encoder, rank_dense
from heldout.rankers.run import Task


def letters(texts: Sequence[str]) -> NDArray[np.float32]:
    """A vector per text: which of a, b and c it has; of length one."""
    counts = np.array([[text.count(letter) for letter in "abc"] for text in texts], np.float32)
    lengths = np.linalg.norm(counts, axis=1, keepdims=True)
    return np.asarray(counts / np.where(lengths > 0, lengths, 1), np.float32)


def test_documents_are_ordered_by_inner_product() -> None:
    texts = {"d1": "abc", "d2": "aab", "d3": "ccc", "d4": "aab", "d5": "x"}
    task = Task(
        documents={DocId(key): text for key, text in texts.items()},
        queries={QueryId("1"): "aab", QueryId("2"): "c"},
        depth=4,
    )
    run = rank_dense(task, letters)
    assert [hit.document for hit in run[QueryId("1")]] == ["d4", "d2", "d1", "d5"]
    assert [hit.document for hit in run[QueryId("2")]] == ["d3", "d1", "d5", "d4"]
    assert run[QueryId("1")][0].score == pytest.approx(1.0)


@pytest.mark.usefixtures("neural")
@pytest.mark.filterwarnings("ignore")  # other people's warnings, while torch starts
def test_the_encoder_finds_the_right_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    encode = load_encoder(DenseSettings())
    assert rank_dense(small_task(), encode)[QueryId("7")][0].document == "d3"
    vectors = encode(["A man is eating food.", "Someone eats a meal.", "sort a list in place"])
    assert vectors.shape == (3, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-4)
    alike, unlike = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert alike > 0.5
    assert unlike < 0.3
