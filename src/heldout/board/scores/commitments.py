"""What the log commits to: held-out files by their digests, rules, and the organisers' keys.

`compare_held_out` says which held-out files are others than the log has. `check_new_rules` looks at
an edited board.toml before it is logged, because what is logged holds for good. `check_recipients`
refuses a key that nobody here has: a wrong one in board.toml would lock every later submission.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import msgspec

from heldout.board.log.history import History
from heldout.board.rules import changes
from heldout.board.rules.spec import BoardSpec
from heldout.board.rules.spec_file import parse_spec, refuse_spec
from heldout.board.scores.sets import EditedFile, check_sets, find_edited, load_sets
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.envelope.bundle import recipient_of, seal_key
from heldout.envelope.keys import Form
from heldout.errors import HeldoutError, InputError, Problem, SetupError, StoreError
from heldout.ids import digest_bytes

FIRST_TIME = "files of the vault are committed to for the first time"
"""The reason of an event that does nothing but that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """The held-out files of today beside those that the log commits to.

    Attributes:
        before: name -> SHA-256 as committed.
        files: name -> SHA-256 of today; of what no rule names any more as it was.
        new: names that were never committed to.
        changed: names whose file is another one than was committed to, or was taken away.
    """

    before: Mapping[str, str]
    files: Mapping[str, str]
    new: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def grown(self) -> Mapping[str, str]:
        """As committed, with what is new."""
        return {**self.before, **{name: self.files[name] for name in self.new}}


def compare_held_out(vault: Vault, history: History, spec: BoardSpec) -> HeldOut:
    """Look at every file that decides a score by these rules.

    Raises:
        StoreError: labels that were committed to are missing.
    """
    stems = changes.list_stems(spec)
    now = vault.held_out(stems)
    named = {name for name in history.labels if changes.stem_of(name) in stems}
    gone = sorted(named - now.keys())
    for name in gone:
        if "." not in name:  # labels; a mask or groups may be taken away, for a reason
            vault.labels_digest(name)
    committed = {name: digest for name, digest in history.labels.items() if name not in gone}
    return HeldOut(
        before=history.labels,
        files={**committed, **now},
        new=tuple(sorted(now.keys() - history.labels.keys())),
        changed=tuple(sorted({*gone, *(n for n in named - {*gone} if now[n] != committed[n])})),
    )


def store_versions(vault: Vault, files: Mapping[str, str]) -> None:
    """Keep the bytes of every file that is as given, so that they outlive the next change.

    Args:
        vault: its lock is held.
        files: name -> SHA-256; what differs from it was kept when it was committed to.
    """
    for name, digest in files.items():
        data = (
            None
            if vault.has_sealed(digest)
            else vault.files.find(f"labels/{changes.held_out_file(name)}")
        )
        if data is not None and digest_bytes(data) == digest:
            vault.store_sealed(data)


@contextmanager
def new_keys(vault: Vault, history: History, spec: BoardSpec) -> Iterator[None]:
    """Make the keys of query sets that rules need and no event has committed to yet.

    The event that commits to them is logged within. Where it is not, they are removed: another
    organiser may log rules first, with keys of theirs.

    Args:
        vault: its lock is held.
        history: what its log says.
        spec: the rules.
    """
    wanted = (name for name in spec.sets if changes.needs_key(spec, name))
    missing = [name for name in wanted if changes.key_name(name) not in history.labels]
    made = [name for name in missing if vault.make_set_key(name)]
    try:
        yield
    except HeldoutError:
        for name in made:
            vault.drop_set_key(name)
        raise


def check_keys(held: HeldOut) -> None:
    """Refuse to go on with another key than the log commits to.

    Raises:
        StoreError: one is missing, or is another one.
    """
    for name in filter(changes.is_key, held.changed):
        digest = held.before[name]
        raise StoreError(
            f"labels/{name} in the vault is missing, or is not the key that the log commits to: a "
            "key never changes, and no reason allows it; restore it from the backup, or copy the "
            f"vault's sealed/{digest} to labels/{name}"
        )


def list_broken_keys(history: History) -> Iterator[str]:
    """Events that commit to another key than an earlier one, or to it no more."""
    for before, after in pairwise(history.commitments):
        old, new = before.files or {}, after.files or {}
        for name in sorted(filter(changes.is_key, old)):
            if after.files is not None and new.get(name) != old[name]:
                yield (
                    f"event {after.event} does not commit to labels/{name} as it was before: the "
                    "key of a query set never changes"
                )


