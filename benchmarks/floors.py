"""Reading alone: a file, decompressed and thrown away. A child process of the benchmark.

python floors.py stdlib FILE CORES
"""

import bz2
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import IO, Any

__all__ = ["FLOORS", "drain"]

_PIECE = 1 << 20


def _bz2(path: str, cores: int) -> Iterator[bytes]:
    del cores  # the standard library has one thread
    unpacker = bz2.BZ2Decompressor()
    for data in _read(path):
        yield unpacker.decompress(data)


def _rapidgzip(path: str, cores: int) -> Iterator[bytes]:
    rapidgzip: Any = import_module("rapidgzip")
    with rapidgzip.IndexedBzip2File(path, parallelization=cores) as file:
        yield from _pieces(file)


def _zlib(path: str, cores: int) -> Iterator[bytes]:
    del cores
    unpacker = zlib.decompressobj(wbits=31)
    for data in _read(path):
        yield unpacker.decompress(data)


def _zstandard(path: str, cores: int) -> Iterator[bytes]:
    del cores
    zstandard: Any = import_module("zstandard")
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    for data in _read(path):
        yield unpacker.decompress(data)


def _read(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib would slow the floor down
        yield from _pieces(file)


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while data := file.read(_PIECE):
        yield data


FLOORS: Mapping[str, Callable[[str, int], Iterator[bytes]]] = {
    "stdlib": _bz2,
    "rapidgzip": _rapidgzip,
    "zlib": _zlib,
    "zstandard": _zstandard,
}


def drain(name: str, path: str, *, cores: int) -> int:
    """Decompress a file with the named decompressor; how many bytes came out.

    Raises:
        OSError: it cannot be read, or nothing came out.
    """
    size = sum(map(len, FLOORS[name](path, cores)))
    if not size:
        raise OSError(f"{name} found nothing in {path}")
    return size


if __name__ == "__main__":
    drain(sys.argv[1], sys.argv[2], cores=int(sys.argv[3]))
