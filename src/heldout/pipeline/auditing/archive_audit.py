"""Checks an archive of a board: what anybody can do who has nothing but the file.

Whoever made the archive may be an enemy: nothing in it is believed before it is checked, and what
cannot be checked is said.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from heldout.board.log.events import AFTER_CLOSING, Entry
from heldout.board.log.history import Submission
from heldout.board.rules.consent import may_open_runs
from heldout.board.rules.deadlines import list_moved
from heldout.board.rules.early_figures import list_early_finals
from heldout.board.rules.release import release_score, release_spread
from heldout.board.rules.spec import BoardSpec, View
from heldout.errors import HeldoutError, InputError, quote
from heldout.ids import query_set_of, run_name
from heldout.pipeline.auditing.archive_labels import (
    check_labels,
    labels_in_force,
    say_labels,
    tell_labels,
    uses_labels_in_force,
)
from heldout.pipeline.auditing.audit import FINAL_CHECKED, Audit, count_releases
from heldout.pipeline.auditing.measured_audit import check_measured, tell_measured
from heldout.pipeline.auditing.opening import list_agreed
from heldout.pipeline.auditing.replay import replay_releases
from heldout.pipeline.auditing.unpacked import Unpacked, unpack_archive
from heldout.pipeline.query_sets.sets import SetData
from heldout.pipeline.scoring.evidence import follows_on, make_evidence
from heldout.pipeline.scoring.mixed_labels import list_mixed, say_mixed, scored_with
from heldout.pipeline.scoring.score import score_run, score_views
from heldout.pipeline.scoring.score_checks import are_equal_scores, is_score_of
from heldout.pipeline.scoring.score_files import ScoreFile
from heldout.pipeline.scoring.telling import released

__all__ = ["audit_archive"]

_CHECKED = ("files against the manifest", "chain, order, times and openings of the log")
_FOLLOWS = "released scores against the scores by query"
_NONSENSE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def audit_archive(path: Path, *, public: Sequence[Entry] = ()) -> Audit:
    """Check that an archive is whole and that everything released follows from what is in it.

    Args:
        path: the archive.
        public: the board's public log, if it is at hand: the archive's must be the same.
    """
    with TemporaryDirectory(prefix="heldout-archive-") as name:
        try:
            return _audit(path, Path(name), public)
        except InputError as error:
            return Audit(events=0, checked=(), faults=tuple(map(str, error.problems)))
        except HeldoutError as error:
            return Audit(events=0, checked=(), faults=(str(error),))
        except _NONSENSE as error:  # an enemy's file has no end of ways to make no sense
            told = f"the archive cannot be gone over: {type(error).__name__} {quote(str(error))}"
            return Audit(events=0, checked=(), faults=(told,))


def _audit(path: Path, folder: Path, public: Sequence[Entry]) -> Audit:
    unpacked = unpack_archive(path, folder)
    faults = [*_check_public(unpacked.log, public), *_check(unpacked)]
    replay = replay_releases(
        unpacked.log, unpacked.evidence, unpacked.key, cache(unpacked.query_ids)
    )
    runs = [s for s in unpacked.published if unpacked.runs(s)]
    checked = [*_CHECKED, *say_labels(unpacked), _FOLLOWS]
    checked.append(f"{count_releases(replay)} by the release rule of the day")
    final = unpacked.history.final
    checked += [FINAL_CHECKED] * (final is not None and final.opened is not None)
    checked += ["what was told of the ranking, computed again"] * bool(unpacked.history.measured)
    checked += [f"scores by query of {len(runs)} against their runs"] * bool(runs)
    checked += ["the log against the board's public one"] * bool(public)
    return Audit(
        events=len(unpacked.log),
        checked=tuple(checked),
        faults=(*faults, *replay.faults),
        notes=(*_tell(unpacked), *replay.notes),
    )


def _check_public(log: Sequence[Entry], public: Sequence[Entry]) -> Iterator[str]:
    if not public:
        return
    if log[0].hash != public[0].hash:
        yield "this is the archive of another board than the one that you stand in"
        return
    for ours, theirs in zip(log, public, strict=False):
        if ours.hash != theirs.hash:
            yield f"event {ours.event.seq} is another one than in the board's public log"
            return
    if len(log) < len(public):
        later = {entry.event.kind for entry in public[len(log) :]}
        if not later <= AFTER_CLOSING:
            yield f"the board's public log has {len(public) - len(log)} events that this log lacks"


def _check(unpacked: Unpacked) -> Iterator[str]:
    yield from list_moved(unpacked.history)
    yield from list_early_finals(unpacked.history)
    public = unpacked.history.files or {}
    for name in sorted(public.keys() & unpacked.names):
        if unpacked.digest(name) != public[name]:
            yield f"{quote(name)} is not the file that the log has"
    wrong_labels = [*_check_closing(unpacked.log), *check_labels(unpacked)]
    yield from wrong_labels
    if wrong_labels:
        return
    for submission in unpacked.published:
        faults = [*_check_scores(unpacked, submission)]
        yield from faults or _check_runs(unpacked, submission)
    yield from _check_mixed(unpacked)
    yield from _check_final(unpacked)
    yield from check_measured(unpacked)
    named = {s.id for s in unpacked.published}
    for name in sorted(unpacked.names):
        top, _, rest = name.partition("/")
        owner = rest.removesuffix(".json") if top == "scores" else rest.partition("/")[0]
        if top in ("scores", "runs") and owner not in named:
            yield f"{quote(name)} belongs to nothing that was published"


def _check_mixed(unpacked: Unpacked) -> Iterator[str]:
    """All scores of a view were made with the same labels."""
    scored = [s for s in unpacked.published if unpacked.has_scores(s)]
    mixed = list_mixed(
        one
        for s in scored
        for one in scored_with(unpacked.history, s, unpacked.specs[s.id], unpacked.scores(s))
    )
    yield from map(say_mixed, mixed)


def _check_final(unpacked: Unpacked) -> Iterator[str]:
    """The finalists' scores by query are those that the final was opened with."""
    final = unpacked.history.final
    if final is None or final.opened is None:
        return
    for name, digest in final.opened.evidence.items():
        submission, spec = unpacked.history.submissions[name], unpacked.specs[name]
        view = next((view for view in spec.views if view.name == final.view), None)
        if view is None or not unpacked.has_scores(submission):
            yield f"the scores by query of {quote(name)} on the final view are missing"
            continue
        now = make_evidence(name, view, unpacked.scores(submission))
        if not follows_on(unpacked.evidence(digest), now, labels_in_force(unpacked, submission)):
            yield f"the final was not opened with the scores of {quote(name)} that are here"


