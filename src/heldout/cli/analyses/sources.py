"""Where an analysis gets what it is computed from: runs, tables, judgments, a board's vault."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import click

from heldout.analyses import agreement, agreement_of_judges, agreement_of_runs, analysis
from heldout.analyses.analysis import Analysis
from heldout.analyses.entries import Dated, date_scores, parse_entries
from heldout.analyses.facets import ScoresByKind
from heldout.analyses.views import LoadedViews, Means, name_views, views_of_board, views_of_scores
from heldout.cli.context import open_board, read_clock
from heldout.cli.printing import TERMINAL, print_notes_last
from heldout.collections.named import load_qrels
from heldout.errors import InputError, StoreError
from heldout.options import Jobs, Now, Opt
from heldout.scoring import query_facets, score, table_files, transforms
from heldout.scoring.measures import needs_whole
from heldout.scoring.names import read_measure
from heldout.scoring.options import JUDGMENTS, FacetSource, RunOrder, RunPatterns
from heldout.scoring.other_measures import need_subtopics
from heldout.scoring.run_files import find_runs, read_table_text
from heldout.scoring.sources import (
    Scores,
    check_complete,
    find_named,
    read_scores,
    score_runs,
    transform_scores,
)
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import open_input

if TYPE_CHECKING:
    from heldout.analyses.entries import AlikeRuns, BoardScores
    from heldout.board.scores.session import Session


_WHICH = "which scores? --runs 'GLOB' --qrels Q -m MEASURE, --scores FILE, or --board DIR"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSource:
    """A board whose vault has the scores; without a folder none is named."""

    folder: Annotated[
        Path | None,
        Opt("Board whose vault has the scores.", names=("--board",), path="folder"),
    ] = None
    vault: Annotated[
        Path | None,
        Opt("Vault of the board [HELDOUT_VAULT].", env="HELDOUT_VAULT", path="folder"),
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
        transforms.Transform | None,
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
        ),
    ] = None

    def load(self, analysis: Analysis[Any, Any], _: FacetSource, /) -> Any:
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
        score.find_reading(os.environ, jobs=source.jobs, progress=TERMINAL),
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
    from heldout.analyses.entries import describe_view

    known = load_board(source.board)
    view = known.view(source.board.view)
    if measure not in (None, view.measure):
        raise click.UsageError(f"this needs {measure}; view {view.view} has {view.measure}: --view")
    if view.table is None:
        raise InputError.of("no-query-scores", f"view {view.view}")
    return Scores(
        table=check_complete(view.table, f"view {view.view}"),
        measure=view.measure,
        facts=describe_view(known, view),
        better=view.better,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSource(Source):
    """Scores, and kinds of query; or what of a collection should be written instead."""

    write: Annotated[
        Path | None,
        Opt(
            "Folder for the queries of --only, which are written instead: texts, qrels, training "
            "pairs, scores.",
            path="folder",
        ),
    ] = None
    relevant: Annotated[int, Opt("Lowest grade that makes a training pair.", least=1)] = 1

    def load(self, analysis: Analysis[Any, Any], facets: FacetSource, /) -> ScoresByKind:
        """Scores, and the queries of each kind."""
        if facets.facet is None:
            raise click.UsageError("which facet? --facet length, question, words:FILE, or FILE")
        kinds = query_facets.load_facet(facets.facet, facets)
        scores = Source.load(self, analysis, facets)
        return ScoresByKind(scores=scores, kinds=kinds, least=facets.least)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureSource:
    """A measure alone."""

    jobs: ClassVar[int] = 1
    measure: Annotated[
        str, Opt("Measure, such as RR@3.", names=("-m", "--measure"), metavar="MEASURE")
    ]

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> str:
        """Its name."""
        return self.measure


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedSource(Source):
    """Scores over time: a board, an old table, or scores with dates."""

    entries: Annotated[
        Path | None,
        Opt(
            "CSV table for --runs and --scores: id, date, and team, institution, "
            "description, baseline (yes or no).",
            path="file",
        ),
    ] = None
    csv_file: Annotated[
        Path | None,
        Opt(
            "Table of an MS MARCO leaderboard in place of runs: means alone, so no tests.",
            names=("--csv",),
            path="file",
        ),
    ] = None

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> Dated:
        """Entries with their days, on one view."""
        return self.load_dated().beside(self.board.view)

    def load_dated(
        self, *, second: Path | None = None, name: str = "", held_out: bool = True
    ) -> Dated:
        """Entries with their days and scores, on no view yet.

        Args:
            second: a table of scores of the same systems on a second view; its queries are taken
                for others than those of the first.
            name: of the second view.
            held_out: whether nobody but the organisers has the second view's labels.

        Raises:
            click.UsageError: not just one source is named, or the dates are missing.
            InputError: a file has errors, or a system has no row among the entries.
            StoreError: the board or its vault cannot be read.
        """
        of_files = bool(self.runs or self.table)
        if (self.csv_file is not None) + (self.board.folder is not None) + of_files != 1:
            raise click.UsageError(
                "which scores? --board DIR --vault DIR, --csv FILE, or --runs or --scores with "
                "--entries FILE"
            )
        if (self.entries is None) == of_files:
            raise click.UsageError(
                "--entries FILE says when each system of --runs or --scores came"
            )
        if second is not None and not of_files:
            raise click.UsageError("a board and an old table have their views: name one of them")
        if self.csv_file is not None:
            from heldout.board import old_boards

            with open_input(self.csv_file) as file:
                table = old_boards.parse_table(file.read(), path=self.csv_file.name)
            return Dated(board=old_boards.scores_of_old_table(table), views=())
        if self.entries is None:
            return Dated(board=load_board(self.board), views=())
        first = load_scores(self)
        other = None if second is None else load_scores(Source(table=str(second)))
        entries = parse_entries(
            read_table_text(self.entries), path=self.entries.name, systems=first.table.systems
        )
        return date_scores(
            first,
            entries,
            name=self.entries.stem,
            second=other,
            second_name=name,
            held_out=held_out,
            order=self.order,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftSource(DatedSource):
    """Scores over time, and the dev view that they are compared with."""

    dev: Annotated[
        str | None, Opt("Dev view [public labels, the same measure].", metavar="VIEW")
    ] = None
    dev_scores: Annotated[
        Path | None,
        Opt(
            "Scores on dev by query, for --runs and --scores.",
            metavar="TABLE.csv",
            path="file",
        ),
    ] = None

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> Dated:
        """Entries with their days, on the official view and on dev."""
        loaded = self.load_dated(second=self.dev_scores, name="dev", held_out=False)
        return loaded.beside(self.board.view, "dev", self.dev)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamsSource(DatedSource):
    """Scores over time, and the reserve view that they are compared with."""

    reserve: Annotated[
        str | None, Opt("Reserve view [a view that is not public].", metavar="VIEW")
    ] = None
    reserve_scores: Annotated[
        Path | None,
        Opt(
            "Scores on the reserve by query, for --runs and --scores.",
            metavar="TABLE.csv",
            path="file",
        ),
    ] = None

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> Dated:
        """Entries with their days, on a public view and on the reserve."""
        loaded = self.load_dated(second=self.reserve_scores, name="reserve")
        public, reserve = self.board.view, self.reserve
        if self.csv_file is not None:
            public, reserve = public or "dev", reserve or "eval"
        of_board = self.board.folder is not None
        alike = load_alike(self.board, loaded.board) if of_board else None
        return replace(loaded.beside(public, "reserve", reserve), alike=alike)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSource:
    """Several views: measures by judgments, tables, or a board."""

    runs: RunPatterns = ()
    qrels: Annotated[
        tuple[str, ...],
        Opt("Judgments of the runs; each file makes views. Can be given many times.", metavar="Q"),
    ] = ()
    measures: Annotated[
        tuple[str, ...],
        Opt(
            "Measure, such as RR@10; each makes views. Can be given many times.",
            names=("-m", "--measure"),
            metavar="MEASURE",
        ),
    ] = ()
    order: RunOrder = None
    tables: Annotated[
        tuple[str, ...],
        Opt(
            "Table of scores by query, which is a view. CSV or Parquet. Can be given many times.",
            names=("--scores",),
            metavar="TABLE.csv",
        ),
    ] = ()
    jobs: Jobs = None
    transfer: Annotated[
        Path | None,
        Opt(
            "Means in place of runs: a header `collection` and system names, then a row "
            "for each collection; an empty cell for no score. CSV or Parquet.",
            metavar="TABLE.csv",
            path="file",
        ),
    ] = None
    board: BoardSource = field(default_factory=BoardSource)

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> LoadedViews | Means:
        """All views.

        Raises:
            click.UsageError: sources that do not go together.
            OptionError: fewer than two views, or two with one name.
            InputError: a file has errors, or a system lacks a score.
            StoreError: the board or its vault cannot be read.
        """
        files = self.runs or self.qrels or self.tables
        if self.transfer is not None:
            if files or self.board.folder is not None:
                raise click.UsageError("--transfer has means of everything: leave the others away")
            return Means(table=table_files.read_means(self.transfer), path=str(self.transfer))
        if self.board.folder is not None:
            if files or self.measures or self.board.view:
                raise click.UsageError(
                    "all views of a board are taken: leave --runs, --qrels, --scores, -m, --view "
                    "away"
                )
            known = load_board(self.board)
            loaded = LoadedViews(views=views_of_board(known), facts=(("board", known.board),))
        else:
            loaded = _read_files(self)
        return name_views(loaded, order=self.order)


def _read_files(source: ViewSource) -> LoadedViews:
    if source.tables and not source.runs and len(source.measures) > 1:
        raise click.UsageError("tables of scores have one measure: give -m once or not at all")
    scores: list[tuple[str, Scores]] = []
    if source.runs or source.qrels:
        if not source.qrels or not source.measures:
            raise click.UsageError("runs need --qrels Q and -m MEASURE")
        for qrels in source.qrels:
            one = Source(runs=source.runs, qrels=qrels, order=source.order, jobs=source.jobs)
            for measure, found in load_measures(one, source.measures).items():
                name = f"{measure} {_stem(qrels)}" if len(source.qrels) > 1 else measure
                scores.append((name, found))
    measure_of_tables = None if source.runs else next(iter(source.measures), None)
    for table in source.tables:
        found = load_scores(Source(table=table, measure=measure_of_tables))
        scores.append((_stem(table), found))
    return views_of_scores(scores)


def _stem(path: str) -> str:
    """The file's name without folders and what it ends in."""
    name = Path(path).name.removesuffix(".gz")
    return Path(name).stem or name


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSource:
    """Whose agreement is looked at: judges', or runs'."""

    jobs: ClassVar[int] = 1
    qrels: Annotated[
        tuple[Path, ...],
        Opt("Judgments: one file per judge, at least two.", metavar="Q", path="file"),
    ] = ()
    ratings: Annotated[
        Path | None,
        Opt("Judgments of several judges in one file: query, judge, document, grade.", path="file"),
    ] = None
    preferences: Annotated[
        tuple[Path, ...],
        Opt(
            "Preferences: query, item, item, preferred item; a pair may be judged many times.",
            path="file",
        ),
    ] = ()
    runs: Annotated[
        tuple[str, ...],
        Opt("Run files instead; no judgments are needed.", metavar="'GLOB'"),
    ] = ()
    relevant: Annotated[
        int | None,
        Opt(
            "Lowest grade that counts as 1, others as 0 [grades as they are].",
            least=1,
            metavar="GRADE",
        ),
    ] = None
    depth: Annotated[
        int,
        Opt(
            "Number of documents of each query that are compared; ties with the last one "
            "are added.",
            least=1,
            most=1000,
        ),
    ] = 100
    order: RunOrder = None

    def load(
        self, _: Analysis[Any, Any], _facets: FacetSource, /
    ) -> agreement_of_judges.Ratings | agreement_of_runs.Tops:
        """Return what judges said, or the first documents of runs."""
        named = (self.qrels, self.ratings, self.preferences, self.runs)
        if sum(map(bool, named)) != 1:
            raise click.UsageError(
                "who? --qrels A --qrels B, --ratings FILE, --preferences FILE, or --runs 'GLOB'"
            )
        if self.preferences and self.relevant is not None:
            raise click.UsageError("--relevant is for grades: preferences have none")
        if self.runs:
            paths = find_runs(self.runs)
            return agreement.read_tops(paths, order=self.order, depth=self.depth, progress=TERMINAL)
        return agreement.read_judges(
            qrels=self.qrels,
            ratings=self.ratings,
            preferences=self.preferences,
            relevant=self.relevant,
            progress=TERMINAL,
        )


SOURCES: Mapping[analysis.Source, type[Any]] = {
    "scores": Source,
    "kinds": KindSource,
    "measure": MeasureSource,
    "views": ViewSource,
    "judges": JudgeSource,
    "dates": DatedSource,
    "dates-dev": DriftSource,
    "dates-reserve": TeamsSource,
}
"""By `Analysis.source`: an options class, whose `load` reads what the analysis is given."""
