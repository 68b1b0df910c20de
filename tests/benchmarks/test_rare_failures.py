"""The warning of rare losses comes where ranges miss, as far as the page says."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from rare_failures import count_warnings  # noqa: E402 - a folder, no package


def test_with_few_queries_nearly_every_miss_has_a_warning() -> None:
    for queries, noise in ((50, 0.005), (100, 0.02)):
        missed, warned = count_warnings(queries, noise, trials=40)
        assert missed > 15
        assert warned >= 0.9 * missed


def test_with_many_queries_a_miss_often_has_no_warning() -> None:
    missed, warned = count_warnings(1000, 0.02, trials=60)

    assert missed > warned


def test_the_page_has_a_row_for_every_world() -> None:
    command = [sys.executable, str(BENCHMARKS / "rare_failures.py"), "--trials", "2"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    page = (BENCHMARKS.parent / "docs" / "results" / "intervals.md").read_text("utf-8")
    table = page.split("python benchmarks/rare_failures.py")[1].split("\n\n")[1]
    names = [[row.split("|")[1:3] for row in text.splitlines()] for text in (ran.stdout, table)]

    assert names[0] == names[1]
    assert len(names[0]) == 14
