"""Would the ranking look the same on other queries? Ranks under resampling, and ranks to believe.

Every trial draws queries with replacement and ranks all systems by their mean
(Craswell et al. 2021, §3.1, tables 1 and 2, figure 3). This describes the ranking and is no
confidence statement: percentiles of these ranks hold far less often than they say where systems
are close. Ranks that may be believed are ranges that hold for all systems at once (`rank_ranges`).

A system's range reaches from 1 + the number of systems significantly better to n − the number
significantly worse, by paired sign-flip tests of all pairs with a max-t correction
(Mogstad, Romano, Shaikh and Wilhelm 2024). At level 95% all true ranks lie in their ranges in 95 of
100 samples of queries, near ties too, where percentiles of bootstrapped ranks do not.

That takes for granted that the sample shows how differences vary. Where runs are nearly alike but
fail rarely and badly, few queries show no failure, and no resampling of them can know of one. So
each pair that is separated by little is asked a second time, by a test that takes no distribution
for granted but that no loss exceeds the largest difference in the table (`bounded_mean_p`).

What cannot be separated is not transitive, so ranges make no tiers. Only the lead group is
marked: the systems whose range reaches 1.
"""

from concurrent.futures import Executor
from dataclasses import dataclass
from math import isnan
from typing import Annotated

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses import analysis
from heldout.answers import texts
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow, shade
from heldout.errors import InputError, plural
from heldout.ids import Digest
from heldout.options import Opt
from heldout.scoring.sources import Scores
from heldout.scoring.table import Better, ScoreTable, score_matrix
from heldout.stats import exact, sign_flips, student
from heldout.stats.resampling import DIGITS, TieRule, bootstrap_ranks

