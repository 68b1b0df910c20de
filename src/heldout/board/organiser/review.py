"""Opens, scores and judges what was received; decides nothing and publishes nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heldout.board.log.history import Amendment, list_amendments, list_proposed
from heldout.board.log.manifest import Manifest, identity_fields
from heldout.board.log.submission import Submission
from heldout.board.policy.checks import Case, Finding, QuotaState, judge, quota_state
from heldout.board.policy.similarity import compare_seeds
from heldout.board.scores import compared, rescoring, stored
from heldout.board.scores.score import ViewScore, open_manifest, open_signed, signature_field
from heldout.board.scores.session import Session
from heldout.board.scores.sets import SetData
from heldout.ids import SubmissionId
from heldout.scoring.cache import code_version


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
        lost: earlier submissions of which the vault keeps nothing that can be read or made again,
            so that it could not be held against them.
    """

    submission: Submission
    manifest: Manifest | None
    scores: stored.ScoreFile
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


def review(session: Session, sets: Mapping[str, SetData], submission_id: str) -> Review:
    """Open, score and judge one submission; what was done before is not done again.

    In a shared vault what waits for a decision is always scored again: whoever can write to its
    remote could have left other scores there.

    Raises:
        InputError: the log knows no such submission.
    """
    submission = session.find(submission_id)
    scores = stored.read_stored(session.vault, submission)
    known = scores is not None and _is_known(session, submission, scores, sets)
    gone = {d for d in submission.scored_files.values() if not session.vault.has_sealed(d)}
    if scores is None and session.vault.unneeded_runs(gone.__contains__):  # rejected or withdrawn
        why = f"its sealed run was removed when it was {submission.status}"
        scores = stored.ScoreFile(
            files=dict(submission.scored_files), code_version=code_version(), refusal=why
        )
    elif scores is None or not known:
        scores = rescoring.open_and_score(session, sets, submission)
        if not _may_be_ours(session, scores):
            rescoring.store_outcome(session, submission, scores)
    manifest = None
    if not scores.refusal and all(one.code == "not-run" for one in scores.metadata_problems):
        spec = session.spec_at(submission.received)
        manifest = open_manifest(session.vault, spec, submission.as_proposed)[1]
    if not _may_be_ours(session, scores) and _is_news(session, submission):
        _log(session, submission, manifest)
        submission = session.find(submission_id)
    findings, quota, lost = _judge(session, sets, submission, manifest, scores)
    return Review(
        submission=submission,
        manifest=manifest,
        scores=scores,
        findings=findings,
        quota=quota,
        lost=lost,
        done_before=known,
        amendments=list_amendments(
            [*session.vault.log().select_about([submission_id])], submission_id
        ),
        proposed=list_proposed(submission),
    )


def review_all(
    session: Session, sets: Mapping[str, SetData], ids: Sequence[str]
) -> tuple[Review, ...]:
    """Review submissions in the order in which they came, so that names too are compared.

    Returns:
        The reviews in the order of the ids.

    Raises:
        InputError: the log knows one of them not; nothing was opened.
    """
    asked = {session.find(name).id for name in ids}
    order = [name for name in session.history().submissions if name in asked]
    found = {name: review(session, sets, name) for name in order}
    return tuple(found[name] for name in ids)


def _is_news(session: Session, submission: Submission) -> bool:
    """Check whether the log does not know yet that it was scored, or with what outcome."""
    again = submission.pending and session.vault.result_digests(submission.id) != submission.stored
    return submission.status == "received" or again


def _may_be_ours(session: Session, scores: stored.ScoreFile) -> bool:
    """Check whether a refusal may only mean that our key is not among the recipients."""
    return bool(scores.refusal) and session.vault.is_shared()


def _is_known(
    session: Session, submission: Submission, scores: stored.ScoreFile, sets: Mapping[str, SetData]
) -> bool:
    """Check whether what is kept can be gone by."""
    if not submission.pending:  # decided by these scores
        return True
    as_logged = submission.stored in ({}, session.vault.result_digests(submission.id))
    return as_logged and not session.vault.is_shared() and _holds(scores, submission, sets)


