"""Opens runs once more: to score them by the labels and code of today, or for another reader.

What the vault keeps of a submission is made here and nowhere else, so it can be made again when it
is lost, damaged, or not what the log vouches for.

Scores may be computed ahead of a correction. `remembered/scores/ID` in the vault has those of an
entry beside digests of all that they depend on, under a mark that only who has the vault's private
keys can make. Parts of a correction (`heldout correct --shard`) write such files, each for entries
of its own. A file is whole or absent, so parts need no lock. The correction takes the scores whose
dependencies are those of today, and removes the files.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from heldout.board.log.submission import Submission
from heldout.board.rules.changes import add_label_views, is_key, list_open, stem_of
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores import score, stored
from heldout.board.scores.session import Session
from heldout.board.scores.sets import SetData, digest_public, load_sets, scan_for_board
from heldout.board.store.sharing import REMEMBERED
from heldout.envelope.bundle import OpenedRun
from heldout.errors import HeldoutError, InputError, Problem, TrustError
from heldout.files.durable import File
from heldout.files.process import count_cores
from heldout.ids import digest_bytes, query_set_of
from heldout.scoring.cache import code_version
from heldout.trec.orders import Order
from heldout.trec.scans import Scan

T = TypeVar("T")

_BATCH = 256
"""Entries whose scores are in memory at once."""
_OPENED = 2e7
"""Bytes of sealed files that one core opens and scores in a second, roughly."""
_ENTRY_SECONDS = 0.01
_WORTH_PROCESSES = 3.0
"""Seconds of work from which several processes end before one."""


_FOLDER = "scores"


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of an entry, beside the digest of all that they depend on."""

    made_of: str
    scores: stored.ScoreFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of scores that were computed ahead.

    Attributes:
        used: how many entries have their scores from there.
        others: how many entries had scores there that were made from something else.
    """

    used: int
    others: int


class Precomputed:
    """The scores of a board that were computed ahead of a correction.

    They are written without the vault's lock, also where the session is opened to be read alone:
    no other file of the vault is.

    Attributes:
        session: of the organiser.
        sets: the board's query sets, as they are scored with.
    """

    def __init__(self, session: Session, sets: Mapping[str, SetData]) -> None:
        self.session = session
        self.sets = sets
        self._vault = replace(session.vault, read_only=False)
        self._code = code_version()
        self._public: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._used = self._others = 0

    @property
    def folder(self) -> Path:
        """Where the scores lie, to be shown."""
        return self._vault.files.path(f"{REMEMBERED}/{_FOLDER}")

    def find(self, submission: Submission) -> stored.ScoreFile | None:
        """The scores of an entry; `None` where there are none that hold today."""
        known = self._read(submission.id)
        if known is None:
            return None
        if self._made_of(submission) != known.made_of:
            self._others += 1
            return None
        self._used += 1
        return known.scores

    def store(self, submission: Submission, scores: stored.ScoreFile) -> None:
        """Store the scores of an entry; they were made with this session and these sets.

        Raises:
            OSError: they cannot be written.
        """
        made = _Stored(made_of=self._made_of(submission), scores=scores)
        data = msgspec.msgpack.encode(made, order="deterministic")
        self._vault.remember(_name(submission.id), data)

    def forget(self, ids: Collection[str]) -> None:
        """Remove what is stored of entries, and what killed writers left: the lock is held."""
        for name in ids:
            self._vault.forget(_name(name))
        self._vault.sweep_memory(_FOLDER)

    def taken(self) -> Taken:
        """Return what `find` has found so far."""
        return Taken(used=self._used, others=self._others)

    def _read(self, submission: str) -> _Stored | None:
        data = self._vault.recall(_name(submission))
        try:
            return None if data is None else msgspec.msgpack.decode(data, type=_Stored)
        except (msgspec.MsgspecError, ValueError):  # of another version of heldout
            return None

    def _made_of(self, submission: Submission) -> str:
        """Return a digest of all that an entry's scores depend on.

        That is its files and runs, the labels, the public files that decide scores, its rules, and
        the version of the code.
        """
        spec = rules_of(self.session, submission)
        sets = sets_of(self.session, spec, self.sets)
        named = list_open(spec)
        if named not in self._public:
            self._public[named] = digest_public(self.session.repository, spec)
        own = (submission.files, submission.runs, submission.sealed_again)
        labels = (labels_of(sets), held_out_of(sets))
        whole = (own, labels, self._public[named], spec, self._code)
        return digest_bytes(msgspec.json.encode(whole, order="deterministic"))


def _name(submission: str) -> str:
    return f"{_FOLDER}/{submission}"


def rules_of(session: Session, submission: Submission) -> BoardSpec:
    """The rules that an entry is scored by: those of its day, with label views that came later."""
    rules = session.spec_at(submission.received, baseline=submission.baseline)
    return add_label_views(rules, session.spec())


def sets_of(
    session: Session, spec: BoardSpec, sets: Mapping[str, SetData]
) -> Mapping[str, SetData]:
    """The query sets by the rules of a day; mostly those of today."""
    today = session.spec().sets
    same = all(today.get(name) == queries for name, queries in spec.sets.items())
    same = same and spec.release.feedback == session.spec().release.feedback
    if same and all(sets[view.set].can_score(view) for view in spec.views):
        return {name: sets[name] for name in spec.sets}
    return load_sets(session.repository, spec, vault=session.vault)


def labels_of(sets: Mapping[str, SetData]) -> dict[str, str]:
    """Set, or set/labels -> SHA-256 of the labels."""
    return {
        f"{name}/{labels}" if labels else name: str(digest)
        for name, data in sets.items()
        for labels, digest in data.digests.items()
    }


def held_out_of(sets: Mapping[str, SetData]) -> dict[str, str]:
    """Every file of the vault that scores on these sets depend on -> SHA-256."""
    return {name: digest for data in sets.values() for name, digest in data.held_out.items()}


def open_published_runs(
    session: Session,
    entry: Submission,
    query_sets: Collection[str],
    consume: Callable[[str, BinaryIO], T],
) -> Mapping[str, OpenedRun[T]]:
    """Open the runs over some query sets; all are verified, the others are not looked at.

    Args:
        session: of the organiser.
        entry: a submission, and no baseline.
        query_sets: their names; those that the entry did not have to answer give nothing.
        consume: gets a run's name and its bytes as packed; what it returns is never `None`.

    Returns:
        Run (`SET`, `SET~2` and so on) -> what `consume` made of it.

    Raises:
        TrustError: something sealed is not what it claims.
        InputError: the problems that `consume` raised.
        StoreError: a sealed file is missing.
    """
    spec = session.spec_at(entry.received)
    if not spec.sets.keys() & set(query_sets):
        return {}
    key, manifest = score.open_manifest(session.vault, spec, entry)
    opened = score.open_own_runs(
        session.vault,
        spec,
        entry,
        manifest,
        key=key,
        consume=lambda run, stream: (
            consume(run, stream) if query_set_of(run) in query_sets else None
        ),
    )
    return {
        run: OpenedRun(member=one.member, size=one.size, digest=one.digest, value=one.value)
        for run, one in opened.items()
        if one.value is not None
    }


Reader = Callable[[BinaryIO, str, Order], T]
"""Gets a run at its start, its name for messages, and the order of its documents; never gives
`None`."""


def read_published(
    session: Session,
    query_set: str,
    entries: Collection[Submission],
    read: Reader[T],
    *,
    done: Callable[[], None] = lambda: None,
) -> Mapping[str, T]:
    """Open runs over a query set, one in memory at a time.

    Args:
        session: of the organiser.
        query_set: its name.
        entries: published ones.
        read: what is made of each.
        done: called after each entry.

    Returns:
        Id of the entry, with `~2` and so on for its further seeds -> what was made of it. Entries
        that did not have to answer the set are left out.

    Raises:
        TrustError: a run does not open.
        InputError: a run has errors.
        StoreError: a sealed file is missing.
    """
    found: dict[str, T] = {}
    for entry in entries:
        of_entry = _read_baseline if entry.baseline else _read_sealed
        for run, made in of_entry(session, entry, query_set, read).items():
            found[entry.id + run.removeprefix(query_set)] = made
        done()
    return found


def _read_baseline(
    session: Session, entry: Submission, query_set: str, read: Reader[T]
) -> Mapping[str, T]:
    order = session.spec_at(entry.received).runs.order
    found = {}
    for run in sorted(name for name in entry.runs if query_set_of(name) == query_set):
        with session.vault.sealed(entry.runs[run]).open("rb") as source:
            found[run] = read(source, f"{entry.id}/{run}", order)
    return found


def _read_sealed(
    session: Session, entry: Submission, query_set: str, read: Reader[T]
) -> Mapping[str, T]:
    order = session.spec_at(entry.received).runs.order

    def read_member(run: str, stream: BinaryIO) -> T:
        return read(BytesIO(stream.read()), f"{entry.id}/{run}", order)

    opened = open_published_runs(session, entry, {query_set}, read_member)
    return {run: one.value for run, one in opened.items()}


def check_set(spec: BoardSpec, name: str) -> None:
    """Refuse the name of a query set that a board does not have.

    Raises:
        InputError: code `unknown-set`.
    """
    if name not in spec.sets:
        raise InputError.of("unknown-set", "--set", name, "one of " + ", ".join(spec.sets))


def list_published(session: Session) -> tuple[Submission, ...]:
    """Published entries and baselines whose runs the vault has, in the order they came."""
    every = session.history().submissions.values()
    return tuple(s for s in every if s.status == "published" and (s.runs or not s.baseline))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredBaseline:
    """What scoring an organiser's own runs gave.

    Attributes:
        runs: run (`SET`, `SET~2` and so on) -> its file.
        scans: run -> what the scan found.
        scores: what the vault keeps of it.
    """

    runs: Mapping[str, Path | File]
    scans: Mapping[str, Scan]
    scores: stored.ScoreFile


def open_and_score(
    session: Session, sets: Mapping[str, SetData], submission: Submission
) -> stored.ScoreFile:
    """Open a submission and score its runs; its signatures are kept, its scores are not.

    Returns:
        The outcome; one that does not open, or has errors, says so in it.
    """
    spec = rules_of(session, submission)
    sets = sets_of(session, spec, sets)
    outcome = stored.ScoreFile(
        files=dict(submission.scored_files),
        code_version=code_version(),
        labels=labels_of(sets),
        held_out=held_out_of(sets),
    )
    try:
        scans, views, key = score.open_submission(session.vault, spec, sets, submission)
    except TrustError as error:
        outcome = msgspec.structs.replace(outcome, refusal=str(error))
    except InputError as error:
        outcome = msgspec.structs.replace(outcome, metadata_problems=error.problems)
    else:
        runs = {name: _report(scan) for name, scan in scans.items()}
        outcome = msgspec.structs.replace(outcome, runs=runs, views=dict(views), key=str(key))
        _store_signatures(session, submission, scans)
    return outcome


def _store_signatures(session: Session, submission: Submission, scans: Mapping[str, Scan]) -> None:
    """Store signatures where the vault has not just those that the log vouches for.

    Whoever only looks at a board stores none: the vault's lock is not held then.
    """
    if not session.vault.read_only and not _has_signatures(session, submission):
        stored.store_signatures(session.vault, submission.id, scans)


def _has_signatures(session: Session, submission: Submission) -> bool:
    """Check whether the vault has just the signatures that the log vouches for."""
    logged = submission.stored.get("signatures")
    return (
        logged is not None
        and session.vault.result_digests(submission.id).get("signatures") == logged
    )


def rescore(session: Session, sets: Mapping[str, SetData], submission_id: str) -> stored.ScoreFile:
    """Open and score an entry again, with the labels and the code of today.

    Its signatures are kept unless the vault is opened to be read alone; its scores are not.

    Args:
        session: of the organiser.
        sets: the board's query sets.
        submission_id: of a submission, or of a baseline whose runs the vault has.

    Raises:
        InputError: a baseline's run has errors.
    """
    submission = session.history().submissions[submission_id]
    if not submission.baseline:
        return open_and_score(session, sets, submission)
    spec = rules_of(session, submission)
    runs = {name: session.vault.sealed(digest) for name, digest in submission.runs.items()}
    scored = score_baseline(spec, sets_of(session, spec, sets), runs)
    _store_signatures(session, submission, scored.scans)
    return scored.scores


def rescore_each(
    session: Session,
    sets: Mapping[str, SetData],
    ids: Sequence[str],
    *,
    ahead: Precomputed | None = None,
    done: Callable[[], None] = lambda: None,
) -> Iterator[tuple[str, stored.ScoreFile]]:
    """As `rescore`, of many entries: on all cores where that pays, in the order of `ids`.

    Keys, held-out labels and opened runs stay in the memory of this machine.

    Args:
        session: of the organiser.
        sets: the board's query sets.
        ids: of submissions and baselines.
        ahead: scores that were computed before, which are taken where they hold today.
        done: called after each.

    Yields:
        An id and its scores. Events may be logged between two of them.

    Raises:
        TrustError, InputError: as `rescore`, for the first entry of which it is so.
    """
    reader = replace(session, vault=replace(session.vault, read_only=True))
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        entries = [session.history().submissions[name] for name in batch]
        # What has to be written, or fails, is left to this process: it has the lock, and says why.
        known = [one for one in entries if _has_signatures(session, one)]
        found = {}
        if ahead is not None:
            found = {one.id: scores for one in known if (scores := ahead.find(one)) is not None}
        rest = [one for one in known if one.id not in found]
        found |= _side_by_side(session, rest, _rescore_there, (reader, sets))
        for name in batch:
            scores = found.pop(name, None)
            if scores is None:
                scores = rescore(session, sets, name)
            done()
            yield name, scores


def _side_by_side(
    session: Session,
    submissions: Sequence[Submission],
    work_one: Callable[[Any, str], T | None],
    work: object,
    *,
    done: Callable[[], None] = lambda: None,
) -> dict[str, T]:
    """Yield what other processes give for entries, where starting them pays.

    Args:
        session: of the organiser.
        submissions: the entries.
        work_one: gives the outcome of one, by its id.
        work: what `work_one` gets first, sent to each process once.
        done: called after each.
    """
    seconds = sum(_ENTRY_SECONDS + size_of(session, one) / _OPENED for one in submissions)
    jobs = count_cores() if seconds > _WORTH_PROCESSES and session.vault.stored is None else 1
    if jobs == 1:
        return {}
    from heldout.scoring.workers import open_processes, spread  # noqa: PLC0415 - few calls need it

    names = [one.id for one in submissions]
    with open_processes(work_one, work) as (score_there, open_executor):
        found = spread(
            names,
            score_there,
            died=_leave,
            open_executor=open_executor,
            lanes=jobs,
            done=done,
        )
    return {name: one for name, one in zip(names, found, strict=True) if one is not None}


def _rescore_there(
    work: tuple[Session, Mapping[str, SetData]], name: str
) -> stored.ScoreFile | None:
    """In another process; `None` where it fails."""
    try:
        return rescore(*work, name)
    except HeldoutError:
        return None


def _leave(_name: str) -> None:
    """Leave what a process was at when it was ended: it is scored again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredAhead:
    """What became of entries whose scores were to be computed ahead of a correction.

    Attributes:
        scored: their scores were computed and stored.
        before: they had been stored before.
        left: their scores cannot be stored without their signatures, which only the correction
            itself writes.
        failed: id -> why there are no scores.
        stored_in: the folder of the scores.
    """

    scored: tuple[str, ...]
    before: tuple[str, ...]
    left: tuple[str, ...]
    failed: Mapping[str, tuple[Problem, ...]]
    stored_in: Path


