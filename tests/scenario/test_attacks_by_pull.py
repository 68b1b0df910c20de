"""Attacks by a tree that brings a clone's own files: through real git and real zip files.

git and zip replace what lies in a working tree without a word, also what git ignores. So whoever
writes to the main branch, or serves board.zip, could once replace a participant's pin and keys.
"""

import contextlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from stage import LATER, MINE, Files, Stage, check_all_played, is_calm, set_stage, three
from town import FOUNDED, Answer, Town, call, commit_tree, git

pytestmark = [pytest.mark.slow, pytest.mark.night]
contained: set[str] = set()

ID = "20261102-second"  # of the submission that waits; its draft lies in the clone
OTHER = "of another board than this clone has worked with"

LOGS = ("a fitting .heldout/pinned.json", "no pinned.json", "a fitting .git/heldout/pinned.json")
# What was in a clone's tree before: its name in `.git/heldout` is the same, without `.heldout/`.
OVERWRITTEN = (
    *("keys/ID", "receipts/ID.json", "packed/ID.json", "team/key", "tokens/HOST"),
    *("a draft's metadata", ".heldout as a symlink", ".heldout as a submodule"),
    *("drafts as a file", "both as symlinks"),
)
SPELLINGS = (".HELDOUT", "Drafts", ".heldout ", ".heldout.", "drafts::$DATA", "HELDOU~1")
ARCHIVES = ("a fitting .heldout/pinned.json", "a .git folder with a fitting pinned.json")


@pytest.fixture
def stage(tmp_path: Path) -> "contextlib.AbstractContextManager[Stage]":
    return set_stage(tmp_path)


def _state(clone: Path) -> Mapping[str, bytes]:
    """All that is a clone's own."""
    folder = clone / ".git" / "heldout"
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "lock"}


def _push(town: Town, changes: Files, *, ref: str = "refs/heads/main") -> str:
    """A commit on top of the main branch, on the forge."""
    head = git(town.clone, "rev-parse", "origin/main")
    commit = commit_tree(town.clone, changes, parent=head)
    git(town.clone, "push", "-q", "origin", f"+{commit}:{ref}")
    return commit


def _other_board(town: Town) -> tuple[Files, bytes]:
    """The files of a board that the attacker made of the same queries, and a pin that fits it."""
    evil, mine = town.root / "evil", town.root / "evil-clone"
    sets = [town.root / f"{name}.{kind}" for name in ("dev", "eval") for kind in ("tsv", "qrels")]
    told: list[str | Path] = ["--dev", *sets[:2], "--eval", *sets[2:], "--now", FOUNDED]
    call(town.root, "board", "new", evil, "--vault", town.root / "evil-vault", *told).done()
    git(town.root, "clone", "-q", "--template=", str(evil), mine.name)
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    assert town.participant("draft", "x", *runs, now=LATER, clone=mine).code == 0
    names = git(evil, "ls-files").splitlines()
    files: Files = {name: ("100644", (evil / name).read_bytes()) for name in names}
    return files, _state(mine)["pinned.json"]


def _take_part(town: Town, clone: Path | None = None) -> list[Answer]:
    runs = ("--dev", town.root / "dev.run", "--eval", town.root / "eval.run")
    return [
        town.participant(*words, now=LATER, clone=clone)
        for words in (
            ("audit",),
            ("check", ID),
            ("submit", ID),
            ("amend", ID),
            ("draft", "third", *runs),
        )
    ]


def _refs(town: Town) -> str:
    """What the forge has but the main branch."""
    return git(town.forge, "for-each-ref", "refs/heads/submission", "refs/pull")


def _refuses_all(town: Town, *words: str, clone: Path | None = None) -> None:
    """No command works, and every one of them says why; nothing leaves the clone."""
    sent = _refs(town)
    for answer in _take_part(town, clone):
        assert answer.code != 0, answer
        assert is_calm(answer)
        assert "sound" not in answer.out
        assert any(word in answer.out + answer.err for word in words), answer
    assert _refs(town) == sent


def _put(tree: str, name: str, kind: str, below: str) -> str:
    """A tree entry's line, whatever name git itself would refuse."""
    return f"{tree}\n{'040000' if kind == 'tree' else '100644'} {kind} {below}\t{name}".lstrip("\n")


