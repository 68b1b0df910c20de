"""What a participant may push: data, whatever it is. Every case is named after the attack.

A hostile branch is made with plumbing and pushed to the forge; the organiser's inbox has to
refuse it with a reason and go on, and nothing of it may be checked out or run.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from town import OTHER_TEAM, Town, commit_tree, found_town, git

from heldout.store import arrivals

pytestmark = pytest.mark.slow
NOW = "2026-11-02T12:00:00Z"
ID = "20261102-one"
Change = tuple[str, bytes] | None
NAMES = [
    f"submissions/{ID}.tar.age",
    f"submissions/{ID}-metadata.json.age",
    f"submissions/{ID}.key.age",
]
SEALED: dict[str, Change] = {name: ("100644", name.encode()) for name in NAMES}


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return found_town(tmp_path)


def push(
    town: Town, changes: Mapping[str, Change], *, ref: str = f"refs/heads/submission/{ID}"
) -> None:
    commit = commit_tree(town.clone, changes, parent="HEAD")
    git(town.clone, "push", "-q", "origin", f"+{commit}:{ref}")


def refusals(town: Town) -> list[str]:
    """Codes of what the inbox refused; nothing may have been received."""
    found = town.take_in(now=NOW)["received"]
    assert {receipt["kind"] for receipt in found} <= {"refused"}
    assert "received" not in town.kinds()
    assert town.audit()["ok"]
    return [problem["code"] for receipt in found for problem in receipt["problems"]]


def test_the_honest_branch_is_taken(town: Town) -> None:
    push(town, SEALED)
    assert [r["kind"] for r in town.take_in(now=NOW)["received"]] == ["received"]


@pytest.mark.parametrize("theirs", [ID, ID.upper()])
def test_an_id_that_was_read_on_somebody_s_branch(town: Town, theirs: str) -> None:
    """Refs of pull requests sort before branches: the order of names must decide nothing."""
    push(town, SEALED)
    squatted = {name.replace(ID, theirs): ("100644", b"mine") for name in NAMES}
    push(town, squatted, ref="refs/pull/7/head")
    assert refusals(town) == ["id-conflict", "id-conflict"]
    told = town.organiser("inbox", now=NOW)
    assert f"from branch submission/{ID}" in told.out + told.err
    wrong = town.organiser("inbox", "--accept", "pull request 9", now=NOW)
    assert wrong.code == 2
    assert "pull request 7" in wrong.err
    source = f"branch submission/{ID}"
    answer = town.organiser("inbox", "--accept", source, "--json", now=NOW)
    kinds = {r["source"]: r["kind"] for r in answer.json["received"]}
    assert kinds == {source: "received", "pull request 7": "refused"}
    files = next(e for e in town.events() if e["kind"] == "received")["public"]["files"]
    assert files == {
        name.rpartition("/")[2]: hashlib.sha256(data).hexdigest()
        for name, (_, data) in ((n, c) for n, c in SEALED.items() if c is not None)
    }
    (late,) = [r for r in town.take_in(now=NOW)["received"] if r["kind"] == "refused"]
    assert [problem["code"] for problem in late["problems"]] == ["id-taken"]


def test_the_same_files_on_a_branch_and_in_a_request_are_no_conflict(town: Town) -> None:
    push(town, SEALED)
    push(town, SEALED, ref="refs/pull/7/head")
    assert [r["kind"] for r in town.take_in(now=NOW)["received"]] == ["received"]


def test_a_broken_request_under_somebody_s_id_contests_nothing(town: Town) -> None:
    push(town, SEALED)
    push(town, {NAMES[0]: ("100644", b"mine")}, ref="refs/pull/7/head")
    found = {r["source"]: r["kind"] for r in town.take_in(now=NOW)["received"]}
    assert found == {f"branch submission/{ID}": "received", "pull request 7": "refused"}


def _as_one_name() -> Mapping[str, Change]:
    """One file whose name holds the names and blobs of the others, line by line."""
    *first, last = sorted(SEALED)
    blobs = {name: git_blob(name.encode()) for name in SEALED}
    return {"\n".join([*(f"{n} {blobs[n]}" for n in first), last]): ("100644", last.encode())}


def _as_programs() -> Mapping[str, Change]:
    return {name: ("100755", name.encode()) for name in NAMES}


def git_blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("attack", [_as_one_name, _as_programs])
def test_a_refused_branch_with_the_same_fingerprint_hides_no_submission(
    town: Town, attack: Callable[[], Mapping[str, Change]]
) -> None:
    """Everybody can read the blobs on another team's branch, and name a branch that sorts first."""
    push(town, SEALED)
    push(town, attack(), ref="refs/heads/submission/20261101-first")
    found = town.take_in(now=NOW)["received"]
    assert sorted(r["kind"] for r in found) == ["received", "refused"]


