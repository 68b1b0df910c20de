"""Runs from Python: whatever holds the rows, they are read as the file of the same rows is."""

from pathlib import Path
from typing import Any

import pytest

import heldout as ho
from heldout.scoring.given_runs import (
    name_sources,
    read_given_positions,
    read_given_tops,
    read_one_top,
)

# Ties, and scores that are equal as float32 alone.
SCORES = {"q1": {"b": 1.0, "a": 1.0, "c": 1.0 + 1e-12}, "q2": {"x": -2.5, "y": 1e-9}}
TEXT = "".join(
    f"{query} Q0 {doc} 1 {score!r} t\n"
    for query, docs in SCORES.items()
    for doc, score in docs.items()
)
TOPS = {"q1": ("c", "b", "a"), "q2": ("y", "x")}


def every_form(folder: Path) -> dict[str, Any]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    path = folder / "mine.run"
    path.write_text(TEXT)
    rows = [(query, doc, score) for query, docs in SCORES.items() for doc, score in docs.items()]
    columns = dict(zip(("qid", "docno", "score"), map(list, zip(*rows, strict=True)), strict=True))
    return {
        "path": path,
        "text": str(path),
        "mapping": SCORES,
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame(columns),
        "file that was read": ho.read_run(path),
        "mapping that was read": ho.read_run(SCORES),
    }


def test_each_form_has_the_same_first_documents_and_places(tmp_path: Path) -> None:
    wanted = {"q1": ("a", "c"), "q2": ("x", "z")}
    for form, run in every_form(tmp_path).items():
        assert read_given_tops({"r": run}, depth=10) == {"r": TOPS}, form
        (places,) = read_given_positions({"r": run}, documents=wanted).values()
        assert places.found == {"q1": {"a": 3, "c": 1}, "q2": {"x": 2}}, form
        assert read_one_top(run, depth=2)[1] == {"q1": ("c", "b"), "q2": ("y", "x")}, form


def test_ranks_alone_order_as_a_file_of_three_columns() -> None:
    pandas = pytest.importorskip("pandas")
    columns = {"qid": ["q1", "q1"], "docno": ["b", "a"], "rank": [2, 1]}
    assert read_given_tops(pandas.DataFrame(columns), depth=2) == {"run": {"q1": ("a", "b")}}


def test_names_are_those_of_files_keys_and_runs(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.run").write_text(TEXT)
    assert list(name_sources(f"{tmp_path}/*.run")) == ["one", "two"]
    assert list(name_sources([tmp_path / "two.run", ho.read_run(SCORES, name="mine")])) == [
        "two",
        "mine",
    ]
    assert list(name_sources(SCORES)) == ["run"]
    assert list(name_sources({"a": SCORES, "b": tmp_path / "one.run"})) == ["a", "b"]


def test_what_is_no_run_is_refused() -> None:
    with pytest.raises(TypeError, match="no run: int"):
        read_given_tops({"r": 7}, depth=1)
    with pytest.raises(ho.InputError) as caught:
        read_given_tops({"r": {"q1": {"a": float("nan")}}}, depth=1)
    assert caught.value.problems[0].code == "score-nan"
    with pytest.raises(ho.InputError) as caught:
        read_one_top({"a": SCORES, "b": SCORES}, depth=1)
    assert caught.value.problems[0].code == "one-run"
