"""Rules that another organiser of a shared vault has put in force, and a board's folder lacks."""

from collections.abc import Sequence

from heldout.board.log.events import Entry
from heldout.errors import StoreError

__all__ = ["newer_rules"]


def newer_rules(text: str, *, public: Sequence[Entry], entries: Sequence[Entry]) -> str | None:
    """The rules that another organiser has put in force, where a board's folder lacks them.

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
        f"board.toml was edited here, and another organiser's rules came first (event {number}): "
        "put your edit aside (git stash in the board), call again, then edit once more"
    )


def _last_rules(entries: Sequence[Entry]) -> tuple[int, str]:
    """Since which event the rules have been as they are, and their text."""
    since, rules = -1, ""
    for entry in entries:
        text = entry.event.public.get("board.toml", rules)
        if text != rules:
            since, rules = entry.event.seq, text
    return since, rules
