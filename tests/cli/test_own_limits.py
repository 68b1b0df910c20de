"""Limits are for strangers' files: who scores runs of their own may have as many queries as any."""

import json
from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from io import BytesIO
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from heldout.cli.evaluation import evaluate, validate
from heldout.cli.program import main
from heldout.errors import InputError
from heldout.rankers.run import read_run
from heldout.scoring.run_files import read_each, scan_file
from heldout.trec.reading.streams import OWN_FILES, Limits
from heldout.trec.runs import scan_run
from heldout.trec.tops import read_positions, read_tops

MANY = Limits().queries + 1
"""As many queries as the train or the whole dev set of MS MARCO has, or more."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "many.tsv"
    path.write_bytes(b"".join(b"%d\td\t1\n" % query for query in range(MANY)))
    return path


def call(command: click.Command, *arguments: object) -> Result:
    found = CliRunner(env={"HELDOUT_CACHE": "off"}).invoke(
        main, [str(command.name), *map(str, arguments)]
    )
    assert found.exit_code == 0, found.output
    return found


def test_evaluate_and_validate_take_as_many_queries_as_a_collection_has(
    run: Path, tmp_path: Path
) -> None:
    qrels, queries = tmp_path / "qrels", tmp_path / "queries.tsv"
    qrels.write_text("".join(f"{query} 0 d 1\n" for query in range(MANY)))
    queries.write_text("".join(f"{query}\ttext\n" for query in range(MANY)))
    scored = call(evaluate, run, "--qrels", qrels, "-m", "RR@10", "--json")
    assert json.loads(scored.stdout)["runs"][0]["scores"]["RR@10"] == 1.0
    assert "no problem" in call(validate, run, "--queries", queries).output


@pytest.mark.night
def test_tops_and_first_stages_take_them(run: Path) -> None:
    assert len(read_each({"many": str(run)}, depth=1, order=None)["many"]) == MANY
    with run.open("rb") as file:
        assert len(read_run(file, path="run")) == MANY


def test_a_query_may_be_as_deep_as_a_collection_is_large(tmp_path: Path) -> None:
    deep = Limits().documents + 1
    path = tmp_path / "deep.run"
    path.write_bytes(b"".join(b"q Q0 %099d %d -%d t\n" % (r, r, r) for r in range(1, deep + 1)))
    assert path.stat().st_size > Limits().query_bytes
    assert scan_file(str(path), order=None).facts.max_depth == deep


@pytest.mark.parametrize(
    "read",
    [
        lambda source: scan_run(source, path="run", order=None).rankings,
        pytest.param(partial(read_tops, path="run", depth=1), marks=pytest.mark.night),
        partial(read_positions, path="run", documents={}),
    ],
    ids=["scan", "tops", "places"],
)
def test_strangers_runs_are_limited_unless_somebody_says_otherwise(
    run: Path, read: Callable[[BytesIO], object]
) -> None:
    with pytest.raises(InputError) as caught:
        read(BytesIO(run.read_bytes()))
    (problem,) = caught.value.problems
    assert (problem.code, problem.hint) == (
        "too-many-queries",
        "is this the run of another query set?",
    )


def test_no_limit_is_narrower_for_own_files() -> None:
    assert all(
        own >= other for own, other in zip(astuple(OWN_FILES), astuple(Limits()), strict=True)
    )
