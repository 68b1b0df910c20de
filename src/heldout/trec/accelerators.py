"""What makes reading a run faster where it is there; no score depends on any of it.

What there is, is looked up at the edge of the program (`find_accelerators`) and passed on as a
value. Nothing here needs numpy: `heldout doctor` says so where it is missing.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Literal

from heldout.files.cores import count_cores

Scanner = Literal["compiled", "numpy", "plain"]
Bzip2 = Literal["lbzip2", "stdlib"]
Gzip = Literal["isal", "stdlib"]

_WITHOUT = "HELDOUT_WITHOUT"
INTERFACE: Final = 2
"""What `compiled.py` was written for; `_scan.c` says the same, unless it was built long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """How runs are read. The defaults need nothing but numpy.

    Attributes:
        scanner: who finds queries and judged documents in the text: the compiled scanner, the one
            of numpy, or plain Python, which all others are held to.
        bzip2: who decompresses bzip2.
        gzip: who decompresses gzip.
        threads: how many a decompressor may use, >= 1.
    """

    scanner: Scanner = "numpy"
    bzip2: Bzip2 = "stdlib"
    gzip: Gzip = "stdlib"
    threads: int = 1


def has_compiled() -> bool:
    """Whether the compiled scanner was built, loads, and is the one that this version wants."""
    try:
        built = import_module("heldout.trec.scanning._scan")
    except ImportError:
        return False
    return bool(built.INTERFACE == INTERFACE)


def switched_off(environ: Mapping[str, str]) -> frozenset[str]:
    """The names in `HELDOUT_WITHOUT`, known or not."""
    names = (name.strip() for name in environ.get(_WITHOUT, "").split(","))
    return frozenset(name for name in names if name)


def find_own() -> Accelerators:
    """The fastest that needs no other program and no environment: what a library may use."""
    return find_accelerators({_WITHOUT: "lbzip2"})


def find_accelerators(environ: Mapping[str, str]) -> Accelerators:
    """The fastest that this machine has.

    Args:
        environ: `HELDOUT_WITHOUT` names what must not be used, as in `lbzip2,compiled`; `PATH` is
            searched for lbzip2.
    """
    without = switched_off(environ)
    found = Accelerators(threads=count_cores())
    if "compiled" not in without and has_compiled():
        found = replace(found, scanner="compiled")
    if "lbzip2" not in without and shutil.which("lbzip2", path=environ.get("PATH")):
        found = replace(found, bzip2="lbzip2")
    if "isal" not in without and find_spec("isal"):
        found = replace(found, gzip="isal")
    return found
