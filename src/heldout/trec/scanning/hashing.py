"""A 64-bit hash of ids, the same on every machine and in every scanner.

It tells ids apart for comparing runs later and is no protection against anybody: who wants two
ids with one hash can make them. The compiled scanner computes the same in `_scan_core.h`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["hash_documents"]

_WORD = 8
_SHORT = 64
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINISH = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))


def hash_documents(documents: Sequence[bytes]) -> NDArray[np.uint64]:
    """The hash of each id.

    An id is read as little-endian words of 8 bytes, the last one filled up with zeros; beginning
    with its length, each word is absorbed by a multiplication and a shift, and the end is that of
    MurmurHash3 (Appleby 2011).

    Args:
        documents: ids in UTF-8, without NUL.

    Returns:
        uint64, one per id.
    """
    if not documents:
        return np.empty(0, dtype=np.uint64)
    lengths = np.fromiter(map(len, documents), dtype=np.uint64, count=len(documents))
    if lengths.max() <= _SHORT:
        return _hash_filled(documents, lengths)
    hashes = np.empty(len(documents), dtype=np.uint64)
    _, size = np.frexp(np.maximum(lengths, _SHORT))
    for of_one_size in (np.flatnonzero(size == one) for one in np.unique(size)):
        some = [documents[place] for place in of_one_size.tolist()]
        hashes[of_one_size] = _hash_filled(some, lengths[of_one_size])
    return hashes


def _hash_filled(documents: Sequence[bytes], lengths: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The hashes of ids that are all filled up to the longest, so one long one costs as many."""
    width = max(1, -(-int(lengths.max()) // _WORD))
    words = np.array(documents, dtype=f"S{width * _WORD}").view("<u8").reshape(-1, width)
    hashes = lengths * _MULTIPLIER
    for place in range(width):
        absorbed = (hashes ^ words[:, place]) * _MULTIPLIER
        absorbed ^= absorbed >> np.uint64(32)
        hashes = np.where(lengths > place * _WORD, absorbed, hashes)
    for multiplier in _FINISH:
        hashes = (hashes ^ (hashes >> np.uint64(33))) * multiplier
    finished: NDArray[np.uint64] = hashes ^ (hashes >> np.uint64(33))
    return finished
