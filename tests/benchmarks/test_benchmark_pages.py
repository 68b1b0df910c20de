"""The page of intervals has a row for every world that a benchmark of it prints."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PAGE = BENCHMARKS.parent / "docs" / "results" / "intervals.md"


@pytest.mark.parametrize(
    ("script", "fewest", "columns"),
    [
        ("drift_verdicts", ("--boards", "1"), 1),
        ("facet_errors", ("--tables", "1"), 2),
        ("harm_errors", ("--trials", "2"), 7),
        ("rare_failures", ("--trials", "2"), 2),
        ("bounded_means", ("--trials", "2"), 7),
    ],
)
def test_the_page_has_a_row_for_every_world(
    script: str, fewest: tuple[str, str], columns: int
) -> None:
    command = [sys.executable, str(BENCHMARKS / f"{script}.py"), *fewest]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    printed, *more = ran.stdout.strip().split("\n\n")
    page = PAGE.read_text("utf-8").split(f"python benchmarks/{script}.py")[1]
    table, *others = page.split("\n\n")[1:]
    rows = [
        [row.split("|")[1 : 1 + columns] for row in one.splitlines()] for one in (printed, table)
    ]

    assert rows[0] == rows[1]
    assert len(rows[0]) > 3
    assert others[: len(more)] == more  # of betting: how many queries are needed