FOREIGN: Mapping[str, Mapping[str, Change]] = {
    "an extra file": {"submissions/readme.txt": ("100644", b"x")},
    "an extra file at the top": {"evil.py": ("100644", b"import os")},
    "a deleted file": {"README.md": None},
    "a deleted log": {"log.jsonl": None},
    "a changed board.toml": {"board.toml": ("100644", b"schema = 1")},
    "a changed log": {"log.jsonl": ("100644", b"{}\n")},
    "a changed leaderboard": {"leaderboard/leaderboard.json": ("100644", b"{}")},
    "a workflow": {".github/workflows/run.yml": ("100644", b"on: push")},
    "attributes with a filter": {".gitattributes": ("100644", b"* filter=evil\n")},
    "attributes beside the files": {"submissions/.gitattributes": ("100644", b"* filter=evil\n")},
    "gitmodules": {".gitmodules": ("100644", b'[submodule "x"]\n\tpath = x\n\turl = /etc\n')},
    "a symlink": {NAMES[0]: ("120000", b"/etc/passwd")},
    "a symlink for the folder": {"submissions-link": ("120000", b"submissions")},
    "a submodule": {"submissions/module": ("160000", b"1" * 40)},
    "a submodule for a file": {NAMES[2]: ("160000", b"1" * 40)},
    "an executable": {NAMES[0]: ("100755", b"#!/bin/sh\n")},
    "files of two submissions": {
        name.replace(ID, "20261102-two"): ("100644", b"x") for name in NAMES
    },
    "control characters in a name": {"submissions/\x1b[31mred\x07": ("100644", b"x")},
    "a newline in a name": {f"submissions/{ID}\n.tar.age": ("100644", b"x")},
    "an id with shell characters": {"submissions/20261102-$(id).tar.age": ("100644", b"x")},
    "an id with dots": {"submissions/20261102-a..b.tar.age": ("100644", b"x")},
    "a folder deeper": {f"submissions/deep/{ID}.tar.age": ("100644", b"x")},
    "upper-case folder": {f"Submissions/{ID}.tar.age": ("100644", b"x")},
    "a file of the other form": {f"submissions/{ID}.tar.enc": ("100644", b"x")},
    "a right-to-left override": {"submissions/20261102-\u202egnp.tar.age": ("100644", b"x")},
}


@pytest.mark.parametrize("attack", FOREIGN)
def test_foreign_change(town: Town, attack: str) -> None:
    push(town, {**SEALED, **FOREIGN[attack]})
    assert set(refusals(town)) == {"foreign-change"}
    answer = town.organiser("inbox", now=NOW)
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out


MALFORMED: Mapping[str, Mapping[str, Change]] = {
    "no key": {name: SEALED[name] for name in NAMES[:2]},
    "no metadata": {name: SEALED[name] for name in (NAMES[0], NAMES[2])},
    "the tar alone": {NAMES[0]: SEALED[NAMES[0]]},
    "the key alone": {NAMES[2]: SEALED[NAMES[2]]},
}


@pytest.mark.parametrize("case", MALFORMED)
def test_missing_file(town: Town, case: str) -> None:
    push(town, MALFORMED[case])
    assert refusals(town) == ["missing-file"]


def test_metadata_alone_of_an_id_that_nobody_sent(town: Town) -> None:
    push(town, {NAMES[1]: SEALED[NAMES[1]]})
    assert refusals(town) == ["nothing-to-update"]


def test_path_with_dot_dot(town: Town) -> None:
    """git's own porcelain refuses such a tree, so it is written as raw objects."""
    blob = git(town.clone, "hash-object", "-w", "--stdin", data=b"owned")
    inner = git(town.clone, "mktree", data=f"100644 blob {blob}\tboard.toml\n".encode())
    old = git(town.clone, "ls-tree", "HEAD").encode()
    tree = git(town.clone, "mktree", data=old + f"\n040000 tree {inner}\t..\n".encode())
    commit = git(town.clone, "commit-tree", tree, "-p", "HEAD", "-m", "up")
    git(town.clone, "push", "-q", "origin", f"{commit}:refs/heads/submission/{ID}")
    assert refusals(town) == ["foreign-change"]
    assert not (town.root / "board.toml").exists()


