"""One suite that both forms of `Git` pass: git's own processes, and the one in memory."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from certain import sure

from heldout.board.store.git import Author, Bounds, Change, Git, TooMuchError
from heldout.errors import SetupError, StoreError
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
        return sure(self.git.commit_paths(list(files), message="x", author=SOMEONE, at=AT))

    def branch(self, name: str, parent: str, **files: bytes) -> str:
        return self.git.commit_on(name, parent, files, message="m", author=SOMEONE, at=AT)

    def changes(self, base: str, tip: str, *within: str) -> list[tuple[str, str, str]]:
        found = self.git.changes(base, tip, within=within)[tip]
        assert isinstance(found, tuple)
        return [(change.status, change.mode, change.path) for change in found]


def commit_tree(folder: Path, changes: Files, parent: str | None) -> str:
    """A commit made of plumbing: path -> mode and content on top of a parent; `None` deletes."""
    whose = [f"GIT_{one}_{what}" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")]
    env = {**os.environ, **dict.fromkeys(whose, "x"), "GIT_INDEX_FILE": str(folder / "made-index")}

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
        module = mode == "160000"
        blob = data.decode() if module else plumb("hash-object", "-w", "--stdin", data=data)
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
    made = sure(
        given.git.commit_paths(["s", "gone"], message="x", author=SOMEONE, at=AT, without=["s/c"])
    )
    read = {p: given.git.read_path(made, p, limit=9) for p in ("s/a", "s/b", "s/c", "t")}
    assert read == {"s/a": None, "s/b": b"2", "s/c": b"1", "t": b"1"}


def test_the_versions_of_a_file(given: Given) -> None:
    made = [given.commit(a="1"), given.commit(b="1"), given.commit(a="2")]
    assert given.git.versions("a", most=9) == (made[2], made[0])
    assert given.git.versions("a", most=1) == (made[2],)
    assert given.git.versions("none", most=9) == ()


def test_a_branch_is_made_without_touching_the_working_tree(given: Given) -> None:
    main = given.commit(a="1")
    tip = given.branch("submission/x", main, **{"s/b": b"2"})
    assert given.branch("submission/x", main, **{"s/b": b"2"}) == tip
    assert not given.tree.exists("s")
    heads = {"refs/heads/main": main, "refs/heads/submission/x": tip}
    assert given.git.refs("refs/heads/") == heads
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
        main = sure(one.commit_paths(["a", "a.b", "a-c", "b"], message="x", author=SOMEONE, at=AT))
        tip = one.commit_on("side", main, {"b/e": b"2"}, message="m", author=SOMEONE, at=AT)
        made.append((main, tip, one.files(tip), one.files(tip, "b"), one.changes(main, tip)))
    assert made[0] == made[1]


def test_refs_by_patterns_and_by_what_they_name(given: Given) -> None:
    main = given.commit(a="1")
    blob = given.git.files(main)[0].blob
    given.git.set_refs({"refs/pull/1/head": main, "refs/pull/2/head": blob, "refs/pullx": main})
    assert given.git.refs("refs/pull/") == {"refs/pull/1/head": main}
    every = given.git.refs("refs/pull", commits=False)
    assert set(every) == {"refs/pull/1/head", "refs/pull/2/head"}
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
    files: Files = {"a": ("100644", b"1"), "s/b": ("100755", b"2"), "s/t/c": ("120000", b"x")}
    tip = given.make(files, None)
    found = {c.path: c.mode for c in given.git.files(tip)}
    assert found == {"a": "100644", "s/b": "100755", "s/t/c": "120000"}
    within = {(c.status, c.mode, c.path) for c in given.git.files(tip, "s")}
    assert within == {("A", "100755", "s/b"), ("A", "040000", "s/t")}
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


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "repository"
    root.mkdir()
    git = Git(root)
    git.init()
    return git


def commit(git: Git, **files: str) -> str:
    for name, text in files.items():
        (git.root / name).write_text(text)
    return sure(git.commit_paths(list(files), message="x", author=SOMEONE, at=AT))


def author_of(git: Git, made: str) -> Author:
    command = ["git", "-C", str(git.root), "show", "-s", "--format=%an%x00%ae", made]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    name, _, email = shown.decode(errors="replace").strip("\n").partition("\0")
    return Author(name=name, email=email)


def test_a_commit_has_its_author_and_time(git: Git) -> None:
    assert author_of(git, commit(git, a="1")) == SOMEONE
    assert int(run(git, "show", "-s", "--format=%ct")) == int(AT.timestamp())


def test_refs_of_many_files_are_packed_and_the_head_is_still_read(git: Git) -> None:
    made = commit(git, a="1")
    git.set_refs({f"refs/remotes/origin/submission/{number}": made for number in range(4)})
    before, branch = git.refs(commits=False), git.root / ".git/refs/heads/main"
    git.pack_refs(least=5)
    assert branch.exists()
    git.pack_refs(least=4)
    assert not branch.exists()
    assert git.refs(commits=False) == before
    later = commit(git, a="2")
    assert git.head() == later
    git.set_refs({"refs/heads/other": made})
    (git.root / ".git/HEAD").write_text("ref: refs/heads/none\n")
    assert git.head() is None


def test_what_a_person_has_staged_stays_staged_and_uncommitted(git: Git) -> None:
    commit(git, a="1", b="1")
    for name in ("a", "b"):
        (git.root / name).write_text("2")
    run(git, "add", "b")
    made = sure(git.commit_paths(["a"], message="x", author=SOMEONE, at=AT))
    assert git.read_path(made, "b", limit=9) == b"1"
    assert run(git, "diff", "--cached", "--name-only") == "b"


def test_no_commit_ends_a_merge_that_is_under_way(git: Git) -> None:
    base = commit(git, a="1", b="1")
    side = git.commit_on("side", base, {"b": b"2"}, message="m", author=SOMEONE, at=AT)
    main = commit(git, c="3")
    run(git, "merge", "-q", "--no-ff", "--no-commit", side)
    (git.root / "a").write_text("2")
    with pytest.raises(StoreError, match="merge"):
        git.commit_paths(["a"], message="x", author=SOMEONE, at=AT)
    assert git.head() == main


def run(git: Git, *arguments: str) -> str:
    """What git prints, as somebody."""
    command = ["git", "-c", "user.name=x", "-c", "user.email=x", *arguments]
    ran = subprocess.run(command, cwd=git.root, capture_output=True, check=True, text=True)
    return ran.stdout.strip()


def test_a_branch_that_took_in_the_main_line_again(git: Git) -> None:
    base = commit(git, a="1")
    side = git.commit_on("side", base, {"b": b"2"}, message="m", author=SOMEONE, at=AT)
    main = commit(git, c="3")
    tree = run(git, "merge-tree", "--write-tree", main, side).split()[0]
    tip = run(git, "commit-tree", tree, "-p", side, "-p", main, "-m", "merge")
    assert [change.path for change in _listed(git.changes(main, tip)[tip])] == ["b"]


def _listed(changes: tuple[Change, ...] | StoreError | None) -> tuple[Change, ...]:
    assert isinstance(changes, tuple)
    return changes


def test_a_user_s_name_that_is_not_utf8_is_taken_as_far_as_it_is(git: Git) -> None:
    config = git.root / ".git" / "config"
    config.write_bytes(config.read_bytes() + b"[user]\n\tname = Ren\xe9\n\temail = r\xe9@here\n")
    author = git.configured_author()
    assert author == Author(name="Ren\ufffd", email="r\ufffd@here")
    (git.root / "a").write_text("1")
    made = sure(git.commit_paths(["a"], message="x", author=author, at=AT))
    assert author_of(git, made) == author


def test_branches_and_remotes_may_have_any_name_that_git_takes(git: Git) -> None:
    made = commit(git, a="1")
    for name in (b"caf\xe9", "a\u2028b".encode(), "a\u00a0b\u3000".encode(), b"a\xc2\x85b"):
        ref = b"refs/heads/" + name
        subprocess.run([b"git", b"update-ref", ref, made.encode()], cwd=git.root, check=True)
        (told,) = git.refs("refs/heads/").keys() - {"refs/heads/main"}
        assert os.fsencode(told) == ref
        assert git.refs(told) == {told: made}
        subprocess.run([b"git", b"symbolic-ref", b"HEAD", ref], cwd=git.root, check=True)
        assert os.fsencode(git.branch()) == name
        subprocess.run(["git", "symbolic-ref", "HEAD", "refs/heads/main"], cwd=git.root, check=True)
        subprocess.run([b"git", b"update-ref", b"-d", ref], cwd=git.root, check=True)
    subprocess.run([b"git", b"remote", b"add", b"\xe9", b"x"], cwd=git.root, check=True)
    assert git.remotes() == ("\udce9",)


def test_a_lock_left_by_a_killed_git_is_explained(git: Git) -> None:
    commit(git, a="1")
    lock = git.root / ".git" / "index.lock"
    lock.touch()
    (git.root / "a").write_text("2")
    with pytest.raises(StoreError, match=f"rm {lock}"):
        git.commit_paths(["a"], message="x", author=SOMEONE, at=AT)


def test_a_git_before_2_28_makes_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It knows neither `init -b` nor `init.defaultBranch`, and begins with a branch `master`."""
    real = sure(shutil.which("git"))
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        "#!/bin/bash\n"
        'for word; do\n  [ "$word" != -b ] || { echo "unknown switch" >&2; exit 129; }\ndone\n'
        f'exec {real} "${{@/init.defaultBranch=*/init.defaultBranch=master}}"\n'
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{old.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    git = Git(tmp_path / "repository")
    git.root.mkdir()
    git.init()
    assert git.branch() == "main"
    commit(git, a="1")
    git.init()
    assert git.refs().keys() == {"refs/heads/main"}


def test_a_branch_of_one_s_choice_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    subprocess.run(["git", "init", "-q", "-b", "trunk", "."], cwd=tmp_path, check=True)
    Git(tmp_path).init()
    assert Git(tmp_path).branch() == "trunk"


def test_failures_name_the_command_and_the_reason(git: Git, tmp_path: Path) -> None:
    commit(git, a="1")
    with pytest.raises(StoreError, match="git push failed: fatal: 'no-such-place'"):
        git.push("no-such-place", "main")
    with pytest.raises(SetupError, match="gone does not exist any more"):
        Git(tmp_path / "gone").remotes()


def test_without_git_or_with_old(git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for ask in (git.require, git.remotes):
        with pytest.raises(SetupError, match="git is not installed, or not in PATH: install it"):
            ask()
    old = tmp_path / "bin" / "git"
    old.write_text('#!/bin/sh\necho "error: unknown option \\`show-scope\'" >&2; exit 129\n')
    old.chmod(0o755)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    with pytest.raises(StoreError, match=r"unknown option.*; this git is too old: install 2\.31"):
        Git(fresh).remotes()


def test_what_is_a_repository(git: Git, tmp_path: Path) -> None:
    assert git.is_repository()
    inside = git.root / "inside"
    inside.mkdir()
    assert not Git(inside).is_repository()
    assert not Git(tmp_path).is_repository()
    bare = tmp_path / "bare"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    assert Git(bare).is_repository()


def test_commits_that_the_remote_lacks(git: Git) -> None:
    assert git.unpushed() == 0
    commit(git, a="1")
    assert git.unpushed() == 0
    run(git, "init", "-q", "--bare", "forge")
    run(git, "remote", "add", "origin", str(git.root / "forge"))
    commit(git, a="2")
    assert git.unpushed() == 2
    git.push("origin", "main:main")
    assert git.unpushed() == 0
    last = commit(git, a="3")
    assert git.unpushed() == 1
    run(git, "checkout", "-q", "--detach", last)
    assert git.unpushed() == 0


def test_what_git_would_add_is_what_no_pattern_ignores_and_all_that_is_tracked(git: Git) -> None:
    commit(git, **{".gitignore": "/private/\n*.log\n:odd\n", "kept.log": "tracked"})
    asked = ("a", "x.log", "kept.log", "private/labels/a b", "\n/b", ":odd", "caf\udce9.log")
    assert git.unignored(*asked) == ("a", "kept.log", "\n/b")
    assert Git(git.root.parent).unignored("a") == ()


def test_git_has_its_input_whenever_it_reads_it(git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine git is looked at before it has read anything."""
    monkeypatch.setattr("heldout.board.store.git._GLANCE", 0.0)
    tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # empty, known to every git
    assert git.kinds_and_sizes(tree, bounds=Bounds(seconds=20)) == (("tree", 0),)


def test_git_without_memory_is_no_cut_connection_though_it_cuts_one(tmp_path: Path) -> None:
    cut = b"fatal: fetch-pack: unexpected disconnect while reading sideband packet\n"
    short = b"fatal: Out of memory, malloc failed (tried to allocate 41943045 bytes)\n"
    ended = b"error: index-pack died of signal 24\n"
    for said, limited in ((short + cut, True), (ended, True), (ended + cut, False)):
        result = subprocess.CompletedProcess(["git"], 128, b"", said)
        with pytest.raises(StoreError) as caught:
            Git(tmp_path)._check(["fetch"], result, bounded=True)
        assert isinstance(caught.value, TooMuchError) is limited
