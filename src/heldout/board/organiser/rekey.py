"""Changes the organisers' keys: when one of them leaves, joins, or has lost a key.

Everything that has to be drawn or opened is done first and written into one private note in the
vault: who goes, who comes, what is sealed again for whom. From there on each step only carries out
what the note says, so that a call which was killed goes on where it stopped: sealed keys, private
keys, the event, board.toml, the page, and last the note. An edited board.toml is logged first.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from heldout.board.log.events import Entry, Signers, check_clock, name_of_key, signers_of
from heldout.board.organiser.rebuild import Rebuilt, bring_up_to_date, catch_up
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.board.scores.commitments import among, check_recipients, own_recipients, plain
from heldout.board.scores.score import open_own_key
from heldout.board.scores.session import Session, note_held_out, organiser_name
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import new_identity, recipient_of, seal_key, short_recipient
from heldout.envelope.keys import Form, new_signing_key, public_key
from heldout.errors import InputError, SetupError, StoreError, TrustError, quote
from heldout.files.durable import File
from heldout.ids import digest_bytes

RETIRED = "retired-"
"""What the names of private keys begin with that are kept only for what was sealed for them."""

_LEAST_PREFIX = 8

OldKeys = Literal["kept", "destroyed", "none"]
"""What became of this vault's old private keys; `none` where it had lost them, or none went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """What an organiser asks for.

    Attributes:
        new_key: whether this vault gets a new key, and its own old one goes.
        add: public keys of organisers who join.
        drop: public keys, or their first 8 characters or more, of organisers who leave.
        why: the reason; it is public.
        destroy_old: whether private keys that are no longer in use are removed.
        grace_until: last day on which submissions that were sealed for an old key of this vault
            are taken; it means nothing where none is kept.
        add_signers: name -> public key of organisers who sign events from now on.
        drop_signers: names of signers, or the first 8 digits or more of their keys, who do not.
    """

    new_key: bool
    add: Sequence[str] = ()
    drop: Sequence[str] = ()
    add_signers: Mapping[str, str] = field(default_factory=dict)
    drop_signers: Sequence[str] = ()
    why: str
    destroy_old: bool = False
    grace_until: date


class KeyPlan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that the steps of a change need. It holds a private key, and is as private as one.

    Attributes:
        by: who acts, as the log names them.
        events: number of events before it.
        before: the board's recipients before it.
        recipients: and after it.
        private: the vault's new key, "" where it gets none.
        signing: its new key for signatures, empty where it gets none.
        sealed_again: id -> a submission's own key, sealed for the recipients after it.
        public: what else its event says.
    """

    by: str
    events: int
    before: tuple[str, ...]
    recipients: tuple[str, ...]
    private: str
    signing: bytes
    sealed_again: dict[str, bytes]
    public: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKey:
    """A private key in the vault."""

    file: File
    recipient: str
    private: str

    @property
    def retired(self) -> bool:
        """Whether it is kept only for what was sealed for it."""
        return self.file.name.startswith(RETIRED)


def make_plan(session: Session, change: KeyChange) -> KeyPlan:
    """Draw, open and seal all that a change needs, so that any number of calls can carry it out.

    Raises:
        InputError: a public key is wrong or unknown, or none that opens here would stay.
        StoreError: nothing would change.
    """
    note_held_out(session)
    spec, vault = session.spec(), session.vault
    own = list(own_keys(spec.envelope, vault))
    removed = _find_removed(spec, own, change)
    # A key that lies in the vault and is nobody's recipient yet, or a fresh one.
    spare = [k for k in own if not k.retired and not among(k.recipient, spec.recipients)]
    private = ""
    if change.new_key:
        private = spare[0].private if spare else new_identity(spec.envelope).private
    fresh = [recipient_of(spec.envelope, private)] if private else []
    staying = [key for key in spec.recipients if not among(key, removed)]
    added = [key.strip() for key in (*fresh, *change.add) if not among(key, staying)]
    recipients = (*staying, *added)
    retired = [key for key in own if key.retired or among(key.recipient, removed)]
    own_signer = vault.own_signer(signers_of(vault.entries()))
    signs = change.new_key and own_signer is not None
    signing = new_signing_key("ORGANISER") if signs else b""
    signers = _change_signers(session, change, spec, signing=signing, fresh=fresh)
    same = signers == signers_of(vault.entries())
    if not added and not removed and same and not (change.destroy_old and retired):
        raise StoreError("no key goes and none comes, so nothing was done")
    text = set_recipients(session.rules(), recipients)
    after = parse_spec(text.encode(), path=SPEC)
    check_recipients(after, text, None if private else vault)
    sealed_again, not_opened = _seal_again(session, spec.envelope, recipients)
    going = any(among(key.recipient, removed) for key in own)
    return KeyPlan(
        by=session.by,
        events=len(vault.entries()),
        before=spec.recipients,
        recipients=recipients,
        private=private,
        signing=signing,
        sealed_again=sealed_again,
        public={
            "added": added,
            "removed": removed,
            "why": change.why,
            "old_keys": "none" if not retired else "destroyed" if change.destroy_old else "kept",
            "grace_until": change.grace_until.isoformat()
            if going and not change.destroy_old
            else None,
            "not_opened": not_opened,
            "signers": signers,
        },
    )


