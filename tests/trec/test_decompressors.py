"""Decompressors: who unpacks an archive changes neither its text nor what is wrong with it."""

import bz2
import contextlib
import gzip
import io
import os
import random
import shutil
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import zstandard

from heldout.errors import InputError, Problem, SetupError
from heldout.trec.accelerators import Accelerators, find_accelerators
from heldout.trec.reading import sources as archives
from heldout.trec.reading import sources as lbzip2
from heldout.trec.reading import streams
from heldout.trec.reading.sources import Replay
from heldout.trec.reading.streams import Limits, TextReader

STDLIB = Accelerators()
RNG = random.Random(3)  # noqa: S311 - which text and which bit
TEXT = b"".join(
    b"%d\t%d\t%d\n" % (query, RNG.randrange(8_841_823), rank)
    for query in range(30)
    for rank in range(1, 101)
)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "bzip2": lambda data: bz2.compress(data, 1),
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@pytest.fixture(params=["lbzip2", "lbzip2-1", "isal"])
def fast(request: pytest.FixtureRequest, program: Callable[[str], str]) -> Accelerators:
    if request.param == "isal":
        if find_spec("isal") is None:
            pytest.skip("not installed: isal")
        return Accelerators(gzip="isal")
    program("lbzip2")
    return Accelerators(bzip2="lbzip2", threads=1 if request.param == "lbzip2-1" else 2)


def kind_of(fast: Accelerators) -> str:
    return "gzip" if fast.gzip == "isal" else "bzip2"


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files take the way of large ones: many pieces, and a process is worth it."""
    monkeypatch.setattr(archives, "PIECE", 1 << 12)
    monkeypatch.setattr(archives, "_WORTH_A_PROCESS", 0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a consumer sees of a file."""

    text: bytes
    lines: int
    digest: str
    problems: tuple[Problem, ...]


def outcome(data: bytes, accelerators: Accelerators, limits: Limits | None = None) -> Outcome:
    text: list[bytes] = []
    problems: tuple[Problem, ...] = ()
    replay = Replay(io.BytesIO(data), path="f")
    with TextReader(
        replay, path="f", limits=limits or Limits(), accelerators=accelerators
    ) as reader:
        try:
            text.extend(block.text for block in reader.blocks())
        except InputError as error:
            problems = error.problems
        digest = reader.digest()
    return Outcome(b"".join(text), reader.lines, digest, problems)


def same(data: bytes, fast: Accelerators, limits: Limits | None = None) -> str:
    """Hold the accelerator to the standard library; the code of the refusal, or nothing."""
    expected = outcome(data, STDLIB, limits)
    assert outcome(data, fast, limits) == expected
    return expected.problems[0].code if expected.problems else ""


def test_the_accelerators_are_used(fast: Accelerators, monkeypatch: pytest.MonkeyPatch) -> None:
    data = COMPRESS[kind_of(fast)](TEXT)

    def fail(*_: object) -> None:
        raise AssertionError

    for decoder in (archives._Holding, archives._Gzip):
        monkeypatch.setattr(decoder, "feed", fail)
    if kind_of(fast) == "gzip":
        monkeypatch.undo()
        monkeypatch.setattr(zlib, "decompressobj", fail)
    assert outcome(data, fast).text == TEXT


def test_whole_archives(fast: Accelerators) -> None:
    compress = COMPRESS[kind_of(fast)]
    empty = compress(b"")
    for data in (
        compress(TEXT),
        compress(TEXT[:-1]),
        compress(TEXT.replace(b"\n", b"\r\n")),
        compress(TEXT[:999]) + compress(TEXT[999:]),
        b"".join(compress(TEXT[at : at + 3000]) for at in range(0, len(TEXT), 3000)),
        empty + compress(TEXT) + empty + empty,
        compress(b"\xef\xbb\xbf" + TEXT),
    ):
        assert same(data, fast) == ""
    assert same(empty, fast) == "empty-file"
    assert same(empty * 3, fast) == "empty-file"
    assert same(compress(b"a\0b\n" + TEXT), fast) == "nul-byte"
    assert same(compress(compress(TEXT)), fast) == "unsupported-archive"


