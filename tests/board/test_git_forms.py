"""One suite that both forms of `Git` pass: git's own processes, and the one in memory."""

import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from heldout.board.store.git import Author, Change, Git
from heldout.errors import StoreError
from heldout.files.durable import Folder
from memory_folder import MemoryFolder
from memory_git import MemoryGit

AT = datetime(2026, 11, 2, 10, tzinfo=UTC)
SOMEONE = Author(name="Someone", email="someone@here")
Files = Mapping[str, tuple[str, bytes] | None]


@dataclass(frozen=True)
class Given:
    """A repository, its working tree, and a way to make commits that git itself would not."""

    git: Git
    tree: Folder
    make: Callable[[Files, str | None], str]

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            self.tree.write_whole(name, text.encode())
        made = self.git.commit_paths(list(files), message="x", author=SOMEONE, at=AT)
        assert made is not None
        return made

    def branch(self, name: str, parent: str, **files: bytes) -> str:
        return self.git.commit_on(name, parent, files, message="m", author=SOMEONE, at=AT)

    def changes(self, base: str, tip: str, *within: str) -> list[tuple[str, str, str]]:
        found = self.git.changes(base, tip, within=within)[tip]
        assert isinstance(found, tuple)
        return [(change.status, change.mode, change.path) for change in found]


