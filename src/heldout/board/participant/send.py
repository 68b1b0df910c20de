"""Seals a draft and sends it: pack, amend, withdraw, submit; in a clone of the board."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path

import msgspec

from heldout.board.log.manifest import Manifest
from heldout.board.participant import checks, draft, receipts, team
from heldout.board.participant.server import Server
from heldout.board.rules.spec import BoardSpec
from heldout.board.store.arrivals import branch_name
from heldout.board.store.git import Git
from heldout.board.store.repository import Repository
from heldout.envelope.bundle import file_names, seal, seal_metadata
from heldout.errors import InputError, Problem, PushError, StoreError, plural
from heldout.files.durable import File, write_whole
from heldout.ids import SubmissionId, digest_bytes, query_set_of, submission_date

_RECIPIENTS = "recipients"
_PROGRAM = "/program"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """Sealed files as they lie in the clone.

    Attributes:
        files: base name -> bytes on disk, of those that are to be sent.
        receipt: SHA-256 over the sealed files' digests, to look for in the public log.
        revision: of the sealed metadata.
        done_before: whether an earlier call had sealed just these runs and this metadata.
        sent_before: whether an earlier call had sent just these files.
    """

    files: Mapping[str, int]
    receipt: str
    revision: int
    done_before: bool
    sent_before: bool


def pack(repository: Repository, submission: SubmissionId, manifest: Manifest) -> Packed:
    """Seal a checked draft for the organisers; an unchanged one is not sealed again.

    The submission's own key stays in the clone's state, `keys/ID`, mode 0600, also when the draft
    is sealed again, for it may have been received already. Where only the metadata is new, only the
    metadata is sealed again.

    Raises:
        InputError: a run is not compressed as the board's envelope wants it, or a public file that
            decides scores was edited: the draft was checked by another.
    """
    checks.check_public_files(repository)
    spec = checks.rules_to_seal_by(repository).on(submission_date(submission))
    runs = _read_runs(repository, spec, submission)
    digests = {name: str(digest_bytes(data)) for name, (_, data) in runs.items()}
    before = draft.read_sealed(repository, submission) or draft.SealedDraft(
        inputs={}, outputs={}, revision=0
    )
    inputs = {**digests, _RECIPIENTS: _mark(spec.recipients)}
    if manifest.program is not None:  # another program is another submission, as other runs are
        inputs[_PROGRAM] = _mark(manifest.program)
    names, same = file_names(spec.envelope, submission), {**before.inputs, **inputs}
    sealed_before = {names.tar, names.key} <= _whole(repository, before)
    if sealed_before and same == before.inputs and _key_file(repository, submission).is_file():
        return update(repository, submission, manifest, withdrawn=False)
    revision = before.revision + 1
    bound = _bind(manifest, submission, digests, revision=revision)
    sealed = seal(
        spec.envelope,
        submission,
        runs=runs,
        metadata=team.format_metadata(repository, bound),
        recipients=spec.recipients,
        key=_key_file(repository, submission).find(),
    )
    _key_file(repository, submission).write_whole(sealed.key, mode=0o600)
    inputs[draft.METADATA] = _mark((manifest, False, *team.team_mark(repository)))
    state = msgspec.structs.replace(
        before, inputs=inputs, outputs={}, revision=revision, withdrawn=False
    )
    return _store(repository, submission, state, sealed.files)


def update(
    repository: Repository, submission: SubmissionId, manifest: Manifest, *, withdrawn: bool
) -> Packed:
    """Seal new metadata under the submission's own key, one revision up; the same is left alone.

    Raises:
        InputError: the key of this submission is not in this clone.
    """
    spec = checks.rules_to_seal_by(repository).on(submission_date(submission))
    key, before = _read_key(repository, submission)
    name = file_names(spec.envelope, submission).metadata
    inputs = {
        **before.inputs,
        draft.METADATA: _mark((manifest, withdrawn, *team.team_mark(repository))),
    }
    if inputs == before.inputs and name in _whole(repository, before):
        return _packed(repository, before, done_before=True)
    digests = {n: mark for n, mark in before.inputs.items() if query_set_of(n) in spec.sets}
    revision = before.revision + 1
    bound = _bind(manifest, submission, digests, revision=revision)
    metadata = team.format_metadata(repository, msgspec.structs.replace(bound, withdrawn=withdrawn))
    blob = seal_metadata(spec.envelope, metadata, key=key)
    state = msgspec.structs.replace(before, inputs=inputs, revision=revision, withdrawn=withdrawn)
    return _store(repository, submission, state, {name: blob})


def submit(
    repository: Repository,
    submission: SubmissionId,
    packed: Packed,
    *,
    embargoed: bool,
    now: datetime,
) -> str:
    """Put sealed files on a branch of their own, off the board's main line.

    Args:
        repository: the clone.
        submission: its id; the branch is named after it.
        packed: the files to send.
        embargoed: commit under a neutral author.
        now: the commit's date, UTC.

    Returns:
        The branch.
    """
    git = repository.git
    files = {f"submissions/{n}": repository.packed_file(n).read_bytes() for n in packed.files}
    author = team.NEUTRAL if embargoed else git.configured_author() or team.NEUTRAL
    branch = branch_name(submission)
    git.commit_on(
        branch,
        main_commit(git),
        files,
        message=f"Submission {submission}",
        author=author,
        at=now,
    )
    return branch


def deliver(repository: Repository, packed: Packed, folder: Path) -> bool:
    """Copy sealed files into a folder from which the organisers take them.

    Returns:
        Whether it lacked any of them.
    """
    files = {name: repository.packed_file(name).read_bytes() for name in packed.files}
    new = [write_whole(folder / name, data) for name, data in files.items()]
    return any(new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Where sealed files are now.

    Attributes:
        sent: the folder or the branch, in words.
        sent_before: whether just these were there already.
    """

    sent: str
    sent_before: bool


