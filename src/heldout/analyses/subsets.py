"""A part of a collection's queries, written out: queries, judgments, training pairs, scores.

What a facet cuts out of a training set can be trained on, and what it cuts out of a test set can
be asked every question of `heldout analyse` again. Source: Craswell et al. 2021, §5, on
Med-MARCO, the medical queries of MS MARCO.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from heldout.analyses.entries import ViewScores
from heldout.errors import InputError
from heldout.scoring.table import ScoreTable, cut_table
from heldout.trec.qrels import format_qrels
from heldout.trec.queries import format_queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """What is left of a collection.

    Attributes:
        texts: text by query, in the order they came in.
        judgments: query -> document -> grade, of the queries above that have any.
        pairs: (query, relevant document), in the order of the judgments.
        relevant: lowest grade that makes a pair.
    """

    texts: Mapping[str, str]
    judgments: Mapping[str, Mapping[str, int]]
    pairs: tuple[tuple[str, str], ...]
    relevant: int

    def files(self) -> Mapping[str, bytes]:
        """Content by name: `queries.tsv`, `qrels.txt`, `pairs.tsv`; none that would be empty."""
        files = {
            "queries.tsv": format_queries(self.texts),
            "qrels.txt": format_qrels(self.judgments),
            "pairs.tsv": format_pairs(self.pairs),
        }
        return {name: data for name, data in files.items() if data}


def cut_subset(
    texts: Mapping[str, str],
    judgments: Mapping[str, Mapping[str, int]],
    chosen: AbstractSet[str],
    *,
    relevant: int = 1,
) -> Subset:
    """Keep some queries with all that is known of them.

    Args:
        texts: text by query.
        judgments: query -> document -> grade.
        chosen: the queries to keep.
        relevant: lowest grade that makes a training pair.
    """
    chosen_grades = {query: grades for query, grades in judgments.items() if query in chosen}
    return Subset(
        texts={query: text for query, text in texts.items() if query in chosen},
        judgments=chosen_grades,
        pairs=tuple(
            (query, document)
            for query, grades in chosen_grades.items()
            for document, grade in grades.items()
            if grade >= relevant
        ),
        relevant=relevant,
    )


def format_pairs(pairs: tuple[tuple[str, str], ...]) -> bytes:
    """Training pairs: `query<TAB>document`, one in each line."""
    return "".join(f"{query}\t{document}\n" for query, document in pairs).encode()


def cut_queries(
    table: ScoreTable, facets: Mapping[str, AbstractSet[str]], *, least: int
) -> Mapping[str, ScoreTable]:
    """The table of each facet that has enough queries, for any analysis or for standings.

    Args:
        table: systems by queries.
        facets: queries by facet; those that the table does not have are ignored.
        least: fewest queries of a facet, below which it has no table.
    """
    cuts = {name: cut_table(table, queries) for name, queries in facets.items()}
    return {name: cut for name, cut in cuts.items() if len(cut.queries) >= max(least, 1)}


def cut_known(table: ScoreTable | None, queries: AbstractSet[str], *, view: str) -> ScoreTable:
    """As `cut_table`, of a view that may have means alone.

    Args:
        table: of the view, `None` where only means are known.
        queries: those to keep.
        view: its name, for the error.

    Raises:
        InputError: code `no-query-scores`: only means are known.
    """
    if table is None:
        raise InputError.of(
            "no-query-scores",
            f"view {view}",
            "means alone",
            "a score for each query, so that some of them can be looked at",
        )
    return cut_table(table, queries)


def cut_view(view: ViewScores, queries: AbstractSet[str]) -> ViewScores:
    """A view's scores on some of its queries; an entry without any there is absent.

    Raises:
        InputError: code `no-query-scores`: only means are known.
    """
    table = cut_known(view.table, queries, view=view.view)
    means = {system: mean for system in view.means if (mean := table.mean(system)) is not None}
    return replace(view, table=table, means=means)