def _push_into_git_folder(town: Town, changes: Files, pin: bytes) -> None:
    """The same commit with a file `.git/heldout/pinned.json` in its tree, as raw objects."""
    head = git(town.clone, "rev-parse", "origin/main")
    commit = commit_tree(town.clone, changes, parent=head)
    blob = git(town.clone, "hash-object", "-w", "--stdin", data=pin)
    for name, kind in (("pinned.json", "blob"), ("heldout", "tree")):
        line = _put("", name, kind, blob)
        blob = git(town.clone, "mktree", data=f"{line}\n".encode())
    tree = _put(git(town.clone, "ls-tree", commit), ".git", "tree", blob)
    whole = git(town.clone, "mktree", data=f"{tree}\n".encode())
    hostile = git(town.clone, "commit-tree", whole, "-p", head, "-m", "hostile")
    git(town.clone, "push", "-q", "origin", f"{hostile}:refs/heads/main")


@pytest.mark.parametrize("log", LOGS)
def test_a_log_of_another_board_is_pulled(
    stage: "contextlib.AbstractContextManager[Stage]", log: str
) -> None:
    with stage as here:
        town = here.town
        before = _state(town.clone)
        assert {"pinned.json", f"keys/{ID}", f"receipts/{ID}.json"} <= before.keys()
        files, pin = _other_board(town)
        if ".git/" in log:
            _push_into_git_folder(town, files, pin)
            with pytest.raises(AssertionError, match=r"invalid path|would be overwritten"):
                town.pull()
            answer = town.participant("submit", ID, now=LATER)
            assert (answer.code, "history was rewritten" in answer.err) == (2, True), answer
            told = town.participant("audit", "--receipt", _receipt(town), now=LATER)
            assert told.code == 1, told
        elif "no " in log:
            _push(town, files)
            town.pull()
            _refuses_all(town, OTHER)
        else:
            _push(town, {**files, ".heldout/pinned.json": ("100644", pin)})
            town.pull()
            _refuses_all(town, "private-path")
            # Whoever removes the file finds the log refused.
            git(town.clone, "rm", "-r", "-q", ".heldout")
            git(town.clone, "commit", "-q", "-m", "Without it")
            _refuses_all(town, OTHER, "private-path  origin/main")
            git(town.clone, "push", "-q", "origin", "HEAD:main")
            _refuses_all(town, OTHER)
        assert _state(town.clone) == before
    contained.add(f"git pull of another board's log and keys, with {log}")


def _overwrite(name: str) -> Files:
    mine = ("100644", b"the attacker's\n")
    named: dict[str, Files] = {
        "keys/ID": {f".heldout/keys/{ID}": mine},
        "receipts/ID.json": {f".heldout/receipts/{ID}.json": mine},
        "packed/ID.json": {f".heldout/packed/{ID}.json": mine},
        "team/key": {".heldout/team/key": mine, ".heldout/team/registration.json": mine},
        "tokens/HOST": {".heldout/tokens/board.example": mine},
        "a draft's metadata": {f"drafts/{ID}/metadata.json": mine},
        ".heldout as a symlink": {".heldout": ("120000", b"../elsewhere")},
        ".heldout as a submodule": {".heldout": ("160000", b"1" * 40)},
        "drafts as a file": {"drafts": mine},
        "both as symlinks": {
            ".heldout": ("120000", b"queries"),
            "drafts": ("120000", b".git/heldout/drafts"),
        },
    }
    return named[name]


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_a_pull_overwrites_nothing_of_a_clone(
    stage: "contextlib.AbstractContextManager[Stage]", name: str
) -> None:
    with stage as here:
        town = here.town
        own = town.clone / ".git" / "heldout"
        for path in ("team/key", "tokens/board.example"):
            (own / path).parent.mkdir()
            (own / path).write_bytes(b"mine\n")
        before = _state(town.clone)
        _push(town, _overwrite(name))
        town.pull()
        assert any((town.clone / top).is_symlink() or (town.clone / top).exists() for top in _TOPS)
        _refuses_all(town, "private-path")
        assert _state(town.clone) == before
        # The organisers remove it, and all is as it was.
        git(town.clone, "reset", "-q", "--hard", "HEAD~1")
        git(town.clone, "push", "-q", "--force", "origin", "HEAD:main")
        assert town.participant("submit", ID, now=LATER).code == 0
        assert here.nothing_ran()
    contained.add(f"git pull of {name}")


