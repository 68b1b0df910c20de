#!/usr/bin/env python3
"""Prints the tables of docs/results/real-runs.md: 188 real runs, published by the whole pipeline.

Example: python tools/real_runs.py --data ../shared/data --keep /tmp/boards

The code is that of the integration test, tests/real.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "real"))

from journey import play_all
from outcome import compare
from tables import differences_table, find_all_quirks, play_colliding, quirks_table, scores_table


def main() -> None:
    """Play the boards, print the tables; what took how long goes to standard error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the real data")
    parser.add_argument("--keep", type=Path, help="leave the boards in this new folder")
    given = parser.parse_args()
    data = given.data.absolute()
    if given.keep is not None:
        given.keep.mkdir(parents=True)
        print_tables(data, given.keep.absolute())
        return
    with tempfile.TemporaryDirectory() as folder:
        print_tables(data, Path(folder))


def print_tables(data: Path, folder: Path) -> None:
    """Publish, compare, print."""
    start = perf_counter()
    played = play_all(data, folder)
    tell({"the journey of all runs": perf_counter() - start})
    boards = [board for board, _ in played.values()]
    for name, (_, seconds) in played.items():
        tell({f"{name}: {part}": spent for part, spent in seconds.items()})
    quirks = find_all_quirks(data)
    colliding = play_colliding(data, folder / "float64", quirks)
    single = [figure for board in boards for figure in compare(board)]
    double = [figure for board in colliding for figure in compare(board)]
    tables = [scores_table(boards), quirks_table(quirks), differences_table(single, double)]
    sys.stdout.write("\n".join(tables))


def tell(seconds: Mapping[str, float]) -> None:
    """Times, on standard error: they differ from machine to machine."""
    for part, spent in seconds.items():
        sys.stderr.write(f"{spent:7.1f} s  {part}\n")


if __name__ == "__main__":
    main()
