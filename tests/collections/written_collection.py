"""Writes a collection as a folder of tables, as a person would."""

from pathlib import Path

from heldout.collections.collection import Collection
from heldout.trec.qrels import format_qrels
from heldout.trec.queries import format_queries


def write_collection(collection: Collection, folder: Path) -> None:
    """Write `documents.tsv`, `queries.tsv` and `qrels.txt`, in the order of the collection."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "documents.tsv").write_bytes(
        "".join(f"{key}\t{text}\n" for key, text in collection.documents.items()).encode()
    )
    queries = {str(query): text for query, text in collection.queries.items()}
    (folder / "queries.tsv").write_bytes(format_queries(queries))
    qrels = {
        str(query): {str(document): grade for document, grade in grades.items()}
        for query, grades in collection.qrels.items()
    }
    (folder / "qrels.txt").write_bytes(format_qrels(qrels))
