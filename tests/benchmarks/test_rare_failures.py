"""The warning of rare losses comes where ranges miss, as far as the page says."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from rare_failures import count_warnings


def test_with_few_queries_nearly_every_miss_has_a_warning() -> None:
    for queries, noise in ((50, 0.005), (100, 0.02)):
        missed, warned = count_warnings(queries, noise, trials=40)
        assert missed > 15
        assert warned >= 0.9 * missed


def test_with_many_queries_a_miss_often_has_no_warning() -> None:
    missed, warned = count_warnings(1000, 0.02, trials=60)

    assert missed > warned
