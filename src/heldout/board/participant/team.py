"""A team in its clone: its key, and its signature on what it sends.

Key and registration lie in `team` of the clone's state, mode 0600. Whoever has the key submits as
the team.

Registers a team, in a clone of the board: what is signed, sealed and sent.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from heldout.board.log import events, manifest, registration
from heldout.board.log.history import History
from heldout.board.log.submission import Submission
from heldout.board.policy.registered import check_registrant
from heldout.board.rules.spec import BoardSpec, Registration
from heldout.board.store import arrivals, git
from heldout.board.store.repository import Repository
from heldout.envelope import bundle, keys
from heldout.errors import InputError, Problem, StoreError
from heldout.files.durable import Folder
from heldout.ids import SubmissionId, digest_bytes


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
    registrant: registration.Registrant
    agreement: str
    at: datetime
    file: bytes


def own_team(repository: Repository) -> OwnTeam | None:
    """Return what this clone registered; `None` where it has not.

    Raises:
        StoreError: the note of it is damaged.
    """
    file = team_folder(repository).file("registration.json")
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=OwnTeam)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(
            f"{file} is damaged; restore it from a backup, or remove it and call heldout register "
            "again"
        ) from None


def format_metadata(repository: Repository, metadata: manifest.Manifest) -> bytes:
    """The metadata as it goes into the seal: signed where the board registers teams, and we have.

    Raises:
        StoreError: the team's key is damaged or missing.
    """
    data = manifest.format_manifest(metadata)
    own = _signer(repository)
    if own is None:
        return data
    return manifest.join_signature(data, _sign(repository, own, metadata, str(digest_bytes(data))))


def team_mark(repository: Repository) -> tuple[str, ...]:
    """Return what a sealed file depends on of its signature; empty where nothing is signed."""
    own = _signer(repository)
    return () if own is None else (own.handle, own.agreement)


def with_own_registration(
    repository: Repository,
    history: History,
    submission: SubmissionId,
    metadata: manifest.Manifest | None,
    *,
    now: datetime,
) -> History:
    """The public history with a draft's signature, and our registration though it is on its way.

    Args:
        repository: the clone.
        history: by the public log, where no signature of a submission is to be seen.
        submission: id of the draft.
        metadata: its metadata; `None`, which cannot be signed, where it cannot be read.
        now: when a draft that was not sent yet would arrive, UTC.
    """
    own = _signer(repository)
    if own is None or metadata is None or own.board != history.board:
        return history
    digest = str(digest_bytes(manifest.format_manifest(metadata)))
    known = history.submissions.get(submission) or Submission(
        id=submission, received=now, files={}, status="received"
    )
    signed = replace(
        known,
        revision=metadata.revision,
        signature=_sign(
            repository, own, msgspec.structs.replace(metadata, id=str(submission)), digest
        ),
    )
    team = history.teams.get(own.handle) or registration.RegisteredTeam(
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
    file = team_folder(repository).file("key")
    if not file.is_file():
        file.write_whole(keys.new_signing_key(), mode=0o600)
    return file.read_bytes()


def read_key(repository: Repository) -> bytes:
    """The team's private key.

    Raises:
        StoreError: it is missing.
    """
    file = team_folder(repository).file("key")
    if not file.is_file():
        raise StoreError(
            f"the team's key {file} is missing; restore it from a backup, or write to the "
            "organisers, who can revoke the registration so that the team registers again"
        )
    return file.read_bytes()


def _sign(
    repository: Repository, own: OwnTeam, signed: manifest.Manifest, metadata: str
) -> manifest.SubmissionSignature:
    message = registration.submission_message(
        own.board,
        signed.id,
        revision=signed.revision,
        agreement=own.agreement,
        metadata=metadata,
    )
    value = keys.sign(read_key(repository), message)
    return manifest.SubmissionSignature(
        team=own.handle, agreement=own.agreement, value=value, metadata=metadata
    )


def _signer(repository: Repository) -> OwnTeam | None:
    return None if repository.spec().registration is None else own_team(repository)


def _write_team(repository: Repository, own: OwnTeam) -> None:
    team_folder(repository).write_whole("registration.json", msgspec.json.encode(own), mode=0o600)


def team_folder(repository: Repository) -> Folder:
    """Return the folder of the team's key and registration."""
    # Not in keys: every file there is the key of a submission, named by its id.
    return repository.state.below("team")