def _holds(scores: stored.ScoreFile, submission: Submission, sets: Mapping[str, SetData]) -> bool:
    """Check whether scoring again could only give the same."""
    return (
        scores.files == dict(submission.scored_files)
        and not rescoring.is_earlier(scores, sets)
        and not rescoring.lacks_key(scores, sets)
        and scores.code_version == code_version()
    )


def show_score(session: Session, result: Review) -> Mapping[str, ViewScore]:
    """The true scores of a reviewed submission, once it is logged that somebody looked.

    That of the final is not among them: its finalists are named before anybody knows it.
    """
    if result.submission.pending and not result.submission.score_shown:
        session.log("score-shown", result.submission.id)
    view = session.spec().finalists_view
    final = "" if view is None else view.name
    return {name: score for name, score in result.scores.views.items() if name != final}


def _log(session: Session, submission: Submission, manifest: Manifest | None) -> None:
    results = {"kept": session.vault.result_digests(submission.id)}
    if manifest is None:
        session.log("reviewed", submission.id, sealed=results)
        return
    identity = identity_fields(manifest)
    if manifest.withdrawn:  # before anybody took it in
        sealed = {"identity": identity, "revision": manifest.revision}
        session.log("withdrawn", submission.id, public={"files": {}}, sealed=sealed)
        return
    until = manifest.embargo_until
    spec = session.spec_at(submission.received)
    signature = None
    if spec.registration is not None:
        signature = open_signed(session.vault, spec, submission)[2]
    sealed = {
        "identity": identity,
        "type": manifest.type,
        "embargo_until": None if until is None else until.isoformat(),
        "revision": manifest.revision,
        **signature_field(spec, signature),
        **results,
    }
    session.log("reviewed", submission.id, sealed=sealed)


def _judge(
    session: Session,
    sets: Mapping[str, SetData],
    submission: Submission,
    manifest: Manifest | None,
    scores: stored.ScoreFile,
) -> tuple[tuple[Finding, ...], QuotaState | None, tuple[str, ...]]:
    """The findings, the team's quota, and what it could not be compared with."""
    if manifest is None:
        reasons = [scores.refusal] if scores.refusal else [str(p) for p in scores.metadata_problems]
        rule = "sealed" if scores.refusal else "metadata"
        found = tuple(Finding(rule=rule, severity="reject", evidence=r) for r in reasons)
        return found, None, ()
    spec = session.spec_at(submission.received)
    history = session.history()
    repaired: dict[str, bool] = {}

    def repair(name: str) -> bool:
        if name not in repaired:
            repaired[name] = rescoring.repair_stored(session, sets, name)
        return repaired[name]

    signatures = compared.signatures_of(session.vault, submission, repair=repair)
    case = Case(
        spec=spec,
        history=history,
        id=SubmissionId(submission.id),
        received=submission.received,
        manifest=manifest,
        problems={name: run.problems for name, run in scores.runs.items()},
        entrants=compared.list_others(session.vault, history, submission, repair=repair),
        key=scores.key,
        reader="organiser",
        likenesses=compared.compare_runs(session.vault, history, submission, repair=repair),
        distances=compared.list_distances(session.vault, history, spec, scores),
        seeds=compare_seeds(signatures),
    )
    quota = quota_state(history, manifest.team, spec, now=session.now)
    # What nobody has reviewed yet may be no run at all: its own review says why it does not open.
    waiting = {n for n, other in history.submissions.items() if other.status == "received"}
    lost = tuple(name for name, done in repaired.items() if not done and name not in waiting)
    waits = tuple(
        Finding(rule="not-run", severity="reject", evidence=f"{problem.found}: {problem.hint}")
        for problem in scores.metadata_problems
    )
    return (
        (*judge(case, again="" if submission.proposal is None else "renamed"), *waits),
        quota,
        lost,
    )