def _change_signers(
    session: Session, change: KeyChange, spec: BoardSpec, *, signing: bytes, fresh: Sequence[str]
) -> dict[str, str]:
    """Return who signs events after the change.

    Raises:
        InputError: a signer is wrong, unknown, known already, or this vault's own.
    """
    vault = session.vault
    before = signers_of(vault.entries())
    own = vault.own_signer(before)
    after = dict(before)
    for text in change.drop_signers:
        name = _find_signer(before, text)
        if own is not None and name == own.name:
            raise _wrong_signer(
                f"{quote(text)}, the key of this vault",
                "another organiser's: the event that drops a signer is signed by one who stays",
                "let another organiser drop it, or change it: without --keep-key",
            )
        del after[name]
    if own is not None and signing:
        del after[own.name]
        after[_renamed(session, spec, own.name, fresh)] = public_key(signing)
    for name, key in change.add_signers.items():
        if name in after or key in after.values():
            raise _wrong_signer(f"{quote(name)}, a signer already", "a name and a key of nobody")
        after[name] = key
    return after


def _renamed(session: Session, spec: BoardSpec, name: str, fresh: Sequence[str]) -> str:
    """An organiser who is called by their public key is called by the new one."""
    keys = [
        short_recipient(spec.envelope, key) for key in own_recipients(spec.envelope, session.vault)
    ]
    return short_recipient(spec.envelope, fresh[0]) if fresh and name in keys else name


