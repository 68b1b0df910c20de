"""Tables of scores outside of this process: CSV and Parquet files, and data frames.

A frame or a Parquet file has a row for each query: its first column names the queries, and each
other one is a system. Or it has a row for each run and query, as `heldout evaluate --parquet
--per-query` writes them: the columns `run`, `query` and a measure each.
"""

import csv
import re
from collections.abc import Sequence
from io import StringIO
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heldout.errors import InputError, quote
from heldout.files import durable, frames
from heldout.files.csv import defuse
from heldout.scoring import names, run_files
from heldout.scoring.table import (
    ScoreTable,
    is_summary,
    names_queries,
    parse_scores,
    table_of_values,
)

if TYPE_CHECKING:
    from heldout.files.frames import Frame, Texts


def read_table(path: str | PathLike[str], measure: str | None = None) -> ScoreTable:
    """The scores in a file: Parquet where its name ends so, else CSV.

    Args:
        path: the file.
        measure: which measure, of a Parquet file that has several.

    Raises:
        InputError: the file cannot be read or has errors.
        SetupError: nothing is installed that reads Parquet.
    """
    name = fspath(path)
    if name.lower().endswith(frames.PARQUET):
        return table_of_frame(frames.read_parquet(name), measure, path=name)
    return parse_scores(run_files.read_table_text(Path(path)), path=name)


def read_means(path: str | PathLike[str]) -> ScoreTable:
    """As `read_table`, of means on collections: the first column is called `collection`."""
    name = fspath(path)
    if name.lower().endswith(frames.PARQUET):
        frame = frames.open_frame(frames.read_parquet(name), path=name)
        first = [one for one in frame.columns[:1] if one.casefold() == "collection"]
        return table_of_frame(frame.rename(dict.fromkeys(first, "query")), path=name)
    text = run_files.read_table_text(Path(path))
    return parse_scores(re.sub(r"(?i)^collection(?=\s*,)", "query", text), path=name)


def write_table(table: ScoreTable, path: str | PathLike[str]) -> None:
    """The scores as a file that `read_table` reads, whole or not at all; to the last bit.

    Args:
        table: may have missing scores.
        path: Parquet where the name ends so, else CSV.

    Raises:
        SetupError: nothing is installed that writes Parquet.
    """
    if not fspath(path).lower().endswith(frames.PARQUET):
        durable.write_whole(Path(path), format_scores(table))
        return
    head = next(name for name in _HEADS if name not in table.systems)
    columns: dict[str, Any] = {head: list(table.queries)}
    for system, values, known in zip(table.systems, table.values, table.known, strict=True):
        columns[system] = values
        if not known.all():
            columns[system] = [
                one if there else None
                for one, there in zip(values.tolist(), known.tolist(), strict=True)
            ]
    frames.write_parquet(columns, path)


_HEADS = ("query", "qid", "topic", "query_id", "topic_id")


