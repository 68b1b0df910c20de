"""Several labels of the same queries, seen in one pass over a run.

A scan sees a run through one set of judgments. To see it through many, each judged document gets a
code that stands for its grades in all of them; afterwards codes become the grades of one again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heldout.trec.ranking import Rankings

__all__ = ["GradeBook", "combine", "regrade"]

_UNJUDGED = np.iinfo(np.int64).min

Judgments = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeBook:
    """Labels under one code.

    Attributes:
        codes: query -> document -> code, for every document that any of the labels judges.
        grades: name of labels -> int64, the grade that each code stands for.
    """

    codes: Judgments
    grades: Mapping[str, NDArray[np.int64]]


def combine(labels: Mapping[str, Judgments]) -> GradeBook:
    """Bring labels together.

    Args:
        labels: by name, at least one.
    """
    numbers: dict[tuple[int | None, ...], int] = {}
    codes: dict[str, dict[str, int]] = {}
    every = tuple(labels.values())
    for query in dict.fromkeys(query for one in every for query in one):
        parts = [one.get(query, {}) for one in every]
        codes[query] = {
            document: numbers.setdefault(tuple(p.get(document) for p in parts), len(numbers))
            for document in dict.fromkeys(document for part in parts for document in part)
        }
    columns = zip(*numbers, strict=True) if numbers else ((),) * len(every)
    return GradeBook(
        codes=codes,
        grades={
            name: np.array([_UNJUDGED if g is None else g for g in column], dtype=np.int64)
            for name, column in zip(labels, columns, strict=True)
        },
    )


def regrade(rankings: Rankings, grades: NDArray[np.int64]) -> Rankings:
    """A run that was scanned with `GradeBook.codes`, as one of the labels sees it.

    Args:
        rankings: with codes for grades.
        grades: of one of the labels, from `GradeBook.grades`.
    """
    found = grades[rankings.grades] if len(grades) else rankings.grades
    judged = found != _UNJUDGED
    before = np.concatenate(([0], np.cumsum(judged)))
    return replace(
        rankings,
        starts=before[rankings.starts],
        positions=rankings.positions[judged],
        grades=found[judged],
    )
