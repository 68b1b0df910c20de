"""Answers a submission or registration where it was opened: what became of it, once per event.

The comment has what the page and the public log have at this moment, and no more. It can be
called again after a crash, or for a submission that was answered before: nothing is said twice.

Everything that somebody else wrote stands in a code span, on a line that begins with our own
words: forges make no mention, link, reference, HTML or command out of it. Scores come as the text
that was released, and no other number but that in an id has more digits.
"""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from heldout.board.log.manifest import is_link
from heldout.board.organiser.review import Review
from heldout.board.policy.checks import Finding
from heldout.board.rules.release import NOT_CLEAR
from heldout.board.rules.spec import RULES, BoardSpec
from heldout.board.scores.public_log import plan_public_log
from heldout.board.scores.session import Session
from heldout.board.standings.standings import Row, current_standings
from heldout.board.store import arrivals, forges
from heldout.errors import HeldoutError, printable
from heldout.ids import Digest
from heldout.progress_bar import SILENT, Progress

_HEADS: Mapping[str, str] = {
    "received": "was received",
    "asked": "waits for an answer",
    "rejected": "was rejected",
    "published": "is published",
    "corrected": "was corrected",
    "amended": "has the name that its team asked for",
    "declined": "has its old name; the new one was refused",
    "registered": "is registered",
    "revoked-registration": "is registered no more",
}
"""Kind of an event that is answered -> what it did; the last two are about a team."""

_SAID = {"asked": "The organisers ask", "corrected": "What was wrong"}
_RELEASED = re.compile(rf"-?\d+\.\d+|{NOT_CLEAR}", re.ASCII)
_MOST_LINES = 20
_LONGEST = 240
_LONGEST_SAID = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentScore:
    """One view's score.

    Attributes:
        view: name of the view.
        measure: as board.toml names it.
        released: the text that was released, `0.412`, or `NOT_CLEAR`.
        queries: number that it is averaged over, `None` where that is not told.
        seeds: how many runs that differ by seed it is a mean over.
        spread: standard deviation over the seeds as released, "" where there is none.
        part: what it is a score of, or with, in words; "" for a plain one.
    """

    view: str
    measure: str
    released: str
    queries: int | None = None
    seeds: int = 1
    spread: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """An answer about one event. The caller leaves out what an embargo or a deadline hides.

    Attributes:
        kind: of the event, one of `_HEADS`.
        submission: the id; the team's handle, where it registered.
        at: when, UTC.
        decimals: digits after the point of every released score.
        scores: in the order of the columns.
        said: the organisers' reason or question.
        findings: of the policy.
        facts: query set -> what the scan counted in its run, in whole numbers.
        steps: commands that help now.
        page: address of the board's page; may be empty.
    """

    kind: str
    submission: str
    at: datetime
    decimals: int
    scores: Sequence[CommentScore] = ()
    said: str = ""
    findings: Sequence[Finding] = ()
    facts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    steps: Sequence[str] = ()
    page: str = ""


def format_comment(comment: Comment) -> str:
    """The comment's Markdown, without the mark that `Forge.comment` adds.

    Raises:
        ValueError: a score is no released text, or has more digits than the board releases.
    """
    digits = comment.decimals
    moment = f"{comment.at.astimezone(UTC):%d %b %Y %H:%M:%S} UTC"
    parts = [f"{_code(comment.submission, 99)} {_HEADS[comment.kind]} ({moment})."]
    if comment.said:
        asked = _SAID.get(comment.kind, "The organisers' reason")
        parts.append(f"{asked}: {_code(comment.said, digits, limit=_LONGEST_SAID)}")
    findings = [
        f"- {one.severity}, {_code(one.rule, digits)}: {_code(one.evidence, digits)}"
        for one in comment.findings
    ]
    facts = [
        f"- {_code(name, 0)}: "
        + ", ".join(f"{_code(what, 0)} {int(count):,}" for what, count in counts.items())
        for name, counts in comment.facts.items()
    ]
    scores = [_score(line, digits) for line in comment.scores]
    for title, lines in (("Scores", scores), ("Findings", findings), ("Runs", facts)):
        more = len(lines) - _MOST_LINES
        rest = [f"- and {more:,} more"] if more > 0 else []
        if lines:
            parts.append("\n".join([f"{title}:\n", *lines[:_MOST_LINES], *rest]))
    if comment.steps:
        parts.append("Next: " + ", ".join(_code(step, digits) for step in comment.steps))
    if comment.page and is_link(comment.page):
        parts.append(f"Page: <{comment.page}>")
    return "\n\n".join(parts) + "\n"


def _score(line: CommentScore, decimals: int) -> str:
    for text in (line.released, *filter(None, [line.spread])):
        if not _RELEASED.fullmatch(text) or len(text.partition(".")[2]) > decimals:
            raise ValueError(f"{line.view}: not a released score of {decimals} decimals")
    what = f"{_code(line.view, decimals)}, {_code(line.measure, decimals)}"
    what += f", {line.part}" if line.part else ""
    shown = f"- {what}: **{line.released}**"
    if line.spread:
        shown += f" ± {line.spread} over {line.seeds} seeds"
    return shown if line.queries is None else f"{shown} (n = {line.queries:,})"


