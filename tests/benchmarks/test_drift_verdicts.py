"""Boards without drift are rarely called drifting, and boards that learn dev nearly always."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from drift_verdicts import WORLDS, judge_board

BOARDS = 20


@pytest.mark.night
def test_only_boards_that_learn_dev_are_called_drifting() -> None:
    for number, world in enumerate(WORLDS):
        rng = np.random.default_rng([number, 8])
        verdicts = [judge_board(world, rng).verdict for _ in range(BOARDS)]
        called = verdicts.count("not explained")
        if world.learned:
            assert called >= binom.ppf(0.001, BOARDS, 0.8)
        else:
            assert called <= binom.ppf(0.999, BOARDS, 0.1)
