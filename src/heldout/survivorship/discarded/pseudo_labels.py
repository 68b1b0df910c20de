"""Pseudo-labels: what a strong system puts first, for queries that nobody judged.

Nobody looked at them, and they say so: in the second column of each line, in the name of the file
and in its record. With what people judged they are put into one file only where that is asked for.
Source: Gupta and MacAvaney 2022, §6.
"""

from collections.abc import Iterable, Mapping

from heldout.survivorship.discarded.judging import Judged
from heldout.survivorship.discarded.labels import (
    PSEUDO,
    LabelRows,
    LabelSource,
    MadeLabels,
    PseudoSource,
    count_disputed,
    human_rows,
    make_labels,
)
from heldout.trec.tops import Tops


def pseudo_labels(
    tops: Tops, queries: Iterable[str], source: PseudoSource, *, name: str
) -> MadeLabels:
    """The first documents of a system as answers, marked as what nobody judged.

    Args:
        tops: query -> first documents of the system.
        queries: those that are to have such labels; none that people judged.
        source: whose they are.
        name: of the file, which gets `.pseudo` behind it.
    """
    rows = _pseudo_rows(tops, queries, source.depth)
    return make_labels(f"{name}.{PSEUDO}", rows, judged=None, system=source)


def mixed_labels(
    judged: Mapping[str, Judged],
    source: LabelSource,
    tops: Tops,
    queries: Iterable[str],
    system: PseudoSource,
    *,
    name: str,
) -> MadeLabels:
    """Both in one file, each line marked: what people judged, and pseudo-labels for the rest.

    Args:
        judged: query -> what annotators say of its passages.
        source: what they judged.
        tops: query -> first documents of the system.
        queries: those that may have pseudo-labels; what people judged gets none.
        system: whose they are.
        name: of the file, which gets `.with-pseudo` behind it.
    """
    rest = [query for query in queries if query not in judged]
    rows = human_rows(judged) + _pseudo_rows(tops, rest, system.depth)
    return make_labels(
        f"{name}.with-{PSEUDO}",
        rows,
        judged=source,
        system=system,
        disputed=count_disputed(judged),
    )


def _pseudo_rows(tops: Tops, queries: Iterable[str], depth: int) -> LabelRows:
    return [(query, PSEUDO, doc, 1) for query in queries for doc in tops.get(query, ())[:depth]]
