"""What this machine has of all that heldout can use: one table of parts, and how each stands.

Nothing is imported here but what reads runs, which must load to be of use.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Literal

from heldout.errors import InputError

Kind = Literal["package", "program", "engine", "compiled"]
Group = Literal["base", "reading", "analyses", "boards", "judging", "rankers", "data"]
State = Literal["in use", "ready", "missing", "broken"]
"""`in use` when runs are read, `ready` to be imported or started."""

_PATIENCE = 5.0
_START = 20.0
_LOADED = {"numpy": "numpy"}
"""What of a package must load: reading runs needs no more, and the others take long."""
_SCANNER = "heldout.trec.scanning._scan"
_VERSION = re.compile(r"\d+(\.\d+)+")
_LEAST = {"git": "2.26"}
"""Versions that a program must have: an older git knows not all that keeps a clone from harm."""


@dataclass(frozen=True, slots=True)
class InstalledPart:
    """Something that heldout can use.

    Attributes:
        name: of the package, of the program, or `compiled`.
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
_BASE = (
    *(() if sys.version_info >= (3, 14) else ("backports.zstd",)),  # Python has it from 3.14 on
    *("click", "cryptography", "httpx2", "Jinja2", "msgspec", "narwhals", "numpy", "pyrage"),
    *("PyYAML", "rich", "scipy", "threadpoolctl"),
)
_WEB = ("fastapi", "uvicorn", "python-multipart", "itsdangerous", "SQLAlchemy", "psycopg")
_TORCH = ("torch", "transformers", "sentencepiece", "protobuf", "sentence-transformers")
_EXTRAS: tuple[tuple[str, Group, str, str, tuple[str, ...]], ...] = (
    (
        "fast",
        "analyses",
        "many runs",
        "reliability, stability and outcomes compute compiled; without it the answers are the same",
        ("numba",),
    ),
    (
        "cluster",
        "analyses",
        "analyses on a cluster",
        "heldout analyse --dask spreads the work over a Dask cluster",
        ("distributed",),
    ),
    (
        "frames",
        "analyses",
        "data frames",
        "in Python, results as frames: to_pandas(), to_polars(); and runs as Parquet",
        ("pandas", "polars", "pyarrow"),
    ),
    ("png", "analyses", "charts as PNG", "--chart FILE.png; .svg needs nothing", ("resvg-py",)),
    (
        "measures",
        "analyses",
        "further measures",
        "heldout evaluate takes the measures of ir_measures and trec_eval that we lack",
        ("ir_measures", "pytrec_eval-terrier"),
    ),
    (
        "timestamps",
        "boards",
        "time stamps of the log",
        "heldout board timestamp, and heldout audit --timestamp-root",
        ("rfc3161-client",),
    ),
    (
        "energy",
        "boards",
        "energy of programs",
        "heldout run says what energy a program used",
        ("tirex-tracker",),
    ),
    (
        "web",
        "judging",
        "pages and databases",
        "heldout serve, and what reads its database",
        _WEB,
    ),
    (
        "web",
        "judging",
        "sign-in at a site",
        "heldout serve with HELDOUT_GITHUB or HELDOUT_ORCID",
        ("authlib", "joserfc"),
    ),
    (
        "rankers",
        "rankers",
        "BM25, RM3, fusion",
        "heldout rank with BM25, RM3 or a fusion of them, and the demo",
        ("bm25s", "PyStemmer"),
    ),
    (
        "neural",
        "rankers",
        "neural rankers",
        "neural rankers and their training: heldout rank, heldout survive train",
        _TORCH,
    ),
    (
        "data",
        "data",
        "known collections",
        "heldout survive reads MS MARCO QnA, heldout rank takes --collection irds:NAME",
        ("ijson", "ir_datasets"),
    ),
)
"""Extra, group, what its packages are for in a few words and in a sentence, their names."""

