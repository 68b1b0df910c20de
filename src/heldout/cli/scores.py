"""Scores in words: a number, or a mean with its spread over seeds."""

from collections.abc import Mapping
from typing import Protocol

from heldout.board.rules.release import release_spread
from heldout.cli.printing import number
from heldout.pipeline.scoring.score import ViewScore

__all__ = ["say_released", "say_true"]


class _Released(Protocol):
    """An entry of the log, or a row of the standings."""

    @property
    def scores(self) -> Mapping[str, str]: ...
    @property
    def spreads(self) -> Mapping[str, str]: ...
    @property
    def seeds(self) -> int: ...


def say_released(entry: _Released, view: str) -> str:
    """A score as it was released: `0.412`, or `0.412 ± 0.004, 3 seeds`."""
    return _say(entry.scores[view], entry.spreads.get(view, ""), entry.seeds)


def say_true(score: ViewScore, *, decimals: int) -> str:
    """A true score, with as many digits as are released."""
    spread = release_spread(score.seeds, decimals=decimals) if score.seeds else ""
    return _say(number(score.mean, decimals=decimals), spread, len(score.seeds))


def _say(score: str, spread: str, seeds: int) -> str:
    return f"{score} ± {spread}, {seeds} seeds" if spread else score
