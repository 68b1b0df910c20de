"""Preference labels, and every run scored again on them, as tables and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from heldout.answers.table import Cell, Column, Table
from heldout.charts.axes import score_axis
from heldout.charts.plot import Plot
from heldout.charts.svg import RULE
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import Pairings
from heldout.judging.labels.rescoring import LeftOut, Rescored, RunMean, RunRescored, SpreadLabels
from heldout.judging.labels.strengths import PASSAGE_PRIOR
from heldout.judging.labels.versions import Made
from heldout.judging.studies.sample import OrderAgreement
from heldout.stats.tau_ranges import TauRange

# Scores of runs on preference labels over those on the labels there were, as a picture.
#
# The study's figure 6: where the order of the best changes, points leave the rising line, and a
# perfect run by the old labels is a level line below the best.


def title(found: Rescored) -> str:
    """What the picture shows."""
    return (
        f"{found.measures[1]} on {found.after} over {found.measures[0]} on {found.before}, on "
        f"{found.queries:,} queries"
    )


def spec(found: Rescored) -> Plot:
    """A mark for each run, filled where it was pooled; a line for the perfect run.

    The runs that moved most have their names first.
    """
    runs = [one for one in found.runs if one.run != PERFECT]
    perfect = [one.after.value for one in found.runs if one.run == PERFECT]
    ends = [end for one in runs for end in one.after.bca or (one.after.value,)]
    plot = Plot(
        x=score_axis([one.before.value for one in runs]),
        y=score_axis([*ends, *perfect]),
        head=f"{found.measures[1]}, {found.after}",
        foot=f"{found.measures[0]}, {found.before}",
        height=340,
    )
    for value in perfect:
        plot.level(value, f"{PERFECT} before")
    for one in runs:
        plot.line([(one.before.value, end) for end in one.after.bca or ()], RULE, thin=True)
    for pooled in (False, True):
        spots = [
            (one.before.value, one.after.value, f"{one.run}: {one.after.value:.4f}")
            for one in runs
            if one.pooled == pooled
        ]
        plot.dots(spots, "disc" if pooled else "circle")
        if spots:
            plot.key("disc" if pooled else "circle", "pooled run" if pooled else "other run")
    plot.key("thin", f"{found.level:.0%} BCa interval", RULE)
    for one in sorted(runs, key=lambda one: -abs(one.before.rank - one.after.rank)):
        plot.name(one.before.value, one.after.value, one.run)
    return plot


# Tables of labels beside those of scores: pairs that labels win, and labels without each run.


def pairings_table(found: Mapping[str, Pairings]) -> Table:
    """How each kind of labels did in the judged pairs that they are in."""
    return Table(
        title="How often labels win the judged pairs they are in",
        columns=(
            Column(name="labels"),
            Column(name="won", form="count"),
            Column(name="pairs", form="count"),
            Column(name="share", form="share", decimals=3),
            Column(name="by label", form="count"),
            Column(name="pairings", form="count"),
            Column(name="share by label", form="share", decimals=3),
        ),
        rows=tuple(
            (
                name,
                one.won,
                one.pairs,
                one.won / one.pairs if one.pairs else None,
                one.label_won,
                one.label_pairings,
                one.label_won / one.label_pairings if one.label_pairings else None,
            )
            for name, one in found.items()
        ),
        notes=(
            (
                "pairs counts each judged pair with a label once; pairings counts it for each "
                "label, so a pair of two labels twice, one of them lost."
            ),
        ),
    )


def left_out_table(found: Sequence[LeftOut]) -> Table:
    """Each run, on labels without what it alone contributed."""
    return Table(
        title="Without what one run alone contributed",
        columns=(
            Column(name="run"),
            Column(name="passages", form="count"),
            Column(name="pairs", form="count"),
            Column(name="changed", form="count"),
            Column(name="score", form="score"),
            Column(name="without", form="score"),
            Column(name="rank", form="count"),
            Column(name="rank without", form="count"),
            Column(name="tau", form="score", decimals=3),
        ),
        rows=tuple(
            (
                one.run,
                one.passages,
                one.pairs,
                one.changed,
                one.value,
                one.without,
                one.rank,
                one.rank_without,
                one.tau,
            )
            for one in found
        ),
        notes=(
            (
                "Passages that no other run and no label brought to a pool are taken out, with the "
                "judged pairs they were in, and labels are made again. changed: queries with other "
                "labels; tau: between the scores of all runs with and without."
            ),
        ),
    )


_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Relabelled:
    """New labels and what they change.

    Attributes:
        made: the labels.
        spread: the labels before, under every id of their texts.
        pairings: name of labels -> how they did in the judged pairs, the labels before first.
        rescored: every run on both labels; `None` where no run was named.
        orderings: run -> how often it orders pairs as judged.
        left_out: without each run that contributed.
    """

    made: Made
    spread: SpreadLabels
    pairings: Mapping[str, Pairings]
    rescored: Rescored | None = None
    orderings: Mapping[str, OrderAgreement]
    left_out: Sequence[LeftOut] = ()


def facts(found: Relabelled) -> tuple[tuple[str, str], ...]:
    """The answer in a few lines."""
    one = found.made.version
    judged = one.queries - one.kept
    until = f", up to {one.until}" if one.until else ""
    lines = [
        ("judgments", f"{one.counted:,} of {one.recorded:,} count{until}"),
        ("labels", f"{one.labels:,} for {judged:,} judged queries, by {one.algorithm}"),
        ("several", f"in {one.several:,} of them; in {one.cycles:,} these beat each other"),
        ("unjudged", f"{one.unjudged:,} pairs of them; in {one.drawn:,} as many prefer either"),
    ]
    if one.unjudged and one.algorithm == "tournament":
        lines.append(("", "wins are counted: who was in fewer judged pairs can win fewer"))
    if found.made.prior_decides is not None:
        prior = PASSAGE_PRIOR if one.prior is None else one.prior
        told = f"{prior:g}: at a tenth of it, or ten times it, {found.made.prior_decides:,} of "
        lines.append(("prior", f"{told}{judged:,} judged queries have other labels (--prior)"))
    if one.kept:
        lines.append(("kept", f"known answers of {one.kept:,} pools without a vote"))
    if found.spread.copies:
        copies, queries = found.spread.copies, found.spread.queries
        told = f"{copies:,} ids have the text of a label before, in {queries:,} of the pools"
        lines += [("copies", told), ("", "they are labels before too, as they are of the new ones")]
    for name, own in found.pairings.items():
        if own.pairs:
            share = f"{own.won / own.pairs:.1%}"
            lines.append(("pairs", f"{name} win {own.won:,} of their {own.pairs:,}, {share}"))
    if found.rescored is not None:
        lines += _tell_rescored(found.rescored)
    return tuple(lines)


def tables(found: Relabelled) -> tuple[Table, ...]:
    """Runs on both labels, tau, pairings, and without each run."""
    rescored: tuple[Table, ...] = ()
    if found.rescored is not None:
        rescored = (_runs(found.rescored, found.orderings), _taus(found.rescored))
    left_out = (left_out_table(found.left_out),) if found.left_out else ()
    return (*rescored, pairings_table(found.pairings), *left_out)


def value(found: Relabelled) -> dict[str, Any]:
    """The whole result for JSON."""
    labels = found.made.labels
    return {
        "labels": {query: list(docs) for query, docs in sorted(labels.labels.items())},
        "cycles": labels.cycles,
        "tournaments": {
            query: {
                "rounds": [dict(wins) for wins in one.rounds],
                "cycle": one.cycle,
                "unjudged": one.unjudged,
                "drawn": one.drawn,
            }
            for query, one in labels.tournaments.items()
        },
        "version": msgspec.to_builtins(found.made.version),
        "prior_decides": found.made.prior_decides,
        "pairings": {
            name: {
                "won": one.won,
                "pairs": one.pairs,
                "label_won": one.label_won,
                "label_pairings": one.label_pairings,
            }
            for name, one in found.pairings.items()
        },
        "copies": {"documents": found.spread.copies, "queries": found.spread.queries},
        "rescored": None if found.rescored is None else _rescored_value(found),
        "left_out": [
            {
                "run": one.run,
                "passages": one.passages,
                "pairs": one.pairs,
                "changed": one.changed,
                "score": one.value,
                "score_without": one.without,
                "rank": one.rank,
                "rank_without": one.rank_without,
                "tau": one.tau,
                **({} if one.tau is not None else {"why": "the runs' scores do not differ"}),
            }
            for one in found.left_out
        ],
    }


def _rescored_value(found: Relabelled) -> dict[str, Any]:
    one = found.rescored
    if one is None:
        return {}
    return {
        "before": one.before,
        "after": one.after,
        "measures": list(one.measures),
        "queries": one.queries,
        "queries_left_out": one.left_out,
        "runs": [_run_value(run, found.orderings.get(run.run)) for run in one.runs],
        "taus": [_tau_value(tau) for tau in one.taus],
        "noise": None
        if one.noise is None
        else {
            "tau": one.noise.tau,
            "draws": one.noise.draws,
        },
        "level": one.level,
        "trials": one.trials,
    }


def _run_value(one: RunRescored, order: OrderAgreement | None) -> dict[str, Any]:
    return {
        "run": one.run,
        "pooled": one.pooled,
        "before": _mean_value(one.before),
        "after": _mean_value(one.after),
        "after_with_judgments": None if one.noisy is None else list(one.noisy),
        "label_error": one.label_error,
        "ordered": None
        if order is None
        else {
            "pairs": order.pairs,
            "agreed": order.agreed,
            "queries": order.queries,
            "share": order.share,
            "low": order.low,
            "high": order.high,
            **({} if order.pairs else {"why": "no judged pair has both passages in the top"}),
        },
    }


def _mean_value(one: RunMean) -> dict[str, Any]:
    return {
        "score": one.value,
        "rank": one.rank,
        "t": None if one.t is None else list(one.t),
        "bca": None if one.bca is None else list(one.bca),
        **({} if one.t and one.bca else {"why": "scores do not differ from query to query"}),
    }


def _tau_value(one: TauRange) -> dict[str, Any]:
    return {
        "among": one.name,
        "runs": one.runs,
        "tau": one.tau,
        "discordant": one.discordant,
        "pairs": one.pairs,
        **({} if one.tau is not None else {"why": "fewer than two different scores"}),
    }


def _tell_rescored(found: Rescored) -> list[tuple[str, str]]:
    before = _name_best(found, [one.before for one in found.runs])
    after = _name_best(found, [one.after for one in found.runs])
    lines = [
        ("best", f"{before} on {found.before}, {after} on {found.after}"),
        *(
            ("tau" if place == 0 else "", f"{_number(one.tau)} among {one.name}, {one.runs:,} runs")
            for place, one in enumerate(found.taus)
        ),
    ]
    perfect = next((one for one in found.runs if one.run == PERFECT), None)
    if perfect is not None:
        better = sum(one.after.value > perfect.after.value for one in found.runs)
        lines.append(("perfect", f"{perfect.after.value:.4f}; {better:,} runs are above it"))
    if found.noise is not None:
        lines.append(
            (
                "noise",
                f"judged again, labels would rank runs with tau {found.noise.tau:.2f} to these",
            )
        )
    return lines


def _name_best(found: Rescored, means: Sequence[RunMean]) -> str:
    """The best run but the perfect one; all that share its score, and nobody where all do."""
    ranks = {
        one.run: mean.rank
        for one, mean in zip(found.runs, means, strict=True)
        if one.run != PERFECT
    }
    best = [run for run, rank in ranks.items() if rank == min(ranks.values())]
    if len(best) == len(ranks) > 1:
        return "no run before others"
    return " and ".join(best) if len(best) <= _NAMED else f"{len(best):,} runs alike"


def _number(tau: float | None) -> str:
    return "undefined" if tau is None else f"{tau:.2f}"


def _runs(found: Rescored, orderings: Mapping[str, OrderAgreement]) -> Table:
    noisy = found.noise is not None
    columns = [
        Column(name="run"),
        *_score_columns("before"),
        *_score_columns("after"),
        *(
            (*_scores("judged low", "judged high"), Column(name="label error", form="score"))
            if noisy
            else ()
        ),
        Column(name="ordered", form="share", decimals=3),
        Column(name="pairs", form="count"),
    ]
    rows = []
    for one in found.runs:
        order = orderings.get(one.run)
        redrawn = (*(one.noisy or (None, None)), one.label_error) if noisy else ()
        ordered = (None, None) if order is None else (order.share, order.pairs)
        rows.append(
            (one.run, *_mean_cells(one.before), *_mean_cells(one.after), *redrawn, *ordered)
        )
    return Table(
        title=f"Runs on {found.before} and on {found.after}, {found.queries:,} queries",
        columns=tuple(columns),
        rows=tuple(rows),
        notes=tuple(_run_notes(found)),
    )


def _score_columns(name: str) -> tuple[Column, ...]:
    return (*_scores(name, "low", "high"), Column(name="rank", form="count"))


def _scores(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, form="score") for name in names)


def _mean_cells(one: RunMean) -> tuple[Cell, ...]:
    return (one.value, *(one.bca or (None, None)), one.rank)


def _run_notes(found: Rescored) -> list[str]:
    notes = [
        (
            f"before: {found.measures[0]} on {found.before}; after: {found.measures[1]} on "
            f"{found.after}. low, high: {found.level:.0%} by BCa, {found.trials:,} draws of "
            "queries, each by itself; --json has Student's t too."
        ),
        (
            "ordered: of the judged pairs with both passages in the run's first ten, the share "
            "that it orders as most votes do."
        ),
    ]
    if found.left_out:
        notes.append(f"{found.left_out:,} queries with labels of one kind alone are left out.")
    if found.noise is not None:
        notes.append(
            f"judged low, high: judgments are drawn anew too, {found.noise.draws:,} times for each "
            "query. label error: standard deviation from judgments alone, on the same queries."
        )
    return notes


def _taus(found: Rescored) -> Table:
    notes = [
        (
            "tau describes these queries and has no interval: on other queries it would differ, "
            "most of all among few runs."
        )
    ]
    if found.noise is not None:
        notes.append(
            "With judgments drawn anew, on the same queries, preference labels rank the runs with "
            f"tau {found.noise.tau:.3f} to these: about what a second judging of the pairs would "
            "give, or a little less."
        )
    return Table(
        title=f"Kendall's tau-b between {found.before} and {found.after}",
        columns=(
            Column(name="among"),
            Column(name="runs", form="count"),
            Column(name="tau", form="score", decimals=3),
            Column(name="discordant", form="count"),
            Column(name="pairs", form="count"),
        ),
        rows=tuple((one.name, one.runs, one.tau, one.discordant, one.pairs) for one in found.taus),
        notes=tuple(notes),
    )