def score_ahead(
    ahead: Precomputed, ids: Sequence[str], *, done: Callable[[], None] = lambda: None
) -> ScoredAhead:
    """Score entries by the labels of today, as `rescore_each`, and store each when it is scored.

    Nothing else is written, and no lock is held: others may do the same at once.

    Args:
        ahead: where scores are stored; its session may be opened to be read alone.
        ids: of submissions and baselines.
        done: called after each entry that is scored.
    """
    session = ahead.session
    submissions = [session.history().submissions[name] for name in ids]
    known = [one for one in submissions if _has_signatures(session, one)]
    before = {one.id for one in known if ahead.find(one) is not None}
    todo = [one for one in known if one.id not in before]
    found = _side_by_side(session, todo, _score_ahead, ahead, done=done)
    for one in todo:
        if one.id not in found:
            found[one.id] = _score_ahead(ahead, one.id)
            done()
    return ScoredAhead(
        scored=tuple(name for name, problems in found.items() if not problems),
        before=tuple(name for name in ids if name in before),
        left=tuple(one.id for one in submissions if one not in known),
        failed={name: problems for name, problems in found.items() if problems},
        stored_in=ahead.folder,
    )


def _score_ahead(ahead: Precomputed, name: str) -> tuple[Problem, ...]:
    """Return why there are no scores; empty once they are stored."""
    try:
        scores = rescore(ahead.session, ahead.sets, name)
        if scores.views:
            ahead.store(ahead.session.history().submissions[name], scores)
            return ()
    except InputError as error:
        return error.problems
    except HeldoutError as error:
        return (_fail("not-scored", name, str(error)),)
    except OSError as error:
        return (_fail("not-stored", name, str(error)),)
    wrong = [p for run in scores.runs.values() for p in run.problems if p.severity == "error"]
    refused = [_fail("not-scored", name, scores.refusal)] if scores.refusal else []
    return (*refused, *scores.metadata_problems, *wrong)


