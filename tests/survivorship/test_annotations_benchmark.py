"""The benchmark reads a file of the published form, told in megabytes."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "annotations.py"


def test_every_way_reads_the_file_that_was_generated() -> None:
    pytest.importorskip("ijson")
    ran = subprocess.run(
        [sys.executable, BENCHMARK, "--size", "1", "--whole"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    size, _, *rows = ran.stdout.splitlines()
    assert size == "1 MiB"
    assert [row.split()[-1] for row in rows if not row.startswith("floor")] == ["238"] * 3
