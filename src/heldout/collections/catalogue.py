"""Collections by the names of the library ir_datasets, such as `irds:beir/scifact/test`.

It fetches what it does not have yet and keeps it in its own folder (`IR_DATASETS_HOME`, or
`.ir_datasets` at home). Source: MacAvaney et al., SIGIR 2021.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from heldout.collections.collection import Collection
from heldout.errors import InputError, SetupError, printable, quote
from heldout.ids import DocId, QueryId

PREFIX = "irds:"
"""What stands before a name of ir_datasets where a collection is asked for."""

Part = TypeVar("Part")


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
    dataset = _load(name)
    for part, has in (("documents", dataset.has_docs()), ("queries", dataset.has_queries())):
        if not has:
            raise _no_name(name, f"a name without {part}")
    labels = dataset.qrels_iter if dataset.has_qrels() else tuple
    return Collection(
        documents=_read(name, lambda: _texts(dataset.docs_iter(), "doc_id", DocId)),
        queries=_read(name, lambda: _texts(dataset.queries_iter(), "query_id", QueryId)),
        qrels=_read(name, lambda: _grades(labels())),
    )


def _load(name: str) -> Any:
    try:
        import ir_datasets  # type: ignore[import-untyped]  # noqa: PLC0415 - extra `data`
    except ImportError as error:
        message = "collections by name need ir_datasets: pip install 'heldout[data]'"
        raise SetupError(message) from error
    try:
        return ir_datasets.load(name)
    except KeyError as error:
        raise _no_name(name, quote(name)) from error


def _no_name(name: str, found: str) -> InputError:
    return InputError.of(
        code="collection-name",
        path=printable(f"{PREFIX}{name}"),
        found=found,
        expected="a name of ir_datasets that has documents and queries",
        hint="its catalogue lists them, such as beir/scifact/test",
    )


def _read(name: str, read: Callable[[], Part]) -> Part:
    try:
        return read()
    except Exception as error:
        cause = printable(f"{type(error).__name__}: {error}")[:200]
        message = (
            f"ir_datasets could not read {printable(name)} ({cause}); what it has to fetch it can "
            "fetch on a machine with a network: copy its folder .ir_datasets from there"
        )
        raise SetupError(message) from error


def _texts(items: Any, key: str, kind: Callable[[str], Part]) -> dict[Part, str]:
    return {kind(getattr(item, key)): " ".join(item.default_text().split()) for item in items}


def _grades(rows: Any) -> dict[QueryId, dict[DocId, int]]:
    grades: dict[QueryId, dict[DocId, int]] = {}
    for row in rows:
        grades.setdefault(QueryId(row.query_id), {})[DocId(row.doc_id)] = row.relevance
    return grades
