"""Packs that are small on their way and huge where somebody looks into them."""

import hashlib
import struct
import zlib
from pathlib import Path

from lab import git

__all__ = ["delta_bomb", "tree_bomb", "wide_tree"]

_BLOB, _DELTA = 3, 7
_ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")


def tree_bomb(repository: Path, *, levels: int, parent: str) -> str:
    """A commit on `parent` that names 10 to the power of `levels` paths, in a few objects."""
    blob = git(repository, "hash-object", "-w", "--stdin", data=b"x")
    entry = f"100644 blob {blob}"
    for _ in range(levels):
        lines = "".join(f"{entry}\t{name}\n" for name in "0123456789")
        tree = git(repository, "mktree", data=lines.encode())
        entry = f"040000 tree {tree}"
    listing = f"{git(repository, 'ls-tree', parent)}\n{entry}\tbomb\n"
    root = git(repository, "mktree", data=listing.encode())
    return git(repository, "commit-tree", root, "-p", parent, "-m", "bomb")


def wide_tree(repository: Path, *, names: int, parent: str) -> str:
    """A commit on `parent` with one folder, `submissions`, of very many names."""
    blob = git(repository, "hash-object", "-w", "--stdin", data=b"x")
    lines = "".join(f"100644 blob {blob}\t{number:09}\n" for number in range(names))
    tree = git(repository, "mktree", data=lines.encode())
    left = [
        line
        for line in git(repository, "ls-tree", parent).splitlines()
        if not line.endswith("\tsubmissions")
    ]
    listing = "\n".join([*left, f"040000 tree {tree}\tsubmissions"]) + "\n"
    root = git(repository, "mktree", data=listing.encode())
    return git(repository, "commit-tree", root, "-p", parent, "-m", "wide")


def delta_bomb(repository: Path, *, size: int, deltas: int, parent: str, id_: str) -> str:
    """A commit on `parent` with a base of zeros and many files made from it by a few bytes each.

    The files have the names of sealed ones, of `id_` and of ids like it.
    """
    base = bytes(size)
    names = [hashlib.sha1(b"blob %d\0" % size + base, usedforsecurity=False).hexdigest()]
    entries = [_header(_BLOB, size) + zlib.compress(base, 9)]
    copied = _copy_all(size)
    for number in range(deltas):
        tail = struct.pack(">I", number)
        made = hashlib.sha1(b"blob %d\0" % (size + 4), usedforsecurity=False)
        made.update(base)
        made.update(tail)
        delta = _length(size) + _length(size + 4) + copied + b"\x04" + tail
        packed = bytes.fromhex(names[0]) + zlib.compress(delta, 9)
        entries.append(_header(_DELTA, len(delta)) + packed)
        names.append(made.hexdigest())
    pack = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    git(repository, "index-pack", "--stdin", data=pack)
    lines = []
    for number, blob in enumerate(names):
        head, ending = id_ if number < len(_ENDINGS) else f"{id_}{number}", _ENDINGS[number % 3]
        lines.append(f"100644 blob {blob}\t{head}{ending}")
    tree = git(repository, "mktree", data=("\n".join(lines) + "\n").encode())
    left = [
        line
        for line in git(repository, "ls-tree", parent).splitlines()
        if not line.endswith("\tsubmissions")
    ]
    listing = "\n".join([*left, f"040000 tree {tree}\tsubmissions"]) + "\n"
    root = git(repository, "mktree", data=listing.encode())
    return git(repository, "commit-tree", root, "-p", parent, "-m", "bomb")


def _header(kind: int, size: int) -> bytes:
    """An entry's type and size, as a pack has them."""
    byte, size = kind << 4 | size & 15, size >> 4
    out = bytearray()
    while size:
        out.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    out.append(byte)
    return bytes(out)


def _length(size: int) -> bytes:
    out = bytearray()
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size])


def _copy_all(size: int) -> bytes:
    """Instructions that copy the whole base."""
    out = bytearray()
    for start in range(0, size, 0xFFFFFF):
        count = min(0xFFFFFF, size - start)
        out += b"\xff" + struct.pack("<I", start) + struct.pack("<I", count)[:3]
    return bytes(out)
