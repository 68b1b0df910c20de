"""A participant's commands on a draft, inside a clone of a board: make it, check it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heldout.cli.context import Place, in_clone
from heldout.cli.printing import (
    answers,
    count_errors,
    messages,
    print_facts,
    print_json,
    print_problems,
    reports_errors,
)
from heldout.errors import InputError, Problem, plural, problem_document
from heldout.ids import parse_submission_id, run_name, submission_date

if TYPE_CHECKING:
    from heldout.board.participant.checks import Check
    from heldout.board.policy.checks import QuotaState
    from heldout.board.store.arrivals import Arrival
    from heldout.board.store.repository import Repository


# `heldout check --form`: the form of a pull request, for the workflow that a forge runs.


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
        rows = [problem_document(problem) for problem in problems]
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
    from heldout.board.store.arrivals import find_registration, find_request

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
    from heldout.board.log.registration import read_registration, team_handle
    from heldout.board.participant.team import require_registration

    require_registration(repository.spec())
    if arrival.problems:
        raise InputError(arrival.problems)
    ((path, data),) = arrival.read().items()
    return team_handle(read_registration(data, path=path)[1].key)


_path = click.Path(path_type=Path)


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--dev", type=_path, multiple=True, metavar="FILE", help="As --run dev=FILE.")
@click.option("--eval", type=_path, multiple=True, metavar="FILE", help="As --run eval=FILE.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="SET=FILE",
    help="The run over a query set; given again, that of a further seed.",
)
@click.option("--embargo", metavar="DATE", help="Stay anonymous until this day.")
@in_clone
@reports_errors
def draft(
    *,
    place: Place,
    name: str,
    dev: tuple[Path, ...],
    eval: tuple[Path, ...],  # noqa: A002 - the option's name is a contract
    runs: tuple[str, ...],
    embargo: str | None,
) -> None:
    """Make the dated id of a submission, its folder, and metadata to fill in.

    Git ignores the folder. Under an embargo the id says nothing but a random suffix. Runs of one
    system that differ only by seed are one submission: give each option once for each seed.

    \b
    Example:
      heldout draft lighthouse-monot5 --dev d.trec.gz --eval e.trec.gz
    """
    from heldout.board.participant.checks import check_public_files, check_tree_rules
    from heldout.board.participant.draft import check_embargo, draft_id
    from heldout.board.participant.draft import draft as make_draft
    from heldout.board.rules.changes import difference_facts

    repository = place.board()
    print_facts(messages(), difference_facts(check_tree_rules(repository, repository.log())))
    check_public_files(repository)
    until = None if embargo is None else _day(embargo)
    if until is not None:
        check_embargo(repository.spec(), until, today=place.now.date())
    files = read_runs({"dev": dev, "eval": eval}, runs)
    submission = draft_id(name, today=place.now.date(), embargoed=until is not None)
    with repository.locked():
        folder = make_draft(repository, submission, files, embargo_until=until)
    shown = folder.inside
    if place.as_json:
        print_json({"id": submission, "folder": shown})
        return
    print_facts(
        answers(),
        [
            ("drafted", submission),
            ("wrote", f"{shown}/ with {plural(len(files), 'run')}; git ignores it"),
            ("", ""),
            ("next", f"fill in {shown}/metadata.json, then: heldout check {submission}"),
        ],
    )


@click.command()
@click.argument("submission", metavar="[ID]", required=False)
@click.option(
    "--form",
    nargs=2,
    metavar="BASE REF",
    help="Look at the form of a pull request, at refs/pull/N/head.",
)
@in_clone
@reports_errors
def check(*, place: Place, submission: str | None, form: tuple[str, str] | None) -> None:
    """Run the organisers' own checks, as far as they go without held-out labels.

    Exit code 1 where something has to be mended. Nothing is sealed or sent. With --form the commits
    of a pull request are looked at instead, as data: nothing of it is checked out or run.

    \b
    Example:
      heldout check 20261120-lighthouse-monot5
    """
    from heldout.board.participant.checks import check as check_draft

    if (submission is None) == (form is None):
        raise click.UsageError("name a draft's ID, or --form BASE REF")
    if form is not None:
        check_form(place, *form)
        return
    repository = place.board()
    found = check_draft(repository, parse_submission_id(submission or ""), now=place.now)
    if place.as_json:
        print_json(check_json(found))
    else:
        print_check(found, repository, place)
        if found.ok:
            print_facts(answers(), [("", ""), ("next", f"heldout submit {found.id}")])
    if not found.ok:
        raise click.exceptions.Exit(1)


def print_check(found: Check, repository: Repository, place: Place) -> None:
    """What a check says of a draft, for a reader."""
    from heldout.board.rules.changes import difference_facts
    from heldout.board.scores.telling import describe_true

    spec = repository.spec().on(submission_date(found.id))
    facts = [(name, "no run that can be read") for name in spec.sets if name not in found.scans]
    for name, scan in found.scans.items():
        size = f"{plural(scan.facts.queries, 'query', 'queries')} × {scan.facts.max_depth or 0}"
        scores = [
            f"{view.measure} {describe_true(found.scores[view.name], decimals=spec.decimals)}"
            for view in spec.views
            if view.set == name and view.name in found.scores
        ]
        errors = count_errors(scan.problems, scan.counts)
        told = plural(errors, "problem") if errors else "    ".join([size, *scores])
        facts.append((name, told))
    wrong = count_errors(found.metadata, {})
    facts.append(("metadata", plural(wrong, "problem") if wrong else "ok"))
    if found.quota is not None:
        facts.append(("quota", _quota_words(found.quota, found.undecided, now=place.now)))
    print_facts(answers(), facts)
    noted = any(scan.problems for scan in found.scans.values())
    if noted or found.files or found.metadata or found.findings or found.warnings:
        print_facts(answers(), [("", "")])
    print_problems(answers(), found.files)
    for scan in found.scans.values():
        print_problems(answers(), scan.problems, counts=scan.counts)
    print_problems(answers(), found.metadata)
    print_facts(answers(), [(f.severity, f"{f.rule}: {f.evidence}") for f in found.findings])
    print_seen(found)
    print_facts(answers(), difference_facts(found.differences))
    if not found.ok:
        count = _count(found)
        mend = f"Mend {'it' if count == 1 else 'them'}, then check again."
        last = f"{plural(count, 'problem')}; nothing was sealed or sent. {mend}"
        answers().print(f"\n{last}")


def print_seen(found: Check) -> None:
    """What an embargo hides, and what it cannot hide."""
    print_facts(answers(), [("hidden", what) for what in found.hidden])
    print_facts(answers(), [("visible", warning) for warning in found.warnings])


def check_json(found: Check) -> dict[str, Any]:
    """The same as a document."""
    return {
        "id": found.id,
        "ok": found.ok,
        "scores": {name: score.mean for name, score in found.scores.items()},
        "seeds": {name: list(score.seeds) for name, score in found.scores.items()},
        "problems": [
            problem_document(problem) for scan in found.scans.values() for problem in scan.problems
        ]
        + [problem_document(problem) for problem in (*found.files, *found.metadata)],
        "findings": [
            {"rule": f.rule, "severity": f.severity, "evidence": f.evidence} for f in found.findings
        ],
        "warnings": list(found.warnings),
        "rules": [str(one) for one in found.differences],
        "hidden": list(found.hidden),
    }


def read_runs(given: Mapping[str, Iterable[Path]], runs: Iterable[str]) -> dict[str, Path]:
    """Run -> file; a set that is given again has a further seed: `SET~2`, `SET~3`.

    Args:
        given: query set -> its files, of options of their own.
        runs: `SET=FILE` each.
    """
    pairs = [(name, path) for name, paths in given.items() for path in paths]
    for text in runs:
        name, equals, file = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not SET=FILE", param_hint="--run")
        pairs.append((name, Path(file)))
    files: dict[str, Path] = {}
    seeds: Counter[str] = Counter()
    for name, path in pairs:
        seeds[name] += 1
        files[run_name(name, seeds[name])] = path
    return files


def _quota_words(quota: QuotaState, undecided: int, *, now: datetime) -> str:
    when = (
        "you may submit now"
        if quota.next_allowed <= now
        else f"you may submit again from {quota.next_allowed:%d %b %Y %H:%M} UTC"
    )
    used = len(quota.used)
    parts = f" ({used - undecided} published, {undecided} sent from here and undecided)"
    said = parts if used else ""
    return f"{used} of {quota.limit} used since {quota.since:%d %b}{said}; {when}"


def _count(found: Check) -> int:
    runs = sum(count_errors(scan.problems, scan.counts) for scan in found.scans.values())
    refused = sum(finding.severity == "reject" for finding in found.findings)
    return runs + count_errors((*found.files, *found.metadata), {}) + refused


def _day(text: str) -> date:
    from heldout.board.log.manifest import parse_day

    try:
        return parse_day(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no day like 2027-05-20", param_hint="--embargo"
        ) from None
