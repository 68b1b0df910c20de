"""`heldout compare`: is B better than A? Two runs, or two groups of seeds."""

from collections.abc import Sequence
from pathlib import Path

import click
from numpy.random import PCG64, Generator

from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.files import order_option, run_name, tell_orders
from heldout.cli.options import level_option, one_of
from heldout.cli.outcome_options import rules_options
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Answer, Output, output_options, seed_option
from heldout.cli.run_files import find_runs
from heldout.cli.score_source import Scores, Source, load_scores
from heldout.errors import InputError, Problem
from heldout.report.outcome_charts import curves_spec, curves_title
from heldout.report.outcomes import facts, tables, value
from heldout.trec.qrels import read_qrels
from heldout.trec.ranking import Order
from heldout.trec.reading.streams import open_input
from heldout.validity.first_ranks import Side, first_ranks
from heldout.validity.outcomes import analyse_outcomes
from heldout.validity.success_curves import Band, success_curves
from heldout.validity.verdicts import Rules

__all__ = ["compare"]

_HIGHEST = 1000


@click.command
@click.argument("a")
@click.argument("b")
@click.option(
    "--qrels",
    required=True,
    multiple=True,
    callback=one_of("file of judgments", several="one call for each"),
    metavar="Q",
    help="Judgments.",
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
@order_option
@facet_options
@rules_options
@click.option(
    "--intervals",
    type=click.Choice(["simultaneous", "pointwise"]),
    default="simultaneous",
    show_default=True,
    help="Of Success@j: all depths at once, or each by itself.",
)
@level_option
@seed_option
@output_options
@reports_errors
def compare(
    a: str,
    b: str,
    output: Output,
    *,
    qrels: str,
    k: int,
    rel: int,
    order: Order | None,
    facets: FacetSource,
    rules: Rules,
    intervals: Band,
    level: float,
    seed: int,
) -> None:
    """Is B better than A? Who finds what, how high, and what can be said of it.

    A and B are run files. Each may be a group of runs that differ in their random seed: a pattern
    in quotes, or paths with commas between them.

    \b
    Examples:
      heldout compare dense.run monot5.run --qrels dev.qrels
      heldout compare 'ours-seed*.run' 'theirs-seed*.run' --qrels dev.qrels -k 10
    """
    groups = [_find_runs(words, name) for words, name in ((a, "A"), (b, "B"))]
    _check_apart(*groups)
    source = Source(runs=(*groups[0], *groups[1]), qrels=qrels, order=order)
    first, second = (
        Side(name=_name(words, paths), runs=tuple(run_name(path) for path in paths))
        for words, paths in zip((a, b), groups, strict=True)
    )
    plenty = _find_several(qrels, rel)

    def analyse(scores: Scores) -> Answer:
        ranks = first_ranks(scores.table, k=k)
        found = analyse_outcomes(ranks, [(first, second)], rules, level=level)
        rng = Generator(PCG64(seed))
        curves = success_curves(ranks, first, second, rng, band=intervals, level=level)
        several = len(plenty.intersection(ranks.queries))
        return Answer(
            facts=(*facts(found), *tell_orders(scores.orders, given=order)),
            tables=tables(found, curves, several=several),
            value=value(found, curves, several=several)
            | {"seed": seed, "rel": rel, "orders": list(scores.orders)},
            chart=lambda: curves_spec(curves),
            title=curves_title(curves),
        )

    print_each(facets, output, load_scores(source, measure=f"RR(rel={rel})@{k}"), analyse)


def _find_runs(words: str, side: str) -> tuple[str, ...]:
    """The files of one side: a path, else patterns and paths between commas."""
    patterns = [words] if Path(words).is_file() else [part for part in words.split(",") if part]
    return tuple(find_runs(patterns, place=side))


def _check_apart(first: Sequence[str], second: Sequence[str]) -> None:
    places = {Path(path).resolve() for path in first}
    for path in second:
        if Path(path).resolve() in places:
            raise InputError(
                Problem(
                    code="same-run",
                    path=path,
                    found="the same run as A and as B",
                    expected="different runs",
                )
            )


def _name(words: str, paths: Sequence[str]) -> str:
    """The run's name; of a group its patterns without their folders."""
    if len(paths) == 1:
        return run_name(paths[0])
    return ", ".join(Path(part).name for part in words.split(",") if part)


def _find_several(qrels: str, rel: int) -> frozenset[str]:
    """Queries with more than one relevant document."""
    with open_input(Path(qrels)) as file:
        judgments = read_qrels(file, path=qrels).judgments
    return frozenset(
        query
        for query, grades in judgments.items()
        if sum(grade >= rel for grade in grades.values()) > 1
    )
