"""All pairs of many systems: time and memory of the analyses, and of reading a table of scores.

python benchmarks/all_pairs.py 300 1000                  # systems, on as many queries
python benchmarks/all_pairs.py 300 --before COMMIT       # beside another commit, in one run
python benchmarks/all_pairs.py 1500 --queries 6000 --only csv parquet

Each row is a whole process: `heldout analyse NAME --scores TABLE --json`, piped into a digest.
The tables come from a seed: systems of different quality on queries of different difficulty, with
scores of all digits (stability, reliability) or reciprocal ranks to 20 (outcomes). The processes of
two commits take turns on one machine; their answers are compared byte for byte.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

from process import Ran, run_process

__all__ = ["main"]

_ROOT = Path(__file__).resolve().parent.parent
_ANALYSES = ("stability", "reliability", "outcomes")
_READ = "import sys; from heldout.scoring.sources import read_scores; read_scores(sys.argv[1])"
_MAKE = """
import sys, numpy as np
from heldout.scoring.table import table_of_values
from heldout.scoring.table_files import write_table
systems, queries, ranks = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "ranks"
source = np.random.default_rng(0)
ease, skill = source.normal(size=queries), 0.3 * source.normal(size=(systems, 1))
values = 1 / (1 + np.exp(-(ease + skill + source.normal(size=(systems, queries)))))
if ranks:
    values = np.where(values > 0.1, 1 / np.ceil(20 * (1 - values)), 0.0)
names = [f"system{row:05}" for row in range(systems)]
table = table_of_values(
    names, [f"q{row:05}" for row in range(queries)], values, np.ones(values.shape, np.bool_)
)
for path in sys.argv[4:]:
    write_table(table, path)
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    ask = _parse(arguments)
    with tempfile.TemporaryDirectory(dir=ask.scratch) as folder:
        sources = {"": _ROOT / "src"}
        if ask.before:
            sources = {"before": _unpack(ask.before, Path(folder) / "before")} | sources
        queries = f"{ask.queries:,}" if ask.queries else "as many as systems"
        print(f"queries: {queries}; cores: {os.cpu_count()}\n")
        head = "| systems | what | cpu s | wall s | peak MiB |"
        print(f"{head} before: cpu s | peak MiB | cpu | same |")
        print("| --: | --- | --: | --: | --: | --: | --: | --: | --- |")
        for systems in ask.systems:
            for row in _measure(systems, ask, sources, Path(folder)):
                print(row, flush=True)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("systems", type=int, nargs="+", help="how many systems")
    parser.add_argument("--queries", type=int, help="how many queries [as many as systems]")
    parser.add_argument("--only", nargs="+", choices=(*_ANALYSES, "csv", "parquet"))
    parser.add_argument("--before", help="commit to compare with")
    parser.add_argument("--scratch", type=Path, help="folder for the tables")
    return parser.parse_args(arguments)


def _unpack(commit: str, folder: Path) -> Path:
    """The sources of a commit."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", commit, "src"],
        cwd=_ROOT,
        check=True,
        capture_output=True,
    ).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / "src"


def _measure(
    systems: int, ask: argparse.Namespace, sources: dict[str, Path], folder: Path
) -> Iterator[str]:
    size = [str(systems), str(ask.queries or systems)]
    many, ranks = folder / "many.csv", folder / "ranks.csv"
    own = {**os.environ, "PYTHONPATH": str(sources[""])}
    for kind, path in (("many", many), ("ranks", ranks)):
        made = [
            sys.executable,
            "-c",
            _MAKE,
            *size,
            kind,
            str(path),
            str(path.with_suffix(".parquet")),
        ]
        subprocess.run(made, env=own, check=True)
    for what in ask.only or (*_ANALYSES, "csv", "parquet"):
        # A commit before Parquet has CSV alone; without one the larger tables need less to read
        suffix = ".csv" if "before" in sources or what == "csv" else ".parquet"
        table = (ranks if what == "outcomes" else many).with_suffix(suffix)
        command = ["-m", "heldout", "analyse", what, "--scores", str(table), "--json"]
        if what not in _ANALYSES:
            command = ["-c", _READ, str(table.with_suffix(f".{what}"))]
        before = None
        if "before" in sources and what != "parquet":
            before = _run(command, sources["before"])
        yield _row(systems, what, _run(command, sources[""]), before)


def _run(command: Sequence[str], source: Path) -> tuple[Ran, str]:
    environ = {**os.environ, "PYTHONPATH": str(source), "HELDOUT_CACHE": "off"}
    # Half a million pairs are a gigabyte of JSON: only its digest comes here
    piped = ["bash", "-c", 'set -o pipefail; "$@" | sha256sum', "-", sys.executable, *command]
    ran = run_process(piped, environ=environ, keep=True, watch=False)
    if ran.status:
        raise SystemExit(f"{' '.join(command)}: status {ran.status}\n{ran.errors}")
    return ran, ran.output


def _row(systems: int, what: str, after: tuple[Ran, str], before: tuple[Ran, str] | None) -> str:
    ran, answer = after
    cells = [f"{systems:,}", what if what in _ANALYSES else f"reading {what}"]
    cells += [f"{ran.cpu:.1f}", f"{ran.seconds:.1f}", f"{ran.peak >> 20:,}"]
    if before is None:
        cells += ["", "", "", ""]
    else:
        old, same = before[0], "yes" if before[1] == answer else "**no**"
        cells += [f"{old.cpu:.1f}", f"{old.peak >> 20:,}", f"1/{old.cpu / ran.cpu:.1f}", same]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
