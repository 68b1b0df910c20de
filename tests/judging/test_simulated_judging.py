"""Judges of known strength: each way of judging finds the best as often as was said of it."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from heldout.judging.studies.judges import SimulatedJudge

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from judging_designs import DESIGNS, simulate_design

SMALL = 4
# The table of the specification: size of pool, how often the true best is found, judgments.
_TABLE = [
    ("tournament-1", 4, 0.51, 6.0),
    ("tournament-1", 6, 0.47, 15.0),
    ("tournament-3", 4, 0.60, 18.0),
    ("tournament-3", 6, 0.58, 45.0),
    ("strengths-3", 4, 0.64, 18.0),
    ("strengths-3", 6, 0.63, 45.0),
    ("lead-2", 4, 0.65, 9.6),
    ("lead-2", 6, 0.59, 15.9),
    ("lead-3", 4, 0.68, 14.8),
    ("lead-3", 6, 0.61, 24.7),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size", "share", "judgments"),
    [pytest.param(*row, marks=[pytest.mark.night] * (row[1] > SMALL)) for row in _TABLE],
)
def test_the_true_best_is_found_as_often_as_the_table_says(
    name: str, size: int, share: float, judgments: float
) -> None:
    pools = 1200 if name == "strengths-3" else 4000
    found = simulate_design(DESIGNS[name], size=size, pools=pools, rng=np.random.default_rng(size))
    # Both have errors: ours of 0.008, the table's is not printed and has two digits.
    assert found.found == pytest.approx(share, abs=0.025)
    assert found.judgments == pytest.approx(judgments, abs=0.4)
    assert found.correct == pytest.approx(0.69, abs=0.015)


def test_a_judge_errs_as_often_as_strengths_and_carelessness_say() -> None:
    strengths = {("q", "a"): 1.0, ("q", "b"): 0.0}
    expected = {(0.0, 0.0): 0.731, (0.5, 0.0): 0.6155, (1.0, 0.0): 0.5, (0.0, 1.0): 0.8808}
    for (careless, left), share in expected.items():
        judge = SimulatedJudge(
            strengths=strengths, rng=np.random.default_rng(0), careless=careless, left=left
        )
        seen = Counter(judge.choose("q", "a", "b") for _ in range(4000))
        assert seen["a"] / 4000 == pytest.approx(share, abs=0.03)


def test_a_passage_without_a_strength_is_an_error_and_not_a_guess() -> None:
    judge = SimulatedJudge(strengths={("q", "a"): 1.0}, rng=np.random.default_rng(0))
    with pytest.raises(KeyError):
        judge.choose("q", "a", "b")
