"""Vectors of many texts, kept in a folder so that a killed run goes on where it was."""

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from heldout.errors import StoreError
from heldout.ids import Digest
from heldout.rankers.files import write_whole

__all__ = ["EncodeTexts", "Vectors", "encode_all"]

EncodeTexts = Callable[[Sequence[str]], Sequence[NDArray[np.float32]]]
"""From texts to the vectors of each, shape (vectors, dimensions): one, or one per token."""

_SHARD = 2048
"""Texts of a shard: minutes of work at most, and a few megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The vectors of texts, one text after the other.

    Attributes:
        rows: float32, shape (vectors, dimensions).
        starts: int64, shape (texts + 1,); rows `starts[i]` to `starts[i + 1]` are those of text i.
    """

    rows: NDArray[np.float32]
    starts: NDArray[np.int64]


def encode_all(
    texts: Sequence[str],
    encode: EncodeTexts,
    *,
    digest: Digest,
    folder: Path | None = None,
    shard: int = _SHARD,
) -> Vectors:
    """Encode texts, those that an earlier run has left out.

    Args:
        texts: at least one.
        encode: gives every text at least one vector.
        digest: of the encoder: weights and settings.
        folder: where shards of vectors are kept, below the digest of encoder and texts, so that
            other encoders and texts never meet them; None keeps nothing.
        shard: texts of a shard, >= 1.

    Raises:
        StoreError: the folder cannot be written.
    """
    home = folder / _name(digest, texts, shard) if folder else None
    parts = list(_shards(texts, encode, home, shard))
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Vectors(rows=np.concatenate([part.rows for part in parts]), starts=starts)


def _name(digest: Digest, texts: Sequence[str], shard: int) -> str:
    total = hashlib.sha256(f"{digest} {shard}\n".encode())
    for text in texts:
        total.update(hashlib.sha256(text.encode()).digest())
    return total.hexdigest()[:32]


def _shards(
    texts: Sequence[str], encode: EncodeTexts, home: Path | None, shard: int
) -> Iterator[Vectors]:
    for start in range(0, len(texts), shard):
        chosen = texts[start : start + shard]
        path = home / f"{start:09d}.npz" if home else None
        found = _read(path, len(chosen)) if path else None
        if found is None:
            found = _pack(encode(chosen))
            if path:
                _write(path, found)
        yield found


def _pack(vectors: Sequence[NDArray[np.float32]]) -> Vectors:
    starts = np.cumsum([0, *(len(rows) for rows in vectors)]).astype(np.int64)
    return Vectors(rows=np.concatenate(vectors).astype(np.float32), starts=starts)


def _read(path: Path, texts: int) -> Vectors | None:
    """A shard as it was written; None where it is absent or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            vectors = Vectors(rows=arrays["rows"], starts=arrays["starts"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    whole = vectors.starts.shape == (texts + 1,) and vectors.starts[-1] == len(vectors.rows)
    return vectors if whole else None


def _write(path: Path, vectors: Vectors) -> None:
    content = io.BytesIO()
    np.savez(content, rows=vectors.rows, starts=vectors.starts)
    try:
        write_whole(path, content.getvalue())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
