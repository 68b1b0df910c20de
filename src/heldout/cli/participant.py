"""A participant's commands, inside a clone of a board."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click

from heldout.board.manifest import parse_day
from heldout.board.quota import QuotaState
from heldout.cli.context import Place, in_clone
from heldout.cli.forms import check_form
from heldout.cli.printing import (
    answers,
    count_errors,
    fail,
    plural,
    print_facts,
    print_json,
    print_problems,
    problem_json,
    reports_errors,
)
from heldout.cli.scores import say_true
from heldout.envelope.bundle import short_recipient
from heldout.errors import InputError, StoreError
from heldout.ids import SubmissionId, parse_submission_id, run_name, submission_date
from heldout.pipeline.amending import check_update
from heldout.pipeline.draft import (
    Check,
    check_embargo,
    draft_id,
    read_metadata,
    require_draft,
)
from heldout.pipeline.draft import check as check_draft
from heldout.pipeline.draft import draft as make_draft
from heldout.pipeline.receipts import keep_receipt
from heldout.pipeline.send import Packed, deliver, mark_sent, update
from heldout.pipeline.send import pack as pack_draft
from heldout.pipeline.send import submit as submit_draft
from heldout.store.repository import Repository

__all__ = ["amend", "check", "draft", "pack", "submit", "withdraw"]

_path = click.Path(path_type=Path)
_send_to = click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Put the sealed files into this folder, not on a branch.",
)


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
    repository = place.board()
    until = None if embargo is None else _day(embargo)
    if until is not None:
        check_embargo(repository.spec(), until, today=place.now.date())
    files = read_runs({"dev": dev, "eval": eval}, runs)
    submission = draft_id(name, today=place.now.date(), embargoed=until is not None)
    with repository.locked():
        folder = make_draft(repository, submission, files, embargo_until=until)
    shown = folder.relative_to(repository.root).as_posix()
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
    if (submission is None) == (form is None):
        raise click.UsageError("name a draft's ID, or --form BASE REF")
    if form is not None:
        check_form(place, *form)
        return
    repository = place.board()
    found = check_draft(repository, parse_submission_id(submission or ""), now=place.now)
    if place.as_json:
        print_json(_check_json(found))
    else:
        _print_check(found, repository, place)
        if found.ok:
            print_facts(answers(), [("", ""), ("next", f"heldout submit {found.id}")])
    if not found.ok:
        raise click.exceptions.Exit(1)


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
        print_json({**_packed_json(found.id, packed), "sent": sent})
        return
    _print_packed(repository, found.id, packed)
    _print_seen(found)
    again = "   (done before)" if packed.sent_before else ""
    print_facts(
        answers(),
        [
            ("sent", sent + again),
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
        unchanged = packed.sent_before and not withdrawn
        sent = "" if unchanged else _send(place, name, packed, folder)
    if place.as_json:
        print_json({**_packed_json(name, packed), "sent": sent, "withdrawn": withdrawn})
        return
    if unchanged:
        told = f"since revision {packed.revision} was sent; nothing was sent now"
        print_facts(answers(), [("unchanged", told), ("", ""), ("next", f"heldout status {name}")])
        return
    what = "a withdrawal" if withdrawn else "new metadata"
    print_facts(
        answers(),
        [
            ("sealed", f"{what} under the key of {name}, revision {packed.revision}"),
            ("sent", sent + ("   (done before)" if packed.sent_before else "")),
            ("", ""),
            ("next", f"heldout status {name}"),
        ],
    )


def _check_and_pack(repository: Repository, submission: str, place: Place) -> tuple[Check, Packed]:
    found = check_draft(repository, parse_submission_id(submission), now=place.now)
    if not found.ok or found.manifest is None:
        if place.as_json:
            print_json(_check_json(found))
        else:
            _print_check(found, repository, place)
        raise click.exceptions.Exit(1)
    return found, pack_draft(repository, found.id, found.manifest)


def _send(place: Place, submission: SubmissionId, packed: Packed, folder: Path | None) -> str:
    sent = _deliver(place, submission, packed, folder)
    repository = place.board()
    mark_sent(repository, submission, packed, now=place.now)
    keep_receipt(repository, submission, repository.newest_log())
    return sent


def _deliver(place: Place, submission: SubmissionId, packed: Packed, folder: Path | None) -> str:
    repository = place.board()
    if folder is not None:
        deliver(repository, packed, folder)
        return f"{plural(len(packed.files), 'file')} to {folder}"
    embargoed = read_metadata(repository, submission).embargo_until is not None
    branch = submit_draft(repository, submission, packed, embargoed=embargoed, now=place.now)
    git = repository.git
    if "origin" not in git.remotes():
        return f"branch {branch} in this repository"
    try:
        git.push("origin", f"+refs/heads/{branch}:refs/heads/{branch}")
    except StoreError as error:
        fail(
            StoreError(
                f"branch {branch} is ready, but could not be pushed ({error}); push it to a fork "
                "and open a pull request"
            ),
            status=1,
        )
    return f"branch {branch}, pushed to origin"


def _print_check(found: Check, repository: Repository, place: Place) -> None:
    spec = repository.spec().on(submission_date(found.id))
    facts = [(name, "no run that can be read") for name in spec.sets if name not in found.scans]
    for name, scan in found.scans.items():
        size = f"{plural(scan.facts.queries, 'query', 'queries')} × {scan.facts.max_depth or 0}"
        scores = [
            f"{view.measure} {say_true(found.scores[view.name], decimals=spec.decimals)}"
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
    _print_seen(found)
    if not found.ok:
        count = _count(found)
        mend = f"Mend {'it' if count == 1 else 'them'}, then check again."
        last = f"{plural(count, 'problem')}; nothing was sealed or sent. {mend}"
        answers().print(f"\n{last}")


def _print_seen(found: Check) -> None:
    """What an embargo hides, and what it cannot hide."""
    print_facts(answers(), [("hidden", what) for what in found.hidden])
    print_facts(answers(), [("visible", warning) for warning in found.warnings])


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


def _check_json(found: Check) -> dict[str, Any]:
    return {
        "id": found.id,
        "ok": found.ok,
        "scores": {name: score.mean for name, score in found.scores.items()},
        "seeds": {name: list(score.seeds) for name, score in found.scores.items()},
        "problems": [
            problem_json(problem) for scan in found.scans.values() for problem in scan.problems
        ]
        + [problem_json(problem) for problem in (*found.files, *found.metadata)],
        "findings": [
            {"rule": f.rule, "severity": f.severity, "evidence": f.evidence} for f in found.findings
        ],
        "warnings": list(found.warnings),
        "hidden": list(found.hidden),
    }


def _print_packed(repository: Repository, submission: SubmissionId, packed: Packed) -> None:
    spec = repository.spec()
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


def _day(text: str) -> date:
    try:
        return parse_day(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no day like 2027-05-20", param_hint="--embargo"
        ) from None


def _bytes(size: int) -> str:
    kilo, mega = 1_000, 1_000_000
    return f"{size / mega:.1f} MB" if size >= mega else f"{size / kilo:.1f} kB"
