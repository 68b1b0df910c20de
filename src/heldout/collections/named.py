"""Judgments and queries by what somebody names: a file of any form, or a name of ir_datasets.

Forms of judgments: TREC and MS MARCO (four columns), BEIR (three below a heading), Parquet.
Forms of queries: `id<TAB>text`, TREC topics, BEIR's JSON lines. Both: `irds:` and a name of
ir_datasets.
"""

from collections.abc import Mapping
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias

from heldout.collections import tables
from heldout.collections.source import PREFIX, open_dataset, read_part, read_queries_of
from heldout.errors import InputError
from heldout.files.frames import PARQUET, is_frame, read_parquet
from heldout.ids import digest_bytes
from heldout.trec import judgments, memory
from heldout.trec.qrels import Qrels, parse_qrels, read_qrels
from heldout.trec.queries import Queries, format_queries, read_queries
from heldout.trec.reading import sources, streams


def load_qrels(
    named: Path | str,
    *,
    subtopics: bool = False,
    limits: streams.Limits | None = None,
    whole_for: str | None = "",
) -> Qrels:
    """The judgments that somebody names.

    Args:
        named: a file, or `irds:` and a name of ir_datasets.
        subtopics: whether the second column is wanted too, as the subtopic of a judgment.
        limits: how much of a file is read.
        whole_for: as for `read_qrels`.

    Raises:
        InputError: code `unreadable-file`, those of `read_qrels`, of `read_subtopics`, of
            `parse_beir_qrels` and, of a Parquet file, of `qrels_from_frame`;
            `collection-name`: ir_datasets has no such name, or no judgments.
        SetupError: ir_datasets is not installed, or could not fetch its files.
    """
    text = str(named)
    if text.startswith(PREFIX):
        return _catalogued_qrels(text, subtopics=subtopics, whole_for=whole_for)
    if text.lower().endswith(PARQUET):
        return memory.qrels_from_frame(read_parquet(text), name=text, whole_for=whole_for)
    if not subtopics and tables.is_beir_qrels(_head(text)):
        return tables.parse_beir_qrels(tables.read_text(Path(text)), path=text, whole_for=whole_for)
    with sources.open_input(Path(text)) as source:
        if subtopics:
            return judgments.read_subtopics(source, path=text, limits=limits)
        return read_qrels(source, path=text, limits=limits, whole_for=whole_for)


GivenQrels: TypeAlias = str | PathLike[str] | Qrels | Mapping[str, Mapping[str, int]] | Any
"""Judgments as Python code gives them: a path, query -> document -> grade, or a data frame."""


def open_qrels(
    given: GivenQrels,
    *,
    name: str | None = None,
    subtopics: bool = False,
    whole_for: str | None = "",
) -> Qrels:
    """The judgments that Python code gives.

    Args:
        given: a path or `irds:` and a name of ir_datasets, a mapping, a frame, or judgments.
        name: for messages.
        subtopics: as for `load_qrels`.
        whole_for: likewise; decimals of a mapping are `Decimal`.

    Raises:
        InputError: as `load_qrels`, `qrels_from_mapping` and `qrels_from_frame`.
        TypeError: it is none of these.
    """
    if isinstance(given, Qrels):
        return given
    if isinstance(given, str | PathLike):
        return load_qrels(fspath(given), subtopics=subtopics, whole_for=whole_for)
    if isinstance(given, Mapping):
        return memory.qrels_from_mapping(given, name=name or "qrels", whole_for=whole_for)
    if is_frame(given):
        return memory.qrels_from_frame(given, name=name or "qrels", whole_for=whole_for)
    raise TypeError(
        f"no judgments: {type(given).__name__}; a path, query -> document -> grade, or a data frame"
    )


def load_queries(named: Path | str) -> Queries:
    """The queries that somebody names.

    Args:
        named: a file, or `irds:` and a name of ir_datasets.

    Raises:
        InputError: code `unreadable-file`, those of `read_queries` and of `read_documents`;
            `collection-name`: ir_datasets has no such name, or no queries.
        SetupError: ir_datasets is not installed, or could not fetch its files.
    """
    text = str(named)
    if text.startswith(PREFIX):
        return _queries(read_queries_of(text))
    if _head(text).lstrip().startswith(b"{"):
        return _queries(tables.read_file(Path(text)))
    return sources.read_file(read_queries, text)


def _queries(texts: Mapping[str, str]) -> Queries:
    return Queries(texts=texts, digest=digest_bytes(format_queries(texts)))


def _head(path: str) -> bytes:
    """The first lines of a file, unpacked; nothing of a pipe, which can be read only once."""
    if not Path(path).is_file():
        return b""
    try:
        with (
            sources.open_input(Path(path)) as source,
            streams.TextReader(source, path=path, limits=streams.Limits()) as reader,
        ):
            return next((block.text for block in reader.blocks()), b"")
    except InputError:
        return b""  # whoever reads the file says what is wrong with it


def _catalogued_qrels(named: str, *, subtopics: bool, whole_for: str | None) -> Qrels:
    dataset = open_dataset(named, "qrels")
    rows = read_part(named, lambda: b"".join(map(_row, dataset.qrels_iter())))
    if subtopics:
        return judgments.read_subtopics(BytesIO(rows), path=named)
    return parse_qrels(rows, path=named, whole_for=whole_for)


def _row(row: Any) -> bytes:
    """A judgment of ir_datasets as a line of qrels."""
    part = getattr(row, "subtopic_id", None) or getattr(row, "iteration", None) or "0"
    return f"{row.query_id} {part} {row.doc_id} {row.relevance}\n".encode()
