"""Do two halves of the queries lead to the same conclusions? How often, for each test.

The queries are split in two at random, many times; every two systems are compared in both halves
(Craswell et al. 2021, §4.3 and table 4). By which statistic one system is better, the mean
or the median, and by which test significantly so, makes a column of that table.

The paper leaves open what equal medians mean, which tie and continuity corrections the tests have
and how the queries are split. Here a split has floor(n/2) queries in its first half, the others in
the second; where neither system is better, that is a verdict of its own; the rest are options.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import reduce
from typing import Annotated, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heldout.analyses.analysis import Analysis, Draws
from heldout.answers.answer import Answer, to_document
from heldout.answers.table import UNDEFINED, Table
from heldout.answers.texts import write_facts, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow
from heldout.errors import InputError, plural
from heldout.ids import Digest
from heldout.options import Alpha, Opt
from heldout.scoring import names, sources
from heldout.scoring.table import ScoreTable, score_matrix
from heldout.stats import all_pairs, resampling

Better = Literal["mean", "median"]
"""What a system must have more of to be better."""

Equal = Literal["own", "either"]
"""Where neither system is better: a verdict that matches only itself, or one that matches all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityColumn:
    """A column of the table.

    Attributes:
        test: what says whether a difference is significant.
        by: what says which system is better.
    """

    test: all_pairs.PairedTest
    by: Better


COLUMNS: Mapping[str, ReliabilityColumn] = {
    "sign": ReliabilityColumn(test="sign", by="mean"),
    "rank_sum": ReliabilityColumn(test="rank-sum", by="mean"),
    "signed_rank": ReliabilityColumn(test="signed-rank", by="mean"),
    "t": ReliabilityColumn(test="t", by="mean"),
    "sign_median": ReliabilityColumn(test="sign", by="median"),
    "rank_sum_median": ReliabilityColumn(test="rank-sum", by="median"),
    "signed_rank_median": ReliabilityColumn(test="signed-rank", by="median"),
}
"""The columns of the paper's table 4, by our names for them."""

FEWEST_SPLITS = 40
"""Of which 2.5% are one: with fewer there is no saying where 95% of them lie."""

