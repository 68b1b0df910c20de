"""Which scanner there is for which name."""

from heldout.trec import accelerators
from heldout.trec.ranking import Order
from heldout.trec.scanning.numeric import NumpyScanner
from heldout.trec.scanning.plain import PlainScanner
from heldout.trec.scanning.segments import Grades, Scanner

__all__ = ["make_scanner"]


def make_scanner(
    name: accelerators.Scanner, grades: Grades, *, columns: int, order: Order, depth: int
) -> Scanner:
    """A scanner for one run.

    Args:
        name: who scans.
        grades: the judgments to look for.
        columns: 3 or 6.
        order: how documents are ordered; by rank if there are 3 columns.
        depth: hashes kept of each query's first documents.

    Raises:
        ModuleNotFoundError: the compiled scanner was asked for and not built.
    """
    if name == "compiled":
        from heldout.trec.scanning.compiled import CompiledScanner  # noqa: PLC0415  it may be missing

        return CompiledScanner(grades, columns=columns, order=order, depth=depth)
    if name == "numpy":
        return NumpyScanner(grades, columns=columns, order=order, depth=depth)
    return PlainScanner(columns=columns)
