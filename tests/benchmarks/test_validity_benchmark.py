"""The benchmark of the validity analyses runs, and its data are what it says."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from validity import Measured, format_measured  # noqa: E402 - the folder of scripts is no package
from validity_rows import ROWS, Row  # noqa: E402 - the same
from validity_scores import simulate  # noqa: E402 - the same


@pytest.mark.night
def test_it_runs_and_prints_every_row() -> None:
    command = [sys.executable, str(BENCHMARKS / "validity.py"), "--quick"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "12 systems x 200 queries" in ran.stdout
    for row in ROWS:
        assert f"| {row.what} |" in ran.stdout


def test_the_scores_have_the_means_and_correlation_that_are_stated() -> None:
    scores = simulate(systems=116, queries=5793, seed=0)
    means = scores.rr.mean(axis=1)
    between = np.asarray(np.corrcoef(scores.rr))[np.triu_indices(116, 1)].mean()
    assert abs(means.min() - 0.23) < 0.015
    assert abs(means.max() - 0.53) < 0.015
    assert abs(between - 0.67) < 0.02
    assert len(np.unique(scores.rr)) == 101
    assert len(np.unique(scores.ndcg)) > 900
    again = simulate(systems=116, queries=5793, seed=0)
    assert again.rr.tobytes() == scores.rr.tobytes()


def test_a_missed_target_is_told() -> None:
    row = Row(what="work", ours=len, at_most_ratio=0.1, at_most_seconds=1.0)  # type: ignore[arg-type] # not called
    quick = Measured(row=row, ours=(0.5, 0.6, 0.4), peer=6.0, floor=None)
    slow = Measured(row=row, ours=(0.5,), peer=4.0, floor=0.1)
    assert (quick.met, slow.met) == (True, False)
    assert Measured(row=Row(what="", ours=len), ours=(1.0,), peer=None, floor=None).met is None  # type: ignore[arg-type] # not called
    assert "1/12" in format_measured([quick])
    assert "**no**" in format_measured([slow])
