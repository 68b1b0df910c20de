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
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heldout.board.policy.similarity import (
    DEPTH,
    HEAD,
    TOP,
    Neighbour,
    find_neighbour,
    order_neighbours,
    rank_biased_overlap,
)
from heldout.board.policy.sketches import Sample, Screen, Sketches, bound_overlap, sketch
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

PROPOSED = 16
"""Earlier runs that are proposed at each step of a fit. With 4 of them two of 465 fits of real runs
and their fusions differ from a fit over all earlier runs, with 16 none."""

_ROUNDING = 1e-12
"""What a mean over queries may differ by where it is summed in another order."""

_RANKS = np.arange(1, DEPTH + 1, dtype=np.float64)
_LOST = Signature(queries=(), documents=np.zeros((0, DEPTH), np.uint64))

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
class FusionPart:
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

    parts: tuple[FusionPart, ...]
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


class Sampled:
    """What a fit needs of runs, taken from them as they pass, so that each is read once.

    The sample is drawn by hashes of the query ids that are keyed with the new run's documents:
    the same for the same run, and nobody can spare the sampled queries when making a run,
    because a change to any document draws others.

    Args:
        new: the new run.
        earlier: id and signature of earlier runs; read once, one held at a time.

    Attributes:
        queries: the sampled ones, in the order of the sample.
    """

    def __init__(self, new: Signature, earlier: Iterable[tuple[str, Signature]] = ()) -> None:
        self.queries = _draw(new)
        self._new = _select(new, self.queries)
        self._names: dict[int, str] = {}
        self._tops: dict[int, NDArray[np.uint64]] = {}
        self._solved: dict[str, _Solved] = {name: {} for name in TRANSFORMS}
        for index, (name, signature) in enumerate(earlier):
            self.note(index, name, signature)

    def note(self, index: int, name: str, signature: Signature) -> None:
        """Take what a fit needs of an earlier run, the first being number 0."""
        self._names[index] = name
        self._tops[index] = _select(signature, self.queries)

    def explain(self) -> Ensemble | None:
        """The few noted runs that explain the new one, `None` where none do."""
        found = self.fit()
        return found if found is not None and found.explains else None

    def fit(self) -> Ensemble | None:
        """Regress the run on the noted ones, whether or not that explains it.

        Each transform is tried, and the one whose fusion agrees best on the fitted half is reported
        with its figures on the other half.

        Returns:
            The best fusion, or `None` where there are fewer than `MIN_QUERIES` queries or no
            earlier run has a document in common with the new one on the fitted half.
        """
        if not self._names or len(self.queries) < MIN_QUERIES:
            return None
        fitted, held = self._halves()
        chosen = {n: choice for n, choice in self._choose_each(fitted).items() if choice.systems}
        if not chosen:
            return None
        agreed = {
            name: fitted.agree(fitted.combine(one.systems, one.weights, TRANSFORMS[name]))
            for name, one in chosen.items()
        }
        best = max(agreed, key=agreed.__getitem__)
        names = [self._names[index] for index in sorted(self._names)]
        return _describe(held, best, chosen[best], names)

    def _choose_each(self, half: "_Half") -> dict[str, "_Choice"]:
        """Return what is chosen of the noted runs, under each transform."""
        indices = sorted(self._tops)
        return {n: _choose(half, v, self._solved[n], indices) for n, v in TRANSFORMS.items()}

    def _halves(self) -> tuple["_Half", "_Half"]:
        """To fit and to judge; the noted runs in the order of their places."""
        tops = np.stack([self._new, *(self._tops[index] for index in sorted(self._tops))])
        return _Half.number(tops[:, 0::2]), _Half.number(tops[:, 1::2])

    def look_up(
        self, sketches: NDArray[np.uint16], earlier: Sketches
    ) -> Generator[int, Signature | None, None]:
        """Note those of many earlier runs that a fit may choose.

        At each step of the forward selection `PROPOSED` runs are noted whose first documents lie
        nearest to what is not yet explained, until a fit of the noted runs needs no other; and
        those that may agree best by themselves.

        Args:
            sketches: of the earlier runs for `queries`, shape (runs, queries, TOP).
            earlier: their names, and the key by which they were made.

        Yields:
            The number of a run whose signature has to be sent.
        """
        if len(self.queries) < MIN_QUERIES or not len(sketches):
            return
        sample = Sample(sketches[:, 0::2], earlier.key)
        proposed: dict[tuple[str, tuple[int, ...]], list[int]] = {}
        while True:
            half, _ = self._halves()
            indices = sorted(self._tops)
            wanted: set[int] = set()
            for name, choice in self._choose_each(half).items():
                for step, residual in enumerate(choice.residuals):
                    known = name, tuple(indices[one] for one in choice.systems[:step])
                    if known not in proposed:
                        found = sample.propose(*half.open(residual), TRANSFORMS[name], PROPOSED)
                        proposed[known] = found.tolist()
                    wanted.update(proposed[known])
            if wanted <= self._tops.keys():
                return
            for index in wanted - self._tops.keys():
                self.note(index, earlier.names[index], (yield index) or _LOST)
            if not indices:
                yield from self._note_nearest(sketches[:, 1::2], earlier)

    def _note_nearest(
        self, sketches: NDArray[np.uint16], earlier: Sketches
    ) -> Generator[int, Signature | None, None]:
        """Note runs until no other agrees better with the new one on the held-out half."""
        own = self._new[1::2, :TOP]
        bounds, best = bound_overlap(own, sketches, earlier.key), 0.0
        for index in np.argsort(-bounds, kind="stable").tolist():
            if bounds[index] <= best + _ROUNDING:
                return
            if index not in self._tops:
                self.note(index, earlier.names[index], (yield index) or _LOST)
            top = self._tops[index][1::2, :TOP]
            best = max(best, float(rank_biased_overlap(own, top).mean()))


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
        index = bisect_left(signature.queries, query)
        if index < len(signature.queries) and signature.queries[index] == query:
            tops[row, :width] = signature.documents[index, :width]
    return tops


