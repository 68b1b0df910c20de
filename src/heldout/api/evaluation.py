"""`read_run`, `read_qrels`, `evaluate` and `validate`: runs, their scores and problems."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike, fspath
from typing import Any, TypeAlias

from heldout.analyses.outcomes.baseline import compare_with_baseline
from heldout.analyses.outcomes.options import Correction
from heldout.answers.answer import Answer
from heldout.answers.notebook import to_html
from heldout.answers.table import Column, Table, columns, to_latex, to_markdown
from heldout.collections.named import load_queries, open_qrels
from heldout.errors import InputError, Problem, plural
from heldout.files.frames import Backend, Framed, make_frame
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.given_runs import Run, is_path, name_sources, open_run
from heldout.scoring.measures import Measure, needs_whole
from heldout.scoring.names import read_measure, read_measures
from heldout.scoring.other_measures import describe_engines, need_subtopics
from heldout.scoring.run_files import run_name, scan_file
from heldout.scoring.score import Reading, Scored, collect_notes, describe_scored
from heldout.scoring.sources import Scores, tabulate_scores
from heldout.trec import ir_metadata, memory, orders, scans
from heldout.trec.qrels import Qrels

PathLike_: TypeAlias = str | PathLike[str]
RunLike: TypeAlias = Run | PathLike_ | Mapping[str, Mapping[str, float]] | Any
"""A run: from `read_run`, a path, query -> document -> score, or a data frame."""
QrelsLike: TypeAlias = Qrels | PathLike_ | Mapping[str, Mapping[str, int]] | Any
"""Judgments: from `read_qrels`, a path, query -> document -> grade, or a data frame."""


def read_run(source: RunLike, *, name: str | None = None) -> Run:
    """A run, read and checked.

    Args:
        source: a path of a file in TREC form (6 columns) or MS MARCO form (3 columns), plain, gz,
            bz2 or zst, or of a Parquet file with the columns of a data frame; a mapping query ->
            document -> score; or a data frame of pandas, polars or pyarrow with a column `qid` or
            `query_id`, one `docno` or `doc_id`, and `score` or `rank`.
        name: of the system; by default that of the file, or "run".

    Raises:
        InputError: what is wrong, with `.code` and `.problems`.

    Example:
        >>> run = ho.read_run({"q1": {"d1": 2.5, "d2": 1.0}}, name="mine")
        >>> run.queries, run.documents
        (1, 2)
    """
    if isinstance(source, Run):
        return source
    if is_path(source):
        path = fspath(source)
        scan = scan_file(path, order=None)
        return _checked(scan, path, name or run_name(path))
    rows = open_run(source, name=name or "run")
    return _checked(memory.scan_memory(rows, order=None), rows, rows.name)


def _checked(scan: scans.Scan, source: str | memory.MemoryRun, name: str) -> Run:
    scan.raise_errors()
    return Run(
        name=name,
        source=source,
        order=scan.order,
        queries=scan.facts.queries,
        documents=scan.facts.documents,
        notes=scan.problems,
    )


def read_qrels(source: QrelsLike, *, name: str | None = None, subtopics: bool = False) -> Qrels:
    """Judgments, read and checked.

    Args:
        source: a path of a qrels file of TREC, MS MARCO or BEIR, plain or compressed; `irds:` and a
            name of ir_datasets; a mapping query -> document -> grade; or a data frame with a column
            `qid` or `query_id`, one `docno` or `doc_id`, and `label` or `relevance`.
        name: for messages.
        subtopics: whether the second column of a file names the subtopic of a judgment, which
            alpha_nDCG and other measures of diversity need.

    Raises:
        InputError: what is wrong, with `.code` and `.problems`.
    """
    return open_qrels(source, name=name, subtopics=subtopics)


def label_of(source: QrelsLike) -> str:
    """Return what judgments are called in an answer."""
    return fspath(source) if is_path(source) else "qrels"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationResult:
    """Scores of runs, by measure and query; from `evaluate`.

    Attributes:
        measures: names, in the order asked for.
        qrels: the judgments.
    """

    measures: tuple[str, ...]
    qrels: Qrels
    _runs: Mapping[str, Scored]
    _parsed: Mapping[str, Measure]
    _judgments: str
    _order: orders.Order | None

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs."""
        return tuple(self._runs)

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries with judgments, over which means are computed."""
        return next(iter(self._runs.values())).evaluation.queries

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is odd about runs and judgments without being wrong."""
        found = collect_notes(tuple(self._runs.values()), self.qrels)
        return tuple(problem for notes in found for problem in notes.problems)

    def __iter__(self) -> Iterator[str]:
        """Names of the runs."""
        return iter(self._runs)

    def __len__(self) -> int:
        """Return how many runs there are."""
        return len(self._runs)

    def __getitem__(self, run: str) -> dict[str, float | None]:
        """Means of a run by measure; `None` where a mean is undefined."""
        if run not in self._runs:
            raise KeyError(f"no run {run!r}; there are {', '.join(self.runs)}")
        scores = self._runs[run].evaluation.scores
        return {name: scores[self._parsed[name]].mean for name in self.measures}

    def columns(self, *, per_query: bool = False) -> dict[str, list[Any]]:
        """`run`, `query` where it is by query, and a column for each measure."""
        if not per_query:
            means = [self[run] for run in self.runs]
            return {"run": list(self.runs)} | {
                name: [one[name] for one in means] for name in self.measures
            }
        names = [run for run in self.runs for _ in self.queries]
        found: dict[str, list[Any]] = {"run": names, "query": list(self.queries) * len(self.runs)}
        for name in self.measures:
            scores = [run.evaluation.scores[self._parsed[name]] for run in self._runs.values()]
            found[name] = [one.value(at) for one in scores for at in range(len(self.queries))]
        return found

    def to_pandas(self, *, per_query: bool = False) -> Any:
        """A row for each run, or for each run and query, as a frame of pandas."""
        return self.to_frame("pandas", per_query=per_query)

    def to_polars(self, *, per_query: bool = False) -> Any:
        """A row for each run, or for each run and query, as a frame of polars."""
        return self.to_frame("polars", per_query=per_query)

    def to_frame(self, backend: Backend, *, per_query: bool = False) -> Any:
        """The same as a frame of a library.

        Raises:
            SetupError: the library is not installed.
        """
        return make_frame(self.columns(per_query=per_query), backend)

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """The document that `heldout evaluate --json` prints."""
        runs = [
            {**describe_scored(run, per_query=per_query), "run": name}
            for name, run in self._runs.items()
        ]
        engines = describe_engines(self._parsed.values())
        named = {"computed_by": dict(engines)} if engines else {}
        return {"runs": runs, "failed": [], **named}

    def scores(self, measure: str | None = None) -> Scores:
        """One measure of all runs, as analyses take it.

        Args:
            measure: its name; may be left out where there is one alone.

        Raises:
            InputError: code `measure-name` where it was not measured; `missing-scores`, `all-zero`.
        """
        name = measure or (self.measures[0] if len(self.measures) == 1 else "")
        if name and name not in self._parsed:
            name = str(read_measure(name, path="measure"))  # as it was typed: ndcg@10, map
        if name not in self._parsed:
            raise InputError.of(
                "measure-name",
                "measure",
                repr(name) if name else "none",
                f"one of {', '.join(self.measures)}",
            )
        return tabulate_scores(
            self._runs,
            {name: self._parsed[name]},
            self.qrels,
            judgments=self._judgments,
            order=self._order,
        )[name]

    def against(
        self,
        baseline: str,
        *,
        correction: Correction = "holm",
        alpha: float = 0.05,
        level: float = 0.95,
    ) -> Answer:
        """Every run against one: differences of means, paired t tests, corrected p.

        Args:
            baseline: name of a run.
            correction: of p over the other runs, for each measure: "holm", "bonferroni" or "none".
            alpha: significance level.
            level: confidence level of the intervals, which are not corrected.

        Raises:
            InputError: code `baseline-run`, or those of `scores`.
        """
        return compare_with_baseline(
            [self.scores(name) for name in self.measures],
            baseline,
            correction=correction,
            alpha=alpha,
            level=level,
        )

    def table(self) -> Table:
        """The means as a table."""
        rows = tuple((run, *self[run].values()) for run in self.runs)
        title = f"Means over {len(self.queries):,} queries with judgments"
        head = (Column(name="run"), *columns("score", *self.measures))
        return Table(title=title, columns=head, rows=rows)

    def to_markdown(self) -> str:
        """The means as a table in Markdown."""
        return to_markdown(self.table())

    def to_latex(self) -> str:
        r"""The means as a table in LaTeX; needs `\usepackage{booktabs}` and `longtable`."""
        return to_latex(self.table())

    def __repr__(self) -> str:
        return f"<EvaluationResult: {plural(len(self), 'run')}, {', '.join(self.measures)}>"

    def _repr_html_(self) -> str:
        return to_html(tables=[self.table()])


