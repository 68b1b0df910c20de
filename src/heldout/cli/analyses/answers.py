"""`--only` and `--facet`: an analysis of some of the queries, or of each kind of query apart."""

from collections.abc import Callable
from dataclasses import replace

import click

from heldout.analyses.by_facet import Loaded, answer_each
from heldout.answers.answer import Answer
from heldout.cli.printing import Output, print_answer, waiting
from heldout.scoring.options import FacetSource
from heldout.scoring.query_facets import check_size, load_facet, load_only


def print_each(
    facets: FacetSource, output: Output, loaded: Loaded, analyse: Callable[[Loaded], Answer]
) -> None:
    """Analyse what was loaded, as a whole or each kind of query apart, and print it.

    Args:
        facets: which queries.
        output: in which form.
        loaded: scores on all queries.
        analyse: the analysis; called once for each kind.

    Raises:
        click.UsageError: a chart is asked for of each kind, or a file is missing.
        InputError: a file has errors; too few queries are left; or nothing can be said of any kind.
    """
    if facets.facet is not None and output.chart is not None:
        raise click.UsageError(
            "a chart shows one kind of query: --only FACET=KIND instead of --facet"
        )
    part = _keep_only(facets, loaded)
    with waiting("computing"):
        if facets.facet is None:
            answer = analyse(part)
        else:
            kinds = load_facet(facets.facet, facets)
            answer = answer_each(facets.facet, kinds, part, analyse, least=facets.least)
    if facets.only:
        part_of = f"{' and '.join(facets.only)}: {part.size:,} of {loaded.size:,} queries"
        answer = replace(
            answer,
            summary=(*answer.summary, ("only", part_of)),
            document={**answer.document, "only": list(facets.only)},
        )
    print_answer(answer, output)


def _keep_only(facets: FacetSource, loaded: Loaded) -> Loaded:
    queries = load_only(facets)
    if queries is None:
        return loaded
    part = loaded.cut(queries)
    check_size(part.size, facets.least, path="--only")
    return part
