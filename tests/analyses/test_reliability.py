"""Agreement of split halves, against a loop, under its laws, and on real runs."""

import json
import warnings
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from drawings import boxes
from heldout.analyses import reliability as module
from heldout.analyses import reliability as report
from heldout.analyses.analysis import Draws
from heldout.analyses.reliability import (
    COLUMNS,
    HalfAgreement,
    Reliability,
    ReliabilityOptions,
    measure_reliability,
)
from heldout.answers.table import list_notes, to_latex, to_markdown
from heldout.cli.program import analyse
from heldout.errors import InputError
from heldout.scoring.sources import Scores
from heldout.scoring.table import ScoreTable, table_of
from heldout.stats.exact import differences
from heldout.stats.rank_tests import rank_differences
from heldout.stats.results import AskedTest
from heldout.stats.tests import run_test

Floats = NDArray[np.float64]


def table(values: Floats) -> ScoreTable:
    return table_of(
        {
            f"s{place:03}": {f"q{query:04}": score for query, score in enumerate(row)}
            for place, row in enumerate(values.tolist())
        }
    )


def simulated(systems: int, queries: int, seed: int = 0) -> ScoreTable:
    random = np.random.default_rng(seed)
    skill = np.linspace(-0.5, 0.4, systems)[:, None]
    ease, own = random.normal(size=queries), random.normal(size=(systems, queries))
    ranks = np.floor(np.exp(np.minimum(1.5 - 2.5 * (skill + 0.9 * ease + 0.45 * own), 9))) + 1
    return table(np.where(ranks <= 100, 1 / ranks, 0.0))


def measure(
    scores: ScoreTable,
    *,
    seed: int = 0,
    executor: Executor | None = None,
    **options: object,
) -> Reliability:
    return measure_reliability(
        scores,
        np.random.default_rng(seed),
        ReliabilityOptions(**options),  # type: ignore[arg-type] # by name
        executor=executor,
    )