def commit_tree(folder: Path, changes: Files, parent: str | None) -> str:
    """A commit made of plumbing: path -> mode and content on top of a parent; `None` deletes."""
    who = {
        f"GIT_{one}_{what}": "x" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    env = {**os.environ, **who, "GIT_INDEX_FILE": str(folder / "made-index")}

    def plumb(*arguments: str, data: bytes = b"") -> str:
        command = ["git", *arguments]
        ran = subprocess.run(
            command, cwd=folder, input=data, capture_output=True, env=env, check=True
        )
        return ran.stdout.decode().strip()

    plumb("read-tree", parent or "--empty")
    for path, change in changes.items():
        if change is None:
            plumb("update-index", "--force-remove", "--", path)
            continue
        mode, data = change
        blob = (
            data.decode() if mode == "160000" else plumb("hash-object", "-w", "--stdin", data=data)
        )
        plumb("update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
    return plumb("commit-tree", plumb("write-tree"), *(["-p", parent] if parent else []), "-m", "x")


@pytest.fixture(params=["processes", "memory"])
def given(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    if request.param == "memory":
        files = MemoryFolder(Path("/nowhere"))
        memory = MemoryGit(files.root, files_there=files)
        return Given(
            memory, files, lambda changes, parent: memory.commit_tree(changes, parent=parent)
        )
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "repository"
    root.mkdir()
    git = Git(root)
    git.init()
    return Given(git, Folder(root), lambda changes, parent: commit_tree(root, changes, parent))


def test_before_the_first_commit(given: Given) -> None:
    assert given.git.is_repository()
    assert given.git.head() is None
    assert given.git.branch() == given.git.main_branch() == "main"
    assert given.git.remotes() == ()
    assert given.git.tracked() is None
    assert (given.git.unpushed(), given.git.unpulled()) == (0, 0)
    assert given.git.refs() == {}


def test_a_commit_has_the_given_paths(given: Given) -> None:
    given.tree.write_whole("other", b"not asked for")
    made = given.commit(a="1")
    assert given.git.head() == made
    assert given.git.read_path(made, "a", limit=10) == b"1"
    assert given.git.read_path(made, "other", limit=10) is None
    assert given.git.commit_paths(["a"], message="x", author=SOMEONE, at=AT) is None


def test_a_commit_of_a_folder_takes_what_went_and_leaves_out_what_is_named(given: Given) -> None:
    for name in ("s/a", "s/b", "s/c", "t"):
        given.tree.write_whole(name, b"1")
    given.git.commit_paths(["s", "t"], message="x", author=SOMEONE, at=AT)
    given.tree.delete("s/a")
    for name in ("s/b", "s/c", "t"):
        given.tree.write_whole(name, b"2")
    made = given.git.commit_paths(
        ["s", "gone"], message="x", author=SOMEONE, at=AT, without=["s/c"]
    )
    assert made is not None
    read = {p: given.git.read_path(made, p, limit=9) for p in ("s/a", "s/b", "s/c", "t")}
    assert read == {"s/a": None, "s/b": b"2", "s/c": b"1", "t": b"1"}


def test_the_versions_of_a_file(given: Given) -> None:
    made = [given.commit(a="1"), given.commit(b="1"), given.commit(a="2")]
    assert given.git.versions("a", most=9) == (made[2], made[0])
    assert given.git.versions("a", most=1) == (made[2],)
    assert given.git.versions("none", most=9) == ()


def test_a_branch_is_made_without_touching_the_working_tree(given: Given) -> None:
    main = given.commit(a="1")
    tip = given.git.commit_on(
        "submission/x", main, {"s/b": b"2"}, message="m", author=SOMEONE, at=AT
    )
    again = given.git.commit_on(
        "submission/x", main, {"s/b": b"2"}, message="m", author=SOMEONE, at=AT
    )
    assert again == tip
    assert not given.tree.exists("s")
    assert given.git.refs("refs/heads/") == {
        "refs/heads/main": main,
        "refs/heads/submission/x": tip,
    }
    assert given.git.contains(tip, main)
    assert not given.git.contains(main, tip)
    assert given.changes(main, tip) == [("A", "040000", "s")]
    assert given.changes(main, tip, "s") == [("A", "100644", "s/b")]


def test_both_forms_give_the_same_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    git = Git(tmp_path / "git")
    git.root.mkdir()
    git.init()
    made = []
    files = MemoryFolder(Path("/nowhere"))
    for one, tree in ((git, Folder(git.root)), (MemoryGit(files.root, files_there=files), files)):
        for name in ("a", "a.b", "a-c/d", "b/c/d"):
            tree.write_whole(name, name.encode())
        main = one.commit_paths(["a", "a.b", "a-c", "b"], message="x", author=SOMEONE, at=AT)
        assert main is not None
        tip = one.commit_on("side", main, {"b/e": b"2"}, message="m", author=SOMEONE, at=AT)
        made.append((main, tip, one.files(tip), one.files(tip, "b"), one.changes(main, tip)))
    assert made[0] == made[1]


def test_refs_by_patterns_and_by_what_they_name(given: Given) -> None:
    main = given.commit(a="1")
    blob = given.git.files(main)[0].blob
    given.git.set_refs({"refs/pull/1/head": main, "refs/pull/2/head": blob, "refs/pullx": main})
    assert given.git.refs("refs/pull/") == {"refs/pull/1/head": main}
    assert set(given.git.refs("refs/pull", commits=False)) == {
        "refs/pull/1/head",
        "refs/pull/2/head",
    }
    assert given.git.refs("refs/pull/*/head") == {"refs/pull/1/head": main}
    assert set(given.git.refs()) == {"refs/heads/main", "refs/pull/1/head", "refs/pullx"}
    given.git.set_refs({"refs/pull/1/head": None})
    assert given.git.refs("refs/pull/1/head") == {}
    with pytest.raises(StoreError):
        given.git.set_refs({"refs/pull/3/head": "1" * 40})


CASES: Mapping[str, tuple[Files, list[tuple[str, str, str]]]] = {
    "a changed file": ({"a": ("100644", b"2")}, [("M", "100644", "a")]),
    "a deleted file": ({"a": None}, [("D", "000000", "a")]),
    "an executable": ({"a": ("100755", b"1")}, [("M", "100755", "a")]),
    "a symlink": ({"a": ("120000", b"/etc")}, [("T", "120000", "a")]),
    "a submodule": ({"s/m": ("160000", b"1" * 40)}, [("A", "160000", "s/m")]),
    "a file deeper": ({"s/t/b": ("100644", b"1")}, [("A", "040000", "s/t")]),
    "another folder": ({"u/b": ("100644", b"1")}, [("A", "040000", "u")]),
    "a file for the folder": (
        {"s/old": None, "s": ("100644", b"1")},
        [("A", "100644", "s"), ("D", "000000", "s")],
    ),
    "a folder for a file": (
        {"a": None, "a/b": ("100644", b"1")},
        [("D", "000000", "a"), ("A", "040000", "a")],
    ),
    "a line end in a name": ({"s/x\ny": ("100644", b"1")}, [("A", "100644", "s/x\ny")]),
    "nothing": ({}, []),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_commit_changed(given: Given, case: str) -> None:
    base = given.make({"a": ("100644", b"1"), "s/old": ("100644", b"1")}, None)
    changes, expected = CASES[case]
    tip = given.make(changes, base)
    if case == "nothing":
        tip = base
    assert given.changes(base, tip, "s") == expected


def test_changes_since_the_fork_only(given: Given) -> None:
    base = given.commit(a="1")
    tip = given.branch("side", base, b=b"2")
    main = given.commit(a="3", c="4")
    assert given.changes(main, tip) == [("A", "100644", "b")]
    assert given.git.changes(main, base) == {base: ()}
    assert given.git.changes(main) == {}


def test_a_history_of_its_own_has_no_changes_to_tell(given: Given) -> None:
    main = given.commit(a="1")
    tip = given.make({"a": ("100644", b"1")}, None)
    assert given.git.changes(main, tip) == {tip: None}


def test_a_tip_that_is_missing_is_an_error_and_the_others_are_read(given: Given) -> None:
    base = given.commit(a="1")
    tip = given.branch("side", base, b=b"2")
    found = given.git.changes(base, "1" * 40, tip)
    assert isinstance(found["1" * 40], StoreError)
    assert [change.path for change in cast("tuple[Change, ...]", found[tip])] == ["b"]


def test_of_many_changes_the_first_are_given(given: Given) -> None:
    base = given.commit(a="1")
    tip = given.make({f"f{number:03}": ("100644", b"1") for number in range(150)}, base)
    changes = given.changes(base, tip)
    assert 100 <= len(changes) <= 101
    assert changes[0] == ("A", "100644", "f000")


def test_the_files_of_a_commit(given: Given) -> None:
    tip = given.make(
        {"a": ("100644", b"1"), "s/b": ("100755", b"2"), "s/t/c": ("120000", b"x")}, None
    )
    assert [(c.mode, c.path) for c in given.git.files(tip)] == [
        ("100644", "a"),
        ("100755", "s/b"),
        ("120000", "s/t/c"),
    ]
    assert [(c.status, c.mode, c.path) for c in given.git.files(tip, "s")] == [
        ("A", "100755", "s/b"),
        ("A", "040000", "s/t"),
    ]
    assert given.git.files(tip, "none") == ()


def test_contents_and_their_bounds(given: Given) -> None:
    tip = given.make({"a": ("100644", b"x" * 100), "s/b": ("100644", b"line\n\n")}, None)
    files = {file.path: file.blob for file in given.git.files(tip)}
    assert given.git.blob_sizes(files["a"], files["s/b"]) == (100, 6)
    assert given.git.blob_sizes() == ()
    assert given.git.read_blobs(files["s/b"], files["a"], limit=100) == (b"line\n\n", b"x" * 100)
    assert given.git.read_blobs(limit=1) == ()
    assert given.git.read_path(tip, "s/b", limit=6) == b"line\n\n"
    assert given.git.read_path(tip, "s/none", limit=6) is None
    with pytest.raises(StoreError, match="at most 99"):
        given.git.read_path(tip, "a", limit=99)
    with pytest.raises(StoreError, match="does not have the file"):
        given.git.read_path(tip, "s", limit=99)
    with pytest.raises(StoreError, match="fetch again"):
        given.git.read_blob("1" * 40, limit=99)
    with pytest.raises(StoreError, match="fetch again"):
        given.git.blob_sizes("1" * 40)


def test_what_is_stored_beside_git_s_own_files(given: Given) -> None:
    assert given.git.remembered("heldout.json") is None
    given.git.remember("heldout.json", b"1")
    given.git.remember("heldout.json", b"2")
    assert given.git.remembered("heldout.json") == b"2"
