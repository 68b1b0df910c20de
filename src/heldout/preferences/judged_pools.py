"""Pools where only judgments are there, and tops of runs where only pools are there."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from heldout.errors import InputError, Problem
from heldout.preferences.judgments import Judgment
from heldout.preferences.pools import Candidate, Pool
from heldout.trec.tops import Tops

__all__ = ["pool_judged", "pooled_tops"]


def pool_judged(
    judgments: Iterable[Judgment],
    *,
    known: Mapping[str, Sequence[str]] | None = None,
    tops: Mapping[str, Tops] | None = None,
) -> tuple[Pool, ...]:
    """The passages that were judged, as pools.

    Args:
        judgments: all of them; tests count for nothing.
        known: query -> relevant documents, the best first; the first of them is the known answer,
            whether it was judged or not.
        tops: run -> query -> first documents: whose passage each is.

    Returns:
        A pool for each judged query, by its id.
    """
    passages: defaultdict[str, set[str]] = defaultdict(set)
    for one in judgments:
        if one.answer is None:
            passages[one.query] |= {one.left, one.right}
    answers = {query: docs[0] for query, docs in (known or {}).items() if docs}
    pools = []
    for query in sorted(passages):
        answer = answers.get(query)
        docs = sorted(passages[query] | ({answer} if answer is not None else set()))
        candidates = tuple(
            Candidate(doc=doc, known=doc == answer, runs=_holders(query, doc, tops or {}))
            for doc in docs
        )
        pools.append(Pool(query=query, candidates=candidates))
    return tuple(pools)


def pooled_tops(pools: Iterable[Pool]) -> Mapping[str, Tops]:
    """Run -> query -> its first document, of pools of first documents.

    Raises:
        InputError: code `deep-pool`: a pool has several documents of one run, so that nobody knows
            which came first.
    """
    found: defaultdict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
    for pool in pools:
        for one in pool.candidates:
            for run in one.runs:
                if pool.query in found[run]:
                    raise InputError(
                        Problem(
                            code="deep-pool",
                            path="pool.jsonl",
                            found=f"several documents of {run} for query {pool.query}",
                            expected="first documents alone",
                            hint="name the run files: --runs 'GLOB'",
                        )
                    )
                found[run][pool.query] = (one.doc,)
    return dict(sorted(found.items()))


def _holders(query: str, doc: str, tops: Mapping[str, Tops]) -> tuple[str, ...]:
    return tuple(sorted(run for run, found in tops.items() if doc in found.get(query, ())))
