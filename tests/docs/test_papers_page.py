"""papers.md: the tests that it names exist, and figures that are quick to compute are right."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from heldout.cli.program import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "papers.md").read_text("utf-8")
DEPTHS = "msmarco-annotation-depth"


def row(*cells: str) -> list[str]:
    """The one row that has these texts, as its cells."""
    (found,) = (line for line in PAGE.splitlines() if all(cell in line for cell in cells))
    return [cell.strip() for cell in found.split("|")[1:-1]]


def ask(*arguments: object) -> Any:
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert named
    for path, name in named:
        assert f"\ndef {name}(" in (ROOT / path).read_text("utf-8"), (path, name)


def test_the_values_of_table_3_and_the_gaps_that_they_lack() -> None:
    scale = ask("analyse", "scales", "-m", "RR@3")
    assert row("table 3", "values of RR")[2:4] == [
        ", ".join(f"{value:.2f}" for value in scale["values"]),
        "equal",
    ]
    first, *others = scale["violations"]
    assert row("Craswell et al. 2021, §4.2")[2:4] == [
        ", ".join(f"{value:.2f}" for value in first["missing"]),
        "equal, and others for the gaps 1/3 and 2/3",
    ]
    assert [round(3 * one["gap"], 6) for one in others] == [1, 2]


@pytest.mark.real
def test_the_steps_and_submissions_of_the_boards(data: Callable[[str], Path]) -> None:
    doc, passage = (
        ask("analyse", "progress", "--csv", data(f"leaderboards/msmarco-{name}-leaderboard.csv"))
        for name in ("doc", "passage")
    )
    steps = [step for step in doc["line"] if step["entry"]["received"][:10] <= "2021-04-30"]
    assert row("best runs in turn")[2:4] == [str(len(steps)), "equal"]
    until = [one["received"][:10] <= "2022-04-15" for one in doc["entries"]]
    assert row("mid-April 2022, documents")[2:4] == [str(sum(until)), "equal"]
    until = [one["received"][:10] <= "2022-04-15" for one in passage["entries"]]
    assert row("the same, passages")[3] == f"{sum(until)}; the 161st is of 19 April"


@pytest.mark.real
def test_the_discarded_queries_that_others_answer(data: Callable[[str], Path]) -> None:
    ranks = data(f"{DEPTHS}/discarded_rankings_by_model.tsv")
    found = ask("survive", "answerable", "--ranks", ranks)
    systems = sorted(found["systems"], key=lambda one: one["within"]["10"]["count"])  # as printed
    top_10 = ", ".join(f"{one['system']} {one['within']['10']['count']}" for one in systems)
    top_3 = ", ".join(str(one["within"]["3"]["count"]) for one in systems)
    assert row("answer in the top 10")[2:4] == [top_10, "equal"]
    assert row("the same in the top 3")[2:4] == [top_3, "equal"]


@pytest.mark.real
def test_the_number_of_discarded_queries(data: Callable[[str], Path]) -> None:
    types = data(f"{DEPTHS}/nfcats.msmarco-dev.tsv.gz")
    found = ask("survive", "types", "--annotations", data(DEPTHS), "--types", types)
    count = sum(one["discarded"] for one in found["types"])
    assert row("discarded queries", "in the text")[3] == f"{count:,}"
    assert f"labels have {count:,}" in row("45,551 queries were discarded")[2]


@pytest.mark.real
def test_ndcg_of_the_models_of_figure_1(data: Callable[[str], Path]) -> None:
    runs = [data(f"{DEPTHS}/runs/monot5{name}.dl19.run.gz") for name in ("", "-sim1", "-sim5")]
    qrels = data("qrels/qrels.dl19-passage.txt.gz")
    found = ask("evaluate", *runs, "--qrels", qrels, "--order", "trec9", "-m", "nDCG@10")
    means = ", ".join(f"{one['scores']['nDCG@10']:.4f}" for one in found["runs"])
    assert row("nDCG@10 on DL 2019")[2:4] == [
        "a chart, no number",
        f"{means}, computed here from the published runs",
    ]