def send(
    repository: Repository,
    submission: SubmissionId,
    packed: Packed,
    to: Path | Server | None,
    *,
    now: datetime,
) -> Sent:
    """Send sealed files, note in the clone that they were sent, and store the receipt.

    Args:
        repository: the clone.
        submission: its id.
        packed: the files to send.
        to: a folder or a server; `None` for a branch, which is pushed to `origin` if there is one.
        now: the moment, UTC.

    Raises:
        InputError: the server refuses them.
        StoreError: the remote's log is not this clone's with events added, or the push failed.
    """
    log = repository.newest_log()  # before anything is sent: it may be none of the organisers'
    repository.pin(log)
    server = ""
    if isinstance(to, Server):
        known = to.upload({name: repository.packed_file(name).open for name in packed.files})
        where, server = f"{plural(len(packed.files), 'file')} to {to.address}", to.address
    elif to is None:
        before = _branches(repository)
        embargoed = draft.read_metadata(repository, submission).embargo_until is not None
        branch = submit(repository, submission, packed, embargoed=embargoed, now=now)
        where = _push(repository, branch)
        known = before == _branches(repository)
    else:
        known = not deliver(repository, packed, to)
        where = f"{plural(len(packed.files), 'file')} to {to}"
    note = draft.read_sealed(repository, submission)
    if note is not None and not (packed.sent_before and note.server == server):
        since = note.sent_at or now
        sent = msgspec.structs.replace(note, sent=packed.receipt, sent_at=since, server=server)
        draft.write_sealed(repository, submission, sent)
    receipts.store_receipt(repository, submission, log)
    return Sent(sent=where, sent_before=known)


def send_registration(
    repository: Repository, own: team.OwnTeam, to: Path | Server | None, *, now: datetime
) -> str:
    """Send a registration like a submission; gives the folder, the server or the branch in words.

    Raises:
        InputError: the server refuses it.
        StoreError: the push failed.
    """
    if isinstance(to, Server):
        to.upload({f"{own.handle}.json": lambda: BytesIO(own.file)})
        return f"{own.handle}.json to {to.address}"
    if to is not None:
        write_whole(to / f"{own.handle}.json", own.file)
        return f"{own.handle}.json to {to}"
    base = main_commit(repository.git)
    return _push(repository, team.push_registration(repository, own, base, now=now))


def _branches(repository: Repository) -> Mapping[str, str]:
    """Every branch here and at the remote, as far as this clone knows: sending moves one."""
    return repository.git.refs("refs/heads/", "refs/remotes/")


