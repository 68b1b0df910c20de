"""The files that the record of an old board begins with, as text."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template

import msgspec

from heldout.board.old_boards.legacy import TYPES, OldTable, Repair
from heldout.board.rules.template import format_recipients

__all__ = ["record_files"]


def record_files(table: OldTable, *, source: str, recipient: str) -> Mapping[str, bytes]:
    """Path in the board -> content: board.toml, README.md, .gitignore, the public key.

    Args:
        table: the old board.
        source: name of its file.
        recipient: public key of the vault, for a board has at least one.
    """
    layout, days = table.layout, [entry.day for entry in table.entries]
    words = {
        "name": _quote(layout.name),
        "title": _quote(layout.title),
        "task": _quote(_say_task(table)),
        "opens": min(days).isoformat(),
        "closes": max(days).isoformat(),
        "decimals": str(_decimals(table)),
        "types": _quote(list(TYPES)),
        "recipients": _quote([recipient]),
        "measure": _quote(layout.measure),
        "depth": str(layout.depth),
    }
    plain = {
        "title": layout.title,
        "source": source,
        "digest": table.digest,
        "entries": str(len(table.entries)),
        "repairs": _list_repairs(table.repairs),
    }
    return {
        "board.toml": _fill("record.toml", words),
        "README.md": _fill("record.md", plain),
        ".gitignore": b"drafts/\n.heldout/\n.writing-*\n",
        "keys/organisers.txt": format_recipients([recipient]),
    }


def _say_task(table: OldTable) -> str:
    return (
        f"{table.layout.task} A record of the old board: dates, scores and trophies are as it "
        "published them; nothing was scored here, and nothing can be submitted."
    )


def _decimals(table: OldTable) -> int:
    """The most digits after the point that a score has, within what board.toml allows."""
    texts = [text for entry in table.entries for text in entry.scores.values()]
    most = max((len(text.partition(".")[2]) for text in texts), default=3)
    return min(max(most, 1), 6)


def _list_repairs(repairs: Sequence[Repair]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for repair in repairs:
        place = (repair.kind, repair.column)
        counts[place] = counts.get(place, 0) + 1
    lines = [f"- {kind}, column {column}: {n}" for (kind, column), n in counts.items()]
    return "\n".join(lines) or "- none"


def _quote(value: object) -> str:
    """A string, or a list of them, as TOML: JSON's escapes are TOML's."""
    return msgspec.json.encode(value).decode()


def _fill(name: str, words: Mapping[str, str]) -> bytes:
    text = files("heldout.board").joinpath("templates", name).read_text("utf-8")
    return Template(text).substitute(words).encode()