def test_huge_blob(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_MOST_BYTES", 1000)
    push(town, {**SEALED, NAMES[0]: ("100644", b"x" * 1001)})
    assert refusals(town) == ["too-large"]


def test_huge_file_in_a_folder(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_MOST_BYTES", 1000)
    folder = town.root / "uploads"
    folder.mkdir()
    for name in NAMES:
        (folder / Path(name).name).write_bytes(b"x" * 1001)
    found = town.organiser("inbox", "--from", folder, "--json", now=NOW).json["received"]
    assert [p["code"] for p in found[0]["problems"]] == ["too-large"] * 3


def test_a_thousand_files_are_told_in_ten_lines(town: Town) -> None:
    many = {f"junk/{i}": ("100644", b"x") for i in range(300)}
    push(town, {**SEALED, **many})
    assert len(refusals(town)) == 10


def test_branch_that_does_not_descend_from_main(town: Town) -> None:
    orphan = commit_tree(town.clone, SEALED, parent=None)
    git(town.clone, "push", "-q", "origin", f"{orphan}:refs/heads/submission/{ID}")
    assert refusals(town) == ["foreign-history"]


def test_pull_request_ref_that_names_no_commit(town: Town) -> None:
    blob = git(town.forge, "hash-object", "-w", "--stdin", data=b"no commit")
    git(town.forge, "update-ref", "refs/pull/6/head", blob)
    push(town, SEALED, ref="refs/pull/7/head")
    found = town.take_in(now=NOW)["received"]
    assert [(r["kind"], r["source"]) for r in found] == [("received", "pull request 7")]


HOSTILE_NAMES: Mapping[str, bytes] = {
    "a name that is not UTF-8": b"submission/caf\xe9",
    "a line separator in a name": "submission/a\u2028b".encode(),
    "a next-line character in a name": "submission/20261102-a\x85b".encode(),
    "spaces of other scripts": "submission/20261102-a\u3000b\u00a0c".encode(),
    "a right-to-left override": "submission/20261102-\u202egnp".encode(),
    "no id": b"submission/-rf",
    "a main line that is not UTF-8": b"main\xe9",
}


@pytest.mark.parametrize("attack", HOSTILE_NAMES)
def test_a_branch_of_a_hostile_name_stops_neither_inbox_nor_submit(town: Town, attack: str) -> None:
    """Not even when a clone has pulled it, nor when the branch is gone again on the forge."""
    commit = commit_tree(town.clone, {**SEALED, "evil": ("100644", b"x")}, parent="HEAD")
    name = b"refs/heads/" + HOSTILE_NAMES[attack]
    spec = commit.encode() + b":" + name
    subprocess.run([b"git", b"push", b"-q", b"origin", spec], cwd=town.clone, check=True)
    git(town.clone, "fetch", "-q", "origin")
    good = town.send("good", now=NOW)
    found = {r["id"]: r["kind"] for r in town.take_in(now=NOW)["received"]}
    assert found[good] == "received"
    told = town.organiser("inbox", "--all", now=NOW)
    assert told.code == 0
    assert (told.out + told.err).replace("\n", "").isprintable()
    subprocess.run([b"git", b"push", b"-q", b"origin", b":" + name], cwd=town.clone, check=True)
    assert town.take_in(now=NOW)["received"] == []
    assert town.participant("submit", good, now=NOW).code == 0


def test_a_branch_below_somebody_s_id_that_was_removed_again(town: Town) -> None:
    """git cannot keep `submission/ID` beside `submission/ID/x`: the second would never arrive."""
    push(town, {"evil": ("100644", b"x")}, ref=f"refs/heads/submission/{ID}/x")
    assert refusals(town) == ["foreign-change"]
    git(town.clone, "push", "-q", "origin", f":refs/heads/submission/{ID}/x")
    push(town, SEALED)
    assert [r["kind"] for r in town.take_in(now=NOW)["received"]] == ["received"]


def test_a_bad_branch_does_not_stop_the_good_one(town: Town) -> None:
    push(town, {"board.toml": None})
    good = town.send("good", now=NOW, team=OTHER_TEAM)
    found = {r["id"]: r["kind"] for r in town.take_in(now=NOW)["received"]}
    assert found == {None: "refused", good: "received"}


def test_garbage_for_sealed_files_is_refused_at_review(town: Town) -> None:
    push(town, SEALED)
    town.take_in(now=NOW)
    answer = town.organiser("review", ID, "--json", now=NOW)
    assert answer.code == 1
    (review,) = answer.json["reviews"]
    assert [f["rule"] for f in review["findings"]] == ["sealed"]
    assert review["scores"] is None
    assert town.publish(ID, now=NOW).code == 1
    assert "published" not in town.kinds()


@pytest.mark.parametrize(
    "name",
    [
        "20261102-$(touch pwned).tar.age",
        "20261102-a;b.tar.age",
        "../20261102-up.tar.age".replace("/", "_"),
        "20261399-one.tar.age",
        "-rf.tar.age",
        f"20261102-{'x' * 65}.tar.age",
        "20261102-ünïcode.tar.age",
    ],
)
def test_hostile_file_names_in_a_folder_are_no_submissions(town: Town, name: str) -> None:
    folder = town.root / "uploads"
    folder.mkdir()
    (folder / name).write_bytes(b"x")
    answer = town.organiser("inbox", "--from", folder, "--json", now=NOW)
    assert (answer.code, answer.json["received"]) == (0, [])


def test_symlink_in_a_folder_is_not_followed(town: Town) -> None:
    folder = town.root / "uploads"
    folder.mkdir()
    for name in NAMES:
        (folder / Path(name).name).symlink_to(town.vault / "labels" / "eval.qrels")
    answer = town.organiser("inbox", "--from", folder, "--json", now=NOW)
    assert answer.json["received"] == []


def _config(board: Path, key: str, value: str) -> None:
    git(board, "config", key, value)


def _hooks(board: Path, trap: str) -> None:
    hooks = board / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "pre-commit", "post-commit", "reference-transaction"):
        (hooks / name).symlink_to(trap)


def _filters(board: Path, trap: str) -> None:
    """The drivers are there; a participant's .gitattributes asks for them."""
    for kind in ("clean", "smudge", "process"):
        _config(board, f"filter.evil.{kind}", trap)


def _signing(board: Path, trap: str) -> None:
    for key, value in (
        ("gpg.program", trap),
        ("commit.gpgSign", "true"),
        ("log.showSignature", "true"),
    ):
        _config(board, key, value)


TRAPS: Mapping[str, Callable[[Path, str], None]] = {
    "hooks": _hooks,
    "fsmonitor": lambda board, trap: _config(board, "core.fsmonitor", trap),
    "hooks path": lambda board, trap: _config(board, "core.hooksPath", str(Path(trap).parent)),
    "clean and smudge filters": _filters,
    "external diff": lambda board, trap: _config(board, "diff.external", trap),
    "textconv": lambda board, trap: _config(board, "diff.evil.textconv", trap),
    "signing program": _signing,
    "editor": lambda board, trap: _config(board, "core.editor", trap),
    "pager": lambda board, trap: _config(board, "core.pager", trap),
}


@pytest.mark.parametrize("kind", TRAPS)
def test_nothing_is_run_in_the_organisers_clone(town: Town, kind: str) -> None:
    """A program that would leave a trace waits wherever git could be made to start one."""
    trap = town.root / "traps" / "pre-commit"
    trap.parent.mkdir()
    trap.write_text(f"#!/bin/sh\ntouch {town.root}/pwned\ncat\n")
    trap.chmod(0o755)
    TRAPS[kind](town.board, str(trap))
    attack = {".gitattributes": ("100644", b"* filter=evil diff=evil\n")}
    push(town, {**SEALED, **attack}, ref="refs/pull/3/head")
    good = town.send("good", now=NOW)
    town.take_in(now=NOW)
    assert town.organiser("review", good, now=NOW).code == 0
    assert town.publish(good, now=NOW).code == 0
    assert not (town.root / "pwned").exists()
    assert (town.board / ".gitattributes").read_text() == "* -text\n"
    assert git(town.board, "log", "-1", "--format=%s").startswith("published")


def test_the_trap_works(town: Town) -> None:
    """What the test above sets would run, were git called without our switches."""
    trap = town.root / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {town.root}/pwned\n")
    trap.chmod(0o755)
    hooks = town.board / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "pre-commit").symlink_to(trap)
    git(town.board, "commit", "-q", "--allow-empty", "-m", "x")
    assert (town.root / "pwned").exists()


def test_an_ext_remote_is_not_obeyed(town: Town) -> None:
    git(town.board, "remote", "add", "evil", f"ext::sh -c touch% {town.root}/pwned")
    answer = town.organiser("inbox", now=NOW)
    assert answer.code == 1
    assert "remote evil was not asked" in answer.err
    assert not (town.root / "pwned").exists()


def test_git_settings_of_the_environment_do_not_lead_astray(town: Town) -> None:
    """GIT_DIR of another repository, as inside a hook, is not followed."""
    env = {**os.environ, "GIT_DIR": str(town.forge), "HOME": str(town.root)}
    place = ["--board", str(town.board), "--vault", str(town.vault), "--now", NOW]
    program = Path(sys.executable).with_name("heldout")
    done = subprocess.run([program, "inbox", *place], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert git(town.forge, "log", "-1", "--format=%s", "main").startswith("opened-board")
