"""What this machine has of all that heldout can use: one table of parts, and how each stands.

Nothing is imported here but what reads runs, which must load to be of use.
"""

import bz2
import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from importlib.util import find_spec
from itertools import chain, combinations
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

from heldout.errors import InputError, SetupError
from heldout.trec.accelerators import INTERFACE, Accelerators, find_accelerators, switched_off

if TYPE_CHECKING:  # it also has to say that numpy is missing
    import numpy as np

    from heldout.trec.scans import Scan

Kind = Literal["package", "program", "engine", "compiled"]
Group = Literal["base", "reading", "analyses", "boards", "judging", "rankers", "data"]
State = Literal["in use", "ready", "off", "missing", "broken"]
"""`in use` when runs are read, `ready` to be imported or started, `off` by `HELDOUT_WITHOUT`."""

_SWITCH = "HELDOUT_WITHOUT"
_PATIENCE = 5.0
_START = 20.0
_LOADED = {"numpy": "numpy", "isal": "isal.isal_zlib"}
"""What of a package must load: reading runs needs no more, and the others take long."""
_SCANNER = "heldout.trec.scanning._scan"
_VERSION = re.compile(r"\d+(\.\d+)+")
_LEAST = {"git": "2.26"}
"""Versions that a program must have: an older git knows not all that keeps a clone from harm."""


@dataclass(frozen=True, slots=True)
class Part:
    """Something that heldout can use.

    Attributes:
        name: of the package, of the program, or `compiled`, as `HELDOUT_WITHOUT` names it.
        kind: a Python package, a program on the PATH, one of those that run containers, or what a C
            compiler makes of ours.
        group: `base` is needed by every command; the others are what a part is for.
        use: what it is used for, in a few words.
        brings: what one has of it.
        get: how to get it.
    """

    name: str
    kind: Kind
    group: Group
    use: str
    brings: str
    get: str


# Not by its name: whoever has that on a package index would be installed.
_AGAIN = "pip install --force-reinstall --no-cache-dir ADDRESS, where heldout came from"
_GAIN = "how much that is: docs/results/performance.md"
_JUDGING = "preference judging: heldout serve, and what reads its database"
_MEASURES = "heldout evaluate takes the measures of ir_measures and trec_eval that we lack"
_NEURAL = "neural rankers and their training: heldout rank, heldout survive train"
_BASE = (
    *(() if sys.version_info >= (3, 14) else ("backports.zstd",)),  # Python has it from 3.14 on
    "click",
    "cryptography",
    "httpx2",
    "Jinja2",
    "msgspec",
    "narwhals",
    "numpy",
    "pyrage",
    "PyYAML",
    "rich",
    "scipy",
    "threadpoolctl",
)


def _packages(group: Group, get: str, *packages: tuple[str, str, str]) -> Iterator[Part]:
    """Packages that one command brings: name, use, what one has of it."""
    for name, use, brings in packages:
        yield Part(name, "package", group, use, brings, get)


def _extra(name: str) -> str:
    return f"pip install 'heldout[{name}]'"


