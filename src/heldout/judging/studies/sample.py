"""Runs on all queries and on the judged ones, as tables, a picture and JSON.

Arabzadeh et al. 2021, table 3 and figure 5.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from heldout.answers.answer import Answer, to_document
from heldout.answers.table import Cell, Table
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot, PlotRow
from heldout.errors import InputError
from heldout.judging.campaign.judgments import Votes
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.rescoring import Rescored, RunMean, ScoredLabels, means_of, score_labels
from heldout.stats.rank_correlation import Both, TauRange, find_taus
from heldout.stats.regression import MeanFit, clustered_share
from heldout.trec.tops import RunPositions

# How often a run orders two passages as people do (Arabzadeh et al. 2021, §4.1).
#
# Of the judged pairs with both passages among a run's first ten documents, the share that the run
# orders as most votes do. Run L of the study came to 63.07%, the most of all.


def fold_ranks(listed: RunPositions, same: Mapping[str, Mapping[str, str]]) -> RunPositions:
    """Positions by the document that stands for a text: the first place where the text is shown.

    Args:
        listed: of a run.
        same: as `stand_for` gives it.
    """
    folded: dict[str, dict[str, int]] = {}
    for query, found in listed.found.items():
        stands = same.get(query, {})
        folded[query] = {}
        for doc, rank in sorted(found.items(), key=lambda one: one[1]):
            folded[query].setdefault(stands.get(doc, doc), rank)
    return RunPositions(found=folded, retrieved=listed.retrieved)


def order_agreement(
    listed: RunPositions, votes: Votes, *, depth: int = 10, level: float = 0.95
) -> MeanFit:
    """Compare the order of a run with what people prefer.

    Args:
        listed: of the passages that were judged, by the documents that stand for their texts.
        votes: those that count.
        depth: how deep in the run both passages stand at most.
        level: of the interval.

    Returns:
        The share of judged pairs with both passages in the run's top, and more votes for one of
        them, that the run orders as judged. Its interval takes a query as one observation: pairs
        of a query are not independent.
    """
    right, queries = [], []
    for query, found in votes.items():
        top = {doc: at for doc, at in listed.found.get(query, {}).items() if at <= depth}
        mine = [
            (top[a] < top[b]) == (cast.first > cast.second)
            for (a, b), cast in found.items()
            if a in top and b in top and cast.first != cast.second
        ]
        right += mine
        queries += [query] * len(mine)
    return clustered_share(right, queries, level=level)


# Do the judged queries rank runs as all queries do?
#
# Both scores are on the labels there were: the sample is compared with the whole, and not with
# what people preferred (Arabzadeh et al. 2021, §4.1, figure 5).


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleScore:
    """A run's scores.

    Attributes:
        run: its name.
        every: mean over all labelled queries.
        sample: mean over the judged ones.
    """

    run: str
    every: float
    sample: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleScores:
    """All runs on all queries and on a sample of them.

    Attributes:
        measure: what is computed.
        labels: name of the labels.
        queries: with labels.
        judged: of these, those in the sample.
        runs: in the order of their scores on all queries, the best first.
        taus: between both orders, among all runs and the best ten.
    """

    measure: str
    labels: str
    queries: int
    judged: int
    runs: tuple[SampleScore, ...]
    taus: tuple[TauRange, ...]


def score_sample(
    runs: Mapping[str, RunPositions], wanted: ScoredLabels, sample: Collection[str]
) -> SampleScores:
    """Score runs on all labelled queries, and on those of a sample.

    Args:
        runs: by name; an unanswered query counts 0.
        wanted: labels and measure.
        sample: the queries that were judged.

    Raises:
        InputError: code `no-common-query`: no query of the sample has labels, or none has been
            left out of it; and those of `score_labels`.
    """
    queries = sorted(query for query, grades in wanted.labels.items() if grades)
    inside = [index for index, query in enumerate(queries) if query in set(sample)]
    if not 0 < len(inside) < len(queries):
        part = f"{len(inside):,} judged of {len(queries):,} labelled queries"
        expected = "a sample: some of the labelled queries, and not all"
        raise InputError.of("no-common-query", wanted.name, part, expected)
    values = score_labels(runs, wanted, queries=queries)
    sign = 1.0 if wanted.measure.kind.better == "higher" else -1.0
    means = Both(before=sign * means_of(values), after=sign * means_of(values[:, inside]))
    found = [
        SampleScore(run=run, every=sign * every, sample=sign * part)
        for run, every, part in zip(runs, means.before.tolist(), means.after.tolist(), strict=True)
    ]
    taus = find_taus(tuple(runs), means, apart=PERFECT)
    return SampleScores(
        measure=str(wanted.measure),
        labels=wanted.name,
        queries=len(queries),
        judged=len(inside),
        runs=tuple(sorted(found, key=lambda one: -sign * one.every)),
        taus=tuple(replace(one, name=one.name.replace("before", "on all")) for one in taus),
    )


def runs_answer(rescored: Rescored, found: SampleScores | str) -> Answer:
    """Every run on all labelled queries, on the judged ones, and on the new labels.

    Args:
        rescored: on the judged queries with labels of both kinds.
        found: on all labelled queries and on the judged ones, or why that is not known.
    """
    if isinstance(found, str):
        return Answer(
            answer=f"Whether the judged queries rank runs as all do is unknown: {found}.",
            summary=(),
            tables=[_run_table(rescored, None)],
            document={"queries": rescored.queries, "why": found},
        )
    return Answer(
        answer=write("relabelled.sample_headline", found=found, first=next(iter(found.taus), None)),
        summary=write_facts("relabelled.sample_summary", found=found),
        tables=[
            _run_table(rescored, found),
            tau_table(
                found.taus,
                f"all {found.queries:,} queries and {found.judged:,} of them",
                "The sample is a part of the whole, so the two agree more than two samples of "
                "different queries would.",
            ),
        ],
        document=to_document(found) | {"why": WHY_NO_TAU},
        chart=lambda: _draw(found),
        title=f"{found.measure} on {found.labels}: {found.judged:,} judged queries over all "
        f"{found.queries:,}",
    )


WHY_NO_TAU = "tau is null where scores have fewer than two values"


def tau_table(taus: Sequence[TauRange], between: str, *notes: str) -> Table:
    """Kendall's tau between two orders of runs."""
    rows = tuple(astuple(one) for one in taus)
    return write_table("relabelled.tau", rows, between=between, notes=notes)


