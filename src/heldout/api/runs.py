"""Runs and judgments for Python: from paths, mappings, data frames and ir_datasets."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from heldout.collections.named import load_qrels
from heldout.errors import InputError, Problem, plural
from heldout.files.durable import write_whole
from heldout.files.frames import (
    PARQUET,
    Backend,
    is_frame,
    make_frame,
    read_parquet,
    write_parquet,
)
from heldout.scoring.run_files import run_name, scan_file
from heldout.scoring.sources import find_named
from heldout.trec.memory import (
    MemoryRun,
    qrels_from_frame,
    qrels_from_mapping,
    run_from_frame,
    run_from_mapping,
    scan_memory,
)
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import read_file
from heldout.trec.scans import Scan
from heldout.trec.tops import read_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that was read and checked; from `read_run`.

    A run from a file stays in its file: this remembers the path, and a file that changed meanwhile
    is an error when the run is scored.

    Attributes:
        name: of the system.
        source: the path, or the rows in memory.
        order: how its documents are ordered.
        queries: how many queries it answers.
        documents: how many rows it has.
        notes: what is odd without being wrong, such as ties.
    """

    name: str
    source: "str | MemoryRun"
    order: Order
    queries: int
    documents: int
    notes: tuple[Problem, ...] = ()

    def __repr__(self) -> str:
        queries = plural(self.queries, "query", "queries")
        return f"<Run {self.name}: {queries}, {plural(self.documents, 'document')}>"

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Query -> document -> score, as pytrec_eval takes it; without scores minus the rank."""
        columns = self._columns()
        scores = columns.get("score") or [-rank for rank in columns["rank"]]
        found: dict[str, dict[str, float]] = {}
        for query, document, score in zip(columns["qid"], columns["docno"], scores, strict=True):
            found.setdefault(query, {})[document] = score
        return found

    def to_pandas(self) -> Any:
        """The rows as a frame of pandas: `qid`, `docno`, `score`, `rank`."""
        return self.to_frame("pandas")

    def to_polars(self) -> Any:
        """The rows as a frame of polars: `qid`, `docno`, `score`, `rank`."""
        return self.to_frame("polars")

    def to_frame(self, backend: Backend) -> Any:
        """The rows as a frame of a library.

        Raises:
            SetupError: the library is not installed.
            InputError: the file has errors now.
        """
        return make_frame(self._columns(), backend)

    def save(self, path: "str | PathLike[str]", *, tag: str = "") -> None:
        """Write the rows: as Parquet where the name ends in .parquet, else in TREC form.

        Scores are written with all their digits. Where there are ranks alone, minus the rank is
        the score.

        Args:
            path: the file; one that is there is replaced.
            tag: last column of the TREC form; by default the run's name.

        Raises:
            SetupError: Parquet needs polars or pyarrow.
        """
        if fspath(path).lower().endswith(PARQUET):
            write_parquet(self._columns(), path)
            return
        label = "_".join((tag or self.name).split())
        lines = [
            f"{query} Q0 {document} {rank} {score!r} {label}\n"
            for query, scores in self.to_dict().items()
            for rank, (document, score) in enumerate(scores.items(), start=1)
        ]
        write_whole(Path(path), "".join(lines).encode())

    def _columns(self) -> dict[str, list[Any]]:
        if isinstance(self.source, MemoryRun):
            return self.source.columns()
        if self.source.lower().endswith(PARQUET):
            return run_from_frame(read_parquet(self.source), name=self.source).columns()
        return read_file(read_rows, self.source)


PathLike_: TypeAlias = str | PathLike[str]
RunLike: TypeAlias = Run | PathLike_ | Mapping[str, Mapping[str, float]] | Any
"""A run: from `read_run`, a path, query -> document -> score, or a data frame."""
QrelsLike: TypeAlias = Qrels | PathLike_ | Mapping[str, Mapping[str, int]] | Any
"""Judgments: from `read_qrels`, a path, query -> document -> grade, or a data frame."""


def read_run(source: RunLike, *, name: str | None = None, order: Order | None = None) -> Run:
    """A run, read and checked.

    Args:
        source: a path of a file in TREC form (6 columns) or MS MARCO form (3 columns), plain, gz,
            bz2 or zst, or of a Parquet file with the columns of a data frame; a mapping query ->
            document -> score; or a data frame of pandas, polars or pyarrow with a column `qid` or
            `query_id`, one `docno` or `doc_id`, and `score` or `rank`.
        name: of the system; by default that of the file, or "run".
        order: of the documents: "trec", "trec9" or "msmarco"; by default "trec" where there are
            scores, and "msmarco" where there are ranks alone.

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
        scan = scan_file(path, order=order)
        return _checked(scan, path, name or run_name(path))
    rows = open_run(source, name=name or "run")
    return _checked(scan_memory(rows, order=order), rows, rows.name)


