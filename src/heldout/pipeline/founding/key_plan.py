"""Plans a change of the organisers' keys: who goes, who comes, what is sealed again for whom.

Nothing is changed here but that an edited board.toml is logged first.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import msgspec

from heldout.board.log.history import Submission
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec
from heldout.envelope.bundle import Form, file_names, new_identity, open_key, recipient_of, seal_key
from heldout.errors import InputError, Problem, SetupError, StoreError, TrustError, quote
from heldout.ids import SubmissionId
from heldout.pipeline.organiser.desk import Desk, note_held_out
from heldout.pipeline.organiser.recipients import check_recipients
from heldout.store.files import File
from heldout.store.repository import SPEC
from heldout.store.vault import Vault

__all__ = [
    "RETIRED",
    "KeyChange",
    "KeyPlan",
    "OldKeys",
    "among",
    "make_plan",
    "own_keys",
    "plain",
    "set_recipients",
]

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
    """

    new_key: bool
    add: Sequence[str] = ()
    drop: Sequence[str] = ()
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
        added, removed: the difference.
        why: the reason.
        private: the vault's new key, "" where it gets none.
        old_keys: what becomes of its old ones.
        grace_until: last day on which what is sealed for them is taken; `None` for never.
        sealed_again: id -> a submission's own key, sealed for the recipients after it.
        not_opened: ids of those whose own key opens for nobody here.
    """

    by: str
    events: int
    before: tuple[str, ...]
    recipients: tuple[str, ...]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    why: str
    private: str
    old_keys: OldKeys
    grace_until: date | None
    sealed_again: dict[str, bytes]
    not_opened: tuple[str, ...]


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


def make_plan(desk: Desk, change: KeyChange) -> KeyPlan:
    """Draw, open and seal all that a change needs, so that any number of calls can carry it out.

    Raises:
        InputError: a public key is wrong or unknown, or none that opens here would stay.
        StoreError: nothing would change.
    """
    note_held_out(desk)
    spec, vault = desk.spec(), desk.vault
    own = list(own_keys(spec.envelope, vault))
    removed = _find_removed(spec, own, change)
    private = _new_private(spec, own) if change.new_key else ""
    fresh = [recipient_of(spec.envelope, private)] if private else []
    kept = [key for key in spec.recipients if not among(key, removed)]
    added = [key.strip() for key in (*fresh, *change.add) if not among(key, kept)]
    recipients = (*kept, *added)
    retired = [key for key in own if key.retired or among(key.recipient, removed)]
    if not added and not removed and not (change.destroy_old and retired):
        raise StoreError("no key goes and none comes, so nothing was done")
    text = set_recipients(desk.rules(), recipients)
    after = parse_spec(text.encode(), path=SPEC)
    check_recipients(after, text, None if private else vault)
    sealed_again, not_opened = _seal_again(desk, spec.envelope, recipients)
    going = any(among(key.recipient, removed) for key in own)
    return KeyPlan(
        by=desk.by,
        events=len(vault.entries()),
        before=spec.recipients,
        recipients=recipients,
        added=tuple(added),
        removed=tuple(removed),
        why=change.why,
        private=private,
        old_keys="none" if not retired else "destroyed" if change.destroy_old else "kept",
        grace_until=change.grace_until if going and not change.destroy_old else None,
        sealed_again=sealed_again,
        not_opened=not_opened,
    )


def set_recipients(rules: str, recipients: Sequence[str]) -> str:
    """The text of a board.toml with other recipients; all else stays byte for byte.

    Raises:
        InputError: the key `recipients` does not stand at the beginning of a line.
    """
    lines = rules.splitlines(keepends=True)
    told = f"recipients = {msgspec.json.encode(list(recipients)).decode()}\n"
    wanted = {**tomllib.loads(rules), "recipients": list(recipients)}
    for start, end in _find_statement(lines):
        text = "".join([*lines[:start], told, *lines[end:]])
        if _parses_as(text, wanted):
            return text
    raise InputError(
        Problem(
            code="board-spec",
            path=SPEC,
            found="no line that begins with recipients =",
            expected="the organisers' public keys at the top of the file",
            hint='recipients = ["age1..."]',
        )
    )


def own_keys(form: Form, vault: Vault) -> Iterator[OwnKey]:
    """The vault's keys of a form; a file of another form, or none at all, is passed over."""
    for file in vault.identity_files():
        private = file.read_bytes().decode("ascii", "replace")
        try:
            recipient = recipient_of(form, private)
        except SetupError:
            continue
        yield OwnKey(file=file, recipient=recipient, private=private)


