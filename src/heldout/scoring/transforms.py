"""Scores turned into others before they are analysed: `--transform`."""

from pathlib import Path
from typing import Literal

from heldout.errors import OptionError
from heldout.measures.spec import Measure
from heldout.scores import ScoreTable
from heldout.trec.preferences import read_preferences
from heldout.trec.qrels import Qrels
from heldout.trec.reading.streams import open_input

Transform = Literal["interval", "preference"]
"""`interval`: ranks among attainable scores. `preference`: how surely people prefer a result."""


def rank_scores(table: ScoreTable, measure: Measure, qrels: Qrels) -> tuple[ScoreTable, str]:
    """Ranks among the attainable scores of each query, and a word on them.

    Raises:
        InputError: codes `no-scale`, `not-attainable`.
    """
    from heldout.validity.interval_transform import to_interval  # noqa: PLC0415 - few ask for it

    ranked = to_interval(table, measure, qrels.judgments)
    return ranked, "interval: rank among the attainable scores of each query, from 0 to 1"


def prefer_scores(
    table: ScoreTable, measure: Measure, qrels: Qrels, path: Path | None
) -> tuple[ScoreTable, str]:
    """Scores calibrated on preference judgments, and a word on these.

    Raises:
        OptionError: the measure is better where it is lower, or no file is named.
        InputError: codes `no-preference`, `not-calibrated`, or the file has errors.
    """
    from heldout.validity.preference_transform import (  # noqa: PLC0415 - few ask for it
        calibrate,
        to_preference,
    )

    if path is None or measure.kind.better == "lower":
        raise OptionError(f"--transform preference needs --preferences FILE; not {measure}")
    with open_input(path) as file:
        preferences = read_preferences(file, path=str(path))
    found = calibrate(table, measure, qrels.judgments, preferences)
    told = (
        f"preference: {found.used:,} judgments at {len(found.differences):,} differences of "
        f"scores, {found.unknown:,} of results without a score left out; the largest difference is "
        f"preferred by {found.shares[-1]:.1%}"
    )
    return to_preference(table, found), told
