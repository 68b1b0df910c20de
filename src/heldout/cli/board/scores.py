"""Scores in words: a number, or a mean with its spread over seeds."""

from collections.abc import Mapping
from typing import Protocol

from heldout.board.rules.release import release_spread
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.score import ViewScore
from heldout.cli.printing import number


class _Released(Protocol):
    """An entry of the log, or a row of the standings."""

    @property
    def scores(self) -> Mapping[str, str]: ...
    @property
    def spreads(self) -> Mapping[str, str]: ...
    @property
    def seeds(self) -> int: ...


def say_released(entry: _Released, view: str, spec: BoardSpec) -> str:
    """A score as it was released: `0.412`, `0.412 ± 0.004, 3 seeds`, `0.412, for information only`.

    Args:
        entry: has a score there.
        view: name of the view.
        spec: the board's rules; a view that they have no more is a plain one.
    """
    said = _say(entry.scores[view], entry.spreads.get(view, ""), entry.seeds)
    named = next((one for one in spec.views if one.name == view), None)
    if named is None or not named.for_information:
        return said
    return (
        f"{said}, with noise, for information only"
        if named.noise is not None
        else f"{said}, for information only"
    )


def say_true(score: ViewScore, *, decimals: int) -> str:
    """A true score, with as many digits as are released."""
    spread = release_spread(score.seeds, decimals=decimals) if score.seeds else ""
    return _say(number(score.mean, decimals=decimals), spread, len(score.seeds))


def _say(score: str, spread: str, seeds: int) -> str:
    return f"{score} ± {spread}, {seeds} seeds" if spread else score
