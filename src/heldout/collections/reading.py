"""Files of a collection: found by their names, unpacked, and read as text."""

from pathlib import Path

from heldout.errors import InputError, Problem
from heldout.trec.reading.streams import Limits, TextReader, open_input

__all__ = ["PACKED", "find_file", "read_text"]

PACKED = ("", ".gz", ".bz2", ".zst")
"""What may follow a file's name: packed files are unpacked as they are read."""

# A document is one line: that of a book is longer than that of a run.
_LIMITS = Limits(compressed_bytes=1 << 34, bytes=1 << 35, line_bytes=1 << 26)


def find_file(folder: Path, *names: str) -> Path | None:
    """The file of a folder that has one of these names, plain or packed.

    Args:
        folder: where to look.
        names: without `.gz`, `.bz2` or `.zst`.

    Returns:
        `None` where there is none.

    Raises:
        InputError: code `collection-twice` where there are several.
    """
    places = [folder / f"{name}{packed}" for name in names for packed in PACKED]
    found = [place for place in places if place.is_file()]
    if len(found) > 1:
        raise InputError(
            Problem(
                code="collection-twice",
                path=str(folder),
                found=" and ".join(place.name for place in found),
                expected="one of them",
                hint="take the others out of the folder, or name the labels with --qrels",
            )
        )
    return found[0] if found else None


def read_text(path: Path) -> bytes:
    r"""The text of a file, unpacked; lines end with `\n`, a byte order mark is gone.

    Raises:
        InputError: code `unreadable-file`, and those of `TextReader`.
    """
    with open_input(path) as file, TextReader(file, path=str(path), limits=_LIMITS) as reader:
        return b"".join(block.text for block in reader.blocks())
