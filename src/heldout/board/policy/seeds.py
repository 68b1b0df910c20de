"""Whether runs that are given as seeds of one system can be: alike, and none a copy of another."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from heldout.board.policy.similarity import TOP, Likeness, classify, compare
from heldout.ids import query_set_of, seed_of
from heldout.trec.scans import Signature

__all__ = ["SeedFault", "compare_seeds", "say_fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedFault:
    """Two runs of one query set that cannot differ by their seed alone.

    Attributes:
        first, second: their names, `SET`, `SET~2` and so on.
        copied: whether both have the same first 100 documents in the same order in all queries;
            else they are so unlike that runs of two submissions would not be called variants.
        likeness: how alike they are; `None` for a copy, and where both answer no common query.
    """

    first: str
    second: str
    copied: bool
    likeness: Likeness | None = None


def compare_seeds(signatures: Mapping[str, Signature]) -> tuple[SeedFault, ...]:
    """Hold every seed against the first of its query set, and look for copies among all of them.

    Args:
        signatures: run -> its tops; of all query sets.
    """
    names = sorted(signatures, key=lambda name: (query_set_of(name), seed_of(name)))
    faults = [
        _compare(first, second, signatures)
        for first, second in combinations(names, 2)
        if query_set_of(first) == query_set_of(second)
    ]
    return tuple(fault for fault in faults if fault is not None)


def say_fault(fault: SeedFault) -> str:
    """What is wrong with two seeds, in a sentence."""
    if fault.copied:
        same = f"{fault.second} has the same documents in the same order as {fault.first}"
        return f"{same}, in all queries"
    if fault.likeness is None:
        return f"{fault.second} answers no query that {fault.first} answers"
    top, queries = fault.likeness.top, fault.likeness.queries
    return (
        f"{fault.second} against {fault.first}: rank-biased overlap {top.rbo.mean:.2f} of the top "
        f"{TOP}, the same top {TOP} in {top.same:.0%} of {queries:,} queries"
    )


def _compare(first: str, second: str, signatures: Mapping[str, Signature]) -> SeedFault | None:
    one, other = signatures[first], signatures[second]
    if one.queries == other.queries and np.array_equal(one.documents, other.documents):
        return SeedFault(first=first, second=second, copied=True)
    if seed_of(first) != 1:
        return None
    likeness = compare(one, other)
    if likeness is not None and classify(likeness) != "none":
        return None
    return SeedFault(first=first, second=second, copied=False, likeness=likeness)
