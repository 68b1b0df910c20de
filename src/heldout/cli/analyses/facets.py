"""Some of the queries as a collection of their own: `heldout analyse facets --write DIR`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from heldout.analyses.subsets import Subset, cut_subset, format_scores
from heldout.answers.answer import Answer
from heldout.answers.table import Column, Table
from heldout.cli.analyses.score_source import load_scores
from heldout.cli.analyses.sources import KindSource
from heldout.errors import plural
from heldout.files.durable import write_whole
from heldout.scoring.options import FacetSource
from heldout.scoring.query_facets import load_only, load_texts
from heldout.scoring.table import cut_table
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.sources import open_input


def write_subset(source: KindSource, facets: FacetSource, folder: Path) -> Answer:
    """Write the queries of `--only` into a folder: what there is of texts, judgments and scores.

    Args:
        source: judgments, and scores where a table or a board is named.
        facets: which queries, and their texts.
        folder: where to.

    Returns:
        What was written.

    Raises:
        click.UsageError: no queries are named, or nothing that could be written.
        InputError: code `no-facet`, or a file has errors.
    """
    chosen = load_only(facets)
    if chosen is None:
        raise click.UsageError("which queries should be written? --only FACET=KIND")
    subset = _cut(source, facets, chosen)
    files = dict(subset.files())
    if source.table is not None or source.board.folder is not None:
        # Judgments are for the files here; the scores have theirs behind them.
        scores = load_scores(replace(source, qrels=None)).table
        files["scores.csv"] = format_scores(cut_table(scores, chosen))
    if not files:
        raise click.UsageError("nothing to write: name --queries, --qrels or --scores")
    for file, data in files.items():
        write_whole(folder / file, data)
    written = [str(folder / file) for file in files]
    name = " and ".join(facets.only)
    counts = {
        "queries": len(subset.texts),
        "judged queries": len(subset.judgments),
        "queries with a training pair": len({query for query, _ in subset.pairs}),
        "training pairs": len(subset.pairs),
    }
    return Answer(
        summary=(
            ("only", f"{name}: {plural(len(chosen), 'query', 'queries')}"),
            ("written", ", ".join(written)),
        ),
        tables=(
            Table(
                title=f"The subset {name}",
                columns=(Column(name="what"), Column(name="count", form="count")),
                rows=tuple(counts.items()),
                notes=(
                    f"Training pair: a query with a document of grade {subset.relevant} or more.",
                ),
            ),
        ),
        document={
            "only": name,
            "relevant": subset.relevant,
            "files": written,
            **{what.replace(" ", "_"): count for what, count in counts.items()},
        },
    )


def _cut(source: KindSource, facets: FacetSource, chosen: frozenset[str]) -> Subset:
    texts = load_texts(facets) if facets.texts else {}
    judgments: Mapping[str, Mapping[str, int]] = {}
    if source.qrels is not None:
        with open_input(Path(source.qrels)) as file:
            judgments = read_qrels(file, path=source.qrels).judgments
    return cut_subset(texts, judgments, chosen, relevant=source.relevant)
