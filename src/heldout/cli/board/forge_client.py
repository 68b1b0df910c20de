"""The board's forge, for the organiser's commands: what waits there, and what is told there."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click

from heldout.board.organiser.answer import answer, answer_registration
from heldout.board.organiser.review import Review
from heldout.board.scores.session import Desk
from heldout.board.store.arrivals import Arrival
from heldout.board.store.forges.local import Surroundings, new_client, open_forge
from heldout.board.store.forges.protocol import Forge
from heldout.board.store.forges.rest import TOKEN, read_token
from heldout.board.store.vault import Vault
from heldout.cli.printing import messages, print_facts
from heldout.errors import HeldoutError


def fetch_requests(desk: Desk) -> tuple[Arrival, ...] | None:
    """What is open on the board's forge.

    Returns:
        `None` where it did not answer, which is told: nobody knows then what waits there.
    """
    try:
        with _forge(desk) as forge:
            return () if forge is None else forge.fetch()
    except HeldoutError as error:
        print_facts(messages(), [("note", f"the forge did not answer: {error}")])
        return None


def answer_all(desk: Desk, ids: Sequence[str], reviews: Mapping[str, Review]) -> None:
    """Tell on the forge what became of submissions; nothing that was told is told again.

    A forge that fails is told, and nothing else changes: the events stand, and the next call
    answers what is missing.

    Args:
        desk: its lock is held.
        ids: the submissions.
        reviews: of some of them, for what the comment says of the runs.
    """

    def answer_one(forge: Forge, name: str) -> None:
        found = reviews.get(name)
        answer(
            desk,
            forge,
            name,
            findings=() if found is None else found.findings,
            facts={} if found is None else _facts(found),
        )

    _answer_each(desk, ids, answer_one)


def answer_registrations(desk: Desk, sources: Mapping[str, str]) -> None:
    """Tell teams on the forge that they are registered; nothing that was told is told again.

    Args:
        desk: its lock is held.
        sources: team -> where its registration came from.
    """
    _answer_each(
        desk,
        tuple(sources),
        lambda forge, team: answer_registration(desk, forge, team, source=sources[team]),
    )


def _answer_each(desk: Desk, names: Sequence[str], act: Callable[[Forge, str], object]) -> None:
    """Answer each by itself: one that fails is a note, and the others go on."""
    if not names:
        return
    try:
        with _forge(desk) as forge:
            for name in names:
                if forge is None:
                    return
                try:
                    act(forge, name)
                except HeldoutError as error:
                    told = f"{name} was not answered on the forge: {error}"
                    print_facts(messages(), [("note", told)])
    except HeldoutError as error:
        print_facts(messages(), [("note", f"nothing was answered on the forge: {error}")])


def _facts(found: Review) -> dict[str, dict[str, int]]:
    return {
        name: {"queries answered": run.queries, "documents": run.documents}
        for name, run in found.scores.runs.items()
    }


@contextmanager
def _forge(desk: Desk) -> Iterator[Forge | None]:
    spec, git = desk.spec(), desk.repository.git
    head = git.head() if git.is_repository() else None
    if spec.forge is None or head is None:
        yield None
        return
    if spec.forge.hosted and read_token(os.environ) and not desk.vault.token_host():
        _ask_host(desk.vault, spec.forge.host)
    with new_client() as client:
        world = Surroundings(
            client=client,
            environ=os.environ,
            clock=time.time,
            sleep=time.sleep,
            token_host=desk.vault.token_host(),
        )
        yield open_forge(spec.forge, git, spec.envelope, main=head, world=world)


def keep_token_host(desk: Desk, address: str) -> None:
    """Remember that the token is for the forge of the board's rules, as the organiser names it.

    Raises:
        BadParameter: the rules name another forge, or none that is asked over HTTP.
    """
    forge = desk.spec().forge
    host = forge.host if forge is not None and forge.hosted else ""
    if address.rstrip("/").lower() != host:
        names = f"names {host}" if host else "names none that is asked over HTTP"
        raise click.BadParameter(
            f"{address!r}: [forge] of board.toml {names}", param_hint="--token-host"
        )
    desk.vault.keep_token_host(host)


def _ask_host(vault: Vault, host: str) -> None:
    """Ask once whether the token is for the forge that board.toml names."""
    try:
        agreed = click.confirm(f"Send {TOKEN} to {host}, now and from now on?", err=True)
    except click.Abort:  # no terminal, or the input ended
        click.echo(err=True)
        agreed = False
    if agreed:
        vault.keep_token_host(host)
