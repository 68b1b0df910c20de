"""Many run files scored, in turn or side by side."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from heldout.cli.console import Console, progress
from heldout.cli.printing import print_problems
from heldout.cli.scoring import Failed, Outcome, Scored, Work, estimate_seconds, score_run
from heldout.errors import InputError, Problem
from heldout.files.cores import count_cores
from heldout.trec.qrels import Qrels

__all__ = ["print_notes", "refuse_runs", "score_all"]

_SHOWN = 3

_WORTH_A_POOL = 0.8
"""Seconds of reading from which two processes end before one: starting them takes 0.3 s."""


def score_all(paths: Sequence[str], work: Work, jobs: int | None) -> list[Outcome]:
    """An outcome for each path, in their order.

    Args:
        paths: run files.
        work: what is the same for all.
        jobs: processes side by side; `None` for up to one for each core where that pays.
    """
    lanes = min(len(paths), jobs or _count_jobs(paths, work))
    with progress("reading runs", len(paths)) as done:
        if lanes == 1:
            outcomes = list(_score_in_turn(paths, work, done))
        else:
            outcomes = _score_at_once(paths, work, lanes, done)
    if work.cache is not None:
        work.cache.prune()
    return outcomes


def refuse_runs(failed: Sequence[Failed]) -> InputError:
    """What is wrong with runs; the first few of those that all of them have in common.

    Args:
        failed: at least one run that cannot be scored.
    """
    shown, counts = _some([(run.problems, run.counts) for run in failed])
    return InputError(shown, counts=counts)


def print_notes(console: Console, scored: Sequence[Scored], qrels: Qrels) -> None:
    """What is odd about judgments and runs; what several runs have in common is said once."""
    notes, counts = _some([(run.notes, run.counts) for run in scored])
    for problems, known in ((qrels.notes, {}), (_once(scored) if scored[1:] else notes, counts)):
        if problems:
            console.print()
            print_problems(console, problems, counts=known)


def _once(scored: Sequence[Scored]) -> list[Problem]:
    """The first note of each code, and how many runs have one."""
    first: dict[str, Problem] = {}
    runs: Counter[str] = Counter()
    for run in scored:
        runs.update({note.code for note in run.notes})
        for note in run.notes:
            first.setdefault(note.code, note)
    return [
        note if runs[code] == 1 else replace(note, path=f"{runs[code]:,} runs, first {note.path}")
        for code, note in first.items()
    ]


def _some(
    found: Sequence[tuple[Sequence[Problem], Mapping[str, int]]],
) -> tuple[list[Problem], Counter[str]]:
    """Of several files' problems the first few of each sort, and how many there are of each."""
    shown: list[Problem] = []
    alike: Counter[tuple[str, str, str]] = Counter()
    counts: Counter[str] = Counter()
    for problems, known in found:
        own = Counter(problem.code for problem in problems)
        counts.update({code: known.get(code, number) for code, number in own.items()})
        for problem in problems:
            key = (problem.code, problem.expected, problem.hint)
            alike[key] += 1
            if alike[key] <= _SHOWN or len(found) == 1:
                shown.append(problem)
    return shown, counts


def _count_jobs(paths: Sequence[str], work: Work) -> int:
    """One process while starting more would take longer than they save."""
    cores = count_cores()
    if len(paths) == 1 or cores == 1:
        return 1
    seconds = sum(estimate_seconds(work, path) for path in paths)
    return cores if seconds > _WORTH_A_POOL else 1


def _score_in_turn(paths: Sequence[str], work: Work, done: Callable[[], None]) -> Iterator[Outcome]:
    for path in paths:
        yield score_run(work, path)
        done()


def _score_at_once(
    paths: Sequence[str], work: Work, jobs: int, done: Callable[[], None]
) -> list[Outcome]:
    from heldout.cli.workers import open_processes, spread  # noqa: PLC0415 - most calls need none

    threads = max(1, count_cores() // jobs)
    shared = replace(work, accelerators=replace(work.accelerators, threads=threads))
    with open_processes(shared) as (score, open_executor):
        return spread(paths, score, open_executor=open_executor, lanes=jobs, done=done)
