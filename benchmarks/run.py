"""Reading and scoring runs: the floor, ourselves and every installed peer, side by side.

    python benchmarks/run.py --prepare DIR     an environment with the peers, once
    python benchmarks/run.py DIR               all measurements: about an hour
    python benchmarks/run.py DIR --only dev.tsv.bz2 --only warm
    python benchmarks/run.py --quick           shows that it runs; no measurement

Every contender is a whole process. What it finds is checked before it is timed. Results go to
DIR/results.json and DIR/results.md; tables that are not measured again stay as they were.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from contenders import INPUTS, contend, contend_many
from measure import measure
from prepare import prepare, prepared_python
from report import format_report, format_tables
from results import AGREES, Results, Row, Table, read_results, write_results
from targets import MANY, WARM
from workplace import HERE, Workplace, child_environment, find_workplace, machine_facts

_QUICK = ("dev.tsv.bz2", "dev.trec", "dev.ties.trec", "dev.interleaved.trec", WARM)
_QUERIES, _DEPTH = 6980, 1000


def main() -> int:
    """Measure; 1 if ourselves failed anywhere or found other scores."""
    given = _parse()
    if given.prepare:
        given.prepare.mkdir(parents=True, exist_ok=True)
        prepare(given.prepare.resolve())
        return 0
    if given.quick:
        with tempfile.TemporaryDirectory() as folder:
            return _quick(Path(folder))
    folder = given.folder.resolve()
    python = given.python or prepared_python(folder)
    built = folder / "trec_eval"
    trec_eval = given.trec_eval or (built if built.exists() else None)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        workplace = find_workplace(
            python,
            trec_eval=trec_eval,
            msmarco=given.msmarco_script,
            data=folder / f"data-{given.queries}-{given.depth}-{given.seed}",
            scratch=Path(scratch),
        )
        _generate(workplace, given.queries, given.depth, given.seed)
        names = given.only or [*(each.file for each in INPUTS), WARM, MANY]
        results = _measure_all(workplace, names, given, folder / "results.json")
    return _status(results)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", type=Path, nargs="?", metavar="DIR")
    what.add_argument("--prepare", type=Path, metavar="DIR")
    what.add_argument("--quick", action="store_true")
    parser.add_argument("--python", type=Path, help="instead of the prepared one")
    parser.add_argument("--trec-eval", type=Path, help="the official program")
    parser.add_argument("--msmarco-script", type=Path, help="the official ms_marco_eval.py")
    parser.add_argument(
        "--only", action="append", metavar="TABLE", help="by name, or warm, 143 runs"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="CONTENDER")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--queries", type=int, default=_QUERIES)
    parser.add_argument("--depth", type=int, default=_DEPTH)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _quick(folder: Path) -> int:
    """A small run of it all, with what this Python has."""
    workplace = find_workplace(
        Path(sys.executable), trec_eval=None, msmarco=None, data=folder / "data", scratch=folder
    )
    _generate(workplace, 50, 100, 0)
    options = argparse.Namespace(repeats=1, skip=[])
    results = _measure_all(workplace, _QUICK, options, folder / "results.json")
    print(format_tables(results))
    return _status(results)


def _generate(workplace: Workplace, queries: int, depth: int, seed: int) -> None:
    """In a process of its own: this one stays small, see process.py."""
    if (workplace.data / "expected.json").exists():
        return
    _tell(f"generating {queries:,} queries x {depth:,}")
    size = ["--queries", str(queries), "--depth", str(depth), "--seed", str(seed)]
    script = str(HERE / "generate.py")
    command = [str(workplace.python), script, str(workplace.data), *size]
    subprocess.run(command, check=True, env=child_environment())


def _measure_all(
    workplace: Workplace,
    names: "list[str] | tuple[str, ...]",
    given: argparse.Namespace,
    path: Path,
) -> Results:
    expected = json.loads((workplace.data / "expected.json").read_bytes())
    size = f"{expected['queries']:,} x {expected['depth']:,}, seed {expected['seed']}"
    results = read_results(path)
    if results.facts.get("queries x hits") != size:  # of another size: not to be mixed
        results = Results(facts={}, tables={})
    for name in names:
        _tell(name)
        table = _measure_one(name, workplace, expected["scores"], given)
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        facts = {
            **machine_facts(workplace),
            "queries x hits": size,
            "repeats": str(given.repeats),
            "least peak that can be seen": f"{own:.0f} MiB",
        }
        results = replace(results, facts=facts, tables={**results.tables, name: table})
        write_results(results, path)
        path.with_suffix(".md").write_text(format_report(results), "utf-8")
    return results


def _measure_one(
    name: str,
    workplace: Workplace,
    expected: dict[str, dict[str, float]],
    given: argparse.Namespace,
) -> Table:
    if name == WARM:
        return _measure_warm(workplace, given.repeats)
    if name == MANY:
        data = Path(os.environ.get("HELDOUT_DATA", HERE.parent.parent / "shared" / "data"))
        contenders, right = contend_many(workplace, data), None
        title = "the runs of TREC-COVID, round 1, at depth 100, in one call"
    else:
        chosen = next(each for each in INPUTS if each.file == name)
        contenders, right = contend(chosen, workplace), expected[chosen.expected]
        title = chosen.title
    return measure(
        title,
        [each for each in contenders if each.name not in given.skip],
        expected=right,
        repeats=given.repeats,
        tell=_tell,
    )


def _measure_warm(workplace: Workplace, repeats: int) -> Table:
    before = os.getloadavg()[0]
    script = str(HERE / "warm.py")
    command = [str(workplace.python), script, str(workplace.data), str(repeats)]
    ran = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        env=child_environment(),
    )
    rows = [Row(**{**row, "seconds": tuple(row["seconds"])}) for row in json.loads(ran.stdout)]
    return Table(
        title="in a process that has started, the judgments read",
        load=(before, os.getloadavg()[0]),
        rows=tuple(rows),
    )


def _status(results: Results) -> int:
    wrong = [
        f"{name}: {row.name} {row.verdict}"
        for name, table in results.tables.items()
        for row in table.rows
        if row.role == "heldout" and not row.missing and row.verdict != AGREES
    ]
    for line in wrong:
        _tell(line)
    return 1 if wrong else 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
