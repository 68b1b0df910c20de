"""Where documents, queries and labels come from: the embedded collection, a folder, a name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heldout.collections.catalogue import PREFIX, read_catalogued
from heldout.collections.collection import Collection, split_queries
from heldout.collections.stdlib_docs import build_collection, read_docstrings
from heldout.collections.tables import find_labels, read_labels, read_texts
from heldout.errors import printable
from heldout.progress import SILENT, Progress

EMBEDDED = "stdlib-docs"
"""Name of the embedded collection."""

QuerySubset = Literal["dev", "eval", "all"]
"""Of the queries of a collection: one half, the other, or all."""

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
    place: str,
    subset: QuerySubset,
    seed: int,
    *,
    qrels: Path | None,
    labelled: bool,
    progress: Progress = SILENT,
) -> SourcedCollection:
    """Read a collection.

    Args:
        place: `stdlib-docs`, `irds:` and a name of ir_datasets, or a folder.
        subset: of the queries.
        seed: divides them, as in `take_subset`.
        qrels: labels that go before the collection's own.
        labelled: whether labels are wanted at all.
        progress: gets what is left out, and that files may be fetched.

    Raises:
        InputError: code `collection-name`, those of `collections.tables`.
        SetupError: ir_datasets is missing or could not fetch its files.
    """
    given = read_labels(qrels) if qrels is not None and labelled else None
    found, labels = read_whole(place, labelled=labelled and given is None, progress=progress)
    found = take_subset(found, subset, seed)
    if given is not None:
        found = Collection(documents=found.documents, queries=found.queries, qrels=given)
        labels = str(qrels)
    return SourcedCollection(collection=found, labels=labels if found.qrels else "")


def read_whole(
    place: str, *, labelled: bool = True, progress: Progress = SILENT
) -> tuple[Collection, str]:
    """A collection with all its queries, and where its labels come from ("" where there are none).

    Args:
        place: as for `read_source`.
        labelled: whether labels of a folder are wanted at all.
        progress: as for `read_source`.

    Raises:
        InputError, SetupError: as `read_source`.
    """
    if place == EMBEDDED:
        source = read_docstrings()
        for skipped in source.skipped:
            progress.note("note", f"{skipped.module} left out: {printable(skipped.reason)}")
        return build_collection(source.docstrings), EMBEDDED
    if place.startswith(PREFIX):
        progress.note("reading", f"{printable(place)} with ir_datasets, which may fetch it")
        return read_catalogued(place.removeprefix(PREFIX)), place
    folder = Path(place)
    path = find_labels(folder) if labelled else None
    documents, queries = read_texts(folder)
    labels = read_labels(path) if path is not None else {}
    return Collection(documents=documents, queries=queries, qrels=labels), str(path or "")


def take_subset(collection: Collection, subset: QuerySubset, seed: int) -> Collection:
    """All queries, or a random half of them with their labels; near duplicates stay together.

    Args:
        collection: whose documents both halves have.
        subset: which queries.
        seed: of the division; one seed always gives the same two halves.
    """
    if subset == "all":
        return collection
    import numpy as np  # noqa: PLC0415 - only where queries are divided

    split = split_queries(collection, dev=_DEV_SHARE, rng=np.random.default_rng(seed))
    return split.dev if subset == "dev" else split.eval