_TOPS = (".heldout", "drafts")


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_pull_in_another_spelling(
    stage: "contextlib.AbstractContextManager[Stage]", name: str
) -> None:
    with stage as here:
        town = here.town
        before = _state(town.clone)
        _push(town, {f"{name}/pinned.json": ("100644", b"{}")})
        town.pull()
        assert name in os.listdir(town.clone)  # noqa: PTH208 - the very spelling
        _refuses_all(town, "private-path")
        assert _state(town.clone) == before
    contained.add(f"git pull of a folder {name}")


def test_a_branch_is_checked_out(stage: "contextlib.AbstractContextManager[Stage]") -> None:
    with stage as here:
        town = here.town
        before = _state(town.clone)
        changes: Files = {f".heldout/keys/{ID}": ("100644", b"x"), "drafts": ("100644", b"x")}
        _push(town, changes, ref="refs/heads/other")
        git(town.clone, "fetch", "-q", "origin", "other")
        git(town.clone, "checkout", "-q", "-b", "other", "FETCH_HEAD")
        _refuses_all(town, "private-path")
        assert _state(town.clone) == before
        git(town.clone, "checkout", "-q", "main")
        assert town.participant("submit", ID, now=LATER).code == 0
    contained.add("git checkout of a branch with .heldout and drafts")


