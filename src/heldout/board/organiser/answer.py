"""Answers a submission or registration where it was opened: what became of it, once per event.

The comment has what the page and the public log have at this moment, and no more. It can be
called again after a crash, or for a submission that was answered before: nothing is said twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from heldout.board.log.events import Entry
from heldout.board.policy.checks import Finding
from heldout.board.rules.parts import say_part
from heldout.board.rules.spec import BoardSpec
from heldout.board.scores.session import Desk
from heldout.board.standings.seasons import current_standings
from heldout.board.standings.standings import Row, project
from heldout.board.store.forges.comments import Comment, CommentKind, ScoreLine, format_comment
from heldout.board.store.forges.protocol import Forge, Handle, Outcome
from heldout.ids import Digest

_TOLD: Mapping[str, CommentKind] = {
    "received": "received",
    "asked": "asked",
    "rejected": "rejected",
    "published": "published",
    "corrected": "corrected",
    "amended": "amended",
    "declined": "declined",
}
_ABOUT_A_NAME = ("amended", "declined")
_DECIDED = ("rejected", "published", *_ABOUT_A_NAME)
_REASONED = ("asked", "rejected", "corrected", "declined")
"""Events whose reason is public; those of a publication and of an approval are sealed."""
_OF_ITS_OWN = frozenset(
    (
        *("board-open", "id-date", "description", "type-known", "training-data", "embargo"),
        *("candidates", "runs", "copied-seeds", "unlike-seeds"),
    )
)
"""Rules whose evidence is of the submission alone: that of others may name who is hidden."""


def answer(
    desk: Desk,
    forge: Forge,
    submission_id: str,
    *,
    findings: Sequence[Finding] = (),
    facts: Mapping[str, Mapping[str, int]] | None = None,
) -> Outcome:
    """Tell a submission's last event where it was opened; label and close it when it is decided.

    Requests that copy its files are told the same.

    Args:
        desk: its lock is held.
        forge: where submissions are opened.
        submission_id: a submission of the log.
        findings: those of its review; told of a published entry that is under no embargo.
        facts: query set -> what the scan counted in its run.

    Returns:
        What became of the comment; `nowhere` also where the forge does not know the submission.

    Raises:
        InputError: the log knows no such submission.
        ForgeError: the forge failed. The event stands; calling again answers what is missing.
    """
    submission = desk.find(submission_id)
    told = [event for event in submission.events if event[1] in _TOLD]
    if not told:
        return "nowhere"
    moment, event, digest = told[-1]
    source, why = _source_and_reason(desk, digest)
    handle = forge.locate(source, submission.id)
    if handle is None:
        return "nowhere"
    row, spec = _public_row(desk, submission.id)
    comment = Comment(
        kind=_TOLD[event],
        submission=submission.id,
        at=moment,
        decimals=spec.decimals,
        said=why if event in _REASONED else "",
        steps=[f"heldout status {submission.id}"],
        page=spec.home,
    )
    if event not in _ABOUT_A_NAME:
        comment = replace(
            comment,
            scores=() if row is None else _scores(spec, row),
            findings=()
            if row is None or row.embargoed
            else [_narrow(finding) for finding in findings if finding.public],
            facts=facts or {},
        )
    state = event if event in _ABOUT_A_NAME else submission.status
    return _tell(forge, handle, comment, Digest(digest), state=state)


def answer_registration(desk: Desk, forge: Forge, team: str, *, source: str) -> Outcome:
    """Tell a team where it registered that it is registered, or that it was revoked; close that.

    Args:
        desk: its lock is held.
        forge: where registrations are opened.
        team: handle of a team in the log.
        source: where its registration came from.

    Returns:
        What became of the comment.

    Raises:
        ForgeError: the forge failed. The event stands; calling again answers what is missing.
    """
    handle = forge.locate(source, team)
    if handle is None:
        return "nowhere"
    last = next(e for e in reversed(desk.vault.entries()) if _is_about(e, team))
    spec = desk.spec()
    told: CommentKind = "registered" if last.event.kind == "registered" else "revoked-registration"
    text = format_comment(
        Comment(
            kind=told,
            submission=team,
            at=last.time,
            decimals=spec.decimals,
            said=last.get("why") or "",
            steps=["git pull", "heldout draft NAME"] if told == "registered" else (),
            page=spec.home,
        )
    )
    outcomes = []
    for copy in forge.copies(handle):
        outcomes.append(forge.comment(copy, text, event=last.hash))
        forge.label(copy, "heldout: registered" if told == "registered" else "heldout: revoked")
        forge.close(copy)
    return outcomes[0]


def _is_about(entry: Entry, team: str) -> bool:
    kinds = ("registered", "revoked-registration")
    return entry.event.kind in kinds and entry.get("team") == team


def _tell(forge: Forge, handle: Handle, comment: Comment, event: Digest, *, state: str) -> Outcome:
    """Comment on a request and its copies; label and close them where all is decided."""
    text = format_comment(comment)
    outcomes = []
    for copy in forge.copies(handle):
        outcomes.append(forge.comment(copy, text, event=event))
        if state in _DECIDED:
            forge.label(copy, f"heldout: {state}")
            forge.close(copy)
    return outcomes[0]


def _public_row(desk: Desk, submission: str) -> tuple[Row | None, BoardSpec]:
    """Its row on the page of this moment, with the rules of that page.

    From what the public log has, for the vault knows more.
    """
    public = project(desk.vault.entries(), now=desk.now)
    standings, spec = current_standings(public, desk.spec(), now=desk.now)
    return next((row for row in standings.every if row.id == submission), None), spec


def _source_and_reason(desk: Desk, digest: str) -> tuple[str, str]:
    """Where that came from which an event of a submission is about, and the event's reason."""
    entries = desk.vault.entries()
    last = next(entry for entry in entries if entry.hash == digest)
    about = ("received", "proposed") if last.event.kind in _ABOUT_A_NAME else ("received",)
    sources = [
        entry.get("source")
        for entry in entries[: last.event.seq + 1]
        if entry.event.submission == last.event.submission and entry.event.kind in about
    ]
    return next((str(one) for one in reversed(sources) if one), ""), last.get("why") or ""


def _scores(spec: BoardSpec, row: Row) -> list[ScoreLine]:
    """The views in the order of their columns; what is not told yet has no line."""
    texts = {**row.not_above, **row.scores}
    return [
        ScoreLine(
            view=view.name,
            measure=view.measure,
            released=texts[view.name],
            queries=row.counts.get(view.name),
            seeds=row.seeds,
            spread=row.spreads.get(view.name, ""),
            part=say_part(view),
        )
        for view in spec.public_views
        if view.name in texts
    ]


def _narrow(finding: Finding) -> Finding:
    if finding.rule in _OF_ITS_OWN:
        return finding
    return replace(finding, evidence="see docs/policy.md; the organisers have the evidence")
