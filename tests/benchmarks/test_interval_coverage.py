"""Every interval holds the truth as often as it says, near ties too; a narrower one does not."""

import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import binom

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from interval_cases import CASES, Case  # noqa: E402 - the same
from interval_coverage import cover  # noqa: E402 - the folder of scripts is no package

UNLIKELY = 0.001
"""A share as far out as this is no chance; there are some 30 cases."""


def name(case: Case) -> str:
    return f"{case.interval}: {case.world}"


def test_no_case_stands_twice_and_near_ties_are_among_them() -> None:
    assert len({name(case) for case in CASES}) == len(CASES)
    assert sum(case.near for case in CASES) > len(CASES) / 2


def test_the_page_has_a_row_for_every_case() -> None:
    page = (BENCHMARKS.parent / "docs" / "results" / "intervals.md").read_text("utf-8")
    table = page.split("## Do the intervals hold?")[1]
    listed = [(row[0].removeprefix("| "), row[1]) for row in table_rows(table)]

    assert listed == [(case.analysis, case.interval) for case in CASES]


def test_the_page_names_the_worst_figure_of_each_printed_interval() -> None:
    page = (BENCHMARKS.parent / "docs" / "results" / "intervals.md").read_text("utf-8")
    worst: dict[tuple[str, str], tuple[float, str]] = {}
    full = page.split("## Do the intervals hold?")[1]
    for analysis, interval, world, _, holds, _ in table_rows(full):
        key, share = (analysis.removeprefix("| "), interval), float(holds.split("%")[0])
        worst[key] = min(worst.get(key, (share, world)), (share, world), key=lambda one: one[0])
    printed = page.split("## Which printed interval is weakest?")[1]
    rows = [line.strip("| ").split(" | ") for line in printed.split("\n\n")[3].splitlines()[2:]]
    named = {(row[0], row[1]): (float(row[3].rstrip("%")), row[2]) for row in rows}

    assert named == {key: one for key, one in worst.items() if key[0] != "(library)"}


def table_rows(text: str) -> list[list[str]]:
    """The cells of the rows that have a share."""
    return [line.split(" | ") for line in text.splitlines() if "±" in line and line[0] == "|"]


@pytest.mark.night
@pytest.mark.parametrize("case", CASES, ids=name)
def test_an_interval_holds_about_as_often_as_it_says(case: Case) -> None:
    found = cover(case, trials=case.trials)

    assert found.intervals > case.trials / 2
    assert found.held >= binom.ppf(UNLIKELY, found.intervals, case.least)


@pytest.mark.night
@pytest.mark.parametrize("case", [one for one in CASES if not one.wide], ids=name)
def test_an_interval_of_a_lower_level_holds_less(case: Case) -> None:
    # So that one that always holds is found out
    found = cover(case, trials=case.trials // 3, level=0.4)

    assert found.held <= binom.ppf(1 - UNLIKELY, found.intervals, 0.5)


@pytest.mark.slow
def test_the_page_can_be_made_by_anyone() -> None:
    command = [sys.executable, str(BENCHMARKS / "interval_coverage.py")]
    ran = subprocess.run(
        [*command, "--trials", "5", "--only", "compare"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "| compare | Success@3 alone |" in ran.stdout
