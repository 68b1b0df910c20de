"""Copies of real runs behind or between made-up documents: which are found, and their cost."""

import gzip
import itertools
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
from detection_inputs import Campaign, read_run
from numpy.typing import NDArray

from heldout.board.policy.similarity import DEPTH, TOP, Neighbour, list_alike
from heldout.ids import DocId, QueryId
from heldout.rankers.run import Run
from heldout.trec.scans import Signature

__all__ = ["decoys_of", "describe_decoys"]

_KEPT = (5, 3, 2, 1)
_SEED = 20220711
_SHARES = (0.1, 0.3, 0.5, 0.6)
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
    woven = []
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
        for kind, mask in _MASKS.items():
            random = np.random.default_rng(_SEED)
            copies = [(run, interleave(run, mask, random)) for run in campaign.runs.values()]
            named = [list_alike(copy, [("run", run)]) for run, copy in copies]
            back = [list_alike(run, [("copy", copy)]) for run, copy in copies]
            scores = [_score(_move(one, mask, random), TOP) for one in ranks]
            turned = [
                list_alike(_interleave_turned(run, mask), [("run", run)])
                for run in campaign.runs.values()
            ]
            counts = [f"{sum(map(bool, each))} of {len(each)}" for each in (named, back, turned)]
            count = " | ".join(counts)
            share = np.mean(scores) / whole
            woven.append(f"| {campaign.name} | {kind} | {count} | {share:.0%} |")
    lines = [
        "### Copies behind made-up documents",
        "",
        "| campaign | first documents kept | found | RR@10 that is left |",
        "| --- | ---: | ---: | ---: |",
        *rows,
        "",
        "### Copies between made-up documents",
        "",
        "| campaign | made up | found | original found from it | found, reordered | RR@10 left |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        *woven,
        "",
        "Reordered: the first three documents of the original change their order in every query.",
        "",
        "Greatest share of queries in which two teams have the same first document: "
        + ", ".join(firsts)
        + ".",
    ]
    return "\n".join(lines)


def decoys_of(run: Signature) -> list[Signature]:
    """Copies of a run behind made-up documents, and one between them."""
    between = interleave(run, _MASKS["every second"], np.random.default_rng(_SEED))
    return [*(_make_decoy(run, kept) for kept in _KEPT), between]


_Mask = Callable[[np.random.Generator, tuple[int, int]], NDArray[np.bool_]]
"""Which places of some queries have a document of the original."""


def _draw(share: float) -> _Mask:
    return lambda random, shape: random.random(shape) >= share


_MASKS: Mapping[str, _Mask] = {
    "every second": lambda _, shape: np.broadcast_to(np.arange(shape[1]) % 2 == 0, shape),
    "every second, one first": lambda _, shape: np.broadcast_to(
        np.arange(shape[1]) % 2 == 1, shape
    ),
    **{f"{share:.0%}, anywhere": _draw(share) for share in _SHARES},
}


def interleave(run: Signature, mask: _Mask, random: np.random.Generator) -> Signature:
    """All documents of a run in their order, with made-up ones between them."""
    real = mask(random, run.documents.shape)
    places = np.maximum(np.cumsum(real, axis=1) - 1, 0)
    moved = np.take_along_axis(run.documents, places, axis=1)
    made_up = random.integers(1, 1 << 63, real.shape, dtype=np.uint64)
    documents = np.where(moved == 0, np.uint64(0), np.where(real, moved, made_up))
    return Signature(queries=run.queries, documents=documents)


def _interleave_turned(run: Signature, mask: _Mask) -> Signature:
    """The same of a run whose first three documents change their order in every query."""
    documents = run.documents.copy()
    whole = documents[:, 2] != 0
    documents[whole, :3] = documents[whole][:, [2, 0, 1]]
    turned = Signature(queries=run.queries, documents=documents)
    return interleave(turned, mask, np.random.default_rng(_SEED))


def _move(ranks: Sequence[int], mask: _Mask, random: np.random.Generator) -> list[int]:
    """Where documents at some ranks, one for each query, come to lie; 0 for nowhere."""
    real = mask(random, (len(ranks), DEPTH))
    places = [np.flatnonzero(row) for row in real]
    return [
        int(row[rank - 1]) + 1 if 0 < rank <= len(row) else 0
        for rank, row in zip(ranks, places, strict=True)
    ]


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
