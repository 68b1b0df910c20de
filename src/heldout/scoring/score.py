"""Run files scored, one or many: looked up where scores are stored, else read, measured, stored.

`score_run` can be sent to any `Executor`.
"""

import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from heldout.errors import InputError, Problem, SetupError, plural
from heldout.files import frames, process
from heldout.ids import Near, find_near, find_surely_near, say_near
from heldout.progress_bar import SILENT, Progress
from heldout.scoring.cache import Key, ScoreCache, StoredRun, code_version, digest_file, find_cache
from heldout.scoring.evaluate import Evaluation, PreparedJudgments, add_scores, prepare, score
from heldout.scoring.measures import Measure
from heldout.scoring.other_measures import OtherMeasure, check_others, score_others
from heldout.scoring.run_files import run_name, scan_file
from heldout.trec.memory import MemoryRun, list_documents, run_from_frame, scan_memory
from heldout.trec.orders import Order
from heldout.trec.qrels import Qrels
from heldout.trec.reading.streams import OWN_FILES
from heldout.trec.scanning.scanners import Scanner, find_scanner
from heldout.trec.scans import Scan
from heldout.trec.text import show

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_EXAMPLES = 3

# Measured on one core, to choose how many processes to start and for nothing else: text of an
# archive over its size, and bytes of text in a second.
_ARCHIVES = {".gz": (4, 3e8), ".bz2": (5, 3e7), ".zst": (4, 5e8)}
_SCANNED: Mapping[Scanner, float] = {"compiled": 2e8, "numpy": 2.5e7}
_HASHED = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is the same for all runs of a call.

    Attributes:
        qrels: the judgments.
        judged: what they amount to for the measures asked for.
        order: how documents are ordered; `None` for what fits a run's columns.
        cache: where scores are stored, `None` for nowhere.
        code: version of the code, part of what scores are stored under.
        others: measures that another library computes; their scores are not stored.
    """

    qrels: Qrels
    judged: PreparedJudgments
    order: Order | None = None
    cache: ScoreCache | None = None
    code: str = ""
    others: tuple[OtherMeasure, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What heldout computes itself."""
        return tuple(self.judged.measures)

    @property
    def key(self) -> Key:
        """What scores are stored under."""
        return Key(qrels=self.qrels.digest, order=self.order, code=self.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A run that could be scored.

    Attributes:
        path: the file as its owner knows it.
        order: the order of its documents.
        notes: what is odd about it.
        counts: code -> how many there are.
        evaluation: its scores.
        stored: whether nothing had to be computed.
        saved: whether its scores are stored now, so that the next call finds them.
    """

    path: str
    order: Order
    notes: tuple[Problem, ...]
    counts: Mapping[str, int]
    evaluation: Evaluation
    stored: bool = False
    saved: bool = False

    @property
    def name(self) -> str:
        """The run's name."""
        return run_name(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A run that could not.

    Attributes:
        path: the file as its owner knows it.
        problems: why, at least one error.
        counts: code -> how many there are, where not all are among the problems.
    """

    path: str
    problems: tuple[Problem, ...]
    counts: Mapping[str, int]


Outcome = Scored | Failed


def score_run(work: Work, source: str | MemoryRun) -> Outcome:
    """Score one file, or a run in memory. What is wrong with it is in the outcome, not raised."""
    path = str(source)
    try:
        size = _size(path) if isinstance(source, str) else None
        before = None if size is None else _find(work, path, size)
        run = before or _read(work, source)
    except InputError as error:
        return Failed(path=path, problems=error.problems, counts={})
    except (OSError, MemoryError) as error:
        return Failed(path=path, problems=(_broken_off(path, error),), counts={})
    if isinstance(run, Failed):
        return run
    overlap = _check_overlap(path, run.rankings.keys(), work.qrels.judgments.keys())
    if any(problem.severity == "error" for problem in overlap):
        return Failed(path=path, problems=overlap, counts={})
    evaluation = _complete(work, run)
    stored = saved = evaluation is run.evaluation
    if work.cache is not None and size is not None and not stored:
        saved = work.cache.add(work.key, size, replace(run, evaluation=evaluation))
    if work.others:
        try:
            lists = _read_lists(work, run, source, evaluation.queries)
            evaluation = add_others(evaluation, lists, work.qrels, work.others)
        except InputError as error:
            return Failed(path=path, problems=error.problems, counts={})
    return Scored(
        path=path,
        order=run.order,
        notes=(*(replace(note, path=path) for note in run.notes), *overlap),
        counts=run.counts,
        evaluation=evaluation,
        stored=stored and not work.others,
        saved=saved and not work.others,
    )


def _read_lists(
    work: Work, run: StoredRun, source: str | MemoryRun, queries: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """The documents of each query, best first, for measures of other libraries.

    Raises:
        InputError: code `read-once`: a pipe.
    """
    if isinstance(source, MemoryRun):
        return list_documents(source, run.order, frozenset(queries))
    path = source
    if path.lower().endswith(frames.PARQUET):
        rows = run_from_frame(frames.read_parquet(path), name=path)
        return list_documents(rows, run.order, frozenset(queries))
    if _size(path) is None or run.form is None:
        raise InputError.of("read-once", path, measure=work.others[0])
    scan = scan_file(path, order=run.order, listed=OWN_FILES.documents)
    scan.raise_errors()
    return {query: scan.lists[query].documents for query in queries if query in scan.lists}


def add_others(
    evaluation: Evaluation,
    lists: Mapping[str, Sequence[str]],
    qrels: Qrels,
    measures: Sequence[OtherMeasure],
) -> Evaluation:
    """The evaluation of a run, with measures that another library computes.

    Args:
        evaluation: by heldout's own measures, perhaps none.
        lists: the run's documents of each query, best first.
        qrels: the judgments.
        measures: of other libraries.

    Raises:
        InputError, SetupError: as `score_others`.
    """
    judgments = {query: qrels.judgments[query] for query in evaluation.queries}
    empty = {
        one: 0
        if one.kind.aggregate == "sum"
        else sum(max(grades.values()) < one.params.level for grades in judgments.values())
        for one in measures
    }
    scores = score_others(lists, judgments, measures, subtopics=qrels.subtopics)
    return add_scores(evaluation, scores, empty)


def estimate_seconds(work: Work, path: str) -> float:
    """Roughly how long a file will take, from its size and the end of its name."""
    size = _size(path) or 0
    if work.cache is not None and work.cache.may_know(work.key, size):
        return size / _HASHED
    ratio, unpacked = _ARCHIVES.get(Path(path).suffix, (1, math.inf))
    text = size * ratio
    return text / _SCANNED[find_scanner()] + text / unpacked


def _size(path: str) -> int | None:
    """Bytes of a file; `None` for a pipe, which can be read only once."""
    try:
        status = Path(path).stat()
    except OSError:
        return None  # opening it says why
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _find(work: Work, path: str, size: int) -> StoredRun | None:
    """Return what is stored of a file; only a file whose size is known has to be hashed."""
    if work.cache is None or not work.cache.may_know(work.key, size):
        return None
    try:
        digest = digest_file(Path(path))
    except OSError:
        return None  # reading it says why
    return work.cache.find(work.key, digest, size, work.measures)


def _read(work: Work, source: str | MemoryRun) -> StoredRun | Failed:
    """The run seen through the judgments, not yet measured.

    Raises:
        InputError: code `unreadable-file`, or those of `scan_memory`.
    """
    path = str(source)
    if isinstance(source, str):
        scan = scan_file(path, order=work.order, qrels=work.qrels)
    else:
        scan = scan_memory(source, order=work.order, qrels=work.qrels.judgments)
    if not scan.ok:
        return Failed(path=path, problems=scan.problems, counts=scan.counts)
    problems = (
        *scan.problems,
        *_check_float32(scan),
        *_check_documents(scan, work.qrels.judgments),
    )
    return StoredRun(
        digest=scan.digest,
        form=scan.form,
        order=scan.order,
        notes=tuple(replace(problem, path="") for problem in problems),
        counts=scan.counts,
        facts=scan.facts,
        rankings=scan.rankings,
    )


def _complete(work: Work, run: StoredRun) -> Evaluation:
    """The run's scores on all measures: what is stored, if that is all."""
    known = run.evaluation.scores if run.evaluation else {}
    missing = [measure for measure in work.measures if measure not in known]
    if run.evaluation and not missing:
        return run.evaluation
    measures = {measure: work.judged.measures[measure] for measure in missing}
    added = score(run.rankings, replace(work.judged, measures=measures))
    found = {**known, **added.scores}
    return replace(added, scores={measure: found[measure] for measure in work.measures})


def _broken_off(path: str, error: OSError | MemoryError) -> Problem:
    why = error.strerror if isinstance(error, OSError) else "no memory left"
    found = f"{why or type(error).__name__} while it was read"
    return Problem("unreadable-file", path, found, "a file that can be read to its end")


def _check_overlap(
    path: str, answered: AbstractSet[str], judged: AbstractSet[str]
) -> tuple[Problem, ...]:
    """An error where no answered query is judged: a mean of zeros would say nothing of the run."""
    common = len(answered & judged)
    near = find_near(answered - judged, judged - answered)
    own, other = (
        ", ".join(map(show, sorted(some - both)[:_EXAMPLES]))
        for some, both in ((answered, judged), (judged, answered))
    )
    words: dict[str, Any] = {
        "answered": plural(len(answered), "query", "queries"),
        "judged": len(judged),
    }
    if not common:
        words |= {"own": own, "other": other}
        return (Problem.of("no-common-query", path, hint=say_near(near), **words),)
    notes = [other_spelling(path, "queries", near)] if near else []
    if 2 * common < max(len(answered), len(judged)):
        hint = f"not judged: {own}" if own else f"not answered, so 0: {other}"
        few = Problem.of("few-common-queries", path, hint=hint, common=common, **words)
        notes.append(few)
    return tuple(notes)


def other_spelling(path: str, things: str, near: tuple[Near, ...]) -> Problem:
    """A note that ids of a file would match the judgments if they were written as there.

    Args:
        path: the file.
        things: what the ids are of, as `queries`.
        near: the pairs, at least one.
    """
    return Problem.of("other-spelling", path, f"ids of {things}: {say_near(near)}")


def _check_float32(scan: Scan) -> tuple[Problem, ...]:
    """A note where trec_eval up to 9, with which official tables were made, has another order."""
    if not scan.facts.queries_swapped:
        return ()
    queries = plural(scan.facts.queries_swapped, "query", "queries")
    return (Problem.of("scores-collide", scan.path, queries=queries),)


def _check_documents(scan: Scan, judgments: Mapping[str, Mapping[str, int]]) -> tuple[Problem, ...]:
    """Notes on ids of documents of another form, which give zeros that look like scores."""
    found = scan.rankings
    judged = next((document for query in found for document in judgments.get(query, ())), None)
    if judged is None:
        return ()
    if len(found.positions):
        sure = _near_documents(scan.head, judgments, find_surely_near)
        return (other_spelling(scan.path, "documents", sure),) if sure else ()
    near = _near_documents(scan.head, judgments, find_near)
    return (Problem.of("no-common-document", scan.path, hint=say_near(near), judged=show(judged)),)


def _near_documents(
    head: Mapping[str, tuple[str, ...]],
    judgments: Mapping[str, Mapping[str, int]],
    find: Callable[[Iterable[str], Iterable[str]], tuple[Near, ...]],
) -> tuple[Near, ...]:
    """Documents on a run's first lines that are judged for their query under another spelling."""
    pairs: dict[str, Near] = {}
    for query, documents in head.items():
        grades = judgments.get(query, {})
        listed = set(documents)
        near = find(listed - grades.keys(), grades.keys() - listed)
        pairs |= {one.own: one for one in near}
    return tuple(sorted(pairs.values()))


class Notes(NamedTuple):
    """What is odd about files that can be scored."""

    problems: Sequence[Problem]
    counts: Mapping[str, int]
    """Code -> how many there are, where not all are among the problems."""


_SHOWN = 3

_WORTH_A_POOL = 0.8
"""Seconds of reading from which two processes end before one: starting them takes 0.3 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How run files are read, whatever for."""

    cache: ScoreCache | None = None
    """Where scores are stored, `None` for nowhere."""
    code: str = ""
    """Version of the code, part of what scores are stored under."""
    jobs: int | None = None
    """Processes side by side; `None` for up to one for each core where that pays."""
    progress: Progress = SILENT
    executor: "Executor | None" = None
    """Where files are scored that other machines see too; `None` for processes here."""

    def key(self, qrels: Qrels, order: Order | None) -> Key:
        """Return what the scores of all runs of a call are stored under."""
        return Key(qrels=qrels.digest, order=order, code=self.code)

    def score(
        self,
        runs: Sequence[str | MemoryRun],
        qrels: Qrels,
        measures: Iterable[Measure],
        *,
        order: Order | None = None,
        excluded: AbstractSet[str] = frozenset(),
    ) -> list[Outcome]:
        """An outcome for each run, in their order.

        Args:
            runs: paths of run files, and runs in memory. Those in memory are scored here, whatever
                `jobs` says.
            qrels: the judgments.
            measures: what to compute.
            order: how documents are ordered; `None` for what fits a run's columns.
            excluded: judged queries that do not count. Scores are stored for all judged queries, so
                those of some are not.

        Raises:
            InputError: code `needs-subtopics`: a measure asks for them.
            SetupError: what computes a measure is not installed.
        """
        asked = tuple(dict.fromkeys(measures))
        others = tuple(one for one in asked if isinstance(one, OtherMeasure))
        own = [one for one in asked if not isinstance(one, OtherMeasure)]
        check_others(others, qrels.subtopics)
        work = Work(
            qrels=qrels,
            judged=prepare(qrels.judgments, own, excluded=excluded),
            others=others,
            order=order,
            cache=None if excluded else self.cache,
            code=self.code,
        )
        paths = [run for run in runs if isinstance(run, str)]
        lanes = min(len(paths), self.jobs or _count_jobs(paths, work))
        with self.progress.steps("reading runs", len(runs)) as done:
            if self.executor is not None:
                outcomes = _score_elsewhere(runs, work, self.executor, done)
            elif lanes <= 1:
                outcomes = []
                for run in runs:
                    outcomes.append(score_run(work, run))
                    done()
            else:
                read = iter(_score_at_once(paths, work, lanes, done))
                outcomes = [
                    next(read) if isinstance(run, str) else score_run(work, run) for run in runs
                ]
        if work.cache is not None:
            work.cache.prune()
        return [_in_order(outcome, asked) for outcome in outcomes] if others else outcomes

    def score_whole(
        self,
        runs: Sequence[str | MemoryRun],
        qrels: Qrels,
        measures: Iterable[Measure],
        *,
        order: Order | None = None,
    ) -> list[Scored]:
        """As `score`, where no run may fail.

        Raises:
            InputError: what is wrong with runs; the first few of what all of them have in common.
        """
        outcomes = self.score(runs, qrels, measures, order=order)
        if failed := [outcome for outcome in outcomes if isinstance(outcome, Failed)]:
            shown, counts = _some([(run.problems, run.counts) for run in failed])
            raise InputError(shown, counts=counts)
        return [outcome for outcome in outcomes if isinstance(outcome, Scored)]


def _in_order(outcome: Outcome, measures: Sequence[Measure]) -> Outcome:
    """The outcome with its measures in the order they were asked for."""
    if isinstance(outcome, Failed):
        return outcome
    scores = outcome.evaluation.scores
    ordered = {measure: scores[measure] for measure in measures}
    return replace(outcome, evaluation=replace(outcome.evaluation, scores=ordered))


def find_reading(
    environ: Mapping[str, str],
    *,
    jobs: int | None = None,
    cached: bool = True,
    progress: Progress = SILENT,
    executor: "Executor | None" = None,
) -> Reading:
    """Return how this machine reads run files.

    Args:
        environ: as `find_cache` reads it.
        jobs: processes side by side; `None` for up to one for each core where that pays.
        cached: whether scores are stored and taken from where they are stored.
        progress: hears of each file.
        executor: of machines that see the same files; `None` for processes here.
    """
    cache = find_cache(environ) if cached else None
    return Reading(
        cache=cache,
        code=code_version() if cache is not None or executor is not None else "",
        jobs=jobs,
        progress=progress,
        executor=executor,
    )


def describe_scored(run: Scored, *, per_query: bool = False) -> dict[str, Any]:
    """A run's scores as a JSON document."""
    found = run.evaluation
    scores = {str(measure): scores for measure, scores in found.scores.items()}
    document: dict[str, Any] = {
        "run": run.name,
        "path": run.path,
        "order": run.order,
        "queries": len(found.queries),
        "unanswered": found.unanswered,
        "ignored": found.ignored,
        "scores": {name: score.mean for name, score in scores.items()},
        "why": {name: score.why for name, score in scores.items() if score.mean is None},
        "n": {name: score.n for name, score in scores.items()},
        "without_relevant": {name: score.without_relevant for name, score in scores.items()},
        "notes": [asdict(problem) for problem in run.notes],
    }
    if per_query:
        document["per_query"] = {
            query: {str(measure): score for measure, score in row.items()}
            for query, row in in_order(found).items()
        }
    return document


def in_order(found: Evaluation) -> Mapping[str, Mapping[Measure, float | None]]:
    """Scores by query: 2 before 10 where all ids are numbers, else as texts."""
    rows = found.per_query()
    if not all(query.isascii() and query.isdigit() for query in rows):
        return rows
    return {query: rows[query] for query in sorted(rows, key=lambda query: (int(query), query))}


def collect_notes(scored: Sequence[Scored], qrels: Qrels) -> tuple[Notes, ...]:
    """Collect what is odd about the judgments, then about runs; what is common once."""
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
    cores = process.count_cores()
    if len(paths) == 1 or cores == 1:
        return 1
    seconds = sum(estimate_seconds(work, path) for path in paths)
    return cores if seconds > _WORTH_A_POOL else 1


def _score_at_once(
    paths: Sequence[str], work: Work, jobs: int, done: Callable[[], None]
) -> list[Outcome]:
    from heldout.scoring.workers import open_processes, spread  # noqa: PLC0415 - most calls need none

    with open_processes(score_run, work) as (score, open_executor):
        return spread(
            paths, score, died=run_died, open_executor=open_executor, lanes=jobs, done=done
        )


def run_died(path: str, hint: str = "fewer at once need less: --jobs 1") -> Failed:
    """The outcome of a file whose process was ended: code `worker-died`."""
    problem = Problem.of("worker-died", path, more=hint)
    return Failed(path=path, problems=(problem,), counts={})


def _score_elsewhere(
    runs: Sequence[str | MemoryRun], work: Work, executor: "Executor", done: Callable[[], None]
) -> list[Outcome]:
    """Score files where the executor computes; here what only this machine can read."""
    from concurrent.futures import BrokenExecutor  # noqa: PLC0415 - most calls need none

    futures: dict[str, Future[Outcome]] = {}
    for run in runs:
        if isinstance(run, str) and run not in futures and (seen := _look_at(run)) is not None:
            futures[run] = executor.submit(score_there, work, run, str(Path(run).absolute()), seen)
    outcomes: list[Outcome] = []
    for run in runs:
        if isinstance(run, str) and run in futures:
            try:
                outcomes.append(futures[run].result())
            except BrokenExecutor:
                outcomes.append(run_died(run, "a worker with one thread needs least"))
        else:
            outcomes.append(score_run(work, run))
        done()
    return outcomes


def score_there(work: Work, name: str, path: str, seen: tuple[int, int]) -> Outcome:
    """Score a file on another machine than the one that asks.

    Args:
        work: as for `score_run`.
        name: the file as its owner knows it.
        path: where it lies, on both machines.
        seen: its size and time of change, as the other machine sees them.

    Raises:
        SetupError: other code or other versions of Python or numpy than there.
    """
    if code_version() != work.code:
        raise SetupError(
            f"a worker has other code: {code_version()}; here: {work.code}; install the same on "
            "all machines, since others may give other scores"
        )
    found = _look_at(path)
    if found != seen:
        there = "no such file" if found is None else "another file"
        problem = Problem.of("other-file", name, f"{there} at {path} on {os.uname().nodename}")
        return Failed(path=name, problems=(problem,), counts={})
    outcome = score_run(work, path)
    if isinstance(outcome, Failed):
        return replace(outcome, path=name, problems=_rename(outcome.problems, path, name))
    return replace(outcome, path=name, notes=_rename(outcome.notes, path, name))


def _rename(problems: Iterable[Problem], path: str, name: str) -> tuple[Problem, ...]:
    return tuple(replace(one, path=name) if one.path == path else one for one in problems)


def _look_at(path: str) -> tuple[int, int] | None:
    """Size and time of change of a file, as the file server has them; `None` for a pipe."""
    try:
        if _size(path) is None:
            return None
        with Path(path).open("rb") as file:  # else a network file system answers from memory
            status = os.fstat(file.fileno())
    except OSError:
        return None  # reading it says why
    return status.st_size, status.st_mtime_ns
