"""Preference labels, and every run scored again on them, as tables and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Column, Table, columns, shorten
from heldout.charts import axes, svg
from heldout.charts.plot import Plot
from heldout.errors import plural
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import Made, Pairings
from heldout.judging.labels.rescoring import LeftOut, Rescored, RunMean, SpreadLabels
from heldout.judging.studies.sample import WHY_NO_TAU, tau_table, taus_facts
from heldout.stats.regression import MeanFit

# Scores of runs on preference labels over those on the labels there were, as a picture.
#
# The study's figure 6: where the order of the best changes, points leave the rising line, and a
# perfect run by the old labels is a level line below the best.


def _draw(found: Rescored) -> Plot:
    """A mark for each run, filled where it was pooled; a line for the perfect run.

    The runs that moved most have their names first.
    """
    runs = [one for one in found.runs if one.run != PERFECT]
    perfect = [one.after.value for one in found.runs if one.run == PERFECT]
    ends = [end for one in runs for end in one.after.bca or (one.after.value,)]
    plot = Plot(
        x=axes.score_axis([one.before.value for one in runs]),
        y=axes.score_axis([*ends, *perfect]),
        head=f"{found.measures[1]}, {found.after}",
        foot=f"{found.measures[0]}, {found.before}",
        height=340,
    )
    for value in perfect:
        plot.level(value, f"{PERFECT} before")
    for one in runs:
        plot.line([(one.before.value, end) for end in one.after.bca or ()], svg.RULE, thin=True)
    for pooled in (False, True):
        spots = [
            (one.before.value, one.after.value, f"{one.run}: {one.after.value:.4f}")
            for one in runs
            if one.pooled == pooled
        ]
        plot.dots(spots, "disc" if pooled else "circle")
        if spots:
            plot.key("disc" if pooled else "circle", "pooled run" if pooled else "other run")
    plot.key("thin", f"{found.level:.0%} BCa interval", svg.RULE)
    for one in sorted(runs, key=lambda one: -abs(one.before.rank - one.after.rank)):
        plot.name(one.before.value, one.after.value, one.run)
    return plot


_NAMED = 3
_MOST = 15
_NOBODY = "no run before others"


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
    orderings: Mapping[str, MeanFit]
    left_out: Sequence[LeftOut] = ()


def labels_answer(found: Relabelled) -> Answer:
    """Runs on both labels, tau, pairings, and without each run."""
    rescored = found.rescored
    tables = [_pairings(found.pairings), *([_left_out(found.left_out)] if found.left_out else [])]
    facts = _facts(found)
    if rescored is not None:
        facts += _facts_of_runs(rescored)
        tables = [_runs(rescored, found.orderings), _taus(rescored), *tables]
    return Answer(
        answer=_headline(found),
        summary=facts,
        tables=tables,
        short=[shorten(table, _MOST) for table in tables],
        document=_document(found),
        chart=None if rescored is None else lambda: _draw(rescored),
        title="" if rescored is None else _title(rescored),
    )


def rescored_answer(found: Rescored) -> Answer:
    """Runs on two sets of labels, wherever these come from, and tau."""
    return Answer(
        answer=_say_first(found, f"The labels of {name_one(found.after)}"),
        summary=_facts_of_runs(found),
        tables=[_runs(found, None), _taus(found)],
        document=to_document(found) | {"why": {"tau": WHY_NO_TAU}},
        chart=lambda: _draw(found),
        title=_title(found),
    )


def _title(found: Rescored) -> str:
    return (
        f"{found.measures[1]} on {found.after} over {found.measures[0]} on {found.before}, on "
        f"{found.queries:,} queries"
    )


def _headline(found: Relabelled) -> str:
    """Say which run is best on the new labels and on those before."""
    rescored, version = found.rescored, found.made.version
    judged = version.queries - version.unvoted
    made = f"{plural(version.labels, 'label')} for {judged:,} judged queries"
    if rescored is None:
        return f"{made}, by {version.algorithm}; no run is scored on them."
    return _say_first(rescored, made)


def _say_first(found: Rescored, labels: str) -> str:
    """Return whether other labels leave the same run first."""
    before = _name_best(found, [one.before for one in found.runs])
    after = _name_best(found, [one.after for one in found.runs])
    if before == after == _NOBODY:
        return f"{labels} put no run before others, as the labels before."
    if before == after:
        return f"{labels} leave the same run first: {after}."
    return f"{labels} change which run is first, from {before} to {after}."


def _facts(found: Relabelled) -> list[tuple[str, str]]:
    one = found.made.version
    judged = one.queries - one.unvoted
    until = f", up to {one.until}" if one.until else ""
    lines = [
        ("judgments", f"{one.counted:,} of {one.recorded:,} count{until}"),
        ("labels", f"{one.labels:,} for {judged:,} judged queries, by {one.algorithm}"),
        ("several", f"in {one.several:,} of them; in {one.cycles:,} these beat each other"),
        ("unjudged", f"{one.unjudged:,} pairs of them; in {one.drawn:,} as many prefer either"),
    ]
    if one.unjudged and one.algorithm == "tournament":
        lines.append(("", "wins are counted: who was in fewer judged pairs can win fewer"))
    if one.unvoted:
        lines.append(("kept", f"known answers of {one.unvoted:,} pools without a vote"))
    if found.spread.copies:
        copies, queries = found.spread.copies, found.spread.queries
        lines += [
            ("copies", f"{copies:,} ids have the text of a label before, in {queries:,} pools"),
            ("", "they are labels before too, as they are of the new ones"),
        ]
    return lines + [
        ("pairs", f"{name} win {own.won:,} of their {own.pairs:,}, {own.won / own.pairs:.1%}")
        for name, own in found.pairings.items()
        if own.pairs
    ]


def _document(found: Relabelled) -> dict[str, Any]:
    labels = found.made.labels
    return to_document(
        {
            "labels": dict(sorted(labels.labels.items())),
            "cycles": labels.cycles,
            "tournaments": labels.tournaments,
            "version": found.made.version,
            "pairings": found.pairings,
            "copies": {"documents": found.spread.copies, "queries": found.spread.queries},
            "rescored": found.rescored,
            "orderings": found.orderings,
            "left_out": found.left_out,
            "why": {
                "tau": WHY_NO_TAU,
                "t, bca": "null where a run's scores do not differ from query to query",
                "orderings": "value is null where no judged pair is in the run's top",
            },
        }
    )


def _pairings(found: Mapping[str, Pairings]) -> Table:
    """Return how each kind of labels did in the judged pairs that they are in."""
    return Table(
        title="How often labels win the judged pairs they are in",
        columns=(
            Column(name="labels"),
            *columns("count", "won", "pairs"),
            *columns("share", "share", decimals=3),
            *columns("count", "by label", "pairings"),
            *columns("share", "share by label", decimals=3),
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
        method=(
            (
                "pairs counts each judged pair with a label once; pairings counts it for each "
                "label, so a pair of two labels twice, one of them lost."
            ),
        ),
    )


def _left_out(found: Sequence[LeftOut]) -> Table:
    """Each run, on labels without what it alone contributed."""
    return Table(
        title="Without what one run alone contributed",
        columns=(
            Column(name="run"),
            *columns("count", "passages", "pairs", "changed"),
            *columns("score", "score", "without"),
            *columns("count", "rank", "rank without"),
            *columns("score", "tau", decimals=3),
        ),
        rows=tuple(astuple(one) for one in found),
        notes=("changed: queries with other labels; tau: of the scores with and without.",),
        method=(
            (
                "Passages that no other run and no label brought to a pool are taken out, with the "
                "judged pairs they were in, and labels are made again. tau: over all runs."
            ),
        ),
    )


def _facts_of_runs(found: Rescored) -> list[tuple[str, str]]:
    before = _name_best(found, [one.before for one in found.runs])
    after = _name_best(found, [one.after for one in found.runs])
    lines = [
        ("best", f"{before} on {found.before}, {after} on {found.after}"),
        *taus_facts(found.taus, digits=2),
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
    if len(best) == len(ranks) > 1 or not best:
        return _NOBODY
    alike = f"{len(best):,} runs alike"
    return " and ".join(map(name_one, best)) if len(best) <= _NAMED else alike


def _runs(found: Rescored, orderings: Mapping[str, MeanFit] | None) -> Table:
    """Every run on both labels; `None` where nobody asked how runs order judged pairs."""
    noisy = found.noise is not None
    ordered_columns = (*columns("share", "ordered", decimals=3), *columns("count", "pairs"))
    redrawn_columns = columns("score", "judged low", "judged high", "label error")
    rows = []
    for one in found.runs:
        order = (orderings or {}).get(one.run)
        redrawn = (*(one.noisy or (None, None)), one.label_error) if noisy else ()
        ordered: tuple[Cell, ...] = (None, None) if order is None else (order.value, order.units)
        ordered = () if orderings is None else ordered
        rows.append(
            (one.run, *_mean_cells(one.before), *_mean_cells(one.after), *redrawn, *ordered)
        )
    return Table(
        title=f"Runs on {found.before} and on {found.after}, {found.queries:,} queries",
        columns=(
            Column(name="run"),
            *_mean_columns("before"),
            *_mean_columns("after"),
            *(redrawn_columns if noisy else ()),
            *(ordered_columns if orderings is not None else ()),
        ),
        rows=tuple(rows),
        notes=tuple(_run_notes(found)),
        method=tuple(_run_method(found, ordered=orderings is not None)),
    )


def _mean_columns(name: str) -> tuple[Column, ...]:
    return (*columns("score", name, "low", "high"), *columns("count", "rank"))


def _mean_cells(one: RunMean) -> tuple[Cell, ...]:
    return (one.value, *(one.bca or (None, None)), one.rank)


def _run_notes(found: Rescored) -> list[str]:
    notes = [
        (
            f"before: {found.measures[0]} on {found.before}; after: {found.measures[1]} on "
            f"{found.after}; low, high: {found.level:.0%} intervals."
        )
    ]
    if found.left_out:
        notes.append(f"{found.left_out:,} queries with labels of one kind alone are left out.")
    return notes


def _run_method(found: Rescored, *, ordered: bool) -> list[str]:
    notes = [
        (
            f"low, high: {found.level:.0%} by BCa, {found.trials:,} draws of queries, each by "
            "itself; --json has Student's t too."
        ),
    ]
    if ordered:
        notes.append(
            "ordered: of the judged pairs with both passages in the run's first ten, the share "
            "that it orders as most votes do."
        )
    if found.noise is not None:
        notes.append(
            f"judged low, high: judgments are drawn again too, {found.noise.draws:,} times for "
            "each query. label error: standard deviation from judgments alone, on the same queries."
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
            "With judgments drawn again, on the same queries, preference labels rank the runs with "
            f"tau {found.noise.tau:.3f} to these: about what a second judging of the pairs would "
            "give, or a little less."
        )
    return tau_table(found.taus, f"{found.before} and {found.after}", *notes)
