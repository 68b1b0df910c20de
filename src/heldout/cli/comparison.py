"""`heldout compare`: is B better than A? Two runs, or two groups of seeds."""

from itertools import chain

import click
from numpy.random import PCG64, Generator

from heldout.analyses.outcomes.compare import (
    Measured,
    compare_means,
    mean_facts,
    mean_tables,
    mean_values,
)
from heldout.analyses.outcomes.curves import Band, curves_spec, curves_title, success_curves
from heldout.analyses.outcomes.outcomes import analyse_outcomes
from heldout.analyses.outcomes.verdicts import Rules
from heldout.analyses.outcomes.words import compared_facts, fit_facts, tables, value, verdict_facts
from heldout.answers.answer import Answer
from heldout.cli.analyses.answers import print_each
from heldout.cli.analyses.score_source import find_reading
from heldout.cli.options import add_option, add_options, level_option
from heldout.cli.printing import (
    Output,
    messages,
    output_options,
    print_notes,
    seed_option,
)
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.query_facets import FacetSource
from heldout.scoring.run_files import RunOrder, describe_orders
from heldout.scoring.scores import Scores
from heldout.scoring.sources import ComparedScores, find_compared, score_compared
from heldout.scoring.spec import parse_measure
from heldout.trec.ranking import Order

_HIGHEST = 1000


@click.command
@click.argument("a")
@click.argument("b")
@click.option(
    "--qrels",
    required=True,
    metavar="Q",
    help="Judgments.",
)
@click.option(
    "-m",
    "--measure",
    "names",
    multiple=True,
    metavar="MEASURE",
    help="Measure whose means are compared; leads the answer. Such as nDCG@10; can be given many "
    "times.",
)
@click.option(
    "-k",
    "k",
    type=click.IntRange(1, _HIGHEST),
    default=100,
    show_default=True,
    help="Documents of each list that are looked at.",
)
@click.option(
    "--rel",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Lowest grade that is relevant.",
)
@add_option("order", RunOrder, None)
@add_options("facets", FacetSource)
@add_options("rules", Rules)
@click.option(
    "--intervals",
    type=click.Choice(["simultaneous", "pointwise"]),
    default="simultaneous",
    show_default=True,
    help="Intervals of Success@j: all depths at once, or each by itself.",
)
@level_option
@seed_option
@output_options
def compare(
    a: str,
    b: str,
    output: Output,
    *,
    qrels: str,
    names: tuple[str, ...],
    k: int,
    rel: int,
    order: Order | None,
    facets: FacetSource,
    rules: Rules,
    intervals: Band,
    level: float,
    seed: int,
) -> None:
    """Is B better than A? By a measure, and by which queries each answers and how high.

    A and B are run files. Each may be a group of runs that differ in their random seed: a pattern
    in quotes, or paths with commas between them.

    With -m the answer is the difference in the mean of that measure, with its interval and its p.
    Without -m the answer is a verdict on the first relevant document of each query: which run
    finds it, and how high. That verdict is for labels with one relevant document per query.

    \b
    Examples:
      heldout compare dense.run monot5.run --qrels dev.qrels
      heldout compare dense.run monot5.run --qrels dev.qrels -m nDCG@10 -m RR@10
      heldout compare 'ours-seed*.run' 'theirs-seed*.run' --qrels dev.qrels -k 10
    """
    measures = tuple(dict.fromkeys(str(parse_measure(name, path="-m")) for name in names))
    runs = find_compared(a, b)
    first, second = runs.a, runs.b

    def analyse(scores: ComparedScores) -> Answer:
        ranks = first_ranks(scores.ranks.table, k=k)
        found = analyse_outcomes(ranks, [(first, second)], rules, level=level)
        rng = Generator(PCG64(seed))
        curves = success_curves(ranks, first, second, rng, band=intervals, level=level)
        means = compare_means(
            [_measured(one) for one in scores.measures],
            first,
            second,
            Generator(PCG64(seed)),
            correction=rules.correction,
            level=level,
        )
        several = len(scores.several.intersection(ranks.queries))
        answer = mean_facts(means, alpha=rules.alpha)
        fit = fit_facts(found, several=several, asked=bool(answer))
        verdict = verdict_facts(found)
        compared = (*compared_facts(found), *(("", line) for line in scores.ranks.zeros))
        evidence = (tables(found, curves, several=several), mean_tables(means))
        return Answer(
            # What was asked for leads
            summary=(
                *((*answer, *compared, *verdict, *fit) if answer else (*fit, *verdict, *compared)),
                *describe_orders(scores.ranks.orders, given=order),
            ),
            tables=tuple(chain.from_iterable(reversed(evidence) if answer else evidence)),
            document=value(found, curves, several=several)
            | {"measures": mean_values(means, alpha=rules.alpha)}
            | {"seed": seed, "rel": rel, "orders": list(scores.ranks.orders)},
            chart=lambda: curves_spec(curves),
            title=curves_title(curves),
        )

    loaded = score_compared(
        runs, qrels=qrels, order=order, rel=rel, k=k, measures=measures, reading=find_reading()
    )
    print_notes(messages(), loaded.ranks.notes)
    print_each(facets, output, loaded, analyse)


def _measured(scores: Scores) -> Measured:
    return Measured(measure=scores.measure, table=scores.table, better=scores.better)
