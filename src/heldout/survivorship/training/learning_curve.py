"""A learning curve: how well a re-ranker does with more and more of the labels.

Each trial draws its own labels and its own seed; within a trial a larger share holds the smaller
ones. The interval is Student's over the trials: what another trial would bring, on these queries.

Source: Nogueira et al., as figure 2 of Craswell et al. 2021.
"""

from collections.abc import Sequence

from heldout.answers.answer import Answer
from heldout.answers.table import Table
from heldout.answers.texts import write, write_table
from heldout.charts import axes, svg
from heldout.charts.plot import Plot
from heldout.survivorship.training.results import TestOutcome, outcome_document


def answer_curves(outcomes: Sequence[TestOutcome], *, level: float) -> Answer:
    """Say what a learning curve shows of each measure of each test set.

    Args:
        outcomes: as `describe_conditions` has them, by rising share; seeds are the trials.
        level: of the intervals.
    """
    first = outcomes[0]
    return Answer(
        answer=write("trainings.curve_headline", curve=first),
        summary=(),
        tables=[_table(one, level) for one in outcomes],
        document={"level": level, "curves": [outcome_document(one) for one in outcomes]},
        chart=lambda: _draw(first, level),
        title=f"{first.measure} on {first.test} by how many labels were trained on",
    )


def _draw(curve: TestOutcome, level: float) -> Plot:
    """Mean and interval over the logarithm of the number of labels.

    The level of the run that is re-ranked is a dashed line.

    Source: Craswell et al. 2021, figure 2.
    """
    ends = [end for point in curve.conditions for end in (point.low, point.high) if end is not None]
    trials = [score for point in curve.conditions for score in point.by_seed]
    plot = Plot(
        x=axes.log_axis([point.labels for point in curve.conditions]),
        y=axes.score_axis([*ends, *trials, curve.first_stage]),
        head=curve.measure,
        foot="labels trained on",
    )
    plot.level(curve.first_stage, curve.first_name)
    plot.line([(point.labels, point.mean) for point in curve.conditions], svg.RECORD)
    for point in curve.conditions:
        if point.low is not None and point.high is not None:
            plot.line([(point.labels, point.low), (point.labels, point.high)], svg.RECORD)
        plot.dots(
            [
                (point.labels, score, f"{point.condition.name}, trial {trial}: {score:.4f}")
                for trial, score in enumerate(point.by_seed)
            ],
            "circle",
        )
        tip = f"{point.condition.name}: {point.mean:.4f}"
        plot.dots([(point.labels, point.mean, tip)], "diamond")
    plot.key("circle", "a trial")
    plot.key("diamond", f"mean, with its {level:.0%} interval")
    return plot


def _table(curve: TestOutcome, level: float) -> Table:

    why = next((point.why for point in curve.conditions if point.why), "")
    rows = tuple(
        (one.condition.name, round(one.labels), round(one.triples), one.mean, one.low, one.high)
        for one in curve.conditions
    )
    return write_table("trainings.curve", rows, curve=curve, level=level, why=why)