def test_a_clean_removes_nothing_of_a_clone(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    """What git removes when it is asked to remove all that it does not track."""
    with stage as here:
        town = here.town
        before = _state(town.clone)
        git(town.clone, "clean", "-q", "-xffd")
        assert _state(town.clone) == before
        assert town.participant("audit", "--receipt", _receipt(town), now=LATER).code == 0
        town.fill(ID, paper="https://example.org/newer")
        assert town.participant("amend", ID, now=LATER).code == 0


def _receipt(town: Town) -> Path:
    return town.clone / ".git" / "heldout" / "receipts" / f"{ID}.json"


def test_what_a_reset_leaves_is_not_taken_for_ones_own(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town = here.town
        before = _state(town.clone)
        _push(town, {".heldout/team/key": ("100644", b"the attacker's")})
        town.pull()
        _refuses_all(town, "private-path")
        git(town.clone, "reset", "-q", "--mixed", "HEAD~1")
        git(town.clone, "push", "-q", "--force", "origin", "HEAD:main")
        assert (town.clone / ".heldout" / "team" / "key").exists()
        assert town.participant("audit", now=LATER).code == 0
        after = _state(town.clone)
        pin = json.loads(after["pinned.json"])  # it has seen more of the same log since
        assert (pin["board"], pin["last"][0]) == (json.loads(before["pinned.json"])["board"], 4)
        assert {**after, "pinned.json": before["pinned.json"]} == before
    contained.add("a key of a team, pulled, and left in the tree by git reset")


def test_what_a_reset_leaves_in_a_new_clone_is_not_taken_for_ones_own(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town = here.town
        _push(town, {".heldout/team/key": ("100644", b"the attacker's")})
        clone = town.new_clone("new")
        assert "private-path" in town.participant("audit", now=LATER, clone=clone).err
        git(clone, "reset", "-q", "--mixed", "HEAD~1")
        git(clone, "push", "-q", "--force", "origin", "HEAD:main")
        assert town.participant("audit", now=LATER, clone=clone).code == 0
        assert _state(clone).keys() == {"pinned.json"}
    contained.add("the same in a clone where no command was called before")


def test_a_main_branch_that_was_not_pulled(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town = here.town
        before = _state(town.clone)
        _push(town, {".heldout/pinned.json": ("100644", b"{}")})
        sent = _refs(town)
        for words in (("submit", ID), ("status",)):
            answer = town.participant(*words, now=LATER)
            assert (answer.code, "private-path  origin/main" in answer.err) == (2, True), answer
        told = town.participant("audit", "--receipt", _receipt(town), now=LATER)
        assert (told.code, "private-path" in told.out) == (1, True), told
        assert _refs(town) == sent
        assert _state(town.clone) == before
    contained.add("a main branch with .heldout that was not pulled")


def test_an_organiser_pulls_a_link_to_the_vault(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town = here.town
        _push(town, {".heldout": ("120000", b"../vault")})
        town.pull(town.board)
        before = here.state()
        for words in (("inbox",), ("publish", ID, "--yes"), ("rebuild",)):
            answer = town.organiser(*words, now=LATER)
            assert (answer.code, is_calm(answer)) == (2, True)
            assert "private-path" in answer.err
        assert here.state() == before
        # What the message says is enough.
        git(town.board, "rm", "-q", ".heldout")
        git(town.board, "commit", "-q", "-m", "Without it")
        assert town.organiser("rebuild", now=LATER).code == 0
    contained.add("an organiser pulls .heldout as a symlink to the vault")


def test_a_branch_of_a_submission_brings_a_pin(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town = here.town
        changes: Files = {**three(MINE), ".heldout/pinned.json": ("100644", b"{}")}
        _push(town, changes, ref=f"refs/heads/submission/{MINE}")
        told = [one for one in town.take_in(now=LATER)["received"] if one["kind"] == "refused"]
        assert [[p["code"] for p in one["problems"]] for one in told] == [["private-path"]]
        assert MINE not in (town.board / "log.jsonl").read_text()
    contained.add("a submission's branch that brings .heldout/pinned.json")


def _zip(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as target:
        for name, data in files.items():
            target.writestr(name, data)
    return path


def _unzip(path: Path, folder: Path) -> None:
    """As a person does it: over what lies there."""
    command = [sys.executable, "-m", "zipfile", "-e", str(path), str(folder)]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("brought", ARCHIVES)
def test_a_hostile_board_zip_over_an_unpacked_board(
    stage: "contextlib.AbstractContextManager[Stage]", brought: str
) -> None:
    with stage as here:
        town, folder = here.town, here.town.root / "unpacked"
        names = git(town.board, "ls-files").splitlines()
        honest = {name: (town.board / name).read_bytes() for name in names}
        _unzip(_zip(town.root / "board.zip", honest), folder)
        sent = town.root / "sent"
        first = town.draft("fourth", now=LATER, seed=4, clone=folder)
        assert town.participant("submit", first, "--to", sent, now=LATER, clone=folder).code == 0
        (own,) = town.states.iterdir()
        before = {path: path.read_bytes() for path in own.rglob("*") if path.is_file()}
        assert {own / "pinned.json", own / f"keys/{first}"} <= before.keys()
        assert not (folder / ".heldout").exists()
        # The same again, as a team fetches it for a later day.
        _unzip(_zip(town.root / "board.zip", honest), folder)
        assert town.participant("audit", now=LATER, clone=folder).code == 0

        files, pin = _other_board(town)
        hostile = {name: data for name, (_, data) in ((n, c) for n, c in files.items() if c)}
        if ".git" in brought:
            git(town.root / "evil-clone", "gc", "-q")
            inside = town.root / "evil-clone" / ".git"
            hostile |= {
                f".git/{path.relative_to(inside).as_posix()}": path.read_bytes()
                for path in inside.rglob("*")
                if path.is_file()
            }
        else:
            hostile[".heldout/pinned.json"] = pin
        _unzip(_zip(town.root / "hostile.zip", hostile), folder)
        arrived = sorted(sent.iterdir())
        for words in (("audit",), ("check", first), ("submit", first, "--to", sent)):
            answer = town.participant(*words, now=LATER, clone=folder)
            assert answer.code != 0, answer
            assert "sound" not in answer.out
            wanted = OTHER if ".git" in brought else "private-path"
            assert wanted in answer.out + answer.err, answer
        assert sorted(sent.iterdir()) == arrived
        assert {path: path.read_bytes() for path in before} == before
    contained.add(f"a board.zip of another board, unpacked over the first, with {brought}")


def test_all_attacks_are_contained(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last: all that the table says of this module was played."""
    check_all_played(contained, request, capsys)
