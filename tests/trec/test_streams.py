"""Streams: what comes out of a file is its text, or a refusal that says why."""

import bz2
import gzip
import hashlib
import io
import lzma
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard
from combinations import blocks_of
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError
from heldout.trec.reading import sources, streams
from heldout.trec.reading.sources import open_input, rewindable
from heldout.trec.reading.streams import Limits, TextReader, read_lines

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
ARCHIVES = [name for name in COMPRESS if name != "plain"]


def text_of(data: bytes, limits: Limits | None = None) -> bytes:
    reader = TextReader(io.BytesIO(data), path="f", limits=limits or Limits())
    return b"".join(block.text for block in reader.blocks())


def refusal(data: bytes, limits: Limits | None = None) -> tuple[str, int | None]:
    with pytest.raises(InputError) as caught:
        text_of(data, limits)
    (problem,) = caught.value.problems
    return problem.code, problem.line


@pytest.mark.parametrize("kind", COMPRESS)
def test_text_and_digest_of_every_kind(kind: str) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    data = COMPRESS[kind](text)
    reader = TextReader(io.BytesIO(data), path="f", limits=Limits())
    assert b"".join(block.text for block in reader.blocks()) == text
    assert reader.lines == 100_000
    assert reader.digest() == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("kind", ARCHIVES)
def test_several_members_are_one_text(kind: str) -> None:
    assert text_of(COMPRESS[kind](b"a\nb") + COMPRESS[kind](b"c\nd\n")) == b"a\nbc\nd\n"