PARTS: tuple[InstalledPart, ...] = (
    *(
        InstalledPart(name, "package", "base", "everything", "every command needs it", _AGAIN)
        for name in _BASE
    ),
    InstalledPart(
        "compiled",
        "compiled",
        "reading",
        "runs, all forms",
        f"runs are looked through by compiled code, not by numpy; {_GAIN}",
        f"a C compiler, then: {_AGAIN}",
    ),
    InstalledPart(
        "git",
        "program",
        "boards",
        "boards",
        "boards: all commands of participants and organisers, and the demo",
        "apt install git, or brew install git",
    ),
    InstalledPart(
        "podman or docker",
        "engine",
        "boards",
        "programs in place of runs",
        "heldout run: programs of teams in containers; HELDOUT_ENGINE names another one",
        "apt install podman, or docker; docs/how-to/code-submissions.md",
    ),
    *(
        InstalledPart(name, "package", group, use, brings, f"pip install 'heldout[{extra}]'")
        for extra, group, use, brings, names in _EXTRAS
        for name in names
    ),
)
"""Every part, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """How a part stands on this machine.

    Attributes:
        part: the part.
        state: how it stands.
        version: as it tells it, `None` if it does not.
        why: of what is broken or off, else empty.
        stops: whether runs cannot be scored as long as this is so.
    """

    part: InstalledPart
    state: State
    version: str | None = None
    why: str = ""
    stops: bool = False


def find_parts(
    environ: Mapping[str, str], parts: Sequence[InstalledPart] = PARTS
) -> tuple[PartState, ...]:
    """Return how each part stands, in the same order.

    Args:
        environ: `PATH`, where programs are looked for, and `HELDOUT_ENGINE`.
        parts: which to look for.
    """
    return tuple(_settle(_find(part, environ)) for part in parts)


def _settle(finding: PartState) -> PartState:
    """Say what follows from how the part is used, or is not."""
    part = finding.part
    if part.group == "base":
        return replace(finding, stops=finding.state in {"missing", "broken"})
    in_use = part.group == "reading" and finding.state == "ready"
    return replace(finding, state="in use") if in_use else finding


def _find(part: InstalledPart, environ: Mapping[str, str]) -> PartState:
    if part.kind in ("program", "engine"):
        find = _find_program if part.kind == "program" else _find_engine
        return find(part, environ)
    compiled, version = part.kind == "compiled", None
    try:
        if compiled and find_spec(_SCANNER) is None:
            return PartState(part=part, state="missing")
        version = None if compiled else metadata.version(part.name)
        loaded = import_module(_SCANNER if compiled else _LOADED.get(part.name, __name__))
        wanted = import_module("heldout.trec.scanning.scanners").INTERFACE if compiled else 0
    except metadata.PackageNotFoundError:
        return PartState(part=part, state="missing")
    except ImportError as error:
        why = f"it does not load: {error}"
        return PartState(part=part, state="broken", version=version, why=why)
    if compiled and wanted != loaded.INTERFACE:
        why = "it was built for another version of heldout"
        return PartState(part=part, state="broken", why=why)
    return PartState(part=part, state="ready", version=version)


def _find_program(part: InstalledPart, environ: Mapping[str, str]) -> PartState:
    path = shutil.which(part.name, path=environ.get("PATH"))
    if path is None:
        return PartState(part=part, state="missing")
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
        return PartState(part=part, state="broken", why=f"it does not run: {error}")
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    version = match and match[0]
    least = _LEAST.get(part.name)
    if version and least and _numbers(version) < _numbers(least):
        why = f"it is older than {least}, the first that heldout is made for"
        return PartState(part=part, state="broken", version=version, why=why)
    return PartState(part=part, state="ready", version=version)


def _find_engine(part: InstalledPart, environ: Mapping[str, str]) -> PartState:
    """Find out whether containers can be limited and started, as `heldout run` does."""
    try:
        from heldout.board.organiser import containers  # noqa: PLC0415 - it needs msgspec, which may be gone
    except ImportError:
        return PartState(part=part, state="missing")
    words, path = environ.get("HELDOUT_ENGINE", ""), environ.get("PATH")
    if not words and not any(shutil.which(name, path=path) for name in containers.ENGINES):
        return PartState(part=part, state="missing")
    flags = environ.get("HELDOUT_CONTAINER_FLAGS", "")
    try:
        engine = containers.find_engine(words, flags, environ, patience=_PATIENCE)
        containers.check_limits(engine)
    except InputError as error:
        return PartState(part=part, state="broken", why=error.problems[0].found)
    try:
        containers.check_start(replace(engine, patience=_START))
    except InputError as error:
        why = f"it starts no container: {error.problems[0].found}. Perhaps it needs another runtime"
        why += " or limits: HELDOUT_ENGINE, HELDOUT_CONTAINER_FLAGS"
        return PartState(part=part, state="broken", version=engine.version, why=why)
    return PartState(part=part, state="ready", version=engine.version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