def name_measures(measures: Any) -> list[str]:
    """Names of measures that are given by name, or as objects of ir_measures."""
    one = isinstance(measures, str) or not isinstance(measures, Iterable)
    return [str(name) for name in ([measures] if one else measures)]


def evaluate(
    runs: Any,
    qrels: QrelsLike,
    measures: str | Iterable[Any] | Any,
    *,
    order: orders.Order | None = None,
    jobs: int = 1,
    progress: Progress = SILENT,
) -> EvaluationResult:
    """Score runs on judgments, as `heldout evaluate` does.

    A mean is over all queries with judgments; a query that a run does not answer counts 0.

    Args:
        runs: one run or several: paths, patterns such as `runs/*.gz`, `read_run`'s, data frames,
            or mappings query -> document -> score; or a mapping from names to any of these.
        qrels: judgments in any form that `read_qrels` takes.
        measures: such as `RR@10` or `AP(rel=2)`; trec_eval's names ("ndcg_cut_10", "official") and
            the measures of ir_measures ("Rprec", or the object Rprec) are read too.
        order: of documents; by default what fits each run's columns.
        jobs: processes that read files side by side.
        progress: hears of each run.

    Raises:
        InputError: what is wrong with a run, the judgments or a measure. Nothing is computed then.

    Example:
        >>> found = ho.evaluate({"mine": {"q1": {"d1": 2.0}}}, {"q1": {"d1": 1}}, "RR@10")
        >>> found["mine"]["RR@10"]
        1.0
    """
    sources = name_sources(runs)
    if not sources:
        raise InputError.of("no-run", "runs", "none", "at least one run")
    asked = [
        one.measure
        for name in name_measures(measures)
        for one in read_measures(name, path="measure")
    ]
    if not asked:
        raise InputError.of("measure-name", "measures", "none", "at least one, such as nDCG@10")
    labels = open_qrels(qrels, subtopics=need_subtopics(asked), whole_for=needs_whole(asked))
    parsed = {str(one): one for one in asked}
    reading = Reading(jobs=jobs, progress=progress)
    scored = reading.score_whole(tuple(sources.values()), labels, parsed.values(), order=order)
    return EvaluationResult(
        measures=tuple(parsed),
        qrels=labels,
        _runs=dict(zip(sources, scored, strict=True)),
        _parsed=parsed,
        _judgments=label_of(qrels),
        _order=order,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation(Framed):
    """What is wrong with a run; from `validate`.

    Attributes:
        ok: whether it can be scored and fits the queries.
        problems: errors and notes, each with its code and its line.
    """

    ok: bool
    problems: tuple[Problem, ...]
    _document: Mapping[str, Any]

    def __bool__(self) -> bool:
        return self.ok

    def to_dict(self) -> dict[str, Any]:
        """The document that `heldout validate --json` prints."""
        return dict(self._document)

    def columns(self) -> dict[str, list[Any]]:
        """The problems as columns."""
        names = [field.name for field in fields(Problem)]
        return {name: [getattr(one, name) for one in self.problems] for name in names}

    def __repr__(self) -> str:
        return "\n".join(map(str, self.problems)) or "no problems"

    def _repr_html_(self) -> str:
        shown = {name: list(map(str, cells)) for name, cells in self.columns().items()}
        table = Table(
            title="No problems" if self.ok else plural(len(self.problems), "problem"),
            columns=tuple(Column(name=name) for name in shown),
            rows=tuple(zip(*shown.values(), strict=True)),
        )
        return to_html(tables=[table])


def validate(
    run: RunLike,
    queries: Collection[str] | PathLike_ | None = None,
    *,
    depth: int | None = None,
    order: orders.Order | None = None,
) -> Validation:
    """List every problem of a run, as `heldout validate` does.

    Args:
        run: in any form that `read_run` takes.
        queries: ids that it must answer, all of them and no other; or the path of a query file.
        depth: most documents of a query.
        order: of documents; by default what fits the run's columns.

    Returns:
        All problems; none are raised where the run can be read at all.

    Raises:
        InputError: the queries have errors, or a frame or a mapping cannot be read as a run.
    """
    if isinstance(queries, str | PathLike):
        queries = tuple(load_queries(fspath(queries)).texts)
    wanted = None if queries is None else frozenset(queries)
    expected = scans.Expected(queries=wanted, max_depth=depth, complete=wanted is not None)
    source = run.source if isinstance(run, Run) else run
    try:
        if is_path(source):
            path = fspath(source)
            found = scan_file(path, order=order, expected=expected)
            scan = ir_metadata.note_header(found)
        else:
            rows = source if isinstance(source, memory.MemoryRun) else open_run(source, name="run")
            scan = memory.scan_memory(rows, order=order, expected=expected)
    except InputError as error:
        problems = [*map(asdict, error.problems)]
        document = {"path": str(source) if is_path(source) else "run", "ok": False}
        document |= {"problems": problems, "counts": dict(error.counts)}
        return Validation(ok=False, problems=error.problems, _document=document)
    return Validation(ok=scan.ok, problems=scan.problems, _document=scan.document())
