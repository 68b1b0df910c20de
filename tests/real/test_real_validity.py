"""validity-real.md: what the analyses find in two real rankings, and what it says of them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from heldout.analyses.outcomes.options import DeclaredRules
from heldout.analyses.outcomes.outcomes import all_pairs, analyse_outcomes
from heldout.analyses.reliability import ReliabilityOptions, measure_reliability
from heldout.analyses.stability import RankRanges, bootstrap_stability, rank_ranges
from heldout.cli.analyses.sources import Source, load_measures
from heldout.scoring.first_ranks import first_ranks
from heldout.scoring.table import ScoreTable, score_matrix
from heldout.stats.tests import run_test

pytestmark = pytest.mark.real

PAGE = Path(__file__).parents[2] / "docs" / "results" / "validity-real.md"
DL = ("trec-dl-2021-passage/runs/*.gz", "trec-dl-2021-passage/qrels.dl21-passage.txt.gz")
COVID = ("trec-covid-round1/runs-depth100/*.gz", "trec-covid-round1/qrels-round1.txt.gz")
COLUMNS = [
    (DL, "nDCG@10"),
    (DL, "RR(rel=2)"),
    (COVID, "nDCG@10"),
    (COVID, "P@5"),
    (COVID, "RR@100"),
]
HALVES = {
    "DL 2021, nDCG@10": (DL, "nDCG@10"),
    "DL 2021, RR of grade 2": (DL, "RR(rel=2)"),
    "COVID, nDCG@10": (COVID, "nDCG@10"),
    "COVID, P@5": (COVID, "P@5"),
    "COVID, RR of grade 2": (COVID, "RR(rel=2)"),
    "COVID, RR": (COVID, "RR@100"),
}
Files = tuple[str, str]
Load = Callable[[Files, str], ScoreTable]


@pytest.fixture(scope="module")
def load(data: Callable[[str], Path]) -> Load:
    """Scores by the official order, each set read once."""

    @cache
    def read(files: Files) -> dict[str, ScoreTable]:
        runs, qrels = files
        folder = data(runs.partition("/*")[0])
        source = Source(runs=(f"{folder}/*.gz",), qrels=str(data(qrels)), order="trec9")
        names = sorted({m for f, m in [*COLUMNS, *HALVES.values()] if f == files} | {"RR(rel=2)"})
        return {name: scores.table for name, scores in load_measures(source, names).items()}

    return lambda files, measure: read(files)[measure]


def rng() -> Generator:
    return Generator(PCG64(0))


def rows() -> dict[str, list[str]]:
    """The page's rows by their first cell; of equal ones the last."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: row[1:] for row in cells}


@dataclass(frozen=True)
class Told:
    """Which pairs are told apart, best first."""

    ranges: RankRanges

    @property
    def apart(self) -> NDArray[np.bool_]:
        p = np.nan_to_num(self.ranges.p, nan=1.0)
        return np.triu(p <= 1 - self.ranges.level, 1)

    @property
    def gaps(self) -> NDArray[np.float64]:
        means = np.array(self.ranges.means, np.float64)
        return means[:, None] - means[None, :]


