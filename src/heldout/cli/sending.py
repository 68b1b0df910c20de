"""A participant's commands that seal and send, inside a clone of a board."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from heldout.cli.context import Place, in_clone, not_pushed
from heldout.cli.drafting import check_json, print_check, print_seen
from heldout.cli.printing import answers, fail, plural, print_facts, print_json, reports_errors
from heldout.envelope.bundle import short_recipient
from heldout.errors import InputError, StoreError
from heldout.ids import SubmissionId, parse_submission_id
from heldout.pipeline.participant.amending import check_update
from heldout.pipeline.participant.draft import read_metadata, require_draft
from heldout.pipeline.participant.draft_checks import Check
from heldout.pipeline.participant.draft_checks import check as check_draft
from heldout.pipeline.participant.log_copies import rules_to_seal_by
from heldout.pipeline.participant.receipts import keep_receipt
from heldout.pipeline.participant.send import Packed, deliver, mark_sent, update
from heldout.pipeline.participant.send import pack as pack_draft
from heldout.pipeline.participant.send import submit as submit_draft
from heldout.store.git import Git
from heldout.store.repository import Repository

__all__ = ["amend", "pack", "submit", "withdraw"]

_send_to = click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Put the sealed files into this folder, not on a branch.",
)


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
        print_json({**_packed_json(found.id, packed), **_sent_json(sent)})
        return
    _print_packed(repository, found.id, packed)
    print_seen(found)
    print_facts(
        answers(),
        [
            ("sent", str(sent)),
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
        # Into a folder it goes all the same: what was sent may have gone elsewhere.
        unchanged = packed.sent_before and not withdrawn and folder is None
        sent = None if unchanged else _send(place, name, packed, folder)
    if place.as_json:
        print_json({**_packed_json(name, packed), **_sent_json(sent), "withdrawn": withdrawn})
        return
    if sent is None:
        told = f"since revision {packed.revision} was sent; nothing was sent now"
        print_facts(answers(), [("unchanged", told), ("", ""), ("next", f"heldout status {name}")])
        return
    what = "a withdrawal" if withdrawn else "new metadata"
    again = "   (done before)" if packed.done_before else ""
    print_facts(
        answers(),
        [
            ("sealed", f"{what} under the key of {name}, revision {packed.revision}{again}"),
            ("sent", str(sent)),
            ("", ""),
            ("next", f"heldout status {name}"),
        ],
    )


def _check_and_pack(repository: Repository, submission: str, place: Place) -> tuple[Check, Packed]:
    found = check_draft(repository, parse_submission_id(submission), now=place.now)
    if not found.ok or found.manifest is None:
        if place.as_json:
            print_json(check_json(found))
        else:
            print_check(found, repository, place)
        raise click.exceptions.Exit(1)
    return found, pack_draft(repository, found.id, found.manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """Where sealed files are now.

    Attributes:
        place: for a person.
        before: whether just these were there already.
    """

    place: str
    before: bool

    def __str__(self) -> str:
        return self.place + "   (done before)" * self.before


def _send(place: Place, submission: SubmissionId, packed: Packed, folder: Path | None) -> _Sent:
    repository = place.board()
    log = repository.newest_log()  # before anything is sent: it may be none of the organisers'
    repository.pin(log)
    if folder is None:
        sent = _send_branch(place, submission, packed)
    else:
        new = deliver(place.board(), packed, folder)
        sent = _Sent(place=f"{plural(len(packed.files), 'file')} to {folder}", before=not new)
    mark_sent(repository, submission, packed, now=place.now)
    keep_receipt(repository, submission, log)
    return sent


def _send_branch(place: Place, submission: SubmissionId, packed: Packed) -> _Sent:
    repository = place.board()
    git = repository.git
    before = _branches(git)
    embargoed = read_metadata(repository, submission).embargo_until is not None
    branch = submit_draft(repository, submission, packed, embargoed=embargoed, now=place.now)
    if "origin" not in git.remotes():
        told = f"branch {branch} in this repository"
        return _Sent(place=told, before=before == _branches(git))
    try:
        git.push("origin", f"+refs/heads/{branch}:refs/heads/{branch}")
    except StoreError as error:
        fail(not_pushed(branch, error), status=1)
    return _Sent(place=f"branch {branch}, pushed to origin", before=before == _branches(git))


def _branches(git: Git) -> Mapping[str, str]:
    """Every branch here and at the remote, as far as this clone knows: sending moves one."""
    return git.refs("refs/heads/", "refs/remotes/")


def _print_packed(repository: Repository, submission: SubmissionId, packed: Packed) -> None:
    spec = rules_to_seal_by(repository)
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


def _sent_json(sent: _Sent | None) -> dict[str, Any]:
    """What became of it; `None` where nothing was sent now."""
    return {"sent": sent.place if sent else "", "sent_before": sent is None or sent.before}


def _bytes(size: int) -> str:
    kilo, mega = 1_000, 1_000_000
    return f"{size / mega:.1f} MB" if size >= mega else f"{size / kilo:.1f} kB"
