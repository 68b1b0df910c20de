"""Which files of a vault its organisers share, and which of them the log vouches for.

Whoever can write to the remote can put any bytes there. So a file is sent and taken over only as
far as something else says what it has to be: its name, which is its digest, or an event that holds
its digest. Held-out labels wait for the event that commits to them, true scores and signatures for
the one that was logged with them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from heldout.board.log.events import Entry, format_entry
from heldout.board.log.history import read_history
from heldout.board.rules.held_out import held_out_file, held_out_name
from heldout.errors import StoreError, quote
from heldout.ids import digest_bytes
from heldout.store.git import AS_IT_IS, ATTRIBUTES, Change

__all__ = [
    "EVENTS",
    "GITIGNORE",
    "IGNORED",
    "KEPT",
    "SHARED_FOLDERS",
    "Standing",
    "check_plain",
    "judge_file",
    "kept_path",
    "logged_files",
    "unneeded_runs",
]

EVENTS = "events.jsonl"
"""The vault's log."""

GITIGNORE = ".gitignore"
"""Where a vault keeps `IGNORED`."""

IGNORED = b"identities/\nfounding\nlock\nrefused\n.writing-*\n"
"""A vault's .gitignore: private keys, and what is about this machine alone."""

KEPT: Mapping[str, str] = {"scores": ".json", "signatures": ".npz"}
"""Folder of what opening a submission gave -> how the name of its file there ends."""

SHARED_FOLDERS = ("labels", "sealed", *KEPT)
"""The folders of a vault that every organiser has alike."""

Standing = Literal["logged", "unlogged", "wrong"]
"""`logged`: what it has to be. `unlogged`: nothing says what it has to be, or it could be made
anew from what does. `wrong`: something else than what it has to be."""

_SHARED = re.compile(
    rf"{re.escape(GITIGNORE)}|{re.escape(ATTRIBUTES)}|{re.escape(EVENTS)}"
    rf"|({'|'.join(SHARED_FOLDERS)})(/[^/.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*)+"
)
_PLAIN = "100644"
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_TAR = re.compile(r".*\.tar\.(age|enc)")


def kept_path(folder: str, submission: str) -> str:
    """Path in the vault of what is kept of a submission; `folder` is a key of `KEPT`."""
    return f"{folder}/{submission}{KEPT[folder]}"


def logged_files(entries: Sequence[Entry]) -> dict[str, str]:
    """Path in the vault -> SHA-256, of every file that the log has the digest of.

    Args:
        entries: the vault's log, verified.
    """
    history = read_history(entries)
    labels = {f"labels/{held_out_file(name)}": digest for name, digest in history.labels.items()}
    kept = {
        kept_path(folder, submission.id): digest
        for submission in history.submissions.values()
        for folder, digest in submission.kept.items()
    }
    return {**labels, **kept}


def unneeded_runs(entries: Sequence[Entry]) -> frozenset[str]:
    """SHA-256 of the sealed runs that only rejected and withdrawn submissions have.

    Nothing opens these runs again: later ones are compared with their signatures. Key and metadata
    are small, and needed where an owner's files come after a spoiled copy of them.

    Args:
        entries: the vault's log, verified.
    """
    every = read_history(entries).submissions.values()
    decided = {one.id for one in every if one.status in ("rejected", "withdrawn")}
    runs: set[str] = set()
    needed: set[str] = set()
    for entry in entries:
        if entry.event.submission in decided:
            for name, digest in (entry.get("files") or {}).items():
                (runs if _TAR.fullmatch(name) else needed).add(digest)
        elif decided:  # any mention counts: other submissions, labels, baselines, evidence
            needed.update(found.decode() for found in _DIGEST.findall(format_entry(entry)))
    return frozenset(runs - needed)


def judge_file(path: str, data: bytes, logged: Mapping[str, str]) -> Standing:
    """Hold a file against what it has to be.

    Args:
        path: in the vault, in one of `SHARED_FOLDERS`, or its `.gitattributes`.
        data: its bytes.
        logged: as `logged_files` gives it.
    """
    if path == ATTRIBUTES:
        return "logged" if data == AS_IT_IS else "wrong"
    folder, _, name = path.partition("/")
    if folder == "labels" and held_out_name(name) is None:
        return "logged"  # it decides no score
    expected = name if folder == "sealed" else logged.get(path)
    if expected == digest_bytes(data):
        return "logged"
    return "unlogged" if expected is None or folder in KEPT else "wrong"


def check_plain(files: Sequence[Change], *, whose: str, then: str) -> None:
    """Refuse a commit that holds anything but plain files of a vault.

    Args:
        files: all that it holds.
        whose: who has it, for the error.
        then: what the reader should know besides.

    Raises:
        StoreError: it does.
    """
    for file in files:
        if file.path.startswith("identities/"):
            raise StoreError(
                f"{whose} has {quote(file.path)} in git: a private key never belongs there. Take "
                f"it out, and make a new one (heldout board rekey); {then}"
            )
        if file.mode != _PLAIN or not _SHARED.fullmatch(file.path):
            raise StoreError(f"{whose} has {quote(file.path)}, no plain file of a vault; {then}")
