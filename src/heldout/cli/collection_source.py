"""Where documents, queries and labels come from: the embedded collection, a folder, a name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heldout.cli.printing import messages
from heldout.collections.catalogue import PREFIX, read_catalogued
from heldout.collections.collection import Collection, split_queries
from heldout.collections.stdlib_docs import build_collection, read_docstrings
from heldout.collections.tables import find_labels, read_labels, read_texts
from heldout.errors import InputError, Problem, printable

__all__ = ["EMBEDDED", "QuerySubset", "SourcedCollection", "read_source"]

EMBEDDED = "stdlib-docs"
"""Name of the embedded collection."""

QuerySubset = Literal["dev", "eval", "all"]

_DEV_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedCollection:
    """A collection and whose labels it has.

    Attributes:
        collection: documents, queries, and labels where there are any.
        labels: where they come from, for messages; "" where there are none.
    """

    collection: Collection
    labels: str


def read_source(
    place: str, subset: QuerySubset, seed: int, *, qrels: Path | None, labelled: bool
) -> SourcedCollection:
    """Read a collection.

    Args:
        place: `stdlib-docs`, `irds:` and a name of ir_datasets, or a folder.
        subset: of the queries; halves of the embedded collection only.
        seed: divides them.
        qrels: labels that go before the collection's own.
        labelled: whether labels are wanted at all.

    Raises:
        InputError: codes `rank-queries`, `collection-name`, those of `collections.tables`.
        SetupError: ir_datasets is missing or could not fetch its files.
    """
    if place != EMBEDDED and subset != "all":
        raise InputError(
            Problem(
                code="rank-queries",
                path="--queries",
                found=f"{subset} with another collection",
                expected="all",
                hint=f"only {EMBEDDED} is divided; put the queries you want into queries.tsv",
            )
        )
    given = read_labels(qrels) if qrels is not None and labelled else None
    found, labels = _read(place, subset, seed, labelled=labelled and given is None)
    if given is not None:
        found = Collection(documents=found.documents, queries=found.queries, qrels=given)
        labels = str(qrels)
    return SourcedCollection(collection=found, labels=labels if found.qrels else "")


def _read(place: str, subset: QuerySubset, seed: int, *, labelled: bool) -> tuple[Collection, str]:
    if place == EMBEDDED:
        return _embedded(subset, seed), EMBEDDED
    if place.startswith(PREFIX):
        messages().print(f"reading {printable(place)} with ir_datasets, which may fetch it ...")
        return read_catalogued(place.removeprefix(PREFIX)), place
    folder = Path(place)
    path = find_labels(folder) if labelled else None
    documents, queries = read_texts(folder)
    labels = read_labels(path) if path is not None else {}
    return Collection(documents=documents, queries=queries, qrels=labels), str(path or "")


def _embedded(subset: QuerySubset, seed: int) -> Collection:
    import numpy as np  # noqa: PLC0415 - only where queries are divided

    source = read_docstrings()
    for skipped in source.skipped:
        messages().print(f"note: {skipped.module} left out: {printable(skipped.reason)}")
    collection = build_collection(source.docstrings)
    if subset == "all":
        return collection
    split = split_queries(collection, dev=_DEV_SHARE, rng=np.random.default_rng(seed))
    return split.dev if subset == "dev" else split.eval
