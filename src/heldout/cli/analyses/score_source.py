"""Where an analysis gets its scores: runs with judgments, a table of scores, a board's vault."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from heldout.cli.context import open_board, read_clock
from heldout.cli.printing import TERMINAL, print_notes_last
from heldout.collections.named import load_qrels
from heldout.errors import InputError, StoreError
from heldout.options import Jobs, Now, Opt
from heldout.scoring.measures import needs_whole
from heldout.scoring.names import read_measure
from heldout.scoring.options import JUDGMENTS, FacetSource, RunOrder, RunPatterns
from heldout.scoring.other_measures import need_subtopics
from heldout.scoring.score import find_reading
from heldout.scoring.sources import (
    Scores,
    check_complete,
    find_named,
    read_scores,
    score_runs,
    transform_scores,
)
from heldout.scoring.transforms import Transform
from heldout.trec.qrels import Qrels

if TYPE_CHECKING:
    from heldout.analyses.analysis import Analysis
    from heldout.analyses.entries import AlikeRuns, BoardScores
    from heldout.board.scores.session import Session

_WHICH = "which scores? --runs 'GLOB' --qrels Q -m MEASURE, --scores FILE, or --board DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSource:
    """A board whose vault has the scores; without a folder none is named."""

    folder: Annotated[
        Path | None,
        Opt("Board whose vault has the scores.", names=("--board",), path="folder", metavar="DIR"),
    ] = None
    vault: Annotated[
        Path | None,
        Opt(
            "Vault of the board [HELDOUT_VAULT].", env="HELDOUT_VAULT", path="folder", metavar="DIR"
        ),
    ] = None
    view: Annotated[str | None, Opt("View of the board [the one that ranks].", metavar="NAME")] = (
        None
    )
    unpublished: Annotated[bool, Opt("Also entries that wait for a decision or were rejected.")] = (
        False
    )
    time: Now = None

    @property
    def now(self) -> datetime:
        """The moment, UTC; it says which season's view ranks."""
        return self.time or read_clock()

    def open_session(self) -> "Session":
        """The organiser's session, to read at.

        Raises:
            StoreError: no board or vault there.
        """
        from heldout.board.scores.session import look_at

        repository = open_board(self.folder)
        if self.vault is None:
            raise StoreError("which vault? name it: --vault DIR, or set HELDOUT_VAULT")
        return look_at(repository, self.vault.absolute(), now=self.now)


def load_board(source: BoardSource) -> "BoardScores":
    """A board's entries and scores, read from its vault; nothing is written.

    Raises:
        StoreError: no board or vault there, or nothing is published yet.
    """
    from heldout.board.scores.analyses_source import read_board_scores

    return read_board_scores(source.open_session(), unpublished=source.unpublished)


