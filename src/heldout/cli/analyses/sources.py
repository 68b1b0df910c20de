"""Where an analysis gets what it is computed from: files, tables, or a board's vault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from heldout.analyses import analysis
from heldout.analyses.analysis import Analysis
from heldout.cli.options import Decorator
from heldout.cli.score_source import Source, load_scores, source_options
from heldout.scoring.scores import Scores


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of one kind of source, and how it is read.

    Attributes:
        options: add an argument `source` to a command.
        load: reads what the analysis is given.
        jobs: how many processes were asked for.
    """

    options: Decorator
    load: Callable[[Any, Analysis[Any, Any]], Any]
    jobs: Callable[[Any], int | None]


def _load_scores(source: Source, wanted: Analysis[Any, Any]) -> Scores:
    named = source.measure is not None or source.table is not None
    of_board = source.board is not None and source.board.folder is not None
    default = wanted.measure if wanted.measure and not (named or of_board) else None
    return load_scores(source, measure=default)


SOURCES: Mapping[analysis.Source, SourceOptions] = {
    "scores": SourceOptions(
        options=source_options, load=_load_scores, jobs=lambda source: source.jobs
    ),
}
"""By `Analysis.source`."""