def _run_table(rescored: Rescored, sample: SampleScores | None) -> Table:
    known = {} if sample is None else {one.run: one for one in sample.runs}
    ranks = {run: rank for rank, run in enumerate(known, 1)}
    rows: list[tuple[Cell, ...]] = []
    for one in sorted(rescored.runs, key=lambda one: ranks.get(one.run, len(ranks) + 1)):
        own = known.get(one.run)
        cells: tuple[Cell, ...] = () if sample is None else (None,) * 3
        if own is not None:
            cells = (ranks[one.run], own.every, own.sample)
        pooled = "" if one.run == PERFECT else "yes" if one.pooled else "no"
        rows.append((one.run, pooled, *cells, one.before.value, one.after.value, one.after.rank))
    return write_table("relabelled.sample", tuple(rows), rescored=rescored, sample=sample)


def _draw(found: SampleScores) -> Plot:
    """A mark for each run; names where there is room."""
    plot = Plot(
        x=axes.score_axis([one.every for one in found.runs]),
        y=axes.score_axis([one.sample for one in found.runs]),
        head=f"{found.measure}, judged queries",
        foot=f"{found.measure}, all queries",
        height=320,
    )
    plot.dots(
        [
            (one.every, one.sample, f"{one.run}: {one.every:.4f}, {one.sample:.4f}")
            for one in found.runs
        ],
        "disc",
    )
    for one in found.runs:
        plot.name(one.every, one.sample, one.run)
    return plot


# Scores with their intervals, in the order of the labels before, as a picture.
#
# Arabzadeh et al. 2021, the lower plots of figure 6.


def draw_score_ranges(found: Rescored) -> Iterator[tuple[Plot, str]]:
    """On the labels before, then after: a row for each run, and what the picture shows.

    The best run on the labels before comes first; the perfect run is open.
    """
    before, after = found.measures
    for measure, name, means in (
        (before, found.before, [one.before for one in found.runs]),
        (after, found.after, [one.after for one in found.runs]),
    ):
        shown = [(one.run, mean) for one, mean in zip(found.runs, means, strict=True)]
        yield (
            _draw_ranges(shown, f"{measure}, {name}", found.level),
            (
                f"{measure} on {name} with {found.level:.0%} BCa intervals over {found.queries:,} "
                f"queries; runs in their order on {found.before}"
            ),
        )


def _draw_ranges(shown: Sequence[tuple[str, RunMean]], foot: str, level: float) -> Plot:
    plot = Plot(
        x=axes.score_axis([end for _, mean in shown for end in (mean.value, *(mean.bca or ()))]),
        rows=[
            PlotRow(name=run, note=f"{mean.value:.3f}, rank {mean.rank:,}") for run, mean in shown
        ],
        foot=foot,
    )
    for row, (run, mean) in enumerate(shown):
        low, high = mean.bca or (None, None)
        plot.interval(row, low, high, svg.MUTED)
        tip = f"{run}: {mean.value:.4f}, rank {mean.rank:,}"
        plot.dots([(mean.value, row, tip)], "circle" if run == PERFECT else "disc")
    plot.key("line", f"{level:.0%} BCa interval", svg.MUTED)
    if any(run == PERFECT for run, _ in shown):
        plot.key("circle", f"{PERFECT} by the labels before")
    return plot
