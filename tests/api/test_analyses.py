"""Each analysis from Python says what its command says, in every digit."""

import inspect
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import heldout as ho
from heldout.analyses.analysis import ANALYSES
from heldout.cli.program import analyse
from heldout.errors import InputError

SYSTEMS = tuple(f"run{n}" for n in range(6))
QUERIES = tuple(f"q{n:02}" for n in range(48))
Rows = Mapping[str, Mapping[str, float]]


def rows(seed: int) -> Rows:
    ranks = np.random.default_rng(seed).integers(1, 12, (len(SYSTEMS), len(QUERIES)))
    values = np.where(ranks > 10, 0, 1 / ranks).tolist()
    return {
        system: dict(zip(QUERIES, row, strict=True))
        for system, row in zip(SYSTEMS, values, strict=True)
    }


def write_csv(path: Path, scores: Rows) -> str:
    lines = [",".join(("query", *scores))]
    lines += [",".join((q, *(repr(row[q]) for row in scores.values()))) for q in QUERIES]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    paths = {
        name: write_csv(tmp_path / f"{name}.csv", rows(seed)) for seed, name in enumerate("ab")
    }
    entries = ["id,date,team"] + [f"{s},2026-0{n + 1}-10,t{n % 2}" for n, s in enumerate(SYSTEMS)]
    kinds = [f"{query}\t{('even', 'odd')[n % 2]}" for n, query in enumerate(QUERIES)]
    judges = {
        judge: [
            f"{query} 0 d{n} {(n * len(judge) + k) % 3}"
            for k, query in enumerate(QUERIES)
            for n in range(6)
        ]
        for judge in ("ann", "robert")
    }
    for name, lines in {"entries.csv": entries, "kinds.tsv": kinds, **judges}.items():
        (tmp_path / name).write_text("\n".join(lines) + "\n", "utf-8")
        paths[name.split(".")[0]] = str(tmp_path / name)
    return paths


def judgments(path: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in Path(path).read_text("utf-8").splitlines():
        query, _, document, grade = line.split()
        found.setdefault(query, {})[document] = int(grade)
    return found


KINDS = {query: ("even", "odd")[n % 2] for n, query in enumerate(QUERIES)}


def ask(name: str, files: Mapping[str, str]) -> tuple[Sequence[str], Sequence[Any], dict[str, Any]]:
    """What the command is given, and what the function is given for the same."""
    a, b = files["a"], files["b"]
    first, second, entries = rows(0), rows(1), files["entries"]
    scores = ["--scores", a, "-m", "RR@10"]
    of_rows: tuple[Sequence[Any], dict[str, Any]] = ([first], {"measure": "RR@10"})
    dated = [*scores, "--entries", entries]
    cases: Mapping[str, tuple[Sequence[str], Sequence[Any], dict[str, Any]]] = {
        "stability": ([*scores, "--trials", "50"], *of_rows[:1], of_rows[1] | {"trials": 50}),
        "reliability": ([*scores, "--splits", "5"], [first], {"measure": "RR@10", "splits": 5}),
        "outcomes": (scores, *of_rows),
        "power": ([*scores, "--size", "100"], [first], {"measure": "RR@10", "size": [100]}),
        "facets": (
            [*scores, "--facet", files["kinds"], "--draws", "99"],
            [first, KINDS],
            {"measure": "RR@10", "draws": 99},
        ),
        "scales": (["-m", "RR@3"], ["RR@3"], {}),
        "views": (["--scores", a, "--scores", b], [{"a": first, "b": second}], {}),
        "progress": (dated, [first, entries], {"measure": "RR@10"}),
        "drift": ([*dated, "--dev-scores", b], [first, entries, second], {"measure": "RR@10"}),
        "teams": ([*dated, "--reserve-scores", b], [first, entries, second], {"measure": "RR@10"}),
        "agreement": (
            ["--qrels", files["ann"], "--qrels", files["robert"]],
            [{judge: judgments(files[judge]) for judge in ("ann", "robert")}],
            {},
        ),
    }
    return cases[name]


@pytest.mark.parametrize("name", ANALYSES)
def test_the_function_and_the_command_say_the_same(name: str, files: Mapping[str, str]) -> None:
    command, given, options = ask(name, files)
    shown = CliRunner().invoke(analyse, [name, *command, "--json"])
    assert shown.exit_code == 0, shown.output
    answer = getattr(ho, name)(*given, **options)
    assert json.loads(json.dumps(answer.to_dict())) == json.loads(shown.stdout)


def test_every_analysis_is_a_function_with_help() -> None:
    for name in ANALYSES:
        function = getattr(ho, name)
        assert name in ho.__all__
        assert "Args:" in (inspect.getdoc(function) or "")
        parameters = inspect.signature(function).parameters
        assert all(f"    {one}: " in function.__doc__ for one in parameters), name


def test_an_unknown_option_and_one_out_of_bounds_are_refused() -> None:
    with pytest.raises(TypeError, match="no option samples"):
        ho.stability(rows(0), samples=5)  # type: ignore[call-arg]  # that is the point
    with pytest.raises(ValueError, match="trials"):
        ho.stability(rows(0), trials=0)
    with pytest.raises(ValueError, match="'none' is none of"):
        ho.stability(rows(0), ties="none")  # type: ignore[arg-type]  # that is the point


def test_a_frame_of_scores_is_its_table() -> None:
    frame = pd.DataFrame(rows(0)).rename_axis("query").reset_index()
    answer = ho.stability(frame, trials=20)
    assert answer.to_dict() == ho.stability(rows(0), trials=20).to_dict()


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"run": ["a", "b"], "RR@10": [0.1, 0.2]}, "scores-header"),
        ({"query": ["a", "a"], "x": [0.1, 0.2], "y": [0.3, 0.4]}, "scores-repeated-query"),
        ({"query": ["a", "b"], "x": [0.1, 0.2], "y": ["1", "2"]}, "frame-type"),
        ({"query": ["a", "b"], "x": [0.1, 0.2], "y": [0.3, float("nan")]}, "missing-scores"),
        ({"query": ["a", "b"], "x": [0.1, 0.2], "y": [0.3, 40.0]}, "scores-range"),
        ({"query": ["a", "b"], "x": [0.0, 0.0], "y": [0.0, 0.0]}, "all-zero"),
    ],
)
def test_a_frame_that_is_no_table_of_scores_is_refused(columns: Any, code: str) -> None:
    with pytest.raises(InputError) as refused:
        ho.stability(pd.DataFrame(columns), measure="RR@10")
    assert refused.value.code == code


def test_an_answer_is_frames_and_a_page() -> None:
    answer = ho.stability(rows(0), trials=20)
    frame = answer.to_pandas()
    assert len(frame) == len(answer.tables[0].rows)
    page = answer._repr_html_()
    assert "<table" in page
    assert 'src="data:image/svg+xml;base64,' in page
    assert "<script" not in page
