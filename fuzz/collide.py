"""Ids that collide in the scanner's 64-bit hash, by as many as wanted.

`absorb` of `_scan_core.h` and each step behind it can be undone, so two words can be found after
which a state is any state that one likes. A block of 16 bytes is a visible first word, and the
second word that follows from it; one in some 3,000 of those is visible as well. Blocks that begin
and end in the same states can follow one another: m of one kind and m of the next are m * m ids.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["colliding_ids", "unabsorb"]

_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_INVERSE: Final = np.uint64(pow(0x9E3779B97F4A7C15, -1, 1 << 64))
_HALF: Final = np.uint64(32)
_STATE: Final = np.uint64(0x0123456789ABCDEF)
"""Where every block ends: any number would do."""
_TRIALS: Final = 1 << 16
_BLOCKS: Final = 2
_BLOCK_BYTES: Final = 16
_FIRST, _LAST = 0x21, 0x7E
"""Visible ASCII."""


def absorb(hashes: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """As in `_scan_core.h`."""
    mixed = (hashes ^ words) * _MULTIPLIER
    return mixed ^ (mixed >> _HALF)


def unabsorb(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """What `hash ^ word` was before `absorb` made these of it."""
    return (hashes ^ (hashes >> _HALF)) * _INVERSE


def colliding_ids(count: int, *, rng: np.random.Generator) -> list[bytes]:
    """Different ids of 32 visible characters, all with one hash.

    Args:
        count: how many, >= 1.
        rng: draws the first words.
    """
    each = int(np.ceil(np.sqrt(count)))
    length = np.array([_BLOCKS * _BLOCK_BYTES], dtype=np.uint64) * _MULTIPLIER
    begins = _blocks(length, each, rng)
    ends = _blocks(np.array([_STATE]), each, rng)
    return [begin + end for begin in begins for end in ends][:count]


def _blocks(state: NDArray[np.uint64], count: int, rng: np.random.Generator) -> list[bytes]:
    """Blocks that lead from a state to `_STATE`."""
    blocks: dict[bytes, None] = {}
    while len(blocks) < count:
        letters = rng.integers(_FIRST, _LAST + 1, size=(_TRIALS, 8), dtype=np.uint8)
        first = letters.view("<u8").reshape(-1)
        second = absorb(state, first) ^ unabsorb(np.array([_STATE]))
        pairs = np.stack([first, second], axis=1).astype("<u8").view(np.uint8)
        visible = ((pairs >= _FIRST) & (pairs <= _LAST)).all(axis=1)
        blocks.update((row.tobytes(), None) for row in pairs[visible])
    return list(blocks)[:count]
