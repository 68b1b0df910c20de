"""A zip file that anybody may have made: unpacked whole and inside its folder, or not at all."""

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import InputError, StoreError
from heldout.files.zipped import unpack_zip, write_zip

NAMES = st.from_regex(r"[a-z0-9]{1,8}(\.[a-z]{1,4})?", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=2000), max_size=8))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("zip")
    write_zip(folder / "a.zip", files.items())
    write_zip(folder / "b.zip", files.items())
    assert (folder / "a.zip").read_bytes() == (folder / "b.zip").read_bytes()
    assert unpack_zip(folder / "a.zip", folder / "out") == tuple(files)
    assert {name: (folder / "out" / name).read_bytes() for name in files} == files


def test_a_file_with_the_same_bytes_is_left_and_another_one_refused(tmp_path: Path) -> None:
    write_zip(tmp_path / "a.zip", [("a", b"1")])
    write_zip(tmp_path / "a.zip", [("a", b"1")])
    before = (tmp_path / "a.zip").read_bytes()
    with pytest.raises(StoreError, match="something else"):
        write_zip(tmp_path / "a.zip", [("a", b"2")])
    assert (tmp_path / "a.zip").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        write_zip(tmp_path / "a.zip", [("a", b"1"), ("../b", b"2")])
    assert not list(tmp_path.iterdir())


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in members:
            target.writestr(name, data)
    return buffer.getvalue()


def linked() -> zipfile.ZipInfo:
    member = zipfile.ZipInfo("link")
    member.create_system = 3
    member.external_attr = 0o120777 << 16
    return member


def lying_about_its_size() -> bytes:
    """Ten megabytes that both headers call a hundred bytes."""
    data = zipped(("a", bytes(10 << 20)))
    return data.replace(struct.pack("<I", 10 << 20), struct.pack("<I", 100))


def overlapping() -> bytes:
    """Many entries of the directory for the bytes of one member, as better zip bombs have it."""
    whole = zipped(("a", bytes(range(256)) * 4000))
    start = whole.index(b"PK\x01\x02")
    entry = whole[start : whole.index(b"PK\x05\x06")]
    entries = b"".join(entry[:46] + bytes([97 + i]) for i in range(20))
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 20, 20, len(entries), start, 0)
    return whole[:start] + entries + end


def encrypted() -> bytes:
    data = bytearray(zipped(("a", b"secret")))
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def broken_deflate() -> bytes:
    packed = zlib.compress(b"some text that is packed" * 9)[2:-4]
    data = zipped(("a", b"some text that is packed" * 9))
    assert packed in data
    return data.replace(packed, b"\xff" * len(packed))


def bad_crc() -> bytes:
    crc = struct.pack("<I", zlib.crc32(b"text"))
    data = zipped(("a", b"text"))
    return data.replace(crc, b"\0\0\0\0")


HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "path traversal": lambda: zipped(("../outside", b"x")),
    "path traversal further down": lambda: zipped(("a/../../outside", b"x")),
    "an absolute path": lambda: zipped(("/outside", b"x")),
    "backslashes": lambda: zipped(("..\\outside", b"x")),
    "a drive": lambda: zipped(("c:outside", b"x")),
    "a dot": lambda: zipped(("./a", b"x")),
    "an empty part": lambda: zipped(("a//b", b"x")),
    "a folder": lambda: zipped(("a/", b"")),
    "a control character": lambda: zipped(("a\x1b[31m", b"x")),
    "a bidi mark": lambda: zipped(("a\u202egnp.exe", b"x")),
    "a very long name": lambda: zipped(("a" * 60_000, b"x")),
    "a symbolic link": lambda: zipped((linked(), b"/etc/passwd")),
    "names that differ by case": lambda: zipped(("a", b"x"), ("A", b"y")),
    "a file that is a folder too": lambda: zipped(("a/b", b"x"), ("a", b"y")),
    "a zip bomb": lambda: zipped(("a", bytes(20 << 20))),
    "a zip bomb of overlapping members": overlapping,
    "a zip bomb of many small members": lambda: zipped(
        *((f"scores/{i}.json", bytes(1 << 19)) for i in range(8))
    ),
    "a lie about the size": lying_about_its_size,
    "an encrypted member": encrypted,
    "a damaged member": broken_deflate,
    "another checksum": bad_crc,
    "lzma": lambda: strange(zipfile.ZIP_LZMA),
    "nothing": lambda: b"",
    "no zip": lambda: b"PK\x03\x04 and then nothing",
    "half of one": lambda: zipped(("a", bytes(range(256))))[:100],
}


def strange(kind: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as target:
        target.writestr("a", b"x" * 100)
    return buffer.getvalue()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_zip(tmp_path: Path, name: str) -> None:
    (tmp_path / "x.zip").write_bytes(HOSTILE[name]())
    (tmp_path / "deep/out").mkdir(parents=True)
    with pytest.raises(InputError) as raised:
        unpack_zip(tmp_path / "x.zip", tmp_path / "deep/out")
    assert {problem.code for problem in raised.value.problems} <= {
        "archive-bomb",
        "damaged-archive",
    }
    assert str(raised.value).isprintable()
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    inside = [path for path in left if path.is_relative_to(tmp_path / "deep/out")]
    assert set(left) == {tmp_path / "x.zip", *inside}
    assert sum(path.stat().st_size for path in inside) <= 1 << 20


def test_a_name_twice(tmp_path: Path) -> None:
    data = zipped(("aa", b"x"), ("ab", b"y")).replace(b"ab", b"aa")
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(InputError, match="another member has"):
        unpack_zip(tmp_path / "x.zip", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@given(st.binary(max_size=300), st.integers(0, 400))
def test_noise_is_refused_in_words_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, place: int
) -> None:
    folder = tmp_path_factory.mktemp("zip")
    data = zipped(("log.jsonl", b"one\ntwo\n"), ("a/b", bytes(50)))
    (folder / "x.zip").write_bytes(data[:place] + noise + data[place + len(noise) :])
    names: tuple[str, ...] = ()
    with contextlib.suppress(InputError):
        names = unpack_zip(folder / "x.zip", folder / "out")
    assert all((folder / "out" / name).is_file() for name in names)
