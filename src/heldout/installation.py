"""What this machine has of all that heldout can use: one table of parts, and how each stands.

Nothing is imported here but what reads runs, which must load to be of use.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, metadata, resources
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
_BASE = (
    *(() if sys.version_info >= (3, 14) else ("backports.zstd",)),  # Python has it from 3.14 on
    *("click", "cryptography", "httpx2", "Jinja2", "msgspec", "narwhals", "numpy", "pyrage"),
    *("PyYAML", "rich", "scipy", "threadpoolctl"),
)


def _read_parts() -> Iterator[InstalledPart]:
    """Yield every part, in the order in which they are shown."""
    for name in _BASE:
        yield InstalledPart(name, "package", "base", "everything", "every command needs it", _AGAIN)
    table = resources.files("heldout").joinpath("installation.toml").read_text("utf-8")
    for row in tomllib.loads(table)["part"]:
        names = row.pop("names")
        yield from (InstalledPart(name=name, **row) for name in names)


PARTS: tuple[InstalledPart, ...] = tuple(_read_parts())
"""Every part; those that are not in the base are rows of `installation.toml`."""


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