_LOSSES = 10
_CELLS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankRanges:
    """Simultaneous ranges of ranks.

    Attributes:
        systems: names, the best first.
        means: their scores.
        low, high: first and last rank of each system's range, from 1.
        p: float64, shape (systems, systems), corrected over all pairs and both directions:
            that the one of a pair with the better mean is not better. NaN on the diagonal and
            where two systems have equal scores on every query.
        pairs: how many pairs were tested, so 2 * pairs hypotheses form the family.
        level: chance that all ranges hold.
        flips: sign flips drawn.
        step_down: whether significant pairs leave the maximum.
        queries: how many.
        better: which scores are better.
        doubtful: pairs that are told apart, although losses too rare to be in the sample, and no
            larger than `largest`, could undo the difference of their means.
        largest: the largest difference of two systems on a query.
        digest: of the table of scores.
    """

    systems: tuple[str, ...]
    means: tuple[float, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    p: NDArray[np.float64]
    pairs: int
    level: float
    flips: int
    step_down: bool
    queries: int
    better: Better
    doubtful: int
    largest: float
    digest: Digest

    @property
    def separated(self) -> int:
        """How many pairs are separated."""
        return sum(len(self.high) - high for high in self.high)

    @property
    def lead(self) -> tuple[str, ...]:
        """The lead group: those that may be first."""
        return tuple(name for name, low in zip(self.systems, self.low, strict=True) if low == 1)


def rank_ranges(
    table: ScoreTable,
    rng: Generator,
    *,
    better: Better = "higher",
    level: float = 0.95,
    flips: int = 10_000,
    step_down: bool = True,
    executor: Executor | None = None,
) -> RankRanges:
    """The ranks that each system may have.

    Args:
        table: at least two systems on at least two queries, none missing.
        rng: where signs come from.
        better: which scores are better.
        level: in (0, 1).
        flips: how many, at least 1 / (1 - level), or no pair could be told apart.
        step_down: leave those that are significant out of the maximum for those that follow.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`,
            `too-few-flips`.
    """
    alpha = round(1 - level, 12)
    if alpha * (1 + flips) < 1:
        raise InputError.of(
            "too-few-flips",
            "flips",
            f"{flips}, whose smallest p is {1 / (1 + flips):.2g}",
            alpha=alpha,
        )
    matrix = score_matrix(table, better=better)
    p = sign_flips.max_t(matrix.values, rng, flips=flips, step_down=step_down, executor=executor)
    # Rows stand in the order of their means, so of a pair the upper one is the better.
    apart = np.triu(np.nan_to_num(p, nan=1.0) <= alpha, 1)
    n = len(matrix.systems)
    largest = float((matrix.values.max(axis=0) - matrix.values.min(axis=0)).max())
    return RankRanges(
        systems=matrix.systems,
        means=matrix.means,
        low=tuple((1 + apart.sum(axis=0)).tolist()),
        high=tuple((n - apart.sum(axis=1)).tolist()),
        p=p,
        pairs=int(np.isfinite(np.triu(p, 1)[np.triu_indices(n, 1)]).sum()),
        level=level,
        flips=flips,
        step_down=step_down,
        queries=len(matrix.queries),
        better=better,
        doubtful=_count_doubtful(matrix.values, apart, largest, alpha),
        largest=largest,
        digest=matrix.digest,
    )


def _count_doubtful(
    values: NDArray[np.float64], apart: NDArray[np.bool_], largest: float, alpha: float
) -> int:
    """Return how many of the pairs that are told apart losses too rare to be seen could undo.

    Pairs whose means differ by more than ten of the largest losses are in no doubt.
    """
    queries = values.shape[1]
    means = values.mean(axis=1)
    near = apart & (means[:, np.newaxis] - means < _LOSSES * largest / queries)
    better, worse = np.nonzero(near)
    size = max(1, _CELLS // queries)
    found = 0
    for start in range(0, len(better), size):
        some = slice(start, start + size)
        losses = values[worse[some]] - values[better[some]]
        samples = exact.gather_samples(losses, np.ones(losses.shape, np.bool_))
        found += int((student.bounded_mean_p(samples, null=0.0, bound=largest) > alpha).sum())
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stability:
    """Ranks under the bootstrap.

    Attributes:
        systems: names, the best first.
        means: their scores.
        rank_counts: int64, shape (systems, systems): in how many trials a system had rank
            column + 1.
        trials: how many there were.
        size: queries drawn in each.
        ties: what equal means got.
        tied_trials: trials in which some systems had equal means, so that the rule decided.
        queries: how many there are to draw from.
        better: which scores are better.
        digest: of the table of scores.
    """

    systems: tuple[str, ...]
    means: tuple[float, ...]
    rank_counts: NDArray[np.int64]
    trials: int
    size: int
    ties: TieRule
    tied_trials: int
    queries: int
    better: Better
    digest: Digest

    @property
    def rank_probability(self) -> NDArray[np.float64]:
        """Share of trials in which a system had rank column + 1; rows sum to 1."""
        return self.rank_counts / self.trials

    @property
    def expected_rank(self) -> NDArray[np.float64]:
        """Mean rank of each system over the trials, from 1."""
        ranks = np.arange(1, len(self.systems) + 1)
        return (self.rank_counts @ ranks) / self.trials


def bootstrap_stability(
    table: ScoreTable,
    rng: Generator,
    *,
    better: Better = "higher",
    trials: int = 1000,
    size: int | None = None,
    ties: TieRule = "earlier",
    executor: Executor | None = None,
) -> Stability:
    """Return how often each system gets each rank.

    Args:
        table: at least two systems on at least two queries, none missing; systems in the order
            of their submission, which decides ties.
        rng: where draws come from.
        better: which scores are better.
        trials: how many, >= 1.
        size: queries that a trial draws, >= 1; `None` for as many as there are.
        ties: what equal means get.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`.
    """
    matrix = score_matrix(table, better=better)
    size = len(matrix.queries) if size is None else size
    # In the order of the table: there the earlier submission stands first.
    position = {name: row for row, name in enumerate(matrix.systems)}
    rows = [position[name] for name in table.systems]
    found = bootstrap_ranks(
        matrix.values[rows], rng, trials=trials, size=size, ties=ties, executor=executor
    )
    counts = np.empty_like(found.counts)
    counts[rows] = found.counts
    return Stability(
        systems=matrix.systems,
        means=matrix.means,
        rank_counts=counts,
        trials=trials,
        size=size,
        ties=ties,
        tied_trials=found.tied,
        queries=len(matrix.queries),
        better=better,
        digest=matrix.digest,
    )


_MANY = 30
"""Queries from which on no note says that ranges are wide."""
_TOP = 5
_TIES = {
    "earlier": "of equal means the earlier in the table gets the better rank",
    "shared": "equal means share the best of their ranks",
}


def headline(ranges: RankRanges) -> str:
    """Return who leads, and who may be first as well."""
    best = [
        name
        for name, mean in zip(ranges.systems, ranges.means, strict=True)
        if round(mean, DIGITS) == round(ranges.means[0], DIGITS)
    ]
    return texts.write("stability.headline", ranges=ranges, best=best)


def summary(stability: Stability, ranges: RankRanges) -> tuple[tuple[str, str], ...]:
    """Say what the sentence rests on: how often the first is first, how many ranks are sure."""
    columns = zip(ranges.systems[1:], ranges.p[0, 1:], strict=True)
    return texts.write_facts(
        "stability.summary",
        ranges=ranges,
        certain=sum(low == high for low, high in zip(ranges.low, ranges.high, strict=True)),
        share=int(stability.rank_counts[0, 0]) / stability.trials,
        trials=stability.trials,
        # Among equals the first is that of the table
        equals=[name for name, p in columns if isnan(p)],
    )


def tables(stability: Stability, ranges: RankRanges, *, measure: str = "") -> tuple[Table, ...]:
    """Every system's ranks, and the top of the table of probabilities.

    Args:
        stability: ranks under the bootstrap.
        ranges: of the same table of scores.
        measure: what was measured, for the heading.
    """
    return _rank_table(stability, ranges, measure or "score"), _top_table(stability)


def _rank_table(stability: Stability, ranges: RankRanges, measure: str) -> Table:
    own = (stability.rank_counts.diagonal() / stability.trials).tolist()
    expected = stability.expected_rank.tolist()
    ranked = zip(
        map(_range, ranges.low, ranges.high),
        *(stability.systems, stability.means, expected, own),
        strict=True,
    )
    rows = [(rank, *cells) for rank, cells in enumerate(ranked, start=1)]
    return texts.write_table(
        "stability.ranks",
        tuple(rows),
        stability=stability,
        ranges=ranges,
        measure=measure,
        many=_MANY,
        ties=_TIES[stability.ties],
    )


def _range(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low}–{high}"


def _top_table(stability: Stability) -> Table:
    top = min(_TOP, len(stability.systems))
    shares = (stability.rank_counts[:top, :top] / stability.trials).tolist()
    rows = [(name, *row) for name, row in zip(stability.systems, shares, strict=False)]
    return texts.write_table("stability.top", tuple(rows), top=top, trials=stability.trials)


Trials = Annotated[int, Opt("Number of bootstrap samples of the queries.", least=1)]
"""`--trials`."""

Ties = Annotated[
    TieRule,
    Opt("Rank of systems with equal means: the earlier one is better, or all share the best."),
]
"""`--ties`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityOptions:
    """Options of `heldout analyse stability`."""

    trials: Trials = 1000
    size: Annotated[
        int | None, Opt("Queries in each bootstrap sample [all].", least=1, metavar="N")
    ] = None
    ties: Ties = "earlier"
    flips: Annotated[int, Opt("Sign flips of the tests behind the ranges.", least=1)] = 10_000
    level: Annotated[float, Opt("Confidence level of all ranges together.", above=0, below=1)] = (
        0.95
    )
    single_step: Annotated[bool, Opt("Max-t in one step, without step-down.")] = False


def _analyse(scores: Scores, options: StabilityOptions, draws: analysis.Draws) -> Answer:
    found = bootstrap_stability(
        scores.table,
        draws.rng(),
        better=scores.better,
        trials=options.trials,
        size=options.size,
        ties=options.ties,
        executor=draws.executor,
    )
    ranges = rank_ranges(
        scores.table,
        draws.rng(),
        better=scores.better,
        level=options.level,
        flips=options.flips,
        step_down=not options.single_step,
        executor=draws.executor,
    )
    document = to_document(found, "rank_probability", "expected_rank")
    return Answer(
        answer=headline(ranges),
        summary=(*summary(found, ranges), *scores.facts),
        tables=tables(found, ranges, measure=scores.measure),
        document=document
        | {"ranges": to_document(ranges, "lead") | {"told_apart": ranges.separated}}
        | scores.document,
        chart=lambda: chart(found, ranges, measure=scores.measure),
        title=title(found),
    )


ANALYSIS = analysis.Analysis(
    name="stability",
    help="""Which ranks may each system have, and how often does it have them on resampled queries?

    The range of ranks holds for all systems at once. The shares of bootstrap samples describe the
    ranking and are no confidence statement.

    \b
    Example:
      heldout analyse stability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart ranks.svg
    """,
    source="scores",
    options=StabilityOptions,
    analyse=_analyse,
    chapter="Ranks",
)


_LEAST = (0.5, 0.2, 0.05, 0.01)
"""From which share of the resamplings on a cell has which shade; a smaller share has none."""


def title(stability: Stability) -> str:
    """Return what the picture shows."""
    return (
        f"How often each of {len(stability.systems):,} systems has each rank in "
        f"{plural(stability.trials, 'resampling')} of the queries, with the range of ranks of each"
    )


def chart(stability: Stability, ranges: RankRanges, *, measure: str = "") -> Plot:
    """The heat map of figure 3 with the ranges in it.

    A row for each system, a column for each rank: the darker a cell, the more resamplings. The
    range of ranks that may be believed is a thin line along the row. Where rows are too low for
    names, those of the lead group have one.

    Args:
        stability: ranks under the bootstrap.
        ranges: of the same table of scores.
        measure: what was measured, for the title of the axis.

    Source: Craswell et al. 2021, figure 3.
    """
    systems = stability.systems
    plot = Plot(
        x=axes.rank_axis(len(systems)),
        rows=[
            PlotRow(name=name, lead=low == 1) for name, low in zip(systems, ranges.low, strict=True)
        ],
        head=f"systems, the best {measure or 'mean'} first",
        foot="rank in resamplings of the queries",
        square=True,
    )
    shares = stability.rank_probability
    for row, column in np.argwhere(shares >= _LEAST[-1]).tolist():
        share = shares[row, column]
        colour = shade(share, _LEAST)
        plot.box((column + 0.5, column + 1.5), (row - 0.5, row + 0.4), colour)
    for row, (low, high) in enumerate(zip(ranges.low, ranges.high, strict=True)):
        plot.box((low - 0.5, high + 0.5), (row + 0.38, row + 0.5), svg.RECORD)
    first, *others = (f"from {least:.0%}" for least in _LEAST)
    plot.shades([f"{first} of {plural(stability.trials, 'resampling')}", *others])
    plot.key("line", f"range, {ranges.level:.0%} for all at once", svg.RECORD)
    return plot
