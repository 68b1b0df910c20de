"""A participant's commands that seal and send, inside a clone of a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heldout.board.log.events import Entry
from heldout.board.log.history import History
from heldout.cli.board.drafting import check_json, print_check, print_seen
from heldout.cli.context import Place, in_clone, not_pushed
from heldout.cli.printing import answers, fail, messages, print_facts, print_json, reports_errors
from heldout.errors import InputError, Problem, StoreError, plural
from heldout.ids import SubmissionId, parse_submission_id

if TYPE_CHECKING:
    from heldout.board.log.final import Final
    from heldout.board.log.history import LastProposal
    from heldout.board.log.submission import Submission
    from heldout.board.participant.checks import Check
    from heldout.board.participant.send import Packed
    from heldout.board.store.git import Git
    from heldout.board.store.repository import Repository


_send_to = click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Put the sealed files into this folder, not on a branch.",
)


@click.command()
@click.argument("submission", metavar="ID")
@in_clone
@reports_errors
def pack(*, place: Place, submission: str) -> None:
    """Check and seal a draft, and send nothing: for those who look first.

    \b
    Example:
      heldout pack 20261120-lighthouse-monot5
    """
    repository = place.board()
    with repository.locked():
        found, packed = _check_and_pack(repository, submission, place)
    if place.as_json:
        print_json(_packed_json(found.id, packed))
        return
    _print_packed(repository, found.id, packed)
    print_facts(answers(), [("", ""), ("next", f"heldout submit {found.id}")])


@click.command()
@click.argument("submission", metavar="ID")
@_send_to
@in_clone
@reports_errors
def submit(*, place: Place, submission: str, folder: Path | None) -> None:
    """Check, seal and send a draft: a branch of its own, or a folder with --to.

    The branch is pushed to the remote `origin` where there is one.

    \b
    Example:
      heldout submit 20261120-lighthouse-monot5
    """
    repository = place.board()
    with repository.locked():
        found, packed = _check_and_pack(repository, submission, place)
        sent = _send(place, found.id, packed, folder)
    if place.as_json:
        print_json({**_packed_json(found.id, packed), **_sent_json(sent)})
        return
    _print_packed(repository, found.id, packed)
    print_seen(found)
    print_facts(
        answers(),
        [
            ("sent", str(sent)),
            ("keep", f".heldout/receipts/{found.id}.json: heldout audit --receipt FILE"),
            ("", ""),
            ("next", f"heldout status {found.id}"),
        ],
    )


@click.command()
@click.argument("submission", metavar="ID")
@_send_to
@in_clone
@reports_errors
def amend(*, place: Place, submission: str, folder: Path | None) -> None:
    """Seal the draft's metadata anew under the same key, one revision up, and send it.

    \b
    Example:
      heldout amend 20261120-lighthouse-monot5
    """
    _update(place, submission, folder, withdrawn=False)


@click.command()
@click.argument("submission", metavar="ID")
@_send_to
@in_clone
@reports_errors
def withdraw(*, place: Place, submission: str, folder: Path | None) -> None:
    """Take a submission back before it is published; the quota is given back.

    \b
    Example:
      heldout withdraw 20261120-lighthouse-monot5
    """
    _update(place, submission, folder, withdrawn=True)


def _update(place: Place, submission: str, folder: Path | None, *, withdrawn: bool) -> None:
    from heldout.board.participant.draft import read_metadata, require_draft
    from heldout.board.participant.send import update
    from heldout.board.policy.amending import check_update

    repository = place.board()
    name = parse_submission_id(submission)
    require_draft(repository, name)
    manifest = read_metadata(repository, name)
    try:
        check_update(repository.newest_log(), name, manifest, withdrawn=withdrawn)
    except InputError as error:
        fail(error, status=1)
    with repository.locked():
        packed = update(repository, name, manifest, withdrawn=withdrawn)
        # Into a folder it goes all the same: what was sent may have gone elsewhere.
        unchanged = packed.sent_before and not withdrawn and folder is None
        sent = None if unchanged else _send(place, name, packed, folder)
    if place.as_json:
        print_json({**_packed_json(name, packed), **_sent_json(sent), "withdrawn": withdrawn})
        return
    if sent is None:
        told = f"since revision {packed.revision} was sent; nothing was sent now"
        print_facts(answers(), [("unchanged", told), ("", ""), ("next", f"heldout status {name}")])
        return
    what = "a withdrawal" if withdrawn else "new metadata"
    again = "   (done before)" if packed.done_before else ""
    print_facts(
        answers(),
        [
            ("sealed", f"{what} under the key of {name}, revision {packed.revision}{again}"),
            ("sent", str(sent)),
            ("", ""),
            ("next", f"heldout status {name}"),
        ],
    )


def _check_and_pack(repository: Repository, submission: str, place: Place) -> tuple[Check, Packed]:
    from heldout.board.participant.checks import check as check_draft
    from heldout.board.participant.send import pack as pack_draft

    found = check_draft(repository, parse_submission_id(submission), now=place.now)
    if not found.ok or found.manifest is None:
        if place.as_json:
            print_json(check_json(found))
        else:
            print_check(found, repository, place)
        raise click.exceptions.Exit(1)
    return found, pack_draft(repository, found.id, found.manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """Where sealed files are now.

    Attributes:
        place: for a person.
        before: whether just these were there already.
    """

    place: str
    before: bool

    def __str__(self) -> str:
        return self.place + "   (done before)" * self.before


def _send(place: Place, submission: SubmissionId, packed: Packed, folder: Path | None) -> _Sent:
    from heldout.board.participant.receipts import keep_receipt
    from heldout.board.participant.send import deliver, mark_sent

    repository = place.board()
    log = repository.newest_log()  # before anything is sent: it may be none of the organisers'
    repository.pin(log)
    if folder is None:
        sent = _send_branch(place, submission, packed)
    else:
        new = deliver(place.board(), packed, folder)
        sent = _Sent(place=f"{plural(len(packed.files), 'file')} to {folder}", before=not new)
    mark_sent(repository, submission, packed, now=place.now)
    keep_receipt(repository, submission, log)
    return sent


def _send_branch(place: Place, submission: SubmissionId, packed: Packed) -> _Sent:
    from heldout.board.participant.draft import read_metadata
    from heldout.board.participant.send import submit as submit_draft

    repository = place.board()
    git = repository.git
    before = _branches(git)
    embargoed = read_metadata(repository, submission).embargo_until is not None
    branch = submit_draft(repository, submission, packed, embargoed=embargoed, now=place.now)
    if "origin" not in git.remotes():
        told = f"branch {branch} in this repository"
        return _Sent(place=told, before=before == _branches(git))
    try:
        git.push("origin", f"+refs/heads/{branch}:refs/heads/{branch}")
    except StoreError as error:
        fail(not_pushed(branch, error), status=1)
    return _Sent(place=f"branch {branch}, pushed to origin", before=before == _branches(git))


def _branches(git: Git) -> Mapping[str, str]:
    """Every branch here and at the remote, as far as this clone knows: sending moves one."""
    return git.refs("refs/heads/", "refs/remotes/")


def _print_packed(repository: Repository, submission: SubmissionId, packed: Packed) -> None:
    from heldout.board.participant.checks import rules_to_seal_by
    from heldout.envelope.bundle import short_recipient

    spec = rules_to_seal_by(repository)
    keys = ", ".join(short_recipient(spec.envelope, key) for key in spec.recipients)
    who = plural(len(spec.recipients), "organiser")
    again = "   (done before)" if packed.done_before else ""
    wrote = [(f".heldout/sealed/{name}", size) for name, size in packed.files.items()]
    width = max(len(name) for name, _ in wrote)
    print_facts(
        answers(),
        [
            ("sealed", f"for {who} ({keys}); nobody else can open it{again}"),
            *[
                ("wrote" if i == 0 else "", f"{name:<{width}}  {_bytes(size):>8}")
                for i, (name, size) in enumerate(wrote)
            ],
            ("receipt", packed.receipt),
            ("your key", f".heldout/keys/{submission}"),
            ("", "keep a copy: only this key can change the metadata later"),
        ],
    )


def _packed_json(submission: SubmissionId, packed: Packed) -> dict[str, Any]:
    return {
        "id": submission,
        "files": dict(packed.files),
        "receipt": packed.receipt,
        "revision": packed.revision,
        "done_before": packed.done_before,
        "sent_before": packed.sent_before,
    }


def _sent_json(sent: _Sent | None) -> dict[str, Any]:
    """What became of it; `None` where nothing was sent now."""
    return {"sent": sent.place if sent else "", "sent_before": sent is None or sent.before}


def _bytes(size: int) -> str:
    kilo, mega = 1_000, 1_000_000
    return f"{size / mega:.1f} MB" if size >= mega else f"{size / kilo:.1f} kB"


# How far a submission has come, as a participant asks in a clone of the board.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """The newest public log, and what it says."""

    entries: Sequence[Entry]
    history: History


@click.command()
@click.argument("submission", metavar="[ID]", required=False)
@in_clone
@reports_errors
def status(*, place: Place, submission: str | None) -> None:
    """Say how far a submission has come, by the board's public log.

    Asks the remotes `origin` and, in a clone of a fork, `upstream` for the newest log. Where the
    organisers have a question, or what was sent last is not in force, it says so and what to do.

    \b
    Example:
      heldout status 20261120-lighthouse-monot5
    """
    from heldout.board.log.history import read_history
    from heldout.board.participant.checks import check_tree_rules
    from heldout.board.participant.receipts import keep_receipt
    from heldout.board.rules.changes import difference_facts

    repository = place.board()
    entries = repository.newest_log()
    log = _Log(entries=entries, history=read_history(entries))
    closed = log.history.closed
    names = [submission] if submission else repository.own_ids()
    shown = []
    for name in map(parse_submission_id, names):
        known = log.history.submissions.get(name)
        if known is None:
            _require_known(repository, log.history, name)
        keep_receipt(repository, name, log.entries)
        shown.append((_describe(repository, log, name, now=place.now), known))
    if place.as_json:
        told = None if closed is None else closed.isoformat()
        print_json({"submissions": [row for row, _ in shown], "closed": told})
        return
    if entries:
        print_facts(messages(), difference_facts(check_tree_rules(repository, entries)))
    if closed is not None:
        told = f"closed for good on {closed:%d %b %Y}: it takes nothing any more"
        print_facts(answers(), [("board", told)])
    if not shown:
        print_facts(answers(), [("status", "this clone has sent nothing yet")])
    for row, known in shown:
        released = {} if known is None else _describe_released(known, log.history)
        final = _say_final(log.history.final, str(row["id"]))
        _print_status(row, released, final, now=place.now)


def _require_known(repository: Repository, history: History, name: SubmissionId) -> None:
    """End with 1 where neither this clone nor the log knows the id."""
    from heldout.board.participant.draft import draft_folder, drafts

    if draft_folder(repository, name).is_folder() or name in repository.own_ids():
        return
    here = sorted({*drafts(repository), *repository.own_ids()})
    problem = Problem(
        code="no-draft",
        path=name,
        found="no draft or submission of this id",
        expected="one of those here: " + ", ".join(here)
        if here
        else f"an id; this clone has no draft, the log {plural(len(history.submissions), 'id')}",
    )
    fail(InputError(problem), status=1)


def _describe(
    repository: Repository, log: _Log, name: SubmissionId, *, now: datetime
) -> Mapping[str, Any]:
    """A submission as JSON."""
    from heldout.board.log.history import last_proposal
    from heldout.board.participant.checks import quota_of
    from heldout.board.participant.draft import read_sealed
    from heldout.board.participant.send import receipt_of
    from heldout.board.rules.spec_file import parse_spec

    known = log.history.submissions.get(name)
    quota = quota_of(repository, log.history, name, now=now)
    may = None if log.history.closed else quota
    again = None if may is None else may.next_allowed.isoformat()
    if known is None:
        note = read_sealed(repository, name)
        status = "draft" if note is None or not note.sent else "not received yet"
        row = {"id": name, "status": status, "why": "", "receipt": None, "next_allowed": again}
        return {**row, "scores": {}}
    until = _withheld_until(log.history, known, today=now.date())
    return {
        "id": name,
        "status": known.status,
        "received": known.received.isoformat(),
        "why": known.why,
        "scores": {key: float(score) for key, score in known.scores.items()},
        "seeds": known.seeds,
        "spreads": {key: float(text) for key, text in known.spreads.items()},
        "queries": dict(known.counts),
        "receipt": receipt_of(known.files) if known.files else None,
        "primary": parse_spec(log.history.rules[-1][1].encode()).on(known.received.date()).primary,
        "next_allowed": again,
        "scores_after": None if until is None else until.isoformat(),
        "update": _say_update(repository, log, known),
        "proposal": _proposal_json(last_proposal(log.entries, known.id)),
        "final": _final_json(log.history, name),
        "next": _next(repository, known),
    }


def _final_json(history: History, name: str) -> Mapping[str, Any] | None:
    """How a finalist did; `None` for any other entry."""
    final = history.final
    if final is None or name not in final.finalists:
        return None
    opened = final.opened
    if opened is None:
        return {"view": final.view, "score": None, "winner": None, "clearly_below": None}
    return {
        "view": final.view,
        "score": float(opened.scores[name]),
        "winner": name == opened.winner,
        "clearly_below": name in opened.below,
    }


def _say_final(known: Final | None, name: str) -> list[tuple[str, str]]:
    if known is None or name not in known.finalists:
        return []
    opened = known.opened
    if opened is None:
        return [("final", "a finalist; the scores are published once, after the last day")]
    mark = ", clearly below the best" * (name in opened.below)
    mark = ", the winner" if name == opened.winner else mark
    return [("final", f"{known.view} {opened.scores[name]} (n = {opened.queries:,}){mark}")]


def _withheld_until(history: History, known: Submission, *, today: date) -> date | None:
    """The last day of a one-shot board, as long as no score of it is told."""
    from heldout.board.rules.days import one_shot_deadline

    deadline = one_shot_deadline(history)
    waits = known.status == "published" and deadline is not None and today <= deadline
    return deadline if waits else None


def _say_update(repository: Repository, log: _Log, known: Submission) -> str:
    """That what was sent last from here is not in force, and why if the log says it."""
    from heldout.board.log.history import last_proposal
    from heldout.board.participant.draft import read_sealed
    from heldout.board.participant.send import receipt_of

    note = read_sealed(repository, known.id)
    if note is None or not known.files or note.sent in ("", receipt_of(known.files)):
        return ""
    asked = last_proposal(log.entries, known.id)
    if asked is not None and note.sent == receipt_of({**known.files, **asked.files}):
        return ""  # which the line about the proposal tells
    # While an identity is sealed the log has only the revision of the day of publication.
    tells = known.revision and known.identity is not None
    force = f"revision {known.revision}" if tells else "an earlier one"
    what = f"revision {note.revision}{', a withdrawal,' if note.withdrawn else ''}"
    return f"{what} was sent, {force} is in force: " + _say_why(
        repository, log, SubmissionId(known.id), withdrawn=note.withdrawn
    )


def _proposal_json(asked: LastProposal | None) -> Mapping[str, str] | None:
    if asked is None:
        return None
    return {"state": asked.state, "at": asked.at.isoformat(), "why": asked.why}


def _say_proposal(asked: Mapping[str, str]) -> str:
    when = f"{datetime.fromisoformat(asked['at']):%d %b %Y}"
    if asked["state"] == "waits":
        return f"waits for an organiser since {when}; the entry stays as it is until then"
    return f"refused on {when}: {asked['why']}; the entry stays as it is"


def _say_why(repository: Repository, log: _Log, name: SubmissionId, *, withdrawn: bool) -> str:
    from heldout.board.participant.draft import read_metadata
    from heldout.board.policy.amending import check_update

    try:
        check_update(log.entries, name, read_metadata(repository, name), withdrawn=withdrawn)
    except InputError as error:
        first = error.problems[0]
        return f"found {first.found}, expected {first.expected}"
    return "the organisers have not taken it in yet, or refused it and said why where it was sent"


def _next(repository: Repository, known: Submission) -> str:
    """What the team has to do; "" for nothing."""
    from heldout.board.participant.draft import read_sealed

    if known.status != "asked":
        return ""
    if read_sealed(repository, known.id) is None:
        return "answer in the clone that sent it: heldout amend " + known.id
    return f"answer in drafts/{known.id}/metadata.json, then: heldout amend {known.id}"


def _print_status(
    row: Mapping[str, Any],
    released: Mapping[str, str],
    final: Sequence[tuple[str, str]],
    *,
    now: datetime,
) -> None:
    """A submission's lines; scores as they were released."""
    facts = [("id", str(row["id"])), ("status", _STATUS_WORDS[str(row["status"])])]
    facts += [(name, str(row[name])) for name in ("why", "update") if row.get(name)]
    if row.get("proposal"):
        facts.append(("new name", _say_proposal(row["proposal"])))
    if row["next_allowed"]:
        again = datetime.fromisoformat(str(row["next_allowed"]))
        when = "now" if again <= now else f"again from {again:%d %b %Y %H:%M:%S} UTC"
        facts.append(("quota", f"your team may submit {when}"))
    facts += [("score", f"{name} {said}") for name, said in released.items()]
    if row.get("scores_after"):
        last = date.fromisoformat(str(row["scores_after"]))
        facts.append(("score", f"told after the last day, {last:%d %b %Y}, with everybody's"))
    facts += final
    if row["receipt"]:
        facts.append(("receipt", str(row["receipt"])))
    if row.get("next"):
        facts += [("", ""), ("next", str(row["next"]))]
    print_facts(answers(), facts)


def _describe_released(submission: Submission, history: History) -> dict[str, str]:
    """View -> what was told of it: the score, its spread, and what it is a mean over."""
    from heldout.board.rules.spec_file import parse_spec
    from heldout.board.scores.telling import describe_released

    spec = parse_spec(history.rules[-1][1].encode())
    return {
        name: describe_released(submission, name, spec) + _say_queries(submission.counts.get(name))
        for name in submission.scores
    }


def _say_queries(count: int | None) -> str:
    """How many queries a score is a mean over; an old board does not say."""
    return "" if count is None else f" (n = {count:,})"


_STATUS_WORDS = {
    "draft": "a draft here, nothing sent",
    "not received yet": "not received yet: the organisers have not taken it in",
    "received": "received, waits for review",
    "reviewed": "in review",
    "asked": "the organisers have a question",
    "rejected": "refused",
    "withdrawn": "withdrawn by you",
    "published": "published",
    "imported": "taken over from an old board, as it was published there",
}
