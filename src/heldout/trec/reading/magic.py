"""How archives begin: those that are read, and those that are only named."""

from typing import Final

__all__ = ["MAGIC_BYTES", "is_bzip2", "is_gzip", "is_zstd", "is_zstd_skipped", "name_other"]

MAGIC_BYTES: Final = 10
"""As many bytes tell each kind that is read."""

_BZIP2_SIZES = b"123456789"
_BZIP2_BLOCKS = (b"\x31\x41\x59\x26\x53\x59", b"\x17\x72\x45\x38\x50\x90")
"""How the first block begins, and the end of an archive without one."""
_ZSTD_SKIPPED_FIRST = range(0x50, 0x60)
_OTHERS = {
    "xz": b"\xfd7zXZ\x00",
    "zip": b"PK\x03\x04",
    "7-Zip": b"7z\xbc\xaf\x27\x1c",
}
_TAR_MAGIC = slice(257, 262)
_TAR_HEADER = 512


def is_gzip(begin: bytes) -> bool:
    """Whether a gzip member begins like this (RFC 1952, 2.3.1)."""
    return begin.startswith(b"\x1f\x8b")


def is_bzip2(begin: bytes) -> bool:
    """Whether a bzip2 stream begins like this; where it is cut short, whether one may.

    A text may begin with `BZh` as well, so its first block is looked at.
    """
    block = begin[4:MAGIC_BYTES]
    return (
        begin.startswith(b"BZh")
        and begin[3:4] in _BZIP2_SIZES
        and any(magic.startswith(block) for magic in _BZIP2_BLOCKS)
    )


def is_zstd(begin: bytes) -> bool:
    """Whether a zstd frame begins like this, with text or without (RFC 8878, 3.1)."""
    return begin.startswith(b"\x28\xb5\x2f\xfd") or is_zstd_skipped(begin)


def is_zstd_skipped(begin: bytes) -> bool:
    """Whether a frame without text begins like this, of which there are 16 kinds (3.1.2)."""
    return begin[1:4] == b"\x2a\x4d\x18" and begin[0] in _ZSTD_SKIPPED_FIRST


def name_other(begin: bytes) -> str | None:
    """The name of an archive that is not read; none of them can begin a text.

    Args:
        begin: 512 bytes, if there are as many.
    """
    if begin[_TAR_MAGIC] == b"ustar" and b"\0" in begin[:_TAR_HEADER]:
        return "tar"
    return next((name for name, magic in _OTHERS.items() if begin.startswith(magic)), None)