def _code(text: str, decimals: int, *, limit: int = _LONGEST) -> str:
    """Text in a code span that it cannot end, on one line, its numbers cut to so many digits."""
    plain = printable(text[: limit + 1])  # which makes it longer
    plain = plain if len(plain) <= limit else plain[: limit - 1] + "…"
    plain = plain.replace("`", "'").strip()
    cut = re.sub(rf"(\d+\.\d{{{decimals}}})\d+", r"\1…", plain)
    return f"`{cut}`" if plain else "(empty)"


_OF_A_TEAM = ("registered", "revoked-registration")
_ABOUT_A_NAME = ("amended", "declined")
_DECIDED = ("rejected", "published", *_ABOUT_A_NAME)
_REASONED = ("asked", "rejected", "corrected", "declined")
"""Events whose reason is public; those of a publication and of an approval are sealed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeAccess:
    """How the board's forge is reached. What fails there is noted, and changes nothing else.

    Attributes:
        environ: has the token, where there is one.
        clock: seconds, as `time.time`.
        sleep: waits, as `time.sleep`.
        agree: asked once whether the token may be sent to this host.
        progress: is told what failed.
    """

    environ: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    agree: Callable[[str], bool] = lambda _: False
    progress: Progress = SILENT

    @contextmanager
    def open(self, session: Session) -> Iterator[forges.Forge | None]:
        """The board's forge; `None` where it has none, or nothing was committed yet."""
        spec, git = session.spec(), session.repository.git
        head = git.head() if git.is_repository() else None
        if spec.forge is None or head is None:
            yield None
            return
        hosted, vault = spec.forge.hosted, session.vault
        asks = hosted and bool(forges.read_token(self.environ)) and not vault.token_host()
        if asks and self.agree(spec.forge.host):
            vault.store_token_host(spec.forge.host)
        with forges.new_client() as client:
            world = forges.Surroundings(
                client=client,
                environ=self.environ,
                clock=self.clock,
                sleep=self.sleep,
                token_host=vault.token_host(),
            )
            yield forges.open_forge(spec.forge, git, spec.envelope, main=head, world=world)


def fetch_requests(session: Session, access: ForgeAccess) -> tuple[arrivals.Arrival, ...] | None:
    """Return what is open on the board's forge.

    Returns:
        `None` where it did not answer: nobody knows then what waits there.
    """
    try:
        with access.open(session) as forge:
            return () if forge is None else forge.fetch()
    except HeldoutError as error:
        access.progress.note("note", f"the forge did not answer: {error}")
        return None


def answer_all(
    session: Session, access: ForgeAccess, ids: Sequence[str], reviews: Mapping[str, Review]
) -> None:
    """Answer submissions on the forge; nothing is said twice.

    Where the forge fails, the events stand, and the next call answers what is missing.

    Args:
        session: its lock is held.
        access: to the forge.
        ids: the submissions.
        reviews: of some of them, for what the comment says of the runs.
    """

    def answer_one(forge: forges.Forge, name: str) -> None:
        found = reviews.get(name)
        facts = {
            run: {"queries answered": one.queries, "documents": one.documents}
            for run, one in ({} if found is None else found.scores.runs).items()
        }
        findings = () if found is None else found.findings
        answer(session, forge, name, findings=findings, facts=facts)

    _answer_each(session, access, ids, answer_one)


def answer_registrations(session: Session, access: ForgeAccess, sources: Mapping[str, str]) -> None:
    """Answer teams on the forge that they are registered; nothing is said twice.

    Args:
        session: its lock is held.
        access: to the forge.
        sources: team -> where its registration came from.
    """
    _answer_each(
        session,
        access,
        tuple(sources),
        lambda forge, team: answer_registration(session, forge, team, source=sources[team]),
    )


def _answer_each(
    session: Session,
    access: ForgeAccess,
    names: Sequence[str],
    act: Callable[[forges.Forge, str], object],
) -> None:
    """Answer each by itself: one that fails is a note, and the others go on."""
    note = access.progress.note
    try:
        with access.open(session) if names else nullcontext() as forge:
            for name in names:
                if forge is None:
                    return
                try:
                    act(forge, name)
                except HeldoutError as error:
                    note("note", f"{name} was not answered on the forge: {error}")
    except HeldoutError as error:
        note("note", f"nothing was answered on the forge: {error}")


