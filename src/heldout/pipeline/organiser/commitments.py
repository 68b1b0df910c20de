"""The files of a vault that decide scores, and how they differ from what the log commits to.

Every version that was ever committed to is kept as `sealed/SHA256`, written before its event: so an
archive can open it, and a score can be checked with the labels that held when it was told.

Labels can change for a reason. The key of a query set cannot.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from heldout.board.log.history import History
from heldout.board.rules.held_out import (
    held_out_file,
    is_key,
    key_name,
    list_stems,
    needs_key,
    stem_of,
)
from heldout.board.rules.spec import BoardSpec
from heldout.errors import HeldoutError, StoreError
from heldout.ids import digest_bytes
from heldout.store.vault import Vault

__all__ = [
    "FIRST_TIME",
    "HeldOut",
    "check_keys",
    "check_unchanged",
    "compare_held_out",
    "keep_versions",
    "list_broken_keys",
    "new_keys",
]

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
    stems = list_stems(spec)
    now = vault.held_out(stems)
    named = {name for name in history.labels if stem_of(name) in stems}
    gone = sorted(named - now.keys())
    for name in gone:
        if "." not in name:  # labels; a mask or groups may be taken away, for a reason
            vault.labels_digest(name)
    kept = {name: digest for name, digest in history.labels.items() if name not in gone}
    return HeldOut(
        before=history.labels,
        files={**kept, **now},
        new=tuple(sorted(now.keys() - history.labels.keys())),
        changed=tuple(sorted({*gone, *(n for n in named - {*gone} if now[n] != kept[n])})),
    )


def keep_versions(vault: Vault, files: Mapping[str, str]) -> None:
    """Keep the bytes of every file that is as given, so that they outlive the next change.

    Args:
        vault: its lock is held.
        files: name -> SHA-256; what differs from it was kept when it was committed to.
    """
    for name, digest in files.items():
        data = (
            None if vault.has_sealed(digest) else vault.files.find(f"labels/{held_out_file(name)}")
        )
        if data is not None and digest_bytes(data) == digest:
            vault.keep_sealed(data)


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
    wanted = (name for name in spec.sets if needs_key(spec, name))
    missing = [name for name in wanted if key_name(name) not in history.labels]
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
    for name in filter(is_key, held.changed):
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
        for name in sorted(filter(is_key, old)):
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
        names = ", ".join(f"labels/{held_out_file(name)}" for name in held.changed)
        raise StoreError(
            f"{names} in the vault: not what the log commits to, so no score was told by it; put "
            'the old file back, or log the change: heldout correct ID --why "…"'
        )
