"""release.md begins with an example, and each rule publishes what the example says."""

from collections.abc import Mapping
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from heldout.board.rules.release import (
    RuleName,
    draw_jitter,
    is_clear,
    is_higher,
    release_mean,
    release_score,
)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "release.md"
RULES: tuple[RuleName, ...] = get_args(RuleName)
BEST = np.repeat([1.0, 0.0], [300, 700])
RIGHT = {"Alpha 1": (30, 20, 0), "Alpha 2": (80, 20, 0), "Beta 1": (90, 22, 50)} | {
    "Beta 2": (200, 50, 20)
}
"""Run -> queries that it gains on the baseline, queries that it loses, where both begin."""


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


@pytest.mark.parametrize("rule", RULES)
def test_the_example_is_what_the_rule_publishes(rule: RuleName) -> None:
    head = next(line for line in PAGE.read_text("utf-8").splitlines() if "| run |" in line)
    column = [name.strip(" `").split("`")[0] for name in head.strip("|").split("|")].index(rule) - 1
    best = BEST
    for run, row in rows().items():
        values = scores(run)
        assert row[0] == release_score(float(values.mean()), decimals=3)
        published: str | None = release_mean(values, decimals=3)
        if rule == "clear":
            jitter = draw_jitter(b"k" * 32, "eval", values, BEST)
            published = published if is_clear(values, best, jitter=jitter) else None
        best = values if is_higher(values, best) else best
        assert row[column] == (published or "no score")


def test_the_example_has_every_rule_and_every_run() -> None:
    assert list(rows()) == list(RIGHT)
    assert all(f"`{rule}`" in PAGE.read_text("utf-8") for rule in RULES)
