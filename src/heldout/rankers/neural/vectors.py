"""Vectors of many texts, stored in a folder so that a killed run goes on where it was."""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from heldout.errors import StoreError
from heldout.files.durable import write_whole
from heldout.ids import Digest
from heldout.progress_bar import SILENT, Progress

EncodeTexts = Callable[[Sequence[str]], Sequence[NDArray[np.float32]]]
"""From texts to the vectors of each, shape (vectors, dimensions): one, or one per token."""

_SHARD = 256
"""Texts of a shard: what a kill loses, some seconds of work on one core."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """The vectors of texts, one text after the other.

    Attributes:
        rows: float32, shape (vectors, dimensions).
        sizes: int64, shape (texts,): how many rows each text has.
    """

    rows: NDArray[np.float32]
    sizes: NDArray[np.int64]


def encode_all(
    texts: Sequence[str],
    encode: EncodeTexts,
    *,
    digest: Digest,
    folder: str = "",
    progress: Progress = SILENT,
) -> Vectors:
    """Encode texts, those that an earlier run has left out.

    Args:
        texts: at least one.
        encode: gives every text at least one vector.
        digest: of the encoder: weights and settings.
        folder: where shards of vectors are stored, below the digest of encoder and texts, so that
            other encoders and texts never meet them; empty stores nothing.
        progress: counts the texts.

    Returns:
        The vectors in the order of the texts.

    Raises:
        StoreError: the folder cannot be written.
    """
    home = Path(folder) / _name(digest, texts) if folder else None
    parts = []
    with progress.steps("encoding", len(texts)) as done:
        for start in range(0, len(texts), _SHARD):
            chosen = texts[start : start + _SHARD]
            path = home / f"{start:09d}.npz" if home else None
            part = _read(path, len(chosen)) if path else None
            if part is None:
                part = _pack(encode(chosen))
                if path:
                    _write(path, part)
            parts.append(part)
            for _ in chosen:
                done()
    return Vectors(
        rows=np.concatenate([part.rows for part in parts]),
        sizes=np.concatenate([part.sizes for part in parts]),
    )


def _name(digest: Digest, texts: Sequence[str]) -> str:
    total = hashlib.sha256(f"{digest} {_SHARD}\n".encode())
    for text in texts:
        total.update(hashlib.sha256(text.encode()).digest())
    return total.hexdigest()[:32]


def _pack(vectors: Sequence[NDArray[np.float32]]) -> Vectors:
    sizes = np.array([len(rows) for rows in vectors], dtype=np.int64)
    return Vectors(rows=np.concatenate(vectors).astype(np.float32, copy=False), sizes=sizes)


def _read(path: Path, texts: int) -> Vectors | None:
    """Read a shard as it was written; None where it is absent or damaged."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            vectors = Vectors(rows=arrays["rows"], sizes=arrays["sizes"])
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return None
    whole = vectors.sizes.shape == (texts,) and vectors.sizes.sum() == len(vectors.rows)
    return vectors if whole else None


def _write(path: Path, vectors: Vectors) -> None:
    content = io.BytesIO()
    np.savez(content, rows=vectors.rows, sizes=vectors.sizes)
    try:
        write_whole(path, content.getvalue())
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error
