"""`heldout inbox`: take in what has arrived; `heldout run`: run what is a program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from heldout.cli.context import Identifier, OrganiserCall, ended_in_order, next_facts, reach_forge
from heldout.cli.options import command, persist
from heldout.cli.printing import answers, fill_facts, print_facts, print_json, print_problems
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.organiser.inbox import ArrivalReceipt, TakenIn
    from heldout.board.organiser.running import Ran
    from heldout.board.scores.session import Session


_MAY_CHANGE = frozenset(
    ("id-conflict", "changed-file", "vault-full", "not-registered", "nothing-to-update")
)
"""Why an upload is refused today, and may be taken another day."""


@command
def inbox(
    *,
    folders: Annotated[
        tuple[Path, ...],
        Opt("Folder to take submissions from, too.", names=("--from",), path="folder", exists=True),
    ] = (),
    no_fetch: Annotated[bool, Opt("Use no remote and no forge.")] = False,
    accept: Annotated[
        tuple[str, ...],
        Opt("Source to accept where two sources use the same id.", metavar="SOURCE"),
    ] = (),
    token_host: Annotated[
        str | None,
        Opt(
            "Forge of board.toml that HELDOUT_FORGE_TOKEN is sent to, now and from now on.",
            metavar="URL",
        ),
    ] = None,
    every: Annotated[
        bool, Opt("Show refusals again that were shown before.", names=("--all",))
    ] = False,
    call: OrganiserCall,
) -> None:
    """Take in what has arrived, and say what waits.

    Looks at branches submission/*, at pull-request refs, at what was merged before it was taken in,
    and at the folders given. The official time of a submission is that of its arrival here. Of two
    that claim one id neither is taken until --accept says which: "pull request 31", as the refusal
    names it.

    Fetching has a limit of time, so that no sender holds up the others: what takes long waits for
    the next call and is listed.

    Exit code 1 where a remote or the forge did not answer: what waits there is not known then.

    \b
    Example:
      heldout inbox --from ../uploads
    """
    from heldout.board.organiser.inbox import note_printed, take_in
    from heldout.board.store.arrivals import remove_deliveries
    from heldout.cli.board.reports import rebuilt_facts, rules_facts

    with call.session() as session:
        if token_host is not None:
            _set_token_host(session, token_host)
        taken = take_in(
            session, reach_forge(), folders=folders, accepted=accept, ask_remote=not no_fetch
        )
        receipts = taken.receipts
        if call.as_json:
            print_json(_document(session, taken))
        else:
            print_facts(answers(), [*rules_facts(taken.rules), *rebuilt_facts(taken.rebuilt)[:-1]])
            _print_receipts(receipts, every=every)
            note_printed(session, receipts)
            _print_waiting(session, taken)
        done = _done_with(receipts)
        for folder in folders:
            remove_deliveries(folder, done)
    if taken.silent:  # and not what waits: any sender could make a cron job fail by it
        raise click.exceptions.Exit(1)


def _set_token_host(session: Session, address: str) -> None:
    """Remember that the token is for the forge of the board's rules, as the organiser names it."""
    forge = session.spec().forge
    host = forge.host if forge is not None and forge.hosted else ""
    if address.rstrip("/").lower() != host:
        names = f"names {host}" if host else "names none that is asked over HTTP"
        raise click.BadParameter(
            f"{address!r}: [forge] of board.toml {names}", param_hint="--token-host"
        )
    session.vault.store_token_host(host)


def _done_with(receipts: Sequence[ArrivalReceipt]) -> frozenset[str]:
    """Sources that need not be looked at again: taken in, or refused for good and reported."""
    return frozenset(
        receipt.source
        for receipt in receipts
        if receipt.kind != "refused"
        or (receipt.printed_before and not {p.code for p in receipt.problems} & _MAY_CHANGE)
    )


def _document(session: Session, taken: TakenIn) -> dict[str, Any]:
    from heldout.board.organiser.inbox import list_public_overdue, list_reveals, list_waiting
    from heldout.board.scores.stored import find_mixed
    from heldout.cli.board.reports import overdue_document

    return {
        "silent": taken.silent,
        "unfetched": taken.unfetched,
        "received": [receipt for receipt in taken.receipts if receipt.kind != "known"],
        "waiting": [
            {
                "id": s.id,
                "status": s.status if s.proposal is None else "proposed",
                "received": s.waits_since or s.received,
            }
            for s in list_waiting(session)
        ],
        "reveals": [{"id": name, "date": day} for name, day in list_reveals(session)],
        "due": overdue_document(list_public_overdue(session)),
        "earlier_labels": {
            mixed.view: mixed.earlier for mixed in find_mixed(session.vault, session.history())
        },
    }


def _print_waiting(session: Session, taken: TakenIn) -> None:
    from heldout.board.organiser.inbox import list_public_overdue, list_reveals, list_waiting
    from heldout.board.scores.stored import find_mixed, say_mixed
    from heldout.cli.board.reports import waited

    waiting, overdue = list_waiting(session), list_public_overdue(session)
    mixed = find_mixed(session.vault, session.history())
    facts = fill_facts(
        "waiting",
        taken=taken,
        waiting=waiting,
        waited=waited,
        now=session.now,
        reveals=list_reveals(session),
        overdue=overdue,
        mixed=mixed,
        say_mixed=say_mixed,
    )
    following = [f"heldout review {one.id}" for one in waiting if one.status != "asked"][:1]
    following += ["heldout rebuild"] * bool(overdue)
    if mixed:
        earlier = sorted({name for one in mixed for name in one.earlier})
        following.append(f'heldout correct {" ".join(earlier)} --why "…"')
    print_facts(answers(), facts or [("inbox", "empty, nothing waits")])
    print_facts(answers(), next_facts(session.repository, following))


def _print_receipts(receipts: Sequence[ArrivalReceipt], *, every: bool) -> None:
    known = sum(receipt.printed_before for receipt in receipts)
    if known and not every:
        text = f"{known:,} refused before (heldout inbox --all shows them)"
        print_facts(answers(), [("note", text)])
    for receipt in receipts:
        if receipt.printed_before and not every:
            continue
        if receipt.kind == "refused":
            name = receipt.id or receipt.team or "no submission"
            print_facts(answers(), [("refused", f"{name}  from {receipt.source}")])
            print_problems(answers(), receipt.problems)
        elif receipt.kind != "known":
            name = receipt.id or receipt.team
            notes = [("note", note) for note in receipt.notes]
            print_facts(answers(), [(receipt.kind, f"{name}  from {receipt.source}"), *notes])


@command
def run(
    *,
    submission: Identifier,
    engine: Annotated[
        str,
        Opt(
            "Program that runs containers, with its options [podman, else docker].",
            env="HELDOUT_ENGINE",
            metavar="COMMAND",
        ),
    ] = "",
    container_flags: Annotated[
        str,
        Opt(
            "Further options of the container, such as a device.",
            env="HELDOUT_CONTAINER_FLAGS",
            metavar="OPTIONS",
        ),
    ] = "",
    call: OrganiserCall,
) -> None:
    """Run the program of a submission on the board's queries; what it writes becomes its runs.

    The program runs in a container without a network, within the limits of [programs] in
    board.toml. The image must be on this machine under the digest that the team sealed: nothing is
    fetched.
    Runs and measured costs are logged. Whatever fails leaves no event, and uses no quota.

    \b
    Example:
      heldout run 20261120-lighthouse-monot5
    """
    from heldout.board.organiser.containers import find_engine
    from heldout.board.organiser.running import find_meter, plan_run, record_run, run_plan

    with call.session() as session:
        plan = plan_run(session, submission)
    if plan is None:
        _report(call, submission, None)
        return
    with ended_in_order():
        ran = run_plan(plan, find_engine(engine, container_flags, os.environ), meter=find_meter())

    def record() -> None:
        with call.session() as session:
            record_run(session, plan, ran)

    persist(record)  # and never the program again
    _report(call, submission, ran)


def _report(call: OrganiserCall, submission: str, ran: Ran | None) -> None:
    """Say what was written and what it cost, or that it was run before."""
    facts = fill_facts("run", submission=submission, ran=ran)
    document = {
        "id": submission,
        "done_before": ran is None,
        "runs": None if ran is None else {name: len(data) for name, data in ran.runs.items()},
        "costs": None if ran is None else ran.costs,
        "engine": None if ran is None else ran.engine,
    }
    call.answer(document, [*facts, *next_facts(call.board(), [f"heldout review {submission}"])])