@pytest.mark.slow
@pytest.mark.parametrize("column", range(len(COLUMNS)), ids=["dl", "dl-rr", "covid", "p5", "rr"])
def test_which_pairs_are_told_apart(load: Load, column: int) -> None:
    told = Told(rank_ranges(load(*COLUMNS[column]), rng()))
    page = {name: row[column] for name, row in rows().items() if len(row) == len(COLUMNS)}
    n = len(told.ranges.systems)
    upper = np.triu(np.ones((n, n), bool), 1)
    widths = np.array(told.ranges.high) - np.array(told.ranges.low) + 1

    assert page["significant neighbours"] == f"{np.diagonal(told.apart, 1).sum()} of {n - 1}"
    assert page["significant pairs"].split()[0] == f"{told.apart.sum():,}"
    assert f"({told.apart.sum() / upper.sum():.0%})" in page["significant pairs"]
    assert page["lead group"] == str(len(told.ranges.lead))
    assert page["last rank of the first run's range"] == str(told.ranges.high[0])
    assert page["ranks in a range, median"] == str(sorted(widths)[n // 2])
    assert page["smallest significant difference"] == f"{told.gaps[told.apart].min():.3f}"
    assert (
        page["largest difference that is not significant"]
        == f"{told.gaps[upper & ~told.apart].max():.3f}"
    )
    assert page["runs that are significantly better than no other"] == str(
        int((~told.apart.any(axis=1)).sum())
    )


@pytest.mark.parametrize(
    ("files", "significant", "smallest"), [(DL, 1, 0.0027), (COVID, 0, 0.096)], ids=["dl", "covid"]
)
def test_neighbours_one_by_one(load: Load, files: Files, significant: int, smallest: float) -> None:
    values = score_matrix(load(files, "nDCG@10")).values
    found = [run_test("t", values[i + 1], values[i]).p for i in range(len(values) - 1)]
    known = [p for p in found if p is not None]

    assert sum(p <= 0.05 for p in known) == significant
    assert min(known) == pytest.approx(smallest, abs=5e-4)
    assert len(found) - len(known) == (5 if files == COVID else 0)


@pytest.mark.parametrize(
    ("files", "measure", "figures"),
    [
        (DL, "nDCG@10", (0.996, 0.0, 0.290)),
        (DL, "RR(rel=2)", (0.548, 0.084, 0.162)),
        (COVID, "nDCG@10", (0.570, 0.174, 0.155)),
        (COVID, "RR@100", (0.661, 0.135, 0.048)),
    ],
    ids=["dl", "dl-rr", "covid", "covid-rr"],
)
def test_how_firm_the_first_rank_is(
    load: Load, files: Files, measure: str, figures: tuple[float, float, float]
) -> None:
    first, below, fifth = figures
    shares = bootstrap_stability(load(files, measure), rng()).rank_probability

    assert shares[0, 0] == pytest.approx(first)
    assert 1 - shares[0, :3].sum() == pytest.approx(below)
    assert shares[4, 4] == pytest.approx(fifth)


@pytest.mark.parametrize(
    ("files", "quarters"),
    [(DL, (2.1, 3.0, 2.4, 2.4)), (COVID, (6.9, 10.6, 8.0, 2.7))],
    ids=["dl", "covid"],
)
def test_how_much_ranks_vary_from_the_top_to_the_bottom(
    load: Load, files: Files, quarters: tuple[float, ...]
) -> None:
    found = bootstrap_stability(load(files, "nDCG@10"), rng())
    shares, n = found.rank_probability, len(found.rank_probability)
    distances = (np.arange(1, n + 1) - found.expected_rank[:, None]) ** 2
    spread = np.sqrt((shares * distances).sum(axis=1))

    cuts = [spread[i * n // 4 : (i + 1) * n // 4].mean() for i in range(4)]
    assert cuts == pytest.approx(quarters, abs=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", HALVES, ids=lambda name: re.sub(r"\W+", "-", name))
def test_how_often_halves_agree(load: Load, name: str) -> None:
    found = measure_reliability(load(*HALVES[name]), rng(), ReliabilityOptions())
    columns = list(found.columns.values())
    *cells, equal = rows()[name]

    for cell, column in zip(cells, columns, strict=True):
        agree, _, significant = cell.partition(" / ")
        assert float(agree) == pytest.approx(100 * column.agree, abs=0.051)
        assert not significant or int(significant) == round(100 * column.significant)
    assert float(equal) == pytest.approx(100 * found.equal_medians, abs=0.051)


def test_esl_and_rr_order_pairs_differently_and_never_significantly(load: Load) -> None:
    ranks = first_ranks(load(DL, "RR(rel=2)"), k=100)
    found = analyse_outcomes(ranks, all_pairs(ranks), DeclaredRules())
    page = rows()["ESL and RR favour different runs, by their means over case (3)"]

    both = [(one.tests["esl_t"], one.tests["rr_t"]) for one in found.pairs]
    opposed = [
        (esl, rr)
        for esl, rr in both
        if esl.difference is not None and rr.difference is not None
        if esl.difference * rr.difference > 0
    ]
    assert page[0] == str(len(opposed))
    assert not [1 for esl, rr in opposed if max(esl.p or 1, rr.p or 1) <= 0.05]
    assert {one.verdict.word for one in found.pairs} == {"no verdict"}
