"""git by plumbing: what is read, what is written, what is said when it fails."""

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from heldout.board.store.git import Author, Bounds, Change, Git, TooMuchError
from heldout.errors import SetupError, StoreError

AT = datetime(2026, 11, 2, 10, tzinfo=UTC)
SOMEONE = Author(name="Someone", email="someone@here")


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
    made = git.commit_paths(list(files), message="x", author=SOMEONE, at=AT)
    assert made is not None
    return made


def author_of(git: Git, made: str) -> Author:
    command = ["git", "-C", str(git.root), "show", "-s", "--format=%an%x00%ae", made]
    shown = subprocess.run(command, capture_output=True, check=True).stdout
    name, _, email = shown.decode(errors="replace").strip("\n").partition("\0")
    return Author(name=name, email=email)


def test_a_commit_has_the_given_paths_author_and_time(git: Git) -> None:
    (git.root / "other").write_text("not asked for")
    made = commit(git, a="1")
    assert git.head() == made
    assert author_of(git, made) == SOMEONE
    assert git.read_path(made, "a", limit=10) == b"1"
    assert git.read_path(made, "other", limit=10) is None
    assert git.commit_paths(["a"], message="x", author=SOMEONE, at=AT) is None
    stamp = subprocess.run(
        ["git", "show", "-s", "--format=%ct"], cwd=git.root, capture_output=True, check=True
    )
    assert int(stamp.stdout) == int(AT.timestamp())


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
    made = git.commit_paths(["a"], message="x", author=SOMEONE, at=AT)
    assert made is not None
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
    run = ["git", "-c", "user.name=x", "-c", "user.email=x"]
    merge = [*run, "merge-tree", "--write-tree", main, side]
    tree = subprocess.run(merge, cwd=git.root, capture_output=True, check=True).stdout.split()[0]
    made = [*run, "commit-tree", tree.decode(), "-p", side, "-p", main, "-m", "merge"]
    ran = subprocess.run(made, cwd=git.root, capture_output=True, check=True)
    tip = ran.stdout.decode().strip()
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
    made = git.commit_paths(["a"], message="x", author=author, at=AT)
    assert made is not None
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


def test_a_git_before_2_28_makes_the_same_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It knows neither `init -b` nor `init.defaultBranch`, and begins with a branch `master`."""
    real = shutil.which("git")
    assert real is not None
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


def test_a_branch_of_one_s_own_choice_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_without_git_and_with_an_old_one_the_answer_says_what_to_install(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    def run(*words: str) -> None:
        subprocess.run(["git", *words], cwd=git.root, capture_output=True, check=True)

    assert git.unpushed() == 0
    commit(git, a="1")
    assert git.unpushed() == 0
    run("init", "-q", "--bare", "forge")
    run("remote", "add", "origin", str(git.root / "forge"))
    commit(git, a="2")
    assert git.unpushed() == 2
    git.push("origin", "main:main")
    assert git.unpushed() == 0
    last = commit(git, a="3")
    assert git.unpushed() == 1
    run("checkout", "-q", "--detach", last)
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
    found = git.kinds_and_sizes(tree, bounds=Bounds(seconds=20))
    assert found == (("tree", 0),)


def test_git_without_memory_is_no_cut_connection_though_it_cuts_one(tmp_path: Path) -> None:
    cut = b"fatal: fetch-pack: unexpected disconnect while reading sideband packet\n"
    short = b"fatal: Out of memory, malloc failed (tried to allocate 41943045 bytes)\n"
    ended = b"error: index-pack died of signal 24\n"
    for said, limited in ((short + cut, True), (ended, True), (ended + cut, False)):
        result = subprocess.CompletedProcess(["git"], 128, b"", said)
        with pytest.raises(StoreError) as caught:
            Git(tmp_path)._check(["fetch"], result, bounded=True)
        assert isinstance(caught.value, TooMuchError) is limited
