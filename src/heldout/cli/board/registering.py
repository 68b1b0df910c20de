"""Registration of teams: `register` for a participant, `board teams` and `board revoke`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from heldout.cli import context, printing
from heldout.cli.options import command
from heldout.errors import InputError, plural, printable
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.log.registration import Agreement, RegisteredTeam


@command
def register(
    *,
    team: Annotated[str, Opt("Name of the team, as on submissions.", metavar="NAME")],
    institution: Annotated[str, Opt("University, company or other.", metavar="NAME")] = "",
    contact: Annotated[str, Opt("Address for messages from the organisers.", metavar="TEXT")] = "",
    agree: Annotated[bool, Opt("Agree to the board's agreement, which you have read.")] = False,
    to: context.SendTo = None,
    call: context.BoardCall,
) -> None:
    """Register a team, once, and again when the agreement has changed.

    Shows the board's agreement and asks. Makes the team's key, which signs every submission from
    this clone: store a copy of the folder that the answer names. Names are sealed for the
    organisers; the log shows the key alone.

    \b
    Example:
      heldout register --team "Lighthouse Retrieval Group" --contact ada@example.org
    """
    from heldout.board.log.history import read_history
    from heldout.board.participant import checks, send
    from heldout.board.participant.team import current_agreement, own_registration, team_folder
    from heldout.board.participant.team import register as register_team

    repository = call.board()
    log = repository.newest_log()
    spec, history = checks.rules_to_seal_by(repository), read_history(log)
    names = {"team": team, "institution": institution, "contact": contact}
    before = own_registration(repository, spec, history)
    agreement = current_agreement(spec, history)
    if agreement is not None and not (before.own is not None and before.agreed):
        _consent(agreement, agreed=agree, as_json=call.as_json)
    sent = ""
    try:
        with repository.locked():
            repository.pin(log)
            own = register_team(repository, spec, history, names=names, now=call.now)
            if not before.taken_in or before.own != own:
                sent = send.send_registration(
                    repository, own, context.find_target(repository, to), now=call.now
                )
    except InputError as error:
        printing.fail(error, status=1)
    own_folder = context.show_path(team_folder(repository).path())
    facts = printing.fill_facts("registered", own=own, sent=sent, folder=own_folder)
    call.answer({"team": own.handle, "agreement": own.agreement or None, "sent": sent}, facts)


@command
def teams(*, call: context.OrganiserCall) -> None:
    """List the teams that have registered, with what only the organisers know of them.

    \b
    Example:
      heldout board teams --vault ../kb-vault
    """
    from heldout.board.policy.registered import revoked_before

    with call.session() as session:
        history = session.history()
        current = history.agreements[-1] if history.agreements else None
        everybody = history.teams.values()
        notes = {team.handle: [*revoked_before(team, everybody)] for team in everybody}
        rows = [{**_team_json(one, current), "notes": notes[one.handle]} for one in everybody]
        facts: list[tuple[str, str]] = []
        for team in everybody:
            facts += _team_facts(team, current)
            facts += [("", note) for note in notes[team.handle]]
        count = plural(len(everybody), "team")
        call.answer({"teams": rows}, [*facts, ("teams", f"{count} registered")])


@command
def revoke(
    *,
    team: Annotated[str, Opt(argument=True, metavar="TEAM")],
    why: context.Why,
    call: context.OrganiserCall,
) -> None:
    """End a team's registration: what it sends is refused from now on.

    What was published stays. Under the same name another key can register then.

    \b
    Example:
      heldout board revoke team-0123456789abcdef --why "the key was lost"
    """
    from heldout.board.organiser.inbox import revoke as revoke_team
    from heldout.board.organiser.rebuild import catch_up
    from heldout.cli.board.reports import rebuilt_document, rebuilt_facts

    with call.session() as session:
        event = revoke_team(session, team, why=why)
        rebuilt = catch_up(session, news=event is not None)
        logged = "   (done before)" if event is None else f", event {event}"
        facts = [("revoked", f"{team}{logged}"), *rebuilt_facts(rebuilt)]
        call.answer(
            {"team": team, "event": event, **rebuilt_document(rebuilt)},
            [*facts, *context.next_facts(session.repository)],
        )


def _consent(agreement: Agreement, *, agreed: bool, as_json: bool) -> None:
    """Show the text on standard error, or where it is, and ask; end with 1 where it is refused."""
    if not as_json:
        text = "\n".join(printable(line) for line in agreement.text.splitlines())
        click.echo(f"{text}\n", err=True)
    digest = printable(f"{agreement.path}, SHA-256 {agreement.digest}")
    click.echo(f"{digest}, in force since {agreement.since:%d %b %Y}", err=True)
    if not agreed:
        context.require_yes(
            "Do you agree to it for your team?",
            "nothing was sent; --agree agrees without a question",
        )


def _team_facts(team: RegisteredTeam, current: Agreement | None) -> list[tuple[str, str]]:
    from heldout.board.log.registration import LONGEST_NAME

    who = team.registrant
    named = [] if who is None else [who.team, who.institution, who.contact]
    shown = printable(", ".join(part for part in named if part))[: 3 * LONGEST_NAME]
    facts = [(team.handle, f"{shown}; since {team.registered:%d %b %Y}")]
    if team.revoked is not None:
        facts.append(("", f"revoked on {team.revoked:%d %b %Y}: {team.why}"))
    elif current is not None and current.digest not in team.agreements:
        facts.append(("", f"has not agreed to {current.path} as it stands now"))
    return facts


def _team_json(team: RegisteredTeam, current: Agreement | None) -> dict[str, Any]:
    who = team.registrant
    return {
        "team": team.handle,
        "key": team.key,
        "name": None if who is None else who.team,
        "institution": None if who is None else who.institution,
        "contact": None if who is None else who.contact,
        "registered": team.registered,
        "agreements": team.agreements,
        "agreed": current is None or current.digest in team.agreements,
        "revoked": team.revoked,
        "why": team.why,
    }