PARTS: tuple[Part, ...] = (
    *_packages("base", _AGAIN, *((name, "everything", "every command needs it") for name in _BASE)),
    Part(
        "compiled",
        "compiled",
        "reading",
        "runs, all forms",
        f"runs are looked through by compiled code, not by numpy; {_GAIN}",
        f"a C compiler, then: {_AGAIN}",
    ),
    Part(
        "lbzip2",
        "program",
        "reading",
        "runs in bz2",
        f"bzip2 is unpacked with all cores, not with one; {_GAIN}",
        "apt install lbzip2, or brew install lbzip2",
    ),
    *_packages(
        "reading",
        _extra("fast"),
        ("isal", "runs in gz", f"gzip is unpacked by faster code; {_GAIN}"),
    ),
    *_packages(
        "analyses",
        _extra("fast"),
        (
            "numba",
            "tests of all pairs",
            "analyses of all pairs compute compiled; without it the answers are the same",
        ),
    ),
    *_packages(
        "analyses",
        _extra("cluster"),
        (
            "distributed",
            "analyses on a cluster",
            "heldout analyse --dask spreads the work over a Dask cluster",
        ),
    ),
    *_packages(
        "analyses",
        _extra("frames"),
        ("pandas", "data frames", "in Python, results as frames of pandas: to_pandas()"),
        ("polars", "data frames", "in Python, results as frames of polars: to_polars()"),
        ("pyarrow", "data frames", "in Python, frames of pyarrow, and runs as Parquet"),
    ),
    *_packages(
        "boards",
        _extra("timestamps"),
        (
            "rfc3161-client",
            "time stamps of the log",
            "heldout board timestamp, and heldout audit --timestamp-root",
        ),
    ),
    *_packages(
        "boards",
        _extra("energy"),
        ("tirex-tracker", "energy of programs", "heldout run says what energy a program used"),
    ),
    Part(
        "git",
        "program",
        "boards",
        "boards",
        "boards: all commands of participants and organisers, and the demo",
        "apt install git, or brew install git",
    ),
    Part(
        "podman or docker",
        "engine",
        "boards",
        "programs in place of runs",
        "heldout run: programs of teams in containers; HELDOUT_ENGINE names another one",
        "apt install podman, or docker; docs/how-to/code-submissions.md",
    ),
    *_packages(
        "analyses",
        _extra("png"),
        ("resvg-py", "charts as PNG", "--chart FILE.png; a chart as .svg needs nothing"),
    ),
    *_packages(
        "judging",
        _extra("web"),
        ("fastapi", "judging pages", _JUDGING),
        ("uvicorn", "their server", _JUDGING),
        ("python-multipart", "their forms", _JUDGING),
        ("itsdangerous", "signed links", _JUDGING),
        (
            "authlib",
            "sign-in by GitHub or ORCID",
            "heldout serve with HELDOUT_GITHUB or HELDOUT_ORCID",
        ),
        ("joserfc", "their ID tokens", "heldout serve with HELDOUT_GITHUB or HELDOUT_ORCID"),
        ("SQLAlchemy", "a campaign's database", _JUDGING),
        ("psycopg", "PostgreSQL", _JUDGING),
    ),
    *_packages(
        "rankers",
        _extra("rankers"),
        (
            "bm25s",
            "BM25, RM3, their fusion",
            "heldout rank with BM25, RM3 or a fusion of them, and the demo",
        ),
        (
            "PyStemmer",
            "stems of words",
            "heldout rank with stems, which most methods take, and the demo",
        ),
    ),
    *_packages(
        "rankers",
        _extra("neural"),
        ("torch", "neural rankers", _NEURAL),
        ("transformers", "cross-encoders, monoT5", _NEURAL),
        ("sentencepiece", "words of T5", _NEURAL),
        ("protobuf", "their files", _NEURAL),
        ("sentence-transformers", "sentence vectors", _NEURAL),
    ),
    *_packages(
        "data",
        _extra("data"),
        ("ijson", "MS MARCO QnA", "heldout survive reads the annotations of MS MARCO QnA"),
        ("ir_datasets", "known collections", "heldout rank --collection irds:NAME"),
    ),
    *_packages(
        "analyses",
        _extra("measures"),
        ("ir_measures", "further measures", _MEASURES),
        ("pytrec_eval-terrier", "trec_eval", _MEASURES),
    ),
)
"""Every part, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How a part stands on this machine.

    Attributes:
        part: the part.
        state: how it stands.
        version: as it tells it, `None` if it does not.
        why: of what is broken or off, else empty.
        stops: whether runs cannot be scored as long as this is so.
    """

    part: Part
    state: State
    version: str | None = None
    why: str = ""
    stops: bool = False


def find_parts(environ: Mapping[str, str], parts: Sequence[Part] = PARTS) -> tuple[Finding, ...]:
    """How each part stands, in the same order.

    Args:
        environ: `PATH`, where programs are looked for, `HELDOUT_WITHOUT` and `HELDOUT_ENGINE`.
        parts: which to look for.
    """
    used = find_accelerators(environ)
    return tuple(_settle(_find(part, environ), environ, used) for part in parts)


