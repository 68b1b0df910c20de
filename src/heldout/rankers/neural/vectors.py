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
from heldout.files.durable import write_whole
from heldout.ids import Digest

EncodeTexts = Callable[[Sequence[str]], Sequence[NDArray[np.float32]]]
"""From texts to the vectors of each, shape (vectors, dimensions): one, or one per token."""

_SHARD = 64
"""Texts of a shard: what a kill loses, some seconds of work on one core."""

_FILES = "[0-9]" * 9 + ".npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """What happens while the texts of a collection are encoded.

    Attributes:
        folder: where shards of vectors are kept, below the digest of encoder and texts, so that
            other encoders and texts never meet them; None keeps nothing.
        progress: called after each shard with how many texts it had.
        batch: texts that the encoder takes at once; no shard is smaller.
    """

    folder: Path | None = None
    progress: Callable[[int], None] | None = None
    batch: int = 1


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
    encoding: Encoding,
) -> Vectors:
    """Encode texts, those that an earlier run has left out.

    The longest come first, so that those of a shard are alike and little is padded.

    Args:
        texts: at least one.
        encode: gives every text at least one vector.
        digest: of the encoder: weights and settings.
        encoding: where vectors are kept, and who hears of progress.

    Returns:
        The vectors in the order of the texts.

    Raises:
        StoreError: the folder cannot be written.
    """
    shard = max(_SHARD, encoding.batch)
    order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    ordered = [texts[row] for row in order]
    home = encoding.folder / _name(digest, ordered, shard) if encoding.folder else None
    found: list[NDArray[np.float32]] = []
    for part in _shards(ordered, encode, home, shard):
        found += np.split(part.rows, part.starts[1:-1])
        if encoding.progress:
            encoding.progress(len(part.starts) - 1)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return _pack([found[place] for place in places])


def remove_vectors(folder: Path) -> None:
    """Remove the shards that `encode_all` left in a folder, and what is empty then.

    Args:
        folder: may be missing; other files in it are left alone.

    Raises:
        StoreError: it cannot be removed.
    """
    try:
        for home in folder.glob("[0-9a-f]" * 32):
            # A kill may have left a file aside whose name has more around that of the shard.
            for path in [*home.glob(_FILES), *home.glob(f".{_FILES}.*")]:
                path.unlink(missing_ok=True)
            _remove_empty(home)
        _remove_empty(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be removed: {error.strerror or error}") from error


def _remove_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


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
    return Vectors(rows=np.concatenate(vectors).astype(np.float32, copy=False), starts=starts)


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