def check_unchanged(held: HeldOut) -> None:
    """Refuse to tell a score by files that nobody committed to.

    Raises:
        StoreError: one was changed since.
    """
    check_keys(held)
    if held.changed:
        names = ", ".join(f"labels/{changes.held_out_file(name)}" for name in held.changed)
        raise StoreError(
            f"{names} in the vault: not what the log commits to, so no score was computed "
            f"with it; put "
            'the old file back, or log the change: heldout correct ID --why "…"'
        )


_LONGEST_AGREEMENT = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleChange:
    """What lies in the board's folder and is not what the log has.

    Attributes:
        texts: path -> (text in the log, text in the folder) of board.toml and the agreement.
        differences: the keys of board.toml that differ; none where only comments or layout do.
        files: public files that decide scores and are not what the log has.
    """

    texts: dict[str, tuple[str, str]]
    differences: tuple[changes.Difference, ...]
    files: tuple[EditedFile, ...] = ()

    def diff(self) -> tuple[str, ...]:
        """A unified diff, from what the log has to what lies there."""
        return tuple(
            line.rstrip("\n")
            for path, (before, after) in self.texts.items()
            for line in difflib.unified_diff(
                before.splitlines(), after.splitlines(), f"log/{path}", path, n=2, lineterm=""
            )
        )


def find_rule_change(repository: Repository, vault: Vault) -> RuleChange | None:
    """The rules in the board's folder that the log does not have, `None` where it has them all.

    Raises:
        InputError: board.toml is wrong, or the agreement is no text or too long.
        StoreError: the agreement that it names is missing.
    """
    history, text = vault.history(), repository.tree_rules()
    before, after = parse_spec(history.rules[-1][1].encode()), repository.tree_spec()
    texts = {}
    if text != history.rules[-1][1]:
        texts[SPEC] = (history.rules[-1][1], text)
    named = None if after.registration is None else after.registration.agreement
    if named is not None and history.closed is None:
        digest, agreement = read_agreement_text(repository, named)
        last = history.agreements[-1] if history.agreements else None
        if last is None or last.digest != digest:
            texts[named] = ("" if last is None else last.text, agreement)
    edited = find_edited(repository, history, after)
    if not texts and not edited:
        return None
    return RuleChange(
        texts=texts, differences=changes.list_differences(before, after), files=edited
    )


def read_agreement_text(repository: Repository, path: str) -> tuple[str, str]:
    """An agreement's digest, and its text.

    Raises:
        InputError: it is no text or too long.
        StoreError: it is missing.
    """
    data = repository.file(path).read_bytes()
    if len(data) > _LONGEST_AGREEMENT:
        found = f"{len(data):,} bytes"
        raise InputError.of("too-large", path, found, f"at most {_LONGEST_AGREEMENT:,} bytes")
    try:
        return str(digest_bytes(data)), data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError.of("bad-utf8", path, "bytes that are not UTF-8") from None


def check_new_rules(repository: Repository, vault: Vault, *, now: datetime) -> None:
    """Refuse an edited board.toml, or public file, that cannot work or does not fit what was told.

    Where neither was edited nothing is looked at.

    Raises:
        InputError: it changes the organisers' keys, what released scores mean or what ranks them,
            moves a last day that is over, or names sets over which nothing can be scored.
        StoreError: a file that it names is missing.
    """
    history, text = vault.history(), repository.tree_rules()
    before = history.rules[-1][1]
    after = repository.tree_spec()
    edited = {one.path for one in find_edited(repository, history, after)}
    if text == before and not edited:
        return
    refuse_spec(changes.list_changed_keys(parse_spec(before.encode()), after), text, path=SPEC)
    refuse_spec(changes.list_changed_terms(history, after), text, path=SPEC)
    refuse_spec(changes.list_moved_days(history, after, now=now), text, path=SPEC)
    _check_splits(history, after, edited)
    _check_sets(repository, vault, parse_spec(before.encode()), after, edited)
    _check_agreement(repository, history, after)


def _check_splits(history: History, after: BoardSpec, edited: AbstractSet[str]) -> None:
    """Refuse other queries of a split set: some would move from one part to the other."""
    published = {v for s in history.submissions.values() for v in (*s.scores, *s.untold)}
    split = {view.set for view in after.views if view.part is not None and view.name in published}
    problems = [
        Problem.of(
            "edited-file",
            after.sets[name].queries,
            "another file than the log has",
            hint="its ids decide which queries are in which part: put it back with heldout rebuild "
            "--restore-rules, or give new queries a set of their own",
            logged=f"'{name}' is split and scores are published",
        )
        for name in sorted(split)
        if after.sets[name].queries in edited
    ]
    if problems:
        raise InputError(problems)