def _fail(code: str, name: str, found: str) -> Problem:
    hint = "is the disk full?" if code == "not-stored" else ""
    return Problem.of(code, name, found, "scores that the correction will find", hint)


def size_of(session: Session, submission: Submission) -> int:
    """Bytes of its sealed files, or of a baseline's runs."""
    digests = submission.runs.values() if submission.baseline else submission.files.values()
    stats = (session.vault.files.stat(f"sealed/{digest}") for digest in digests)
    return sum(one.st_size for one in stats if one is not None)


def score_baseline(
    spec: BoardSpec, sets: Mapping[str, SetData], runs: Mapping[str, Path | File]
) -> ScoredBaseline:
    """Score an organiser's own runs; nothing is kept.

    Args:
        spec: the rules.
        sets: the query sets.
        runs: run (`SET`, `SET~2` and so on) -> its file.

    Raises:
        InputError: a run has errors.
    """
    scans = {}
    for name, path in runs.items():
        with path.open("rb") as file:
            scans[name] = scan_for_board(spec, sets, "", name, file, path=path.name)
    errors = [p for scan in scans.values() for p in scan.problems if p.severity == "error"]
    if errors:
        raise InputError(errors)
    scores = stored.ScoreFile(
        files={name: str(scan.digest) for name, scan in scans.items()},
        code_version=code_version(),
        runs={name: _report(scan) for name, scan in scans.items()},
        views=dict(score.score_views(spec, sets, scans)),
        labels=labels_of(sets),
        held_out=held_out_of(sets),
    )
    return ScoredBaseline(runs=runs, scans=scans, scores=scores)