def _checked(scan: Scan, source: str | MemoryRun, name: str) -> Run:
    scan.raise_errors()
    return Run(
        name=name,
        source=source,
        order=scan.order,
        queries=scan.facts.queries,
        documents=scan.facts.documents,
        notes=scan.problems,
    )


def open_run(source: Any, *, name: str) -> MemoryRun:
    """A mapping or a data frame as rows in memory.

    Raises:
        InputError: what is wrong with it.
        TypeError: it is neither.
    """
    if isinstance(source, Mapping):
        return run_from_mapping(source, name=name)
    if is_frame(source):
        return run_from_frame(source, name=name)
    raise TypeError(
        f"no run: {type(source).__name__}; a path, query -> document -> score, or a data frame"
    )


def is_path(thing: object) -> TypeGuard[PathLike_]:
    """Whether it names a file."""
    return isinstance(thing, str | PathLike)


def name_sources(runs: Any) -> dict[str, str | MemoryRun]:
    """Runs by the names of their systems.

    Args:
        runs: one run or a sequence of them, in any form that `read_run` takes; a path may be a
            pattern such as `runs/*.gz`. Or a mapping from names to runs.

    Raises:
        InputError: two systems have one name, or a pattern names no file.
    """
    if isinstance(runs, Mapping) and not is_one_mapping(runs):
        return {str(name): _source(one, str(name)) for name, one in runs.items()}
    several = [runs] if _is_one(runs) else list(runs)
    paths = [fspath(one) for one in several if is_path(one)]
    named: dict[str, str | MemoryRun] = dict(find_named(paths)) if paths else {}
    for number, one in enumerate(one for one in several if not is_path(one)):
        name = one.name if isinstance(one, Run) else f"run{number + 1}"
        if name in named:
            raise InputError.of("repeated-system", name, "two runs", "a name for each run")
        named[name] = _source(one, name)
    return named


def _is_one(runs: Any) -> bool:
    return isinstance(runs, Run | Mapping) or is_path(runs) or is_frame(runs)


def is_one_mapping(runs: Any) -> bool:
    """Whether it is query -> document -> score, and no mapping of runs."""
    if not isinstance(runs, Mapping):
        return False
    first = next(iter(runs.values()), None)
    return isinstance(first, Mapping) and not isinstance(next(iter(first.values()), None), Mapping)


def _source(one: Any, name: str) -> str | MemoryRun:
    if isinstance(one, Run):
        return one.source
    if is_path(one):
        return fspath(one)
    return open_run(one, name=name)


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
    if isinstance(source, Qrels):
        return source
    if is_path(source):
        return load_qrels(fspath(source), subtopics=subtopics)
    if isinstance(source, Mapping):
        return qrels_from_mapping(source, name=name or "qrels")
    if is_frame(source):
        return qrels_from_frame(source, name=name or "qrels")
    raise TypeError(
        f"no judgments: {type(source).__name__}; a path, query -> document -> grade, or a data "
        "frame"
    )


def label_of(source: QrelsLike) -> str:
    """What judgments are called in an answer."""
    return fspath(source) if is_path(source) else "qrels"
