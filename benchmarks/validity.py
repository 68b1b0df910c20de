"""Validity analyses: ourselves beside the loops that one would write, and beside the floor.

    python benchmarks/validity.py                       all rows: some minutes
    python benchmarks/validity.py --only "Table 4" --repeats 5
    python benchmarks/validity.py --processor           seconds of processor, on a busy machine
    python benchmarks/validity.py --quick               shows that it runs; no measurement

Everything runs in one process that has started, on scores drawn from a seed: 116 systems by 5,793
queries, RR@100 with means from .23 to .53 and a mean correlation of .67, and nDCG@10 of the same
ranks of three graded documents. A peer's loop is timed on a part of its work and scaled by the
share stated. With OPENBLAS_NUM_THREADS=1 the only threads are ours; then `--processor`, which adds
up what all threads take, tells what the work costs one core, whoever else is at work. A new row
is one more `Row` in `validity_rows.ROWS`.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from validity_rows import ROWS, Row
from validity_scores import Simulated, simulate

__all__ = ["format_measured", "measure_row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds of one row; those of peer and floor are for the whole of their work."""

    row: Row
    ours: tuple[float, ...]
    peer: float | None
    floor: float | None

    @property
    def median(self) -> float:
        """Our seconds."""
        return statistics.median(self.ours)

    @property
    def ratio(self) -> float | None:
        """Our seconds over the peer's."""
        return None if self.peer is None else self.median / self.peer

    @property
    def met(self) -> bool | None:
        """Whether every target is met; `None` where the row has none."""
        limits = [
            value <= limit
            for value, limit in (
                (self.median, self.row.at_most_seconds),
                (self.ratio, self.row.at_most_ratio),
            )
            if limit is not None and value is not None
        ]
        return all(limits) if limits else None


def main() -> int:
    """Measure the rows asked for; 1 if a target is missed at full size."""
    given = _parse()
    systems, queries = (12, 200) if given.quick else (given.systems, given.queries)
    scores = simulate(systems=systems, queries=queries, seed=given.seed)
    wanted = [row for row in ROWS if not given.only or any(o in row.what for o in given.only)]
    repeats = 1 if given.quick else given.repeats
    clock = time.process_time if given.processor else time.perf_counter
    load = os.getloadavg()[0]
    measured = []
    for row in wanted:
        _tell(row.what)
        measured.append(measure_row(row, scores, repeats=repeats, clock=clock))
    print(f"{systems} systems x {queries:,} queries; load {load:.1f} to {os.getloadavg()[0]:.1f}\n")
    print(format_measured(measured))
    return 0 if given.quick or all(each.met is not False for each in measured) else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="TEXT", help="rows that hold this text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--systems", type=int, default=116)
    parser.add_argument("--queries", type=int, default=5793)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="12 systems, 200 queries, once")
    parser.add_argument("--processor", action="store_true", help="time of the processor")
    return parser.parse_args()


def measure_row(
    row: Row, scores: Simulated, *, repeats: int, clock: Callable[[], float]
) -> Measured:
    """Time one row: ourselves once unseen (warm), then in turn with the floor, the peer once."""
    row.ours(scores)
    ours, floors = [], []
    for _ in range(repeats):
        ours.append(_seconds(row.ours, scores, clock))
        if row.floor is not None:
            floors.append(_seconds(row.floor, scores, clock))
    peer = None
    if row.peer is not None:
        start = clock()
        share = row.peer(scores)
        peer = (clock() - start) / share
    floor = statistics.median(floors) if floors else None
    return Measured(row=row, ours=tuple(ours), peer=peer, floor=floor)


def _seconds(
    call: Callable[[Simulated], object], scores: Simulated, clock: Callable[[], float]
) -> float:
    start = clock()
    call(scores)
    return clock() - start


def format_measured(measured: Sequence[Measured]) -> str:
    """A Markdown table, a line per row."""
    head = "| what | median s | least | floor s | peer s | peer | ratio | target | met |"
    rule = "| --- | ---: | ---: | ---: | ---: | --- | ---: | --- | --- |"
    return "\n".join([head, rule, *map(_line, measured)])


def _line(each: Measured) -> str:
    row = each.row
    met = {True: "yes", False: "**no**", None: ""}[each.met]
    targets = [
        f"1/{1 / row.at_most_ratio:,.0f}" if row.at_most_ratio is not None else "",
        f"{row.at_most_seconds:g} s" if row.at_most_seconds is not None else "",
    ]
    cells = [
        row.what,
        f"{each.median:.3f}",
        f"{min(each.ours):.3f}",
        "" if each.floor is None else f"{each.floor:.3f}",
        "" if each.peer is None else f"{each.peer:,.1f}",
        row.peer_name,
        "" if each.ratio is None else f"1/{1 / each.ratio:,.0f}",
        ", ".join(filter(None, targets)),
        met,
    ]
    return f"| {' | '.join(cells)} |"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
