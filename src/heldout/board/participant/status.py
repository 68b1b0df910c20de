"""How far a submission has come, as a participant asks in a clone of the board."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from heldout.board.log.events import Entry
from heldout.board.log.history import History, LastProposal, last_proposal, read_history
from heldout.board.log.submission import Submission
from heldout.board.participant import checks, draft, receipts
from heldout.board.participant.server import Server, ServerState
from heldout.board.policy.amending import check_update
from heldout.board.rules import days, spec_file
from heldout.board.rules.spec import BoardSpec, read_table
from heldout.board.scores.releasing import describe_released
from heldout.board.standings import overdue, standings
from heldout.board.store.repository import Repository
from heldout.errors import InputError, plural
from heldout.ids import SubmissionId


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalResult:
    """How a finalist did.

    Attributes:
        view: of the final.
        summary: the same in words.
        score: `None` before the final is opened, as the others.
        winner: whether it wins.
        clearly_below: whether it is clearly below the best.
    """

    view: str
    summary: str = "a finalist; the scores are published once, after the last day"
    score: float | None = None
    winner: bool | None = None
    clearly_below: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionStatus:
    """A submission by the public log and by what this clone sent.

    Attributes:
        id: the submission.
        status: `draft`, `not received yet`, or as the log has it.
        received: official time, `None` before.
        why: the organisers' reason for the last decision.
        scores: view -> released score.
        released: view -> the same in words, with its spread and number of queries.
        seeds: how many runs the scores are means over.
        spreads: view -> standard deviation over the seeds.
        queries: view -> number of queries.
        receipt: SHA-256 over the files that the log has.
        primary: the view that ranks.
        next_allowed: when the team may submit again, `None` where it may not.
        scores_after: last day of a one-shot board, as long as no score of it is published.
        reveals: the day on which the team's names appear, as long as the log withholds them.
        update: that what was sent last is not in force, and why; "" otherwise.
        proposal: the metadata that the team asks for and that are not in force.
        final: for a finalist.
        season: what the end of its season brings, or brought; "" where it brings nothing.
        next: what the team has to do; "" for nothing.
        server: what the server says that it was sent to; `None` where it was not asked.
    """

    id: SubmissionId
    status: str
    next_allowed: datetime | None
    received: datetime | None = None
    why: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    released: Mapping[str, str] = field(default_factory=dict)
    seeds: int = 1
    spreads: Mapping[str, float] = field(default_factory=dict)
    queries: Mapping[str, int] = field(default_factory=dict)
    receipt: str | None = None
    primary: str | None = None
    scores_after: date | None = None
    reveals: date | None = None
    update: str = ""
    proposal: LastProposal | None = None
    final: FinalResult | None = None
    season: str = ""
    next: str = ""
    server: ServerState | None = None


def describe_submission(
    repository: Repository, log: Sequence[Entry], name: SubmissionId, *, now: datetime
) -> SubmissionStatus:
    """Return how far a submission has come; its receipt is renewed.

    Args:
        repository: the clone.
        log: the newest public log.
        name: the submission.
        now: the moment, UTC.

    Raises:
        InputError: code `no-draft`: neither this clone nor the log knows the id.
        StoreError: the log is not the one that the receipt saw, with events added.
    """
    history = read_history(log)
    known = history.submissions.get(name)
    if known is None:
        _require_known(repository, history, name)
    receipts.store_receipt(repository, name, log)
    quota = None if history.closed else checks.quota_of(repository, history, name, now=now)
    again = None if quota is None else quota.next_allowed
    if known is None:
        note = draft.read_sealed(repository, name)
        status = "draft" if note is None or not note.sent else "not received yet"
        return SubmissionStatus(id=name, status=status, next_allowed=again)
    spec = spec_file.parse_spec(history.rules[-1][1].encode())
    deadline = days.one_shot_deadline(history)
    waits = known.status == "published" and deadline is not None and now.date() <= deadline
    asked = last_proposal(log, name)
    return SubmissionStatus(
        id=name,
        status=known.status,
        next_allowed=again,
        received=known.received,
        why=known.why,
        scores={view: float(score) for view, score in known.scores.items()},
        released={
            view: describe_released(known, view, spec) + _say_queries(known.counts.get(view))
            for view in known.scores
        },
        seeds=known.seeds,
        spreads={view: float(text) for view, text in known.spreads.items()},
        queries=known.counts,
        receipt=draft.receipt_of(known.files) if known.files else None,
        primary=spec.on(known.received.date()).primary,
        scores_after=deadline if waits else None,
        reveals=known.embargo_until if known.identity is None else None,
        update=_say_update(repository, log, known, asked),
        proposal=asked,
        final=_final_result(history, name),
        season=_say_season(history, spec, known),
        next=_say_next(repository, known),
    )


def ask_server(
    repository: Repository, one: SubmissionStatus, reach: Callable[[str], Server | None]
) -> SubmissionStatus:
    """The same, with what the server says that the submission was sent to.

    Args:
        repository: the clone.
        one: how far it has come by the log.
        reach: the server of an address; `None` where this clone has no token for it.

    Raises:
        InputError: the server refuses to answer, as for a token that was replaced.
        PushError: it cannot be reached.
    """
    note = draft.read_sealed(repository, one.id)
    server = reach(note.server) if note is not None and note.server else None
    return one if server is None else replace(one, server=server.describe(one.id))


def status_facts(one: SubmissionStatus, *, now: datetime) -> list[tuple[str, str]]:
    """The same for a reader."""
    facts = [("id", str(one.id)), ("status", read_table("words")["status"][one.status])]
    if one.server is not None:
        sent = one.server.sent and f", sent on {one.server.sent:%d %b %Y %H:%M} UTC"
        why = one.server.why and f": {one.server.why}"
        facts.append(("server", f"{one.server.state}{why}{sent or ''}"))
    facts += [("why", one.why)] * bool(one.why) + [("update", one.update)] * bool(one.update)
    if one.proposal is not None:
        facts.append(("new name", _say_proposal(one.proposal)))
    if one.next_allowed is not None:
        waits = one.next_allowed > now
        when = f"again from {one.next_allowed:%d %b %Y %H:%M:%S} UTC" if waits else "now"
        facts.append(("quota", f"your team may submit {when}"))
    facts += [("score", f"{view} {text}") for view, text in one.released.items()]
    if one.scores_after is not None:
        day = f"{one.scores_after:%d %b %Y}"
        facts.append(("score", f"published after the last day, {day}, with everybody's"))
    if one.reveals is not None:
        facts.append(("embargo", _say_reveal(one.reveals, now.date())))
    if one.final is not None:
        facts.append(("final", one.final.summary))
    facts += [("season", one.season)] * bool(one.season)
    facts += [("receipt", one.receipt)] if one.receipt else []
    return [*facts, ("", ""), ("next", one.next)] if one.next else facts


def _say_reveal(day: date, today: date) -> str:
    if today < day:
        return f"your names appear on {day:%d %b %Y}"
    return f"over since {day:%d %b %Y}: your names appear when the organisers rebuild the page"


def _require_known(repository: Repository, history: History, name: SubmissionId) -> None:
    own = repository.own_ids()
    if draft.draft_folder(repository, name).is_folder() or name in own:
        return
    here = sorted({*draft.drafts(repository), *own})
    logged = plural(len(history.submissions), "id")
    none = f"an id; this clone has no draft, the log {logged}"
    expected = "one of those here: " + ", ".join(here) if here else none
    raise InputError.of("no-draft", name, "no draft or submission of this id", expected)


def _say_queries(count: int | None) -> str:
    """Return how many queries a score is a mean over; an old board does not say."""
    return "" if count is None else f" (n = {count:,})"


def _say_update(
    repository: Repository, log: Sequence[Entry], known: Submission, asked: LastProposal | None
) -> str:
    note = draft.read_sealed(repository, known.id)
    if note is None or not known.files or note.sent in ("", draft.receipt_of(known.files)):
        return ""
    if asked is not None and note.sent == draft.receipt_of({**known.files, **asked.files}):
        return ""  # the line about the proposal says it
    # While an identity is sealed the log has only the revision of the day of publication.
    says = known.revision and known.identity is not None
    force = f"revision {known.revision}" if says else "an earlier one"
    what = f"revision {note.revision}{', a withdrawal,' if note.withdrawn else ''}"
    name, why = SubmissionId(known.id), "the organisers have not taken it in yet, or refused it"
    why += " and said why where it was sent"
    try:
        check_update(log, name, draft.read_metadata(repository, name), withdrawn=note.withdrawn)
    except InputError as error:
        first = error.problems[0]
        why = f"found {first.found}, expected {first.expected}"
    return f"{what} was sent, {force} is in force: {why}"


def _say_proposal(asked: LastProposal) -> str:
    when = f"{asked.at:%d %b %Y}"
    if asked.state == "waits":
        return f"waits for an organiser since {when}; the entry stays as it is until then"
    return f"refused on {when}: {asked.why}; the entry stays as it is"


def _final_result(history: History, name: str) -> FinalResult | None:
    final = history.final
    if final is None or name not in final.finalists:
        return None
    opened = final.opened
    if opened is None:
        return FinalResult(view=final.view)
    mark = ", clearly below the best" if name in opened.below else ""
    mark = ", the winner" if name == opened.winner else mark
    return FinalResult(
        view=final.view,
        summary=f"{final.view} {opened.scores[name]} (n = {opened.queries:,}){mark}",
        score=float(opened.scores[name]),
        winner=name == opened.winner,
        clearly_below=name in opened.below,
    )


def _say_season(history: History, spec: BoardSpec, known: Submission) -> str:
    season = spec.season_on(known.received.date())
    name = "" if season is None else season.name
    end, ending = history.season_ends.get(name), overdue.find_ending(spec, name)
    if known.baseline or not (known.pending or known.status == "published"):
        return ""
    if end is None and ending is not None:
        return (
            f"ends on {ending.last:%d %b %Y}; then the entry that your team named (season_entry in "
            "its metadata) gets its exact score"
        )
    if end is None or known.pending:
        return ""
    if known.id not in end.opened.scores:
        return standings.NOT_NAMED
    return f"ended on {end.opened.at:%d %b %Y}; the exact score is published"


def _say_next(repository: Repository, known: Submission) -> str:
    if known.status != "asked":
        return ""
    if draft.read_sealed(repository, known.id) is None:
        return "answer in the clone that sent it: heldout amend " + known.id
    file = draft.draft_folder(repository, SubmissionId(known.id)).path(draft.METADATA)
    return f"answer in {file}, then: heldout amend {known.id}"
