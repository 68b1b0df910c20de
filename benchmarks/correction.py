"""A board after new labels: one process against parts that are scored at once.

    python benchmarks/correction.py 400
    python benchmarks/correction.py 400 --parts 1 2 4 --keep /tmp/boards

Makes a board (`growth_board.py`), repairs a label, and corrects every published entry: by one call,
then on copies by parts (`--shard`) that run at once, and a last call. Each process has one core.
Prints seconds of processor and of the clock; on a machine that does other things only the first
mean something. The scores in the vault must be the same to the byte.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from process import Ran, run_process

__all__ = ["main"]

_HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the board, correct it in several ways, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("entries", type=int)
    parser.add_argument("--parts", type=int, nargs="+", default=[1, 2], help="at once")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=100, help="documents for each query")
    parser.add_argument("--keep", type=Path, help="keep the board in this folder, or take it")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="heldout-correction-") as scratch:
        root = (options.keep or Path(scratch)) / f"{options.entries}"
        if not (root / "clone").exists():
            numbers = (options.entries, 5 * options.entries, options.queries, options.depth)
            builder = [sys.executable, str(_HERE / "growth_board.py"), str(root)]
            subprocess.run([*builder, *map(str, numbers)], check=True)
        ids = _list_published(root)
        print(f"{len(ids):,} entries; {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}\n")
        print("| parts | processor, each part | clock of parts | last call | clock of it | same |")
        print("| --: | --: | --: | --: | --: | --- |")
        expected = ""
        for parts in (0, *options.parts):
            copy = Path(shutil.copytree(root, Path(scratch) / "copy", symlinks=True))
            _repair(copy)
            done = _score(copy, ids, parts)
            last = _correct(copy, ids, core=0)
            found = _digest(copy / "vault/scores")
            expected = expected or found
            print(
                f"| {parts or 'none'} | {', '.join(f'{one.cpu:.1f}' for one in done)} | "
                f"{max((one.seconds for one in done), default=0):.1f} | {last.cpu:.1f} | "
                f"{last.seconds:.1f} | {'yes' if found == expected else '**no**'} |"
            )
            shutil.rmtree(copy)
    return 0


def _score(root: Path, ids: Sequence[str], parts: int) -> list[Ran]:
    """All parts at once, each on a core of its own as far as there are some."""
    cores = sorted(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max(1, parts)) as threads:
        started = [
            threads.submit(
                _correct, root, ids, "--shard", f"{n + 1}/{parts}", core=cores[n % len(cores)]
            )
            for n in range(parts)
        ]
        return [one.result() for one in started]


def _correct(root: Path, ids: Sequence[str], *more: str, core: int) -> Ran:
    now = json.loads((root / "plan.json").read_text())["now"]
    place = ["--board", str(root / "board"), "--vault", str(root / "vault"), "--now", now]
    command = ["taskset", "-c", str(core), sys.executable, "-m", "heldout", "correct", *ids, *more]
    ran = run_process(
        [*command, "--why", "measured", *place], environ=os.environ, keep=False, watch=False
    )
    if ran.status:
        raise RuntimeError(ran.errors)
    return ran


def _list_published(root: Path) -> list[str]:
    """The ids of all published entries."""
    lines = (root / "vault/events.jsonl").read_text().splitlines()
    events = (json.loads(line)["event"] for line in lines)
    kinds = ("published", "baseline")
    return list(dict.fromkeys(e["submission"] for e in events if e["kind"] in kinds))


def _repair(root: Path) -> None:
    """Make another document relevant for the first query."""
    labels = next((root / "vault/labels").glob("*.qrels"))
    first, rest = labels.read_text().split("\n", 1)
    query, zero, _, grade = first.split()
    labels.write_text(f"{query} {zero} D1 {grade}\n{rest}")


def _digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