def find_unknown_switches(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names in `HELDOUT_WITHOUT` that switch nothing off."""
    known = {part.name for part in PARTS if part.group == "reading"}
    return tuple(sorted(switched_off(environ) - known))


def _settle(finding: Finding, environ: Mapping[str, str], used: Accelerators) -> Finding:
    """What follows from how the part is used, or is not."""
    part = finding.part
    absent = finding.state in {"missing", "broken"}
    if part.group == "base":
        return replace(finding, stops=absent)
    if part.group != "reading" or finding.state == "missing":
        return finding
    if part.name in switched_off(environ):
        return replace(finding, state="off", why=f"{_SWITCH}={environ[_SWITCH]}")
    if part.name not in {used.scanner, used.bzip2, used.gzip}:
        return finding
    return finding if absent else replace(finding, state="in use")


def _find(part: Part, environ: Mapping[str, str]) -> Finding:
    if part.kind in ("program", "engine"):
        find = _find_program if part.kind == "program" else _find_engine
        return find(part, environ)
    compiled, version = part.kind == "compiled", None
    try:
        if compiled and find_spec(_SCANNER) is None:
            return Finding(part=part, state="missing")
        version = None if compiled else metadata.version(part.name)
        loaded = import_module(_SCANNER if compiled else _LOADED.get(part.name, __name__))
    except metadata.PackageNotFoundError:
        return Finding(part=part, state="missing")
    except ImportError as error:
        why = f"it does not load: {error}"
        return Finding(part=part, state="broken", version=version, why=why)
    if compiled and loaded.INTERFACE != INTERFACE:
        why = "it was built for another version of heldout"
        return Finding(part=part, state="broken", why=why)
    return Finding(part=part, state="ready", version=version)


def _find_program(part: Part, environ: Mapping[str, str]) -> Finding:
    path = shutil.which(part.name, path=environ.get("PATH"))
    if path is None:
        return Finding(part=part, state="missing")
    try:
        done = subprocess.run(  # noqa: S603 - found on the user's PATH by intent
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={"LC_ALL": "C"},
            timeout=_PATIENCE,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return Finding(part=part, state="broken", why=f"it does not run: {error}")
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    version = match and match[0]
    least = _LEAST.get(part.name)
    if version and least and _numbers(version) < _numbers(least):
        why = f"it is older than {least}, the first that heldout is made for"
        return Finding(part=part, state="broken", version=version, why=why)
    return Finding(part=part, state="ready", version=version)


def _find_engine(part: Part, environ: Mapping[str, str]) -> Finding:
    """Whether containers can be limited and started: as `heldout run` finds it out."""
    try:
        from heldout.board.organiser import containers  # noqa: PLC0415 - it needs msgspec, which may be gone
    except ImportError:
        return Finding(part=part, state="missing")
    words, path = environ.get("HELDOUT_ENGINE", ""), environ.get("PATH")
    if not words and not any(shutil.which(name, path=path) for name in containers.ENGINES):
        return Finding(part=part, state="missing")
    flags = environ.get("HELDOUT_CONTAINER_FLAGS", "")
    try:
        engine = containers.find_engine(words, flags, environ, patience=_PATIENCE)
        containers.check_limits(engine)
    except InputError as error:
        return Finding(part=part, state="broken", why=error.problems[0].found)
    try:
        containers.check_start(replace(engine, patience=_START))
    except InputError as error:
        why = f"it starts no container: {error.problems[0].found}. Perhaps it needs another runtime"
        why += " or limits: HELDOUT_ENGINE, HELDOUT_CONTAINER_FLAGS"
        return Finding(part=part, state="broken", version=engine.version, why=why)
    return Finding(part=part, state="ready", version=engine.version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStore:
    """Where scores are stored.

    Attributes:
        path: the folder, `None` for nowhere.
        bytes: size of what is there.
        limit: bytes beyond which the oldest are removed, `None` where nothing is.
        why: why nothing is stored, else empty.
    """

    path: Path | None
    bytes: int = 0
    limit: int | None = 0
    why: str = ""


def find_score_store(environ: Mapping[str, str]) -> ScoreStore:
    """Where scores are stored, and how much there is.

    Args:
        environ: as for `heldout.scoring.cache.find_cache`.

    Raises:
        ImportError: a package that every command needs is missing.
    """
    from heldout.scoring.cache import find_cache  # noqa: PLC0415 - it needs numpy, which may be gone

    cache = find_cache(environ)
    if cache is None:
        off = environ.get("HELDOUT_CACHE") == "off"
        return ScoreStore(path=None, why="HELDOUT_CACHE=off" if off else "there is no home folder")
    return ScoreStore(
        path=cache.root,
        bytes=_size(cache.root),
        limit=cache.limit,
        why="" if _can_write(cache.root) else "it cannot be written",
    )


def _size(root: Path) -> int:
    """Bytes of all records, of every format there has been."""
    found = 0
    for path in root.glob("scores-*/*/*/*"):
        with suppress(OSError):  # removed meanwhile
            found += path.lstat().st_size
    return found


def _can_write(path: Path) -> bool:
    """Whether files can be made there, perhaps after its folders."""
    there = next((folder for folder in (path, *path.parents) if folder.exists()), path)
    return _is_writable(there)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder for what does not fit into memory.

    Attributes:
        path: the folder, `None` if there is none that can be written.
        free: bytes left on its disk.
        use: what goes there.
    """

    path: Path | None
    free: int
    use: str


def find_scratch(environ: Mapping[str, str]) -> tuple[Folder, ...]:
    """Where temporary files go: what came through a pipe, and rows of interleaved queries.

    Args:
        environ: `TMPDIR` and, for the rows, which SQLite keeps, `SQLITE_TMPDIR`.

    Source: Python's tempfile; https://www.sqlite.org/tempfiles.html, section 5, for Unix.
    """
    own = environ.get("TMPDIR", "")
    rows = (environ.get("SQLITE_TMPDIR", ""), own, "/var/tmp", "/usr/tmp", "/tmp", ".")  # noqa: S108 - SQLite's list
    pipes: Path | None = None
    with suppress(FileNotFoundError):
        pipes = Path(tempfile.gettempdir())
    spill = next((Path(path) for path in rows if path and _is_writable(Path(path))), None)
    uses = ("runs that come through a pipe", "runs whose queries are interleaved")
    folders = [(pipes, uses[0]), (spill, uses[1])]
    if pipes == spill:
        folders = [(pipes, " and ".join(uses))]
    return tuple(
        Folder(path=path, free=shutil.disk_usage(path).free if path else 0, use=use)
        for path, use in folders
    )


def _is_writable(path: Path) -> bool:
    return path.is_dir() and os.access(path, os.W_OK | os.X_OK)


# How fast this machine reads a run, with and without each part that makes it faster.
#
# The run is a sample, drawn from a seed and held in memory: no disk is measured.

Form = Literal["plain", "gz", "bz2"]

_DOCUMENTS = 8_841_823
_PARTS: Mapping[Form, tuple[str, ...]] = {
    "plain": ("compiled",),
    "gz": ("compiled", "isal"),
    "bz2": ("compiled", "lbzip2"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A run in TREC form.

    Attributes:
        queries: how many.
        depth: documents of each.
        files: its bytes, plain and packed as by `gzip -6` and `bzip2 -9`.
        qrels: query -> document -> grade: one document of each query.
    """

    queries: int
    depth: int
    files: Mapping[Form, bytes]
    qrels: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long reading and checking the sample took.

    Attributes:
        form: how it was packed.
        bytes: its size, packed.
        parts: what was used besides numpy and the standard library.
        seconds: median.
        ratio: seconds with nothing optional over these, > 1 where it is faster.
    """

    form: Form
    bytes: int
    parts: tuple[str, ...]
    seconds: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """What was measured.

    Attributes:
        queries: of the sample.
        depth: documents of each.
        repeats: how often each was measured.
        threads: how many a decompressor might use.
        load: processes that were at work before, `None` where nobody tells.
        timings: by form, nothing optional first and all there is last.
    """

    queries: int
    depth: int
    repeats: int
    threads: int
    load: float | None
    timings: tuple[Timing, ...]


def draw_sample(rng: "np.random.Generator", *, queries: int = 200, depth: int = 1000) -> Sample:
    """A run like those of MS MARCO: ids below 8,841,823, scores of six decimals that fall.

    Args:
        rng: sole source of randomness; advanced in place.
        queries: how many, >= 1.
        depth: documents of each, >= 1.
    """
    lines: list[str] = []
    qrels: dict[str, dict[str, int]] = {}
    for query in range(1_000_000, 1_000_000 + queries):
        documents = rng.choice(_DOCUMENTS, size=depth, replace=False).tolist()
        scores = 30 - rng.uniform(0.001, 0.02, size=depth).cumsum()
        qrels[str(query)] = {str(documents[int(rng.integers(depth))]): 1}
        lines += [
            f"{query} Q0 {document} {rank} {score:.6f} sample\n"
            for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)
        ]
    text = "".join(lines).encode()
    packed: dict[Form, bytes] = {
        "plain": text,
        "gz": gzip.compress(text, 6, mtime=0),
        "bz2": bz2.compress(text, 9),
    }
    return Sample(queries=queries, depth=depth, files=packed, qrels=qrels)


def measure(
    sample: Sample,
    found: Accelerators,
    *,
    clock: Callable[[], float],
    repeats: int,
    load: float | None = None,
    done: Callable[[], None] = lambda: None,
) -> Speed:
    """Read the sample in every form with every choice of the parts that matter for it.

    The choices take turns, so that whatever else the machine does hurts all alike.

    Args:
        sample: what to read.
        found: what this machine has.
        clock: seconds.
        repeats: how often, >= 1.
        load: processes at work before; goes into the result.
        done: called after each repeat.

    Raises:
        SetupError: with some part, other things are found than without it.
    """
    trials = [(form, parts) for form in sample.files for parts in _choices(form, found)]
    seconds: dict[tuple[Form, tuple[str, ...]], list[float]] = {trial: [] for trial in trials}
    first = _read(sample, "plain", (), found)
    for _ in range(repeats):
        for form, parts in trials:
            begin = clock()
            scan = _read(sample, form, parts, found)
            seconds[form, parts].append(clock() - begin)
            if _found(first) != _found(scan):
                names = ",".join(parts)
                raise SetupError(
                    f"with {names or 'nothing optional'} the sample reads differently than "
                    f"without; leave it out with HELDOUT_WITHOUT={names}, and report it"
                )
        done()
    medians = {trial: median(times) for trial, times in seconds.items()}
    timings = tuple(
        Timing(
            form=form,
            bytes=len(sample.files[form]),
            parts=parts,
            seconds=taken,
            ratio=medians[form, ()] / taken,
        )
        for (form, parts), taken in medians.items()
    )
    return Speed(
        queries=sample.queries,
        depth=sample.depth,
        repeats=repeats,
        threads=found.threads,
        load=load,
        timings=timings,
    )


def _choices(form: Form, found: Accelerators) -> Iterator[tuple[str, ...]]:
    """Every choice of the parts that matter and are there, none first and all last."""
    there = [part for part in _PARTS[form] if part in {found.scanner, found.bzip2, found.gzip}]
    return chain.from_iterable(combinations(there, count) for count in range(len(there) + 1))


def _read(sample: Sample, form: Form, parts: Sequence[str], found: Accelerators) -> "Scan":
    from heldout.trec.runs import scan_run  # noqa: PLC0415 - it needs numpy, which may be gone

    used = {
        name: getattr(found, name)
        for name in ("scanner", "bzip2", "gzip")
        if getattr(found, name) in parts
    }
    accelerators = Accelerators(threads=found.threads, **used)
    return scan_run(
        io.BytesIO(sample.files[form]),
        path=f"sample.{form}",
        order="trec",
        qrels=sample.qrels,
        accelerators=accelerators,
    )


def _found(scan: "Scan") -> tuple[object, ...]:
    rankings, signature = scan.rankings, scan.signature
    arrays = (rankings.starts, rankings.positions, rankings.grades, rankings.retrieved)
    return (
        scan.facts,
        scan.counts,
        rankings.queries,
        *(array.tobytes() for array in (*arrays, signature.documents)),
    )
