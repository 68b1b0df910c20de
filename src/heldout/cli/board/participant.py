"""A participant's commands inside a clone of a board: draft, check, seal, send, follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from heldout.cli.context import BoardCall, Identifier, SendTo, find_server, find_target, show_path
from heldout.cli.options import command
from heldout.cli.printing import (
    answers,
    count_errors,
    fail,
    fill_facts,
    messages,
    print_facts,
    print_json,
    print_problems,
)
from heldout.errors import InputError, StoreError, plural, printable
from heldout.ids import SubmissionId, parse_submission_id, run_name, submission_date
from heldout.options import Opt

if TYPE_CHECKING:
    from heldout.board.participant.checks import Check, RequestCheck
    from heldout.board.participant.send import Packed, Sent
    from heldout.board.participant.status import SubmissionStatus
    from heldout.board.store.repository import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """The run files of a draft or a baseline."""

    dev: Annotated[
        tuple[Path, ...], Opt("Run over the dev queries; short for --run dev=FILE.", metavar="FILE")
    ] = ()
    eval: Annotated[
        tuple[Path, ...],
        Opt("Run over the eval queries; short for --run eval=FILE.", metavar="FILE"),
    ] = ()
    run: Annotated[
        tuple[str, ...],
        Opt("Run over a query set; given again, that of a further seed.", metavar="SET=FILE"),
    ] = ()

    @property
    def files(self) -> Mapping[str, Path]:
        """Run -> file; a set that is given again has a further seed: `SET~2`, `SET~3`.

        Raises:
            click.BadParameter: an option is not SET=FILE.
        """
        given = [*(("dev", path) for path in self.dev), *(("eval", path) for path in self.eval)]
        for text in self.run:
            name, equals, file = text.partition("=")
            if not equals:
                raise click.BadParameter(f"{text!r} is not SET=FILE", param_hint="--run")
            given.append((name, Path(file)))
        files: dict[str, Path] = {}
        seeds: Counter[str] = Counter()
        for name, path in given:
            seeds[name] += 1
            files[run_name(name, seeds[name])] = path
        return files


@command
def draft(
    *,
    name: Annotated[str, Opt(argument=True, metavar="NAME")],
    runs: RunFiles,
    embargo: Annotated[
        date | None, Opt("Day until which you stay anonymous.", metavar="DATE")
    ] = None,
    beside: Annotated[
        Path | None,
        Opt(
            "File of ir_metadata, such as TIREx tracker writes, for fields that no run's "
            "header has.",
            names=("--ir-metadata",),
            path="file",
        ),
    ] = None,
    image: Annotated[
        str | None,
        Opt("Image of a program that makes the runs, in their place.", metavar="NAME@sha256:…"),
    ] = None,
    call: BoardCall,
) -> None:
    """Make the dated id of a submission, its folder, and metadata to fill in.

    The folder lies where no git pull reaches it, and the answer says where. Under an embargo the id
    says nothing but a random suffix. Runs of one system that differ only by seed are one
    submission: give each option once for each seed.

    With --image the submission is a program, which the organisers run; it has no run files.

    The metadata already has what an ir_metadata header of a run says of the team, the system and
    its costs, and the team and institution of your last draft in this clone; edit them there.

    \b
    Example:
      heldout draft lighthouse-monot5 --dev d.trec.gz --eval e.trec.gz
    """
    from heldout.board.log.manifest import MEANINGS, parse_image
    from heldout.board.participant.checks import check_public_files, check_tree_rules
    from heldout.board.participant.draft import check_embargo, draft_id, read_earlier, read_headers
    from heldout.board.participant.draft import draft as make_draft
    from heldout.board.rules.changes import difference_facts

    repository, today = call.board(), call.now.date()
    print_facts(messages(), difference_facts(check_tree_rules(repository, repository.log())))
    check_public_files(repository)
    if embargo is not None:
        check_embargo(repository.spec(), embargo, today=today)
    program = None if image is None else parse_image(image)
    submission = draft_id(name, today=today, embargoed=embargo is not None)
    found = read_headers(repository, submission, runs.files, beside=beside)
    stated = {one.field: one for one in found.taken}
    earlier = [one for one in read_earlier(repository) if one.field not in stated]
    taken = (*earlier, *found.taken)
    with repository.locked():
        folder = make_draft(
            repository,
            submission,
            runs.files,
            embargo_until=embargo,
            stated=taken,
            program=program,
        ).path()
    shown = show_path(folder)
    named = {one.name for one in taken} | {"program"}
    left = {field: text for field, text in MEANINGS.items() if field not in named}
    print_problems(messages(), found.notes)
    call.answer(
        {
            "id": submission,
            "folder": str(folder),
            "from_headers": [
                {"field": one.name, "value": one.value, "key": one.key, "path": one.path}
                for one in found.taken
            ],
            "from_earlier": {one.field: one.value for one in earlier},
            "notes": found.notes,
        },
        fill_facts(
            "drafted",
            id=submission,
            shown=shown,
            program=program,
            runs=len(runs.files),
            taken=taken,
            left=left.items(),
            width=max(map(len, left), default=0),
        ),
    )


@command
def check(
    *,
    submission: Annotated[str | None, Opt(argument=True, metavar="[ID]")] = None,
    form: Annotated[
        tuple[str, str] | None,
        Opt("Pull request whose form is checked, at refs/pull/N/head.", metavar="BASE REF"),
    ] = None,
    call: BoardCall,
) -> None:
    """Run the organisers' own checks, as far as they go without held-out labels.

    Exit code 1 where something has to be fixed. Nothing is sealed or sent. With --form the commits
    of a pull request are looked at instead, as data: nothing of it is checked out or run.

    \b
    Example:
      heldout check 20261120-lighthouse-monot5
    """
    from heldout.board.participant.checks import check as check_draft
    from heldout.board.participant.checks import check_request

    if (submission is None) == (form is None):
        raise click.UsageError("name a draft's ID, or --form BASE REF")
    if submission is not None and Path(submission).is_file():
        raise click.UsageError(
            f"{printable(submission)} is a file, and this command checks a draft by its ID; "
            "for a run file: heldout validate RUN --queries FILE"
        )
    repository = call.board()
    found: Check | RequestCheck
    if form is not None:
        found = check_request(repository, *form)
        _print_request(found, form[1], as_json=call.as_json)
    else:
        found = check_draft(repository, parse_submission_id(submission or ""), now=call.now)
        print_check(found, repository, call)
        if found.ok and not call.as_json:
            print_facts(answers(), [("", ""), ("next", f"heldout submit {found.id}")])
    if not found.ok:
        raise click.exceptions.Exit(1)


def _print_request(found: RequestCheck, head: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"ok": found.ok, **msgspec.to_builtins(found)})
    elif found.ok:
        name = found.id or found.team
        print_facts(answers(), [("form", f"{name}: nothing wrong; contents are sealed")])
    else:
        print_facts(answers(), [("refused", f"{found.id or 'no submission'}  from {head}")])
        print_problems(answers(), found.problems)


def print_check(found: Check, repository: Repository, call: BoardCall) -> None:
    """Print what a check says of a draft."""
    from heldout.board.rules.changes import difference_facts

    if call.as_json:
        print_json(_document(found))
        return
    print_facts(answers(), _check_facts(found, repository, call))
    noted = any(scan.problems for scan in found.scans.values())
    if noted or found.files or found.metadata or found.findings or found.warnings:
        print_facts(answers(), [("", "")])
    print_problems(answers(), found.files)
    for scan in found.scans.values():
        print_problems(answers(), scan.problems, counts=scan.counts)
    print_problems(answers(), found.metadata)
    findings = [(f.severity, f"{f.rule}: {f.evidence}") for f in found.findings]
    facts = [*findings, *seen_facts(found), *difference_facts(found.differences)]
    print_facts(answers(), facts)
    if not found.ok:
        count = sum(count_errors(scan.problems, scan.counts) for scan in found.scans.values())
        count += count_errors((*found.files, *found.metadata), {})
        count += sum(finding.severity == "reject" for finding in found.findings)
        fix = f"Fix {'it' if count == 1 else 'them'}, then check again."
        answers().print(f"\n{plural(count, 'problem')}; nothing was sealed or sent. {fix}")


def _check_facts(found: Check, repository: Repository, call: BoardCall) -> list[tuple[str, str]]:
    """A line for each run, one for the metadata, one for the quota."""
    from heldout.board.scores.releasing import describe_true

    spec = repository.spec().on(submission_date(found.id))
    program = None if found.manifest is None else found.manifest.program
    runs: list[tuple[str, int, list[str]]] = []
    for name, scan in found.scans.items():
        size = f"{plural(scan.facts.queries, 'query', 'queries')} × {scan.facts.max_depth or 0}"
        scores = [
            f"{view.measure} {describe_true(found.scores[view.name], decimals=spec.decimals)}"
            for view in spec.views
            if view.set == name and view.name in found.scores
        ]
        runs.append((name, count_errors(scan.problems, scan.counts), [size, *scores]))
    return fill_facts(
        "checked",
        missing=[] if program else [name for name in spec.sets if name not in found.scans],
        program=program,
        runs=runs,
        wrong=count_errors(found.metadata, {}),
        quota=found.quota,
        undecided=found.undecided,
        now=call.now,
    )


def seen_facts(found: Check) -> list[tuple[str, str]]:
    """Return what an embargo hides, and what it cannot hide."""
    hidden = [("hidden", what) for what in found.hidden]
    return hidden + [("visible", warning) for warning in found.warnings]


def _document(found: Check) -> dict[str, Any]:
    scans = [problem for scan in found.scans.values() for problem in scan.problems]
    return {
        "id": found.id,
        "ok": found.ok,
        "scores": {name: score.mean for name, score in found.scores.items()},
        "seeds": {name: score.seeds for name, score in found.scores.items()},
        "problems": [*scans, *found.files, *found.metadata],
        "findings": found.findings,
        "warnings": found.warnings,
        "rules": [str(one) for one in found.differences],
        "hidden": found.hidden,
    }


_DONE = "   (done before)"


@command
def pack(*, submission: Identifier, call: BoardCall) -> None:
    """Check and seal a draft, and send nothing: for those who look first.

    \b
    Example:
      heldout pack 20261120-lighthouse-monot5
    """
    repository = call.board()
    with repository.locked():
        found, packed = _check_and_pack(repository, submission, call)
    facts = [*_packed_facts(repository, found.id, packed), ("", "")]
    call.answer(_sent_document(found.id, packed), [*facts, ("next", f"heldout submit {found.id}")])


@command
def submit(*, submission: Identifier, to: SendTo = None, call: BoardCall) -> None:
    """Check, seal and send a draft: a branch of its own, or with --to a folder or a server.

    The branch is pushed to the remote `origin` where there is one. A server asks for your team's
    token once and stores it for this clone; in scripts set HELDOUT_TEAM_TOKEN. An upload that was
    cut goes on where it stopped when you call this again.

    \b
    Example:
      heldout submit 20261120-lighthouse-monot5
      heldout submit 20261120-lighthouse-monot5 --to https://board.example
    """
    from heldout.board.participant.send import send

    repository = call.board()
    target = find_target(repository, to)
    with repository.locked():
        found, packed = _check_and_pack(repository, submission, call)
        sent = send(repository, found.id, packed, target, now=call.now)
    facts = [
        *_packed_facts(repository, found.id, packed),
        *seen_facts(found),
        ("sent", sent.sent + _DONE * sent.sent_before),
        ("store", f"{_own(repository, 'receipts', found.id)}.json: heldout audit --receipt FILE"),
        ("", ""),
        ("next", f"heldout status {found.id}"),
    ]
    call.answer(_sent_document(found.id, packed, sent), facts)


@command
def amend(*, submission: Identifier, to: SendTo = None, call: BoardCall) -> None:
    """Seal the draft's metadata again under the same key, one revision up, and send it.

    \b
    Example:
      heldout amend 20261120-lighthouse-monot5
    """
    _update(submission, to, call, withdrawn=False)


@command
def withdraw(*, submission: Identifier, to: SendTo = None, call: BoardCall) -> None:
    """Take a submission back before it is published; the quota is given back.

    \b
    Example:
      heldout withdraw 20261120-lighthouse-monot5
    """
    _update(submission, to, call, withdrawn=True)


def _update(submission: str, to: SendTo, call: BoardCall, *, withdrawn: bool) -> None:
    from heldout.board.participant.draft import read_metadata, require_draft
    from heldout.board.participant.send import send, update
    from heldout.board.policy.amending import check_update

    repository = call.board()
    name = parse_submission_id(submission)
    require_draft(repository, name)
    manifest = read_metadata(repository, name)
    try:
        check_update(repository.newest_log(), name, manifest, withdrawn=withdrawn)
    except InputError as error:
        fail(error, status=1)
    sent, target = None, find_target(repository, to)
    with repository.locked():
        packed = update(repository, name, manifest, withdrawn=withdrawn)
        # With --to it goes all the same: what was sent may have gone elsewhere.
        if to is not None or withdrawn or not packed.sent_before:
            sent = send(repository, name, packed, target, now=call.now)
    document = {"sent": "", **_sent_document(name, packed, sent), "withdrawn": withdrawn}
    what = "a withdrawal" if withdrawn else "new metadata"
    text = f"{what} under the key of {name}, revision {packed.revision}{_DONE * packed.done_before}"
    facts = [("sealed", text)]
    if sent is None:
        text = f"since revision {packed.revision} was sent; nothing was sent now"
        facts = [("unchanged", text)]
    else:
        facts.append(("sent", sent.sent + _DONE * sent.sent_before))
    call.answer(document, [*facts, ("", ""), ("next", f"heldout status {name}")])


def _check_and_pack(
    repository: Repository, submission: str, call: BoardCall
) -> tuple[Check, Packed]:
    from heldout.board.participant.checks import check
    from heldout.board.participant.send import pack as pack_draft

    found = check(repository, parse_submission_id(submission), now=call.now)
    if not found.ok or found.manifest is None:
        print_check(found, repository, call)
        raise click.exceptions.Exit(1)
    return found, pack_draft(repository, found.id, found.manifest)


def _packed_facts(
    repository: Repository, submission: SubmissionId, packed: Packed
) -> list[tuple[str, str]]:
    from heldout.board.participant.checks import rules_to_seal_by
    from heldout.envelope.bundle import short_recipient

    spec = rules_to_seal_by(repository)
    files = {_own(repository, "sealed", name): size for name, size in packed.files.items()}
    return fill_facts(
        "sealed",
        keys=[short_recipient(spec.envelope, key) for key in spec.recipients],
        done=_DONE * packed.done_before,
        files=files.items(),
        width=max(map(len, files)),
        packed=packed,
        key=_own(repository, "keys", submission),
    )


def _own(repository: Repository, folder: str, name: str) -> str:
    """Return where a file of this clone's own lies."""
    return show_path(repository.state.path(f"{folder}/{name}"))


