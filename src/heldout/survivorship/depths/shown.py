"""The order in which annotators saw documents, as if it were a system's ranking."""

from collections.abc import Mapping

from heldout.errors import InputError, Problem, plural
from heldout.ids import DocId, QueryId
from heldout.survivorship.annotations import Annotations
from heldout.trec.places import Places

__all__ = ["SHOWN", "SHOWN_IS_FAVOURED", "shown_documents", "shown_places"]

SHOWN = "shown"
"""The name of this system."""

SHOWN_IS_FAVOURED = (
    "the order that annotators saw: a ranking only if a system made it, and favoured by labels "
    "that were chosen from it; at depth 1 it is perfect by construction"
)
"""What is said wherever it is scored."""


def shown_documents(annotations: Annotations) -> Mapping[QueryId, tuple[DocId, ...]]:
    """What was shown for each query, best first.

    That annotators saw documents in this order says nothing of what the order means: it is a
    ranking only where a system ranked them, and nobody mixed them.

    Args:
        annotations: of a source that tells what was shown.

    Raises:
        InputError: code `no-shown`: the source tells only what was selected.
    """
    shown = {record.query: record.shown for record in annotations.records if record.shown}
    if not shown:
        raise InputError(
            Problem(
                code="no-shown",
                path=annotations.source,
                found=f"{plural(len(annotations.records), 'query', 'queries')}, and what was shown "
                "for none",
                expected="a source that tells what was shown, or run files",
                hint="--runs 'GLOB'",
            )
        )
    return shown


def shown_places(annotations: Annotations) -> Places:
    """Where the order shown has what was selected.

    Args:
        annotations: as in `shown_documents`.

    Raises:
        InputError: as `shown_documents`.
    """
    shown = shown_documents(annotations)
    selected = {record.query: record.selected for record in annotations.records}
    return Places(
        found={
            query: {doc: at for at, doc in enumerate(docs, 1) if doc in selected[query]}
            for query, docs in shown.items()
        },
        retrieved={query: len(docs) for query, docs in shown.items()},
    )
