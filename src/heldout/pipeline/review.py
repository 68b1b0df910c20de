"""Opens, scores and judges what was received; decides nothing and publishes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heldout.board.amendments import Amendment, list_amendments, list_proposed
from heldout.board.case import Case
from heldout.board.held_out import stem_of
from heldout.board.history import Submission, identity_fields
from heldout.board.manifest import Manifest
from heldout.board.policy import NAME_RULES, Finding, judge
from heldout.board.quota import QuotaState, quota_state
from heldout.board.seeds import compare_seeds
from heldout.board.spec import BoardSpec
from heldout.errors import HeldoutError, InputError, TrustError
from heldout.ids import SubmissionId, query_set_of
from heldout.pipeline.comparing import compare_runs, list_others, signatures_of
from heldout.pipeline.desk import Desk
from heldout.pipeline.low_start import list_distances
from heldout.pipeline.score import (
    Opened,
    ViewScore,
    open_manifest,
    open_signed,
    open_submission,
    score_run,
    score_views,
    signature_field,
)
from heldout.pipeline.score_files import (
    RunReport,
    ScoreFile,
    digest_scores,
    keep_scores,
    read_kept,
)
from heldout.pipeline.sets import SetData, load_sets
from heldout.pipeline.signatures import keep_signatures
from heldout.store.cache import code_version
from heldout.trec.runs import Scan

__all__ = [
    "Review",
    "is_earlier",
    "list_earlier",
    "rescore",
    "review",
    "score_baseline",
    "show_score",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A submission with everything that a person decides by.

    Attributes:
        submission: as the log knows it now.
        manifest: its metadata, `None` where it does not open or is wrong.
        scores: what opening it gave.
        findings: what the policy of its day says.
        quota: the team's, `None` without a manifest.
        done_before: whether an earlier call had opened and scored it.
        amendments: what the team changed in its metadata since it was first opened.
        proposed: what the team of a published entry asks to change; `manifest` and `findings` are
            then those of what is asked for.
        lost: earlier submissions of which the vault keeps nothing that can be read or made anew,
            so that it could not be held against them.
    """

    submission: Submission
    manifest: Manifest | None
    scores: ScoreFile
    findings: tuple[Finding, ...]
    quota: QuotaState | None
    done_before: bool
    amendments: tuple[Amendment, ...] = ()
    proposed: tuple[Amendment, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def stands_against(self) -> tuple[Finding, ...]:
        """The findings that forbid publication."""
        return tuple(finding for finding in self.findings if finding.severity == "reject")

    @property
    def needs_reason(self) -> tuple[Finding, ...]:
        """The findings that a person has to answer with a reason."""
        return tuple(finding for finding in self.findings if finding.severity == "review")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    findings: tuple[Finding, ...]
    quota: QuotaState | None = None
    lost: tuple[str, ...] = ()


def review(desk: Desk, sets: Mapping[str, SetData], submission_id: str) -> Review:
    """Open, score and judge one submission; what was done before is not done again.

    In a shared vault what waits for a decision is always scored anew: whoever can write to its
    remote could have left other scores there.

    Raises:
        InputError: the log knows no such submission.
    """
    submission = desk.find(submission_id)
    scores = read_kept(desk.vault, submission)
    known = scores is not None and _is_known(desk, submission, scores, sets)
    if scores is None or not known:
        scores = _open(desk, sets, submission)
        if not _may_be_ours(desk, scores):
            _keep(desk, submission, scores)
    manifest = None if scores.refusal or scores.metadata_problems else _manifest(desk, submission)
    if not _may_be_ours(desk, scores) and _is_news(desk, submission):
        _log(desk, submission, manifest)
        submission = desk.find(submission_id)
    judged = _judge(desk, sets, submission, manifest, scores)
    return Review(
        submission=submission,
        manifest=manifest,
        scores=scores,
        findings=judged.findings,
        quota=judged.quota,
        lost=judged.lost,
        done_before=known,
        amendments=list_amendments(desk.vault.entries(), submission_id),
        proposed=list_proposed(submission),
    )


def _keep(desk: Desk, submission: Submission, scores: ScoreFile) -> None:
    """Store scores; nothing but what an event vouches for once it was decided."""
    if submission.pending or submission.kept.get("scores") in (None, digest_scores(scores)):
        keep_scores(desk.vault, submission.id, scores)


def _is_news(desk: Desk, submission: Submission) -> bool:
    """Whether the log does not know yet that it was scored, or with what outcome."""
    again = submission.pending and desk.vault.kept(submission.id) != submission.kept
    return submission.status == "received" or again


def _mend(desk: Desk, sets: Mapping[str, SetData], submission_id: str) -> bool:
    """Make damaged files of an earlier submission anew; whether that was possible.

    Nothing that is damaged stands in the way of another submission.
    """
    submission = desk.history().submissions[submission_id]
    try:
        scores = rescore(desk, sets, submission_id)
    except HeldoutError:
        return False
    if scores.refusal or scores.metadata_problems:
        return False
    _keep(desk, submission, scores)
    return True


def _may_be_ours(desk: Desk, scores: ScoreFile) -> bool:
    """Whether a refusal may only mean that this organiser's key is not among the recipients."""
    return bool(scores.refusal) and desk.vault.is_shared()


def _is_known(
    desk: Desk, submission: Submission, scores: ScoreFile, sets: Mapping[str, SetData]
) -> bool:
    """Whether what is kept can be gone by."""
    if submission.status == "published":
        return True
    as_logged = submission.kept in ({}, desk.vault.kept(submission.id))
    return as_logged and not desk.vault.is_shared() and _holds(scores, submission, sets)


def _holds(scores: ScoreFile, submission: Submission, sets: Mapping[str, SetData]) -> bool:
    """Whether scoring again could only give the same."""
    return (
        scores.files == dict(submission.files)
        and not is_earlier(scores, sets)
        and scores.code_version == code_version()
    )


def show_score(desk: Desk, result: Review) -> Mapping[str, ViewScore]:
    """The true scores of a reviewed submission, once it is logged that somebody looked."""
    if result.submission.pending and not result.submission.score_shown:
        desk.log("score-shown", result.submission.id)
    return result.scores.views


def rescore(desk: Desk, sets: Mapping[str, SetData], submission_id: str) -> ScoreFile:
    """Open and score an entry anew, with the labels and the code of today; nothing is kept.

    Args:
        desk: of the organiser.
        sets: the board's query sets.
        submission_id: of a submission, or of a baseline whose runs the vault has.

    Raises:
        InputError: a baseline's run has errors.
    """
    submission = desk.history().submissions[submission_id]
    if not submission.baseline:
        return _open(desk, sets, submission)
    spec = desk.spec_at(submission.received)
    runs = {name: desk.vault.sealed(digest) for name, digest in submission.runs.items()}
    return score_baseline(spec, _sets_of(desk, spec, sets), runs)


def score_baseline(
    spec: BoardSpec, sets: Mapping[str, SetData], runs: Mapping[str, Path]
) -> ScoreFile:
    """Score an organiser's own runs.

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
            data = sets[query_set_of(name)]
            scans[name] = score_run(spec, data, file, path=path.name, submission_type="")
    errors = [p for scan in scans.values() for p in scan.problems if p.severity == "error"]
    if errors:
        raise InputError(errors)
    return ScoreFile(
        files={name: str(scan.digest) for name, scan in scans.items()},
        code_version=code_version(),
        runs={name: _report(scan) for name, scan in scans.items()},
        views=dict(score_views(spec, sets, scans)),
        labels=_labels(sets),
        held_out=_held_out(sets),
    )


def is_earlier(scores: ScoreFile, sets: Mapping[str, SetData]) -> bool:
    """Whether scores were made with other labels than those of today; so too if nobody knows."""
    asked = {name: data for name, data in sets.items() if name in scores.runs}
    others = any(scores.labels.get(key) != digest for key, digest in _labels(asked).items())
    now = _held_out(asked)
    # A mask that was taken away decides as much as one that came.
    gone = {n for n in scores.held_out if stem_of(n) in asked} - now.keys()
    files = any(scores.held_out.get(n) != d for n, d in now.items() if scores.held_out or "." in n)
    return bool(scores.views) and (others or files or bool(gone))


def list_earlier(desk: Desk, sets: Mapping[str, SetData]) -> tuple[str, ...]:
    """The published entries, baselines too, whose scores were made with earlier labels."""
    return tuple(
        submission.id
        for submission in desk.history().submissions.values()
        if submission.status == "published"
        and (scores := read_kept(desk.vault, submission)) is not None
        and is_earlier(scores, sets)
    )


def _sets_of(desk: Desk, spec: BoardSpec, sets: Mapping[str, SetData]) -> Mapping[str, SetData]:
    """The query sets by the rules of a day; mostly those of today."""
    today = desk.repository.spec().sets
    same = all(today.get(name) == queries for name, queries in spec.sets.items())
    if same and all(sets[view.set].can_score(view) for view in spec.views):
        return {name: sets[name] for name in spec.sets}
    return load_sets(desk.repository, spec, vault=desk.vault)


def _labels(sets: Mapping[str, SetData]) -> dict[str, str]:
    """Set, or set/labels -> SHA-256 of the labels."""
    return {
        f"{name}/{labels}" if labels else name: str(digest)
        for name, data in sets.items()
        for labels, digest in data.digests.items()
    }


def _held_out(sets: Mapping[str, SetData]) -> dict[str, str]:
    """Every file of the vault that scores on these sets depend on -> SHA-256."""
    return {name: digest for data in sets.values() for name, digest in data.held_out.items()}


def _open(desk: Desk, sets: Mapping[str, SetData], submission: Submission) -> ScoreFile:
    spec = desk.spec_at(submission.received)
    sets = _sets_of(desk, spec, sets)
    outcome = ScoreFile(
        files=dict(submission.files),
        code_version=code_version(),
        labels=_labels(sets),
        held_out=_held_out(sets),
    )
    try:
        opened = open_submission(desk.vault, spec, sets, submission)
    except TrustError as error:
        outcome = msgspec.structs.replace(outcome, refusal=str(error))
    except InputError as error:
        outcome = msgspec.structs.replace(outcome, metadata_problems=error.problems)
    else:
        outcome = _describe(outcome, opened)
        logged = submission.kept.get("signatures")
        if logged is None or desk.vault.kept(submission.id).get("signatures") != logged:
            keep_signatures(desk.vault, submission.id, opened.scans)
    return outcome


def _describe(outcome: ScoreFile, opened: Opened) -> ScoreFile:
    runs = {name: _report(scan) for name, scan in opened.scans.items()}
    return msgspec.structs.replace(
        outcome, runs=runs, views=dict(opened.scores), key=str(opened.key)
    )


def _report(scan: Scan) -> RunReport:
    facts = scan.facts
    return RunReport(
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


def _manifest(desk: Desk, submission: Submission) -> Manifest:
    spec = desk.spec_at(submission.received)
    _, manifest = open_manifest(desk.vault, spec, submission.as_proposed)
    return manifest


def _log(desk: Desk, submission: Submission, manifest: Manifest | None) -> None:
    kept = {"kept": desk.vault.kept(submission.id)}
    if manifest is None:
        desk.log("reviewed", submission.id, sealed=kept)
        return
    identity = identity_fields(manifest)
    if manifest.withdrawn:  # before anybody took it in
        sealed = {"identity": identity, "revision": manifest.revision}
        desk.log("withdrawn", submission.id, public={"files": {}}, sealed=sealed)
        return
    until = manifest.embargo_until
    spec = desk.spec_at(submission.received)
    signature = None
    if spec.registration is not None:
        signature = open_signed(desk.vault, spec, submission)[2]
    sealed = {
        "identity": identity,
        "type": manifest.type,
        "embargo_until": None if until is None else until.isoformat(),
        "revision": manifest.revision,
        **signature_field(spec, signature),
        **kept,
    }
    desk.log("reviewed", submission.id, sealed=sealed)


def _judge(
    desk: Desk,
    sets: Mapping[str, SetData],
    submission: Submission,
    manifest: Manifest | None,
    scores: ScoreFile,
) -> _Judged:
    if manifest is None:
        reasons = [scores.refusal] if scores.refusal else [str(p) for p in scores.metadata_problems]
        rule = "sealed" if scores.refusal else "metadata"
        found = tuple(Finding(rule=rule, severity="reject", evidence=r) for r in reasons)
        return _Judged(findings=found)
    spec = desk.spec_at(submission.received)
    history = desk.history()
    mended: dict[str, bool] = {}

    def mend(name: str) -> bool:
        if name not in mended:
            mended[name] = _mend(desk, sets, name)
        return mended[name]

    signatures = signatures_of(desk.vault, submission, mend=mend)
    case = Case(
        spec=spec,
        history=history,
        id=SubmissionId(submission.id),
        received=submission.received,
        manifest=manifest,
        problems={name: run.problems for name, run in scores.runs.items()},
        entrants=list_others(desk.vault, history, submission, mend=mend),
        key=scores.key,
        reader="organiser",
        likenesses=compare_runs(desk.vault, history, submission, mend=mend),
        distances=list_distances(desk.vault, history, spec, scores),
        seeds=compare_seeds(signatures),
    )
    quota = quota_state(history, manifest.team, spec, now=desk.now)
    lost = tuple(name for name, done in mended.items() if not done)
    only = None if submission.proposal is None else NAME_RULES
    return _Judged(findings=judge(case, only=only), quota=quota, lost=lost)
