"""Preference labels, and every run scored again on them, as tables and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from heldout.answers.answer import Answer, to_document
from heldout.answers.sentence import name_one
from heldout.answers.table import Cell, Table, shorten
from heldout.answers.texts import write, write_facts, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot
from heldout.judging.labels.contests import PERFECT
from heldout.judging.labels.labels import Made, Pairings
from heldout.judging.labels.rescoring import LeftOut, Rescored, RunMean, SpreadLabels
from heldout.judging.studies.sample import WHY_NO_TAU, tau_table
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
    alone = tuple(astuple(one) for one in found.left_out)
    left_out = [write_table("relabelled.left_out", alone)] if alone else []
    tables = [_pairings(found.pairings), *left_out]
    facts = write_facts("relabelled.summary", found=found)
    if rescored is not None:
        facts += _summarise_runs(rescored)
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
        summary=_summarise_runs(found),
        tables=[_runs(found, None), _taus(found)],
        document=to_document(found) | {"why": {"tau": WHY_NO_TAU}},
        chart=lambda: _draw(found),
        title=_title(found),
    )


def _title(found: Rescored) -> str:
    return write("relabelled.title", found=found)


def _headline(found: Relabelled) -> str:
    """Say which run is best on the new labels and on those before."""
    rescored, version = found.rescored, found.made.version
    made = write("relabelled.made", version=version)
    if rescored is None:
        return f"{made}, by {version.algorithm}; no run is scored on them."
    return _say_first(rescored, made)


def _say_first(found: Rescored, labels: str) -> str:
    """Return whether other labels leave the same run first."""
    return write("relabelled.first", labels=labels, nobody=_NOBODY, **_name_both(found))


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
    rows = tuple(
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
    )
    return write_table("relabelled.pairings", rows)


def _summarise_runs(found: Rescored) -> tuple[tuple[str, str], ...]:
    perfect = next((one.after.value for one in found.runs if one.run == PERFECT), None)
    better = 0 if perfect is None else sum(one.after.value > perfect for one in found.runs)
    given = {"perfect": perfect, "better": better, **_name_both(found)}
    return write_facts("relabelled.runs_summary", found=found, **given)


def _name_both(found: Rescored) -> dict[str, str]:
    """Return the best run on the labels before, and on those after."""
    return {
        "before": _name_best(found, [one.before for one in found.runs]),
        "after": _name_best(found, [one.after for one in found.runs]),
    }


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
    rows = []
    for one in found.runs:
        order = (orderings or {}).get(one.run)
        redrawn = (*(one.noisy or (None, None)), one.label_error) if noisy else ()
        ordered: tuple[Cell, ...] = (None, None) if order is None else (order.value, order.units)
        ordered = () if orderings is None else ordered
        rows.append(
            (one.run, *_mean_cells(one.before), *_mean_cells(one.after), *redrawn, *ordered)
        )
    ordering = orderings is not None
    return write_table("relabelled.runs", tuple(rows), found=found, ordered=ordering)


def _mean_cells(one: RunMean) -> tuple[Cell, ...]:
    return (one.value, *(one.bca or (None, None)), one.rank)


def _taus(found: Rescored) -> Table:
    notes = [write("relabelled.tau_alone")]
    if found.noise is not None:
        notes.append(write("relabelled.tau_noise", noise=found.noise))
    return tau_table(found.taus, f"{found.before} and {found.after}", *notes)
