"""Runs as Python code gives them: paths, mappings, data frames, and runs that were read before.

Whatever reads the first documents of runs reads files: what is in memory is written down as rows
first, so orders, ties and checks are those of files.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeGuard

from heldout.errors import InputError, Problem, plural, quote
from heldout.files.durable import write_whole
from heldout.files.frames import PARQUET, Framed, is_frame, read_parquet, write_parquet
from heldout.scoring.sources import find_named
from heldout.trec.memory import MemoryRun, run_from_frame, run_from_mapping
from heldout.trec.orders import Order
from heldout.trec.reading.sources import open_input, read_file
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import RunPositions, Tops, read_positions, read_rows, read_tops

GivenRuns: TypeAlias = str | PathLike[str] | Sequence[Any] | Mapping[str, Any] | Any
"""Paths and patterns such as `runs/*.gz`, runs of `heldout.read_run`, one run as query -> document
-> score or as a data frame, or a mapping from names to any of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Framed):
    """A run that was read and checked; from `read_run`.

    A run from a file stays in its file, which is read again when the run is scored.

    Attributes:
        name: of the system.
        source: the path, or the rows in memory.
        order: that fits its columns: `trec`, or `msmarco` where there are ranks alone.
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
        columns = self.columns()
        scores = columns.get("score") or [-rank for rank in columns["rank"]]
        found: dict[str, dict[str, float]] = {}
        for query, document, score in zip(columns["qid"], columns["docno"], scores, strict=True):
            found.setdefault(query, {})[document] = score
        return found

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
            write_parquet(self.columns(), path)
            return
        write_whole(Path(path), _format_rows(self.to_dict(), tag or self.name))

    def columns(self) -> dict[str, list[Any]]:
        """The rows: `qid`, `docno`, `score`, `rank`.

        Raises:
            InputError: the file has errors now.
        """
        if isinstance(self.source, MemoryRun):
            return self.source.columns()
        if self.source.lower().endswith(PARQUET):
            return run_from_frame(read_parquet(self.source), name=self.source).columns()
        return read_file(read_rows, self.source)


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


def is_path(thing: object) -> TypeGuard[str | PathLike[str]]:
    """Return whether it names a file."""
    return isinstance(thing, str | PathLike)


def name_sources(runs: Any) -> dict[str, str | MemoryRun]:
    """Runs by the names of their systems; one that has no name is `run`, several `run1`, `run2`.

    Args:
        runs: one run or a sequence of them, in any form that `read_run` takes; a path may be a
            pattern such as `runs/*.gz`. Or a mapping from names to runs.

    Raises:
        InputError: two systems have one name, or a pattern names no file.
    """
    if isinstance(runs, Mapping) and not is_one_mapping(runs):
        return {str(name): _source(one, str(name)) for name, one in runs.items()}
    if not _is_one(runs) and not isinstance(runs, Iterable):
        raise TypeError(f"no runs: {type(runs).__name__}; paths, mappings or data frames")
    several = [runs] if _is_one(runs) else list(runs)
    paths = [fspath(one) for one in several if is_path(one)]
    named: dict[str, str | MemoryRun] = dict(find_named(paths)) if paths else {}
    for number, one in enumerate((one for one in several if not is_path(one)), start=1):
        unnamed = f"run{number}" if len(several) > 1 else "run"
        name = one.name if isinstance(one, Run) else unnamed
        if name in named:
            raise InputError.of("repeated-system", name, "two runs", "a name for each run")
        named[name] = _source(one, name)
    return named


def _is_one(runs: Any) -> bool:
    return isinstance(runs, Run | Mapping) or is_path(runs) or is_frame(runs)


def is_one_mapping(runs: Any) -> bool:
    """Check whether it is query -> document -> score, and no mapping of runs."""
    if not isinstance(runs, Mapping):
        return False
    first = next(iter(runs.values()), None)
    return isinstance(first, Mapping) and not isinstance(next(iter(first.values()), None), Mapping)


def _source(one: Any, name: str) -> str | MemoryRun:
    if isinstance(one, Run):
        return one.source
    if isinstance(one, MemoryRun):
        return one
    if is_path(one):
        return fspath(one)
    return open_run(one, name=name)


def read_given_tops(
    runs: GivenRuns, *, depth: int, order: Order | None = None
) -> Mapping[str, Tops]:
    """The first documents of runs, as `heldout.trec.tops.read_tops` has them.

    Args:
        runs: which.
        depth: documents of a query, 1 to 100.
        order: of documents; `None` for what fits the columns.

    Raises:
        InputError: a run has errors.
    """
    return {
        name: read_tops(file, path=path, depth=depth, order=order, limits=OWN_FILES)
        for name, path, file in _open_each(runs)
    }


def read_one_top(run: GivenRuns, *, depth: int) -> tuple[str, Tops]:
    """The name and the first documents of one run.

    Raises:
        InputError: it has errors; code `one-run`: there are several.
    """
    named = name_sources(run)
    if len(named) != 1:
        raise InputError.of("one-run", "run", f"{len(named):,} runs", "one run")
    ((name, tops),) = read_given_tops(named, depth=depth).items()
    return name, tops


def read_given_positions(
    runs: GivenRuns, *, documents: Mapping[str, Collection[str]], order: Order | None = None
) -> Mapping[str, RunPositions]:
    """Return where runs have certain documents, as `heldout.trec.tops.read_positions` has it.

    Args:
        runs: which.
        documents: query -> those that are looked for.
        order: of documents; `None` for what fits the columns.

    Raises:
        InputError: a run has errors.
    """
    return {
        name: read_positions(file, path=path, documents=documents, order=order, limits=OWN_FILES)
        for name, path, file in _open_each(runs)
    }


def _open_each(runs: GivenRuns) -> Iterator[tuple[str, str, BinaryIO]]:
    """Name, path for messages, and the opened file of each run; closed when the next is taken."""
    for name, source in name_sources(runs).items():
        if isinstance(source, str) and not source.lower().endswith(PARQUET):
            with open_input(Path(source)) as file:
                yield name, source, file
            continue
        path = str(source)
        run = run_from_frame(read_parquet(path), name=path) if isinstance(source, str) else source
        yield name, path, BytesIO(_format_run(run))


def _format_run(run: MemoryRun) -> bytes:
    """A run in memory as rows: of TREC form where it has scores, else of MS MARCO form."""
    columns = run.columns()
    queries, documents = columns["qid"], columns["docno"]
    if "score" not in columns:
        rows = zip(queries, documents, columns["rank"], strict=True)
        return "".join(f"{q}\t{d}\t{rank}\n" for q, d, rank in rows).encode()
    scored: dict[str, dict[str, float]] = {}
    for query, document, score in zip(queries, documents, columns["score"], strict=True):
        scored.setdefault(query, {})[document] = score
    return _format_rows(scored, "run")


def _format_rows(scored: Mapping[str, Mapping[str, float]], name: str) -> bytes:
    """Rows of TREC form, numbered as they stand; scores have all their digits."""
    for one in chain(scored, *scored.values()):
        if len(one.split()) != 1:
            raise InputError.of("blank-in-id", name, quote(one))
    tag = "_".join(name.split())
    lines = [
        f"{query} Q0 {document} {rank} {score!r} {tag}\n"
        for query, scores in scored.items()
        for rank, (document, score) in enumerate(scores.items(), start=1)
    ]
    return "".join(lines).encode()
