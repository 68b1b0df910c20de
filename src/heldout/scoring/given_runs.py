"""Runs as Python code gives them: paths, mappings, data frames, and runs that were read before.

Each is read as a file is: what is in memory is written down as rows first. Then orders, ties and
checks are those of files, whatever reads them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from heldout.errors import InputError
from heldout.files.frames import is_frame
from heldout.scoring.sources import find_named
from heldout.trec.memory import MemoryRun, run_from_frame, run_from_mapping
from heldout.trec.orders import Order
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Places, Tops, read_places, read_tops

GivenRuns: TypeAlias = str | PathLike[str] | Sequence[Any] | Mapping[str, Any] | Any
"""Paths and patterns such as `runs/*.gz`, runs of `heldout.read_run`, one run as query -> document
-> score or as a data frame, or a mapping from names to any of these."""


def name_given(runs: GivenRuns) -> dict[str, Any]:
    """Runs by the names of their systems; one that has none is called "run".

    Raises:
        InputError: code `no-run`; `repeated-system`: two have one name.
        TypeError: one of several has no name.
    """
    if is_frame(runs) or (isinstance(runs, Mapping) and _is_run(runs)):
        return {"run": runs}
    if isinstance(runs, Mapping):
        return {str(name): run for name, run in runs.items()}
    if isinstance(runs, str | PathLike):
        runs = [runs]
    several: list[Any] = [runs] if hasattr(runs, "source") else list(runs)
    patterns = [fspath(one) for one in several if isinstance(one, str | PathLike)]
    named: dict[str, Any] = dict(find_named(patterns)) if patterns else {}
    for one in several:
        if isinstance(one, str | PathLike):
            continue
        if not hasattr(one, "source"):
            raise TypeError(f"a name for each run that is a {type(one).__name__}: {{name: run}}")
        if one.name in named:
            raise InputError.of("repeated-system", one.name, "two runs", "a name for each run")
        named[one.name] = one
    return named


def _is_run(mapping: Mapping[str, Any]) -> bool:
    """Whether it is query -> document -> score, and no mapping from names."""
    first = next(iter(mapping.values()), None)
    return isinstance(first, Mapping) and not any(
        isinstance(one, Mapping) for one in first.values()
    )


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
    named = name_given(run)
    if len(named) != 1:
        raise InputError.of("one-run", "run", f"{len(named):,} runs", "one run")
    ((name, tops),) = read_given_tops(named, depth=depth).items()
    return name, tops


def read_given_places(
    runs: GivenRuns, *, documents: Mapping[str, Collection[str]], order: Order | None = None
) -> Mapping[str, Places]:
    """Where runs have certain documents, as `heldout.trec.tops.read_places` has it.

    Args:
        runs: which.
        documents: query -> those that are looked for.
        order: of documents; `None` for what fits the columns.

    Raises:
        InputError: a run has errors.
    """
    return {
        name: read_places(file, path=path, documents=documents, order=order, limits=OWN_FILES)
        for name, path, file in _open_each(runs)
    }


def _open_each(runs: GivenRuns) -> Iterator[tuple[str, str, BinaryIO]]:
    """Name, path for messages, and the opened file of each run; closed when the next is taken."""
    for name, run in name_given(runs).items():
        source = getattr(run, "source", run)
        if isinstance(source, str | PathLike):
            with open_input(Path(source)) as file:
                yield name, fspath(source), file
        else:
            yield name, name, BytesIO(_format(source, name))


def _format(source: Any, name: str) -> bytes:
    """A run in memory as rows: of TREC form where it has scores, else of MS MARCO form."""
    if isinstance(source, MemoryRun):
        run = source
    elif is_frame(source):
        run = run_from_frame(source, name=name)
    elif isinstance(source, Mapping):
        run = run_from_mapping(source, name=name)
    else:
        raise TypeError(f"no run: {type(source).__name__}")
    columns = run.columns()
    queries, documents = columns["qid"], columns["docno"]
    if "score" not in columns:
        rows = zip(queries, documents, columns["rank"], strict=True)
        return "".join(f"{q}\t{d}\t{rank}\n" for q, d, rank in rows).encode()
    scored = zip(queries, documents, columns["score"], _count_rows(queries), strict=True)
    return "".join(f"{q} Q0 {d} {rank} {score!r} run\n" for q, d, score, rank in scored).encode()


def _count_rows(queries: Sequence[str]) -> Iterator[int]:
    """1, 2, 3 and so on within each query; scores decide, and the column needs a rank."""
    last, number = None, 0
    for query in queries:
        number = number + 1 if query == last else 1
        last = query
        yield number
