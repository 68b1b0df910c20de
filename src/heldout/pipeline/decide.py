"""A person's decisions: publish, reject, ask, correct, extend. Each is one event.

The event is the decision. What follows from it (files, page, commit) is made by `rebuild`, so a
crash after the event costs nothing: the next call finds it in the log and goes on from there.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date

from heldout.board.history import Identity, Submission, identity_fields
from heldout.board.release import release_score
from heldout.board.spec import BoardSpec
from heldout.errors import InputError, Problem
from heldout.pipeline.desk import Desk
from heldout.pipeline.review import Review, ScoreFile
from heldout.pipeline.score import ViewScore

__all__ = [
    "Decision",
    "ask",
    "check_published",
    "correct",
    "extend",
    "publish",
    "publish_baseline",
    "reject",
    "released",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What became of a submission.

    Attributes:
        id: the submission.
        done: whether it stands now as was asked for.
        done_before: whether it stood so before this call.
        why_not: what stands against it.
    """

    id: str
    done: bool
    done_before: bool = False
    why_not: tuple[str, ...] = ()


def publish(desk: Desk, result: Review, *, why: str) -> Decision:
    """Release the scores of a reviewed submission; cannot be taken back.

    Args:
        desk: its lock is held, so that two organisers cannot overshoot a quota together.
        result: a review made under the same lock.
        why: the reason, needed where a finding asks for one.
    """
    submission = result.submission
    if submission.status == "published":
        return Decision(id=submission.id, done=True, done_before=True)
    obstacles = _obstacles(result, why)
    if obstacles or result.manifest is None:
        return Decision(id=submission.id, done=False, why_not=obstacles)
    manifest = result.manifest
    until = manifest.embargo_until
    spec = desk.spec_at(submission.received)
    public = {
        **released(spec, result.scores.views),
        "type": manifest.type,
        "embargo_until": None if until is None else until.isoformat(),
        "revision": manifest.revision,
    }
    sealed = {
        "identity": identity_fields(manifest),
        "why": why,
        "findings": [finding.rule for finding in result.findings],
    }
    desk.log("published", submission.id, public=public, sealed=sealed)
    return Decision(id=submission.id, done=True)


def publish_baseline(
    desk: Desk, name: str, scores: Mapping[str, ViewScore], identity: Identity
) -> Decision:
    """Show an organiser's own run: no rank, no trophy, no quota.

    Raises:
        InputError: the name is taken.
    """
    before = desk.history().submissions.get(name)
    if before is not None and before.baseline and before.identity == identity:
        return Decision(id=name, done=True, done_before=True)
    if before is not None:
        raise InputError(_refusal("id-taken", name, before, "a name of its own"))
    public = {**released(desk.repository.spec(), scores), "type": "baseline", "embargo_until": None}
    desk.log("baseline", name, public=public, sealed={"identity": asdict(identity)})
    return Decision(id=name, done=True)


def reject(desk: Desk, submission_id: str, *, why: str) -> Decision:
    """Refuse a submission; the reason is public, for the team reads it there."""
    submission = desk.find(submission_id)
    if submission.status == "rejected":
        return Decision(id=submission_id, done=True, done_before=True)
    _check_pending(submission)
    desk.log("rejected", submission_id, public={"why": why})
    return Decision(id=submission_id, done=True)


def ask(desk: Desk, submission_id: str, *, text: str) -> Decision:
    """Put a question to the team; it is public, and the submission waits for an answer."""
    submission = desk.find(submission_id)
    if submission.status == "asked" and submission.why == text:
        return Decision(id=submission_id, done=True, done_before=True)
    _check_pending(submission)
    desk.log("asked", submission_id, public={"why": text})
    return Decision(id=submission_id, done=True)


def correct(desk: Desk, submission_id: str, scores: ScoreFile, *, why: str) -> Decision:
    """Publish an erratum: scores made anew with today's labels and code, and the reason.

    Raises:
        InputError: the submission is not published, or its run has errors now.
    """
    submission = check_published(desk, submission_id)
    if not scores.views:
        expected = "a run that can be scored by today's code"
        raise InputError(_refusal("not-scored", submission_id, submission, expected))
    now = released(desk.spec_at(submission.received), scores.views)
    same = now["scores"] == dict(submission.scores)
    if same and submission.errata and submission.errata[-1][1] == why:
        return Decision(id=submission_id, done=True, done_before=True)
    desk.log("corrected", submission_id, public={**now, "why": why})
    return Decision(id=submission_id, done=True)


def check_published(desk: Desk, submission_id: str) -> Submission:
    """A submission whose score was released.

    Raises:
        InputError: it is not published.
    """
    submission = desk.find(submission_id)
    if submission.status != "published":
        raise InputError(_refusal("not-published", submission_id, submission, "a published entry"))
    return submission


def extend(desk: Desk, submission_id: str, *, until: date, why: str) -> Decision:
    """Move the end of an embargo, for a reason.

    Raises:
        InputError: the entry is not published under an embargo that still holds.
    """
    submission = desk.find(submission_id)
    if submission.status == "published" and submission.embargo_until == until:
        return Decision(id=submission_id, done=True, done_before=True)
    today = desk.now.date()
    end = submission.embargo_until
    if submission.status != "published" or end is None or end <= today or until <= today:
        expected = "a published entry under an embargo, and a day to come"
        raise InputError(_refusal("no-embargo", submission_id, submission, expected))
    desk.log("extended", submission_id, public={"embargo_until": until.isoformat(), "why": why})
    return Decision(id=submission_id, done=True)


def released(spec: BoardSpec, views: Mapping[str, ViewScore]) -> dict[str, dict[str, object]]:
    """What leaves the vault: the public views' scores by the release rule, and their n."""
    public = [view.name for view in spec.public_views]
    scores: dict[str, object] = {
        name: release_score(views[name].mean, decimals=spec.decimals) for name in public
    }
    return {"scores": scores, "queries": {name: views[name].n for name in public}}


def _obstacles(result: Review, why: str) -> tuple[str, ...]:
    submission = result.submission
    if not submission.pending:
        return (f"it is {submission.status}",)
    against = tuple(f"{f.rule}: {f.evidence}" for f in result.stands_against)
    if not against and not result.scores.views:
        return ("there is no score: a run has errors",)
    if against or not result.needs_reason or why.strip():
        return against
    asks = ", ".join(finding.rule for finding in result.needs_reason)
    return (f"a reason is needed (--why) for: {asks}",)


def _check_pending(submission: Submission) -> None:
    if not submission.pending:
        raise InputError(
            _refusal("already-decided", submission.id, submission, "one that waits for a decision")
        )


def _refusal(code: str, name: str, submission: Submission, expected: str) -> Problem:
    found = "a baseline" if submission.baseline else f"a submission that is {submission.status}"
    return Problem(code=code, path=name, found=found, expected=expected)
