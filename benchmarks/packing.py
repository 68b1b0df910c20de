"""Archives of the generated runs: always the same bytes, and single streams as people make them."""

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path

import zstandard

__all__ = ["pack"]

_PIECE = 1 << 20


def pack(path: Path, form: str) -> Path:
    """Write `path` as an archive beside it: `bz2` (level 9), `gz` (6) or `zst` (3)."""
    target = path.with_name(f"{path.name}.{form}")
    with target.open("wb") as file:
        if form == "bz2":
            file.writelines(_bz2(path))
        elif form == "gz":
            # Neither name nor time in the header: the same bytes each time.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as archive:
                archive.writelines(_pieces(path))
        else:
            packer = zstandard.ZstdCompressor(level=3)
            with path.open("rb") as source:
                packer.copy_stream(source, file, size=path.stat().st_size)
    return target


def _bz2(path: Path) -> Iterator[bytes]:
    packer = bz2.BZ2Compressor(9)
    for piece in _pieces(path):
        yield packer.compress(piece)
    yield packer.flush()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece
