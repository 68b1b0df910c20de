"""How often `heldout analyse facets` finds an interaction where there is none.

    python benchmarks/facet_errors.py                the table of intervals.md, a minute
    python benchmarks/facet_errors.py --tables 100

The systems of a world are equally good on every kind of query, so each table in which some pair of
system and facet has a corrected p of at most .05 is an error.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heldout.analyses.facets import FacetsOptions, compare_facets
from heldout.scoring.table import ScoreTable, table_of

__all__ = ["ALPHA", "WORLDS", "FacetWorld", "count_errors"]

ALPHA = 0.05
_DRAWS = 199  # 1 / 200 is the smallest p
_SYSTEMS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetWorld:
    """Tables in which facets mean nothing.

    Attributes:
        name: as the page calls it.
        sizes: queries of each facet.
        outside: queries of none.
        spread: of the first facet's scores, as a multiple of the others'.
        skewed: whether most scores are low and few are high.
    """

    name: str
    sizes: tuple[int, ...]
    outside: int
    spread: float = 1.0
    skewed: bool = False

    @property
    def looks(self) -> int:
        """Pairs of system and facet."""
        return _SYSTEMS * len(self.sizes)

    def draw(self, rng: np.random.Generator) -> tuple[ScoreTable, dict[str, frozenset[str]]]:
        """A table, and its facets."""
        queries = sum(self.sizes) + self.outside
        shape = (_SYSTEMS, queries)
        scores = rng.beta(0.3, 1.5, shape) if self.skewed else 0.5 + 0.05 * rng.normal(size=shape)
        first = slice(0, self.sizes[0])
        scores[:, first] = (scores[:, first] - 0.5) * self.spread + 0.5
        names = [f"q{number}" for number in range(queries)]
        ends = np.cumsum(self.sizes)
        facets = {
            f"facet {end}": frozenset(names[end - size : end])
            for size, end in zip(self.sizes, ends, strict=True)
        }
        rows = {
            f"s{row}": dict(zip(names, cells, strict=True))
            for row, cells in enumerate(scores.round(6).tolist())
        }
        return table_of(rows), facets


WORLDS: Sequence[FacetWorld] = (
    FacetWorld(name="three facets, skewed scores", sizes=(40, 40, 40), outside=0, skewed=True),
    FacetWorld(name="a facet that varies three times as much", sizes=(20,), outside=180, spread=3),
)


def count_errors(world: FacetWorld, *, tables: int) -> int:
    """In how many tables some pair of system and facet is significant."""
    found = 0
    for number in range(tables):
        rng = np.random.default_rng([WORLDS.index(world), number])
        table, facets = world.draw(rng)
        result = compare_facets(table, facets, rng, FacetsOptions(draws=_DRAWS))
        found += any(one.p is not None and one.p <= ALPHA for one in result.interactions)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tables", type=int, default=1000, help="tables of each row")
    tables = parser.parse_args(arguments).tables
    print("| world | looks | tables | a finding at .05 | standard error |")
    print("| --- | --- | --- | --- | --- |")
    for world in WORLDS:
        share = count_errors(world, tables=tables) / tables
        error = (share * (1 - share) / tables) ** 0.5
        print(f"| {world.name} | {world.looks} | {tables:,} | {share:.1%} | {error:.1%} |")


if __name__ == "__main__":
    main()
