"""How long runs take whose ids collide in the scanner's hash, beside runs whose ids do not.

    python fuzz/collisions.py

Both have the same bytes but for the ids. The colliding ones are made by collide.py.
"""

import io
import time
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from collide import colliding_ids

from heldout.trec.runs import scan_run
from heldout.trec.scanning.scanners import Scanner
from heldout.trec.scans import Scan

__all__ = ["format_queries", "usual_ids"]

_REPEATS = 3


def usual_ids(count: int) -> list[bytes]:
    """Different ids of 32 characters that do not collide."""
    return [blake2b(b"%d" % n, digest_size=16).hexdigest().encode() for n in range(count)]


def format_queries(documents: Sequence[bytes], *, queries: int) -> bytes:
    """A run in TREC form, the same documents in each query, scores falling."""
    count = len(documents)
    rows = [b" Q0 %b %d %d t\n" % (d, row + 1, count - row) for row, d in enumerate(documents)]
    return b"".join(b"q%d%b" % (query, row) for query in range(queries) for row in rows)


def _scan(run: bytes, judged: bytes, scanner: Scanner) -> tuple[Scan, float]:
    took = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        found = scan_run(
            io.BytesIO(run),
            path="run",
            order="trec",
            qrels={"q0": {judged.decode(): 1}},
            scanner=scanner,
        )
        took.append(time.perf_counter() - begun)
    return found, min(took)


def main() -> None:
    """Print a table: documents of a query, queries, seconds."""
    colliding = colliding_ids(100_000, rng=np.random.default_rng(1))
    usual = usual_ids(100_000)
    print("documents queries  scanner   usual s  colliding s")
    for count, queries in ((100_000, 1), (280, 357), (1000, 100)):
        for scanner in ("compiled", "numpy"):
            took = []
            for ids in (usual, colliding):
                run = format_queries(ids[:count], queries=queries)
                found, seconds = _scan(run, ids[count - 1], scanner)
                if found.rankings["q0"].positions.tolist() != [count]:
                    raise SystemExit("wrong result")
                took.append(seconds)
            print(f"{count:9} {queries:7}  {scanner:8} {took[0]:8.3f} {took[1]:12.3f}")


if __name__ == "__main__":
    main()
