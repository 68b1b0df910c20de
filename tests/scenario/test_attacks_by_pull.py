"""Attacks by a tree that brings a clone's own files: through real git and real zip files.

git and zip replace what lies in a working tree without a word, also what git ignores. So whoever
writes to the main branch, or serves board.zip, could once replace a participant's pin and keys.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from lab import FOUNDED, NEXT, Answer, Lab, commit_tree, git
from target import MINE, Files, all_played, contained, is_calm, own_target, three

pytestmark = pytest.mark.night
checked, lab = all_played, own_target

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


def _state(clone: Path) -> Mapping[str, bytes]:
    """All that is a clone's own."""
    folder = clone / ".git" / "heldout"
    files = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if name != "lock"}


def _push(lab: Lab, changes: Files, *, ref: str = "refs/heads/main") -> str:
    """A commit on top of the main branch, on the forge."""
    head = git(lab.clone, "rev-parse", "origin/main")
    commit = commit_tree(lab.clone, changes, parent=head)
    git(lab.clone, "push", "-q", "origin", f"+{commit}:{ref}")
    return commit


def _other_board(lab: Lab) -> tuple[Files, bytes]:
    """The files of a board that the attacker made of the same queries, and a pin that fits it."""
    evil, mine = lab.root / "evil", lab.root / "evil-clone"
    sets = [lab.root / f"{name}.{kind}" for name in ("dev", "eval") for kind in ("tsv", "qrels")]
    args: list[str | Path] = ["--dev", *sets[:2], "--eval", *sets[2:], "--now", FOUNDED]
    lab.call("board", "new", evil, "--vault", lab.root / "evil-vault", *args).done()
    git(lab.root, "clone", "-q", "--template=", str(evil), mine.name)
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    assert lab.participant("draft", "x", *runs, now=NEXT, clone=mine).code == 0
    names = git(evil, "ls-files").splitlines()
    files: Files = {name: ("100644", (evil / name).read_bytes()) for name in names}
    return files, _state(mine)["pinned.json"]


def _take_part(lab: Lab, clone: Path | None = None) -> list[Answer]:
    runs = ("--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run")
    return [
        lab.participant(*words, now=NEXT, clone=clone)
        for words in (
            ("audit",),
            ("check", ID),
            ("submit", ID),
            ("amend", ID),
            ("draft", "third", *runs),
        )
    ]


def _refs(lab: Lab) -> str:
    """What the forge has but the main branch."""
    return git(lab.forge, "for-each-ref", "refs/heads/submission", "refs/pull")


def _refuses_all(lab: Lab, *words: str, clone: Path | None = None) -> None:
    """No command works, and every one of them says why; nothing leaves the clone."""
    sent = _refs(lab)
    for answer in _take_part(lab, clone):
        assert answer.code != 0, answer
        assert is_calm(answer)
        assert "sound" not in answer.out
        assert any(word in answer.out + answer.err for word in words), answer
    assert _refs(lab) == sent


def _put(tree: str, name: str, kind: str, below: str) -> str:
    """A tree entry's line, whatever name git itself would refuse."""
    return f"{tree}\n{'040000' if kind == 'tree' else '100644'} {kind} {below}\t{name}".lstrip("\n")


def _push_into_git_folder(lab: Lab, changes: Files, pin: bytes) -> None:
    """The same commit with a file `.git/heldout/pinned.json` in its tree, as raw objects."""
    head = git(lab.clone, "rev-parse", "origin/main")
    commit = commit_tree(lab.clone, changes, parent=head)
    blob = git(lab.clone, "hash-object", "-w", "--stdin", data=pin)
    for name, kind in (("pinned.json", "blob"), ("heldout", "tree")):
        line = _put("", name, kind, blob)
        blob = git(lab.clone, "mktree", data=f"{line}\n".encode())
    tree = _put(git(lab.clone, "ls-tree", commit), ".git", "tree", blob)
    whole = git(lab.clone, "mktree", data=f"{tree}\n".encode())
    hostile = git(lab.clone, "commit-tree", whole, "-p", head, "-m", "hostile")
    git(lab.clone, "push", "-q", "origin", f"{hostile}:refs/heads/main")


