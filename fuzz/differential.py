"""Every scanner must say the same of the same file: plain Python, numpy, compiled.

    python fuzz/differential.py --seed 1 --runs 100000

draws bytes at random; guided.py is led by coverage. Problems, counts, facts, rankings and
signatures are compared; an exception is a finding as well, since no file may cause one.
"""

import argparse
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
from structured import Case, make_case

from heldout.trec import runs as gathering
from heldout.trec.reading import sources as archives
from heldout.trec.reading.streams import Limits
from heldout.trec.runs import scan_run
from heldout.trec.scanning import scanners as numeric
from heldout.trec.scanning.scanners import Scanner
from heldout.trec.scans import Scan

__all__ = ["check", "run_seeded"]

OTHERS: tuple[Scanner, ...] = ("compiled",) if find_spec("heldout.trec.scanning._scan") else ()

ENDS_READING = {"no-scores", "nul-byte"}
"""After these, and at limits, counts go only as far as the file was read."""


@contextmanager
def small_buffers(case: Case) -> Iterator[None]:
    """Blocks, windows and memory of a few bytes, so that small files cross their ends."""
    with_defaults = gathering.Gathered.__init__
    before = archives.PIECE, numeric._WINDOW, with_defaults.__defaults__
    archives.PIECE, numeric._WINDOW = case.piece, case.window
    with_defaults.__defaults__ = (case.in_memory,)
    try:
        yield
    finally:
        archives.PIECE, numeric._WINDOW, with_defaults.__defaults__ = before


def scan(case: Case, scanner: Scanner) -> Scan:
    return scan_run(
        io.BytesIO(case.run),
        path="run",
        order=case.order,
        qrels=case.qrels,
        expected=case.expected,
        limits=case.limits,
        scanner=scanner,
        signature_depth=case.depth,
    )


def differences(one: Scan, other: Scan) -> list[str]:
    """What two scans say differently."""
    fields = ["path", "digest", "form", "order", "problems", "counts", "facts"]
    found = [name for name in fields if getattr(one, name) != getattr(other, name)]
    if (one.answers is None) != (other.answers is None):
        return [*found, "answers"]
    if one.answers is None or other.answers is None:
        return found
    if one.rankings.queries != other.rankings.queries:
        return [*found, "queries"]
    arrays = ["starts", "positions", "grades", "retrieved"]
    mine, theirs = one.rankings, other.rankings
    found += [a for a in arrays if not np.array_equal(getattr(mine, a), getattr(theirs, a))]
    if one.signature.queries != other.signature.queries or not np.array_equal(
        one.signature.documents, other.signature.documents
    ):
        found.append("signature")
    return found


def check(data: bytes) -> None:
    """Scan with all and compare.

    Raises:
        AssertionError: two scanners differ.
    """
    case = make_case(data)
    with small_buffers(case):
        plain = scan(case, "numpy")
        for name in OTHERS:
            other = scan(case, name)
            if found := differences(plain, other):
                raise AssertionError(f"{name} differs in {found}: {tell(case, plain, other)}")
    if case.limits == Limits() and not ENDS_READING & plain.counts.keys():
        check_uncut(case, plain)


def check_uncut(case: Case, plain: Scan) -> None:
    """The same comes out of one piece, unless the first piece was too short to tell the form."""
    whole = replace(case, piece=len(case.run) + 1)
    with small_buffers(whole):
        other = scan(whole, "numpy")
    if found := differences(plain, other) if plain.form == other.form else []:
        raise AssertionError(f"cut into pieces it differs in {found}: {tell(case, plain, other)}")


def tell(case: Case, plain: Scan, other: Scan) -> str:
    """The case and both verdicts, for people."""
    return "\n".join(
        [
            f"{case}",
            *(f"{scan.counts} {scan.facts} {scan.problems}" for scan in (plain, other)),
        ]
    )


def run_seeded(seed: int, runs: int) -> None:
    """Check random bytes; those that fail are shown."""
    rng = np.random.default_rng(seed)
    for number in range(runs):
        data = rng.bytes(int(rng.integers(20, 400)))
        try:
            check(data)
        except Exception:
            print(f"seed {seed}, run {number}: {data.hex()}", file=sys.stderr)
            raise
    print(f"{runs} runs, seed {seed}: no difference between plain and {', '.join(OTHERS)}")


def main() -> None:
    """Random runs until one is told differently."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--runs", type=int, default=10_000)
    asked = parser.parse_args()
    run_seeded(asked.seed, asked.runs)


if __name__ == "__main__":
    main()
