"""`heldout inbox`: take in what has arrived, and say what waits."""

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from heldout.board.log.submission import Submission
from heldout.board.organiser.rebuild import catch_up
from heldout.board.organiser.receive import Receipt, list_merged, note_told, receive, taken_in
from heldout.board.organiser.registration import receive_registrations
from heldout.board.scores.compared import find_mixed, say_mixed
from heldout.board.scores.session import Desk, note_held_out
from heldout.board.store.arrivals import Arrival, find_in_folder, find_in_git, remove_deliveries
from heldout.board.store.fetching import BRANCHES, fetch_arrivals
from heldout.cli.board.decisions import print_next, rebuilt_facts, rules_facts
from heldout.cli.board.forge_client import (
    answer_all,
    answer_registrations,
    fetch_requests,
    keep_token_host,
)
from heldout.cli.board.organiser import waited
from heldout.cli.board.registering import find_registrations
from heldout.cli.context import Place, at_board
from heldout.cli.printing import (
    answers,
    messages,
    print_facts,
    print_json,
    print_problems,
    problem_json,
    reports_errors,
)
from heldout.errors import StoreError, plural

_MAY_CHANGE = frozenset(
    ("id-conflict", "changed-file", "vault-full", "not-registered", "nothing-to-update")
)
"""Why an upload is refused today, and may be taken another day."""


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
@click.option(
    "--token-host",
    metavar="URL",
    help="Send HELDOUT_FORGE_TOKEN to this forge, now and from now on: that of board.toml.",
)
@click.option("--all", "tell_all", is_flag=True, help="Tell refusals again that were told before.")
@at_board
@reports_errors
def inbox(
    *,
    folders: tuple[Path, ...],
    no_fetch: bool,
    accepted: tuple[str, ...],
    token_host: str | None,
    tell_all: bool,
    place: Place,
) -> None:
    """Take in what has arrived, and say what waits.

    Looks at branches submission/*, at pull-request refs, at what was merged before it was taken in,
    and at the folders given. The official time of a submission is that of its arrival here. Of two
    that claim one id neither is taken until --accept says which: "pull request 31", as the refusal
    names it.

    Exit code 1 where a remote or the forge did not answer: what waits there is not known then.

    \b
    Example:
      heldout inbox --from ../uploads
    """
    with place.desk() as desk:
        if token_host is not None:
            keep_token_host(desk, token_host)
        rules = note_held_out(desk)
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
        done = _done_with(receipts)
        for folder in folders:
            remove_deliveries(folder, done)
    if silent:
        raise click.exceptions.Exit(1)


def _done_with(receipts: Sequence[Receipt]) -> frozenset[str]:
    """Sources that need not be looked at again: taken in, or refused for good, and told before."""
    return frozenset(
        receipt.source
        for receipt in receipts
        if receipt.kind != "refused"
        or (receipt.told_before and not {p.code for p in receipt.problems} & _MAY_CHANGE)
    )


def _take_in(
    desk: Desk, folders: Sequence[Path], accepted: Sequence[str], *, ask_remote: bool
) -> tuple[tuple[Receipt, ...], tuple[str, ...]]:
    """What became of all that arrived, and who did not answer.

    Registrations first: who registers and submits at once is registered then.
    """
    arrivals, silent = _arrivals(desk, folders, ask_remote=ask_remote)
    requests = {arrival.source for arrival in arrivals}  # those that are open, as the forge says
    registrations, sources = find_registrations(desk, folders, requests)
    registered = receive_registrations(desk, registrations)
    submissions = (a for a in arrivals if a.source not in sources)
    return (*registered, *receive(desk, submissions, accepted=accepted)), silent


def _arrivals(
    desk: Desk, folders: Sequence[Path], *, ask_remote: bool
) -> tuple[list[Arrival], tuple[str, ...]]:
    """What lies there, and which remotes, or the forge, did not answer."""
    git = desk.repository.git
    form = desk.spec().envelope
    found: list[Arrival] = []
    silent: list[str] = []
    head = git.head() if git.is_repository() else None
    if head is not None:
        hosted = desk.spec().forge
        unread, unknown = _fetch(desk, requests=hosted is None) if ask_remote else ({}, ())
        silent += unknown
        found += [
            arrival
            for arrival in find_in_git(git, form, main=head, unread=unread, taken=taken_in(desk))
            # What is open there, the forge says better: closed requests keep their refs.
            if hosted is None or arrival.source.startswith("branch ")
        ]
        requests = fetch_requests(desk) if ask_remote else ()
        found += [*(requests or ()), *list_merged(desk, main=head)]
        silent += ["the forge"] * (requests is None)
    for folder in folders:
        found += find_in_folder(folder, form)
    return found, tuple(silent)


def _fetch(desk: Desk, *, requests: bool) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Ask all remotes: ref -> why it was not fetched, and what did not answer.

    A remote that does not answer gets a note, and the others are asked.
    """
    registers = desk.spec().registration is not None
    kinds = BRANCHES if registers else BRANCHES[:1]
    git = desk.repository.git
    unread: dict[str, str] = {}
    silent: list[str] = []
    remotes = {remote: remote for remote in git.remotes()}
    for remote, done in fetch_arrivals(git, remotes, kinds=kinds, requests=requests).items():
        if isinstance(done, StoreError):
            print_facts(messages(), [("note", f"remote {remote} was not asked: {done}")])
            silent.append(f"remote {remote}")
            continue
        unread |= {**done.refused, **done.failed}
        silent += [f"remote {remote}, of {plural(len(done.failed), 'ref')}"] * bool(done.failed)
    return unread, tuple(silent)


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
        "earlier_labels": {
            mixed.view: list(mixed.earlier) for mixed in find_mixed(desk.vault, desk.history())
        },
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
    mixed = find_mixed(desk.vault, desk.history())
    facts += [("labels", say_mixed(one)) for one in mixed]
    if mixed:
        earlier = sorted({name for one in mixed for name in one.earlier})
        following.append(f'heldout correct {" ".join(earlier)} --why "…"')
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