@pytest.mark.parametrize("log", LOGS)
def test_a_log_of_another_board_is_pulled(lab: Lab, log: str) -> None:
    before = _state(lab.clone)
    assert {"pinned.json", f"keys/{ID}", f"receipts/{ID}.json"} <= before.keys()
    files, pin = _other_board(lab)
    if ".git/" in log:
        _push_into_git_folder(lab, files, pin)
        with pytest.raises(AssertionError, match=r"invalid path|would be overwritten"):
            lab.pull()
        lab.participant("submit", ID, now=NEXT).refused("history was rewritten")
        lab.participant("audit", "--receipt", _receipt(lab), now=NEXT).declined()
    elif "no " in log:
        _push(lab, files)
        lab.pull()
        _refuses_all(lab, OTHER)
    else:
        _push(lab, {**files, ".heldout/pinned.json": ("100644", pin)})
        lab.pull()
        _refuses_all(lab, "private-path")
        # Whoever removes the file finds the log refused.
        git(lab.clone, "rm", "-r", "-q", ".heldout")
        git(lab.clone, "commit", "-q", "-m", "Without it")
        _refuses_all(lab, OTHER, "private-path  origin/main")
        git(lab.clone, "push", "-q", "origin", "HEAD:main")
        _refuses_all(lab, OTHER)
    assert _state(lab.clone) == before
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
def test_a_pull_overwrites_nothing_of_a_clone(lab: Lab, name: str) -> None:
    own = lab.clone / ".git" / "heldout"
    for path in ("team/key", "tokens/board.example"):
        (own / path).parent.mkdir()
        (own / path).write_bytes(b"mine\n")
    before = _state(lab.clone)
    _push(lab, _overwrite(name))
    lab.pull()
    assert any((lab.clone / top).is_symlink() or (lab.clone / top).exists() for top in _TOPS)
    _refuses_all(lab, "private-path")
    assert _state(lab.clone) == before
    # The organisers remove it, and all is as it was.
    git(lab.clone, "reset", "-q", "--hard", "HEAD~1")
    git(lab.clone, "push", "-q", "--force", "origin", "HEAD:main")
    assert lab.participant("submit", ID, now=NEXT).code == 0
    assert lab.nothing_ran()
    contained.add(f"git pull of {name}")


_TOPS = (".heldout", "drafts")


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_pull_in_another_spelling(lab: Lab, name: str) -> None:
    before = _state(lab.clone)
    _push(lab, {f"{name}/pinned.json": ("100644", b"{}")})
    lab.pull()
    assert name in os.listdir(lab.clone)  # noqa: PTH208 - the very spelling
    _refuses_all(lab, "private-path")
    assert _state(lab.clone) == before
    contained.add(f"git pull of a folder {name}")


def test_a_branch_is_checked_out(lab: Lab) -> None:
    before = _state(lab.clone)
    changes: Files = {f".heldout/keys/{ID}": ("100644", b"x"), "drafts": ("100644", b"x")}
    _push(lab, changes, ref="refs/heads/other")
    git(lab.clone, "fetch", "-q", "origin", "other")
    git(lab.clone, "checkout", "-q", "-b", "other", "FETCH_HEAD")
    _refuses_all(lab, "private-path")
    assert _state(lab.clone) == before
    git(lab.clone, "checkout", "-q", "main")
    assert lab.participant("submit", ID, now=NEXT).code == 0
    contained.add("git checkout of a branch with .heldout and drafts")


def test_a_clean_removes_nothing_of_a_clone(lab: Lab) -> None:
    """What git removes when it is asked to remove all that it does not track."""
    before = _state(lab.clone)
    git(lab.clone, "clean", "-q", "-xffd")
    assert _state(lab.clone) == before
    assert lab.participant("audit", "--receipt", _receipt(lab), now=NEXT).code == 0
    lab.fill(ID, paper="https://example.org/newer")
    assert lab.participant("amend", ID, now=NEXT).code == 0


def _receipt(lab: Lab) -> Path:
    return lab.clone / ".git" / "heldout" / "receipts" / f"{ID}.json"


def test_what_a_reset_leaves_is_not_taken_for_ones_own(lab: Lab) -> None:
    before = _state(lab.clone)
    _push(lab, {".heldout/team/key": ("100644", b"the attacker's")})
    lab.pull()
    _refuses_all(lab, "private-path")
    git(lab.clone, "reset", "-q", "--mixed", "HEAD~1")
    git(lab.clone, "push", "-q", "--force", "origin", "HEAD:main")
    assert (lab.clone / ".heldout" / "team" / "key").exists()
    assert lab.participant("audit", now=NEXT).code == 0
    after = _state(lab.clone)
    pin = json.loads(after["pinned.json"])  # it has seen more of the same log since
    assert (pin["board"], pin["last"][0]) == (json.loads(before["pinned.json"])["board"], 4)
    assert {**after, "pinned.json": before["pinned.json"]} == before
    contained.add("a key of a team, pulled, and left in the tree by git reset")


