"""Many run files scored, in turn or side by side."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from heldout.errors import InputError, Problem
from heldout.files.cores import count_cores
from heldout.progress import SILENT, Progress
from heldout.scoring.cache import ScoreCache
from heldout.scoring.evaluate import prepare
from heldout.scoring.score import Failed, Outcome, Scored, Work, estimate_seconds, score_run
from heldout.scoring.scores import Notes
from heldout.scoring.spec import Measure
from heldout.trec.accelerators import Accelerators
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels

_SHOWN = 3

_WORTH_A_POOL = 0.8
"""Seconds of reading from which two processes end before one: starting them takes 0.3 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How run files are read, whatever for."""

    accelerators: Accelerators = field(default_factory=Accelerators)
    cache: ScoreCache | None = None
    """Where scores are stored, `None` for nowhere."""
    code: str = ""
    """Version of the code, part of what scores are stored under."""
    jobs: int | None = None
    """Processes side by side; `None` for up to one for each core where that pays."""
    progress: Progress = SILENT

    def score(
        self,
        paths: Sequence[str],
        qrels: Qrels,
        measures: Iterable[Measure],
        *,
        order: Order | None = None,
        excluded: AbstractSet[str] = frozenset(),
    ) -> list[Outcome]:
        """An outcome for each path, in their order.

        Args:
            paths: run files.
            qrels: the judgments.
            measures: what to compute.
            order: how documents are ordered; `None` for what fits a run's columns.
            excluded: judged queries that do not count. Scores are stored for all judged queries, so
                those of some are not.
        """
        work = Work(
            qrels=qrels,
            judged=prepare(qrels.judgments, measures, excluded=excluded),
            order=order,
            accelerators=self.accelerators,
            cache=None if excluded else self.cache,
            code=self.code,
        )
        return score_all(paths, work, jobs=self.jobs, progress=self.progress)


def score_all(
    paths: Sequence[str],
    work: Work,
    *,
    jobs: int | None = None,
    progress: Progress = SILENT,
) -> list[Outcome]:
    """An outcome for each path, in their order.

    Args:
        paths: run files.
        work: what is the same for all.
        jobs: processes side by side; `None` for up to one for each core where that pays.
        progress: hears of each file.
    """
    lanes = min(len(paths), jobs or _count_jobs(paths, work))
    with progress.steps("reading runs", len(paths)) as done:
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


def collect_notes(scored: Sequence[Scored], qrels: Qrels) -> tuple[Notes, ...]:
    """What is odd about the judgments, then about runs; what several have in common stands once."""
    notes, counts = _some([(run.notes, run.counts) for run in scored])
    both = (Notes(qrels.notes, {}), Notes(_once(scored) if scored[1:] else notes, counts))
    return tuple(one for one in both if one.problems)


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
    from heldout.scoring.workers import open_processes, spread  # noqa: PLC0415 - most calls need none

    threads = max(1, count_cores() // jobs)
    shared = replace(work, accelerators=replace(work.accelerators, threads=threads))
    with open_processes(shared) as (score, open_executor):
        return spread(paths, score, open_executor=open_executor, lanes=jobs, done=done)
