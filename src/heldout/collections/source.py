"""Where documents, queries and labels come from: the embedded collection, a folder, a name.

A name is one of the library ir_datasets, such as `irds:beir/scifact/test`. It fetches what it does
not have yet and stores it in its own folder (`IR_DATASETS_HOME`, or `.ir_datasets` at home).
Source: MacAvaney et al., SIGIR 2021.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from heldout.collections.catalogue import PREFIX, open_dataset, read_part
from heldout.collections.collection import Collection, split_queries
from heldout.collections.stdlib_docs import build_collection, read_docstrings
from heldout.collections.tables import find_labels, read_labels, read_texts
from heldout.errors import printable
from heldout.ids import DocId, QueryId
from heldout.progress_bar import SILENT, Progress

Part = TypeVar("Part")

EMBEDDED = "stdlib-docs"
"""Name of the embedded collection."""

QuerySubset = Literal["dev", "eval", "all"]
"""Of the queries of a collection: one half, the other, or all."""

_DEV_SHARE = 0.5


def read_whole(named: str, *, progress: Progress = SILENT) -> Collection:
    """Read a collection with all its queries and, where it has any, its labels.

    Args:
        named: `stdlib-docs`, `irds:` and a name of ir_datasets, or a folder.
        progress: gets what is left out, and that files may be fetched.

    Raises:
        InputError: code `collection-name`, those of `collections.tables`.
        SetupError: ir_datasets is missing or could not fetch its files.
    """
    if named == EMBEDDED:
        source = read_docstrings()
        for skipped in source.skipped:
            progress.note("note", f"{skipped.module} left out: {printable(skipped.reason)}")
        return build_collection(source.docstrings)
    if named.startswith(PREFIX):
        progress.note("reading", f"{printable(named)} with ir_datasets, which may fetch it")
        return read_catalogued(named.removeprefix(PREFIX))
    folder = Path(named)
    path = find_labels(folder)
    documents, queries = read_texts(folder)
    labels = read_labels(path) if path is not None else {}
    return Collection(documents=documents, queries=queries, qrels=labels)


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


def read_catalogued(name: str) -> Collection:
    """Read a collection of ir_datasets.

    Args:
        name: a name of the library, with queries: `beir/scifact/test`, `vaswani`.

    Returns:
        Documents and queries on one line each, as the library's `default_text` gives them, in
        the library's order; labels where it has them, else none.

    Raises:
        InputError: code `collection-name`: there is none of this name, or it has no documents
            or no queries.
        SetupError: ir_datasets is not installed, or could not fetch or read its files.
    """
    named = f"{PREFIX}{name}"
    dataset = open_dataset(named, "docs", "queries")
    labels = dataset.qrels_iter if dataset.has_qrels() else tuple
    return Collection(
        documents=read_part(named, lambda: _texts(dataset.docs_iter(), "doc_id", DocId)),
        queries=read_part(named, lambda: _texts(dataset.queries_iter(), "query_id", QueryId)),
        qrels=read_part(named, lambda: _grades(labels())),
    )


def _texts(items: Any, key: str, kind: Callable[[str], Part]) -> dict[Part, str]:
    return {kind(getattr(item, key)): " ".join(item.default_text().split()) for item in items}


def _grades(rows: Any) -> dict[QueryId, dict[DocId, int]]:
    grades: dict[QueryId, dict[DocId, int]] = {}
    for row in rows:
        grades.setdefault(QueryId(row.query_id), {})[DocId(row.doc_id)] = row.relevance
    return grades
