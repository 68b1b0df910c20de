"""Where a run lists certain documents: all that any labels of them can see of it.

A run read once can be scored on labels that are made later, as long as these are among the
documents that were looked for.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from heldout.trec.ranking import JudgedRanking, Order
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import scan_run

__all__ = ["Places", "read_places", "see_through"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places of certain documents in a run.

    Attributes:
        found: answered query -> document -> place, from 1; only documents that it lists.
        retrieved: answered query -> how many documents it lists.
    """

    found: Mapping[str, Mapping[str, int]]
    retrieved: Mapping[str, int]


def read_places(
    source: BinaryIO,
    *,
    path: str,
    documents: Mapping[str, Collection[str]],
    order: Order | None = None,
    limits: Limits | None = None,
) -> Places:
    """Read a run and keep where certain documents stand, however deep.

    Args:
        source: a run, at its start.
        path: its name for messages.
        documents: query -> those that are looked for. Queries that are not named are left out.
        order: how documents are ordered; `None` for what fits the run's columns.
        limits: how much is read.

    Raises:
        InputError: all errors of the run, as `scan_run` finds them.
    """
    names = {query: sorted(set(wanted)) for query, wanted in documents.items()}
    codes = {query: {doc: code for code, doc in enumerate(docs)} for query, docs in names.items()}
    scan = scan_run(source, path=path, order=order, qrels=codes, limits=limits, signature_depth=0)
    rankings = scan.rankings
    seen = {query: ranking for query, ranking in rankings.items() if query in names}
    return Places(
        found={
            query: {
                names[query][code]: place
                for code, place in zip(
                    ranking.grades.tolist(), ranking.positions.tolist(), strict=True
                )
            }
            for query, ranking in seen.items()
        },
        retrieved={query: ranking.retrieved for query, ranking in seen.items()},
    )


def see_through(
    places: Places, labels: Mapping[str, Mapping[str, int]]
) -> Mapping[str, JudgedRanking]:
    """A run as labels see it.

    Args:
        places: of at least the documents of the labels.
        labels: query -> document -> grade.

    Returns:
        Query -> ranking, of the answered queries that have labels.
    """
    return {
        query: _see(places.found[query], grades, places.retrieved[query])
        for query, grades in labels.items()
        if query in places.found
    }


def _see(places: Mapping[str, int], grades: Mapping[str, int], retrieved: int) -> JudgedRanking:
    listed = sorted((places[doc], grade) for doc, grade in grades.items() if doc in places)
    return JudgedRanking(
        positions=np.array([place for place, _ in listed], np.int64),
        grades=np.array([grade for _, grade in listed], np.int64),
        retrieved=retrieved,
    )