def _find_signer(signers: Signers, text: str) -> str:
    found = [
        name
        for name, key in signers.items()
        if name == text or (len(text) >= _LEAST_PREFIX and key.startswith(text))
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{name} ({key[:16]}…)" for name, key in signers.items())
    raise _wrong_signer(f"{quote(text)}, no signer", f"one of: {names}")


def _wrong_signer(found: str, expected: str, hint: str = "") -> InputError:
    return InputError.of("wrong-signer", "signers of the board", found, expected, hint)


def set_recipients(rules: str, recipients: Sequence[str]) -> str:
    """The text of a board.toml with other recipients; all else stays byte for byte.

    Raises:
        InputError: the key `recipients` does not stand at the beginning of a line.
    """
    lines = rules.splitlines(keepends=True)
    entry = f"recipients = {msgspec.json.encode(list(recipients)).decode()}\n"
    wanted = {**tomllib.loads(rules), "recipients": list(recipients)}
    starts = [n for n, line in enumerate(lines) if re.match(r"[ \t]*recipients[ \t]*=", line)]
    for start, end in ((s, e) for s in starts for e in range(s + 1, len(lines) + 1)):
        text = "".join([*lines[:start], entry, *lines[end:]])
        with suppress(tomllib.TOMLDecodeError):  # it may go over several lines
            if tomllib.loads(text) == wanted:
                return text
    found = "no line that begins with recipients ="
    expected = "the organisers' public keys at the top of the file"
    raise InputError.of("board-spec", SPEC, found, expected, 'recipients = ["age1..."]')


def own_keys(form: Form, vault: Vault) -> Iterator[OwnKey]:
    """The vault's keys of a form; a file of another form, or none at all, is passed over."""
    for file in vault.identity_files():
        private = file.read_bytes().decode("ascii", "replace")
        try:
            recipient = recipient_of(form, private)
        except SetupError:
            continue
        yield OwnKey(file=file, recipient=recipient, private=private)


def _find_removed(spec: BoardSpec, own: Sequence[OwnKey], change: KeyChange) -> list[str]:
    """The recipients that go: who leaves, and with a new key the old one of this vault.

    Raises:
        InputError: one that leaves is none of them, or nobody knows which one was lost.
    """
    removed = [_find_recipient(spec, text) for text in change.drop]
    if not change.new_key:
        return removed
    ours = [key for key in spec.recipients if among(key, [k.recipient for k in own])]
    if not ours and not removed:
        if len(spec.recipients) > 1:
            raise _wrong_key(
                "no recipient whose private key lies in the vault",
                "the one that was lost, by name, for the others may not go",
                "--drop " + " or --drop ".join(key[:16] for key in spec.recipients),
            )
        return list(spec.recipients)
    return [*removed, *(key for key in ours if not among(key, removed))]


def _find_recipient(spec: BoardSpec, text: str) -> str:
    found = [key for key in spec.recipients if plain(key).startswith(plain(text))]
    if len(found) == 1 and len(plain(text)) >= _LEAST_PREFIX:
        return found[0]
    reason = "several recipients that begin so" if len(found) > 1 else "no recipient"
    names = ", ".join(f"{key[:16]}…" for key in spec.recipients)
    raise _wrong_key(f"{quote(text)}: {reason}", f"at least {_LEAST_PREFIX} characters of: {names}")


def _wrong_key(found: str, expected: str, hint: str = "") -> InputError:
    return InputError.of("board-spec", f"{SPEC}:recipients", found, expected, hint)


def _seal_again(
    session: Session, form: Form, recipients: Sequence[str]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The own keys of all submissions that stand, for other organisers; and those that stay shut.

    What was sealed in the board's other form stays as it is: its old key is of that form, too.
    """
    again: dict[str, bytes] = {}
    shut = []
    for submission in session.history().submissions.values():
        standing = submission.pending or submission.status == "published"
        if not standing or submission.baseline:
            continue
        if session.spec_at(submission.received).envelope != form:
            continue
        try:
            key = open_own_key(session.vault, session.spec(), submission)
        except TrustError:
            shut.append(submission.id)
        else:
            again[submission.id] = seal_key(form, key, recipients)
    return again, tuple(shut)


_NOTE = "identities/rekeying"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """What a change of keys left.

    Attributes:
        event: number of its event.
        went_on: whether it was begun by an earlier call, whose change it is.
        done_before: whether an earlier call had done it.
        added, removed: public keys.
        signers: who signs events from now on.
        old_keys: what became of this vault's old private keys.
        grace_until: last day on which what is sealed for them is taken, `None` where there is none.
        sealed_again: ids of the submissions whose keys were sealed for the organisers of now.
        not_opened: ids of those that nobody here can open.
        waiting: ids among these that wait for a decision: they can only be refused.
        rebuilt: the board afterwards.
    """

    event: int
    went_on: bool
    done_before: bool
    added: tuple[str, ...]
    removed: tuple[str, ...]
    signers: Signers
    old_keys: OldKeys
    grace_until: date | None
    sealed_again: tuple[str, ...]
    not_opened: tuple[str, ...]
    waiting: tuple[str, ...]
    rebuilt: Rebuilt


def is_begun(vault: Vault) -> bool:
    """Check whether a change of keys was stopped on its way: the next call goes on with it."""
    return vault.files.is_file(_NOTE)


def ensure_key(repository: Repository, vault_root: Path, *, now: datetime) -> None:
    """Give a vault that has lost its keys a new one, so that a session can be opened.

    It is nobody's recipient until `rekey` makes it one.

    Args:
        repository: the board.
        vault_root: the vault's folder.
        now: the moment of the call.

    Raises:
        StoreError: no vault there, or the clock went backwards; no key is made.
    """
    vault = Vault.open(vault_root, board=repository.root)
    with vault.locked():
        check_clock(vault.entries()[-1], now)
        form = parse_spec(vault.history().rules[-1][1].encode(), path=SPEC).envelope
        if next(own_recipients(form, vault), None) is None:
            _add_key(vault, new_identity(form).private)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignerKey:
    """A vault's public key for signatures of events, and the name that it signs by."""

    name: str
    key: str
    signs: bool
    """Whether the board's log names it as a signer."""


def own_signer_key(
    repository: Repository, vault_root: Path, *, name: str | None = None
) -> SignerKey:
    """The key with which a vault signs events; it is made where there is none.

    Args:
        repository: the board.
        vault_root: the vault's folder.
        name: for a key that signs nothing yet; by default that of the vault's first public key.

    Raises:
        StoreError: no vault there, or it has no key.
    """
    vault = Vault.open(vault_root, board=repository.root)
    with vault.locked(), repository.locked():
        key = public_key(vault.own_signing_key())
    named = name_of_key(key, signers_of(vault.entries()))
    return SignerKey(
        name=named or name or organiser_name(repository, vault), key=key, signs=named is not None
    )


def rekey(session: Session, change: KeyChange) -> Rekeyed:
    """Change the organisers' keys, or go on with a change that was begun.

    A change that was logged last, and for this very reason, is done and not made again.

    Args:
        session: its lock is held.
        change: what is asked for; that of an earlier call which was stopped comes first.

    Raises:
        InputError: a public key is wrong or unknown, or none that opens here would stay.
        StoreError: nothing would change, or the clock went backwards: no key is made then.
    """
    check_clock(session.vault.entries()[-1], session.now)
    note = session.vault.files.file(_NOTE)
    went_on = is_begun(session.vault)
    before = None if went_on else _find_done(session, change)
    if before is not None:
        return _describe(session, before, catch_up(session, news=False), before=True)
    if not went_on:
        note.write_whole(msgspec.json.encode(make_plan(session, change)), mode=0o600)
    try:
        plan = msgspec.json.decode(note.read_bytes(), type=KeyPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(f"{note} is damaged; restore it from the backup, or remove it") from None
    if session.spec().recipients not in (plan.before, plan.recipients):
        raise StoreError(
            "the board's recipients were changed since this change of keys was begun; remove "
            f"{session.vault.root / _NOTE} and call again"
        )
    rekeyed = _carry_out(session, plan, went_on=went_on)
    note.delete()
    return rekeyed


def _find_done(session: Session, change: KeyChange) -> Entry | None:
    """The event of the very change that is asked for, if no other came after it."""
    logged = [entry for entry in session.vault.entries() if entry.event.kind == "rekeyed"]
    recipients = session.spec().recipients
    if not logged or logged[-1].get("why") != change.why:
        return None
    gone = not any(plain(key).startswith(plain(text)) for key in recipients for text in change.drop)
    come = all(among(key, recipients) for key in change.add)
    signers = signers_of(session.vault.entries())
    gone = gone and not any(
        name == text or key.startswith(text)
        for name, key in signers.items()
        for text in change.drop_signers
    )
    come = come and change.add_signers.items() <= signers.items()
    return logged[-1] if gone and come else None


def _describe(
    session: Session, entry: Entry, rebuilt: Rebuilt, *, went_on: bool = False, before: bool = False
) -> Rekeyed:
    """Return what a change of keys left, by its event."""
    until, submissions = entry.get("grace_until"), session.history().submissions
    shut = tuple(entry.get("not_opened"))
    return Rekeyed(
        event=entry.event.seq,
        went_on=went_on,
        done_before=before,
        added=tuple(entry.get("added")),
        removed=tuple(entry.get("removed")),
        signers=signers_of(session.vault.entries()),
        old_keys=entry.get("old_keys"),
        grace_until=None if until is None else date.fromisoformat(until),
        sealed_again=tuple(entry.get("sealed_again")),
        not_opened=shut,
        waiting=tuple(name for name in shut if submissions[name].pending),
        rebuilt=rebuilt,
    )


def _carry_out(session: Session, plan: KeyPlan, *, went_on: bool) -> Rekeyed:
    """Every step can be done twice: a call that goes on does them all."""
    sealed = {
        name: str(session.vault.store_sealed(data)) for name, data in plan.sealed_again.items()
    }
    _change_keys(session, plan)
    text = set_recipients(session.rules(), plan.recipients)
    before = signers_of(session.vault.entries()[: plan.events])
    signers: Signers = plan.public["signers"]
    # The event first: board.toml without it would be an edit that changes keys, and be refused.
    entry = _log(session, plan, text, sealed)
    session.repository.write_file(SPEC, text.encode())
    for key in set(before.values()) - set(signers.values()):
        session.vault.remove_signing_key(key)
    if plan.public["old_keys"] == "destroyed":
        for file in session.vault.identity_files():
            if file.name.startswith(RETIRED):
                file.delete()
    own = session.vault.own_signer(signers)
    rebuilt = bring_up_to_date(session if own is None else replace(session, by=own.name))
    return _describe(session, entry, rebuilt, went_on=went_on)


def _change_keys(session: Session, plan: KeyPlan) -> None:
    """Retire the old private keys, then put the new one in: no moment has neither."""
    form = session.spec().envelope
    for key in own_keys(form, session.vault):
        if among(key.recipient, plan.public["removed"]) and not key.retired:
            mark = digest_bytes(plain(key.recipient).encode())[:8]
            session.vault.files.rename(key.file.path, f"identities/{RETIRED}{mark}.txt")
    if plan.signing:
        session.vault.add_signing_key(plan.signing)
    if plan.private and plan.private not in session.vault.identities():
        _add_key(session.vault, plan.private)


def _log(session: Session, plan: KeyPlan, text: str, sealed: Mapping[str, str]) -> Entry:
    """Log the event unless an earlier call did."""
    for entry in session.vault.entries()[plan.events :]:
        if entry.event.kind == "rekeyed":
            return entry
    public = {"board.toml": text, "files": dict(session.history().files), **plan.public}
    public["sealed_again"] = dict(sealed)
    named = Session(repository=session.repository, vault=session.vault, now=session.now, by=plan.by)
    return named.log("rekeyed", None, public=public)


def _add_key(vault: Vault, private: str) -> None:
    taken = {file.name.removesuffix(".txt") for file in vault.identity_files()}
    names = ("organiser", *(f"organiser-{number}" for number in range(2, len(taken) + 3)))
    vault.add_identity(next(name for name in names if name not in taken), private)