def test_what_a_reset_leaves_in_a_new_clone_is_not_taken_for_ones_own(lab: Lab) -> None:
    _push(lab, {".heldout/team/key": ("100644", b"the attacker's")})
    clone = lab.new_clone("new")
    assert "private-path" in lab.participant("audit", now=NEXT, clone=clone).err
    git(clone, "reset", "-q", "--mixed", "HEAD~1")
    git(clone, "push", "-q", "--force", "origin", "HEAD:main")
    assert lab.participant("audit", now=NEXT, clone=clone).code == 0
    assert _state(clone).keys() == {"pinned.json"}
    contained.add("the same in a clone where no command was called before")


def test_a_main_branch_that_was_not_pulled(lab: Lab) -> None:
    before = _state(lab.clone)
    _push(lab, {".heldout/pinned.json": ("100644", b"{}")})
    sent = _refs(lab)
    for words in (("submit", ID), ("status",)):
        lab.participant(*words, now=NEXT).refused("private-path  origin/main")
    lab.participant("audit", "--receipt", _receipt(lab), now=NEXT).declined("private-path")
    assert _refs(lab) == sent
    assert _state(lab.clone) == before
    contained.add("a main branch with .heldout that was not pulled")


def test_an_organiser_pulls_a_link_to_the_vault(lab: Lab) -> None:
    _push(lab, {".heldout": ("120000", b"../vault")})
    lab.pull(lab.board)
    before = lab.state()
    for words in (("inbox",), ("publish", ID, "--yes"), ("rebuild",)):
        answer = lab.organiser(*words, now=NEXT)
        assert (answer.code, is_calm(answer)) == (2, True)
        assert "private-path" in answer.err
    assert lab.state() == before
    # What the message says is enough.
    git(lab.board, "rm", "-q", ".heldout")
    git(lab.board, "commit", "-q", "-m", "Without it")
    assert lab.organiser("rebuild", now=NEXT).code == 0
    contained.add("an organiser pulls .heldout as a symlink to the vault")


def test_a_branch_of_a_submission_brings_a_pin(lab: Lab) -> None:
    changes: Files = {**three(MINE), ".heldout/pinned.json": ("100644", b"{}")}
    _push(lab, changes, ref=f"refs/heads/submission/{MINE}")
    said = [one for one in lab.take_in(now=NEXT)["received"] if one["kind"] == "refused"]
    assert [[p["code"] for p in one["problems"]] for one in said] == [["private-path"]]
    assert MINE not in (lab.board / "log.jsonl").read_text()
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
def test_a_hostile_board_zip_over_an_unpacked_board(lab: Lab, brought: str) -> None:
    folder = lab.root / "unpacked"
    names = git(lab.board, "ls-files").splitlines()
    honest = {name: (lab.board / name).read_bytes() for name in names}
    _unzip(_zip(lab.root / "board.zip", honest), folder)
    sent = lab.root / "sent"
    first = lab.draft("fourth", now=NEXT, seed=4, clone=folder)
    assert lab.participant("submit", first, "--to", sent, now=NEXT, clone=folder).code == 0
    (own,) = lab.states.iterdir()
    before = {path: path.read_bytes() for path in own.rglob("*") if path.is_file()}
    assert {own / "pinned.json", own / f"keys/{first}"} <= before.keys()
    assert not (folder / ".heldout").exists()
    # The same again, as a team fetches it for a later day.
    _unzip(_zip(lab.root / "board.zip", honest), folder)
    assert lab.participant("audit", now=NEXT, clone=folder).code == 0

    files, pin = _other_board(lab)
    hostile = {name: data for name, (_, data) in ((n, c) for n, c in files.items() if c)}
    if ".git" in brought:
        git(lab.root / "evil-clone", "gc", "-q")
        inside = lab.root / "evil-clone" / ".git"
        hostile |= {
            f".git/{path.relative_to(inside).as_posix()}": path.read_bytes()
            for path in inside.rglob("*")
            if path.is_file()
        }
    else:
        hostile[".heldout/pinned.json"] = pin
    _unzip(_zip(lab.root / "hostile.zip", hostile), folder)
    arrived = sorted(sent.iterdir())
    for words in (("audit",), ("check", first), ("submit", first, "--to", sent)):
        answer = lab.participant(*words, now=NEXT, clone=folder)
        assert answer.code != 0, answer
        assert "sound" not in answer.out
        wanted = OTHER if ".git" in brought else "private-path"
        assert wanted in answer.out + answer.err, answer
    assert sorted(sent.iterdir()) == arrived
    assert {path: path.read_bytes() for path in before} == before
    contained.add(f"a board.zip of another board, unpacked over the first, with {brought}")
