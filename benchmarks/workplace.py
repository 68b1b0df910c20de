"""What there is to measure with: a Python with heldout and its peers, programs, data."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["HERE", "Workplace", "child_environment", "find_workplace", "machine_facts"]

HERE = Path(__file__).resolve().parent
_DISTRIBUTIONS = (
    "heldout",
    "numpy",
    "pytrec_eval-terrier",
    "ir_measures",
    "ranx",
    "trectools",
    "pandas",
    "polars",
    "rapidgzip",
)
_PROGRAMS = ("lbzip2", "bzip2", "gzip", "zstd")
_ASK = """
import importlib.metadata, importlib.util, json, os, sys
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
print(json.dumps({
    "versions": {name: version(name) for name in sys.argv[1:]},
    "compiled": bool(importlib.util.find_spec("heldout.trec.scanning._scan")),
    "python": sys.version.split()[0],
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Where to find things.

    Attributes:
        python: the interpreter that has heldout and the Python peers.
        versions: of distributions and programs, empty where one is not installed.
        compiled: whether heldout has its compiled scanner.
        trec_eval: a program, or `None`.
        msmarco: the official script, or `None`.
        data: the folder of the generated files.
        scratch: where decompressed copies go, for tools that read no archives.
        cores: how many there are.
    """

    python: Path
    versions: Mapping[str, str]
    compiled: bool
    trec_eval: Path | None
    msmarco: Path | None
    data: Path
    scratch: Path
    cores: int


def child_environment() -> dict[str, str]:
    """Environment of a contender."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HELDOUT_", "PYTHON"))
    }


def find_workplace(
    python: Path,
    *,
    trec_eval: Path | None,
    msmarco: Path | None,
    data: Path,
    scratch: Path,
) -> Workplace:
    """Ask the interpreter what it has.

    Raises:
        OSError: it has no heldout.
    """
    asked = _run([str(python), "-P", "-c", _ASK, *_DISTRIBUTIONS])
    found = json.loads(asked)
    if not found["versions"]["heldout"]:
        raise OSError("this Python has no heldout: see benchmarks/run.py --prepare")
    programs = {name: "installed" if shutil.which(name) else "" for name in _PROGRAMS}
    return Workplace(
        python=python,
        versions={**found["versions"], **programs, "python": found["python"]},
        compiled=found["compiled"],
        trec_eval=trec_eval,
        msmarco=msmarco,
        data=data,
        scratch=scratch,
        cores=len(os.sched_getaffinity(0)),
    )


def _run(command: list[str]) -> str:
    ran = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=child_environment()
    )
    return ran.stdout


def machine_facts(workplace: Workplace) -> dict[str, str]:
    """What of the machine and the tools bears on the figures; no names or paths of it."""
    facts = {
        "cores": str(workplace.cores),
        "processor": _processor(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": platform.system(),
        "python": workplace.versions["python"],
        "compiled scanner": "yes" if workplace.compiled else "no",
    }
    names = (*_DISTRIBUTIONS, *_PROGRAMS)
    facts.update({name: workplace.versions[name] or "not installed" for name in names})
    return facts


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