def among(key: str, keys: Sequence[str]) -> bool:
    """Whether a public key is one of others, blanks and line ends aside."""
    return plain(key) in {plain(other) for other in keys}


def plain(key: str) -> str:
    """Without the blanks and line ends that a text file may add to a key."""
    return "".join(key.split())


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
            raise InputError(
                _wrong_key(
                    "no recipient whose private key lies in the vault",
                    "the one that was lost, by name, for the others may not go",
                    "--drop " + " or --drop ".join(key[:16] for key in spec.recipients),
                )
            )
        return list(spec.recipients)
    return [*removed, *(key for key in ours if not among(key, removed))]


def _find_recipient(spec: BoardSpec, text: str) -> str:
    found = [key for key in spec.recipients if plain(key).startswith(plain(text))]
    if len(found) == 1 and len(plain(text)) >= _LEAST_PREFIX:
        return found[0]
    told = "several recipients that begin so" if len(found) > 1 else "no recipient"
    names = ", ".join(f"{key[:16]}…" for key in spec.recipients)
    raise InputError(
        _wrong_key(f"{quote(text)}: {told}", f"at least {_LEAST_PREFIX} characters of: {names}", "")
    )


def _wrong_key(found: str, expected: str, hint: str) -> Problem:
    return Problem(
        code="board-spec", path=f"{SPEC}:recipients", found=found, expected=expected, hint=hint
    )


def _new_private(spec: BoardSpec, own: Sequence[OwnKey]) -> str:
    """A key that lies in the vault and is nobody's recipient yet, or a fresh one."""
    spare = [k for k in own if not k.retired and not among(k.recipient, spec.recipients)]
    return spare[0].private if spare else new_identity(spec.envelope).private


def _seal_again(
    desk: Desk, form: Form, recipients: Sequence[str]
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The own keys of all submissions that stand, for other organisers; and those that stay shut.

    What was sealed in the board's other form stays as it is: its old key is of that form, too.
    """
    again: dict[str, bytes] = {}
    shut = []
    for submission in desk.history().submissions.values():
        standing = submission.pending or submission.status == "published"
        if not standing or submission.baseline:
            continue
        if desk.spec_at(submission.received).envelope != form:
            continue
        try:
            key = open_key(form, _sealed_key(desk, form, submission), desk.vault.identities())
        except TrustError:
            shut.append(submission.id)
        else:
            again[submission.id] = seal_key(form, key, recipients)
    return again, tuple(shut)


def _sealed_key(desk: Desk, form: Form, submission: Submission) -> bytes:
    first = submission.files[file_names(form, SubmissionId(submission.id)).key]
    return desk.vault.sealed(submission.sealed_again or first).read_bytes()


def _find_statement(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of a statement `recipients = …`, which may go over several."""
    for start, line in enumerate(lines):
        if not re.match(r"[ \t]*recipients[ \t]*=", line):
            continue
        for end in range(start + 1, len(lines) + 1):
            if _parses_as("".join(lines[start:end]), None):
                yield start, end
                break


def _parses_as(text: str, wanted: Mapping[str, object] | None) -> bool:
    """Whether a text is TOML, and says just that where something is wanted."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return wanted is None or found == wanted
