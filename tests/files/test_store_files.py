"""Files that are whole or absent, lines that happened or did not."""

import ctypes
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heldout.errors import StoreError
from heldout.files.durable import ASIDE, Folder, write_whole
from heldout.files.zipped import write_zip
from heldout.judging.campaign.files import CampaignFolder
from heldout.judging.labels.labels import newest_version, read_version
from heldout.judging.models.judges import ROWS, open_rows
from heldout.survivorship.training.study import _read_record, _write_json


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


def test_only_a_file_is_replaced_and_a_refusal_names_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(StoreError, match=f"{name} is no file"):
            write_whole(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises((FileExistsError, NotADirectoryError)) as caught:
        write_whole(tmp_path / "plain" / "x", b"new")
    assert caught.value.filename == str(tmp_path / "plain" / "x")
    assert str(caught.value).endswith("plain/x'")


@given(
    lines=st.lists(st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")), max_size=4),
    torn=st.binary(max_size=20).map(lambda b: b.replace(b"\n", b"")),
)
def test_a_torn_line_never_counted(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], torn: bytes
) -> None:
    folder = Folder(tmp_path_factory.mktemp("log"))
    file = folder.path("log")
    for line in lines:
        folder.append_line("log", line + b"\n")
    whole = b"".join(line + b"\n" for line in lines)
    with file.open("ab") as log:
        log.write(torn)
    assert folder.read_lines("log") == whole
    folder.append_line("log", b"next\n")
    assert file.read_bytes() == whole + b"next\n"


def test_a_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    Folder(tmp_path).append_line("log", b"one\n")
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("line", [b"", b"no end", b"two\nlines\n"])
def test_what_is_no_line_is_not_appended(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(ValueError, match=r"^b'"):
        Folder(tmp_path).append_line("log", line)
    assert not (tmp_path / "log").exists()


def test_a_lock_is_held_by_one_and_freed(tmp_path: Path) -> None:
    folder, name = Folder(tmp_path), "folder/lock"
    with (
        folder.lock(name),
        pytest.raises(StoreError, match="another heldout"),
        folder.lock(name),
    ):
        pass
    with folder.lock(name):
        pass


def test_sweeping_takes_only_what_was_left_aside(tmp_path: Path) -> None:
    for name in (f"{ASIDE}abc", "kept", ".hidden"):
        (tmp_path / name).touch()
    Folder(tmp_path).sweep("", "missing")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "kept"]


def test_what_was_left_aside_is_looked_for_unless_all_is_in_order(tmp_path: Path) -> None:
    """At first, as by a heldout of before; after a kill; after an error; not after a good end."""
    folder, swept = Folder(tmp_path), list[str]()

    @contextmanager
    def work(name: str) -> Iterator[None]:
        with folder.lock_and_sweep("lock", lambda: swept.append(name)):
            yield

    with work("first"):
        pass
    with work("in order"):
        during = folder.read("lock")
    with pytest.raises(StoreError), work("also in order"):
        raise StoreError("refused")
    with pytest.raises(RuntimeError), work("in order after a refusal"):
        raise RuntimeError
    with work("after an error"):
        pass
    folder.write_whole("lock", during)  # what a killed one leaves
    with work("after a kill"):
        pass
    folder.write_whole("lock", b"in order\nand more")  # of a stranger's tree
    with work("after a stranger"):
        pass
    with work("in order again"):
        pass
    assert swept == ["first", "after an error", "after a kill", "after a stranger"]


LINKS = ("last", "folder", "dangling", "loop", "deep")


def _lay(root: Path, outside: Path, kind: str) -> str:
    """Lay a symlink below a root; the name that leads over it."""
    (outside / "sub").mkdir(parents=True)
    (outside / "file").write_bytes(b"canary\n")
    (outside / "sub" / "file").write_bytes(b"canary\n")
    (root / "a").mkdir(parents=True)
    match kind:
        case "last":
            (root / "a" / "file").symlink_to(outside / "file")
            return "a/file"
        case "folder":
            (root / "b").symlink_to(outside)
            return "b/file"
        case "dangling":
            (root / "a" / "file").symlink_to(outside / "new")
            return "a/file"
        case "loop":
            (root / "a" / "file").symlink_to("file")
            return "a/file"
        case _:
            (root / "a" / "c").symlink_to(outside)
            return "a/c/sub/file"


CALLS: dict[str, Callable[[Folder, str], object]] = {
    "read": Folder.read,
    "find": Folder.find,
    "read_lines": Folder.read_lines,
    "open": Folder.open,
    "stat": Folder.stat,
    "size": lambda folder, name: folder.file(name).size(),
    "write_whole": lambda folder, name: folder.write_whole(name, b"new"),
    "append_line": lambda folder, name: folder.append_line(name, b"new\n"),
    "create": lambda folder, name: folder.create(name).close(),
    "delete": Folder.delete,
    "delete_tree": Folder.delete_tree,
    "make_folder": Folder.make_folder,
    "names": Folder.names,
    "walk": lambda folder, name: list(folder.walk(name)),
    "sweep": Folder.sweep,
    "rename from": lambda folder, name: folder.rename(name, "other"),
    "rename to": lambda folder, name: folder.rename("plain", name),
    "lock": lambda folder, name: folder.lock(name).__enter__(),
    "change": lambda folder, name: folder.change(name).close(),
}


@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("call", CALLS)
def test_no_symlink_leads_out_of_a_folder(tmp_path: Path, kind: str, call: str) -> None:
    outside = tmp_path / "outside"
    name = _lay(tmp_path / "root", outside, kind)
    (tmp_path / "root" / "plain").touch()
    before = {path: path.is_file() and path.read_bytes() for path in outside.rglob("*")}
    with pytest.raises((StoreError, FileExistsError)) as caught:
        CALLS[call](Folder(tmp_path / "root"), name)
    if call != "create" or kind in ("folder", "deep"):
        assert "is a symlink" in str(caught.value)
    assert {path: path.is_file() and path.read_bytes() for path in outside.rglob("*")} == before


def test_a_walk_names_links_and_does_not_follow_them(tmp_path: Path) -> None:
    root = tmp_path / "root"
    _lay(root, tmp_path / "outside", "deep")
    (root / "a" / "plain").touch()
    os.mkfifo(root / "pipe")
    folder = Folder(root)
    assert list(folder.walk()) == [("a/c", False), ("a/plain", True), ("pipe", False)]
    folder.delete_tree("a")
    assert not folder.exists("a")
    assert (tmp_path / "outside" / "sub" / "file").read_bytes() == b"canary\n"


def test_the_root_itself_may_be_reached_by_a_symlink(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "named").symlink_to("real")
    folder = Folder(tmp_path / "named")
    folder.write_whole("a/b", b"x")
    assert (tmp_path / "real" / "a" / "b").read_bytes() == b"x"
    assert folder.below("a").read("b") == b"x"
    assert folder.below("a").path("b") == tmp_path / "named" / "a" / "b"


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "a\0b"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="leads out of"):
        Folder(tmp_path).read(name)


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises((StoreError, IsADirectoryError), match=r"no plain file|directory"):
            Folder(tmp_path).read(name)
        with pytest.raises(StoreError, match="is no file"):
            Folder(tmp_path).write_whole(name, b"")
    (tmp_path / "long").write_bytes(b"four")
    assert Folder(tmp_path).read("long", limit=4) == b"four"
    with pytest.raises(StoreError, match="longer than 3 bytes"):
        Folder(tmp_path).read("long", limit=3)


