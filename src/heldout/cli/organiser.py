"""The organiser's commands: inbox, review, decisions, rebuild."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from heldout.board.history import Submission
from heldout.board.manifest import parse_day
from heldout.cli.context import Place, at_board
from heldout.cli.decisions import (
    print_next,
    rebuilt_facts,
    rebuilt_json,
    report,
    rules_facts,
)
from heldout.cli.forging import answer_all, answer_registrations, fetch_requests
from heldout.cli.printing import (
    answers,
    messages,
    print_facts,
    print_json,
    print_problems,
    problem_json,
    reports_errors,
)
from heldout.cli.registering import find_registrations
from heldout.cli.reviews import print_review, review_json, waited
from heldout.errors import HeldoutError, printable
from heldout.pipeline.decide import Decision, check_published, check_rejectable, check_scored
from heldout.pipeline.decide import ask as ask_team
from heldout.pipeline.decide import correct as correct_entry
from heldout.pipeline.decide import extend as extend_embargo
from heldout.pipeline.decide import publish as publish_submission
from heldout.pipeline.decide import reject as reject_submission
from heldout.pipeline.desk import Desk, note_labels, note_rules
from heldout.pipeline.rebuild import catch_up, rebuild_public
from heldout.pipeline.rebuild import rebuild as rebuild_board
from heldout.pipeline.receive import Receipt, note_told, receive
from heldout.pipeline.registration import receive_registrations
from heldout.pipeline.rescoring import list_earlier, rescore
from heldout.pipeline.review import Review, show_score
from heldout.pipeline.review import review as review_submission
from heldout.pipeline.sets import load_sets
from heldout.store.arrivals import Arrival, fetch, find_in_folder, find_in_git

__all__ = [
    "ask",
    "correct",
    "extend",
    "inbox",
    "publish",
    "rebuild",
    "reject",
    "review",
]


@click.command()
@click.option(
    "--from",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="DIR",
    help="Also take submissions from this folder.",
)
@click.option("--no-fetch", is_flag=True, help="Do not ask the remote.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="SOURCE",
    help="Of two that claim one id, take what came from here.",
)
@click.option("--all", "tell_all", is_flag=True, help="Tell refusals again that were told before.")
@at_board
@reports_errors
def inbox(
    *,
    folders: tuple[Path, ...],
    no_fetch: bool,
    accepted: tuple[str, ...],
    tell_all: bool,
    place: Place,
) -> None:
    """Take in what has arrived, and say what waits.

    Looks at branches submission/*, at pull-request refs, and at the folders given. The official
    time of a submission is that of its arrival here. Of two that claim one id neither is taken
    until --accept says which: "pull request 31", as the refusal names it.

    Exit code 1 where a remote or the forge did not answer: what waits there is not known then.

    \b
    Example:
      heldout inbox --from ../uploads
    """
    with place.desk() as desk:
        rules = note_rules(desk)
        receipts, silent = _take_in(desk, folders, accepted, ask_remote=not no_fetch)
        rebuilt = catch_up(desk, news=False)
        answer_all(desk, [str(r.id) for r in receipts if r.kind == "received"], {})
        answer_registrations(desk, _registered(receipts))
        if place.as_json:
            print_json(_inbox_json(desk, receipts, silent))
        else:
            print_facts(answers(), [*rules_facts(rules), *rebuilt_facts(rebuilt)[:-1]])
            _print_receipts(receipts, tell_all=tell_all)
            note_told(desk, receipts)
            _print_waiting(desk, silent)
    if silent:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--score", "with_score", is_flag=True, help="Show the scores; it is logged.")
@at_board
@reports_errors
def review(
    *,
    ids: tuple[str, ...],
    with_score: bool,
    place: Place,
) -> None:
    """Open, score and judge submissions. Nothing is decided and nothing is published.

    Exit code 1 where a finding stands against publication.

    \b
    Example:
      heldout review 20261120-lighthouse-monot5
    """
    shown: list[dict[str, Any]] = []
    against = False
    with place.desk() as desk:
        sets = load_sets(desk.repository, desk.repository.spec(), vault=desk.vault)
        for submission in ids:
            result = review_submission(desk, sets, submission)
            scores = show_score(desk, result) if with_score else None
            against |= bool(result.stands_against)
            if place.as_json:
                shown.append(review_json(result, scores, desk.repository.spec()))
            else:
                print_review(answers(), result, scores, desk.repository.spec(), now=place.now)
    if place.as_json:
        print_json({"reviews": shown})
    if against:
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--why", default="", metavar="TEXT", help="The reason, where a finding asks for one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@at_board
@reports_errors
def publish(
    *,
    ids: tuple[str, ...],
    why: str,
    yes: bool,
    place: Place,
) -> None:
    """Release the scores of submissions and rebuild the page once. It cannot be taken back.

    Where the team of a published entry asks for another name, this approves it. Submissions that a
    finding stands against are named, and the others go on (exit code 1).

    \b
    Example:
      heldout publish 20261120-lighthouse-monot5 --yes
    """
    with place.desk() as desk:
        sets = load_sets(desk.repository, desk.repository.spec(), vault=desk.vault)
        reviews = [review_submission(desk, sets, name) for name in ids]
        why = _confirm(reviews, why, yes=yes)
        decisions = [
            publish_submission(desk, review_submission(desk, sets, r.submission.id), why=why)
            for r in reviews
        ]
        told = {result.submission.id: result for result in reviews}
        _decide(desk, decisions, "published", as_json=place.as_json, reviews=told)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--why", required=True, metavar="TEXT", help="The reason; the team reads it.")
@at_board
@reports_errors
def reject(
    *,
    ids: tuple[str, ...],
    why: str,
    place: Place,
) -> None:
    """Refuse submissions, or a change of name of an entry. The reason is public.

    The quota of a refused submission is given back to its team.

    Nothing is refused where one of them cannot be.

    \b
    Example:
      heldout reject 20261120-lighthouse-monot5 --why "the third run in 30 days"
    """
    with place.desk() as desk:
        for submission in ids:
            check_rejectable(desk, submission)
        decisions = [reject_submission(desk, submission, why=why) for submission in ids]
        _decide(desk, decisions, "rejected", as_json=place.as_json)


@click.command()
@click.argument("submission", metavar="ID")
@click.argument("text", metavar="TEXT")
@at_board
@reports_errors
def ask(
    *,
    submission: str,
    text: str,
    place: Place,
) -> None:
    """Put a question to the team; it is public, and the submission waits for the answer.

    `heldout status` tells it to the team. Its answer is new metadata (heldout amend), after which
    the submission is to be reviewed again; if it answers elsewhere, publish or reject as before.

    \b
    Example:
      heldout ask 20261120-lighthouse-monot5 "Which group of the institute is this?"
    """
    with place.desk() as desk:
        _decide(desk, [ask_team(desk, submission, text=text)], "asked", as_json=place.as_json)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--why", required=True, metavar="TEXT", help="What was wrong.")
@click.option("--anyway", is_flag=True, help="Log the reason also where no score changes.")
@at_board
@reports_errors
def correct(
    *,
    ids: tuple[str, ...],
    why: str,
    anyway: bool,
    place: Place,
) -> None:
    """Publish errata: score entries or baselines anew with today's labels, and say why.

    Says which other entries are still scored with earlier labels.

    \b
    Example:
      heldout correct 20261120-lighthouse-monot5 \\
      --why "two labels were on wrong queries"
    """
    with place.desk() as desk:
        entries = [check_published(desk, name) for name in ids]
        sets = load_sets(desk.repository, desk.repository.spec(), vault=desk.vault)
        scores = {name: rescore(desk, sets, name) for name in ids}
        for entry in entries:
            check_scored(entry, scores[entry.id])
        # Only now is it sure that the labels can be read and give scores: an event is for good.
        noted = note_labels(desk, why=why)
        decisions = [
            correct_entry(desk, name, found, why=why, anyway=anyway)
            for name, found in scores.items()
        ]
        news = noted or any(decision.event is not None for decision in decisions)
        rebuilt = catch_up(desk, news=news)
        entered = [entry.id for entry in entries if not entry.baseline]
        answer_all(desk, [d.id for d in decisions if d.kind and d.id in entered], {})
        earlier = list_earlier(desk, sets)
        report(desk, decisions, rebuilt, verb="corrected", as_json=place.as_json, earlier=earlier)


@click.command()
@click.argument("submission", metavar="ID")
@click.argument("day", metavar="DATE")
@click.option("--why", required=True, metavar="TEXT", help="The reason; it is public.")
@at_board
@reports_errors
def extend(
    *,
    submission: str,
    day: str,
    why: str,
    place: Place,
) -> None:
    """Move the end of an embargo, for a reason.

    \b
    Example:
      heldout extend 20261120-anon-5b1e09c4 2027-09-01 --why "the review was delayed"
    """
    with place.desk() as desk:
        decision = extend_embargo(desk, submission, until=_day(day), why=why)
        _decide(desk, [decision], "extended", as_json=place.as_json)


@click.command()
@at_board
@reports_errors
def rebuild(*, place: Place) -> None:
    """Make everything public anew from the log, board.toml and the time.

    Reveals embargoes that ended. Without a vault it remakes the page from the public log.

    \b
    Example:
      heldout rebuild
    """
    if place.vault is None:
        rebuilt = rebuild_public(place.board(), now=place.now)
    else:
        with place.desk() as desk:
            rebuilt = rebuild_board(desk)
    if place.as_json:
        print_json(rebuilt_json(rebuilt))
        return
    print_facts(answers(), rebuilt_facts(rebuilt))
    if place.vault is not None:
        print_next(place.board(), [])


def _take_in(
    desk: Desk, folders: Sequence[Path], accepted: Sequence[str], *, ask_remote: bool
) -> tuple[tuple[Receipt, ...], tuple[str, ...]]:
    """What became of all that arrived, and who did not answer.

    Registrations first: who registers and submits at once is registered then.
    """
    arrivals, silent = _arrivals(desk, folders, ask_remote=ask_remote)
    requests = {arrival.source for arrival in arrivals}  # those that are open, as the forge says
    registrations, sources = find_registrations(desk, folders, requests, ask_remote=ask_remote)
    registered = receive_registrations(desk, registrations)
    submissions = (a for a in arrivals if a.source not in sources)
    return (*registered, *receive(desk, submissions, accepted=accepted)), silent


def _arrivals(
    desk: Desk, folders: Sequence[Path], *, ask_remote: bool
) -> tuple[list[Arrival], tuple[str, ...]]:
    """What lies there, and which remotes, or the forge, did not answer."""
    git = desk.repository.git
    form = desk.repository.spec().envelope
    found: list[Arrival] = []
    silent: list[str] = []
    head = git.head() if git.is_repository() else None
    if head is not None:
        remotes = git.remotes() if ask_remote else ()
        silent += [f"remote {remote}" for remote in remotes if not _try_fetch(desk, remote)]
        hosted = desk.repository.spec().forge
        found += [
            arrival
            for arrival in find_in_git(git, form, main=head)
            # What is open there, the forge says better: closed requests keep their refs.
            if hosted is None or arrival.source.startswith("branch ")
        ]
        requests = fetch_requests(desk) if ask_remote else ()
        found += requests or ()
        silent += ["the forge"] * (requests is None)
    for folder in folders:
        found += find_in_folder(folder, form)
    return found, tuple(silent)


def _try_fetch(desk: Desk, remote: str) -> bool:
    """Whether a remote answered; one that does not is told, and the rest goes on."""
    try:
        fetch(desk.repository.git, remote)
    except HeldoutError as error:
        print_facts(messages(), [("note", f"remote {remote} was not asked: {error}")])
        return False
    return True


def _reveals(desk: Desk) -> list[tuple[str, date]]:
    """Embargoes that end within a week."""
    week = 7
    return sorted(
        (s.id, s.embargo_until)
        for s in desk.history().submissions.values()
        if s.status == "published"
        and s.embargo_until is not None
        and 0 <= (s.embargo_until - desk.now.date()).days <= week
    )


def _waiting(desk: Desk) -> list[Submission]:
    """What waits for a decision or an answer, the longest first."""
    since = {s.id: s.waits_since for s in desk.history().submissions.values()}
    waiting = sorted((when, name) for name, when in since.items() if when is not None)
    return [desk.find(name) for _, name in waiting]


def _inbox_json(desk: Desk, receipts: Sequence[Receipt], silent: Sequence[str]) -> dict[str, Any]:
    return {
        "silent": list(silent),
        "received": [_receipt_json(r) for r in receipts if r.kind != "known"],
        "waiting": [
            {
                "id": s.id,
                "status": s.status if s.proposal is None else "proposed",
                "received": (s.waits_since or s.received).isoformat(),
            }
            for s in _waiting(desk)
        ],
        "reveals": [{"id": name, "date": day.isoformat()} for name, day in _reveals(desk)],
    }


def _print_waiting(desk: Desk, silent: Sequence[str]) -> None:
    facts = [("silent", f"{name} did not answer: what waits there is not known") for name in silent]
    for submission in _waiting(desk):
        whom = "the team, your question stands" if submission.status == "asked" else "you"
        if submission.proposal is not None:
            whom = "you, another name for this entry"
        waits = waited(desk.now - (submission.waits_since or submission.received))
        facts.append(("waits", f"{submission.id}  for {whom}, {waits}"))
    ours = [s for s in _waiting(desk) if s.status != "asked"]
    following = [f"heldout review {s.id}" for s in ours[:1]]
    facts += [("reveal", f"{name} on {day:%d %b %Y}") for name, day in _reveals(desk)]
    print_facts(answers(), facts or [("inbox", "empty, nothing waits")])
    print_next(desk.repository, following)


def _registered(receipts: Sequence[Receipt]) -> dict[str, str]:
    """Teams that are in the log, and where they wait for an answer: a request may have had none."""
    return {
        receipt.team: receipt.source
        for receipt in receipts
        if receipt.team
        and (receipt.kind == "registered" or receipt.source.startswith("pull request "))
    }


def _print_receipts(receipts: Sequence[Receipt], *, tell_all: bool) -> None:
    known = sum(receipt.told_before for receipt in receipts)
    if known and not tell_all:
        text = f"{known:,} refused before (heldout inbox --all shows them)"
        print_facts(answers(), [("note", text)])
    for receipt in receipts:
        if receipt.told_before and not tell_all:
            continue
        if receipt.kind == "refused":
            name = receipt.id or receipt.team or "no submission"
            print_facts(answers(), [("refused", f"{name}  from {receipt.source}")])
            print_problems(answers(), receipt.problems)
        elif receipt.kind != "known":
            name = receipt.id or receipt.team
            notes = [("note", note) for note in receipt.notes]
            print_facts(answers(), [(receipt.kind, f"{name}  from {receipt.source}"), *notes])


def _receipt_json(receipt: Receipt) -> dict[str, Any]:
    return {
        "id": receipt.id,
        "team": receipt.team or None,
        "source": receipt.source,
        "kind": receipt.kind,
        "notes": list(receipt.notes),
        "problems": [problem_json(problem) for problem in receipt.problems],
    }


def _confirm(reviews: Sequence[Review], why: str, *, yes: bool) -> str:
    """Say what publishing does, ask for a missing reason, ask whether to go on."""
    fresh = [r for r in reviews if r.submission.waits_since and not r.stands_against]
    if yes or not fresh:
        return why
    for told, group in (
        ("releases the scores", [r for r in fresh if r.submission.pending]),
        ("puts the proposed metadata on the page", [r for r in fresh if r.submission.proposal]),
    ):
        names = ", ".join(printable(r.submission.id) for r in group)
        if names:
            click.echo(f"This {told} of {names}. It cannot be taken back.", err=True)
    asks = sorted({finding.rule for r in fresh for finding in r.needs_reason})
    try:
        if asks and not why:
            why = click.prompt(f"Your reason for accepting {', '.join(asks)}", err=True)
        agreed = click.confirm("Publish?", err=True)
    except click.Abort:  # no terminal, or the input ended
        agreed = False
        click.echo(err=True)
    if not agreed:
        click.echo("nothing was published; --yes skips the question", err=True)
        raise click.exceptions.Exit(1)
    return why


def _decide(
    desk: Desk,
    decisions: Sequence[Decision],
    verb: str,
    *,
    as_json: bool,
    reviews: Mapping[str, Review] | None = None,
) -> None:
    rebuilt = catch_up(desk, news=any(decision.event is not None for decision in decisions))
    answer_all(desk, [decision.id for decision in decisions if decision.done], reviews or {})
    report(desk, decisions, rebuilt, verb=verb, as_json=as_json)


def _day(text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is no day like 2027-05-20") from None
