"""THE order of documents: the only module that decides which document stands above which.

Three named orders:

- `trec`: score descending as float64, then document id descending bytewise; the rank column
  is ignored (trec_eval 10).
- `trec9`: the same with scores rounded to float32 first, so near-equal scores tie
  (trec_eval up to 9, pytrec_eval; most official TREC tables were made so).
- `msmarco`: by the rank column.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from heldout.trec.orders import Order


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Rankings(Mapping[str, JudgedRanking]):
    """The judged rankings of a whole run, packed into four arrays.

    Attributes:
        queries: answered queries, sorted.
        starts: int64, shape (queries + 1,); judged documents `starts[i]` to `starts[i + 1]` are
            those of query i.
        positions: int64, as in `JudgedRanking`, of all queries in turn.
        grades: int64, same shape.
        retrieved: int64, shape (queries,), documents listed.
    """

    queries: tuple[str, ...]
    starts: NDArray[np.int64]
    positions: NDArray[np.int64]
    grades: NDArray[np.int64]
    retrieved: NDArray[np.int64]
    _positions: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        positions = {query: position for position, query in enumerate(self.queries)}
        object.__setattr__(self, "_positions", positions)

    def __getitem__(self, query: str) -> JudgedRanking:
        position = self._positions[query]
        rows = slice(int(self.starts[position]), int(self.starts[position + 1]))
        return JudgedRanking(
            positions=self.positions[rows],
            grades=self.grades[rows],
            retrieved=int(self.retrieved[position]),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.queries)

    def __len__(self) -> int:
        return len(self.queries)


def sort_keys(scores: NDArray[np.float64], order: Order) -> NDArray[np.float64]:
    """The scores as the order compares them.

    Args:
        scores: float64, shape (documents,).
        order: under `trec9` scores become the nearest float32, so near-equal ones are equal
            and those beyond its range infinite.

    Returns:
        float64, same shape.
    """
    if order != "trec9":
        return scores
    with np.errstate(over="ignore", under="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def equal_as_float32(keys: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Check which neighbours are equal as `trec9` compares them; shape (documents - 1,)."""
    rounded = sort_keys(keys, "trec9")
    equal: NDArray[np.bool_] = rounded[1:] == rounded[:-1]
    return equal


def order_by_score(keys: NDArray[np.float64], documents: Sequence[bytes]) -> NDArray[np.int64]:
    """Rows from best to worst: key descending, then document id descending bytewise.

    Args:
        keys: float64, shape (documents,), no NaN; from `sort_keys`.
        documents: their ids in UTF-8, each once.

    Returns:
        int64, a permutation of the rows, independent of the order of the input.
    """
    if bool((keys[1:] < keys[:-1]).all()):
        return np.arange(len(keys), dtype=np.int64)
    rows = np.argsort(-keys, kind="stable").astype(np.int64)
    ordered = keys[rows]
    breaks = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    starts = np.concatenate(([0], breaks))
    ends = np.concatenate((breaks, [len(rows)]))
    tied = np.flatnonzero(ends - starts > 1)
    for start, end in zip(starts[tied].tolist(), ends[tied].tolist(), strict=True):
        group = sorted(rows[start:end].tolist(), key=documents.__getitem__, reverse=True)
        rows[start:end] = group
    return rows


def order_by_rank(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows from best to worst by the rank column; equal ranks stay in the order of the file.

    Args:
        ranks: int64, shape (documents,).

    Returns:
        int64, a permutation of the rows.
    """
    return np.argsort(ranks, kind="stable").astype(np.int64)
