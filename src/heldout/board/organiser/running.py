"""Runs the program of a submission on the board's queries; what it writes becomes its runs.

In three steps, so that neither board nor vault is locked for the hours that a program may take:
what is to be run is read in a session, the program runs, and what came of it is logged in another
one. From there on the runs are handled as those of any submission. Whatever goes wrong raises,
nothing is logged then, and what the container wrote is deleted.
"""

import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module

import msgspec

from heldout.board.log import events, manifest
from heldout.board.log.submission import Submission
from heldout.board.organiser import containers
from heldout.board.rules.spec import Programs
from heldout.board.scores import score, sets
from heldout.board.scores.session import Session
from heldout.board.store.vault import Vault
from heldout.envelope.keys import RUN_LIMIT
from heldout.errors import InputError
from heldout.files.durable import Folder
from heldout.files.process import count_cores
from heldout.ids import digest_bytes

FOLDER = "running"
"""Where in the vault a program's queries and runs lie while it runs."""

_JOULES = 3_600_000
_MINUTE = 60.0
_DIGITS = 2

Meter = Callable[[], AbstractContextManager[Callable[[], float | None]]]
"""Measures the energy of the machine: its context gives what to ask at the end, in kWh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """What is to be run.

    Attributes:
        id: the submission.
        program: as its sealed metadata have it.
        files: the digests that it had when the plan was made.
        programs: what a program may use.
        queries: query set -> query id -> text.
        candidates: query set -> file of the official documents for re-ranking, where it has one.
        depth: most documents of a query.
        vault: where it runs, and where the runs will lie.
    """

    id: str
    program: manifest.Program
    files: Mapping[str, str]
    programs: Programs
    queries: Mapping[str, Mapping[str, str]]
    candidates: Mapping[str, bytes]
    depth: int
    vault: Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of it.

    Attributes:
        runs: query set -> the run, as written.
        costs: as measured.
        engine: what ran it, with the options of this machine.
    """

    runs: Mapping[str, bytes]
    costs: manifest.Costs
    engine: str


def plan_run(session: Session, submission_id: str) -> RunPlan | None:
    """Return what is to be run for a submission.

    Args:
        session: its lock is held, or it only reads.
        submission_id: of one that waits for a decision.

    Returns:
        `None` where its program was run before.

    Raises:
        InputError: it is no program, or decided; code `no-program`, `already-decided`.
        TrustError: it does not open.
    """
    submission = session.find(submission_id)
    spec = session.spec_at(submission.received)
    program = score.open_manifest(session.vault, spec, submission)[1].program
    if program is None or spec.programs is None:
        found = "run files" if program is None else "a program, on a board that takes none"
        raise InputError.of("no-program", submission_id, found, submission_id=submission_id)
    if submission.runs.keys() == spec.sets.keys():
        return None
    _check_waits(submission)
    files = session.repository.files
    return RunPlan(
        id=submission.id,
        program=program,
        files=dict(submission.files),
        programs=spec.programs,
        queries={
            name: sets.load_queries(session.repository, one, vault=session.vault).texts
            for name, one in spec.sets.items()
        },
        candidates={
            name: files.read(one.candidates) for name, one in spec.sets.items() if one.candidates
        },
        depth=spec.runs.depth,
        vault=session.vault,
    )


def run_plan(plan: RunPlan, engine: containers.Engine, *, meter: Meter | None = None) -> Ran:
    """Run a program; nothing is logged.

    One program at a time runs for a vault. Containers that killed calls left are removed first.

    Args:
        plan: what to run.
        engine: with what.
        meter: measures energy, where that can be done.

    Raises:
        InputError: the engine cannot do it (`container-engine`, `container-limits`), the image is
            not that of the plan (`image-missing`, `image-digest`, `image-volume`), or the program
            fails (`program-failed`, `-memory`, `-time`, `-output`); `vault-full`: its
            runs could fill the disk.
        StoreError: another program runs for this vault.
    """
    label = digest_bytes(str(plan.vault.root.resolve()).encode())[:32]
    with plan.vault.files.lock(f"{FOLDER}/lock"):
        plan.vault.check_room(len(plan.queries) * RUN_LIMIT)
        containers.check_limits(engine)
        containers.remove_leftovers(engine, label)
        image = containers.find_image(engine, plan.program)
        with _folder(plan) as folder, (meter or (lambda: nullcontext(lambda: None)))() as spent:
            seccomp = containers.write_filter(engine, folder.path("seccomp.json"))
            job = replace(_make_job(plan, image, folder, label), seccomp=seccomp)
            with containers.started(engine, job) as running:
                running.wait()
                seconds, usage = running.seconds, running.usage
            energy = spent()
            runs = {name: _read_run(folder, name) for name in plan.queries}
    costs = manifest.Costs(
        seconds=round_cost(seconds),
        query_latency_ms=round_cost(1000 * seconds / max(sum(map(len, plan.queries.values())), 1)),
        processor_seconds=_round_known(usage.processor_seconds),
        memory_mib=_round_known(usage.memory_mib),
        energy_kwh=_round_known(energy),
        machine=say_machine(),
    )
    return Ran(runs=runs, costs=costs, engine=str(engine))


