"""Rules that a vault has and a board's folder lacks: another organiser put them in force.

Or a change of keys was stopped between its event and the file.
"""

from collections.abc import Sequence

from heldout.board.log.events import Entry
from heldout.errors import StoreError
from heldout.ids import digest_bytes
from heldout.store.files import Folder

__all__ = ["newer_agreement", "newer_rules"]


def newer_rules(text: str, *, public: Sequence[Entry], entries: Sequence[Entry]) -> str | None:
    """The rules that a vault has, where a board's folder lacks them.

    Without this a board.toml that is merely old would look like an edit that takes theirs back.

    Args:
        text: board.toml as it stands in the folder.
        public: the log of the same folder.
        entries: the vault's log.

    Returns:
        The text to write, `None` where the folder's is in force, or an edit of it.

    Raises:
        StoreError: it was edited without knowing them.
    """
    number, rules = _last_rules(entries)
    if text == rules or number < len(public):
        return None
    if text == _last_rules(public)[1]:
        return rules
    raise StoreError(
        f"board.toml was edited here, and other rules came first (event {number}): "
        "put your edit aside (git stash in the board), call again, then edit once more"
    )


def newer_agreement(
    board: Folder, *, public: Sequence[Entry], entries: Sequence[Entry]
) -> tuple[str, str] | None:
    """Path and text of the agreement that a vault has, where a board's folder has the one before.

    Args:
        board: its folder.
        public: the log of the same folder.
        entries: the vault's log.
    """
    older, newer = (_last_agreement(log) for log in (public, entries))
    if older is None or newer is None or older.hash == newer.hash:
        return None
    path, text = str(newer.get("path")), str(newer.get("text"))
    data = board.find(path)
    if older.get("path") != path or data is None:
        return None
    same = digest_bytes(data) == older.get("sha256")
    return (path, text) if same and older.get("sha256") != newer.get("sha256") else None


def _last_agreement(entries: Sequence[Entry]) -> Entry | None:
    found = (entry for entry in reversed(entries) if entry.event.kind == "changed-agreement")
    return next(found, None)


def _last_rules(entries: Sequence[Entry]) -> tuple[int, str]:
    """Since which event the rules have been as they are, and their text."""
    since, rules = -1, ""
    for entry in entries:
        text = entry.event.public.get("board.toml", rules)
        if text != rules:
            since, rules = entry.event.seq, text
    return since, rules
