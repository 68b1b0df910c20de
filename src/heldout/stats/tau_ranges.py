"""How alike two sets of labels order runs: Kendall's tau among all, and among those that matter.

One tau over all runs hides what happens at the top: in the study it is .65 over 16 runs and .16
over the best ten (Arabzadeh et al. 2021, table 3).

No interval is given: a bootstrap of queries orders runs by fewer different queries, which lowers
every tau. Of 45 runs on 50 queries its 95% held the true one in no sample, and no other interval
that was tried holds everywhere (benchmarks/tau_coverage.py).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heldout.stats.rank_correlation import kendall

Floats = NDArray[np.float64]
_TOP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TauRange:
    """Kendall's tau between the orders on both labels, among some of the runs.

    Attributes:
        name: which runs.
        runs: how many.
        tau: tau-b; `None` where undefined.
        discordant: pairs that one of the labels orders one way, and the other the other way.
        pairs: all pairs.
    """

    name: str
    runs: int
    tau: float | None
    discordant: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How alike the preference labels would rank runs if the same pairs were judged again.

    Attributes:
        tau: Kendall's tau-b between the ranking and that by redrawn judgments, on the same
            queries: mean of all draws.
        draws: labels drawn.
    """

    tau: float
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """Means of runs on both labels; higher ones are better.

    Attributes:
        before: float64, shape (runs,).
        after: same shape.
    """

    before: Floats
    after: Floats


def tails(level: float) -> tuple[float, float]:
    """The quantiles that an interval of this level ends at."""
    return (1 - level) / 2, (1 + level) / 2


def find_taus(
    runs: Sequence[str],
    means: Both,
    *,
    pooled: AbstractSet[str] = frozenset(),
    apart: str = "",
) -> tuple[TauRange, ...]:
    """Tau among all runs, the best ten before, the pooled ones, and with one that stands apart.

    Args:
        runs: their names.
        means: of each run.
        pooled: runs whose first documents were in the pools.
        apart: a run in no range but one of its own: the perfect run of a comparison of labels.

    Returns:
        One for each range that is not that of all runs again.
    """
    places = [place for place, run in enumerate(runs) if run != apart]
    ranges = {"all": places}
    if len(places) > _TOP:
        best = sorted(places, key=lambda place: -means.before[place])[:_TOP]
        ranges[f"the best {_TOP} before"] = best
    inside = [place for place in places if runs[place] in pooled]
    if 0 < len(inside) < len(places):
        ranges["pooled"] = inside
    if len(places) < len(runs):
        ranges[f"all and {apart}"] = list(range(len(runs)))
    return tuple(_range(name, some, means) for name, some in ranges.items())


def noise_of(after: Floats, redrawn: Floats) -> Noise | None:
    """How alike redrawn labels rank runs.

    Args:
        after: means of the runs, shape (runs,).
        redrawn: means on labels drawn again, shape (draws, runs).

    Returns:
        `None` where tau is defined in no draw.
    """
    taus = [tau for tau in (kendall(after, one) for one in redrawn) if tau is not None]
    if not taus:
        return None
    return Noise(tau=float(np.mean(taus)), draws=len(redrawn))


def _range(name: str, places: Sequence[int], means: Both) -> TauRange:
    before, after = means.before[list(places)], means.after[list(places)]
    first, second = np.triu_indices(len(places), k=1)
    against = np.sign(before[first] - before[second]) * np.sign(after[first] - after[second])
    return TauRange(
        name=name,
        runs=len(places),
        tau=kendall(before, after),
        discordant=int((against < 0).sum()),
        pairs=len(first),
    )
