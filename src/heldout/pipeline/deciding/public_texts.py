"""What organisers write about a submission under embargo: it is public at once, the team is not."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import date

from heldout.board.log.manifest import Manifest
from heldout.board.log.submission import Identity, Submission
from heldout.board.policy.disclosure import mentions
from heldout.errors import InputError, Problem, TrustError
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.scoring.score import open_manifest

__all__ = ["check_text"]


def check_text(desk: Desk, text: str, *submissions: str, anyway: bool = False) -> None:
    """Refuse a question or a reason that tells who sent a submission under embargo.

    A rejected or withdrawn one is never revealed, so its embargo counts as asked for.

    Args:
        desk: of the organiser.
        text: what the log would say in public, for good.
        submissions: ids that it is about; those that the log does not know are left to others.
        anyway: whether a person has looked and says that it tells nothing.

    Raises:
        InputError: `telling-text`; nothing was logged.
    """
    known = desk.history().submissions
    found = [_find(desk, text, known[name]) for name in submissions if name in known]
    problems = [problem for problem in found if problem is not None]
    if problems and not anyway:
        raise InputError(problems)


def _find(desk: Desk, text: str, submission: Submission) -> Problem | None:
    for who, until in _senders(desk, submission):
        if until is None or until <= desk.now.date():
            continue
        evidence = mentions(text, who.team, who.institution, links=(who.paper, who.code))
        if evidence is not None:
            return Problem(
                code="telling-text",
                path=submission.id,
                found=evidence,
                expected=f"a text that is public at once and tells nobody before {until:%d %b %Y}",
                hint="write it without that; if it tells nothing: --yes",
            )
    return None


def _senders(
    desk: Desk, submission: Submission
) -> Iterator[tuple[Identity | Manifest, date | None]]:
    """Who sent it, by reviews and by what is not reviewed yet, and until when that is hidden."""
    if submission.identity is not None:
        yield submission.identity, submission.embargo_until
    if submission.proposal is not None and submission.proposal.identity is not None:
        yield submission.proposal.identity, submission.embargo_until
    if submission.status == "received":
        with suppress(TrustError, InputError):  # what does not open tells nobody
            spec = desk.spec_at(submission.received)
            _, manifest = open_manifest(desk.vault, spec, submission)
            yield manifest, manifest.embargo_until
