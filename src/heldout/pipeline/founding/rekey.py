"""Changes the organisers' keys: when one of them leaves, joins, or has lost a key.

Everything that has to be drawn or opened is done first and written into one private note in the
vault. From there on each step only carries out what the note says, so that a call which was killed
goes on where it stopped: sealed keys, private keys, the event, board.toml, the page, and last the
note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import msgspec

from heldout.board.log.events import Entry, check_clock, signers_of
from heldout.board.log.signers import Signers
from heldout.board.rules.spec_file import parse_spec
from heldout.envelope.bundle import new_identity
from heldout.errors import StoreError
from heldout.ids import digest_bytes
from heldout.pipeline.deciding.rebuild import Rebuilt, catch_up, rebuild
from heldout.pipeline.founding.key_plan import (
    RETIRED,
    KeyChange,
    KeyPlan,
    OldKeys,
    make_plan,
    own_keys,
    set_recipients,
)
from heldout.pipeline.organiser.desk import Desk
from heldout.pipeline.organiser.recipients import among, own_recipients, plain
from heldout.pipeline.query_sets.public_files import digest_public
from heldout.store.repository import SPEC
from heldout.store.vault import Vault

__all__ = ["Rekeyed", "ensure_key", "is_begun", "rekey"]

_NOTE = "identities/rekeying"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rekeyed:
    """What a change of keys left.

    Attributes:
        event: number of its event.
        went_on: whether it was begun by an earlier call, whose change it is.
        done_before: whether an earlier call had done it.
        added, removed: public keys.
        signers: who signs events from now on; empty where they are not signed.
        old_keys: what became of this vault's old private keys.
        grace_until: last day on which what is sealed for them is taken, `None` where there is none.
        sealed_again: ids of the submissions whose keys were sealed for the organisers of now.
        not_opened: ids of those that nobody here can open.
        waiting: ids among these that wait for a decision: they can only be refused.
        rebuilt: the board afterwards.
    """

    event: int
    went_on: bool = False
    done_before: bool = False
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
    """Whether a change of keys was stopped on its way, so that the next call goes on with it."""
    return vault.files.is_file(_NOTE)


def ensure_key(vault: Vault, *, now: datetime) -> None:
    """Give a vault that has lost its keys a new one, so that somebody sits at the desk.

    It is nobody's recipient until `rekey` makes it one.

    Args:
        vault: its lock is held.
        now: the moment of the call.

    Raises:
        StoreError: the clock went backwards; no key is made.
    """
    check_clock(vault.entries()[-1], now)
    form = parse_spec(vault.history().rules[-1][1].encode(), path=SPEC).envelope
    if next(own_recipients(form, vault), None) is None:
        _add_key(vault, new_identity(form).private)


def rekey(desk: Desk, change: KeyChange) -> Rekeyed:
    """Change the organisers' keys, or go on with a change that was begun.

    A change that was logged last, and for this very reason, is done and not made again.

    Args:
        desk: its lock is held.
        change: what is asked for; that of an earlier call which was stopped comes first.

    Raises:
        InputError: a public key is wrong or unknown, or none that opens here would stay.
        StoreError: nothing would change, or the clock went backwards: no key is made then.
    """
    check_clock(desk.vault.entries()[-1], desk.now)
    note = desk.vault.files.file(_NOTE)
    went_on = is_begun(desk.vault)
    before = None if went_on else _find_done(desk, change)
    if before is not None:
        return _tell_again(desk, before, catch_up(desk, news=False))
    if not went_on:
        note.write_whole(msgspec.json.encode(make_plan(desk, change)), mode=0o600)
    try:
        plan = msgspec.json.decode(note.read_bytes(), type=KeyPlan)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise StoreError(f"{note} is damaged; restore it from the backup, or remove it") from None
    _check_overtaken(desk, plan)
    rekeyed = _carry_out(desk, plan, went_on=went_on)
    note.delete()
    return rekeyed


def _find_done(desk: Desk, change: KeyChange) -> Entry | None:
    """The event of the very change that is asked for, if no other came after it."""
    logged = [entry for entry in desk.vault.entries() if entry.event.kind == "rekeyed"]
    recipients = desk.spec().recipients
    if not logged or logged[-1].get("why") != change.why:
        return None
    gone = not any(plain(key).startswith(plain(text)) for key in recipients for text in change.drop)
    come = all(among(key, recipients) for key in change.add)
    signers = signers_of(desk.vault.entries())
    gone = gone and not any(
        name == text or key.startswith(text)
        for name, key in signers.items()
        for text in change.drop_signers
    )
    come = come and change.add_signers.items() <= signers.items()
    come = come and (bool(signers) or not change.sign)
    return logged[-1] if gone and come else None


def _tell_again(desk: Desk, entry: Entry, rebuilt: Rebuilt) -> Rekeyed:
    until = entry.get("grace_until")
    return Rekeyed(
        event=entry.event.seq,
        done_before=True,
        added=tuple(entry.get("added")),
        removed=tuple(entry.get("removed")),
        signers=signers_of(desk.vault.entries()),
        old_keys=entry.get("old_keys"),
        grace_until=None if until is None else date.fromisoformat(until),
        sealed_again=tuple(entry.get("sealed_again")),
        not_opened=tuple(entry.get("not_opened")),
        waiting=_still_waiting(desk, entry.get("not_opened")),
        rebuilt=rebuilt,
    )


def _still_waiting(desk: Desk, names: Sequence[str]) -> tuple[str, ...]:
    submissions = desk.history().submissions
    return tuple(name for name in names if submissions[name].pending)


def _check_overtaken(desk: Desk, plan: KeyPlan) -> None:
    """Refuse to go on where the recipients were changed by others since the plan was made."""
    in_force = parse_spec(desk.history().rules[-1][1].encode(), path=SPEC).recipients
    if in_force not in (plan.before, plan.recipients):
        raise StoreError(
            "the board's recipients were changed since this change of keys was begun; remove "
            f"{desk.vault.root / _NOTE} and call again"
        )


def _carry_out(desk: Desk, plan: KeyPlan, *, went_on: bool) -> Rekeyed:
    """Every step can be done twice: a call that goes on does them all."""
    sealed = {name: str(desk.vault.keep_sealed(data)) for name, data in plan.sealed_again.items()}
    _change_keys(desk, plan)
    text = set_recipients(desk.rules(), plan.recipients)
    before = signers_of(desk.vault.entries()[: plan.events])
    # The event first: board.toml without it would be an edit that changes keys, and be refused.
    event = _log(desk, plan, text, sealed)
    desk.repository.write_file(SPEC, text.encode())
    for key in set(before.values()) - set(plan.signers.values()):
        desk.vault.remove_signing_key(key)
    if plan.old_keys == "destroyed":
        for file in desk.vault.identity_files():
            if file.name.startswith(RETIRED):
                file.delete()
    own = desk.vault.own_signer(plan.signers)
    rebuilt = rebuild(desk if own is None else replace(desk, by=own.name))
    return Rekeyed(
        event=event,
        went_on=went_on,
        added=plan.added,
        removed=plan.removed,
        signers=plan.signers,
        old_keys=plan.old_keys,
        grace_until=plan.grace_until,
        sealed_again=tuple(sealed),
        not_opened=plan.not_opened,
        waiting=_still_waiting(desk, plan.not_opened),
        rebuilt=rebuilt,
    )


def _change_keys(desk: Desk, plan: KeyPlan) -> None:
    """Retire the old private keys, then put the new one in: no moment has neither."""
    form = desk.spec().envelope
    for key in own_keys(form, desk.vault):
        if among(key.recipient, plan.removed) and not key.retired:
            mark = digest_bytes(plain(key.recipient).encode())[:8]
            desk.vault.files.rename(key.file.path, f"identities/{RETIRED}{mark}.txt")
    if plan.signing:
        desk.vault.add_signing_key(plan.signing)
    if plan.private and plan.private not in desk.vault.identities():
        _add_key(desk.vault, plan.private)


def _log(desk: Desk, plan: KeyPlan, text: str, sealed: Mapping[str, str]) -> int:
    """Log the event unless an earlier call did; its number."""
    for entry in desk.vault.entries()[plan.events :]:
        if entry.event.kind == "rekeyed":
            return entry.event.seq
    public: dict[str, Any] = {
        "board.toml": text,
        "added": list(plan.added),
        "removed": list(plan.removed),
        "why": plan.why,
        "old_keys": plan.old_keys,
        "grace_until": None if plan.grace_until is None else plan.grace_until.isoformat(),
        "sealed_again": dict(sealed),
        "not_opened": list(plan.not_opened),
    }
    known = desk.history().files  # a session begins only where the folder has these
    public["files"] = digest_public(desk.repository, desk.spec()) if known is None else dict(known)
    if plan.signers:
        public["signers"] = plan.signers
    named = Desk(repository=desk.repository, vault=desk.vault, now=desk.now, by=plan.by)
    return named.log("rekeyed", None, public=public).event.seq


def _add_key(vault: Vault, private: str) -> None:
    taken = {file.name.removesuffix(".txt") for file in vault.identity_files()}
    names = ("organiser", *(f"organiser-{number}" for number in range(2, len(taken) + 3)))
    vault.add_identity(next(name for name in names if name not in taken), private)