def _check_closing(log: Sequence[Entry]) -> Iterator[str]:
    if not any(entry.event.kind == "closed-board" for entry in log):
        yield "the log does not say that the board was closed"


def _check_scores(unpacked: Unpacked, submission: Submission) -> Iterator[str]:
    """What was released follows from the scores by query, and these are of the judged queries."""
    name = quote(submission.id)
    if not unpacked.has_scores(submission):
        if not submission.baseline or submission.runs:
            yield f"the scores by query of {name} are missing"
        return
    spec = unpacked.specs[submission.id]
    scores = unpacked.scores(submission)
    sets = unpacked.sets_of(spec, scores)
    views = {view.name: scores.views.get(view.name) for view in spec.views}
    wrong = [
        view.name
        for view in spec.views
        if not is_score_of(view, views[view.name])
        or (sets is not None and _outside(sets[view.set], spec, view, scores))
        or (sets is None and _unasked(unpacked.sets(spec)[view.set], scores, view))
    ]
    if wrong:
        yield f"the scores by query of {name} are not those of its queries: {', '.join(wrong)}"
        return
    if sets is None and submission.evidence:  # since there is such a thing, all versions are kept
        yield f"the labels that {name} was scored with are not here, or what else was held out"
        return
    for view in spec.views:
        if fault := _differs(unpacked, submission, view, scores):
            yield f"{name} was {fault}, in view {view.name}"
    if not _follows(spec, submission, scores):
        yield f"the released score of {name} does not follow from its scores by query"


def _differs(
    unpacked: Unpacked, submission: Submission, view: View, scores: ScoreFile
) -> str | None:
    """Why scores by query cannot be what was told: by other labels, or made anew in silence."""
    if not uses_labels_in_force(unpacked, submission, view, scores):
        return "scored with labels that nobody committed to, or that were not in force"
    logged = submission.evidence.get(view.name)
    if logged is None:
        return None
    now, force = make_evidence(submission.id, view, scores), labels_in_force(unpacked, submission)
    same = follows_on(unpacked.evidence(logged), now, force)
    return None if same else "not told for the scores by query that are here"


