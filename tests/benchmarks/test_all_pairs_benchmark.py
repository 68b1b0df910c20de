"""The benchmark of all pairs runs, and has a row for each size."""

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "all_pairs.py"


def test_it_prints_a_row_for_each_analysis_and_size() -> None:
    command = [sys.executable, str(BENCHMARK), "5", "6", "--queries", "8", "--only", "stability"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [line for line in ran.stdout.splitlines() if "| stability |" in line]
    assert [row.split(" | ")[0] for row in rows] == ["| 5", "| 6"]
