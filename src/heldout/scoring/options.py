"""Options of commands that read runs: the files, the order of documents, the queries."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from heldout.options import Opt
from heldout.trec.orders import Order

JUDGMENTS = "Judgments: a file (TREC, MS MARCO, BEIR), or irds: and a name of ir_datasets."
"""Help of `--qrels`."""

QUERIES = "Queries: a file (TSV, TREC topics, BEIR), or irds: and a name of ir_datasets."
"""Help of `--queries`."""

RunOrder = Annotated[
    Order | None, Opt("Order of documents in a run [trec for 6 columns, msmarco for 3].")
]
"""`--order`; its default is `None`."""

RunPatterns = Annotated[
    tuple[str, ...], Opt("Run files: a path, or a pattern in quotes. Repeatable.", metavar="'GLOB'")
]
"""`--runs`; its default is `()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetSource:
    """The queries to look at."""

    facet: Annotated[
        str | None,
        Opt(
            "Query subsets, each analysed apart: length, question, words:FILE, or a file of "
            "query<TAB>subset.",
            metavar="FACET",
        ),
    ] = None
    only: Annotated[
        tuple[str, ...],
        Opt(
            "Query subset to analyse alone, as in question=what; given many times, all must hold.",
            metavar="FACET=SUBSET",
        ),
    ] = ()
    texts: Annotated[
        tuple[Path, ...],
        Opt(
            "Query texts, for length, question and words:FILE.",
            names=("--queries",),
            metavar="FILE",
            path="file",
        ),
    ] = ()
    least: Annotated[int, Opt("Fewest queries of a subset that is used.", least=2)] = 20