def _push(repository: Repository, branch: str) -> str:
    if "origin" not in repository.git.remotes():
        return f"branch {branch} in this repository"
    try:
        repository.git.push("origin", f"+refs/heads/{branch}:refs/heads/{branch}")
    except StoreError as error:
        raise PushError(
            f"branch {branch} is ready, but could not be pushed ({error}). Without a network, call "
            "this again later. Without the right to push, send it from a fork: git remote rename "
            "origin upstream, git remote add origin YOUR-FORK, then call this again "
            "(docs/how-to/forge.md)"
        ) from error
    return f"branch {branch}, pushed to origin"


def _read_runs(
    repository: Repository, spec: BoardSpec, submission: SubmissionId
) -> Mapping[str, tuple[str, bytes]]:
    """Run -> (suffix, bytes) of a draft's runs, as they go into the tarball.

    The scripts of the MS MARCO boards look for `SET.txt.bz2` and nothing else.
    """
    files = draft.run_files(repository, spec, submission)
    if spec.envelope == "age":
        return {name: (p.name.removeprefix(name), p.read_bytes()) for name, p in files.items()}
    runs = {name: (".txt.bz2", path.read_bytes()) for name, path in files.items()}
    wrong = [name for name, (_, data) in runs.items() if not data.startswith(b"BZh")]
    if wrong:
        raise InputError(
            Problem.of("not-bzip2", files[name].name, file=files[name]) for name in wrong
        )
    return runs


def _bind(
    manifest: Manifest, submission: SubmissionId, digests: Mapping[str, str], *, revision: int
) -> Manifest:
    """The metadata with the id, the runs' digests and its revision in it."""
    return msgspec.structs.replace(
        manifest, id=str(submission), digests=dict(digests), revision=revision
    )


def _mark(value: object) -> str:
    """A digest that shows whether something changed since it was sealed."""
    return digest_bytes(msgspec.json.encode(value))


def _store(
    repository: Repository,
    submission: SubmissionId,
    state: draft.SealedDraft,
    files: Mapping[str, bytes],
) -> Packed:
    """Write sealed files, and note in the clone what was sealed."""
    for name, data in files.items():
        repository.packed_file(name).write_whole(data)
    written = {name: str(digest_bytes(data)) for name, data in files.items()}
    state = msgspec.structs.replace(state, outputs={**state.outputs, **written})
    draft.write_sealed(repository, submission, state)
    return _packed(repository, state, done_before=False)


def _packed(repository: Repository, state: draft.SealedDraft, *, done_before: bool) -> Packed:
    """All three files, in case the first were not taken in yet; those that lie here."""
    whole = _whole(repository, state)
    sent = [n for n in state.outputs if whole >= set(state.outputs) or "-metadata.json." in n]
    return Packed(
        files={name: repository.packed_file(name).size() for name in sent},
        receipt=draft.receipt_of(state.outputs),
        revision=state.revision,
        done_before=done_before,
        sent_before=state.sent == draft.receipt_of(state.outputs),
    )


def _whole(repository: Repository, state: draft.SealedDraft) -> set[str]:
    """Names of the sealed files that still lie there as they were written."""
    return {
        name
        for name, digest in state.outputs.items()
        if (file := repository.packed_file(name)).is_file()
        and digest_bytes(file.read_bytes()) == digest
    }


def _key_file(repository: Repository, submission: SubmissionId) -> File:
    return repository.state.file(f"keys/{submission}")


def _read_key(repository: Repository, submission: SubmissionId) -> tuple[bytes, draft.SealedDraft]:
    file = _key_file(repository, submission)
    state = draft.read_sealed(repository, submission)
    if state is not None and file.is_file():
        return file.read_bytes(), state
    raise InputError.of("no-key", str(submission), file=file, state=repository.state.path())


def main_commit(git: Git) -> str:
    """The commit to branch off: the remote's main line where there is one, else our own.

    Raises:
        InputError: the repository has no commit.
    """
    refs = git.refs("refs/remotes/origin/")
    for name in ("refs/remotes/origin/HEAD", f"refs/remotes/origin/{git.main_branch()}"):
        if name in refs:
            return refs[name]
    head = git.head()
    if head is not None:
        return head
    raise InputError.of("no-commit", "the clone")