def test_a_huge_file_takes_no_memory(tmp_path: Path) -> None:
    """Of which a disk needs no block, as junk in a folder that others write to."""
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 40)
    for read in (Folder.read, Folder.find, Folder.read_lines):
        with pytest.raises(StoreError, match="huge is longer than 4,294,967,296 bytes"):
            read(Folder(tmp_path), "huge")


def test_errors_name_the_whole_path(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "plain").touch()
    folder = Folder(tmp_path)
    for name in ("a/missing", "missing/x", "plain/x"):
        with pytest.raises((FileNotFoundError, NotADirectoryError)) as caught:
            folder.read(name)
        assert str(caught.value.filename) in str(tmp_path / name)
        assert not folder.exists(name)
        assert folder.find(name) is None


WRITES = set(CALLS) & {
    "write_whole",
    "append_line",
    "create",
    "delete",
    "delete_tree",
    "lock",
    "change",
}


@pytest.mark.parametrize("call", sorted(WRITES | {"make_folder", "sweep", "rename from"}))
def test_a_folder_opened_to_be_read_is_not_written(tmp_path: Path, call: str) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(RuntimeError, match="to be read alone"):
        CALLS[call](Folder(tmp_path, read_only=True), "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def _append_row(folder: Path) -> None:
    with open_rows(folder):
        pass


OWN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "pools": ("pool.jsonl", lambda folder: CampaignFolder(folder).write_pools(())),
    "settings": ("campaign.toml", lambda folder: CampaignFolder(folder).settings()),
    "judgments": ("judgments.jsonl", lambda folder: CampaignFolder(folder).write_judgments(())),
    "versions": ("v1.json", newest_version),
    "a version": ("v1.json", lambda folder: read_version(folder, "v1")),
    "rows of models": (ROWS, _append_row),
    "their lock": (f".{ROWS}.lock", _append_row),
    "a database": ("campaign.sqlite", lambda folder: CampaignFolder(folder).database),
    "an archive": (f"{ASIDE}kb.zip", lambda folder: write_zip(folder / "kb.zip", [("a", b"x")])),
    "a cell": ("cell.json", _read_record),
    "a study": (
        "experiment.json",
        lambda folder: _write_json(Folder(folder).file("experiment.json"), {}),
    ),
}


