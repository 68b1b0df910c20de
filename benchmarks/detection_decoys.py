"""Copies of real runs that hide behind made-up documents: how many are found, and their cost."""

import gzip
import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
from detection_inputs import Campaign, read_run

from heldout.board.policy.similarity import TOP, Neighbour, list_alike
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Run
from heldout.trec.scans import Signature

__all__ = ["decoys_of", "describe_decoys"]

_KEPT = (5, 3, 2, 1)
_MADE_UP = np.uint64(1 << 20)
"""Makes another document of a hash."""

_QRELS = {
    "TREC DL 2021 passages": ("trec-dl-2021-passage/qrels.dl21-passage.txt.gz", 2),
    "TREC-COVID round 1": ("trec-covid-round1/qrels-round1.txt.gz", 1),
}
"""Campaign -> its labels, and the least label of a relevant document."""

_Relevant = Mapping[QueryId, AbstractSet[DocId]]


def describe_decoys(data: Path, campaigns: Sequence[Campaign]) -> str:
    """Each run against itself with other documents from a rank on.

    Args:
        data: folder of the real runs.
        campaigns: as `detection_inputs.load` gives them.
    """
    rows = []
    firsts = []
    for campaign in (c for c in campaigns if c.name in _QRELS):
        firsts.append(f"{_greatest_of_two_teams(campaign):.3f} ({campaign.name})")
        file, least = _QRELS[campaign.name]
        relevant = _read_relevant(data / file, least)
        scored = [read_run(campaign.folder / f"{run}.gz") for run in campaign.runs]
        ranks = [_first_ranks(run, relevant) for run in scored]
        whole = np.mean([_score(one, TOP) for one in ranks])
        for kept in _KEPT:
            found = [_find_copy(run, kept) for run in campaign.runs.values()]
            share = np.mean([_score(one, kept) for one in ranks]) / whole
            count = f"{sum(one is not None for one in found)} of {len(found)}"
            rows.append(f"| {campaign.name} | {kept} | {count} | {share:.0%} |")
    lines = [
        "### Copies behind made-up documents",
        "",
        "| campaign | first documents kept | found | RR@10 that is left |",
        "| --- | ---: | ---: | ---: |",
        *rows,
        "",
        "Greatest share of queries in which two teams have the same first document: "
        + ", ".join(firsts)
        + ".",
    ]
    return "\n".join(lines)


def decoys_of(run: Signature) -> list[Signature]:
    """Copies of a run in which all documents below the first ones are made up."""
    return [_make_decoy(run, kept) for kept in _KEPT]


def _make_decoy(run: Signature, kept: int) -> Signature:
    documents = run.documents.copy()
    documents[:, kept:] ^= np.where(documents[:, kept:] == 0, np.uint64(0), _MADE_UP)
    return Signature(queries=run.queries, documents=documents)


def _find_copy(run: Signature, kept: int) -> Neighbour | None:
    """What is found where all documents below the first ones are made up."""
    return next(iter(list_alike(_make_decoy(run, kept), [("run", run)])), None)


def _greatest_of_two_teams(campaign: Campaign) -> float:
    """How often two runs of different teams begin alike, of the queries that both answer."""
    pairs = itertools.combinations(campaign.runs, 2)
    return max(
        _share_first(campaign.runs[one], campaign.runs[other])
        for one, other in pairs
        if campaign.teams[one] != campaign.teams[other]
    )


def _share_first(one: Signature, other: Signature) -> float:
    _, left, right = np.intersect1d(
        one.queries, other.queries, assume_unique=True, return_indices=True
    )
    first, second = one.documents[left, 0], other.documents[right, 0]
    both = (first != 0) & (second != 0)
    return float((first == second)[both].mean()) if both.any() else 0.0


def _read_relevant(path: Path, least: int) -> _Relevant:
    relevant: dict[QueryId, set[DocId]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            query, _, document, label = line.split()
            if int(label) >= least:
                relevant.setdefault(QueryId(query), set()).add(DocId(document))
    return relevant


def _first_ranks(run: Run, relevant: _Relevant) -> list[int]:
    """Rank of the first relevant document of each query; 0 where there is none."""
    ranks = []
    for query, documents in relevant.items():
        hits = [hit.document for hit in run.get(query, ())]
        ranks.append(next((n for n, one in enumerate(hits, 1) if one in documents), 0))
    return ranks


def _score(ranks: Sequence[int], depth: int) -> float:
    """Mean reciprocal rank of the first relevant documents down to a depth."""
    return float(np.mean([1 / rank if 0 < rank <= depth else 0.0 for rank in ranks]))
