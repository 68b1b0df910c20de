"""Annotation depth of MS MARCO: table 2 and figure 1 of Gupta and MacAvaney 2022, for scores."""

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from heldout.analyses.outcomes.curves import SuccessCurves, success_curves
from heldout.cli.analyses.sources import Source, load_measures
from heldout.cli.program import main
from heldout.scoring.first_ranks import MethodSide, first_ranks
from heldout.scoring.table import ScoreTable, table_of
from heldout.stats.results import bonferroni
from heldout.stats.tests import run_test

pytestmark = [pytest.mark.real]

FIGURE_1 = {
    "nDCG@10": (0.7215, 0.6995, 0.7164),
    "RR(rel=2)": (0.8456, 0.8915, 0.9031),
    "AP(rel=2)": (0.4604, 0.4456, 0.4542),
    "AP": (0.4793, 0.4495, 0.4666),
}
"""monoT5 trained on all labels, on those at depth 1, at depth 5; TREC DL 2019 passages. Computed
from the authors' runs: the paper prints a chart and no numbers."""


def read_answers(path: Path) -> ScoreTable:
    """RR of each model on 50 queries that had been discarded; 0 where no answer was found."""
    scores: dict[str, dict[str, float | None]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            rank = row["rank"]
            found = 0.0 if rank == "NA" else 1 / int(rank)
            own = scores.setdefault(row["scorer"], {})
            own[row["query_id"]] = max(found, own.get(row["query_id"]) or 0.0)
    return table_of(scores)


@pytest.fixture(scope="module")
def answers(data: Callable[[str], Path]) -> ScoreTable:
    return read_answers(data("msmarco-annotation-depth/discarded_rankings_by_model.tsv"))


def curves(table: ScoreTable, first: str, second: str) -> SuccessCurves:
    a, b = (MethodSide(name=name, runs=(name,)) for name in (first, second))
    return success_curves(first_ranks(table, k=10), a, b, np.random.default_rng(0), draws=199)


def test_table_2_no_answer_in_top_10_in_top_3(answers: ScoreTable) -> None:
    published = {"BM25": (28, 17), "ANCE": (28, 17), "ColBERT": (32, 28), "monoT5": (34, 30)}
    names = {name.lower(): name for name in answers.systems}
    assert len(answers.queries) == 50
    for name, (top_10, top_3) in published.items():
        found = curves(answers, names[name.lower()], names["monot5"]).success_a
        assert (round(50 * found[9]), round(50 * found[2])) == (top_10, top_3)
    assert int((answers.values == 0).all(axis=0).sum()) == 15


@pytest.fixture(scope="module")
def figure_1(data: Callable[[str], Path]) -> Mapping[str, ScoreTable]:
    runs = data("msmarco-annotation-depth/runs")
    source = Source(
        runs=tuple(
            str(runs / f"{name}.dl19.run.gz") for name in ("monot5", "monot5-sim1", "monot5-sim5")
        ),
        qrels=str(data("qrels/qrels.dl19-passage.txt.gz")),
        order="trec9",
        jobs=1,
    )
    return {name: one.table for name, one in load_measures(source, list(FIGURE_1)).items()}


@pytest.mark.parametrize("measure", FIGURE_1)
def test_figure_1_on_dl_2019(figure_1: Mapping[str, ScoreTable], measure: str) -> None:
    table = figure_1[measure]

    assert len(table.queries) == 43
    for system, score in zip(table.systems, FIGURE_1[measure], strict=True):
        assert table.mean(system) == pytest.approx(score, abs=0.00005)


def test_the_star_of_figure_1_on_dl_2019_is_that_of_ap_with_grade_1(
    figure_1: Mapping[str, ScoreTable],
) -> None:
    """Paired t against all labels, by Bonferroni over both depths of a measure.

    The paper says that depth 1 differs significantly on all four of its sets and RR on none of
    TREC's. On DL 2019 only AP does, with grade 1 counted as relevant as trec_eval has it. By the
    measures of the authors' own script, which count grade 2, nothing does.
    """
    found = {
        measure: bonferroni([run_test("t", table.values[0], other).p for other in table.values[1:]])
        for measure, table in figure_1.items()
    }

    significant = {
        (measure, depth)
        for measure, ps in found.items()
        for depth, p in zip((1, 5), ps, strict=True)
        if p is not None and p < 0.05
    }
    assert significant == {("AP", 1)}
    assert found["AP"][0] == pytest.approx(0.0047, abs=0.00005)
    assert found["AP(rel=2)"][0] == pytest.approx(0.18, abs=0.005)
    assert found["RR(rel=2)"][0] == pytest.approx(0.56, abs=0.005)
    assert found["nDCG@10"][0] == pytest.approx(0.2617, abs=0.0001)


def test_the_command_tells_which_models_of_figure_1_differ_by_ap(
    data: Callable[[str], Path], figure_1: Mapping[str, ScoreTable]
) -> None:
    """All three pairs of the figure; the paired sign flips of the command agree with paired t."""
    runs = data("msmarco-annotation-depth/runs")
    qrels = data("qrels/qrels.dl19-passage.txt.gz")
    asked = ["--runs", str(runs / "monot5*.dl19.run.gz"), "--qrels", str(qrels), "-m", "AP"]
    found = CliRunner().invoke(
        main, ["analyse", "stability", *asked, "--order", "trec9", "--trials", "10", "--json"]
    )
    assert found.exit_code == 0, found.output
    value = json.loads(found.stdout)
    p = dict(zip(value["systems"], value["ranges"]["p"], strict=True))
    place = {name: at for at, name in enumerate(value["systems"])}

    table = figure_1["AP"].values
    pairs = {("", "-sim1"): (0, 1), ("", "-sim5"): (0, 2), ("-sim5", "-sim1"): (2, 1)}
    ps = bonferroni([run_test("t", table[a], table[b]).p for a, b in pairs.values()])
    for (one, other), by_t in zip(pairs, ps, strict=True):
        flips = p[f"monot5{one}.dl19"][place[f"monot5{other}.dl19"]]
        assert by_t is not None
        assert (flips < 0.05) == (by_t < 0.05) == (other == "-sim1")
    assert ps == pytest.approx([0.0071, 0.4209, 0.0006], abs=0.00005)