def _sent_document(name: SubmissionId, packed: Packed, sent: Sent | None = None) -> dict[str, Any]:
    return {"id": name, **msgspec.to_builtins(packed), **msgspec.to_builtins(sent or {})}


@command
def status(
    *,
    submission: Annotated[str | None, Opt(argument=True, metavar="[ID]")] = None,
    call: BoardCall,
) -> None:
    """Say how far a submission has come, by the board's public log.

    Asks the remotes `origin` and, in a clone of a fork, `upstream` for the newest log, and the
    server that a submission was sent to. Where the organisers have a question, or what was sent
    last is not in force, it says so and what to do.

    \b
    Example:
      heldout status 20261120-lighthouse-monot5
    """
    from heldout.board.log.history import read_history
    from heldout.board.participant.checks import check_tree_rules
    from heldout.board.participant.status import describe_submission, status_facts
    from heldout.board.rules.changes import difference_facts
    from heldout.board.standings.overdue import list_overdue_at
    from heldout.cli.board.reports import overdue_document, overdue_facts

    repository, now = call.board(), call.now
    log = repository.newest_log()
    with suppress(OSError):  # a clone that is only read remembers nothing
        repository.pin(log)
    names = map(parse_submission_id, [submission] if submission else repository.own_ids())
    try:
        rows = [describe_submission(repository, log, name, now=now) for name in names]
    except InputError as error:
        fail(error, status=1)
    rows = [_with_server(repository, row) for row in rows]
    closed = read_history(log).closed
    overdue = list_overdue_at(log, now=now) if log and submission is None else ()
    if call.as_json:
        print_json({"submissions": rows, "closed": closed, "due": overdue_document(overdue)})
        return
    if log:
        print_facts(messages(), difference_facts(check_tree_rules(repository, log)))
    if closed is not None:
        text = f"closed for good on {closed:%d %b %Y}: it takes nothing any more"
        print_facts(answers(), [("board", text)])
    if not rows:
        print_facts(answers(), [("status", "this clone has sent nothing yet")])
    for row in rows:
        print_facts(answers(), status_facts(row, now=now))
    print_facts(answers(), overdue_facts(overdue))


def _with_server(repository: Repository, row: SubmissionStatus) -> SubmissionStatus:
    """With what the server says; where it says nothing, the log alone says how far it has come."""
    from heldout.board.participant.status import ask_server

    try:
        return ask_server(repository, row, lambda address: find_server(repository, address))
    except (InputError, StoreError) as error:
        print_facts(messages(), [("note", str(error))])
        return row
