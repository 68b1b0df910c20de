"""The benchmark of all pairs runs, and prints its table."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "all_pairs.py"


def test_it_prints_a_row_with_time_and_memory() -> None:
    pytest.importorskip("polars")
    command = [sys.executable, str(BENCHMARK), "5", "--queries", "8", "--only", "stability"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line for line in ran.stdout.splitlines() if "| stability |" in line]
    (cells,) = (row.split("|")[1:-1] for row in rows)
    assert cells[0].strip() == "5"
    assert all(float(cell) > 0 for cell in cells[2:5])