def format_scores(table: ScoreTable) -> bytes:
    """The table as CSV for `parse_scores`: every float to its last bit, no name a formula."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["query", *map(defuse, table.systems)])
    for column, query in enumerate(table.queries):
        cells = zip(table.values[:, column].tolist(), table.known[:, column], strict=True)
        writer.writerow([defuse(query), *(repr(value) if known else "" for value, known in cells)])
    return text.getvalue().encode()


def table_of_frame(frame: Any, measure: str | None = None, *, path: str = "scores") -> ScoreTable:
    """The scores in a data frame of any library that narwhals knows.

    Args:
        frame: in one of the two forms; null and NaN are missing scores.
        measure: which one, of a frame that has several.
        path: what the frame is called in messages.

    Raises:
        InputError: codes `frame-columns`, `frame-type`, `frame-missing`, `measure-name`,
            `scores-empty`, `scores-header`, `scores-number`, `scores-repeated-query`,
            `scores-summary`.
    """
    table = frames.open_frame(frame, path=path)
    if {"run", "query"} <= {*table.columns} and not table["run"].dtype.is_numeric():
        return _table_of_rows(table, measure, path)
    first, *systems = table.columns or ("",)
    if not names_queries(first) or not systems:
        raise InputError.of(
            "scores-header",
            path,
            f"a first column called {first!r}" if systems else f"columns {quote(first)} alone",
        )
    queries = _read_names(table[first], path)
    if len(set(queries)) < len(queries):
        raise InputError.of("scores-repeated-query", path, f"a query twice in column {first!r}")
    values = np.empty((len(systems), len(queries)))
    for row, system in enumerate(systems):
        values[row] = _read_scores(table[system], path)
    return _build(systems, queries, values, path)


def _table_of_rows(table: "Frame", measure: str | None, path: str) -> ScoreTable:
    """Of a frame with a row for each run and query."""
    measures = [name for name in table.columns if name not in ("run", "query")]
    name = measure or (measures[0] if len(measures) == 1 else "")
    if name and name not in measures:
        name = str(names.read_measure(name, path="measure"))  # as it was typed: ndcg@10, map
    if name not in measures:
        found = repr(name) if name else "none"
        raise InputError.of("measure-name", "measure", found, f"one of {', '.join(measures)}")
    runs, run = _code_names(table["run"], path)
    queries, query = _code_names(table["query"], path)
    positions = run * len(queries) + query
    cells, counts = np.unique(positions, return_counts=True)
    if len(cells) < len(positions):
        position = int(cells[np.argmax(counts > 1)])
        twice = (
            f"{quote(queries[position % len(queries)])} of {quote(runs[position // len(queries)])}"
        )
        raise InputError.of(
            "scores-repeated-query", path, f"{twice} twice", "each query of a run once"
        )
    values = np.full((len(runs), len(queries)), np.nan)
    values[run, query] = _read_scores(table[name], path)
    return _build(runs, queries, values, path)


def _build(
    systems: Sequence[str], queries: Sequence[str], values: NDArray[np.float64], path: str
) -> ScoreTable:
    if not queries:
        raise InputError.of("scores-empty", path, "0 rows", "a row per query")
    summary = next(filter(is_summary, queries), None)
    if summary is not None:
        found = f"a row called {summary!r}, which would count as one more query"
        raise InputError.of("scores-summary", path, found)
    known = ~np.isnan(values)
    np.nan_to_num(values, copy=False, nan=0.0)
    return table_of_values(systems, queries, values, known)


def _read_scores(column: "Texts", path: str) -> NDArray[np.float64]:
    """The numbers of a column, NaN where a score is missing."""
    if column.is_null().all():  # of no type
        return np.full(len(column), np.nan)
    scores = frames.read_numbers(column, path=path)
    if np.isinf(scores).any():
        row = int(np.argmax(np.isinf(scores)))
        found = f"{scores[row]:g} in column {quote(column.name)}"
        expected = "a finite number, or nothing where a score is missing"
        raise InputError.of("scores-number", path, found, expected, line=row + 1)
    return scores


def _read_names(column: "Texts", path: str) -> list[str]:
    """Ids as text; those that are numbers as they are written."""
    _check_names(column, path)
    return list(map(str, column.to_list()))


def _check_names(column: "Texts", path: str) -> None:
    missing = column.is_null()
    if missing.any():
        row = int(missing.to_numpy().argmax()) + 1
        found = f"no value in column {quote(column.name)}"
        raise InputError.of("frame-missing", path, found, line=row)


def _code_names(column: "Texts", path: str) -> tuple[list[str], NDArray[np.int64]]:
    """Different ids in the order of their first rows, and the place among them of each row's."""
    import narwhals as nw  # noqa: PLC0415 - files of text need no frames

    _check_names(column, path)
    texts = column if column.dtype == nw.String else column.cast(nw.String)
    _, first, codes = np.unique(frames.code_texts(texts), return_index=True, return_inverse=True)
    order = np.argsort(first)
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    return list(map(str, column[first[order].tolist()].to_list())), positions[codes]
