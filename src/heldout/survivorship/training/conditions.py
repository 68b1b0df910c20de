"""What re-rankers are trained on: depths of annotation, random controls, shares of the labels.

Every condition takes its triples out of the same sequence and leaves them in order. They differ
in what is left out, in nothing else.

Source: Gupta and MacAvaney, SIGIR 2022 (survivorship-bias), section 5.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["ALL", "WHOLE", "Condition", "paper_conditions", "share_conditions"]

WHOLE = 1.0
"""The share of a condition that is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which triples are trained on.

    Attributes:
        depth: only those whose positive was shown at this place or above; `None` for all that
            annotators selected.
        like: instead a random sample of all, as small as with this depth.
        share: of the labelled queries, a random part of this size, in (0, 1].
    """

    depth: int | None = None
    like: int | None = None
    share: float = WHOLE

    def __post_init__(self) -> None:
        """Refuse what is no condition."""
        sizes = [one for one in (self.depth, self.like) if one is not None]
        narrowed = len(sizes) + (self.share != WHOLE)
        if narrowed > 1 or not 0 < self.share <= 1 or min(sizes, default=1) < 1:
            raise ValueError(self)

    @property
    def name(self) -> str:
        """What it is called in tables: `r=1`, `all`, `all, as few as r=1`, `10%`."""
        if self.depth is not None:
            return f"r={self.depth}"
        if self.like is not None:
            return f"all, as few as r={self.like}"
        return "all" if self.share == WHOLE else f"{self.share:.12g} of all"

    @property
    def folder(self) -> str:
        """What its files are called: letters, digits, points and dashes."""
        if self.depth is not None:
            return f"r{self.depth}"
        if self.like is not None:
            return f"all-like-r{self.like}"
        return "all" if self.share == WHOLE else f"share-{self.share:.12g}"


ALL = Condition()
"""Everything that annotators selected."""


def paper_conditions(depths: Sequence[int], *, controls: Sequence[int]) -> tuple[Condition, ...]:
    """The depths in rising order, all, and the controls.

    Args:
        depths: places from 1.
        controls: depths whose size a random sample is to have.
    """
    return (
        *(Condition(depth=depth) for depth in sorted(set(depths))),
        ALL,
        *(Condition(like=depth) for depth in sorted(set(controls))),
    )


def share_conditions(shares: Sequence[float]) -> tuple[Condition, ...]:
    """A condition for each share of the labelled queries, in rising order."""
    return tuple(Condition(share=share) for share in sorted(set(shares)))