def _check_sets(
    repository: Repository,
    vault: Vault,
    before: BoardSpec,
    after: BoardSpec,
    edited: AbstractSet[str],
) -> None:
    """The sets that are new or read otherwise; others were looked at, or an old board has none."""
    fresh = {name for name, files in after.sets.items() if before.sets.get(name) != files}
    known = {view.name: view for view in before.views}
    fresh |= {view.set for view in after.views if known.get(view.name) != view}
    fresh |= {name for name in after.sets if not edited.isdisjoint(changes.list_open(after, name))}
    if not fresh:
        return
    final = after.finalists_view
    if final is not None and final.set in fresh:  # no other set may have its queries
        fresh |= after.sets.keys()
    # Beside them all labels in the open: what is held out must not be among them.
    fresh |= {
        name
        for name, files in after.sets.items()
        if files.qrels is not None and repository.files.is_file(files.qrels)
    }
    part = msgspec.structs.replace(
        after,
        sets={name: files for name, files in after.sets.items() if name in fresh},
        views=tuple(view for view in after.views if view.set in fresh),
    )
    sets = load_sets(repository, part, vault=vault)
    check_sets(part, sets)


def _check_agreement(repository: Repository, history: History, after: BoardSpec) -> None:
    registration = after.registration
    if registration is not None and registration.agreement is not None and not history.closed:
        read_agreement_text(repository, registration.agreement)


_PROBE = b"any key\n"


def own_recipients(form: Form, vault: Vault) -> Iterator[str]:
    """The public halves of the vault's keys that are of a form, in the order of their files."""
    for private in vault.identities():
        try:
            yield recipient_of(form, private)
        except SetupError:
            continue  # of the board's other form, kept for what was sealed under it


def among(key: str, keys: Sequence[str]) -> bool:
    """Check whether a public key is one of others, blanks and line ends aside."""
    return plain(key) in {plain(other) for other in keys}


def plain(key: str) -> str:
    """Without the blanks and line ends that a text file may add to a key."""
    return "".join(key.split())


def can_open(spec: BoardSpec, vault: Vault) -> bool:
    """Tell whether a key in the vault is that of one of the board's recipients."""
    ours = list(own_recipients(spec.envelope, vault))
    return any(among(recipient, ours) for recipient in spec.recipients)


def check_recipients(spec: BoardSpec, rules: str, vault: Vault | None) -> None:
    """Refuse recipients that nothing can be sealed for, or none of which the vault can open.

    Args:
        spec: of a board.toml.
        rules: its text, for the line.
        vault: holds the organisers' keys; `None` where it is not at hand.

    Raises:
        InputError: with every recipient that is wrong.
    """
    wrong = list(_find_malformed(spec.envelope, spec.recipients))
    if not wrong and vault is not None and not can_open(spec, vault):
        found = "no recipient whose private key lies in the vault's identities/"
        wrong = [(found, "at least one: nobody could open what is sealed from now on")]
    if wrong:
        raise InputError(_problem(found, expected, rules) for found, expected in wrong)


def _find_malformed(form: Form, recipients: Sequence[str]) -> Iterator[tuple[str, str]]:
    expected = {"age": "age recipients (age1...)", "openssl": "one RSA public key in PEM"}[form]
    faults = [*filter(None, (_refusal(form, [recipient]) for recipient in recipients))]
    for fault in faults or filter(None, [_refusal(form, recipients)]):
        yield fault, f'{expected}, as envelope = "{form}" has it'


def _refusal(form: Form, recipients: Sequence[str]) -> str:
    """Return why nothing can be sealed for these recipients; empty where it can."""
    try:
        seal_key(form, _PROBE, recipients)
    except SetupError as error:
        return str(error)
    return ""


def _problem(found: str, expected: str, rules: str) -> Problem:
    key = re.search(r"^[ \t]*recipients[ \t]*=", rules, re.MULTILINE)
    line = None if key is None else rules.count("\n", 0, key.start()) + 1
    hint = "keys/organisers.txt has those of the last rules that were in force"
    return Problem.of("board-spec", SPEC, found, expected, hint, line=line)