_LEAST = 4
_TASKS = 32
_SPREAD = (0.025, 0.975)
_ROUNDED = 12
_COUNTS = ("agree", "partly", "disagree", "significant", "undefined")


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfAgreement:
    """How often two halves agree; shares of pairs, over all splits.

    Attributes:
        agree: the same system is better in both, and both or neither are significant.
        partly: the same system is better and one is significant, or different ones are and
            neither is significant.
        disagree: all others; the three sum to 1.
        significant: at least one half is significant.
        undefined: of all tests made, those without a p-value; they count as not significant.
        agree_low: share of agreement that 2.5% of the splits stay below. This tells how much one
            split says, and is no confidence interval; `None` with fewer than 40 splits, of which
            2.5% are not one.
        agree_high: share that 2.5% of them exceed; likewise.
    """

    agree: float
    partly: float
    disagree: float
    significant: float
    undefined: float
    agree_low: float | None
    agree_high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityOptions:
    """Options of `heldout analyse reliability`."""

    splits: Annotated[int, Opt("Number of random splits of the queries.", least=1)] = 100
    alpha: Alpha = 0.05
    equal: Annotated[
        Equal,
        Opt(
            "Verdict on a pair of equal systems: a third verdict, or one that agrees with "
            "both others."
        ),
    ] = "own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """How often halves agree.

    Attributes:
        systems: how many there are.
        queries: how many there are.
        pairs: of systems.
        columns: by the names of `COLUMNS`.
        equal_means: share of comparisons of two systems in one half whose means are equal.
        equal_medians: likewise.
        correlation: mean over pairs of the correlation of two systems' scores; `None` where no
            two systems have one.
        options: as asked for; a p of at most `alpha` is significant.
        digest: of the table of scores.
    """

    systems: int
    queries: int
    pairs: int
    columns: Mapping[str, HalfAgreement]
    equal_means: float
    equal_medians: float
    correlation: float | None
    options: ReliabilityOptions
    digest: Digest


def measure_reliability(
    table: ScoreTable,
    rng: Generator,
    options: ReliabilityOptions,
    *,
    executor: Executor | None = None,
) -> Reliability:
    """Split the queries in two, many times, and see how often the halves agree.

    Args:
        table: at least two systems on at least four queries, none missing. Neither the order of
            systems nor that of queries matters.
        rng: where splits come from; they do not depend on `executor`.
        options: of splits and tests; no correction for many pairs, as in the paper.
        executor: where to compute; `None` for here.

    Raises:
        InputError: codes `too-few-systems`, `too-few-queries`, `missing-scores`.
    """
    matrix = score_matrix(table)
    queries = len(matrix.queries)
    if queries < _LEAST:
        raise InputError.of(
            "too-few-queries",
            "scores",
            plural(queries, "query", "queries"),
            "at least four",
            "each half needs two, or nothing says how far scores vary in it",
        )
    drawn = _draw_halves(rng, queries, options.splits)
    counted, equal = _count_all(all_pairs.split_scores(matrix.values, drawn), options, executor)
    pairs = len(matrix.systems) * (len(matrix.systems) - 1) // 2
    compared = 2 * pairs * options.splits
    return Reliability(
        systems=len(matrix.systems),
        queries=queries,
        pairs=pairs,
        columns={
            name: _shares(counts, pairs) for name, counts in zip(COLUMNS, counted, strict=True)
        },
        equal_means=int(equal[0]) / compared,
        equal_medians=int(equal[1]) / compared,
        correlation=_mean_correlation(matrix.values),
        options=options,
        digest=matrix.digest,
    )


def _draw_halves(rng: Generator, queries: int, splits: int) -> NDArray[np.bool_]:
    """Return whether a query is in the first half, shape (splits, queries)."""
    even = np.arange(queries) < queries // 2
    return rng.permuted(np.tile(even, (splits, 1)), axis=1)


_Counted = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Pairs counted, shape (columns, counts, splits), in the order of `COLUMNS` and `_COUNTS`; then
comparisons in a half in which neither system is better, by the mean and by the median."""

Tiles = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]


