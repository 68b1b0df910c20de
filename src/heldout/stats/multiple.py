"""Corrections of p-values for the size of their family.

An undefined p stays undefined and counts in the family all the same: that a test could not be made
is found out only by looking, so it makes the family no smaller.
"""

from collections.abc import Sequence

__all__ = ["bonferroni", "holm"]


def bonferroni(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Each p times the size of the family, at most 1.

    Args:
        ps: all p-values of the family; `None` where undefined.

    Source:
        Dunn 1961.
    """
    return tuple(None if p is None else min(1.0, p * len(ps)) for p in ps)


def holm(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Bonferroni step by step, from the smallest p: never larger, and as safe.

    Args:
        ps: all p-values of the family; `None` where undefined, which ranks behind all others.

    Source:
        Holm 1979.
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    largest = 0.0
    for step, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, p * (len(ps) - step)))
        corrected[place] = largest
    return tuple(corrected)
