"""What each place of annotation adds, as observed and in draws of queries."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.survivorship.depths.depth_scores import DepthScores

__all__ = ["Added", "Floats", "Streams", "add_up", "open_streams"]

_BLOCK = 50
"""Draws at once: of 60,000 queries that takes 25 MB."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Added:
    """What each place adds, as observed and in draws of queries.

    Attributes:
        annotated: queries, discarded ones too.
        new: queries, float64, shape (draws, places); the first row is as observed.
        sums: to the sum of scores of each system, shape (draws, places) each; the same.
        spread: standard deviation of each system's scores; 0 where all are the same.
        largest: score there is; `None` where there is no end.
    """

    annotated: int
    new: Floats
    sums: tuple[Floats, ...]
    spread: tuple[float, ...]
    largest: float | None

    @property
    def places(self) -> int:
        """How many there are."""
        return len(self.new[0])

    def until(self, places: int) -> "Added":
        """The first places alone."""
        return replace(
            self, new=self.new[:, :places], sums=tuple(one[:, :places] for one in self.sums)
        )


class Streams(NamedTuple):
    """Where draws come from: one stream for the queries, one for each system."""

    queries: Generator
    systems: tuple[Generator, ...]


def open_streams(rng: Generator, systems: Sequence[str]) -> Streams:
    """A stream for each system, by its name, so that it depends on no other system.

    Args:
        rng: one draw is taken of it.
        systems: their names.
    """
    base = int(rng.integers(2**63))
    return Streams(
        queries=np.random.default_rng([base]),
        systems=tuple(np.random.default_rng([base, *name.encode()]) for name in systems),
    )


def add_up(scores: DepthScores, streams: Streams, *, discarded: int, trials: int) -> Added:
    """Sums over the queries, and over queries drawn with replacement, discarded ones too.

    First is drawn how many queries have their first label at each place, then for each system
    what these score.

    Args:
        scores: at each depth from 1 on.
        streams: of the draws.
        discarded: queries that were annotated and have no label.
        trials: how many draws.
    """
    annotated, places = len(scores.queries) + discarded, len(scores.depths)
    first = scores.known.argmax(axis=1)
    counts = np.bincount(first, minlength=places)
    chances = np.append(counts, discarded) / annotated
    drawn = streams.queries.multinomial(annotated, chances, size=trials)[:, :-1]
    new = np.concatenate([counts[np.newaxis], drawn])
    # Each in one order in memory: sums of floats would else depend on the other systems
    systems = [np.ascontiguousarray(values) for values in scores.values]
    return Added(
        annotated=annotated,
        new=new.astype(np.float64),
        sums=tuple(
            _draw_sums(values, first, new, rng)
            for values, rng in zip(systems, streams.systems, strict=True)
        ),
        spread=tuple(_spread(values[:, -1]) for values in systems),
        largest=scores.measure.largest,
    )


def _draw_sums(
    values: Floats, first: NDArray[np.int64], new: NDArray[np.int64], rng: Generator
) -> Floats:
    """What each place adds to one system's sum of scores, shape (draws, places).

    Queries to which the same happened are drawn together: so many that their number has the
    same distribution.

    Args:
        values: of the system, shape (queries, places).
        first: place of each query's first label, counted from 0.
        new: queries by that place, as observed and in draws.
        rng: of this system.
    """
    gains = np.diff(values, axis=1, prepend=0.0)
    sums = np.zeros(new.shape)
    sums[0] = gains.sum(axis=0)
    for place in np.unique(first).tolist():
        kinds, counts = np.unique(gains[first == place], axis=0, return_counts=True)
        for start in range(1, len(new), _BLOCK):
            block = slice(start, start + _BLOCK)
            drawn = rng.multinomial(new[block, place], counts / counts.sum())
            sums[block] += drawn @ kinds
    return sums


def _spread(scores: Floats) -> float:
    """Their standard deviation: 0 for the same number many times, which rounding would hide."""
    return float(scores.std()) if np.ptp(scores) > 0 else 0.0
