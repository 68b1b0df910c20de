"""What two query sets share: ids, texts, and texts that are nearly the same."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

__all__ = ["NEAR", "Overlap", "Twin", "find_overlap", "normalise"]

NEAR = 0.8
"""Least cosine of two texts that are called nearly the same. Of the 6,980 MS MARCO passage dev
queries 29 have another so near, by eye mostly rewordings of one question."""

_GRAM = 3
_ROUNDING = 1e-9
_CELLS = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A query of one set beside a query of the other.

    Attributes:
        first, second: their ids.
        first_text, second_text: as given.
        cosine: of their trigrams, 1 for equal normalised texts.
    """

    first: str
    second: str
    first_text: str
    second_text: str
    cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """What two query sets share; queries are counted in `second`.

    Attributes:
        first, second: names of the sets.
        same_id: ids in both.
        same_id_other_text: of these, those whose texts differ even when normalised.
        same_text: queries whose normalised text `first` has under another id.
        near: queries whose nearest text in `first`, under another id and not equal, reaches the
            threshold.
        threshold: least cosine that counts as near.
        same_id_examples: the first ids in both.
        same_text_examples: of `same_text`, in the order of `second`.
        near_examples: of `near`, most similar first.
    """

    first: str
    second: str
    same_id: int
    same_id_other_text: int
    same_text: int
    near: int
    threshold: float
    same_id_examples: tuple[str, ...]
    same_text_examples: tuple[Twin, ...]
    near_examples: tuple[Twin, ...]


def normalise(text: str) -> str:
    """A text as texts are compared: width, case, punctuation and spacing folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.findall(r"[^\W_]+", folded)) or " ".join(folded.split())


def find_overlap(
    first: tuple[str, Mapping[str, str]],
    second: tuple[str, Mapping[str, str]],
    *,
    threshold: float = NEAR,
    examples: int = 5,
) -> Overlap:
    """Compare two query sets, every query with every other.

    Nearness is the cosine of character trigrams of the normalised texts, a blank at each end,
    counted and weighted by 1 + ln(texts / texts with the trigram) over both sets.

    Args:
        first: name of a set, and its queries: id -> text.
        second: likewise.
        threshold: least cosine, above 0 and at most 1.
        examples: most examples of each kind.
    """
    if not 0 < threshold <= 1:
        raise ValueError(threshold)
    ours = {query: normalise(text) for query, text in first[1].items()}
    theirs = {query: normalise(text) for query, text in second[1].items()}
    shared = [query for query in theirs if query in ours]
    equal = _find_equal(ours, theirs)
    near = _find_near(ours, theirs, threshold)
    order = sorted(near, key=lambda query: -near[query][1])

    def twin(query: str, other: str, cosine: float) -> Twin:
        texts = {"first_text": first[1][other], "second_text": second[1][query]}
        return Twin(first=other, second=query, cosine=cosine, **texts)

    return Overlap(
        first=first[0],
        second=second[0],
        same_id=len(shared),
        same_id_other_text=sum(ours[query] != theirs[query] for query in shared),
        same_text=len(equal),
        near=len(near),
        threshold=threshold,
        same_id_examples=tuple(shared[:examples]),
        same_text_examples=tuple(twin(q, equal[q], 1.0) for q in list(equal)[:examples]),
        near_examples=tuple(twin(q, *near[q]) for q in order[:examples]),
    )


def _find_equal(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, str]:
    """Query of theirs -> the first of ours with the same text and another id."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for query, text in ours.items():
        by_text[text].append(query)
    found = {}
    for query, text in theirs.items():
        others = [other for other in by_text[text][:2] if other != query]
        if others:
            found[query] = others[0]
    return found


def _find_near(
    ours: Mapping[str, str], theirs: Mapping[str, str], threshold: float
) -> dict[str, tuple[str, float]]:
    """Query of theirs -> the nearest of ours with another id and text, and their cosine."""
    left, right = list(ours), list(theirs)
    if not left or not right:
        return {}
    matrix = _weigh_trigrams([*ours.values(), *theirs.values()])
    near: dict[str, tuple[str, float]] = {}
    block = max(1, _CELLS // len(left))
    for start in range(len(left), matrix.shape[0], block):
        cosines = (matrix[start : start + block] @ matrix[: len(left)].T).tocoo()
        close = np.flatnonzero(cosines.data >= threshold - _ROUNDING)
        for index in close:
            query = right[start - len(left) + cosines.row[index]]
            other = left[cosines.col[index]]
            cosine = min(1.0, float(cosines.data[index]))
            apart = other != query and ours[other] != theirs[query]
            if apart and (query not in near or cosine > near[query][1]):
                near[query] = (other, cosine)
    return near


def _weigh_trigrams(texts: Sequence[str]) -> "sparse.csr_matrix":
    """Unit rows: weighted trigram counts, shape (texts, trigrams)."""
    columns: dict[str, int] = {}
    rows: list[int] = []
    cells: list[int] = []
    counts: list[int] = []
    for row, text in enumerate(texts):
        padded = f" {text} "
        grams = Counter(padded[i : i + _GRAM] for i in range(len(padded) - _GRAM + 1))
        rows += [row] * len(grams)
        cells += [columns.setdefault(gram, len(columns)) for gram in grams]
        counts += grams.values()
    shape = (len(texts), len(columns))
    weights = 1 + np.log(len(texts) / np.bincount(cells, minlength=len(columns)))
    values = np.array(counts, np.float64) * weights[cells]
    norms = np.sqrt(np.bincount(rows, values**2, minlength=len(texts)))
    return sparse.csr_matrix((values / norms[rows], (rows, cells)), shape=shape)
