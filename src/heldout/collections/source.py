"""Where documents, queries and labels come from: the embedded collection, a folder, a name.

A name is one of the library ir_datasets, such as `irds:beir/scifact/test`. It fetches what it does
not have yet and stores it in its own folder (`IR_DATASETS_HOME`, or `.ir_datasets` at home).
Source: MacAvaney et al., SIGIR 2021.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from heldout.collections import tables
from heldout.errors import InputError, SetupError, printable, quote
from heldout.ids import DocId, QueryId
from heldout.progress_bar import SILENT, Progress

if TYPE_CHECKING:
    from heldout.collections.collection import Collection as Whole

PREFIX = "irds:"
"""What stands before a name of ir_datasets."""

Part = TypeVar("Part")

DatasetPart = Literal["docs", "queries", "qrels"]
_WORDS: Mapping[DatasetPart, str] = {
    "docs": "documents",
    "queries": "queries",
    "qrels": "judgments",
}


def open_dataset(named: str, *parts: DatasetPart) -> Any:
    """Open a dataset of ir_datasets; nothing is fetched yet.

    Args:
        named: `irds:` and a name of the library.
        parts: what it must have.

    Raises:
        InputError: code `collection-name`: there is none of this name, or it lacks a part.
        SetupError: ir_datasets is not installed.
    """
    name = named.removeprefix(PREFIX)
    dataset = _load(name, parts)
    for part in parts:
        if not getattr(dataset, f"has_{part}")():
            raise _no_name(name, f"a name without {_WORDS[part]}", parts)
    return dataset


def _load(name: str, parts: Sequence[DatasetPart]) -> Any:
    try:
        import ir_datasets  # type: ignore[import-untyped]  # noqa: PLC0415 - extra `data`
    except ImportError as error:
        message = f"{PREFIX}NAME needs ir_datasets: pip install 'heldout[data]'"
        raise SetupError(message) from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        from difflib import get_close_matches  # noqa: PLC0415 - only a refusal needs it

        near = get_close_matches(name, list(ir_datasets.registry), n=3)
        raise _no_name(name, quote(name), parts, near) from error


def _no_name(
    name: str, found: str, parts: Sequence[DatasetPart], near: Sequence[str] = ()
) -> InputError:
    wanted = " and ".join(_WORDS[part] for part in parts)
    hint = "its catalogue lists them, such as beir/scifact/test"
    if near:
        hint = f"did you mean {' or '.join(f'{PREFIX}{one}' for one in near)}?"
    return InputError.of(
        "collection-name", printable(f"{PREFIX}{name}"), found, hint=hint, wanted=wanted
    )


def read_part(named: str, read: Callable[[], Part]) -> Part:
    """Return what is read of a dataset of ir_datasets, which may fetch it.

    Args:
        named: `irds:` and its name.
        read: reads it.

    Raises:
        SetupError: the library could not fetch or read its files.
    """
    name = named.removeprefix(PREFIX)
    try:
        return read()
    except Exception as error:
        cause = printable(f"{type(error).__name__}: {error}")[:200]
        message = (
            f"ir_datasets could not read {printable(name)}. If it has to download files: try again "
            "with a network, or copy the folder .ir_datasets from a machine that has them. "
            f"({cause})"
        )
        raise SetupError(message) from error


EMBEDDED = "stdlib-docs"
"""Name of the embedded collection."""

QuerySubset = Literal["dev", "eval", "all"]
"""Of the queries of a collection: one half, the other, or all."""

_DEV_SHARE = 0.5


def read_whole(named: str, *, progress: Progress = SILENT) -> "Whole":
    """Read a collection with all its queries and, where it has any, its labels.

    Args:
        named: `stdlib-docs`, `irds:` and a name of ir_datasets, or a folder.
        progress: gets what is left out, and that files may be fetched.

    Raises:
        InputError: code `collection-name`, those of `collections.tables`.
        SetupError: ir_datasets is missing or could not fetch its files.
    """
    from heldout.collections.collection import Collection  # noqa: PLC0415 - most calls read files

    if named == EMBEDDED:
        from heldout.collections.stdlib_docs import (  # noqa: PLC0415 - the same
            build_collection,
            read_docstrings,
        )

        source = read_docstrings()
        for skipped in source.skipped:
            progress.note("note", f"{skipped.module} left out: {printable(skipped.reason)}")
        return build_collection(source.docstrings)
    if named.startswith(PREFIX):
        progress.note("reading", f"{printable(named)} with ir_datasets, which may fetch it")
        return read_catalogued(named.removeprefix(PREFIX))
    folder = Path(named)
    path = tables.find_labels(folder)
    documents, queries = tables.read_texts(folder)
    labels = tables.read_labels(path) if path is not None else {}
    return Collection(documents=documents, queries=queries, qrels=labels)


def take_subset(collection: "Whole", subset: QuerySubset, seed: int) -> "Whole":
    """Take all queries, or a random half of them with their labels; near duplicates stay together.

    Args:
        collection: whose documents both halves have.
        subset: which queries.
        seed: of the division; one seed always gives the same two halves.
    """
    if subset == "all":
        return collection
    import numpy as np  # noqa: PLC0415 - only where queries are divided

    from heldout.collections.collection import split_queries  # noqa: PLC0415 - the same

    split = split_queries(collection, dev=_DEV_SHARE, rng=np.random.default_rng(seed))
    return split.dev if subset == "dev" else split.eval


def read_catalogued(name: str) -> "Whole":
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
    from heldout.collections.collection import Collection  # noqa: PLC0415 - as above

    named = f"{PREFIX}{name}"
    dataset = open_dataset(named, "docs", "queries")
    labels = dataset.qrels_iter if dataset.has_qrels() else tuple

    def grades() -> dict[QueryId, dict[DocId, int]]:
        found: dict[QueryId, dict[DocId, int]] = {}
        for row in labels():
            found.setdefault(QueryId(row.query_id), {})[DocId(row.doc_id)] = row.relevance
        return found

    documents = read_part(named, lambda: _texts(dataset.docs_iter(), "doc_id"))
    return Collection(
        documents={DocId(key): text for key, text in documents.items()},
        queries={QueryId(key): text for key, text in _queries(named, dataset).items()},
        qrels=read_part(named, grades),
    )


def read_queries_of(named: str) -> dict[str, str]:
    """Read the queries of a dataset of ir_datasets, `irds:` and its name.

    Raises:
        InputError: as `open_dataset`.
        SetupError: as `read_part`.
    """
    return _queries(named, open_dataset(named, "queries"))


def _queries(named: str, dataset: Any) -> dict[str, str]:
    return read_part(named, lambda: _texts(dataset.queries_iter(), "query_id"))


def _texts(items: Iterable[Any], key: str) -> dict[str, str]:
    return {str(getattr(item, key)): " ".join(item.default_text().split()) for item in items}


def find_texts(
    sources: Sequence[str],
    wanted: Collection[str],
    *,
    longest: int | None = None,
    progress: Progress = SILENT,
) -> Mapping[str, str]:
    """Find the texts of documents, as far as the sources have them.

    Args:
        sources: files, folders with `documents.tsv` or `corpus.jsonl`, or `irds:` and a name of
            ir_datasets; the first that has a document counts.
        wanted: ids.
        longest: characters of a text; a longer one is cut and ends with an ellipsis.
        progress: gets what is read.

    Raises:
        InputError: codes `collection-file`, `collection-name`, and those of `read_documents`.
        SetupError: ir_datasets is missing or could not fetch its files.
    """
    found: dict[str, str] = {}
    for source in sources:
        missing = frozenset(wanted).difference(found)
        with progress.waiting(f"reading {source}"):
            found |= cut_texts(_find(source, missing), longest)
    return found


def _find(source: str, wanted: Collection[str]) -> Mapping[str, str]:
    if not source.startswith(PREFIX):
        path = Path(source)
        return tables.read_file(tables.find_documents(path) if path.is_dir() else path, wanted)
    store = open_dataset(source, "docs").docs_store
    return read_part(source, lambda: _texts(store().get_many(sorted(wanted)).values(), "doc_id"))


def cut_texts(texts: Mapping[str, str], longest: int | None) -> Mapping[str, str]:
    """Cut texts: those with more characters cut and with an ellipsis at the end."""
    if longest is None:
        return texts
    return {
        doc: text if len(text) <= longest else f"{text[:longest].rstrip()}…"
        for doc, text in texts.items()
    }
