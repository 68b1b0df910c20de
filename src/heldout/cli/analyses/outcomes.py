"""`heldout analyse outcomes`: which runs are better than which, by what they find and how high."""

import click

from heldout.answers.answer import Answer
from heldout.cli.computing import dask_option
from heldout.cli.facet_answers import print_each
from heldout.cli.facet_source import FacetSource, facet_options
from heldout.cli.options import level_option
from heldout.cli.outcome_options import rules_options
from heldout.cli.printing import reports_errors
from heldout.cli.reporting import Output, output_options
from heldout.cli.score_source import (
    Source,
    load_scores,
    queries_with_several,
    read_judgments,
    source_options,
)
from heldout.measures.spec import parse_measure
from heldout.report.outcome_charts import bars_spec, bars_title
from heldout.report.outcome_pairs import facts, tables, value
from heldout.report.outcomes import fit_facts
from heldout.scoring.scores import Scores
from heldout.store.compute import open_executor
from heldout.validity.first_ranks import first_ranks
from heldout.validity.outcomes import all_pairs, analyse_outcomes, pairs_with
from heldout.validity.verdicts import Rules

__all__ = ["outcomes"]

_DEFAULT = "RR@100"
_UNCUT = 1000
_INSTEAD = "compare by a measure: heldout compare -m nDCG@10, heldout analyse stability -m nDCG@10"
_MOST = 40


@click.command
@source_options
@facet_options
@click.option("--baseline", metavar="RUN", help="Compare this run with all others [all pairs].")
@click.option(
    "-k",
    "k",
    type=click.IntRange(min=1),
    help="Documents of each list that are looked at [as the measure; 100 of a table].",
)
@click.option("--all", "every", is_flag=True, help=f"Show all pairs, and not {_MOST} at most.")
@rules_options
@level_option
@dask_option
@output_options
@reports_errors
def outcomes(
    source: Source,
    facets: FacetSource,
    output: Output,
    *,
    baseline: str | None,
    k: int | None,
    every: bool,
    rules: Rules,
    level: float,
    dask: str | None,
) -> None:
    """For every two runs: who finds what, how high, and which is the better.

    The measure is a reciprocal rank, RR@100 if not given; RR(rel=2)@100 counts grade 2 and above.

    \b
    Example:
      heldout analyse outcomes --runs 'runs/*.gz' --qrels dev.qrels --baseline bm25
    """
    most = None if every or output.markdown or output.latex else _MOST

    def analyse(scores: Scores) -> Answer:
        ranks = first_ranks(scores.table, k=k or _depth(scores.measure))
        pairs = all_pairs(ranks) if baseline is None else pairs_with(ranks, baseline)
        found = analyse_outcomes(ranks, pairs, rules, level=level, executor=executor)
        counted = None if several is None else len(several.intersection(ranks.queries))
        return Answer(
            facts=(
                *fit_facts(found, several=counted, instead=_INSTEAD),
                *facts(found),
                *scores.facts,
            ),
            tables=tables(found, most=most),
            value=value(found, several=counted) | scores.value | {"baseline": baseline},
            chart=lambda: bars_spec(found),
            title=bars_title(found),
        )

    scores = _load(source, k)
    several = _several(source, scores)
    with open_executor(jobs=source.jobs, dask=dask) as executor:
        print_each(facets, output, scores, analyse)


def _load(source: Source, k: int | None) -> Scores:
    """The scores, by a measure that positions can be read off.

    Raises:
        click.UsageError: the measure is no reciprocal rank, or is cut above `k`.
    """
    named = source.measure is not None or source.table is not None
    of_board = source.board is not None and source.board.folder is not None
    scores = load_scores(source, measure=None if named or of_board else _DEFAULT)
    if scores.measure:
        measure = parse_measure(scores.measure, path="-m")
        if measure.name != "RR":
            raise click.UsageError(f"outcomes are counted from RR, not from {measure}: -m RR@100")
        if k is not None and measure.cutoff is not None and measure.cutoff < k:
            raise click.UsageError(f"{measure} says nothing of what stands deeper: -k {k}")
    return scores


def _several(source: Source, scores: Scores) -> frozenset[str] | None:
    """Queries with several relevant documents; `None` where no judgments are given."""
    if source.qrels is None:
        return None
    rel = parse_measure(scores.measure).params.rel or 1
    return queries_with_several(read_judgments(source), rel)


def _depth(measure: str) -> int:
    """How deep a measure looks: 1,000 without an end, and 100 of a bare table."""
    cutoff = parse_measure(measure or _DEFAULT, path="-m").cutoff
    return _UNCUT if cutoff is None else cutoff
