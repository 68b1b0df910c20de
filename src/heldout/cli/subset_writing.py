"""Writing out a facet as a collection of its own, for `heldout analyse facets --write DIR`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from heldout.cli.facet_source import FacetSource, load_texts
from heldout.cli.printing import plural
from heldout.cli.reporting import Answer
from heldout.cli.score_source import Source, load_scores
from heldout.errors import InputError, Problem, quote
from heldout.report.table import Column, Table
from heldout.store.files import write_whole
from heldout.trec.qrels import read_qrels
from heldout.trec.reading.streams import open_input
from heldout.validity.subsets import Subset, cut_subset, cut_table, format_scores

__all__ = ["Writing", "write_subset"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What should be written.

    Attributes:
        facet: its name; `None` for the domain of the list of words.
        folder: where to.
        relevant: lowest grade that makes a training pair.
    """

    facet: str | None
    folder: Path
    relevant: int


def write_subset(
    source: Source, told: FacetSource, facets: Mapping[str, frozenset[str]], asked: Writing
) -> Answer:
    """Write one facet into a folder: what there is of queries, judgments, pairs and scores.

    Args:
        source: judgments, and scores where a table or a board is named.
        told: the queries' texts.
        facets: queries by facet.
        asked: which facet, and where to.

    Returns:
        What was written.

    Raises:
        click.UsageError: no facet is named, or nothing that could be written.
        InputError: code `no-facet`, or a file has errors.
    """
    name = _choose(told, facets, asked.facet)
    subset = _cut(source, told, facets[name], asked.relevant)
    files = dict(subset.files())
    if source.table is not None or (source.board is not None and source.board.folder is not None):
        # Judgments are for the files here; the scores have theirs behind them.
        scores = load_scores(replace(source, qrels=None)).table
        files["scores.csv"] = format_scores(cut_table(scores, facets[name]))
    if not files:
        raise click.UsageError("nothing to write: name --queries, --qrels or --scores")
    for file, data in files.items():
        write_whole(asked.folder / file, data)
    return _tell(name, len(facets[name]), subset, [str(asked.folder / file) for file in files])


def _choose(told: FacetSource, facets: Mapping[str, frozenset[str]], facet: str | None) -> str:
    name = facet
    if name is None and told.words is not None:
        name = told.words.name.split(".")[0]
    if name is None:
        raise click.UsageError("which facet should be written? --facet NAME")
    if name not in facets:
        raise InputError(
            Problem(
                code="no-facet",
                path="--facet",
                found=f"no query in {quote(name)}",
                expected=f"one of {', '.join(map(quote, facets))}",
            )
        )
    return name


def _tell(name: str, size: int, subset: Subset, written: list[str]) -> Answer:
    counts = {
        "queries": len(subset.texts),
        "judged queries": len(subset.judgments),
        "queries with a training pair": len({query for query, _ in subset.pairs}),
        "training pairs": len(subset.pairs),
    }
    return Answer(
        facts=(
            ("facet", f"{name}: {plural(size, 'query', 'queries')}"),
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
        value={
            "facet": name,
            "relevant": subset.relevant,
            "files": written,
            **{what.replace(" ", "_"): count for what, count in counts.items()},
        },
    )


def _cut(source: Source, told: FacetSource, chosen: frozenset[str], relevant: int) -> Subset:
    texts = {} if told.queries is None else load_texts(told)
    if source.qrels is None:
        return cut_subset(texts, {}, chosen, relevant=relevant)
    with open_input(Path(source.qrels)) as file:
        judgments = read_qrels(file, path=source.qrels).judgments
    return cut_subset(texts, judgments, chosen, relevant=relevant)
