"""A part of the embedded collection that is the same under every Python: the tutorials' data.

`stdlib_sample.tsv` names modules, queries, their answers and further documents by id; the texts are
read from the running Python's standard library. `tools/stdlib_sample.py` makes the table of
docstrings that Python 3.8 to 3.13 have in common, so later versions have nearly all of them too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from heldout.collections.collection import Collection, QuerySplit
from heldout.collections.stdlib_docs import Docstring, library_folder, read_module, texts_by_id
from heldout.errors import SetupError
from heldout.ids import DocId, QueryId

_Rows = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibrarySample:
    """The part that this Python has.

    Attributes:
        split: documents, dev queries and eval queries.
        missing: number of queries and documents of the table that this Python lacks.
    """

    split: QuerySplit
    missing: int


def read_sample() -> LibrarySample:
    """Read the texts of the sample.

    Raises:
        SetupError: this Python has no library source on disk.
    """
    rows = _read_table()
    texts = texts_by_id(_read_modules([module for (module,) in rows["module"]]))
    documents = {DocId(key): texts[key] for (key,) in rows["document"] if key in texts}
    if not documents:
        message = "no standard library source: this Python was installed without it"
        raise SetupError(message)
    dev, evaluation = (_half(rows[name], documents, texts) for name in ("dev", "eval"))
    wanted = len(rows["document"]) + len(rows["dev"]) + len(rows["eval"])
    present = len(documents) + len(dev.queries) + len(evaluation.queries)
    return LibrarySample(split=QuerySplit(dev=dev, eval=evaluation), missing=wanted - present)


def _read_table() -> _Rows:
    table = resources.files("heldout.collections").joinpath("stdlib_sample.tsv")
    rows: dict[str, list[list[str]]] = {}
    for line in table.read_text("utf-8").splitlines():
        kind, *cells = line.split("\t")
        rows.setdefault(kind, []).append(cells)
    return rows


def _read_modules(modules: Sequence[str]) -> list[Docstring]:
    """Their docstrings; a module that this Python lacks has none."""
    found: list[Docstring] = []
    library = library_folder()
    for module in modules:
        try:
            found.extend(read_module(library, module))
        except (OSError, SyntaxError, ValueError):
            continue  # what it would have is counted as missing
    return found


def _half(
    rows: Sequence[Sequence[str]], documents: Mapping[DocId, str], texts: Mapping[str, str]
) -> Collection:
    found = {
        QueryId(query): DocId(answer)
        for query, answer in rows
        if query in texts and answer in documents
    }
    return Collection(
        documents=documents,
        queries={query: texts[query] for query in found},
        qrels={query: {answer: 1} for query, answer in found.items()},
    )
