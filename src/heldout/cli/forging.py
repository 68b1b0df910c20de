"""The board's forge, for the organiser's commands: what waits there, and what is told there."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from heldout.cli.printing import messages, print_facts
from heldout.errors import HeldoutError
from heldout.pipeline.deciding.answer import answer, answer_registration
from heldout.pipeline.deciding.review import Review
from heldout.pipeline.organiser.desk import Desk
from heldout.store.arrivals import Arrival
from heldout.store.forge import Forge, Surroundings, new_client, open_forge

__all__ = ["answer_all", "answer_registrations", "fetch_requests"]


def fetch_requests(desk: Desk) -> tuple[Arrival, ...] | None:
    """What is open on the board's forge.

    Returns:
        `None` where it did not answer, which is told: nobody knows then what waits there.
    """
    with _forge(desk) as forge:
        if forge is None:
            return ()
        try:
            return forge.fetch()
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
    with _forge(desk) as forge:
        if forge is None:
            return
        for name in ids:
            found = reviews.get(name)
            try:
                answer(
                    desk,
                    forge,
                    name,
                    findings=() if found is None else found.findings,
                    facts={} if found is None else _facts(found),
                )
            except HeldoutError as error:
                print_facts(
                    messages(), [("note", f"{name} was not answered on the forge: {error}")]
                )


def answer_registrations(desk: Desk, sources: Mapping[str, str]) -> None:
    """Tell teams on the forge that they are registered; nothing that was told is told again.

    Args:
        desk: its lock is held.
        sources: team -> where its registration came from.
    """
    if not sources:
        return
    with _forge(desk) as forge:
        if forge is None:
            return
        for team, source in sources.items():
            try:
                answer_registration(desk, forge, team, source=source)
            except HeldoutError as error:
                told = f"{team} was not answered on the forge: {error}"
                print_facts(messages(), [("note", told)])


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
    with new_client() as client:
        world = Surroundings(client=client, environ=os.environ, clock=time.time, sleep=time.sleep)
        yield open_forge(spec.forge, git, spec.envelope, main=head, world=world)
