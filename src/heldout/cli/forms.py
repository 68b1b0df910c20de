"""`heldout check --form`: the form of a pull request, for the workflow that a forge runs."""

import click

from heldout.board.log.registration import read_registration, team_handle
from heldout.cli.context import Place
from heldout.cli.printing import answers, print_facts, print_json, print_problems, problem_json
from heldout.errors import InputError, Problem
from heldout.pipeline.participant.registering import require_registration
from heldout.store.arrivals import Arrival, find_request
from heldout.store.registrations import find_registration
from heldout.store.repository import Repository

__all__ = ["check_form"]


def check_form(place: Place, base: str, head: str) -> None:
    """Say whether a request is one submission, or one registration; exit code 1 if not.

    Args:
        place: in a clone of the board.
        base: commit that the request starts from.
        head: its ref, `refs/pull/N/head` or `refs/merge-requests/N/head`.
    """
    name, team, problems = _look(place.board(), base, head)
    ok = not problems and bool(name or team)
    if place.as_json:
        rows = [problem_json(problem) for problem in problems]
        print_json({"id": name, "team": team, "ok": ok, "problems": rows})
    elif ok:
        print_facts(answers(), [("form", f"{name or team}: nothing wrong; contents are sealed")])
    else:
        print_facts(answers(), [("refused", f"{name or 'no submission'}  from {head}")])
        print_problems(answers(), problems)
    if not ok:
        raise click.exceptions.Exit(1)


def _look(
    repository: Repository, base: str, head: str
) -> tuple[str | None, str | None, tuple[Problem, ...]]:
    """Id or team of what a request brings, `None` for what it is not, and what is wrong with it."""
    registration = find_registration(repository.git, base=base, head=head)
    if registration is not None:
        try:
            return None, _registered_team(repository, registration), ()
        except InputError as error:
            return None, None, error.problems
    arrival = find_request(repository.git, repository.spec().envelope, base=base, head=head)
    return (None, None, ()) if arrival is None else (arrival.id, None, arrival.problems)


def _registered_team(repository: Repository, arrival: Arrival) -> str:
    """The team of a registration that says in the open what it has to say."""
    require_registration(repository.spec())
    if arrival.problems:
        raise InputError(arrival.problems)
    ((path, data),) = arrival.read().items()
    return team_handle(read_registration(data, path=path)[1].key)
