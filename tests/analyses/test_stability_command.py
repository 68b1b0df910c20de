"""`heldout analyse stability`: the same answer in every form, and what bad input is told."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import simulated_boards

import calling
from drawings import root_of
from heldout.analyses.analysis import Draws
from heldout.analyses.stability import (
    ANALYSIS,
    StabilityOptions,
    bootstrap_stability,
    chart,
    rank_ranges,
)
from heldout.scoring.sources import Scores
from heldout.scoring.table import table_of

answer = partial(calling.answer, "analyse", "stability")
call = partial(calling.call, "analyse", "stability")


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    better = np.array([0.0, 0.4, 0.02, 0.9])
    values = np.random.default_rng(5).random((40, 4)).round(3) + better
    path = tmp_path / "scores.csv"
    rows = [
        "query,plain,good,other,best",
        *(f"q{n}," + ",".join(map(str, row)) for n, row in enumerate(values.round(3).tolist())),
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_json_has_the_keys_that_scripts_call(scores: Path) -> None:
    found = answer("--scores", scores, "--flips", 999)

    assert found["systems"] == ["best", "good", "plain", "other"]
    assert found["trials"] == 1000
    assert [sum(row) for row in found["rank_probability"]] == pytest.approx([1] * 4)
    assert found["expected_rank"][0] < found["expected_rank"][1] < found["expected_rank"][2]
    assert (found["ranges"]["low"], found["ranges"]["high"]) == ([1, 2, 3, 3], [1, 2, 4, 4])
    assert found["ranges"]["lead"] == ["best"]
    assert found["ranges"]["p"][0][0] is None
    assert found["ranges"]["p"][0][3] == 1 / 1000
    assert (found["ranges"]["pairs"], found["seed"]) == (6, 0)


def test_the_ranges_do_not_depend_on_the_number_of_trials(scores: Path) -> None:
    few, many = (answer("--scores", scores, "--flips", 999, "--trials", n) for n in (10, 500))

    assert few["ranges"]["p"] == many["ranges"]["p"]


@pytest.mark.parametrize("systems", [2, 20, 60, 61])
def test_the_chart_has_a_cell_for_what_happened_and_a_range_for_every_system(
    systems: int,
) -> None:
    values = np.random.default_rng(1).random((systems, 30))
    table = simulated_boards.table({f"s{row}": cells for row, cells in enumerate(values)})
    stability = bootstrap_stability(table, np.random.default_rng(0), trials=200)
    ranges = rank_ranges(table, np.random.default_rng(0), flips=99)

    plot = chart(stability, ranges)

    cells = int((stability.rank_probability >= 0.01).sum())
    key = 4
    assert len([*root_of(plot).iter("rect")]) == cells + systems + key


@pytest.mark.parametrize(("queries", "times"), [(29, 1), (30, 0)])
def test_few_queries_say_why_a_better_system_may_have_a_wider_range(
    tmp_path: Path, queries: int, times: int
) -> None:
    path = tmp_path / "scores.csv"
    rows = (f"q{n},{0.9 - n % 2},{0.3 + 0.001 * (n % 3)},{0.2}" for n in range(queries))
    path.write_text("\n".join(["query,wild,steady,low", *rows]) + "\n")
    text = " ".join(call("--scores", path).output.split())
    said = f"on {queries} queries ranges are wide, and a higher rank may have a wider one"
    assert text.count(said) == times


def test_a_result_knows_its_input_and_options() -> None:
    table = table_of({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 0.0, "y": 0.5}})
    options = StabilityOptions(
        trials=7, size=3, ties="shared", flips=99, level=0.9, single_step=True
    )
    answer = ANALYSIS.answer(Scores(table=table, measure="RR"), options, Draws(seed=3))
    found = answer.document

    assert found["digest"] == table.digest == found["ranges"]["digest"]
    assert (found["trials"], found["size"], found["ties"]) == (7, 3, "shared")
    assert [found["ranges"][key] for key in ("level", "flips", "step_down")] == [0.9, 99, False]
    assert (found["measure"], found["seed"], len(answer.tables)) == ("RR", 3, 2)


@pytest.mark.slow
@pytest.mark.real
def test_the_first_of_dl_2021_is_stable_and_still_not_alone(data: Callable[[str], Path]) -> None:
    found = answer(
        "--runs", data("trec-dl-2021-passage/runs") / "*.gz",
        "--qrels", data("trec-dl-2021-passage/qrels.dl21-passage.txt.gz"),
        "-m", "nDCG@10", "--order", "trec9",
    )  # fmt: skip

    # the figures of docs/results/validity-real.md
    assert (len(found["systems"]), found["queries"], found["ranges"]["pairs"]) == (45, 53, 990)
    assert found["systems"][0] == "NLE_P_v1"
    assert found["rank_probability"][0][0] > 0.99
    assert len(found["ranges"]["lead"]) == 7


@pytest.mark.parametrize("systems", [60, 61, 100])
def test_the_chart_names_the_lead_group_and_all_where_they_fit(systems: int) -> None:
    values = np.random.default_rng(1).random((systems, 8))
    table = simulated_boards.table({f"s{row}": cells for row, cells in enumerate(values)})
    ranges = rank_ranges(table, np.random.default_rng(0), flips=99)
    stability = bootstrap_stability(table, np.random.default_rng(0), trials=20)

    drawn = root_of(chart(stability, ranges, measure="P@5"))
    texts = [(one.text, float(one.get("y", ""))) for one in drawn.iter("text")]
    names = [(text, y) for text, y in texts if text in stability.systems]

    expected = stability.systems if systems == 60 else ranges.lead
    assert names
    assert [text for text, _ in names] == list(expected)[: len(names)]
    assert len(names) >= min(len(expected), 30)
    assert all(low + 14.9 <= high for (_, low), (_, high) in pairwise(names))
    assert {"systems, the best P@5 first", "rank in resamplings of the queries"} <= {
        text for text, _ in texts
    }


def test_equal_systems_are_first_among_equals(tmp_path: Path) -> None:
    path = tmp_path / "equal.csv"
    path.write_text("query,a,b,c\n" + "".join(f"q{n},{n},{n},0\n" for n in range(1, 9)))

    text = call("--scores", path, "--flips", 99).output

    assert "first     a, first among equals: b has its scores on every query" in text


def test_a_long_table_is_cut_and_says_how_to_see_all(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    names = [f"s{n}" for n in range(51)]
    rows = np.random.default_rng(0).random((4, 51)).round(3).tolist()
    lines = [f"q{n},{','.join(map(str, row))}" for n, row in enumerate(rows)]
    path.write_text("\n".join([f"query,{','.join(names)}", *lines]) + "\n")

    cut = call("--scores", path, "--flips", 99, "--trials", 5).output
    whole = call("--scores", path, "--flips", 99, "--trials", 5, "--all").output
    markdown = call("--scores", path, "--flips", 99, "--trials", 5, "--markdown").output

    assert "31 more rows are left out here" in cut
    assert "more      --all: all rows and tables" in cut
    assert len(cut.splitlines()) <= 45
    assert [sum(f" {name} " in text for name in names) for text in (cut, whole, markdown)] == [
        20,
        51,
        51,
    ]


@pytest.mark.slow
@pytest.mark.real
def test_trec_covid_round_1_is_told_apart_at_its_ends_only(data: Callable[[str], Path]) -> None:
    runs = data("trec-covid-round1/runs-depth100")
    found = answer(
        "--runs", runs / "[a-h]*.gz", "--qrels", data("trec-covid-round1/qrels-round1.txt.gz"),
        "-m", "P@5", "--order", "trec9", "--flips", 1999,
    )  # fmt: skip

    n = len(found["systems"])
    assert len(found["ranges"]["lead"]) > 1
    assert found["ranges"]["high"][0] < n
    assert found["ranges"]["low"][-1] > 1
    for rank, low, high in zip(
        range(1, n + 1), found["ranges"]["low"], found["ranges"]["high"], strict=True
    ):
        assert low <= rank <= high