def record_run(session: Session, plan: RunPlan, ran: Ran) -> events.Entry:
    """Store the runs and log them, with what was run and what it cost.

    Args:
        session: its lock is held.
        plan: what was run.
        ran: what came of it.

    Raises:
        InputError: the submission was decided or changed meanwhile; nothing is stored then.
    """
    submission = session.find(plan.id)
    _check_waits(submission)
    spec = session.spec_at(submission.received)
    if score.open_manifest(session.vault, spec, submission)[1].program != plan.program:
        found = "other sealed files than those whose program was run"
        expected = "the same submission as before"
        raise InputError.of("already-decided", plan.id, found, expected, "call it again")
    session.vault.check_room(sum(map(len, ran.runs.values())))
    sealed = {
        "program": msgspec.to_builtins(plan.program),
        "runs": {name: str(session.vault.store_sealed(run)) for name, run in ran.runs.items()},
        "costs": msgspec.to_builtins(ran.costs),
        "engine": ran.engine,
    }
    return session.log("ran", plan.id, sealed=sealed)


def round_cost(number: float) -> float:
    """Two significant digits: costs are published, and a program could write into further ones."""
    return float(f"{number:.{_DIGITS}g}")


def _round_known(number: float | None) -> float | None:
    return None if number is None else round_cost(number)


def find_meter() -> Meter | None:
    """TIREx tracker, where it is installed; whether the machine has counters shows at the end."""
    try:
        tracker = import_module("tirex_tracker")
    except ImportError:
        return None

    @contextmanager
    def measured() -> Iterator[Callable[[], float | None]]:
        parts = ("CPU", "RAM", "GPU")
        wanted = [getattr(tracker.Measure, f"{part}_ENERGY_SYSTEM_JOULES") for part in parts]
        ended: list[float | None] = []
        with tracker.tracking(wanted) as results:
            yield lambda: ended[0] if ended else None
        ended.append(read_energy([results[one].value for one in wanted if one in results]))

    return measured


def read_energy(values: list[object]) -> float | None:
    """Joules as TIREx tracker has them, summed, in kWh; `None` where it measured none."""
    joules = []
    for value in values:
        text = value.decode() if isinstance(value, bytes) else str(value)
        try:
            joules.append(float(text))
        except ValueError:  # null: no counter of this part
            continue
    return sum(joules) / _JOULES if joules and sum(joules) > 0 else None


def say_machine() -> str:
    """Return what the costs are measured on, in a few words."""
    return f"{platform.machine()}, {count_cores()} processors, {platform.system()}"


def _check_waits(submission: Submission) -> None:
    if not submission.pending:
        found = f"a submission that is {submission.status}"
        expected = "one that waits for a decision"
        raise InputError.of("already-decided", submission.id, found, expected)


@contextmanager
def _folder(plan: RunPlan) -> Iterator[Folder]:
    """The folder with what a container reads and writes; empty before, removed afterwards."""
    files = plan.vault.files
    folder = files.below(f"{FOLDER}/files")
    files.delete_tree(f"{FOLDER}/files")
    try:
        folder.make_folder("queries", mode=0o755)
        folder.make_folder("output", mode=0o755)
        for name, texts in plan.queries.items():
            lines = (f"{query}\t{' '.join(text.split())}\n" for query, text in texts.items())
            folder.write_whole(f"queries/{name}.tsv", "".join(lines).encode())
            with folder.create(f"output/{name}.run") as file:
                os.fchmod(file.fileno(), 0o666)  # the program is another user
        for name, data in plan.candidates.items():
            folder.write_whole(f"queries/{name}.candidates", data)
        yield folder
    finally:
        files.delete_tree(f"{FOLDER}/files")


def _make_job(plan: RunPlan, image: containers.Image, folder: Folder, label: str) -> containers.Job:
    programs = plan.programs
    mounts = [containers.Mount(source=folder.path(n).resolve(), target=f"/{n}") for n in _MOUNTED]
    mounts += [
        containers.Mount(
            source=folder.path(f"output/{name}.run").resolve(),
            target=f"/output/{name}.run",
            writable=True,
        )
        for name in plan.queries
    ]
    return containers.Job(
        image=image,
        command=plan.program.command,
        mounts=mounts,
        limits=containers.ContainerLimits(
            memory=programs.memory,
            disk=programs.disk,
            processors=programs.processors,
            processes=programs.processes,
            seconds=_MINUTE * programs.minutes,
            file_bytes=RUN_LIMIT,
        ),
        label=label,
    )


_MOUNTED = ("queries", "output")


def _read_run(folder: Folder, name: str) -> bytes:
    """Return what a program wrote for a query set.

    Raises:
        InputError: code `program-output`: nothing, or as much as it could.
    """
    data = folder.read(f"output/{name}.run", limit=RUN_LIMIT)
    if not data or len(data) == RUN_LIMIT:
        found = "an empty file" if not data else f"{len(data):,} bytes, all that fit"
        raise InputError.of(
            "program-output", f"/output/{name}.run", found, name=name, most=RUN_LIMIT
        )
    return data
