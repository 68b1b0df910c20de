"""Inputs of scan_core.c in one file: made by a seed, or packed from a fuzzer's folder.

    python fuzz/inputs.py make --seed 1 --count 2000 FILE
    python fuzz/inputs.py pack FOLDER FILE

Each input stands behind its length in four bytes, the lowest first.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from structured import make_case

__all__ = ["make_inputs", "pack"]

_HEADER = 7
_RAW = 4
"""The bit of the header's second byte that says: what follows is text."""


def pack(inputs: Iterable[bytes]) -> bytes:
    """All of them, one after the other."""
    return b"".join(len(data).to_bytes(4, "little") + data for data in inputs)


def make_inputs(count: int, rng: np.random.Generator) -> list[bytes]:
    """Half of them choices of the harness, half of them the text of runs from structured.py."""
    return [_text(rng) if number % 2 else _choices(rng) for number in range(count)]


def _header(rng: np.random.Generator, *, raw: bool) -> bytes:
    header = bytearray(rng.bytes(_HEADER))
    header[1] = header[1] | _RAW if raw else header[1] & ~_RAW
    return bytes(header)


def _choices(rng: np.random.Generator) -> bytes:
    return _header(rng, raw=False) + rng.bytes(int(rng.integers(10, 250)))


def _text(rng: np.random.Generator) -> bytes:
    return _header(rng, raw=True) + make_case(rng.bytes(int(rng.integers(40, 400)))).run


def main() -> None:
    """Write a file of inputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    ways = parser.add_subparsers(dest="way", required=True)
    make = ways.add_parser("make")
    make.add_argument("--seed", type=int, required=True)
    make.add_argument("--count", type=int, default=2000)
    make.add_argument("file", type=Path)
    packing = ways.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("file", type=Path)
    asked = parser.parse_args()
    if asked.way == "make":
        inputs = make_inputs(asked.count, np.random.default_rng(asked.seed))
    else:
        inputs = [path.read_bytes() for path in sorted(asked.folder.iterdir())]
    asked.file.write_bytes(pack(inputs))
    print(f"{len(inputs)} inputs")


if __name__ == "__main__":
    main()
