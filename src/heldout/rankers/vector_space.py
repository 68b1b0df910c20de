"""TF-IDF with the cosine, over words or over character n-grams."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array

from heldout.rankers.run import Run, Task
from heldout.rankers.terms import TermIndex, index_terms, rank_products
from heldout.rankers.text import TextSettings, character_ngrams, make_tokeniser

__all__ = ["NgramSettings", "TfidfSettings", "rank_char_ngrams", "rank_tfidf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TfidfSettings(TextSettings):
    """TF-IDF takes the settings of its text and no others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NgramSettings:
    """Which character n-grams are terms.

    Attributes:
        shortest: smallest n, >= 1.
        longest: largest n, >= `shortest`.
    """

    shortest: int = 4
    longest: int = 4

    def __post_init__(self) -> None:
        """Refuse lengths that make no n-gram."""
        if not 1 <= self.shortest <= self.longest:
            raise ValueError("wanted: 1 <= shortest <= longest")


def rank_tfidf(task: Task, settings: TfidfSettings) -> Run:
    """Rank by the cosine of TF-IDF vectors of words.

    Weights are (1 + ln tf) ln(N / df) on both sides (`ltc.ltc`).

    Raises:
        SetupError: stems are wanted and PyStemmer is not installed.

    Source: Salton and Buckley, Information Processing & Management 24(5), 1988.
    """
    return _rank_cosine(task, index_terms(task, make_tokeniser(settings)))


def rank_char_ngrams(task: Task, settings: NgramSettings) -> Run:
    """Rank by the cosine of TF-IDF vectors of character n-grams.

    Source: weights as `rank_tfidf`; n-grams as `text.character_ngrams`.
    """

    def ngrams(text: str) -> list[str]:
        return character_ngrams(text, shortest=settings.shortest, longest=settings.longest)

    return _rank_cosine(task, index_terms(task, ngrams))


def _rank_cosine(task: Task, index: TermIndex) -> Run:
    counts = index.document_counts
    frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log(counts.shape[0] / np.maximum(frequencies, 1))
    return rank_products(
        index,
        queries=_unit_rows(index.query_counts, rarity),
        documents=_unit_rows(counts, rarity),
        depth=task.depth,
    )


def _unit_rows(counts: csr_array, rarity: np.ndarray) -> csr_array:
    """Weighted rows of length one; a row without weight stays zero."""
    weights = counts.copy()
    weights.data = (1 + np.log(counts.data)) * rarity[counts.indices]
    lengths = np.sqrt(np.asarray(weights.power(2).sum(axis=1)))
    return csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ weights)
