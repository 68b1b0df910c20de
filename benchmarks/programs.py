"""Programs in containers: what each hostile one gets, and what asking real queries costs.

    python benchmarks/programs.py                       # podman, the 6,980 dev queries of MS MARCO
    python benchmarks/programs.py --queries 200         # the first ones

Needs podman (with runc or crun), busybox linked statically, and root; the queries come from the
shared data (HELDOUT_DATA). Prints the tables of docs/results/programs.md. Seconds are wall-clock
time and depend on what else the machine does; processor time is that of heldout alone, without
engine and container.
"""

import argparse
import gzip
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "scenario"))

from containers_here import Here, podman_here  # noqa: E402 - found by the line above

from heldout.board.log.program import Program  # noqa: E402 - the same
from heldout.board.organiser.containers import find_engine  # noqa: E402 - the same
from heldout.board.organiser.running import Plan, Ran, run_plan  # noqa: E402 - the same
from heldout.board.rules.spec import Programs  # noqa: E402 - the same
from heldout.board.store.vault import Vault  # noqa: E402 - the same
from heldout.errors import InputError  # noqa: E402 - the same

HOSTILE: Mapping[str, str] = {
    "asks the network": "wget -T 1 -O - http://192.0.2.1/; exit 1",
    "fills its run": "dd if=/dev/zero of=/output/dev.run bs=1M",
    "fills /tmp": "dd if=/dev/zero of=/tmp/x bs=64k",
    "fills /dev/shm, /run and /var/tmp": "for p in /dev/shm /run /var/tmp; do "
    "dd if=/dev/zero of=$p/x bs=1M count=60; done",
    "takes 200 MB of memory": "dd if=/dev/zero of=/dev/null bs=200M count=1",
    "forks without end": "f() { f | f & }; f; sleep 1; exit 3",
    "never ends": "trap '' TERM; while true; do :; done",
    "writes without end to its standard error": "yes >&2",
    "puts a link in place of its run": "ln -sf /etc/passwd /output/dev.run; true",
    "makes 3,000 files": "i=0; while [ $i -lt 3000 ]; do touch /output/$i; i=$((i+1)); done; true",
    "writes nothing": "true",
    "ends with exit code 7": "exit 7",
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=6980, help="Number of queries.")
    given = parser.parse_args()
    here = podman_here()
    with tempfile.TemporaryDirectory(prefix="heldout-programs-") as folder:
        print_hostile(here, Path(folder))
        print_costs(here, Path(folder), read_queries(given.queries))


def read_queries(count: int) -> Mapping[str, str]:
    """The first dev queries of MS MARCO."""
    data = Path(os.environ.get("HELDOUT_DATA", ROOT.parent / "shared" / "data"))
    file = data / "qrels" / "queries.msmarco-passage.dev-subset.tsv.gz"
    with gzip.open(file, "rt", encoding="utf-8") as source:
        rows = [line.rstrip("\n").partition("\t") for line in source]
    return {query: text for query, _, text in rows[:count]}


def print_hostile(here: Here, folder: Path) -> None:
    """What each hostile program gets, and how long that takes; nothing may be left."""
    print("| the program … | answer | seconds |")
    print("| --- | --- | --- |")
    for what, script in HOSTILE.items():
        began = time.monotonic()
        try:
            play(here, folder, script, {"q1": "a"}, minutes=1)
            answer = "a run"
        except InputError as error:
            answer = f"`{error.problems[0].code}`"
        if here.containers():
            raise SystemExit(f"{what}: a container is left")
        print(f"| {what} | {answer} | {time.monotonic() - began:.1f} |")
    print()


def print_costs(here: Here, folder: Path, queries: Mapping[str, str]) -> None:
    """What reading files and answering HTTP cost for real queries, ten documents each."""
    print("| form | queries | seconds | ms per query | heldout's processor time, s | run, bytes |")
    print("| --- | --- | --- | --- | --- | --- |")
    hits = ", ".join(f'{{"id": "d{n}", "score": {10 - n}}}' for n in range(10))
    lines = "; ".join(f"echo $q Q0 d{n} {n + 1} {10 - n} x" for n in range(10))
    serve = f"mkdir -p /tmp/w/search; echo '[{hits}]' > /tmp/w/search/index.html"
    for form, script, port in (
        ("files", f"while read q t; do {lines}; done < /queries/dev.tsv > /output/dev.run", None),
        ("HTTP", f"{serve}; exec httpd -f -p 8080 -h /tmp/w", 8080),
    ):
        before = resource.getrusage(resource.RUSAGE_SELF)
        ran = play(here, folder, script, queries, minutes=30, port=port)
        after = resource.getrusage(resource.RUSAGE_SELF)
        own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        costs = ran.costs
        print(
            f"| {form} | {len(queries):,} | {costs.seconds:.1f} | {costs.query_latency_ms:.2f} | "
            f"{own:.1f} | {len(ran.runs['dev']):,} |"
        )


def play(
    here: Here,
    folder: Path,
    script: str,
    queries: Mapping[str, str],
    *,
    minutes: int,
    port: int | None = None,
) -> Ran:
    """Run the words of a shell as a program within 48 MiB, one processor and 24 processes."""
    plan = Plan(
        id="20261102-one",
        program=Program(image=here.image, command=("/bin/sh", "-c", script), port=port),
        files={},
        programs=Programs(memory=48, disk=4, processors=1, processes=24, minutes=minutes),
        queries={"dev": queries},
        candidates={},
        depth=10,
        vault=Vault(folder / "vault"),
    )
    return run_plan(plan, find_engine(here.words, here.flags, dict(os.environ)))


if __name__ == "__main__":
    main()
