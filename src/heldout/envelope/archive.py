"""The tarball of a submission: written one way, read strictly, never unpacked to disk.

It holds one regular file `ID/RUN` or `ID/RUN.suffix` per run and nothing else. A run is called as
its query set is, or `SET~2`, `SET~3` where it differs from the first by its seed. The reader is our
own and not `tarfile`, because `tarfile` repairs and reinterprets (links, long names, pax
overrides, sparse files, garbage at the end) and a hostile tarball lives from that. What is
accepted here reads the same in any tar program.

Source: POSIX.1-2024 `pax`, ustar and pax interchange formats; the GNU tar manual.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heldout.errors import TrustError
from heldout.ids import Digest, SubmissionId

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


_BLOCK = 512
_CHUNK = 1 << 16
_PAX_LIMIT = 1 << 16
_TRAILER_LIMIT = 1 << 20
"""Most bytes of zeros after the end marker; GNU tar fills up to 10 kB by default."""

_BASENAME = re.compile(r"([A-Za-z0-9_-]+(?:~[1-9][0-9]?)?)(?:\.[A-Za-z0-9_-]+)*", re.ASCII)
_OCTAL = re.compile(rb"[0-7]{1,12}[ \0]*")
_IGNORED_NUMBERS = {
    # mode, time, device: nobody needs them, but other programs stop at a malformed one
    re.compile(rb"[0-7]*[ \0]*"): ((100, 108), (136, 148), (329, 337), (337, 345)),
    # owner and group may also be binary: GNU tar does so from 2,097,152 on
    re.compile(rb"[0-7]*[ \0]*|\x80.{7}", re.DOTALL): ((108, 116), (116, 124)),
}
_MAGICS = (b"ustar\x0000", b"ustar  \x00")
_FILES = (b"0", b"\0")
_DIRECTORY = b"5"
_PAX = b"x"

_PAX_RECORD = re.compile(rb"([1-9][0-9]{0,4}) ([^=\n]+)=")
_HARMLESS_PAX = (b"mtime", b"atime", b"ctime", b"uid", b"gid", b"uname", b"gname")
_HARMLESS_PAX_PREFIXES = (b"LIBARCHIVE.", b"SCHILY.xattr.")


def pack_runs(submission_id: SubmissionId, runs: Mapping[str, tuple[str, bytes]]) -> bytes:
    """The tarball of a submission; equal input gives equal bytes.

    Args:
        submission_id: names the members' folder.
        runs: run's name to (suffix such as `.txt.bz2`, or nothing; the run file's bytes).

    Raises:
        ValueError: a name or suffix that makes no member name.
    """
    parts: list[bytes] = []
    for run, (suffix, content) in sorted(runs.items()):
        if _run_of(run + suffix) != run:
            raise ValueError(run + suffix)
        header = tarfile.TarInfo(f"{submission_id}/{run}{suffix}")
        header.size = len(content)
        parts += [header.tobuf(tarfile.USTAR_FORMAT), content, bytes(-len(content) % _BLOCK)]
    return b"".join([*parts, bytes(2 * _BLOCK)])


def read_members(
    plaintext: Iterator[bytes],
    *,
    submission_id: SubmissionId,
    runs: Collection[str],
    limit: int,
) -> Iterator["Member"]:
    """Stream the run files of a tarball, in its order.

    A member can be read until the next one is asked for; what its reader left is skipped.
    That the tarball is sound is known only when the iterator has ended by itself.

    Args:
        plaintext: the tarball in pieces of any size.
        submission_id: the folder that every member must be in.
        runs: names of the runs, each of which must come exactly once.
        limit: largest run file as stored, bytes.

    Raises:
        TrustError: anything is not as it must be; also what `plaintext` raises.
    """
    tape = _Tape(plaintext)
    missing = set(runs)
    folder_seen = False
    while (header := _next_header(tape)) is not None:
        if header.kind == _DIRECTORY:
            _require(header.name.rstrip("/") == submission_id and not folder_seen)
            _require(header.size == 0)
            folder_seen = True
            continue
        run = _member_run(header.name, submission_id)
        _require(run in missing and header.size <= limit)
        missing.remove(run)
        member = Member(tape, run=run, name=header.name, size=header.size)
        yield member
        member.finish()
        tape.zeros(-header.size % _BLOCK)
    _require(not missing)
    tape.zeros(_BLOCK)
    tape.zeros_to_end()


class Member(io.RawIOBase):
    """One run file inside a tarball, as a raw stream.

    Attributes:
        run: the run's name: `SET`, or `SET~2` and so on.
        name: the member's name, `ID/RUN.suffix`.
        size: bytes as stored.
    """

    def __init__(self, tape: "_Tape", *, run: str, name: str, size: int) -> None:
        super().__init__()
        self.run = run
        self.name = name
        self.size = size
        self._tape = tape
        self._left = size
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Read on; 0 at the end of the member.

        Raises:
            TrustError: the tarball ends within the member.
        """
        view = memoryview(buffer).cast("B")
        data = self._take(len(view))
        view[: len(data)] = data
        return len(data)

    def finish(self) -> None:
        """Skip what was not read; works on a closed stream too."""
        while self._left:
            self._take(_CHUNK)

    @property
    def digest(self) -> Digest:
        """SHA-256 of what was read so far: of the whole member once it is finished."""
        return Digest(self._hash.hexdigest())

    def _take(self, size: int) -> bytes:
        data = self._tape.some(min(size, self._left))
        _require(bool(data) or not min(size, self._left))
        self._hash.update(data)
        self._left -= len(data)
        return data


