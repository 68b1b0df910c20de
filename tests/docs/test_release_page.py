"""release.md begins with an example, and each rule publishes what the example says."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from heldout.board.rules import release

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "release.md"
RULES: tuple[release.RuleName, ...] = get_args(release.RuleName)
BEST = np.repeat([1.0, 0.0], [300, 700])
RIGHT = {"Alpha 1": (30, 20, 0), "Alpha 2": (80, 20, 0), "Beta 1": (90, 22, 50)} | {
    "Beta 2": (200, 50, 20)
}
"""Run -> queries that it gains on the baseline, queries that it loses, where both begin."""

NAMED = ("Alpha 2", "Beta 2")
KEY = b"b" * 32


def rows() -> Mapping[str, list[str]]:
    """Run -> what the page says of it: the true score, then what each rule publishes."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells if row[0] in RIGHT}


def scores(run: str) -> NDArray[np.float64]:
    gained, lost, at = RIGHT[run]
    found = BEST.copy()
    found[300 + at : 300 + at + gained] = 1
    found[at : at + lost] = 0
    return found


def test_the_example_is_what_each_rule_publishes() -> None:
    best, before = BEST, [release.release_mean(BEST, decimals=3)]
    for run, (true, rounded, at_once, after) in rows().items():
        values = scores(run)
        exact = release.release_mean(values, decimals=3)
        assert (true, rounded) == (exact, exact)
        number = "no score"
        if release.is_clear(values, best, jitter=release.draw_jitter(KEY, "eval", values, BEST)):
            drawn = release.draw_noise(KEY, "eval", values)
            noisy = release.add_noise(values, BEST, errors=release.NOISE, drawn=drawn, decimals=3)
            before.append(release.raise_number(noisy, before, decimals=3))
            number = f"{before[-1]}, with noise"
        best = values if release.is_higher(values, best) else best
        assert at_once == number
        assert after == (exact if run in NAMED or at_once != "no score" else "no score")


def test_the_example_has_every_rule_and_every_run() -> None:
    assert list(rows()) == list(RIGHT)
    assert all(f"`{rule}`" in PAGE.read_text("utf-8") for rule in RULES)
