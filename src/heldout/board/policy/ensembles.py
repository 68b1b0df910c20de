"""Whether a few published runs explain a new one, as a weighted fusion of their ranks.

A run that merely fuses what others published tunes on the held-out scores by which the parts were
chosen. Such a run's order is nearly a sum of functions of the parts' ranks, whatever the fusion
was, so its ranks are regressed on those of earlier runs: forward selection, weights by
non-negative least squares. Half of a sample of queries fits, the other half judges, and what is
judged is what the run is scored on: how well the fusion's top 10 agrees with the run's own.
docs/explanation/detection.md shows what is found. Sources: Lin et al. 2022, §§2.2 and 3.3;
Lawson & Hanson, "Solving Least Squares Problems", 1974 (the regression).

What earlier runs are like a new one: the evidence that the policy shows.
"""

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heldout.board.policy.similarity import (
    DEPTH,
    HEAD,
    TOP,
    Neighbour,
    list_alike,
    rank_biased_overlap,
)
from heldout.trec.scans import Signature

AGREEMENT = 0.6
"""Least mean rank-biased overlap of the fusion's top 10 and the run's, on held-out queries, that
is called an explanation."""

GAIN = 0.25
"""Least share of the disagreement with the nearest earlier run that the fusion must remove: below
that the run is near to one earlier run, which `similarity` tells, or to none."""

MOST_SYSTEMS = 5
"""Most earlier runs of an explanation: with more, any run can be explained a little."""

QUERIES = 100
"""Most queries looked at, half to fit and half to judge. An earlier run takes 80 kB meanwhile."""

MIN_QUERIES = 20
"""Fewest queries, below which nothing is said."""

_LEAST_STEP = 0.05
"""Least share of what was unexplained that one more run must explain."""

_RANKS = np.arange(1, DEPTH + 1, dtype=np.float64)

