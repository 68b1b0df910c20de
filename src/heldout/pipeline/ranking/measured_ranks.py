"""Ranks of entries of which some pairs are not compared: their ranges, shares and facets.

Two entries that are nearly the same stand towards each other as their released scores do, in every
resampling and on every facet, and no range tells them apart. So nothing is said of such a pair
beyond what its scores say; with all others each of the two is compared as any entry is.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.board.log.figures import FacetRanks, Facets, Ranges, Stability
from heldout.board.ranking.comparable import FEWEST_DIFFERENT
from heldout.errors import InputError, Problem
from heldout.pipeline.ranking.ranked_facets import QueryFacet
from heldout.scores import Better, ScoreTable, cut_table
from heldout.stats.resampling import bootstrap_means, rank_rows
from heldout.validity.ranges import rank_ranges

__all__ = ["Apart", "find_near_scores", "measure_facets", "measure_ranges", "measure_shares"]

_LEVEL, _TRIALS = 0.95, 1000
_DECIMALS = 2

Apart = Mapping[str, frozenset[str]]
"""Id -> those that it is not compared with, both ways, for all entries of a table."""


def find_near_scores(table: ScoreTable) -> Apart:
    """Id -> the others whose scores differ from its own for fewer than ten queries.

    Counts between two such entries would tell the labels of those queries.
    """
    near: dict[str, frozenset[str]] = {}
    for row, name in enumerate(table.systems):
        different = (table.values != table.values[row]).sum(axis=1)
        others = np.flatnonzero(different < FEWEST_DIFFERENT).tolist()
        near[name] = frozenset(table.systems[other] for other in others if other != row)
    return near


def measure_ranges(
    table: ScoreTable, apart: Apart, rng: Generator, *, better: Better, level: float = _LEVEL
) -> Ranges:
    """Ranges of ranks that hold at once; a pair that is not compared is not told apart.

    All pairs are in the family, also those that are not compared: that makes no range too narrow.

    Args:
        table: scores by query, in the order that entries came.
        apart: the pairs that are not compared.
        rng: where signs come from.
        better: which scores are better.
        level: chance that all ranges hold.

    Raises:
        InputError: as `validity.ranges.rank_ranges`.
    """
    found = rank_ranges(table, rng, better=better, level=level)
    n = len(found.systems)
    told = np.triu(np.nan_to_num(found.p, nan=1.0) <= round(1 - level, 12), 1)
    told &= ~_mark(found.systems, apart)
    place = [found.systems.index(name) for name in table.systems]
    return Ranges(
        low=tuple((1 + told.sum(axis=0))[place].tolist()),
        high=tuple((n - told.sum(axis=1))[place].tolist()),
        level=found.level,
        flips=found.flips,
        pairs=n * (n - 1) // 2,
    )


def measure_shares(
    table: ScoreTable, apart: Apart, ranked: Sequence[str], rng: Generator, *, better: Better
) -> Stability:
    """Shares of resamplings of the queries in which an entry had a rank.

    Args:
        table: scores by query, in the order that entries came: of equal means the earlier is first.
        apart: the pairs that are not compared.
        ranked: the entries by released score, the best first.
        rng: where draws come from.
        better: which scores are better.
    """
    means = bootstrap_means(_signed(table, better), rng, trials=_TRIALS)
    ranks = _rank_apart(means, table.systems, apart, ranked)
    cells = [np.bincount(column - 1, minlength=len(table.systems)) for column in ranks.T]
    shares = (np.array(cells) / _TRIALS).round(_DECIMALS).tolist()
    return Stability(trials=_TRIALS, shares=tuple(tuple(row) for row in shares))


def measure_facets(
    table: ScoreTable,
    facets: Sequence[QueryFacet],
    apart: Apart,
    ranked: Sequence[str],
    rng: Generator,
    *,
    better: Better,
) -> Facets:
    """Standings by facet; pairs whose scores are near on a facet are not compared on it.

    Args:
        table: scores by query, in the order that entries came.
        facets: all there are, of one least size; smaller ones are named and no more.
        apart: the pairs that are not compared at all.
        ranked: the entries by released score, the best first.
        rng: where signs come from; each facet draws from a stream of its own.
        better: which scores are better.

    Raises:
        InputError: code `no-facet`.
    """
    if not facets:
        raise InputError(
            Problem(
                code="no-facet",
                path="board.toml",
                found="no public view with facets of these queries",
                expected="one that names a file of groups of queries",
            )
        )
    cuts = [(facet, cut_table(table, facet.queries)) for facet in facets]
    large = [(facet, cut) for facet, cut in cuts if len(cut.queries) >= facet.least]
    level = round(1 - (1 - _LEVEL) / max(1, len(large)), 12)
    streams = rng.spawn(len(large))
    told, flips = [], 0
    for (facet, cut), stream in zip(large, streams, strict=True):
        near = find_near_scores(cut)
        here = {name: apart[name] | near[name] for name in cut.systems}
        ranges = measure_ranges(cut, here, stream, better=better, level=level)
        flips = ranges.flips
        means = np.round([[cut.mean(name) or 0.0 for name in cut.systems]], 12)
        signed = means if better == "higher" else -means
        told.append(
            FacetRanks(
                of=facet.of,
                facet=facet.name,
                queries=len(cut.queries),
                rank=tuple(_rank_apart(signed, cut.systems, here, ranked, shared=True)[0].tolist()),
                low=ranges.low,
                high=ranges.high,
            )
        )
    n = len(table.systems)
    return Facets(
        told=tuple(told),
        withheld=tuple(facet.name for facet, cut in cuts if len(cut.queries) < facet.least),
        least=min(facet.least for facet in facets),
        level=_LEVEL,
        flips=flips,
        pairs=n * (n - 1) // 2,
    )


def _rank_apart(
    means: NDArray[np.float64],
    systems: Sequence[str],
    apart: Apart,
    ranked: Sequence[str],
    *,
    shared: bool = False,
) -> NDArray[np.int64]:
    """Ranks within each row; a pair that is not compared keeps the order of released scores."""
    ranks, _ = rank_rows(means, "shared" if shared else "earlier")
    place = {name: at for at, name in enumerate(ranked)}
    for column, name in enumerate(systems):
        for other in (at for at, one in enumerate(systems) if one in apart[name]):
            earlier = other < column and not shared
            above = means[:, other] > means[:, column]
            above |= earlier & (means[:, other] == means[:, column])
            ranks[:, column] += int(place[systems[other]] < place[name]) - above
    return ranks


def _mark(systems: Sequence[str], apart: Apart) -> NDArray[np.bool_]:
    """True for the pairs that are not compared, shape (systems, systems)."""
    return np.array([[one in apart[name] for one in systems] for name in systems], np.bool_)


def _signed(table: ScoreTable, better: Better) -> NDArray[np.float64]:
    return table.values if better == "higher" else -table.values
