"""Run files as patterns name them, by the names that systems go by; and their first documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from os.path import commonprefix
from pathlib import Path

from heldout.errors import InputError, quote
from heldout.files.frames import PARQUET, read_parquet
from heldout.progress_bar import SILENT, Progress
from heldout.trec import memory, runs, scans
from heldout.trec.orders import DESCRIPTIONS, Order
from heldout.trec.qrels import Qrels
from heldout.trec.reading.sources import open_input
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.tops import Tops, read_tops

_SUFFIXES = (PARQUET, ".gz", ".bz2", ".zst", ".tsv", ".txt", ".run", ".trec")


def run_name(path: str) -> str:
    """A run's name: that of its file, without suffixes like `.tsv.gz`."""
    name = Path(path).name
    while Path(name).suffix in _SUFFIXES and Path(name).stem:
        name = Path(name).stem
    return name


def find_runs(patterns: Sequence[str], *, option: str = "--runs") -> list[str]:
    """The files that paths and patterns name, each once, sorted within a pattern.

    Args:
        patterns: paths, or patterns as a shell has them.
        option: the option or argument they were given as, for messages.

    Raises:
        InputError: code `no-run`: a pattern names nothing.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        paths = [pattern] if Path(pattern).is_file() else sorted(glob(pattern))  # noqa: PTH207 - a whole path may be a pattern
        if not paths:
            raise InputError.of("no-run", option, f"no file for {quote(pattern)}")
        found |= dict.fromkeys(paths)
    return list(found)


def name_runs(patterns: Sequence[str]) -> Mapping[str, str]:
    """Name of each run -> its path, as `name_paths` names them.

    Raises:
        InputError: as `find_runs`.
    """
    return name_paths(find_runs(patterns))


def name_paths(paths: Sequence[str]) -> Mapping[str, str]:
    """Name of each run -> its path; where names are the same, paths below the folder of all."""
    names = [run_name(path) for path in paths]
    if len(set(names)) < len(names):
        shared = commonprefix(paths)  # noqa: RUF071 - cut at a slash; some may be relative
        folder, slash, _ = shared.rpartition("/")
        names = [path.removeprefix(f"{folder}{slash}") for path in paths]
    return dict(zip(names, paths, strict=True))


def read_each(
    paths: Mapping[str, str], *, depth: int, order: Order | None, progress: Progress = SILENT
) -> Mapping[str, Tops]:
    """The first documents of runs.

    Args:
        paths: by the run's name.
        depth: how many of each query.
        order: how documents are ordered; `None` for what fits a run's columns.
        progress: counts the runs.

    Raises:
        InputError: a run has errors.
    """
    tops: dict[str, Tops] = {}
    with progress.steps("reading runs", len(paths)) as done:
        for name, path in paths.items():
            with open_input(Path(path)) as file:
                tops[name] = read_tops(file, path=path, depth=depth, order=order, limits=OWN_FILES)
            done()
    return tops


def describe_orders(orders: Iterable[Order], *, given: Order | None) -> list[tuple[str, str]]:
    """Return how documents are ordered, in lines of `name      what there is to say`.

    Args:
        orders: of the runs.
        given: what `--order` asked for; `None` where the columns decided.
    """
    facts: list[tuple[str, str]] = []
    for order in dict.fromkeys(orders):
        facts.append(("" if facts else "order", f"{order}: {DESCRIPTIONS[order]}"))
        if given is None:
            ranked = order == "msmarco"
            columns = "ranks alone (3 columns)" if ranked else "scores (6 columns)"
            facts.append(("", f"chosen for runs with {columns}; --order chooses another"))
    return facts


def read_table_text(path: Path) -> str:
    """The text of a CSV table: plain, gzip, bzip2 or zstd, in UTF-8.

    Raises:
        InputError: codes `unreadable-file`, `bad-utf8`, and those of `TextReader`; `nul-byte` is
            what UTF-16 has.
    """
    from heldout.collections.tables import read_text  # noqa: PLC0415 - few calls read a table

    data = read_text(path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError.of("bad-utf8", str(path), "bytes that are not UTF-8", line=line) from None


def scan_file(
    path: str,
    *,
    order: Order | None,
    qrels: Qrels | None = None,
    expected: scans.Expected | None = None,
    listed: int = 0,
) -> scans.Scan:
    """Scan a run file of whoever calls; arguments as in `scan_run`.

    Of a Parquet file `list_documents` has the ids.

    Raises:
        InputError: code `unreadable-file`; of a Parquet file those of `run_from_frame` too.
    """
    if path.lower().endswith(PARQUET):
        run = memory.run_from_frame(read_parquet(path), name=path)
        scan = memory.scan_memory(
            run,
            order=order,
            qrels=None if qrels is None else qrels.judgments,
            expected=expected,
            limits=OWN_FILES,
        )
        from heldout.scoring.cache import digest_file  # noqa: PLC0415 - few runs are Parquet

        return replace(scan, digest=digest_file(Path(path)))
    with open_input(Path(path)) as source:
        return runs.scan_run(
            source,
            path=path,
            order=order,
            qrels=None if qrels is None else qrels.judgments,
            expected=expected,
            limits=OWN_FILES,
            signature_depth=0,
            listed=listed,
        )