TRANSFORMS: Mapping[str, NDArray[np.float64]] = MappingProxyType(
    {
        "1 / r": 1 / _RANKS,
        "1 / (10 + r)": 1 / (10 + _RANKS),
        "1 / (60 + r)": 1 / (60 + _RANKS),
        "1 - ln r / ln 101": 1 - np.log(_RANKS) / np.log(DEPTH + 1),
        "1 - (r - 1) / 100": 1 - (_RANKS - 1) / DEPTH,
    }
)
"""What stands for a document at rank r, 1 to 100; below that and elsewhere it is 0. The first is
near interleaving, the third is that of reciprocal rank fusion (Cormack, Clarke & Buettcher, SIGIR
2009), the fourth near a sum of scores, the last is Borda's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """An earlier run in a fusion.

    Attributes:
        id: as given.
        weight: its share, above 0; the weights of all parts sum to 1.
    """

    id: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensemble:
    """The fusion of a few earlier runs that is nearest to a new one.

    Attributes:
        parts: heaviest first.
        transform: of ranks, a key of `TRANSFORMS`.
        queries: how many were held out; all figures are of these.
        r2: share of the variance of the new run's transformed ranks that the fusion explains,
            over the documents of either; at most 1, below 0 where it is worse than their mean,
            `None` where they do not vary.
        agreement: mean rank-biased overlap of the top 10 of the fusion and of the new run.
        alone: the same of the earlier run that agrees best by itself.
    """

    parts: tuple[Part, ...]
    transform: str
    queries: int
    r2: float | None
    agreement: float
    alone: float

    @property
    def gain(self) -> float:
        """Share of the disagreement with the nearest earlier run that the fusion removes.

        At most 1, below 0 where it agrees worse; 0 where that run agrees wholly.
        """
        return (self.agreement - self.alone) / (1 - self.alone) if self.alone < 1 else 0.0

    @property
    def explains(self) -> bool:
        """Whether the thresholds of this module call the new run an ensemble of the parts."""
        return len(self.parts) > 1 and self.agreement >= AGREEMENT and self.gain >= GAIN


def explain(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> Ensemble | None:
    """The few earlier runs that explain a new one, `None` where none do; see `fit`."""
    return _pass_all(new, earlier).explain()


def fit(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> Ensemble | None:
    """Regress a run on earlier runs, whether or not that explains it.

    The sample is drawn by hashes of the query ids that are keyed with the new run's documents:
    the same for the same run, and nobody can spare the sampled queries when making a run,
    because a change to any document draws others. Each transform is tried, and the one whose
    fusion agrees best on the fitted half is reported with its figures on the other half.

    Args:
        new: the new run.
        earlier: id and signature of each earlier run; read once, one held at a time.

    Returns:
        The best fusion, or `None` where there are fewer than `MIN_QUERIES` queries or no earlier
        run has a document in common with the new one on the fitted half.
    """
    return _pass_all(new, earlier).fit()


class Sampled:
    """What a fit needs of runs, taken from them as they pass, so that each is read once.

    Args:
        new: the new run.
    """

    def __init__(self, new: Signature) -> None:
        self._queries = _draw(new)
        self._names: list[str] = []
        self._tops = [_select(new, self._queries)]

    def passing(self, earlier: Iterable[tuple[str, Signature]]) -> Iterator[tuple[str, Signature]]:
        """The same runs, each noted when it is asked for."""
        for name, signature in earlier:
            self._names.append(name)
            self._tops.append(_select(signature, self._queries))
            yield name, signature

    def explain(self) -> Ensemble | None:
        """The few noted runs that explain the new one, `None` where none do."""
        found = self.fit()
        return found if found is not None and found.explains else None

    def fit(self) -> Ensemble | None:
        """As the function `fit`, of the runs noted so far."""
        if not self._names or len(self._queries) < MIN_QUERIES:
            return None
        fitted, held = (_Half.number(np.stack(self._tops)[:, start::2]) for start in (0, 1))
        fusions = [f for name in TRANSFORMS if (f := _fuse(fitted, held, name)) is not None]
        if not fusions:
            return None
        return max(fusions, key=lambda f: f.fitted).describe(self._names, alone=held.alone())


def _pass_all(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> Sampled:
    sampled = Sampled(new)
    for _ in sampled.passing(earlier):
        pass
    return sampled


def _draw(new: Signature) -> tuple[str, ...]:
    """The sampled queries, in an order that has nothing to do with their ids."""
    key = hashlib.blake2b(new.documents.astype("<u8").tobytes()).digest()
    answered = np.flatnonzero(new.documents[:, 0])
    queries = (new.queries[row] for row in answered)
    drawn = sorted(queries, key=lambda q: hashlib.blake2b(q.encode(), key=key).digest())
    return tuple(drawn[:QUERIES])


def _select(signature: Signature, sample: Sequence[str]) -> NDArray[np.uint64]:
    """The first documents for the sampled queries, shape (sample, DEPTH); 0 where there is none."""
    tops = np.zeros((len(sample), DEPTH), np.uint64)
    width = min(DEPTH, signature.documents.shape[1])
    for row, query in enumerate(sample):
        place = bisect_left(signature.queries, query)
        if place < len(signature.queries) and signature.queries[place] == query:
            tops[row, :width] = signature.documents[place, :width]
    return tops


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fusion:
    """A weighted fusion, with its figures on the held-out half."""

    transform: str
    systems: tuple[int, ...]
    weights: NDArray[np.float64]
    queries: int
    fitted: float
    agreement: float
    r2: float | None

    def describe(self, names: Sequence[str], alone: float) -> Ensemble:
        shares = self.weights / self.weights.sum()
        order = np.argsort(-shares, kind="stable")
        return Ensemble(
            parts=tuple(
                Part(id=names[self.systems[place]], weight=float(shares[place]))
                for place in order
                if shares[place] > 0
            ),
            transform=self.transform,
            queries=self.queries,
            r2=self.r2,
            agreement=self.agreement,
            alone=alone,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Half:
    """Half of the sampled queries, with a number for each document of each query.

    Attributes:
        new: int64, shape (queries, DEPTH): numbers of the new run's documents; 0 is none.
        earlier: int32, shape (runs, queries, DEPTH): those of the earlier runs.
        starts: int64, shape (queries + 1,): documents `starts[i]` to `starts[i + 1]` are those of
            query i; the first is 1.
    """

    new: NDArray[np.int32]
    earlier: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def number(cls, tops: NDArray[np.uint64]) -> "_Half":
        """From hashes, shape (runs, queries, DEPTH), the new run first."""
        numbers = np.zeros(tops.shape, np.int32)
        starts = [1]
        for query in range(tops.shape[1]):
            documents, places = np.unique(tops[:, query], return_inverse=True)
            empty = int(documents[0] == 0)
            rows = places.reshape(tops.shape[0], tops.shape[2]) - empty
            numbers[:, query] = np.where(rows < 0, 0, rows + starts[-1])
            starts.append(starts[-1] + len(documents) - empty)
        return cls(new=numbers[0], earlier=numbers[1:], starts=np.array(starts))

    def spread(self, run: NDArray[np.int32], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A run as a value of each document; 0 for those that it has not."""
        spread = np.zeros(self.starts[-1])
        spread[run] = values
        spread[0] = 0
        return spread

    def combine(
        self, systems: Sequence[int], weights: NDArray[np.float64], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The weighted sum of some runs, as a value of each document."""
        parts = [self.spread(self.earlier[system], values) for system in systems]
        combined: NDArray[np.float64] = weights @ np.stack(parts)
        return combined

    def agree(self, fused: NDArray[np.float64]) -> float:
        """Mean rank-biased overlap of the new run's top 10 and that by descending value."""
        tops = np.zeros((len(self.new), TOP), np.uint64)
        for query, (start, end) in enumerate(pairwise(self.starts)):
            order = np.argsort(-fused[start:end], kind="stable")[:TOP]
            order = order[fused[start + order] > 0]
            tops[query, : len(order)] = start + order
        return float(rank_biased_overlap(self.new[:, :TOP].astype(np.uint64), tops).mean())

    def alone(self) -> float:
        """The greatest mean rank-biased overlap of the top 10 of the new run and an earlier one."""
        new = self.new[:, :TOP].astype(np.uint64)
        tops = (run[:, :TOP].astype(np.uint64) for run in self.earlier)
        return max(float(rank_biased_overlap(new, top).mean()) for top in tops)

    def explained(self, fused: NDArray[np.float64], values: NDArray[np.float64]) -> float | None:
        """R² over the documents of the fusion or the new run."""
        target = self.spread(self.new, values)
        present = (target > 0) | (fused > 0)
        target, fused = target[present], fused[present]
        variance = float(((target - target.mean()) ** 2).sum())
        return 1 - float(((target - fused) ** 2).sum()) / variance if variance else None


def _fuse(fitted: _Half, held: _Half, transform: str) -> _Fusion | None:
    """The best fusion under one transform; `None` where no run has anything of the new one."""
    values = TRANSFORMS[transform]
    systems, weights = _choose(fitted, values)
    if not systems:
        return None
    fused = held.combine(systems, weights, values)
    return _Fusion(
        transform=transform,
        systems=tuple(systems),
        weights=weights,
        queries=len(held.new),
        fitted=fitted.agree(fitted.combine(systems, weights, values)),
        agreement=held.agree(fused),
        r2=held.explained(fused, values),
    )


def _choose(half: _Half, values: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
    """Forward selection: at each step the run nearest in angle to what is not yet explained."""
    target = half.spread(half.new, values)
    norms = np.sqrt(((half.earlier > 0) @ values**2).sum(axis=1))
    chosen: list[int] = []
    weights, left = np.empty(0), 1.0
    residual = target
    while len(chosen) < MOST_SYSTEMS:
        near = (residual[half.earlier] @ values).sum(axis=1) / np.maximum(norms, 1e-300)
        near[chosen] = 0
        best = int(np.argmax(near))
        if near[best] <= 0:
            break
        trial = [*chosen, best]
        solved, fused = _regress(half, trial, target, values)
        unexplained = float(((target - fused) ** 2).sum() / (target**2).sum())
        if chosen and unexplained > (1 - _LEAST_STEP) * left:
            break
        chosen, weights, left, residual = trial, solved, unexplained, target - fused
    return chosen, weights


def _regress(
    half: _Half, systems: Sequence[int], target: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Non-negative weights of some runs, and their weighted sum."""
    from scipy.optimize import nnls  # noqa: PLC0415 - 0.2 s, and most calls need no regression

    parts = np.stack([half.spread(half.earlier[system], values) for system in systems], axis=1)
    present = (target > 0) | parts.any(axis=1)
    weights, _ = nnls(parts[present], target[present])
    return weights, parts @ weights


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLikeness:
    """What a run is like.

    Attributes:
        neighbours: all earlier runs that are identical or variants, nearest first.
        ensemble: the few earlier runs that explain it together, `None` where none do.
    """

    neighbours: tuple[Neighbour, ...]
    ensemble: Ensemble | None


def find_likeness(new: Signature, earlier: Iterable[tuple[str, Signature]]) -> RunLikeness:
    """Compare a run with every earlier one.

    Args:
        new: the run.
        earlier: id and signature of each; read once, one held at a time.
    """
    sampled = Sampled(new)
    neighbours = list_alike(new, sampled.passing(earlier))
    return RunLikeness(neighbours=neighbours, ensemble=sampled.explain())


def say_neighbour(others: Mapping[str, Neighbour], *, baseline: bool = False) -> str:
    """How alike two runs are, in a sentence.

    Args:
        others: query set -> the earlier run, the same in all.
        baseline: whether that one is an organiser's.
    """
    (name,) = {other.id for other in others.values()}
    name = f"the baseline {name}" if baseline else name
    if all(other.verdict == "identical" for other in others.values()):
        depth = next(iter(others.values())).likeness.deep.depth
        queries = " and ".join(f"{o.likeness.queries:,} of {s}" for s, o in others.items())
        same = f"the same first {depth} documents as {name} in the same order"
        return f"{same}, in all queries: {queries}"
    return f"near {name}: " + "; ".join(_figures(s, other) for s, other in others.items())


def _figures(query_set: str, other: Neighbour) -> str:
    top, deep = other.likeness.top, other.likeness.deep
    return (
        f"{query_set}: rank-biased overlap {top.rbo.mean:.2f} of the top {top.depth}, "
        f"{deep.rbo.mean:.2f} of the top {deep.depth}; of {other.likeness.queries:,} queries "
        f"{top.same:.0%} have the same top {top.depth}, {other.likeness.heads:.0%} the same first "
        f"{HEAD} in any order"
    )


def say_ensemble(query_set: str, found: Ensemble) -> str:
    """Which runs explain another, in a sentence."""
    parts = ", ".join(f"{part.id} ({part.weight:.0%})" for part in found.parts)
    return (
        f"{query_set}: explained by {parts}: their fusion has rank-biased overlap "
        f"{found.agreement:.2f} with it, the nearest of them alone {found.alone:.2f}"
    )
