"""THE order of documents: the only module that decides which document stands above which.

Three named orders:

- `trec`: score descending as float64, then document id descending bytewise; the rank column
  is ignored (trec_eval 10).
- `trec9`: the same with scores rounded to float32 first, so near-equal scores tie
  (trec_eval up to 9, pytrec_eval; most official TREC tables were made so).
- `msmarco`: by the rank column.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ORDERS", "JudgedRanking", "Order"]

Order = Literal["trec", "trec9", "msmarco"]
ORDERS: tuple[Order, ...] = ("trec", "trec9", "msmarco")


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRanking:
    """What a run says about one query, seen through the judgments: integers only.

    Measures take this and nothing else of a run, so they cannot sort.

    Attributes:
        positions: int64, strictly increasing, 1-based places of the judged documents.
        grades: int64, same length, their grades.
        retrieved: number of documents the run lists for the query, >= 1.
    """

    positions: NDArray[np.int64]
    grades: NDArray[np.int64]
    retrieved: int
