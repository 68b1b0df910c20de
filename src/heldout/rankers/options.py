"""The options of `heldout rank`. Importing them loads no ranker: `--help` does not wait for one."""

from dataclasses import dataclass
from typing import Annotated

from heldout.options import Opt

DEFAULT_FIRST = "bm25"
"""The first stage where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranking:
    """How a first stage is re-ranked."""

    first: Annotated[
        str | None,
        Opt(
            "First stage to re-rank: another method, or a run file [bm25 for methods that "
            "only re-rank].",
            metavar="METHOD|FILE",
        ),
    ] = None
    rerank_depth: Annotated[
        int | None,
        Opt(
            "Documents per query that are re-ranked; the others stay below [100; 20 for duot5, "
            "which asks k (k - 1) questions of k documents].",
            least=1,
        ),
    ] = None
    passage: Annotated[
        int | None,
        Opt(
            "Words of a passage; a document counts by its best one [whole documents].",
            least=1,
            metavar="WORDS",
        ),
    ] = None
