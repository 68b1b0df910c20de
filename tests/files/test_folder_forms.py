"""One suite that both forms of `Folder` pass: on disk, and in memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heldout.errors import StoreError
from heldout.files.durable import ASIDE, Folder
from memory_folder import MemoryFolder


@pytest.fixture(params=["disk", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    root = tmp_path / "root"
    if request.param == "memory":
        return MemoryFolder(root)
    root.mkdir()
    return Folder(root)


def test_what_was_written_is_read(folder: Folder) -> None:
    assert folder.write_whole("a/b.json", b"1")
    assert not folder.write_whole("a/b.json", b"1")
    assert folder.write_whole("a/b.json", b"12", mode=0o600)
    assert folder.read("a/b.json") == folder.find("a/b.json") == b"12"
    assert folder.file("a/b.json").read_text("utf-8") == "12"
    assert folder.file("a/b.json").size() == 2
    assert folder.find("a/none") is None
    assert folder.read_lines("none") == b""
    found: Any = folder.stat("a/b.json")
    assert (found.st_size, found.st_mode & 0o777) == (2, 0o600)
    with pytest.raises(StoreError, match="longer than 1 bytes"):
        folder.read("a/b.json", limit=1)
    with pytest.raises(FileNotFoundError):
        folder.read("a/none")


def test_what_lies_where(folder: Folder) -> None:
    for name in ("b", "a/z", "a/c/d"):
        folder.write_whole(name, b"")
    folder.make_folder("empty", mode=0o700)
    assert folder.names() == ("a", "b", "empty")
    assert folder.names("a") == ("c", "z")
    assert folder.names("empty") == folder.names("none") == ()
    assert list(folder.walk()) == [("a/c/d", True), ("a/z", True), ("b", True)]
    assert list(folder.walk("a/c")) == [("a/c/d", True)]
    assert (folder.is_file("b"), folder.is_file("a"), folder.is_file("x")) == (True, False, False)
    assert (folder.is_folder("b"), folder.is_folder("a"), folder.is_folder()) == (False, True, True)
    assert folder.exists("empty")
    assert folder.below("a").names() == ("c", "z")
    assert folder.below("a").read("c/d") == b""


def test_a_file_is_no_folder(folder: Folder) -> None:
    folder.write_whole("a", b"")
    folder.make_folder("b")
    with pytest.raises(OSError, match="Not a directory"):
        folder.write_whole("a/b", b"")
    with pytest.raises(OSError, match="Not a directory"):
        folder.names("a")
    with pytest.raises(StoreError, match="is no file"):
        folder.write_whole("b", b"")
    with pytest.raises(StoreError, match="is no plain file"):
        folder.read("b")


def test_a_new_file_and_one_that_is_changed(folder: Folder) -> None:
    with folder.create("a/new") as file:
        file.write(b"123")
    with pytest.raises(FileExistsError):
        folder.create("a/new")
    with folder.change("a/new") as file:
        assert file.read() == b"123"
        file.truncate(1)
        file.seek(0, 2)
        file.write(b"4")
    assert folder.read("a/new") == b"14"
    with folder.change("other") as file:
        assert file.read() == b""
    assert folder.read("other") == b""


def test_lines_are_whole(folder: Folder) -> None:
    folder.append_line("log", b"1\n")
    folder.write_whole("log", b"1\nunfini")
    assert folder.read_lines("log") == b"1\n"
    folder.append_line("log", b"2\n")
    assert folder.read("log") == b"1\n2\n"
    for line in (b"3", b"3\n4\n"):
        with pytest.raises(ValueError, match="3"):
            folder.append_line("log", line)


def test_files_are_moved_and_removed(folder: Folder) -> None:
    folder.write_whole("a/b", b"1")
    folder.write_whole("c", b"2")
    folder.rename("a/b", "c")
    assert (folder.read("c"), folder.names("a")) == (b"1", ())
    folder.delete("c")
    folder.delete("c")
    assert not folder.exists("c")
    folder.write_whole("a/x/y", b"1")
    folder.write_whole("ab", b"1")
    folder.delete_tree("a")
    folder.delete_tree("a")
    assert folder.names() == ("ab",)


def test_what_a_killed_writer_left_is_swept(folder: Folder) -> None:
    for name in (f"{ASIDE}1", f"a/{ASIDE}2", "a/b"):
        folder.write_whole(name, b"")
    folder.sweep("", "a")
    assert list(folder.walk()) == [("a/b", True)]


def test_one_writer_at_a_time(folder: Folder) -> None:
    with folder.lock(".heldout/lock"):
        with pytest.raises(StoreError, match="another heldout"), folder.lock(".heldout/lock"):
            pass
        with folder.lock("other"):
            pass
    with folder.lock(".heldout/lock"):
        pass


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "a\0b"])
def test_no_name_leads_out(folder: Folder, name: str) -> None:
    with pytest.raises(StoreError, match="leads out"):
        folder.read(name)
    with pytest.raises(StoreError, match="leads out"):
        folder.write_whole(name, b"")


def test_a_folder_that_is_only_read_is_not_written(folder: Folder) -> None:
    folder.write_whole("a", b"1")
    alone = replace(folder, read_only=True)
    assert alone.read("a") == b"1"
    for write in (
        lambda: alone.write_whole("a", b"2"),
        lambda: alone.create("b"),
        lambda: alone.change("a"),
        lambda: alone.append_line("a", b"2\n"),
        lambda: alone.make_folder("c"),
        lambda: alone.rename("a", "b"),
        lambda: alone.delete("a"),
        lambda: alone.delete_tree("a"),
        lambda: alone.sweep(""),
        lambda: alone.below("x").write_whole("y", b""),
        lambda: alone.lock("lock").__enter__(),
    ):
        with pytest.raises(RuntimeError, match="read alone"):
            write()
