"""Tables of scores as Parquet and as frames: what CSV has, to the last bit; what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError, SetupError
from heldout.files import frames
from heldout.scoring.sources import read_scores
from heldout.scoring.table import ScoreTable, table_of
from heldout.scoring.table_files import read_table, table_of_frame, write_table

SCORES = st.none() | st.floats(-1e300, 1e300, allow_nan=False)


def small() -> ScoreTable:
    return table_of({"b": {"q1": 0.1, "q2": None, "q3": -0.0}, "a": {"q1": 1 / 3, "q2": 1.0}})


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
@given(st.lists(st.lists(SCORES, min_size=3, max_size=3), min_size=1, max_size=4))
def test_what_is_written_is_read_to_the_last_bit(
    name: str, tmp_path_factory: pytest.TempPathFactory, rows: list[list[float | None]]
) -> None:
    path = tmp_path_factory.mktemp("table") / name
    table = table_of(
        {f"s{n}": dict(zip("zyx", row, strict=True)) for n, row in enumerate(rows)}, queries="zyx"
    )
    write_table(table, path)
    assert read_table(path).digest == table.digest


@pytest.mark.parametrize("reader", ["polars", "pyarrow"])
def test_each_library_reads_and_writes(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_READERS", (reader,))
    write_table(small(), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").digest == small().digest


def test_a_system_may_be_called_query(tmp_path: Path) -> None:
    table = table_of({"query": {"x": 1.0}, "qid": {"x": 0.0}, "run": {"x": 0.5}})
    write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").digest == table.digest


COLUMNS: dict[str, list[Any]] = {"query": ["q1", "q2"], "a": [1, None], "b": [0.5, float("nan")]}
FRAMES: dict[str, Callable[[], Any]] = {
    "polars": lambda: pl.DataFrame(COLUMNS, strict=False),
    "lazy": lambda: pl.LazyFrame(COLUMNS, strict=False),
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pyarrow": lambda: pa.table(COLUMNS),
}


@pytest.mark.parametrize("library", FRAMES)
def test_missing_scores_of_any_library_are_missing(library: str) -> None:
    found = table_of_frame(FRAMES[library]())
    assert found.digest == table_of({"a": {"q1": 1, "q2": None}, "b": {"q1": 0.5}}).digest


def long(**more: list[Any]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        "run": ["b", "b", "a", "a"],
        "query": ["q2", "q1", "q1", "q2"],
        "RR@10": [0.5, 1.0, 0.25, None],
    }
    return columns | more


@pytest.mark.parametrize("library", [pl.DataFrame, pd.DataFrame, pa.table])
def test_a_row_for_each_run_and_query_is_taken(library: Any) -> None:
    expected = table_of({"b": {"q2": 0.5, "q1": 1.0}, "a": {"q1": 0.25}}).digest
    assert table_of_frame(library(long())).digest == expected
    two = library(long(P=[1.0, 1.0, 1.0, 1.0]))
    assert table_of_frame(two, "rr@10").digest == expected
    for measure in (None, "AP"):
        with pytest.raises(InputError, match="measure-name"):
            table_of_frame(two, measure)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"query": ["q1"], "a": ["0.5"]}, "frame-type"),
        ({"query": ["q1"], "a": [True]}, "frame-type"),
        ({"query": ["q1", None], "a": [0.5, 1.0]}, "frame-missing"),
        ({"query": ["q1", "q1"], "a": [0.5, 1.0]}, "scores-repeated-query"),
        ({"query": ["q1", "q2"], "a": [0.5, float("inf")]}, "scores-number"),
        ({"query": ["q1", "Mean"], "a": [0.5, 1.0]}, "scores-summary"),
        ({"document": ["q1"], "a": [0.5]}, "scores-header"),
        ({"query": ["q1"]}, "scores-header"),
        ({"query": pa.array([], pa.string()), "a": pa.array([], pa.float64())}, "scores-empty"),
        (long(query=["q1", "q1", "q1", "q2"]), "scores-repeated-query"),
        (long(run=["a", None, "a", "a"]), "frame-missing"),
    ],
)
def test_a_file_that_is_no_table_of_scores_is_refused(
    columns: dict[str, Any], code: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.parquet"
    pl.DataFrame(pa.table(columns)).write_parquet(path)
    with pytest.raises(InputError) as refused:
        read_scores(str(path))
    problem = refused.value.problems[0]
    assert (problem.code, problem.path) == (code, str(path))
    assert problem.expected


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - no other test needs it

    path = tmp_path / "t.parquet"
    names = ["query", "a", "a"]
    pq.write_table(pa.Table.from_arrays([pa.array(["q"]), *[pa.array([1.0])] * 2], names), path)
    with pytest.raises(InputError) as refused:
        read_table(path)
    assert refused.value.code in ("frame-columns", "parquet")


@pytest.mark.parametrize("content", [b"", b"query,a\nq1,0.5\n", b"PAR1 and nothing else PAR1"])
def test_a_file_that_is_no_parquet_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    with pytest.raises(InputError, match="parquet"):
        read_table(path)


def test_without_a_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "find_spec", lambda _: None)
    for call in (
        lambda: read_table(tmp_path / "t.parquet"),
        lambda: write_table(small(), "t.parquet"),
    ):
        with pytest.raises(SetupError, match=r"heldout\[frames\]"):
            call()


def test_a_system_without_a_score_is_refused_as_in_csv(tmp_path: Path) -> None:
    for name in ("t.csv", "t.parquet"):
        write_table(small(), tmp_path / name)
        with pytest.raises(InputError, match="missing-scores"):
            read_scores(str(tmp_path / name))


def test_scores_are_saved_as_either(tmp_path: Path) -> None:
    table = table_of({"a": {"x": 0.25, "y": 0.5}, "b": {"x": 1 / 3, "y": 0.0}})
    write_table(table, tmp_path / "t.csv")
    read_scores(str(tmp_path / "t.csv")).save(tmp_path / "t.parquet")
    again = read_scores(str(tmp_path / "t.parquet"), "RR")
    assert again.table.digest == table.digest
    assert again.measure == "RR"
    assert np.array_equal(again.table.values, table.values)
