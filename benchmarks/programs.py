"""Programs in containers: what each hostile one gets, and what asking real queries costs.

    python benchmarks/programs.py                       # podman and docker; 6,980 dev queries
    python benchmarks/programs.py --queries 200         # the first ones
    python benchmarks/programs.py --engines podman

Needs podman (with runc or crun), docker (with dockerd), busybox linked statically, and root; an
engine that is not installed is left out. The queries are those of MS MARCO, of the shared data
(HELDOUT_DATA). Prints the tables of docs/results/programs.md. Each hostile program is submitted to
a board and run by `heldout run`, reviewed where it wrote anything, and rejected. Seconds are
wall-clock time and depend on what else the machine does; processor time is that of heldout alone,
without engine and container.
"""

import argparse
import gzip
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "scenario"))

from containers_here import (  # noqa: E402 - found by the line above
    Here,
    docker_here,
    podman_here,
    why_no_docker,
    why_no_podman,
)
from lab import DAY, NEXT, Lab, found_lab  # noqa: E402 - the same
from test_code_submissions import RULES, run, send  # noqa: E402 - the same

from heldout.board.log.manifest import Program  # noqa: E402 - the same
from heldout.board.organiser.containers import find_engine  # noqa: E402 - the same
from heldout.board.organiser.running import Ran, RunPlan, run_plan  # noqa: E402 - the same
from heldout.board.rules.spec import Programs  # noqa: E402 - the same
from heldout.board.store.vault import Vault  # noqa: E402 - the same

ENGINES = {"podman": (podman_here, why_no_podman), "docker": (docker_here, why_no_docker)}
ABSENT = "is an image that is not there"
OTHER = "is an image that is there with another digest"
HOSTILE: Mapping[str, str] = {
    ABSENT: "true",
    OTHER: "true",
    "is a command that is not there": "exec /bin/nothing",
    "asks the network": "wget -T 1 -O - http://192.0.2.1/; exit 1",
    "makes a namespace to be root in": "unshare -U -r /bin/true || exit 1",
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
    "writes a broken run": "for s in dev eval; do echo no run > /output/$s.run; done",
    "ends with exit code 7": "exit 7",
}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--queries", type=int, default=6980, help="Number of queries.")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=[*ENGINES])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heldout-programs-") as folder:
        here = {}
        for name in given.engines:
            engine, why_not = ENGINES[name]
            if why := why_not():
                print(f"{name} is left out: {why}", file=sys.stderr)
            else:
                here[name] = engine()
        print_hostile(here, Path(folder))
        for name, one in here.items():
            print_costs(name, one, Path(folder), read_queries(given.queries))


def read_queries(count: int) -> Mapping[str, str]:
    """The first dev queries of MS MARCO."""
    data = Path(os.environ.get("HELDOUT_DATA", ROOT.parent / "shared" / "data"))
    file = data / "qrels" / "queries.msmarco-passage.dev-subset.tsv.gz"
    with gzip.open(file, "rt", encoding="utf-8") as source:
        rows = [line.rstrip("\n").partition("\t") for line in source]
    return {query: text for query, _, text in rows[:count]}


def print_hostile(engines: Mapping[str, Here], folder: Path) -> None:
    """What each hostile program gets, how long that takes, and what is left of it."""
    labs = {name: found_board(folder / name) for name in engines}
    heads = [f"{name} | seconds | left" for name in engines]
    print(f"| the program … | {' | '.join(heads)} |")
    print(f"| --- |{' --- | --- | --- |' * len(engines)}")
    for number, (what, script) in enumerate(HOSTILE.items()):
        cells = [
            play_hostile(labs[name], here, f"p{number}", what, script)
            for name, here in engines.items()
        ]
        print(f"| {what} | {' | '.join(cells)} |", flush=True)
    print("\nleft: containers, files beside the vault's own, submissions of the quota used.\n")


def found_board(folder: Path) -> Lab:
    """A board that takes programs, within small limits."""
    lab = found_lab(folder)
    rules = lab.board / "board.toml"
    rules.write_text(rules.read_text() + RULES)
    lab.organiser("rebuild", now=DAY)
    lab.push()
    lab.pull()
    return lab


def play_hostile(lab: Lab, here: Here, name: str, what: str, script: str) -> str:
    """Submit a program, run it, reject it: its answer, seconds, and what is left."""
    image = here.image.replace("demo@", "absent@") if what == ABSENT else here.image
    image = f"{image[:-8]}00000000" if what in (ABSENT, OTHER) else image
    submission = send(lab, image, name=name, command=["/bin/sh", "-c", script], now=NEXT)
    before = list_files(lab)
    began = time.monotonic()
    answer = run(lab, here, submission)
    seconds = time.monotonic() - began
    if answer.code:
        code = f"`{answer.err.split()[1]}`"
    else:
        review = lab.organiser("review", submission, now=NEXT)
        found = re.search(r"reject +([\w-]+): ", review.out)
        code = f"`{found[1]}`, by the review" if found else "a run"
    lab.organiser("reject", submission, "--why", "it was a test", now=NEXT)
    left = [len(here.containers()), len(list_files(lab) - before), count_used(lab, name)]
    return f"{code} | {seconds:.1f} | {', '.join(map(str, left))}"


def list_files(lab: Lab) -> set[Path]:
    """What programs are run with, and what teams sent and programs wrote."""
    folders = (lab.vault / "running", lab.vault / "sealed")
    return {path for folder in folders for path in folder.rglob("*") if path.name != "lock"}


def count_used(lab: Lab, name: str) -> int:
    """Submissions of the team's quota that are used."""
    lab.push()
    lab.pull()
    checked = lab.participant("check", lab.draft(f"after-{name}", now=NEXT), now=NEXT)
    found = re.search(r"(\d+) of \d+ used", checked.out)
    if found is None:
        raise SystemExit(checked.out)
    return int(found[1])


def print_costs(name: str, here: Here, folder: Path, queries: Mapping[str, str]) -> None:
    """What reading files costs for real queries, ten documents each."""
    print(
        f"| {name} | queries | seconds | ms per query | heldout's processor time, s | run, bytes |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    lines = "; ".join(f"echo $q Q0 d{n} {n + 1} {10 - n} x" for n in range(10))
    script = f"while read q t; do {lines}; done < /queries/dev.tsv > /output/dev.run"
    before = resource.getrusage(resource.RUSAGE_SELF)
    ran = play(here, folder, script, queries)
    after = resource.getrusage(resource.RUSAGE_SELF)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    costs = ran.costs
    print(
        f"| files | {len(queries):,} | {costs.seconds:.1f} | {costs.query_latency_ms:.2f} | "
        f"{own:.1f} | {len(ran.runs['dev']):,} |"
    )


def play(
    here: Here,
    folder: Path,
    script: str,
    queries: Mapping[str, str],
) -> Ran:
    """Run the words of a shell as a program within 48 MiB, one processor and 24 processes."""
    plan = RunPlan(
        id="20261102-one",
        program=Program(image=here.image, command=("/bin/sh", "-c", script)),
        files={},
        programs=Programs(memory=48, disk=4, processors=1, processes=24, minutes=30),
        queries={"dev": queries},
        candidates={},
        depth=10,
        vault=Vault(folder / "vault"),
    )
    return run_plan(plan, find_engine(here.words, here.flags, dict(os.environ)))


if __name__ == "__main__":
    main()
