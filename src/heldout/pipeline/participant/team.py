"""A team in its clone: its key, and its signature on what it sends.

Key and registration lie in `.heldout/team`, mode 0600, ignored by git. Whoever has the key submits
as the team.
"""

from dataclasses import replace
from datetime import datetime

import msgspec

from heldout.board.log.history import History, Submission
from heldout.board.log.manifest import Manifest, format_manifest
from heldout.board.log.registration import (
    Registrant,
    SubmissionSignature,
    join_signature,
    submission_message,
)
from heldout.board.log.teams import Team
from heldout.envelope.signing import new_signing_key, sign
from heldout.errors import StoreError
from heldout.ids import SubmissionId, digest_bytes
from heldout.store.files import Folder
from heldout.store.repository import Repository

__all__ = [
    "OwnTeam",
    "format_metadata",
    "make_key",
    "own_team",
    "read_key",
    "team_mark",
    "with_own_registration",
    "write_team",
]


class OwnTeam(msgspec.Struct, frozen=True, kw_only=True):
    """What this clone registered last.

    Attributes:
        board: hash of the board's first event.
        handle: of `team_handle`.
        key: the public key.
        registrant: who was named, for the organisers alone.
        agreement: SHA-256 of what was agreed to, "" for nothing.
        at: when it was signed, UTC.
        file: the registration as it is sent.
    """

    board: str
    handle: str
    key: str
    registrant: Registrant
    agreement: str
    at: datetime
    file: bytes


def own_team(repository: Repository) -> OwnTeam | None:
    """What this clone registered; `None` where it has not.

    Raises:
        StoreError: the note of it is damaged.
    """
    file = _folder(repository).file("registration.json")
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=OwnTeam)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(
            ".heldout/team/registration.json is damaged; restore it from a backup, or remove it "
            "and call heldout register again"
        ) from None


def write_team(repository: Repository, own: OwnTeam) -> None:
    """Keep what was registered, mode 0600."""
    _folder(repository).write_whole("registration.json", msgspec.json.encode(own), mode=0o600)


def format_metadata(repository: Repository, manifest: Manifest) -> bytes:
    """The metadata as it goes into the seal: signed where the board registers teams, and we have.

    Raises:
        StoreError: the team's key is damaged or missing.
    """
    data = format_manifest(manifest)
    own = _signer(repository)
    if own is None:
        return data
    return join_signature(data, _sign(repository, own, manifest, str(digest_bytes(data))))


def team_mark(repository: Repository) -> tuple[str, ...]:
    """What a sealed file depends on of its signature; empty where nothing is signed."""
    own = _signer(repository)
    return () if own is None else (own.handle, own.agreement)


def with_own_registration(
    repository: Repository,
    history: History,
    submission: SubmissionId,
    manifest: Manifest | None,
    *,
    now: datetime,
) -> History:
    """The public history with a draft's signature, and our registration though it is on its way.

    Args:
        repository: the clone.
        history: by the public log, where no signature of a submission is to be seen.
        submission: id of the draft.
        manifest: its metadata; `None`, which cannot be signed, where it cannot be read.
        now: when a draft that was not sent yet would arrive, UTC.
    """
    own = _signer(repository)
    if own is None or manifest is None or own.board != history.board:
        return history
    digest = str(digest_bytes(format_manifest(manifest)))
    known = history.submissions.get(submission) or Submission(
        id=submission, received=now, files={}, status="received"
    )
    signed = replace(
        known,
        revision=manifest.revision,
        signature=_sign(
            repository, own, msgspec.structs.replace(manifest, id=str(submission)), digest
        ),
    )
    team = history.teams.get(own.handle) or Team(
        handle=own.handle, key=own.key, registered=own.at, signed=own.at, agreements=()
    )
    team = replace(team, registrant=own.registrant, agreements=(*team.agreements, own.agreement))
    return replace(
        history,
        submissions={**history.submissions, submission: signed},
        teams={**history.teams, own.handle: team},
    )


def make_key(repository: Repository) -> bytes:
    """The team's private key, made where there is none yet."""
    file = _folder(repository).file("key")
    if not file.is_file():
        file.write_whole(new_signing_key(), mode=0o600)
    return file.read_bytes()


def read_key(repository: Repository) -> bytes:
    """The team's private key.

    Raises:
        StoreError: it is missing.
    """
    file = _folder(repository).file("key")
    if not file.is_file():
        raise StoreError(
            "the team's key .heldout/team/key is missing; restore it from a backup, or write to "
            "the organisers, who can revoke the registration so that the team registers anew"
        )
    return file.read_bytes()


def _sign(
    repository: Repository, own: OwnTeam, manifest: Manifest, metadata: str
) -> SubmissionSignature:
    message = submission_message(
        own.board,
        manifest.id,
        revision=manifest.revision,
        agreement=own.agreement,
        metadata=metadata,
    )
    value = sign(read_key(repository), message)
    return SubmissionSignature(
        team=own.handle, agreement=own.agreement, value=value, metadata=metadata
    )


def _signer(repository: Repository) -> OwnTeam | None:
    return None if repository.spec().registration is None else own_team(repository)


def _folder(repository: Repository) -> Folder:
    # Not in .heldout/keys: every file there is the key of a submission, named by its id.
    return repository.files.below(".heldout/team")