@dataclass(frozen=True, slots=True, kw_only=True)
class _Half:
    """Half of the sampled queries, with a number for each document of each query.

    Attributes:
        new: int64, shape (queries, DEPTH): numbers of the new run's documents; 0 is none.
        earlier: int32, shape (runs, queries, DEPTH): those of the earlier runs.
        starts: int64, shape (queries + 1,): documents `starts[i]` to `starts[i + 1]` are those of
            query i; the first is 1.
        documents: the document with each number.
    """

    new: NDArray[np.int32]
    earlier: NDArray[np.int32]
    starts: NDArray[np.int64]
    documents: NDArray[np.uint64]

    @classmethod
    def number(cls, tops: NDArray[np.uint64]) -> "_Half":
        """From hashes, shape (runs, queries, DEPTH), the new run first."""
        numbers = np.zeros(tops.shape, np.int32)
        starts, every = [1], [np.zeros(1, np.uint64)]
        for query in range(tops.shape[1]):
            documents, indices = np.unique(tops[:, query], return_inverse=True)
            empty = int(documents[0] == 0)
            rows = indices.reshape(tops.shape[0], tops.shape[2]) - empty
            numbers[:, query] = np.where(rows < 0, 0, rows + starts[-1])
            starts.append(starts[-1] + len(documents) - empty)
            every.append(documents[empty:])
        return cls(
            new=numbers[0],
            earlier=numbers[1:],
            starts=np.array(starts),
            documents=np.concatenate(every),
        )

    def open(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.float64]]:
        """The documents whose value is not 0, the query of each, and the values."""
        numbers = np.flatnonzero(values)
        queries = np.searchsorted(self.starts, numbers, side="right") - 1
        return self.documents[numbers], queries, values[numbers]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What forward selection chose.

    Attributes:
        systems: in the order in which they were chosen.
        weights: of each.
        residuals: what was not explained before each step that could choose another.
    """

    systems: tuple[int, ...]
    weights: NDArray[np.float64]
    residuals: tuple[NDArray[np.float64], ...]


def _describe(held: _Half, transform: str, choice: _Choice, names: Sequence[str]) -> Ensemble:
    """Say what was chosen, with its figures on the held-out half."""
    values, shares = TRANSFORMS[transform], choice.weights / choice.weights.sum()
    fused = held.combine(choice.systems, choice.weights, values)
    return Ensemble(
        parts=tuple(
            FusionPart(id=names[choice.systems[index]], weight=float(shares[index]))
            for index in np.argsort(-shares, kind="stable")
            if shares[index] > 0
        ),
        transform=transform,
        queries=len(held.new),
        r2=held.explained(fused, values),
        agreement=held.agree(fused),
        alone=held.alone(),
    )


_Solved = dict[tuple[int, ...], NDArray[np.float64]]
"""Runs, in the order of choice -> their weights."""


def _choose(
    half: _Half,
    values: NDArray[np.float64],
    solved: _Solved,
    indices: Sequence[int],
) -> _Choice:
    """Forward selection: at each step the run nearest in angle to what is not yet explained.

    Args:
        half: the queries to fit.
        values: what stands for a document at each rank.
        solved: weights that are known; those that are solved here are added.
        indices: what `solved` calls each of the half's earlier runs.
    """
    target = half.spread(half.new, values)
    norms = np.sqrt(((half.earlier > 0) @ values**2).sum(axis=1))
    chosen: list[int] = []
    weights, left = np.empty(0), 1.0
    residuals = [target]
    while len(chosen) < min(MOST_SYSTEMS, len(half.earlier)):
        near = (residuals[-1][half.earlier] @ values).sum(axis=1) / np.maximum(norms, 1e-300)
        near[chosen] = 0
        best = int(np.argmax(near))
        if near[best] <= 0:
            break
        trial = [*chosen, best]
        parts = np.stack([half.spread(half.earlier[one], values) for one in trial], axis=1)
        known = tuple(indices[one] for one in trial)
        if known not in solved:
            solved[known] = _regress(parts, target)
        fused = parts @ solved[known]
        unexplained = float(((target - fused) ** 2).sum() / (target**2).sum())
        if chosen and unexplained > (1 - _LEAST_STEP) * left:
            break
        chosen, weights, left = trial, solved[known], unexplained
        residuals.append(target - fused)
    steps = residuals[:MOST_SYSTEMS]
    return _Choice(systems=tuple(chosen), weights=weights, residuals=tuple(steps))


def _regress(parts: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the non-negative weights of some runs of least squared error.

    `scipy.optimize.nnls` gives the same, and importing it takes longer than all fits of a review.

    Args:
        parts: shape (documents, runs), of at most `MOST_SYSTEMS` runs.
        target: shape (documents,).
    """
    present = (target > 0) | parts.any(axis=1)
    both = np.column_stack([parts[present], target[present]])
    # The same problem in as many rows as columns: 10 ms less, and there are dozens of them.
    triangle = np.linalg.qr(both).R
    columns, aim = triangle[:, :-1], triangle[:, -1]
    weights, least = np.zeros(parts.shape[1]), float(aim @ aim)
    for some in map(list, product((False, True), repeat=len(weights))):
        part = np.linalg.lstsq(columns[:, some], aim, rcond=None)[0]
        error = float(((aim - columns[:, some] @ part) ** 2).sum())
        if error < least and (part >= 0).all():
            weights, least = np.zeros(len(some)), error
            weights[some] = part
    return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLikeness:
    """What a run is like.

    Attributes:
        neighbours: all earlier runs that are identical or variants, nearest first.
        ensemble: the few earlier runs that explain it together, `None` where none do.
    """

    neighbours: tuple[Neighbour, ...]
    ensemble: Ensemble | None