def _count_all(
    halves: all_pairs.Halves, options: ReliabilityOptions, executor: Executor | None
) -> _Counted:
    """Count all pairs; sums of whole numbers, so it does not matter who counts which."""
    medians = all_pairs.find_medians(halves)
    tiles = all_pairs.tile_pairs(len(halves.values))
    length = -(-len(tiles) // _TASKS)
    tasks = (
        (halves, medians, tiles[start : start + length], options)
        for start in range(0, len(tiles), length)
    )
    return _add(resampling.run_tasks(_count_tiles, tasks, executor))


def _add(counted: Iterable[_Counted]) -> _Counted:
    return reduce(lambda one, other: (one[0] + other[0], one[1] + other[1]), counted)


def _count_tiles(
    halves: all_pairs.Halves,
    medians: NDArray[np.float64],
    tiles: Tiles,
    options: ReliabilityOptions,
) -> _Counted:
    return _add(_count_tile(halves, medians, a, b, options) for a, b in tiles)


def _count_tile(
    halves: all_pairs.Halves,
    medians: NDArray[np.float64],
    a: NDArray[np.intp],
    b: NDArray[np.intp],
    options: ReliabilityOptions,
) -> _Counted:
    """Count some pairs of systems A and B."""
    tests = all_pairs.compare_pairs(halves, a, b, near=options.alpha)
    better: dict[Better, NDArray[np.float64]] = {
        "mean": np.sign(tests.means),
        "median": np.sign(medians[:, b] - medians[:, a]),
    }
    same = {by: _is_same(signs, options.equal) for by, signs in better.items()}
    # Rounded, so that no decision hangs on the order in which a processor adds; NaN is above
    found = {test: np.round(p, _ROUNDED) <= options.alpha for test, p in tests.p.items()}
    missing = {test: np.isnan(p).sum(axis=(0, 1)) for test, p in tests.p.items()}
    counts = [
        np.stack([*_count(same[column.by], found[column.test]), missing[column.test]])
        for column in COLUMNS.values()
    ]
    return np.stack(counts), np.array([(signs == 0).sum() for signs in better.values()])


def _is_same(signs: NDArray[np.float64], equal: Equal) -> NDArray[np.bool_]:
    """Return whether both halves find the same system better, shape (pairs, splits)."""
    same: NDArray[np.bool_] = signs[0] == signs[1]
    return same if equal == "own" else same | (signs == 0).any(axis=0)


def _count(same: NDArray[np.bool_], found: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """Pairs that agree, agree partly, disagree, and are significant in a half, for each split."""
    either, alike = found.any(axis=0), found[0] == found[1]
    agree = same & alike
    partly = (same & ~alike) | ~(same | either)
    return [kind.sum(axis=0) for kind in (agree, partly, ~(agree | partly), either)]


def _shares(counts: NDArray[np.int64], pairs: int) -> HalfAgreement:
    splits = counts.shape[1]
    totals = dict(zip(_COUNTS, counts.sum(axis=1).tolist(), strict=True))
    low, high = None, None
    if splits >= FEWEST_SPLITS:
        low, high = np.quantile(counts[0] / pairs, _SPREAD, method="inverted_cdf").tolist()
    return HalfAgreement(
        agree=totals["agree"] / (pairs * splits),
        partly=totals["partly"] / (pairs * splits),
        disagree=totals["disagree"] / (pairs * splits),
        significant=totals["significant"] / (pairs * splits),
        undefined=totals["undefined"] / (2 * pairs * splits),
        agree_low=low,
        agree_high=high,
    )


def _mean_correlation(values: NDArray[np.float64]) -> float | None:
    """Mean correlation of the systems whose scores vary; `None` where fewer than two do."""
    rounded = np.round(values, _ROUNDED)
    varying = rounded[(rounded != rounded[:, :1]).any(axis=1)]
    if len(varying) < 2:  # noqa: PLR2004 - two systems have a correlation
        return None
    # In units of the largest score, so that no square leaves float64
    varying /= np.abs(varying).max(axis=1, keepdims=True)
    between = np.corrcoef(varying)[np.triu_indices(len(varying), 1)]
    return round(float(between.mean()), _ROUNDED)


def _analyse(scores: sources.Scores, options: ReliabilityOptions, draws: Draws) -> Answer:
    result = measure_reliability(scores.table, draws.rng(), options, executor=draws.executor)
    return Answer(
        answer=headline(result),
        summary=(*summary(result), *scores.facts),
        tables=tables(result, measure="" if scores.transformed else scores.measure),
        document=to_document(result) | scores.document,
        chart=lambda: chart(result),
        title=title(result),
    )


ANALYSIS = Analysis(
    name="reliability",
    help="""How often do two halves of the queries agree on which system is better?

    \b
    Example:
      heldout analyse reliability --runs 'runs/*.gz' --qrels dev.qrels -m RR@10 --chart halves.svg
    """,
    source="scores",
    options=ReliabilityOptions,
    analyse=_analyse,
    chapter="Halves of the queries",
)


PUBLISHED: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "RR@100": ("a, documents", (0.933, 0.921, 0.912, 0.917, 0.802, 0.812, 0.807)),
    "RR@10": ("b, passages", (0.928, 0.916, 0.908, 0.908, 0.806, 0.814, 0.812)),
    "nDCG@10": ("c, documents", (0.949, 0.922, 0.910, 0.918, 0.852, 0.842, 0.833)),
}
"""By measure, the part of table 4 in Craswell et al. 2021 and its shares of agreement on a board of
MS MARCO, in the order of `COLUMNS`."""

_EQUAL = {
    "own": "Where neither system is better, that is a verdict that matches only itself.",
    "either": "Where neither system is better, that matches either verdict of the other half.",
}

_ONLY_AGREEMENT = (
    "Published: Benchmarking Ranking Models in the Large-Data Regime, table 4; other systems and "
    "queries. Only agreement is compared, since the other rows of tables 4a and 4b cannot follow "
    "from the definitions in the text. Partial agreement depends on which half is significant, "
    "and so on the test, but is printed as the same for all. And halves of which one finds a "
    "system significantly better and the other its rival better, 5.3% of pairs by the t test "
    "(4a), do not go with 80% of pairs significant and 3% of them in part."
)


def headline(result: Reliability) -> str:
    """Return how often two halves of the queries agree, by the mean."""
    found = [one.agree for name, one in result.columns.items() if COLUMNS[name].by == "mean"]
    return (
        f"Two random halves of the {result.queries:,} queries agree in {_span(found, 1)} of "
        "comparisons of two systems by the mean, depending on the test."
    )


def summary(result: Reliability) -> tuple[tuple[str, str], ...]:
    """Return how often halves agree, by the mean and by the median."""
    shown = []
    for by, equal in (("mean", result.equal_means), ("median", result.equal_medians)):
        found = [one for name, one in result.columns.items() if COLUMNS[name].by == by]
        agree = _span([one.agree for one in found], 1)
        shown.append((by, agree, equal, max(one.undefined for one in found)))
    return write_facts("reliability.summary", found=shown)


def _span(shares: Sequence[float], decimals: int) -> str:
    """From the smallest to the largest, once where they are written alike."""
    ends = [f"{share:.{decimals}%}" for share in (min(shares), max(shares))]
    return " to ".join(dict.fromkeys(ends))


def tables(result: Reliability, *, measure: str = "") -> tuple[Table, ...]:
    """The shares of every test, beside those of the paper where it has the same measure.

    Args:
        result: how often halves agree.
        measure: what was measured, "" where nobody knows.
    """
    asked = names.read_measure(measure) if measure else None
    name = "" if asked is None else f"{asked.name}@{asked.params.cutoff}"
    published = (_beside_paper(result, name),) if name in PUBLISHED else ()
    return (_share_table(result), *published)


def title(result: Reliability) -> str:
    """Return what the picture shows."""
    means = [found.agree for name, found in result.columns.items() if COLUMNS[name].by == "mean"]
    return (
        f"How often two halves of {plural(result.queries, 'query', 'queries')} "
        "agree on which of two systems is "
        f"better, for seven tests: by the mean in {_span(means, 0)} of pairs"
    )


def _share_table(result: Reliability) -> Table:
    rows = []
    for name, found in result.columns.items():
        middle = UNDEFINED
        if found.agree_low is not None and found.agree_high is not None:
            middle = f"{found.agree_low:.3f} to {found.agree_high:.3f}"
        shares = (found.partly, found.disagree, found.significant)
        rows.append((COLUMNS[name].test, COLUMNS[name].by, found.agree, middle, *shares))
    return write_table(
        "reliability.shares",
        tuple(rows),
        result=result,
        equal=_EQUAL[result.options.equal],
        fewest=FEWEST_SPLITS,
        undefined=max(found.undefined for found in result.columns.values()),
    )


def _beside_paper(result: Reliability, measure: str) -> Table:
    part, agree = PUBLISHED[measure]
    published = dict(zip(COLUMNS, agree, strict=True))
    rows = tuple(
        (COLUMNS[name].test, COLUMNS[name].by, found.agree, published[name])
        for name, found in result.columns.items()
    )
    return write_table("reliability.beside", rows, measure=measure, part=part, only=_ONLY_AGREEMENT)


_PARTS = (("agree", svg.LINK), ("partly", svg.RULE), ("disagree", svg.RECORD))


def chart(result: Reliability) -> Plot:
    """A bar for every test, in parts of agreement; a mark where the significant share ends."""
    columns = [COLUMNS[name] for name in result.columns]
    plot = Plot(
        x=axes.share_axis(),
        rows=[PlotRow(name=f"{column.test}, by {column.by}") for column in columns],
        foot="share of pairs of systems",
    )
    for row, (name, found) in enumerate(result.columns.items()):
        start = 0.0
        for part, colour in _PARTS:
            share = getattr(found, part)
            plot.bar((start, start + share), row, colour, f"{name}: {part} {share:.1%}")
            start += share
        plot.line([(found.significant, row - 0.45), (found.significant, row + 0.45)], svg.INK)
    for part, colour in _PARTS:
        plot.key("box", part, colour)
    plot.key("upright", "significant in a half")
    return plot