NEUTRAL = git.Author(name="Anonymous", email="anonymous@localhost")
"""Whose commits a team's git name must not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRegistration:
    """Whether the registration of this clone holds, by the public log.

    Attributes:
        own: what this clone registered, `None` where nothing.
        taken_in: whether the log has it.
        agreed: whether it is for the agreement in force.
        revoked: when it was revoked, `None` where it was not.
        why: the organisers' reason for that.
    """

    own: OwnTeam | None
    taken_in: bool = False
    agreed: bool = False
    revoked: datetime | None = None
    why: str = ""


def require_registration(spec: BoardSpec) -> Registration:
    """Return what the board says of registration.

    Raises:
        InputError: it has none.
    """
    if spec.registration is not None:
        return spec.registration
    raise InputError.of("no-registration", spec.name)


def check_registration_file(repository: Repository, arrival: arrivals.Arrival) -> str:
    """The team of a registration that says in the open what it has to say.

    Raises:
        InputError: it does not, or the board registers nobody.
    """
    require_registration(repository.spec())
    if arrival.problems:
        raise InputError(arrival.problems)
    ((path, data),) = arrival.read().items()
    return registration.team_handle(registration.read_registration(data, path=path)[1].key)


def current_agreement(spec: BoardSpec, history: History) -> registration.Agreement | None:
    """The text that a team has to agree to now; `None` where there is none.

    Raises:
        InputError: board.toml names one, and the log does not have it yet.
    """
    wanted = require_registration(spec)
    if wanted.agreement is None:
        return None
    if history.agreements:
        return history.agreements[-1]
    raise InputError.of("no-agreement", "log.jsonl", registration=wanted)


def own_registration(repository: Repository, spec: BoardSpec, history: History) -> OwnRegistration:
    """Return whether this clone has registered, and what the public log says of it.

    Raises:
        InputError: the agreement is not in the log yet.
    """
    own = own_team(repository)
    if own is None or own.board != history.board:
        return OwnRegistration(own=None)
    wanted = current_agreement(spec, history)
    known = history.teams.get(own.handle)
    return OwnRegistration(
        own=own,
        taken_in=known is not None and own.agreement in known.agreements,
        agreed=wanted is None or wanted.digest == own.agreement,
        revoked=None if known is None else known.revoked,
        why="" if known is None else known.why,
    )


def register(
    repository: Repository,
    spec: BoardSpec,
    history: History,
    *,
    names: Mapping[str, str],
    now: datetime,
) -> OwnTeam:
    """Sign a registration, under the team's key, which is made with the first one.

    What was signed before and still holds is not signed again. Where it was not taken in yet it is
    sealed again: the organisers' keys may have changed meanwhile.

    Args:
        repository: the clone.
        spec: the rules in force.
        history: of the newest public log.
        names: `team`, `institution`, `contact`; "" for what is not said.
        now: when it is signed, UTC.

    Raises:
        InputError: registration is over or was revoked, a name does not do, or this clone has
            registered another team.
        StoreError: the team's key is missing or damaged.
    """
    before = own_registration(repository, spec, history)
    _check_time(require_registration(spec), before, now)
    own = before.own
    if own is not None and manifest.team_key(own.registrant.team) != manifest.team_key(
        names["team"]
    ):
        raise InputError.of("other-team", "--team", team=own.registrant.team)
    registrant = registration.Registrant(**names, salt=secrets.token_hex(16))
    problems = [*check_registrant(registrant, spec)]
    if problems:
        raise InputError(problems)
    known = {} if own is None else {name: getattr(own.registrant, name) for name in names}
    if own is not None and before.agreed and known == names:
        return own if before.taken_in else _seal_again(repository, spec, own)
    agreement = current_agreement(spec, history)
    key = make_key(repository) if before.own is None else read_key(repository)
    statement = registration.Statement(
        board=history.board,
        key=keys.public_key(key),
        agreement="" if agreement is None else agreement.digest,
        at=events.format_time(now),
        private=registration.registrant_digest(registrant),
    )
    text = msgspec.json.encode(statement).decode()
    signature = keys.sign(key, registration.registration_message(text))
    own = OwnTeam(
        board=history.board,
        handle=registration.team_handle(statement.key),
        key=statement.key,
        registrant=registrant,
        agreement=statement.agreement,
        at=now,
        file=_sealed_file(spec, text, signature, registrant),
    )
    _write_team(repository, own)
    return own


def push_registration(repository: Repository, own: OwnTeam, base: str, *, now: datetime) -> str:
    """Put the registration on a branch of its own, under a neutral author; gives the branch."""
    branch = arrivals.registration_branch(own.handle)
    repository.git.commit_on(
        branch,
        base,
        {arrivals.registration_path(own.handle): own.file},
        message=f"Registration of {own.handle}",
        author=NEUTRAL,
        at=now,
    )
    return branch


def registration_closed(asked: Registration, now: datetime) -> Problem:
    """That new teams are not taken any more."""
    return Problem.of(
        "registration-closed", "board.toml:registration.closes", registration=asked, now=now
    )


def _seal_again(repository: Repository, spec: BoardSpec, own: OwnTeam) -> OwnTeam:
    signed, _ = registration.read_registration(own.file, path=f"{own.handle}.json")
    file = _sealed_file(spec, signed.statement, signed.signature, own.registrant)
    sealed = msgspec.structs.replace(own, file=file)
    _write_team(repository, sealed)
    return sealed


def _sealed_file(
    spec: BoardSpec, text: str, signature: str, registrant: registration.Registrant
) -> bytes:
    message = bundle.seal_message(spec.envelope, msgspec.json.encode(registrant), spec.recipients)
    file = registration.RegistrationFile(
        statement=text, signature=signature, key=message.key, registrant=message.words
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=2) + b"\n"


def _check_time(asked: Registration, before: OwnRegistration, now: datetime) -> None:
    if before.revoked is not None:
        raise InputError.of(
            "registration-revoked",
            before.own.handle if before.own else "the registration",
            before=before,
        )
    known = before.own is not None and before.taken_in
    if asked.closes is not None and now.date() > asked.closes and not known:
        raise InputError(registration_closed(asked, now))
