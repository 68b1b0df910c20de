"""Power planned from a pilot: plans, and what bad input is told."""

import json
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simulated_boards import rng, table

import calling
from drawings import tips
from heldout.analyses import power as report
from heldout.analyses.power import PowerOptions, plan_power
from heldout.answers.table import to_markdown
from heldout.errors import InputError
from heldout.scoring.table import ScoreTable
from heldout.stats.power import detectable_difference, queries_needed

answer = partial(calling.answer, "analyse", "power")
call = partial(calling.call, "analyse", "power")
refused = partial(calling.refused, "analyse", "power")


def pilot(systems: int = 5, queries: int = 60, seed: int = 0) -> ScoreTable:
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=queries)
    ranks = np.floor(np.exp(1 + ease + 0.8 * rng.normal(size=(systems, queries)))) + 1
    values = np.where(ranks <= 10, 1 / ranks, 0.0)
    return table({f"s{n}": row for n, row in enumerate(values)})


def test_plans_follow_from_the_middle_deviation_and_its_interval() -> None:
    found = plan_power(pilot(), rng(), PowerOptions(differences=(0.05,), queries=(60,), trials=50))
    asked = {
        plan.asked: plan for plan in found.plans if plan.queries == 60 or plan.difference == 0.05
    }

    assert asked["difference"].queries == queries_needed(0.05, found.deviation)
    assert (found.deviation_low or 1) < found.deviation < (found.deviation_high or 0)
    plan = asked["difference"]
    assert (plan.queries_low or 1e9) < plan.queries < (plan.queries_high or 0)
    plan = asked["queries"]
    assert (plan.difference_low or 1) < (plan.difference or 0) < (plan.difference_high or 0)
    assert [one.queries for one in found.plans] == sorted(one.queries for one in found.plans)


def test_a_board_is_described_by_the_same_figures() -> None:
    found = plan_power(pilot(systems=3), rng(), PowerOptions(trials=9))
    (plan,) = (one for one in found.plans if one.queries == 500)
    assert plan.difference == pytest.approx(
        detectable_difference(500, found.deviation, alpha=0.05, power=0.8)
    )


@pytest.mark.parametrize("systems", [3, 5])
def test_the_deviation_of_a_pilot_is_the_lower_middle_of_its_pairs(systems: int) -> None:
    """Three pairs have a middle; of ten the lower one is planned for."""
    scores = pilot(systems=systems)
    deviations = sorted(np.std(a - b, ddof=1) for a, b in combinations(scores.values, 2))
    found = plan_power(scores, rng(), PowerOptions(trials=9))
    assert found.deviation == pytest.approx(deviations[(len(deviations) - 1) // 2])


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"differences": [0.0]}, "power-option"),
        ({"differences": [float("nan")]}, "power-option"),
        ({"queries": [1]}, "power-option"),
        ({"alpha": 0.0}, "power-option"),
        ({"alpha": 0.9}, "power-option"),
        ({"power": 0.04}, "power-option"),
        ({"power": 1.0}, "power-option"),
    ],
    ids=["no difference", "nan", "one query", "no alpha", "high alpha", "low power", "sure power"],
)
def test_plans_that_make_no_sense_are_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_power(pilot(), rng(), PowerOptions(**options))
    assert [problem.code for problem in caught.value.problems] == [code]


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ({"a": [0.1, 0.2, 0.3]}, "too-few-systems"),
        ({"a": [0.1], "b": [0.2]}, "too-few-queries"),
        ({"a": [0.1, 0.2] * 2, "b": [0.1, 0.2] * 2}, "no-spread"),
        ({"a": [0.1, 0.2] * 2, "b": [0.2, 0.3] * 2}, "no-spread"),
    ],
    ids=["one system", "one query", "equal", "shifted"],
)
def test_pilots_that_say_nothing_are_refused(rows: dict[str, list[float]], code: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_power(table(rows), rng(), PowerOptions(trials=5))
    assert [problem.code for problem in caught.value.problems] == [code]


@pytest.mark.slow
@pytest.mark.real
def test_trec_dl_2021_can_tell_eight_hundredths_apart(data: Callable[[str], Path]) -> None:
    done = call(
        "--runs", data("trec-dl-2021-passage/runs") / "*.gz",
        "--qrels", data("trec-dl-2021-passage/qrels.dl21-passage.txt.gz"),
        "-m", "nDCG@10", "--size", 53, "--trials", 300, "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    plan = next(one for one in found["plans"] if one["queries"] == 53)

    assert plan["difference"] == pytest.approx(0.080, abs=0.001)
    assert plan["difference_low"] > 0.065
    assert plan["difference_high"] < 0.095


@pytest.mark.parametrize(
    "asked",
    [{"differences": [1e-12]}, {"differences": [1e-300]}, {"queries": [10**30]}],
    ids=["10^23 queries", "10^599 queries", "10^30 queries"],
)
def test_a_number_of_queries_beyond_all_meaning_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        plan_power(pilot(), rng(), PowerOptions(trials=5, **asked))
    assert [problem.code for problem in caught.value.problems] == ["power-option"]


def test_no_plan_is_for_a_difference_that_the_measure_cannot_have() -> None:
    found = plan_power(pilot(), rng(), PowerOptions(queries=(2,), trials=9), largest=1.0)
    (plan,) = found.wanted

    assert (plan.difference, plan.difference_low, plan.difference_high) == (None, None, None)
    assert report.summary(found)[0] == (
        "plan",
        "2 queries find none: larger than the measure can differ",
    )
    assert tips(report.chart(found))
    assert (
        plan_power(pilot(), rng(), PowerOptions(queries=(2,), trials=9)).wanted[0].difference
        is not None
    )
    with pytest.raises(InputError, match="larger than the measure can differ"):
        plan_power(pilot(), rng(), PowerOptions(differences=(1.5,)), largest=1.0)


@pytest.mark.parametrize("queries", [2, 3])
def test_a_pilot_of_few_queries_is_refused(queries: int) -> None:
    with pytest.raises(InputError, match="at least four"):
        plan_power(pilot(queries=queries), rng(), PowerOptions(trials=9))


def test_there_is_no_interval_where_a_resampling_does_not_differ() -> None:
    scores = table({"a": [0, 1, 0, 0, 0, 0], "b": [0, 0, 1, 0, 0, 0]})
    found = plan_power(scores, rng(), PowerOptions(differences=(0.2,)))

    assert found.deviation > 0
    assert (found.deviation_low, found.deviation_high) == (None, None)
    assert (found.wanted[0].queries_low, found.wanted[0].queries_high) == (None, None)
    assert "No interval" in to_markdown(report.tables(found)[0])
    assert report.summary(found)[0][1].endswith(" queries")
    assert tips(report.chart(found))