def _follows(spec: BoardSpec, submission: Submission, scores: ScoreFile) -> bool:
    """Whether the release rule gives just what was released; of a Ladder, where it told a score.

    What a Ladder held back depends on what the team had been told before: the replay goes over it.
    """
    held = () if submission.baseline else submission.untold
    # The replay draws noise again, for all that an event says what it was told for.
    noisy = {v: text for v, text in submission.scores.items() if v in submission.evidence}
    told = released(spec, scores.views, held=held, noisy=noisy)
    untold = {view.name for view in spec.public_views} - told["scores"].keys()
    if {*submission.untold} != untold or submission.final.keys() - {
        view.name for view in spec.final_views
    }:
        return False
    final = {name: scores.views[name] for name in submission.final}
    texts = {n: release_score(one.mean, decimals=spec.decimals) for n, one in final.items()}
    counts = {**told["queries"], **{name: one.n for name, one in final.items()}}
    same = (told["scores"], texts) == (submission.scores, submission.final)
    return same and counts == submission.counts and _spreads_follow(spec, submission, scores)


def _spreads_follow(spec: BoardSpec, submission: Submission, scores: ScoreFile) -> bool:
    """Whether the number of seeds and their spread are those of the seeds' own means."""
    views = {name: scores.views[name] for name in (*submission.scores, *submission.final)}
    texts = {
        name: release_spread(one.seeds, decimals=spec.decimals)
        for name, one in views.items()
        if one.seeds and spec.view(name).noise is None
    }
    seeds = {len(one.seeds) or 1 for one in views.values()}
    return texts == submission.spreads and seeds <= {submission.seeds}


def _unasked(data: SetData, scores: ScoreFile, view: View) -> bool:
    """Whether there are scores of queries that the set does not have."""
    return not scores.views[view.name].per_query.keys() <= data.queries.texts.keys()


def _outside(data: SetData, spec: BoardSpec, view: View, scores: ScoreFile) -> bool:
    """Whether the queries are others than those that count by the labels it was scored with."""
    judged = {query for query, grades in data.judgments_of(view).items() if grades}
    counted = judged - data.excluded
    given = scores.views[view.name]
    if view.facets is not None:
        facets = data.files.facets[view.facets]
        counted &= {query for group in given.groups for query in facets.get(group, ())}
    n = judged if spec.denominator == "all" else counted
    defined = sum(value is not None for value in given.per_query.values())
    undefined = len(given.per_query) - defined
    return given.per_query.keys() != counted or given.n != len(n) - undefined


def _check_runs(unpacked: Unpacked, submission: Submission) -> Iterator[str]:
    """The scores by query follow from the runs, where these are here."""
    runs = unpacked.runs(submission)
    spec = unpacked.specs[submission.id]
    named = {run_name(n, s) for n in spec.sets for s in range(1, submission.seeds + 1)}
    if set(runs) != (named if unpacked.shows_runs(submission) else set()):
        yield f"the runs of {quote(submission.id)} in the archive are not those that are opened"
        return
    agreed = list_agreed(unpacked.log)
    if runs and not may_open_runs(unpacked.history, submission, agreed=agreed):
        yield f"the runs of {quote(submission.id)} are opened, though nobody agreed to that"
        return
    for name in runs if submission.baseline else ():
        if submission.runs.get(name) != unpacked.digest(runs[name]):
            yield f"{quote(runs[name])} is not the run that was logged"
            return
    if runs:
        yield from _rescore(unpacked, submission, spec, runs)


def _rescore(
    unpacked: Unpacked, submission: Submission, spec: BoardSpec, runs: Mapping[str, str]
) -> Iterator[str]:
    kept = unpacked.scores(submission)
    sets = unpacked.sets_of(spec, kept)
    if sets is None:
        return
    kind = "" if submission.baseline or submission.type is None else submission.type
    scans = {}
    for name, file in runs.items():
        with (unpacked.folder / file).open("rb") as stream:
            data = sets[query_set_of(name)]
            scans[name] = score_run(spec, data, stream, path=file, submission_type=kind)
    now = score_views(spec, sets, scans)
    for view in spec.views:
        if view.name not in now or not are_equal_scores(now[view.name], kept.views[view.name]):
            yield f"the runs of {quote(submission.id)} give other scores in view {view.name}"


def _tell(unpacked: Unpacked) -> Iterator[str]:
    """What holds and is worth knowing, above all what could not be checked."""
    yield from tell_labels(unpacked)
    yield from tell_measured(unpacked)
    for submission in unpacked.published:
        yield from _tell_of(unpacked, submission)


def _tell_of(unpacked: Unpacked, submission: Submission) -> Iterator[str]:
    name = quote(submission.id)
    if not unpacked.has_scores(submission):
        yield f"{name} has no scores by query: its runs were not kept in those days"
        return
    if submission.identity is None:
        yield f"{name} is under an embargo until {submission.embargo_until}"
    spec = unpacked.specs[submission.id]
    scores = unpacked.scores(submission)
    if not submission.evidence and unpacked.sets_of(spec, scores) is None:
        yield f"{name} was scored with labels that were changed later, and cannot be scored again"
