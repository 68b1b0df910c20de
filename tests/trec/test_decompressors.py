"""Archives as they arrive: through pipes, stopped early, and bombs among them."""

import bz2
import contextlib
import gzip
import io
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

from heldout.errors import InputError, Problem
from heldout.trec.reading import sources, streams
from heldout.trec.reading.streams import Limits, TextReader

RNG = random.Random(3)  # noqa: S311 - which text
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
KINDS = pytest.mark.parametrize("kind", COMPRESS)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files take the way of large ones: many pieces."""
    monkeypatch.setattr(sources, "PIECE", 1 << 12)


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a consumer sees of a file."""

    text: bytes
    lines: int
    digest: str
    problems: tuple[Problem, ...]

    @property
    def code(self) -> str:
        return self.problems[0].code if self.problems else ""


def open_text(source: Any, limits: Limits | None = None) -> TextReader:
    return TextReader(source, path="f", limits=limits or Limits())


def outcome(source: Any, limits: Limits | None = None) -> Outcome:
    text: list[bytes] = []
    problems: tuple[Problem, ...] = ()
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    with open_text(source, limits) as reader:
        try:
            text.extend(block.text for block in reader.blocks())
        except InputError as error:
            problems = error.problems
        return Outcome(b"".join(text), reader.lines, reader.digest(), problems)


@KINDS
def test_limits_are_those_of_the_text(kind: str) -> None:
    compress = COMPRESS[kind]
    long = compress((b"x" * 99 + b"\n") * 20_000)
    for data in (long, compress(TEXT) + long, long[:-9]):
        assert outcome(data, Limits(bytes=1_000_000)).code == "archive-bomb"
    assert outcome(long, Limits(bytes=2_000_000)).code == ""
    assert outcome(long, Limits(lines=10_000)).code == "too-many-lines"
    assert outcome(long, Limits(line_bytes=50)).code == "line-too-long"
    assert outcome(compress(TEXT), Limits(compressed_bytes=1000)).code == "too-large"
    assert outcome(compress(b"") * 3).code == "empty-file"


@KINDS
def test_the_ratio_is_that_of_the_whole_file(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_RATIO_FREE", 1 << 16)
    compress = COMPRESS[kind]
    noise = compress(random.Random(1).randbytes(1 << 14).hex().encode() + b"\n")  # noqa: S311
    rows = compress((b"x" * 9 + b"\n") * 40_000)
    limits = Limits(ratio=50)
    assert outcome(rows, limits).code == "archive-bomb"
    # At its beginning this one looks like a bomb; as a whole it is none, however it arrives.
    assert outcome(rows + noise, limits).code == ""
    assert outcome(Pipe(rows + noise), limits).code == ""
    assert outcome(Pipe(rows), limits).problems == outcome(rows, limits).problems


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


@KINDS
@pytest.mark.parametrize("cut", [0, 7])
def test_pipes_are_read_as_files_are(kind: str, cut: int) -> None:
    data = COMPRESS[kind](TEXT)[: -cut or None]
    assert outcome(Pipe(data)) == outcome(data)


@KINDS
def test_the_error_of_a_pipe_is_raised_even_if_it_is_raised_only_once(kind: str) -> None:
    data = COMPRESS[kind](TEXT)
    for size in (len(data), len(data) // 2):
        with (
            open_text(Pipe(data[:size], breaks=True)) as reader,
            pytest.raises(ConnectionError, match="the pipe broke"),
        ):
            list(reader.blocks())


def held() -> tuple[int, int]:
    """Open files and threads."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
@KINDS
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_nothing_is_left_when_a_consumer_stops_early(kind: str, taken: int) -> None:
    data = COMPRESS[kind](TEXT * 20)
    before = held()
    pipe = Pipe(data)
    with open_text(pipe) as reader:
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


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's /proc")
@KINDS
def test_nothing_is_left_after_any_error(kind: str) -> None:
    data = COMPRESS[kind](TEXT * 4)
    before = held()
    for broken in (data[:-1], data + b"x", data[:5000] + b"x" + data[5001:]):
        assert outcome(broken).problems
    with contextlib.suppress(ZeroDivisionError), open_text(io.BytesIO(data)) as reader:
        for _ in reader.blocks():
            raise ZeroDivisionError
    assert held() == before


@KINDS
def test_the_digest_can_be_had_early(kind: str) -> None:
    data = COMPRESS[kind](TEXT * 4)
    with open_text(io.BytesIO(data)) as reader:
        next(iter(reader.blocks()))
        assert reader.digest() == outcome(data).digest