@given(
    lines=st.lists(st.binary(max_size=30).map(lambda b: b.translate(None, b"\r\n\0"))),
    kind=st.sampled_from(sorted(COMPRESS)),
    newline=st.sampled_from([b"\n", b"\r\n"]),
    ended=st.booleans(),
)
def test_lines_have_their_true_numbers(
    lines: list[bytes], kind: str, newline: bytes, *, ended: bool
) -> None:
    text = newline.join([*lines, b"last"]) + (newline if ended else b"")
    archives = (b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd", *sources._OTHERS.values())
    if text.startswith((*archives, b"\xef\xbb\xbf")) or text[1:4] == b"\x2a\x4d\x18":
        return  # compressed, by its first bytes, or with a mark before the text
    reader = TextReader(io.BytesIO(COMPRESS[kind](text)), path="f", limits=Limits())
    assert list(read_lines(reader)) == list(enumerate([*lines, b"last"], start=1))


class Dribble(io.RawIOBase):
    """A pipe that gives a few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self.inner = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self.inner.read(min(size, 3))


@pytest.mark.parametrize("kind", COMPRESS)
def test_chunks_of_any_size(kind: str) -> None:
    data = COMPRESS[kind](b"a\r\nb") + COMPRESS[kind](b"\r\nc")
    reader = TextReader(Dribble(data), path="f", limits=Limits())
    assert [line for _, line in read_lines(reader)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("kind", COMPRESS)
def test_an_empty_file_is_refused(kind: str) -> None:
    assert refusal(COMPRESS[kind](b"")) == ("empty-file", None)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_trailing_bytes_are_refused(kind: str) -> None:
    data = COMPRESS[kind](b"a\n")
    for tail in (b"\0", b"\0" * 512, b"x", b"more text\n"):
        assert refusal(data + tail) == ("trailing-bytes", None)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_every_truncation_is_refused(kind: str) -> None:
    data = COMPRESS[kind](b"some text\n" * 20)
    codes = {refusal(data[:size])[0] for size in range(4, len(data))}
    assert codes == {"truncated-archive"}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_bomb_is_refused_by_its_bytes(kind: str) -> None:
    data = COMPRESS[kind]((b"x" * 1000 + b"\n") * 2000)
    assert refusal(data, Limits(bytes=1_000_000)) == ("archive-bomb", None)


@pytest.mark.parametrize("kind", ARCHIVES)
def test_a_bomb_is_refused_by_its_ratio(kind: str) -> None:
    data = COMPRESS[kind]((b"x" * 60_000 + b"\n") * 600)
    assert refusal(data) == ("archive-bomb", None)
    assert len(text_of(data, Limits(ratio=1_000_000))) == 600 * 60_001


@pytest.mark.parametrize("kind", ARCHIVES)
def test_of_a_bomb_whose_size_is_known_no_more_is_unpacked_than_may_be(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_RATIO_FREE", 0)
    data = COMPRESS[kind]((b"x" * 60_000 + b"\n") * 600)
    limits = Limits(ratio=50)
    reader = TextReader(io.BytesIO(data), path="f", limits=limits)
    unpacked: list[int] = []
    with pytest.raises(InputError, match="archive-bomb"):
        unpacked.extend(len(block.text) for block in reader.blocks())
    assert sum(unpacked) <= limits.ratio * len(data) < 600 * 60_001


@pytest.mark.parametrize("kind", ARCHIVES)
def test_thousands_of_members_are_read_in_linear_time(kind: str) -> None:
    data = COMPRESS[kind](b"") * 20_000 + COMPRESS[kind](b"a\n")
    assert text_of(data) == b"a\n"


def test_zstd_blocks_of_every_kind() -> None:
    def block(kind: int, size: int, body: bytes, *, last: bool = False) -> bytes:
        return (last | kind << 1 | size << 3).to_bytes(3, "little") + body

    begin = b"\x28\xb5\x2f\xfd\x00\x58"  # no checksum, a window of 2 MiB
    raw, rle, end = block(0, 2, b"a\n"), block(1, 1 << 17, b"b"), block(0, 0, b"", last=True)
    many = begin + raw * 9000 + block(0, 0, b"") * 9000 + end
    assert text_of(many) == b"a\n" * 9000
    assert text_of(begin + rle * 20 + raw + end, Limits(line_bytes=1 << 22)) == (
        b"b" * (20 << 17) + b"a\n"
    )
    assert refusal(begin + raw + block(3, 2, b"a\n") + end) == ("damaged-archive", None)
    assert refusal(begin + raw + block(1, 1 << 18, b"b") + end) == ("damaged-archive", None)
    assert refusal(begin + raw + raw[:-1]) == ("truncated-archive", None)
    assert refusal(begin + raw + end + b"x") == ("trailing-bytes", None)


def skipped(content: bytes, *, number: int = 0) -> bytes:
    """A zstd frame without text."""
    begin = bytes([0x50 + number]) + b"\x2a\x4d\x18"
    return begin + len(content).to_bytes(4, "little") + content


@pytest.mark.parametrize("number", [0, 15])
def test_zstd_frames_without_text_are_skipped_wherever_they_stand(number: int) -> None:
    one, two = COMPRESS["zstd"](b"a\nb"), COMPRESS["zstd"](b"c\n")
    for content in (b"", b"size", bytes(70_000)):
        no_text = skipped(content, number=number)
        for data in (no_text + one + two, one + no_text + two, one + two + no_text + no_text):
            assert text_of(data) == b"a\nbc\n"
        assert refusal(no_text) == ("empty-file", None)
        assert refusal(one + no_text + b"x") == ("trailing-bytes", None)
        cuts = {4, 7, len(no_text) - 1}
        assert {refusal(no_text[:size]) for size in cuts} == {("truncated-archive", None)}
    assert refusal(skipped(b"")[:4] + b"\xff" * 4 + b"abc") == ("truncated-archive", None)


def test_what_pzstd_writes_is_read(program: Callable[[str], str], tmp_path: Path) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    (tmp_path / "run").write_bytes(text)
    subprocess.run([program("pzstd"), "-q", tmp_path / "run"], check=True)
    data = (tmp_path / "run.zst").read_bytes()
    assert not data.startswith(b"\x28\xb5\x2f\xfd")
    assert text_of(data) == text


def test_a_text_may_begin_as_bzip2_does() -> None:
    for text in (b"BZhang\tD1\t1\n", b"BZh9\tD1\t1\n", b"BZh91AY&\tD1\t1\n", b"BZh0\tD1\t1\n"):
        assert text_of(text) == text
    assert refusal(b"BZh91AY&SY") == ("truncated-archive", None)


def archive_of(kind: str) -> bytes:
    """One small file in an archive of a kind that is not read."""
    made = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=made, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("run"), io.BytesIO())
    elif kind == "zip":
        with zipfile.ZipFile(made, "w") as zipped:
            zipped.writestr("run", "1\ta\t1\n")
    elif kind == "xz":
        made.write(lzma.compress(b"1\ta\t1\n"))
    else:
        made.write(b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(24))
    return made.getvalue()


@pytest.mark.parametrize("inside", COMPRESS)
@pytest.mark.parametrize("kind", ["tar", "zip", "xz", "7-Zip"])
def test_archives_of_other_kinds_are_named(kind: str, inside: str) -> None:
    """`run.tgz` is a tar in a gzip."""
    with pytest.raises(InputError) as caught:
        text_of(COMPRESS[inside](archive_of(kind)))
    (problem,) = caught.value.problems
    assert problem.code == "unsupported-archive"
    within = "" if inside == "plain" else f", in one of {inside}"
    assert problem.found == f"an archive of the kind {kind}{within}"


@pytest.mark.parametrize("kind", ARCHIVES)
@pytest.mark.parametrize("inside", ARCHIVES)
def test_an_archive_in_an_archive_is_named(kind: str, inside: str) -> None:
    data = COMPRESS[inside](COMPRESS[kind](b"1\ta\t1\n"))
    assert refusal(data) == ("unsupported-archive", None)


def test_a_row_that_says_ustar_where_a_tar_does_is_a_row() -> None:
    text = b"q\t" + b"x" * 255 + b"ustar\t1\n"
    assert text[257:262] == b"ustar"
    assert text_of(text) == text


def test_a_large_plain_file_is_no_bomb() -> None:
    assert refusal(b"abcd\n" * 10, Limits(bytes=20)) == ("too-large", None)
    assert refusal(b"abcd\n" * 10, Limits(compressed_bytes=20)) == ("too-large", None)


def test_too_many_lines() -> None:
    assert refusal(b"a\n" * 5, Limits(lines=4)) == ("too-many-lines", 5)
    with pytest.raises(InputError, match="expected at most 4 lines"):
        text_of(b"a\n" * 5, Limits(lines=4))


def test_a_long_line_is_refused_before_it_ends() -> None:
    assert refusal(b"a\n" + b"x" * 200_000, Limits(line_bytes=1000)) == ("line-too-long", 2)
    assert refusal(b"a\nb\n" + b"x" * 20 + b"\nc\n", Limits(line_bytes=10)) == ("line-too-long", 3)

    class Endless(io.RawIOBase):
        served = 0

        def read(self, size: int = -1) -> bytes:
            self.served += size
            return b"x" * size

    endless = Endless()
    reader = TextReader(endless, path="f", limits=Limits())
    with pytest.raises(InputError, match="line-too-long"):
        list(reader.blocks())
    assert endless.served <= 1 << 22


def test_nothing_is_read_behind_the_end() -> None:
    """A terminal would ask for more, and its user would have to end the input a second time."""

    said = [b"1\ta\t1\n", b"", b"2\tb\t1\n"]

    class Terminal(io.RawIOBase):
        def read(self, _: int = -1) -> bytes:
            return said.pop(0) if said else b""

    reader = TextReader(Terminal(), path="-", limits=Limits())
    assert list(read_lines(reader)) == [(1, b"1\ta\t1")]


def test_nul_bytes_are_refused_with_their_line() -> None:
    assert refusal(b"a\nb\nc\0d\n") == ("nul-byte", 3)
    assert refusal("1\tD1\t1\n".encode("utf-16-le")) == ("nul-byte", 1)


def test_a_byte_order_mark_is_skipped_and_told() -> None:
    reader = TextReader(io.BytesIO(b"\xef\xbb\xbf1 a\n"), path="f", limits=Limits())
    assert list(read_lines(reader)) == [(1, b"1 a")]
    assert [(note.code, note.severity) for note in reader.notes] == [("byte-order-mark", "note")]


def test_the_digest_is_of_the_whole_file_even_after_a_refusal() -> None:
    data = b"a\0\n" + b"rest\n" * 200_000
    reader = TextReader(io.BytesIO(data), path="f", limits=Limits())
    with pytest.raises(InputError):
        list(reader.blocks())
    assert reader.digest() == hashlib.sha256(data).hexdigest()


def test_a_file_over_the_limit_is_not_read_to_its_end() -> None:
    source = io.BytesIO(b"line\n" * 1_000_000)
    reader = TextReader(source, path="f", limits=Limits(compressed_bytes=1000))
    with pytest.raises(InputError, match="too-large"):
        list(reader.blocks())
    assert len(reader.digest()) == 64
    assert source.tell() < 1_000_000


def test_replay_of_files_and_pipes(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"skipped" + b"abc" * 1000)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(path, "f")
    with (
        open_input(path) as file,
        tarfile.open(fileobj=io.BytesIO(archive.getvalue()), mode="r|") as stream,
    ):
        member = next(iter(stream))
        piped = stream.extractfile(member)
        assert piped is not None
        sources: list[BinaryIO] = [file, io.BytesIO(path.read_bytes())]
        for source in (*sources, piped):
            assert source.read(7) == b"skipped"
            with rewindable(source, path="f", most=1 << 20) as replay:  # type: ignore[arg-type]  # IO[bytes] is a BinaryIO at run time
                start = replay.tell()
                begun = replay.read(100)
                replay.seek(start)
                assert (begun, replay.read()) == ((b"abc" * 34)[:100], b"abc" * 1000)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("none", "looked for {}/none; change the folder"), ("*.gz", "no file of {} fits")],
)
def test_a_missing_file_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as failure:
        open_input(Path(name))
    (problem,) = failure.value.problems
    assert problem.code == "unreadable-file"
    assert problem.hint.startswith(hint.format(tmp_path))


def test_what_is_given_back_is_not_looked_at_again() -> None:
    data = b"one\r\r\ntwo\r\nthree\r\n"
    with blocks_of(8), TextReader(io.BytesIO(data), path="run", limits=Limits(lines=3)) as reader:
        blocks = reader.blocks()
        seen = [next(blocks)]
        reader.give_back(seen[0].text, lines=seen[0].count)
        seen += blocks
    assert [(block.text, block.line, block.count) for block in seen] == [
        (b"one\r\n", 1, 1),
        (b"one\r\ntwo\n", 1, 2),
        (b"three\n", 3, 1),
    ]
    assert [len(block.ends) for block in seen] == [1, 2, 1]
