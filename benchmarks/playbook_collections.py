"""The collections of `benchmarks/playbook.py`: the embedded one, Vaswani and Cranfield.

Vaswani and Cranfield lie as their publishers gave them, in `small-collections` of the real data:
tagged text that is neither XML throughout nor TREC throughout, so they are read here and not in
the package.
"""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path

from heldout.collections.collection import Collection
from heldout.collections.stdlib_docs import build_collection, read_docstrings
from heldout.ids import DocId, QueryId
from heldout.trec.qrels import parse_qrels
from heldout.trec.queries import parse_queries

__all__ = ["COLLECTIONS", "read_collection"]

COLLECTIONS = ("stdlib-docs", "vaswani", "cranfield")

_DOCUMENT = re.compile(r"<doc>\s*<docno>\s*(\S+?)\s*</docno>(.*?)</doc>", re.DOTALL | re.IGNORECASE)
_TEXT = re.compile(r"<text>(.*?)</text>", re.DOTALL)


def read_collection(name: str, data: Path) -> Collection:
    """A collection by its name in `COLLECTIONS`.

    Args:
        name: which.
        data: folder with `vaswani` and `cranfield`; not looked at for the embedded one.
    """
    if name == "stdlib-docs":
        return build_collection(read_docstrings().docstrings)
    return _read_vaswani(data / name) if name == "vaswani" else _read_cranfield(data / name)


def _read_vaswani(folder: Path) -> Collection:
    found = _documents(folder / "doc-text.trec.gz")
    return Collection(
        documents={key: _one_line(text) for key, text in found.items()},
        queries=_queries(folder / "query-text.trec"),
        qrels=_qrels(folder / "qrels"),
    )


def _read_cranfield(folder: Path) -> Collection:
    """Its qrels number the queries by their place in the file, not by `num`: so do we."""
    found = _documents(folder / "cran.all.1400.xml.gz")
    texts = {key: match[1] for key, text in found.items() if (match := _TEXT.search(text))}
    asked = _queries(folder / "cran.qry.xml").values()
    return Collection(
        documents={key: _one_line(text) for key, text in texts.items()},
        queries={QueryId(str(place)): text for place, text in enumerate(asked, 1)},
        qrels=_qrels(folder / "cranqrel.trec.txt"),
    )


def _documents(path: Path) -> dict[DocId, str]:
    text = gzip.decompress(path.read_bytes()).decode()
    return {DocId(match[1]): match[2] for match in _DOCUMENT.finditer(text)}


def _queries(path: Path) -> dict[QueryId, str]:
    found = parse_queries(path.read_bytes(), path=str(path))
    return {QueryId(query): text for query, text in found.texts.items()}


def _qrels(path: Path) -> Mapping[QueryId, Mapping[DocId, int]]:
    found = parse_qrels(path.read_bytes(), path=str(path)).judgments
    return {
        QueryId(query): {DocId(document): grade for document, grade in grades.items()}
        for query, grades in found.items()
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())
