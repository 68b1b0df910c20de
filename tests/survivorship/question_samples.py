"""Small folders of questions and answers that tests agree on."""

from collections.abc import Mapping, Sequence

from heldout.ids import DocId, QueryId
from heldout.judging.campaign.judgments import Judgment
from heldout.judging.campaign.pools import Candidate, Pool
from heldout.survivorship.annotations import Annotation, Annotations

NOW = "2026-11-22T12:00:00.000Z"


def question(query: str, *docs: str, split: str = "") -> Pool:
    """A question whose passages have their ids as text."""
    return Pool(
        query=query,
        text=f"what is {query}",
        candidates=tuple(Candidate(doc=doc, text=f"text of {doc}") for doc in docs),
        split=split,
    )


def answer(query: str, choice: str, *docs: str, by: str = "ada") -> Judgment:
    """An answer at one moment."""
    return Judgment(
        query=query,
        left="",
        right="",
        preferred=None,
        worker=by,
        choice=None if choice == "cannot" else choice,
        reason="other" if choice == "cannot" else None,
        ticked=docs,
        shown_at=NOW,
        answered_at=NOW,
    )


def annotations(
    shown: Mapping[str, Sequence[str]],
    selected: Mapping[str, str] | None = None,
    *,
    counts_discarded: bool = True,
) -> Annotations:
    """Annotations of queries by what was shown; one selected document where one is named."""
    chosen = selected or {}
    return Annotations(
        source="annotations.jsonl",
        records=[
            Annotation(
                query=QueryId(query),
                text=f"what is {query}",
                shown=tuple(map(DocId, docs)),
                selected=(
                    {DocId(chosen[query]): list(docs).index(chosen[query]) + 1}
                    if query in chosen
                    else {}
                ),
                texts={DocId(doc): f"text of {doc}" for doc in docs},
            )
            for query, docs in shown.items()
        ],
        depth=10,
        open_ended=False,
        counts_discarded=counts_discarded,
    )