def store_outcome(session: Session, submission: Submission, scores: stored.ScoreFile) -> None:
    """Store scores; nothing but what an event vouches for once it was decided."""
    if submission.pending or submission.stored.get("scores") in (
        None,
        stored.digest_scores(scores),
    ):
        stored.store_scores(session.vault, submission.id, scores)


def repair_stored(session: Session, sets: Mapping[str, SetData], submission_id: str) -> bool:
    """Make damaged files of an earlier submission again; whether that was possible.

    Nothing that is damaged stands in the way of another submission.
    """
    submission = session.history().submissions[submission_id]
    try:
        scores = rescore(session, sets, submission_id)
    except HeldoutError:
        return False
    if scores.refusal or scores.metadata_problems:
        return False
    store_outcome(session, submission, scores)
    return True


def is_earlier(scores: stored.ScoreFile, sets: Mapping[str, SetData]) -> bool:
    """Check whether scores were made with other labels than those of today; so too if nobody knows.

    A key that came later changes no score that was made before it.
    """
    asked = {name: data for name, data in sets.items() if name in scores.runs}
    others = any(scores.labels.get(key) != digest for key, digest in labels_of(asked).items())
    now = held_out_of(asked)
    # A mask that was taken away decides as much as one that came.
    gone = {n for n in scores.held_out if stem_of(n) in asked} - now.keys()
    files = any(scores.held_out.get(n) != d for n, d in now.items() if not is_key(n))
    return bool(scores.views) and (others or files or bool(gone))


def lacks_key(scores: stored.ScoreFile, sets: Mapping[str, SetData]) -> bool:
    """Check whether scores were made before a query set had its key."""
    asked = {name: data for name, data in sets.items() if name in scores.runs}
    return any(is_key(n) and n not in scores.held_out for n in held_out_of(asked))


def list_earlier(session: Session, sets: Mapping[str, SetData]) -> tuple[str, ...]:
    """The published entries, baselines too, whose scores were made with earlier labels."""
    return tuple(
        submission.id
        for submission in session.history().submissions.values()
        if submission.status == "published"
        and (scores := stored.read_stored(session.vault, submission)) is not None
        and is_earlier(scores, sets)
    )


def _report(scan: Scan) -> stored.RunReport:
    facts = scan.facts
    return stored.RunReport(
        digest=str(scan.digest),
        problems=scan.problems,
        counts=dict(scan.counts),
        queries=facts.queries,
        documents=facts.documents,
        queries_tied=facts.queries_tied,
        queries_displaced=facts.queries_displaced_top,
        repeated_ranks=facts.repeated_ranks,
        first_ranks={str(rank): count for rank, count in facts.first_ranks.items()},
    )
