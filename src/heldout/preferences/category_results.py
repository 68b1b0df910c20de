"""What people preferred where a run and the labels agree, and where they do not.

In category A the run shows the known answer first, and that is compared with its second document;
in B it shows another one, which is compared with the known answer. Labels that are the best answers
would win both (shallow-pooling, section 3.2, tables 1 and 2, figure 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.stats import binomtest

from heldout.preferences.categories import Category, Split
from heldout.preferences.votes import Votes

__all__ = ["CategoryResult", "count_category", "count_preferences"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryResult:
    """The pairs of one category.

    Attributes:
        category: `A` or `B`.
        queries: of the category.
        known_preferred: queries where more people preferred the known answer.
        other_preferred: where more preferred the other passage.
        drawn: where as many preferred either.
        unjudged: queries without a vote.
        p: of the exact two-sided binomial test of both preferences; `None` without a query.
        low, high: of `share`, by Clopper and Pearson; `None` without a query.
    """

    category: Category
    queries: int
    known_preferred: int
    other_preferred: int
    drawn: int
    unjudged: int
    p: float | None
    low: float | None
    high: float | None

    @property
    def decided(self) -> int:
        """Queries where more people preferred one of the two."""
        return self.known_preferred + self.other_preferred

    @property
    def top_preferred(self) -> int:
        """Queries where the run's first document was preferred: the known answer in A."""
        return self.known_preferred if self.category == "A" else self.other_preferred

    @property
    def share(self) -> float | None:
        """The share that preferred the run's first document; `None` without a query."""
        return self.top_preferred / self.decided if self.decided else None


def count_preferences(
    splits: Sequence[Split], votes: Votes, *, level: float = 0.95
) -> tuple[CategoryResult, CategoryResult]:
    """Both categories.

    Args:
        splits: each query's category and pair, by the documents that stand for their texts.
        votes: those that count.
        level: of the intervals.
    """
    return _count("A", splits, votes, level), _count("B", splits, votes, level)


def count_category(
    category: Category,
    *,
    known: int,
    other: int,
    drawn: int = 0,
    unjudged: int = 0,
    level: float = 0.95,
) -> CategoryResult:
    """A category from its counts.

    Args:
        category: which.
        known: queries where the known answer was preferred.
        other: where the other passage was.
        drawn: where as many preferred either.
        unjudged: without a vote.
        level: of the interval.
    """
    first = known if category == "A" else other
    p = low = high = None
    if known + other:
        test = binomtest(first, known + other)
        interval = test.proportion_ci(level, "exact")
        p, low, high = float(test.pvalue), float(interval.low), float(interval.high)
    return CategoryResult(
        category=category,
        queries=known + other + drawn + unjudged,
        known_preferred=known,
        other_preferred=other,
        drawn=drawn,
        unjudged=unjudged,
        p=p,
        low=low,
        high=high,
    )


def _count(
    category: Category, splits: Sequence[Split], votes: Votes, level: float
) -> CategoryResult:
    tally = {"known": 0, "other": 0, "drawn": 0, "unjudged": 0}
    for one in splits:
        if one.category != category:
            continue
        pair = (min(one.known, one.other), max(one.known, one.other))
        cast = votes.get(one.query, {}).get(pair)
        if cast is None:
            tally["unjudged"] += 1
            continue
        lead = (cast.first - cast.second) * (1 if one.known < one.other else -1)
        tally["known" if lead > 0 else "other" if lead < 0 else "drawn"] += 1
    return count_category(category, **tally, level=level)