class _Tape:
    """Sequential reading over pieces; once it failed, it fails for ever."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = memoryview(b"")
        self._failed = False

    def some(self, size: int) -> bytes:
        """At least one byte unless `size` is 0 or the tape has ended, and at most `size`."""
        _require(not self._failed)
        while size and not self._piece:
            piece = self._next()
            if piece is None:
                return b""
            self._piece = memoryview(piece)
        data, self._piece = self._piece[:size], self._piece[size:]
        return bytes(data)

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.some(size - len(data))
            _require(bool(more))
            data += more
        return data

    def zeros(self, size: int) -> None:
        _require(not any(self.exactly(size)))

    def zeros_to_end(self) -> None:
        total = 0
        while data := self.some(_CHUNK):
            total += len(data)
            _require(not any(data) and total <= _TRAILER_LIMIT)

    def _next(self) -> bytes | None:
        try:
            return next(self._pieces, None)
        except BaseException:
            # A reader that swallows this must not take what follows for the end of the file.
            self._failed = True
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class _Header:
    name: str
    kind: bytes
    size: int


def _next_header(tape: _Tape) -> _Header | None:
    """The next file or folder, its harmless pax header skipped; None at the end marker."""
    header = _parse_header(tape.exactly(_BLOCK))
    if header is None or header.kind != _PAX:
        return header
    _require(header.size <= _PAX_LIMIT)
    _check_pax(tape.exactly(header.size))
    tape.zeros(-header.size % _BLOCK)
    header = _parse_header(tape.exactly(_BLOCK))
    _require(header is not None and header.kind != _PAX)
    return header


def _parse_header(block: bytes) -> _Header | None:
    if not any(block):
        return None
    blank = block[:148] + b" " * 8 + block[156:]
    _require(_octal(block[148:156]) == sum(blank))
    magic, kind = block[257:265], block[156:157]
    _require(magic in _MAGICS and kind in (*_FILES, _DIRECTORY, _PAX))
    _require(not any(block[157:257]))  # a link's target
    for pattern, fields in _IGNORED_NUMBERS.items():
        _require(all(pattern.fullmatch(block, *position) for position in fields))
    prefix = _text(block[345:500])
    # GNU tar keeps other things here: times of an incremental dump, the map of a sparse file.
    _require(not prefix or magic == _MAGICS[0])
    name = _text(block[:100])
    return _Header(
        name=f"{prefix}/{name}" if prefix else name, kind=kind, size=_octal(block[124:136])
    )


def _octal(field: bytes) -> int:
    _require(_OCTAL.fullmatch(field) is not None)
    return int(field.rstrip(b" \0"), 8)


def _text(field: bytes) -> str:
    """A zero-filled text field; anything but ASCII ends up in no name that is allowed."""
    return field.rstrip(b"\0").decode("ascii", errors="replace")


def _check_pax(records: bytes) -> None:
    """Every record is well-formed and changes nothing that matters (times, owners)."""
    position = 0
    while position < len(records):
        match = _PAX_RECORD.match(records, position)
        if match is None:
            raise TrustError
        end = position + int(match[1])
        keyword, value = match[2], records[match.end() : end - 1]
        _require(match.end() < end <= len(records) and records[end - 1 : end] == b"\n")
        plain = keyword in _HARMLESS_PAX and b"\n" not in value
        _require(plain or keyword.startswith(_HARMLESS_PAX_PREFIXES))
        position = end


def _member_run(name: str, submission_id: SubmissionId) -> str:
    folder, slash, basename = name.partition("/")
    _require(folder == submission_id and bool(slash))
    run = _run_of(basename)
    if run is None:
        raise TrustError
    return run


def _run_of(basename: str) -> str | None:
    match = _BASENAME.fullmatch(basename)
    return match[1] if match else None


def _require(condition: bool) -> None:  # noqa: FBT001  # reads as a sentence: require this
    if not condition:
        raise TrustError
