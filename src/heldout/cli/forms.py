"""`heldout check --form`: the form of a pull request, for the workflow that a forge runs."""

import click

from heldout.cli.context import Place
from heldout.cli.printing import answers, print_facts, print_json, print_problems, problem_json
from heldout.store.forge.form import find_request

__all__ = ["check_form"]


def check_form(place: Place, base: str, head: str) -> None:
    """Say whether the commits from base to head are one submission; exit code 1 if not.

    Args:
        place: in a clone of the board.
        base: commit that the request starts from.
        head: its ref, `refs/pull/N/head` or `refs/merge-requests/N/head`.
    """
    repository = place.board()
    arrival = find_request(repository.git, repository.spec().envelope, base=base, head=head)
    problems = () if arrival is None else arrival.problems
    ok = arrival is not None and not problems
    name = None if arrival is None else arrival.id
    if place.as_json:
        rows = [problem_json(problem) for problem in problems]
        print_json({"id": name, "ok": ok, "problems": rows})
    elif ok:
        print_facts(answers(), [("form", f"{name}: nothing wrong; contents are sealed")])
    else:
        print_facts(answers(), [("refused", f"{name or 'no submission'}  from {head}")])
        print_problems(answers(), problems)
    if not ok:
        raise click.exceptions.Exit(1)