def one_p(name: str, x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    """The p of one test; that of signed-rank by its normal approximation, however few there are."""
    if name != "signed-rank":
        return run_test(name, x, y).p
    ask = AskedTest(alternative="two-sided", level=0.95)
    return rank_differences(differences(x, y), ask, exact_at_most=0).p


def by_loop(scores: ScoreTable, first: NDArray[np.bool_], name: str, alpha: float) -> list[float]:
    """The definitions of the paper, a pair and a split at a time."""
    column = COLUMNS[name]
    middle = np.mean if column.by == "mean" else np.median
    counts = {"agree": 0, "partly": 0, "disagree": 0, "significant": 0}
    made = 0
    for inside in first:
        for a, x in enumerate(scores.values):
            for y in scores.values[:a]:
                better, significant = [], []
                for half in (inside, ~inside):
                    apart = round(float(middle(y[half]) - middle(x[half])), 12)
                    better.append(np.sign(apart))
                    p = one_p(column.test, x[half], y[half])
                    significant.append(p is not None and p <= alpha)
                same = better[0] == better[1]
                if same and significant[0] == significant[1]:
                    counts["agree"] += 1
                elif same or not any(significant):
                    counts["partly"] += 1
                else:
                    counts["disagree"] += 1
                counts["significant"] += any(significant)
                made += 1
    return [count / made for count in counts.values()]


def shares(found: HalfAgreement) -> list[float]:
    return [found.agree, found.partly, found.disagree, found.significant]


@pytest.mark.parametrize("queries", [12, 31])
def test_shares_are_those_of_a_loop_over_the_definitions(queries: int) -> None:
    scores = simulated(5, queries)
    alpha = 0.2
    found = measure(scores, seed=3, splits=4, alpha=alpha)
    first = module._draw_halves(np.random.default_rng(3), queries, 4)
    for name in COLUMNS:
        assert shares(found.columns[name]) == pytest.approx(by_loop(scores, first, name, alpha))


def test_nobody_better_in_both_halves_is_agreement_and_in_one_it_is_not() -> None:
    same = table(np.tile([0.0, 0.5, 1.0, 0.25, 1.0], (2, 1)))
    found = measure(same, splits=10)
    assert found.equal_means == found.equal_medians == 1
    for agreement in found.columns.values():
        assert shares(agreement) == [1, 0, 0, 0]
    one = np.tile([0.0, 0.5, 1.0, 0.25, 1.0, 0.5], (2, 1))
    one[1, 2] = 0.5
    found = measure(table(one), splits=10)
    assert found.equal_means == 0.5
    assert shares(found.columns["t"]) == [0, 1, 0, 0]
    assert shares(measure(table(one), splits=10, equal="either").columns["t"]) == [1, 0, 0, 0]
    assert found.columns["sign"].undefined == 0.5


def test_a_clearly_better_system_is_so_in_both_halves() -> None:
    random = np.random.default_rng(0)
    low = 0.3 * random.random(60)
    found = measure(table(np.stack((low, low + 0.2 + 0.1 * random.random(60)))), splits=20)
    for agreement in found.columns.values():
        assert shares(agreement) == [1, 0, 0, 1]


def test_rank_sum_is_conservative_where_systems_agree_on_what_is_hard() -> None:
    random = np.random.default_rng(8)
    ease = random.normal(size=200)
    alike = table(ease + 0.5 * random.normal(size=(30, 200)))
    found = measure(alike, splits=10)
    assert found.correlation == pytest.approx(0.8, abs=0.05)
    assert found.columns["rank_sum"].significant < 0.01 < found.columns["t"].significant
    assert 0.05 < found.columns["t"].significant < 0.15


def test_under_the_null_a_half_is_significant_as_often_as_alpha_says() -> None:
    random = np.random.default_rng(9)
    equal = table(random.normal(size=(60, 80)).round(2))
    found = measure(equal, splits=20, alpha=0.1)
    for name, agreement in found.columns.items():
        # In either of two halves, which are independent
        assert agreement.significant == pytest.approx(0.19, abs=0.04), name


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (np.zeros((1, 9)), "too-few-systems"),
        (np.zeros((3, 3)), "too-few-queries"),
        (np.zeros((3, 1)), "too-few-queries"),
    ],
)
def test_too_little_is_an_error(values: Floats, code: str) -> None:
    with pytest.raises(InputError) as error:
        measure(table(values))
    assert [problem.code for problem in error.value.problems] == [code]


def test_two_systems_that_vary_have_a_correlation_and_one_has_none() -> None:
    rising = np.arange(8) / 8
    for others, expected in (([rising, 1 - rising], -1.0), ([rising], None)):
        constant = [np.full(8, 0.5)] * (3 - len(others))
        assert measure(table(np.stack([*others, *constant]))).correlation == expected


def test_constant_scores_say_nothing_and_are_told_so() -> None:
    found = measure(table(np.full((3, 8), 0.5)), splits=3)
    assert found.correlation is None
    assert all(agreement.undefined == 1 for agreement in found.columns.values())
    assert any("no p-value" in note for note in list_notes(report.tables(found)[0]))


@pytest.mark.parametrize("wrong", [{"splits": 0}, {"alpha": 0.0}, {"alpha": 1.0}])
def test_options_out_of_range_are_bugs(wrong: dict[str, object]) -> None:
    options = ReliabilityOptions(**wrong)  # type: ignore[arg-type] # by name
    with pytest.raises(ValueError, match=next(iter(wrong))):
        module.ANALYSIS.answer(Scores(table=simulated(2, 9), measure=""), options, Draws())


def test_the_report_says_what_has_to_be_said() -> None:
    found = measure(simulated(6, 40), splits=40)
    shown, beside = report.tables(found, measure="RR@10")
    notes = " ".join(list_notes(shown))
    for words in (
        "takes runs as independent",
        "not corrected",
        "not a confidence interval",
        "differences of 0 are dropped",
    ):
        assert words in notes
    assert "cannot follow from the definitions" in beside.method[0]
    assert [column.name for column in beside.columns] == ["test", "better by", "agree", "published"]
    for form in (to_markdown, to_latex):
        assert "rank-sum" in form(shown)
    assert len(boxes(report.chart(found))) == 21