def load_alike(source: BoardSource, known: "BoardScores") -> "tuple[AlikeRuns, ...]":
    """Return which entries of a board, of different teams, have nearly the same runs.

    Args:
        source: names the board and its vault.
        known: what `load_board` gave for it.
    """
    from heldout.board.scores.analyses_source import find_alike_runs

    return find_alike_runs(source.open_session(), known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Scores of runs, of a table, or of a board."""

    runs: RunPatterns = ()
    qrels: Annotated[str | None, Opt(JUDGMENTS, metavar="Q")] = None
    measure: Annotated[
        str | None,
        Opt("Measure, such as RR@10 or nDCG@10.", names=("-m", "--measure"), metavar="MEASURE"),
    ] = None
    order: RunOrder = None
    table: Annotated[
        str | None,
        Opt(
            "Table of scores in place of runs: a header of system names, then a row for "
            "each query; a first column `query` has the query ids. CSV or Parquet.",
            names=("--scores",),
            metavar="TABLE.csv",
        ),
    ] = None
    board: BoardSource = field(default_factory=BoardSource)
    jobs: Jobs = None
    transform: Annotated[
        Transform | None,
        Opt(
            "Transformation of the scores of runs: interval for ranks among attainable scores, "
            "preference for what people prefer."
        ),
    ] = None
    preferences: Annotated[
        Path | None,
        Opt(
            "Preference judgments for --transform preference: query, item, item, preferred item.",
            path="file",
            metavar="FILE",
        ),
    ] = None

    def load(self, analysis: "Analysis[Any, Any]", _: FacetSource, /) -> Any:
        """Return what the analysis is given.

        Raises:
            click.UsageError, InputError, StoreError: see `load_scores`.
        """
        named = self.measure or self.table is not None or self.board.folder is not None
        return load_scores(self, measure=None if named else analysis.measure or None)


def load_scores(source: Source, *, measure: str | None = None) -> Scores:
    """The scores that were asked for.

    Args:
        source: names them.
        measure: the measure where the analysis needs a certain one.

    Raises:
        click.UsageError: something is not named, or too much.
        InputError: a file has errors, two runs have one name, or a system lacks a score.
        StoreError: the board or its vault cannot be read.
    """
    if (source.transform == "preference") != (source.preferences is not None):
        raise click.UsageError("--transform preference and --preferences FILE go together")
    if source.transform is not None and (measure is not None or not source.runs):
        raise click.UsageError("--transform is for --runs, and for analyses of any measure")
    if source.board.folder is not None:
        return _read_board(source, measure)
    if source.table is not None:
        if source.runs or source.qrels:
            raise click.UsageError("--scores has the scores already: leave --runs and --qrels away")
        return read_scores(source.table, measure or source.measure)
    name = measure or source.measure
    if name is None:
        raise click.UsageError("which measure? for example -m RR@10" if source.runs else _WHICH)
    qrels = read_judgments(source, measure=name if source.transform is None else None)
    (scores,) = _load(source, [name], qrels).values()
    if source.transform is None:
        return scores
    return transform_scores(scores, qrels, source.transform, source.preferences)


def load_measures(
    source: Source, measures: Sequence[str], *, qrels: Qrels | None = None
) -> Mapping[str, Scores]:
    """Several measures of the same runs, in one pass over each.

    Args:
        source: names runs and judgments.
        measures: their names.
        qrels: the judgments, where they have been read already.

    Raises:
        click.UsageError: runs or judgments are not named, or scores should be transformed.
        InputError: a file has errors, is named twice, or a system lacks a score.
    """
    if source.transform is not None:
        raise click.UsageError("this reads positions off scores as they are: no --transform")
    return _load(source, measures, qrels or read_judgments(source))


def read_judgments(source: Source, *, measure: str | None = None) -> Qrels:
    """The judgments; what is missing is asked for in the order of the options.

    Args:
        source: names them.
        measure: what they are for, and nothing else, so that decimals may do as grades.

    Raises:
        click.UsageError: runs or judgments are not named.
        InputError: the file has errors.
    """
    if not source.runs:
        raise click.UsageError(_WHICH)
    if source.qrels is None:
        raise click.UsageError("which judgments? --qrels Q")
    asked = [] if source.measure is None else [read_measure(source.measure)]
    whole_for = "" if measure is None else needs_whole([read_measure(measure)])
    return load_qrels(source.qrels, subtopics=need_subtopics(asked), whole_for=whole_for)


def _load(source: Source, measures: Sequence[str], qrels: Qrels) -> Mapping[str, Scores]:
    scores = score_runs(
        find_named(source.runs),
        qrels,
        measures,
        find_reading(os.environ, jobs=source.jobs, progress=TERMINAL),
        judgments=source.qrels or "",
        order=source.order,
    )
    for one in list(scores.values())[:1]:
        print_notes_last(one.notes)
    return scores


def _read_board(source: Source, measure: str | None) -> Scores:
    if source.runs or source.qrels or source.table or source.measure:
        raise click.UsageError(
            "--board has scores and measure already: leave --runs, --qrels, --scores and -m away"
        )
    from heldout.analyses.dated import tell_view

    known = load_board(source.board)
    view = known.view(source.board.view)
    if measure not in (None, view.measure):
        raise click.UsageError(f"this needs {measure}; view {view.view} has {view.measure}: --view")
    if view.table is None:
        raise InputError.of(
            "no-query-scores",
            f"view {view.view}",
            "means alone",
            "a view with a score for each query",
            "an imported board has none, nor has a summary over groups of queries",
        )
    return Scores(
        table=check_complete(view.table, f"view {view.view}"),
        measure=view.measure,
        facts=tell_view(known, view),
        better=view.better,
    )