def search_likeness(
    new: Signature, earlier: Sketches
) -> Generator[int, Signature | None, RunLikeness]:
    """Look up what earlier runs a new one is like; only these are compared in full.

    Args:
        new: the run.
        earlier: sketches of all earlier ones.

    Yields:
        The number of a run whose signature has to be sent, `None` where it is lost.

    Returns:
        What the run is like.
    """
    sampled = Sampled(new)
    columns = {query: column for column, query in enumerate(earlier.queries)}
    screen = Screen(sketch(new, columns, earlier.key), int(np.count_nonzero(new.documents[:, 0])))
    drawn = np.array([columns.get(query, -1) for query in sampled.queries], np.int64)
    sketches = np.where(drawn[:, None] < 0, np.uint16(0), earlier.tops[:, drawn])
    found: list[Neighbour] = []
    for index in np.flatnonzero(screen.admit(earlier.tops)).tolist():
        one = find_neighbour(new, earlier.names[index], (yield index) or _LOST)
        found += [] if one is None else [one]
    yield from sampled.look_up(sketches, earlier)
    return RunLikeness(neighbours=order_neighbours(found), ensemble=sampled.explain())


def say_neighbour(others: Mapping[str, Neighbour], *, baseline: bool = False) -> str:
    """Return how alike two runs are, in a sentence.

    Args:
        others: query set -> the earlier run, the same in all.
        baseline: whether that one is an organiser's.
    """
    (name,) = {other.id for other in others.values()}
    name = f"the baseline {name}" if baseline else name
    if all(other.verdict == "identical" for other in others.values()):
        queries = " and ".join(f"{o.likeness.queries:,} of {s}" for s, o in others.items())
        same = f"the same first {DEPTH} documents as {name} in the same order"
        return f"{same}, in all queries: {queries}"
    return f"near {name}: " + "; ".join(_figures(s, other) for s, other in others.items())


def _figures(query_set: str, other: Neighbour) -> str:
    found = other.likeness
    return (
        f"{query_set}: rank-biased overlap {found.rbo:.2f} of the top {TOP}, "
        f"{found.deep:.2f} of the top {DEPTH}; of {found.queries:,} queries "
        f"{found.same:.0%} have the same top {TOP}, {found.heads:.0%} the same first "
        f"{HEAD} in any order, {found.interleaved:.0%} the first {HEAD} of one run in the "
        f"top {TOP} of the other in the same order, {found.contained:.0%} in any order"
    )


def say_ensemble(query_set: str, found: Ensemble) -> str:
    """Return which runs explain another, in a sentence."""
    parts = ", ".join(f"{part.id} ({part.weight:.0%})" for part in found.parts)
    return (
        f"{query_set}: explained by {parts}: their fusion has rank-biased overlap "
        f"{found.agreement:.2f} with it, the nearest of them alone {found.alone:.2f}"
    )