def test_truncations(fast: Accelerators) -> None:
    compress = COMPRESS[kind_of(fast)]
    one = compress(TEXT)
    two = compress(b"a\n") + one
    places = {*range(4, 30), *range(len(one) - 30, len(one)), *range(30, len(one), len(one) // 20)}
    codes = {same(one[:size], fast) for size in places}
    assert codes == {"truncated-archive"}
    assert {same(two[:size], fast) for size in range(3, 80)} <= {
        "truncated-archive",
        "trailing-bytes",
        "",
    }


def test_bit_flips(fast: Accelerators) -> None:
    compress = COMPRESS[kind_of(fast)]
    data = compress(TEXT[:5000]) + compress(TEXT[5000:9000])
    rng = random.Random(5)  # noqa: S311 - which bits
    joint = len(compress(TEXT[:5000]))
    near = [place for at in (0, joint, len(data)) for place in range(at - 14, at + 14)]
    places = [place for place in near if 0 <= place < len(data)]
    places += rng.sample(range(len(data)), 60)
    refused = 0
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.randrange(8)
        refused += same(bytes(flipped), fast) != ""
    assert refused > len(places) * 0.7


def test_what_follows_the_end(fast: Accelerators) -> None:
    compress = COMPRESS[kind_of(fast)]
    data = compress(TEXT)
    other = COMPRESS["bzip2" if kind_of(fast) == "gzip" else "gzip"](TEXT)
    tails = [b"\0", b"x", b"BZ", b"\x1f", b"\0" * 512, b"more text\n", os.urandom(40), other]
    tails += [b"\0" + compress(b"a\n"), b"BZh9", other + compress(b"a\n"), b"\n" + data]
    assert {same(data + tail, fast) for tail in tails} <= {"trailing-bytes", "truncated-archive"}
    halves = {same(data + data[: len(data) // part], fast) for part in (2, 3, 50)}
    assert halves == {"truncated-archive"}


def test_bytes_removed_doubled_or_swapped(fast: Accelerators) -> None:
    data = COMPRESS[kind_of(fast)](TEXT[:20_000])
    rng = random.Random(6)  # noqa: S311 - where to cut
    for _ in range(20):
        start, end = sorted(rng.sample(range(len(data)), 2))
        assert same(data[:start] + data[end:], fast)
        same(data[:end] + data[start:], fast)
        same(data[:start] + data[start:end][::-1] + data[end:], fast)


def test_headers_with_fields() -> None:
    if find_spec("isal") is None:
        pytest.skip("not installed: isal")
    body = gzip.compress(TEXT, mtime=0)[10:]
    begin = b"\x1f\x8b\x08%b\0\0\0\0\0\xff%b"
    for flags in range(256):
        for fields in (b"", b"name\0", b"\4\0abcd", b"name\0comment\0", b"\4\0abcdname\0c\0\0\0"):
            same(begin % (bytes([flags]), fields) + body, Accelerators(gzip="isal"))


def test_isal_takes_codes_that_no_compressor_writes() -> None:
    """The one known difference: prefix codes with unused words, which zlib does not take.

    Made by hand: the text is `ab`, its checksum is right, and the codes of literals, of
    distances, or of code lengths are incomplete.
    """
    if find_spec("isal") is None:
        pytest.skip("not installed: isal")
    made = (
        ("05e10190244992244902000000003", 87, "33", 156, "302205033e98"),
        ("05e10190244992244902000000001", 87, "11", 156, "1091313e98"),
        ("05e101b46ddbb66ddb0200000000008", 109, "84", 196, "20088d013e98"),
    )
    for begin, zeros, middle, more, end in made:
        body = begin + "0" * zeros + middle + "0" * more + end
        data = bytes.fromhex(f"1f8b08000000000000ff{body}4a0103000000")
        assert outcome(data, STDLIB).problems[0].code == "damaged-archive"
        assert outcome(data, Accelerators(gzip="isal")).text == b"ab\n"


def test_bombs_are_refused_at_the_same_byte(fast: Accelerators) -> None:
    compress = COMPRESS[kind_of(fast)]
    long = compress((b"x" * 99 + b"\n") * 20_000)
    assert same(long, fast, Limits(bytes=1_000_000)) == "archive-bomb"
    assert same(compress(TEXT) + long, fast, Limits(bytes=1_000_000)) == "archive-bomb"
    assert same(long[:-9], fast, Limits(bytes=1_000_000)) == "archive-bomb"
    assert same(long, fast, Limits(bytes=2_000_000)) == ""
    assert same(long, fast, Limits(lines=10_000)) == "too-many-lines"
    assert same(long, fast, Limits(line_bytes=50)) == "line-too-long"
    assert same(compress(TEXT), fast, Limits(compressed_bytes=1000)) == "too-large"


def test_the_ratio_is_that_of_the_whole_file(
    fast: Accelerators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_RATIO_FREE", 1 << 16)
    compress = COMPRESS[kind_of(fast)]
    noise = compress(random.Random(1).randbytes(1 << 14).hex().encode() + b"\n")  # noqa: S311
    rows = compress((b"x" * 9 + b"\n") * 40_000)
    limits = Limits(ratio=50)
    assert same(rows, fast, limits) == "archive-bomb"
    # At its beginning this one looks like a bomb; as a whole it is none, however it arrives.
    assert same(rows + noise, fast, limits) == ""
    assert outcome_of_pipe(rows + noise, fast, limits).problems == ()
    assert outcome_of_pipe(rows, fast, limits).problems == outcome(rows, fast, limits).problems


class Pipe(io.RawIOBase):
    """A source that comes in pieces, cannot be rewound, and may break."""

    def __init__(self, data: bytes, *, breaks: bool = False) -> None:
        self.inner = io.BytesIO(data)
        self.breaks = breaks
        self.closed_for_good = False

    def read(self, size: int = -1) -> bytes:
        assert not self.closed_for_good
        chunk = self.inner.read(min(size, 70_001))
        if not chunk and self.breaks:
            self.breaks = False  # A generator that has raised looks like one that has ended.
            raise ConnectionError("the pipe broke")
        return chunk


def outcome_of_pipe(data: bytes, accelerators: Accelerators, limits: Limits) -> Outcome:
    text: list[bytes] = []
    problems: tuple[Problem, ...] = ()
    with TextReader(
        Replay(Pipe(data), path="f"),  # type: ignore[arg-type]  # all that is read with is there
        path="f",
        limits=limits,
        accelerators=accelerators,
    ) as reader:
        try:
            text.extend(block.text for block in reader.blocks())
        except InputError as error:
            problems = error.problems
        return Outcome(b"".join(text), reader.lines, reader.digest(), problems)


@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("cut", [0, 7])
def test_pipes_are_read_as_files_are(kind: str, cut: int) -> None:
    data = COMPRESS[kind](TEXT)[: -cut or None]
    for accelerators in (STDLIB, Accelerators(bzip2="lbzip2", gzip="isal", threads=2)):
        assert outcome_of_pipe(data, accelerators, Limits()) == outcome(data, STDLIB)


def test_the_error_of_a_pipe_is_raised_even_if_it_is_raised_only_once(fast: Accelerators) -> None:
    data = COMPRESS[kind_of(fast)](TEXT)
    for size in (len(data), len(data) // 2):
        replay = Replay(Pipe(data[:size], breaks=True), path="f")  # type: ignore[arg-type]  # as above
        with (
            TextReader(replay, path="f", limits=Limits(), accelerators=fast) as reader,
            pytest.raises(ConnectionError, match="the pipe broke"),
        ):
            list(reader.blocks())


def test_an_accelerator_that_unpacks_to_something_else_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*_: object, **__: object) -> Iterator[bytes]:
        yield TEXT[:20_000].swapcase().replace(b"1", b"2")
        raise lbzip2.IrregularError

    monkeypatch.setattr(lbzip2, "run_lbzip2", wrong)
    monkeypatch.setattr(shutil, "which", lambda _: "lbzip2")
    with pytest.raises(SetupError, match="HELDOUT_WITHOUT"):
        outcome(COMPRESS["bzip2"](TEXT), Accelerators(bzip2="lbzip2"))


def test_an_accelerator_that_is_gone_or_dies_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    data = COMPRESS["bzip2"](TEXT)
    dies = tmp_path / "lbzip2"
    for script in ("exit 1", "cat >/dev/null; echo text; exit 0", "kill -9 $$"):
        dies.write_text(f"#!/bin/sh\n{script}\n")
        dies.chmod(0o755)
        monkeypatch.setattr(shutil, "which", lambda _: str(dies))
        assert same(data, Accelerators(bzip2="lbzip2")) == ""
    monkeypatch.setattr(shutil, "which", lambda _: str(tmp_path / "none"))
    assert same(data, Accelerators(bzip2="lbzip2")) == ""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert same(data, Accelerators(bzip2="lbzip2")) == ""


def test_lbzip2_is_searched_for_on_the_path_that_is_given(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path)}
    assert find_accelerators(environ).bzip2 == "stdlib"
    given = tmp_path / "lbzip2"
    given.write_text("#!/bin/sh\n")
    given.chmod(0o755)
    assert find_accelerators(environ).bzip2 == "lbzip2"


def children() -> set[str]:
    """Processes we have not yet waited for, dead or alive."""
    found: set[str] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has just ended
            found.update((task / "children").read_text().split())
    return found


def held() -> tuple[int, int, set[str]]:
    """Open files, threads, child processes."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), children()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("kind", COMPRESS)
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_nothing_is_left_when_a_consumer_stops_early(kind: str, taken: int) -> None:
    data = COMPRESS[kind](TEXT * 40)
    accelerators = Accelerators(
        bzip2="lbzip2" if shutil.which("lbzip2") else "stdlib",
        gzip="isal" if find_spec("isal") else "stdlib",
        threads=2,
    )
    before = held()
    pipe = Pipe(data)
    with TextReader(
        Replay(pipe, path="f"),  # type: ignore[arg-type]  # as above
        path="f",
        limits=Limits(),
        accelerators=accelerators,
    ) as reader:
        blocks = reader.blocks()
        for _ in range(taken):
            next(blocks)
        reader.close()
        pipe.closed_for_good = True
    if taken:
        with pytest.raises(ValueError, match="closed"):
            next(blocks)
    del reader
    assert held() == before


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_nothing_is_left_after_any_error(fast: Accelerators) -> None:
    data = COMPRESS[kind_of(fast)](TEXT * 4)
    before = held()
    for broken in (data[:-1], data + b"x", data[:5000] + b"x" + data[5001:]):
        assert outcome(broken, fast).problems
    with pytest.raises(ZeroDivisionError):
        stumble(data, fast)
    assert held() == before


def stumble(data: bytes, accelerators: Accelerators) -> None:
    replay = Replay(io.BytesIO(data), path="f")
    with TextReader(replay, path="f", limits=Limits(), accelerators=accelerators) as reader:
        for _ in reader.blocks():
            raise ZeroDivisionError


def test_the_digest_can_be_had_early(fast: Accelerators) -> None:
    data = COMPRESS[kind_of(fast)](TEXT * 4)
    with TextReader(
        Replay(io.BytesIO(data), path="f"), path="f", limits=Limits(), accelerators=fast
    ) as reader:
        next(iter(reader.blocks()))
        assert reader.digest() == outcome(data, STDLIB).digest
