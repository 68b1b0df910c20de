"""`heldout analyse outcomes`: which runs are better than which, by what they find and how high."""

import click

from heldout.analyses.outcomes.curves import bars_spec, bars_title
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes, pairs_with
from heldout.analyses.outcomes.pairs import facts, tables, value
from heldout.analyses.outcomes.tests import Margins
from heldout.analyses.outcomes.verdicts import Rules
from heldout.analyses.outcomes.words import fit_facts
from heldout.answers.answer import Answer
from heldout.cli.analyses.answers import print_each
from heldout.cli.analyses.facet_source import facet_options
from heldout.cli.analyses.score_source import Source, load_scores, read_judgments, source_options
from heldout.cli.options import SHARE, DecimalRange, dask_option, level_option, one_argument
from heldout.cli.printing import Output, output_options, reports_errors
from heldout.files.executors import open_executor
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.query_facets import FacetSource
from heldout.scoring.scores import Scores
from heldout.scoring.sources import queries_with_several
from heldout.scoring.spec import parse_measure

# What `heldout compare` and `heldout analyse outcomes` are told beforehand: tests and rules.

_margin_options = one_argument(
    "margins",
    Margins,
    click.option(
        "--margin-found",
        "found",
        type=SHARE,
        default=Margins().found,
        show_default=True,
        help="Share of queries that may be lost.",
    ),
    click.option(
        "--margin-esl",
        "esl",
        type=DecimalRange(min=0, min_open=True),
        default=Margins().esl,
        show_default=True,
        help="Positions by which the mean search length may grow.",
    ),
)

rules_options = one_argument(
    "rules",
    Rules,
    click.option(
        "--decide",
        type=click.Choice(["signed-rank", "t"]),
        default="signed-rank",
        show_default=True,
        help="Which test of case (3) decides.",
    ),
    click.option(
        "--by",
        type=click.Choice(["esl", "rr"]),
        default="esl",
        show_default=True,
        help="What case (3) goes by: search length or reciprocal rank.",
    ),
    click.option(
        "--correction",
        type=click.Choice(["holm", "bonferroni", "none"]),
        default="holm",
        show_default=True,
        help="Over pairs × outcomes; of verdicts over pairs.",
    ),
    click.option(
        "--alpha",
        type=SHARE,
        default=0.05,
        show_default=True,
        help="Chance of a wrong verdict.",
    ),
    click.option(
        "--harm",
        type=click.Choice(["margin", "plain"]),
        default="margin",
        show_default=True,
        help="No harm: worse by less than a margin, or, as in the paper, not significantly.",
    ),
    _margin_options,
)
"""The options that declare tests, correction and rules, as one `rules` argument."""


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
