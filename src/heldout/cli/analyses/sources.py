"""Where an analysis gets what it is computed from: files, tables, or a board's vault."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import click

from heldout.analyses import analysis
from heldout.analyses.agreement.judges import Ratings
from heldout.analyses.agreement.reading import read_judges, read_tops
from heldout.analyses.agreement.runs import Tops
from heldout.analyses.analysis import Analysis
from heldout.analyses.dated import Dated, beside_dev, beside_reserve, date_scores, on_view
from heldout.analyses.entries import parse_entries
from heldout.analyses.facets import ScoresByKind
from heldout.analyses.views.analysis import LoadedViews, Means, name_views, views_of_scores
from heldout.analyses.views.views import views_of_board
from heldout.board.old_boards import parse_table, scores_of_old_table
from heldout.cli.analyses.score_source import (
    BoardSource,
    Source,
    load_alike,
    load_board,
    load_measures,
    load_scores,
)
from heldout.cli.printing import TERMINAL
from heldout.options import Jobs, Opt
from heldout.scoring.options import FacetSource, RunOrder, RunPatterns
from heldout.scoring.query_facets import load_facet
from heldout.scoring.run_files import find_runs, read_table_text
from heldout.scoring.sources import Scores
from heldout.scoring.table_files import read_means
from heldout.trec.reading.sources import open_input

Alike = Annotated[
    bool, Opt("Comparison of the runs of different teams; half a minute for a hundred entries.")
]
"""`--alike`; its default is `True`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSource(Source):
    """Scores, and kinds of query; or what of a collection should be written instead."""

    write: Annotated[
        Path | None,
        Opt(
            "Folder for the queries of --only, which are written instead: texts, qrels, training "
            "pairs, scores.",
            metavar="DIR",
            path="folder",
        ),
    ] = None
    relevant: Annotated[int, Opt("Lowest grade that makes a training pair.", least=1)] = 1

    def load(self, analysis: Analysis[Any, Any], facets: FacetSource, /) -> ScoresByKind:
        """Scores, and the queries of each kind."""
        if facets.facet is None:
            raise click.UsageError("which facet? --facet length, question, words:FILE, or FILE")
        kinds = load_facet(facets.facet, facets)
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
            metavar="FILE",
        ),
    ] = None
    csv_file: Annotated[
        Path | None,
        Opt(
            "Table of an MS MARCO leaderboard in place of runs: means alone, so no tests.",
            names=("--csv",),
            path="file",
            metavar="FILE",
        ),
    ] = None

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> Dated:
        """Entries with their days, on one view."""
        return on_view(self.load_dated(), self.board.view)

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
            with open_input(self.csv_file) as file:
                table = parse_table(file.read(), path=self.csv_file.name)
            return Dated(board=scores_of_old_table(table), views=())
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
        return beside_dev(loaded, self.board.view, self.dev)


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
    alike: Alike = True

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> Dated:
        """Entries with their days, on a public view and on the reserve."""
        loaded = self.load_dated(second=self.reserve_scores, name="reserve")
        public, reserve = self.board.view, self.reserve
        if self.csv_file is not None:
            public, reserve = public or "dev", reserve or "eval"
        alike = None
        if self.alike and self.board.folder is not None:
            alike = load_alike(self.board, loaded.board)
        return replace(beside_reserve(loaded, public, reserve), alike=alike)


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
            return Means(table=read_means(self.transfer), path=str(self.transfer))
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
        Opt(
            "Judgments of several judges in one file: query, judge, document, grade.",
            metavar="FILE",
            path="file",
        ),
    ] = None
    preferences: Annotated[
        tuple[Path, ...],
        Opt(
            "Preferences: query, item, item, preferred item; a pair may be judged many times.",
            metavar="FILE",
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

    def load(self, _: Analysis[Any, Any], _facets: FacetSource, /) -> Ratings | Tops:
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
            return read_tops(paths, order=self.order, depth=self.depth, progress=TERMINAL)
        return read_judges(
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
