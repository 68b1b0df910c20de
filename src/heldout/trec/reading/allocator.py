"""The C library's allocator, told to keep what is freed.

Text passes through in pieces of 1 MiB, each freed soon after it was made. By default glibc gives
some of them back to the kernel, which fills them with zeros when they are asked for again: for a
run of full size a tenth to a fifth of the time.
"""

import sys

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8  # malloc.h
_KEPT = 1 << 24


def keep_freed_memory() -> bool:
    """Have this process keep up to 16 MiB of freed memory, in one arena for all threads.

    For programs, not for libraries: it holds for the whole process.

    Returns:
        Whether the allocator took it; only glibc's does.
    """
    if sys.platform != "linux":
        return False
    import ctypes  # noqa: PLC0415 - numpy has loaded it already where runs are read

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    limits = {_ARENA_MAX: 1, _TOP_PAD: 1 << 20, _MMAP_THRESHOLD: _KEPT, _TRIM_THRESHOLD: _KEPT}
    return all(mallopt(name, value) for name, value in limits.items())