def answer(
    session: Session,
    forge: forges.Forge,
    name: str,
    *,
    findings: Sequence[Finding] = (),
    facts: Mapping[str, Mapping[str, int]] = {},
) -> forges.Outcome:
    """Tell a submission's last event where it was opened; label and close it when it is decided.

    Requests that copy its files are told the same.

    Args:
        session: its lock is held.
        forge: where submissions are opened.
        name: id of a submission of the log.
        findings: those of its review; told of a published entry that is under no embargo.
        facts: query set -> what the scan counted in its run.

    Returns:
        What became of the comment; `nowhere` also where the forge does not know the submission.

    Raises:
        InputError: the log knows no such submission.
        StoreError: the forge failed. The event stands; calling again answers what is missing.
    """
    submission = session.find(name)
    events = [one for one in submission.events if one[1] in _HEADS.keys() - {*_OF_A_TEAM}]
    if not events:
        return "nowhere"
    moment, event, digest = events[-1]
    source, why = _source_and_reason(session, name, digest)
    handle = forge.locate(source, name)
    if handle is None:
        return "nowhere"
    row, spec = _public_row(session, name)
    scores: Sequence[CommentScore] = ()
    shown: Sequence[Finding] = ()
    about_name = event in _ABOUT_A_NAME
    if row is not None and not about_name:
        scores = _scores(spec, row)
        shown = () if row.embargoed else findings
    comment = Comment(
        kind=event,
        submission=name,
        at=moment,
        decimals=spec.decimals,
        scores=scores,
        said=why if event in _REASONED else "",
        findings=[_narrow(finding) for finding in shown if finding.public],
        facts={} if about_name else facts,
        steps=[f"heldout status {name}"],
        page=spec.home,
    )
    state = event if about_name else submission.status
    return _post(forge, handle, comment, Digest(digest), label=state if state in _DECIDED else "")


def answer_registration(
    session: Session, forge: forges.Forge, team: str, *, source: str
) -> forges.Outcome:
    """Tell a team where it registered that it is registered, or that it was revoked; close that.

    Args:
        session: its lock is held.
        forge: where registrations are opened.
        team: handle of a team in the log.
        source: where its registration came from.

    Returns:
        What became of the comment.

    Raises:
        StoreError: the forge failed. The event stands; calling again answers what is missing.
    """
    handle = forge.locate(source, team)
    if handle is None:
        return "nowhere"
    *_, last = (e for e in session.vault.log().select(*_OF_A_TEAM) if e.get("team") == team)
    stands, spec = last.event.kind == "registered", session.spec()
    comment = Comment(
        kind=last.event.kind,
        submission=team,
        at=last.time,
        decimals=spec.decimals,
        said=last.get("why") or "",
        steps=["git pull", "heldout draft NAME"] if stands else (),
        page=spec.home,
    )
    label = "registered" if stands else "revoked"
    return _post(forge, handle, comment, last.hash, label=label)


def _post(
    forge: forges.Forge, handle: forges.Handle, comment: Comment, event: Digest, *, label: str
) -> forges.Outcome:
    """Comment on a request and its copies; with a label all is decided, and they are closed."""
    text = format_comment(comment)
    outcomes = []
    for copy in forge.copies(handle):
        outcomes.append(forge.comment(copy, text, event=event))
        if label:
            forge.label(copy, f"heldout: {label}")
            forge.close(copy)
    return outcomes[0]


def _public_row(session: Session, submission: str) -> tuple[Row | None, BoardSpec]:
    """Its row on the page of this moment, with the rules of that page.

    From what the public log has, for the vault knows more.
    """
    public = plan_public_log(session.repository, session.vault, now=session.now)
    standings, spec = current_standings(public.history, session.spec(), now=session.now)
    return next((row for row in standings.every if row.id == submission), None), spec


def _source_and_reason(session: Session, submission: str, digest: str) -> tuple[str, str]:
    """Return where that came from which an event is about, and the event's reason."""
    entries = [*session.vault.log().select_about([submission])]
    last = next(entry for entry in entries if entry.hash == digest)
    about = ("received", "proposed") if last.event.kind in _ABOUT_A_NAME else ("received",)
    sources = [
        entry.get("source")
        for entry in entries
        if entry.event.seq <= last.event.seq and entry.event.kind in about
    ]
    return next((str(one) for one in reversed(sources) if one), ""), last.get("why") or ""


def _scores(spec: BoardSpec, row: Row) -> list[CommentScore]:
    """The views in the order of their columns; what is not told yet has no line."""
    texts = {**dict.fromkeys(row.untold, NOT_CLEAR), **row.scores}
    return [
        CommentScore(
            view=view.name,
            measure=view.measure,
            released=texts[view.name],
            queries=row.counts.get(view.name),
            seeds=row.seeds,
            spread=row.spreads.get(view.name, ""),
            part=view.part_words,
        )
        for view in spec.public_views
        if view.name in texts
    ]


def _narrow(finding: Finding) -> Finding:
    rule = RULES.get(finding.rule)
    if rule is not None and rule.shown == "all":
        return finding
    return replace(
        finding, evidence="see docs/reference/policy.md; the organisers have the evidence"
    )
