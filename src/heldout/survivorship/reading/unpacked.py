"""The text of a file in pieces, unpacked and limited, for forms that have no lines."""

from collections.abc import Iterator
from typing import BinaryIO

from heldout.errors import Problem
from heldout.trec.accelerators import Accelerators
from heldout.trec.reading.archives import even, find_kind, unpack
from heldout.trec.reading.sources import Received, refusal
from heldout.trec.reading.streams import Limits

__all__ = ["unpack_pieces"]

_BOM = b"\xef\xbb\xbf"


def unpack_pieces(
    source: BinaryIO, *, path: str, limits: Limits, notes: list[Problem]
) -> Iterator[bytes]:
    """The text of a file, plain, gzip, bzip2 or zstd, in pieces of about 1 MiB; none is empty.

    Args:
        source: its bytes.
        path: its name for messages.
        limits: how much is read; of these `compressed_bytes` and `bytes`.
        notes: gets the note `byte-order-mark` where there is one, which is left out.

    Raises:
        InputError: codes `truncated-archive`, `damaged-archive`, `trailing-bytes`, `too-large`,
            `unsupported-archive`.
    """
    total = 0
    for piece in _pieces(source, path, limits):
        text = piece
        if not total and piece.startswith(_BOM):
            text = piece[len(_BOM) :]
            notes.append(_mark(path))
        total += len(piece)
        if total > limits.bytes:
            raise refusal(
                "too-large",
                path,
                found=f"more than {limits.bytes:,} bytes of text",
                expected=f"at most {limits.bytes:,} bytes",
            )
        if text:
            yield text


def _pieces(source: BinaryIO, path: str, limits: Limits) -> Iterator[bytes]:
    received = Received(source, path=path, limit=limits.compressed_bytes)
    head = received.read()
    kind = find_kind(head, path)
    if kind is not None:
        return unpack(head, kind, received, Accelerators())
    return even(_plain(head, received))


def _plain(head: bytes, received: Received) -> Iterator[bytes]:
    while head:
        yield head
        head = received.read()


def _mark(path: str) -> Problem:
    return Problem(
        code="byte-order-mark",
        path=path,
        line=1,
        found="a UTF-8 byte order mark",
        expected="text from the first byte on",
        hint="it was skipped; most tools would make it part of the first id",
        severity="note",
    )
