"""Boards without drift are rarely called drifting, and boards that learn dev nearly always."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from drift_verdicts import WORLDS, judge_board  # noqa: E402 - a folder, no package

BOARDS = 20


@pytest.mark.slow
def test_only_boards_that_learn_dev_are_called_drifting() -> None:
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng([number, 8])
        verdicts = [judge_board(world, rng).verdict for _ in range(BOARDS)]
        called = verdicts.count("not explained")
        if world.learned:
            assert called >= binom.ppf(0.001, BOARDS, 0.8)
        else:
            assert called <= binom.ppf(0.999, BOARDS, 0.1)


def test_the_page_has_a_row_for_every_world() -> None:
    command = [sys.executable, str(BENCHMARKS / "drift_verdicts.py"), "--boards", "1"]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    page = (BENCHMARKS.parent / "docs" / "results" / "intervals.md").read_text("utf-8")
    table = page.split("python benchmarks/drift_verdicts.py")[1].split("\n\n")[1]
    names = [[row.split("|")[1] for row in text.splitlines()] for text in (ran.stdout, table)]

    assert names[0] == names[1]
    assert len(names[0]) == len(WORLDS) + 2