@pytest.mark.parametrize(
    ("name", "part", "agree"),
    [
        ("RR(rel=2)@100", "4a", [0.933, 0.921, 0.912, 0.917, 0.802, 0.812, 0.807]),
        ("RR@10", "4b", [0.928, 0.916, 0.908, 0.908, 0.806, 0.814, 0.812]),
        ("nDCG@10", "4c", [0.949, 0.922, 0.910, 0.918, 0.852, 0.842, 0.833]),
    ],
)
def test_each_part_of_the_papers_table_stands_beside_its_own_measure(
    name: str, part: str, agree: list[float]
) -> None:
    _, beside = report.tables(measure(simulated(3, 12), splits=2), measure=name)
    assert f"table {part}" in beside.title
    assert [row[3] for row in beside.rows] == agree


@pytest.mark.parametrize("name", ["", "RR", "RR@20", "nDCG@20", "P@10"])
def test_nothing_stands_beside_a_measure_that_the_paper_does_not_have(name: str) -> None:
    assert len(report.tables(measure(simulated(3, 12), splits=2), measure=name)) == 1


@pytest.mark.parametrize(("transformed", "tables"), [(False, 2), (True, 1)])
def test_nothing_stands_beside_transformed_scores(*, transformed: bool, tables: int) -> None:
    scores = Scores(table=simulated(3, 12), measure="RR@10", transformed=transformed)
    answer = module.ANALYSIS.answer(scores, ReliabilityOptions(splits=2), Draws())
    assert len(answer.tables) == tables


def test_few_splits_have_no_ends() -> None:
    few, enough = (measure(simulated(3, 12), splits=splits) for splits in (39, 40))

    for found in few.columns.values():
        assert (found.agree_low, found.agree_high) == (None, None)
    assert {row[3] for row in report.tables(few)[0].rows} == {"-"}
    assert all(found.agree_low is not None for found in enough.columns.values())
    assert "1 random split of 12 queries, 3 pairs of systems" in " ".join(
        list_notes(report.tables(measure(simulated(3, 12), splits=1))[0])
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-14, 1.0, 1e100])
def test_the_correlation_of_any_scores_is_a_number_or_undefined(scale: float) -> None:
    values = np.random.default_rng(0).random((3, 12)) * scale
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = measure(table(values), splits=1).correlation

    assert (found is None) == (scale < 1e-12)
    assert found is None or abs(found) <= 1


def test_the_headline_says_what_is_equal_and_what_is_undefined() -> None:
    told = dict(report.summary(measure(table(np.full((2, 8), 0.5)), splits=2)))

    assert told["by mean"] == (
        "halves agree in 100.0% of pairs, whichever test is taken; means are equal in 100.0% of "
        "comparisons; a test is undefined in up to 100.0%"
    )


def call(*arguments: str) -> str:
    outcome = CliRunner().invoke(analyse, ["reliability", *arguments])
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


@pytest.mark.slow
@pytest.mark.real
def test_mean_is_more_reliable_than_median_on_covid_runs(data: Callable[[str], Path]) -> None:
    folder = data("trec-covid-round1")
    runs, qrels = str(folder / "runs-depth100" / "*.gz"), str(folder / "qrels-round1.txt.gz")
    answer = json.loads(
        call("--runs", runs, "--qrels", qrels, "-m", "nDCG@10", "--splits", "10", "--json")
    )
    assert (answer["systems"], answer["queries"], answer["pairs"]) == (143, 30, 10153)
    tests = answer["columns"]
    for test in ("sign", "rank_sum", "signed_rank"):
        assert tests[test]["agree"] > tests[f"{test}_median"]["agree"]
