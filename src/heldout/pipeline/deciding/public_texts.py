"""What organisers write about a submission under embargo: it is public at once, the team is not."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date

from heldout.board.log.manifest import Identity
from heldout.board.log.submission import Submission
from heldout.board.policy.disclosure import mentions
from heldout.errors import InputError, Problem, TrustError, quote
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.scoring.score import open_manifest

__all__ = ["check_text"]


def check_text(desk: Desk, text: str, *submissions: str, anyway: bool = False) -> None:
    """Refuse a question or a reason that tells who sent a submission under embargo.

    Of those that it is about, and of every other: a reason for one may name the team of another,
    name both of two entries that only the organisers know to be alike, or say that something is
    under embargo. A rejected or withdrawn one is never revealed, so its embargo counts as asked
    for.

    Args:
        desk: of the organiser.
        text: what the log would say in public, for good.
        submissions: ids that it is about; those that the log does not know are left to others.
        anyway: whether a person has looked and says that it tells nothing.

    Raises:
        InputError: `telling-text`; nothing was logged.
    """
    known = desk.history().submissions
    about = [known[name] for name in submissions if name in known]
    others = [one for one in known.values() if one not in about and one.is_hidden(desk.now.date())]
    found = [_find(desk, text, submission) for submission in (*about, *others)]
    found += [_find_tie(desk, text, submission) for submission in about]
    problems = [problem for problem in found if problem is not None]
    if problems and not anyway:
        raise InputError(problems)


def _find_tie(desk: Desk, text: str, submission: Submission) -> Problem | None:
    """What ties a submission to another, while an embargo hides who sent either."""
    day = desk.now.date()
    known = desk.history().submissions.values()
    hidden = [one for one in known if one.is_hidden(day) and not one.baseline]
    named = [one for one in known if one.id != submission.id and _names_id(text, one.id)]
    tied = next((one for one in named if submission in hidden or one in hidden), None)
    said = re.search(r"\bembargo\w*", text, re.IGNORECASE)
    if tied is not None:
        found = f"it names {tied.id} beside it, and an embargo hides who sent one of them"
    elif said is not None and hidden:
        found = f"it says {quote(said[0])}: whoever sent it would learn of an entry that is hidden"
    else:
        return None
    return Problem(
        code="telling-text",
        path=submission.id,
        found=found,
        expected="a text that is public at once and tells of no entry under embargo",
        hint="write it without that; if it tells nothing: --yes",
    )


def _names_id(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE) is not None


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


def _senders(desk: Desk, submission: Submission) -> Iterator[tuple[Identity, date | None]]:
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