@pytest.mark.parametrize("what", OWN)
def test_no_symlink_leads_out_of_campaigns_questions_and_experiments(
    tmp_path: Path, what: str
) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "own"
    name, call = OWN[what]
    (folder / name).parent.mkdir(parents=True)
    outside.mkdir()
    (outside / "file").write_bytes(b"{}\n")
    (folder / name).symlink_to(outside / "file")
    with pytest.raises(StoreError, match="is a symlink"):
        call(folder)
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_bytes() == b"{}\n"


AT_FDCWD, RENAME_EXCHANGE = -100, 2


def test_a_folder_that_is_swapped_for_a_symlink_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    """A look before the use would be too early: each part is opened from the one above."""
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    (outside / "file").write_bytes(b"precious")
    (root / "a").mkdir(parents=True)
    (tmp_path / "link").symlink_to(outside)
    ended = threading.Event()

    libc = ctypes.CDLL(None)
    one, other = (os.fsencode(path) for path in (root / "a", tmp_path / "link"))

    def exchange() -> bool:
        rename = getattr(libc, "renameat2", None)
        return rename is not None and not rename(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE)

    if not exchange():
        pytest.skip("this system cannot swap two names at once")

    def swap() -> None:
        while not ended.is_set():
            exchange()

    folder, outcomes = Folder(root), Counter[str]()
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(2_000):
            for call in (
                lambda: folder.write_whole("a/file", b"%d" % number),  # noqa: B023 - called at once
                lambda: folder.read("a/file"),
                lambda: folder.delete("a/file"),
            ):
                try:
                    outcomes["read" if call() != b"precious" else "precious"] += 1
                except (StoreError, OSError) as error:
                    outcomes[type(error).__name__] += 1
    finally:
        ended.set()
        thread.join()
    assert outcomes["precious"] == 0
    assert outcomes["StoreError"] > 0  # a symlink was met
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_bytes() == b"precious"
