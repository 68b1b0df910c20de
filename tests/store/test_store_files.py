"""Files that are whole or absent, lines that happened or did not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import StoreError
from heldout.rankers.files import write_whole as write_run_file
from heldout.store.files import ASIDE, append_line, exclusive, read_lines, sweep, write_whole


def test_a_written_file_is_whole_with_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b"
    assert write_whole(file, b"one", mode=0o600)
    assert file.read_bytes() == b"one"
    assert file.stat().st_mode & 0o777 == 0o600
    assert not write_whole(file, b"one")
    assert write_whole(file, b"two")
    assert os.listdir(file.parent) == ["b"]  # noqa: PTH208 - names are compared


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a"
    write_whole(file, b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("write", [write_whole, write_run_file])
def test_only_a_file_is_replaced_and_a_refusal_names_it(
    tmp_path: Path, write: Callable[[Path, bytes], object]
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(StoreError, match=f"{name} is no file"):
            write(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises((FileExistsError, NotADirectoryError)) as caught:
        write(tmp_path / "plain" / "x", b"new")
    assert caught.value.filename == str(tmp_path / "plain" / "x")
    assert str(caught.value).endswith("plain/x'")


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=4),
    torn=st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")),
)
def test_a_torn_line_never_counted(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], torn: bytes
) -> None:
    file = tmp_path_factory.mktemp("log") / "log"
    for line in lines:
        append_line(file, line + b"\n")
    whole = b"".join(line + b"\n" for line in lines)
    with file.open("ab") as log:
        log.write(torn)
    assert read_lines(file) == whole
    append_line(file, b"next\n")
    assert file.read_bytes() == whole + b"next\n"


def test_a_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    append_line(tmp_path / "log", b"one\n")
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("line", [b"", b"no end", b"two\nlines\n"])
def test_what_is_no_line_is_not_appended(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(ValueError, match=r"^b'"):
        append_line(tmp_path / "log", line)
    assert not (tmp_path / "log").exists()


def test_a_lock_is_held_by_one_and_freed(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "lock"
    with exclusive(lock), pytest.raises(StoreError, match="another heldout"), exclusive(lock):
        pass
    with exclusive(lock):
        pass


def test_sweeping_takes_only_what_was_left_aside(tmp_path: Path) -> None:
    for name in (f"{ASIDE}abc", "kept", ".hidden"):
        (tmp_path / name).touch()
    sweep(tmp_path, tmp_path / "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "kept"]
