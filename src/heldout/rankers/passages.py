"""Long documents in sliding passages: a document is as good as its best passage (MaxP)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from heldout.rankers.pairs import PairScorer, TextPair

__all__ = ["score_best_passage", "split_passages"]


def split_passages(text: str, *, size: int, stride: int) -> list[str]:
    """Passages of a text: windows of words that together cover it.

    Args:
        text: any text; words are what stands between white space.
        size: words of a passage, >= 1.
        stride: words from the start of one to that of the next, 1 to `size`.

    Returns:
        At least one; a text of no more words than a passage is left as it is.

    Raises:
        ValueError: a size or stride that would leave words out.
    """
    if not 1 <= stride <= size:
        raise ValueError("wanted: 1 <= stride <= size")
    words = text.split()
    if len(words) <= size:
        return [text]
    # The last passage is the first that reaches the end.
    starts = range(0, len(words) - size + stride, stride)
    return [" ".join(words[start : start + size]) for start in starts]


def score_best_passage(score: PairScorer, *, size: int, stride: int) -> PairScorer:
    """A scorer of long documents from a scorer of short ones.

    Args:
        score: gives each passage a score.
        size: words of a passage, >= 1.
        stride: words from one to the next, 1 to `size`.

    Returns:
        Scores each pair by the highest score of a passage of its document.

    Source: Dai and Callan, SIGIR 2019, section 2 (MaxP).
    """

    def score_documents(pairs: Sequence[TextPair]) -> NDArray[np.float64]:
        if not pairs:
            return np.zeros(0)
        passages = [split_passages(pair.document, size=size, stride=stride) for pair in pairs]
        starts = np.cumsum([0, *map(len, passages[:-1])])
        texts = [
            TextPair(pair.query, passage)
            for pair, parts in zip(pairs, passages, strict=True)
            for passage in parts
        ]
        best: NDArray[np.float64] = np.maximum.reduceat(score(texts), starts)
        return best

    return score_documents
