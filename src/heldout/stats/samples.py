"""Many samples side by side, each as its distinct values and how often it has them.

A sum over a sample, its ranks with their ties, and the order of its values follow from these, for
all samples at once, however different their sizes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.stats.exact import DECIMALS

__all__ = ["Samples", "SignedRanks", "gather_samples"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SignedRanks:
    """Ranks of the sizes of values, those of 0 left out; ties share their mean rank.

    Attributes:
        doubled: twice the ranks, one for each group of ties, ascending within a sample.
        tied: how many values are in a group.
        owners: the sample of a group.
        above: twice the rank sum of positive values, for each sample.
        ties: the sum of t³ - t over groups of t, for each sample.
        wins: positive values, for each sample.
        losses: negative values, for each sample.
    """

    doubled: Integers
    tied: Integers
    owners: Integers
    above: Integers
    ties: Integers
    wins: Integers
    losses: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Samples, of which some may be empty.

    Attributes:
        values: the distinct values of the first sample, ascending, then those of the second, and
            so on.
        counts: how often each occurs in its sample.
        owners: the place of its sample.
        sizes: how many values each sample has.
    """

    values: Floats
    counts: Integers
    owners: Integers
    sizes: Integers

    def sum(self, terms: Floats | Integers) -> Floats:
        """A sum for each sample, of a term for each distinct value."""
        return np.asarray(np.bincount(self.owners, terms, len(self.sizes)), np.float64)

    def distinct(self) -> Integers:
        """How many distinct values each sample has."""
        return np.bincount(self.owners, minlength=len(self.sizes))

    def means(self) -> Floats:
        """The mean of each sample; 0 where it is less than 1e-12, and of an empty sample."""
        means = self.sum(self.counts * self.values) / np.maximum(self.sizes, 1)
        # Values that cancel out leave a rounding error, and that is no direction
        return np.where(np.round(means, DECIMALS) == 0, 0.0, means)

    def squares(self, means: Floats) -> Floats:
        """Sums of squared distances from the means, 0 only where all values are the same."""
        apart = self.values - means[self.owners]
        return np.where(self.distinct() > 1, self.sum(self.counts * apart * apart), 0.0)

    def without_zeros(self) -> "Samples":
        """The samples without their values of 0."""
        kept = self.values != 0
        counts, owners = self.counts[kept], self.owners[kept]
        sizes = np.bincount(owners, weights=counts, minlength=len(self.sizes))
        return Samples(
            values=self.values[kept], counts=counts, owners=owners, sizes=sizes.astype(np.int64)
        )

    def rank_sizes(self) -> SignedRanks:
        """Rank the sizes of all values, none of which is 0, within each sample."""
        size = np.abs(self.values)
        order = np.lexsort((size, self.owners))
        size, owners, counts = size[order], self.owners[order], self.counts[order]
        first = _begins(size, owners)
        tied = np.add.reduceat(counts, first) if len(first) else counts
        positive = counts * (self.values[order] > 0)
        wins = np.add.reduceat(positive, first) if len(first) else positive
        group = owners[first]
        before = np.cumsum(tied) - tied - (np.cumsum(self.sizes) - self.sizes)[group]
        doubled = 2 * before + tied + 1
        above, ties, won = (
            np.bincount(group, weights=terms, minlength=len(self.sizes)).astype(np.int64)
            for terms in (wins * doubled, tied**3 - tied, wins)
        )
        return SignedRanks(
            doubled=doubled,
            tied=tied,
            owners=group,
            above=above,
            ties=ties,
            wins=won,
            losses=self.sizes - won,
        )


def gather_samples(values: Floats, present: NDArray[np.bool_]) -> Samples:
    """Gather the values of each row.

    Args:
        values: shape (samples, places), finite where present; equal ones are equal floats.
        present: same shape: whether a value belongs to the sample.
    """
    # What is not a number is sorted to the end
    ordered = np.sort(np.where(present, values + 0.0, np.nan), axis=1)
    sizes = present.sum(axis=1, dtype=np.int64)
    flat = ordered[np.arange(values.shape[1]) < sizes[:, None]]
    owners = np.repeat(np.arange(len(values)), sizes)
    first = _begins(flat, owners)
    return Samples(
        values=flat[first],
        counts=np.diff(first, append=len(flat)),
        owners=owners[first],
        sizes=sizes,
    )


def _begins(values: Floats, owners: Integers) -> Integers:
    """Where a value differs from the one before, or is of another sample."""
    begins = np.ones(len(values), np.bool_)
    begins[1:] = (values[1:] != values[:-1]) | (owners[1:] != owners[:-1])
    return np.flatnonzero(begins)
