"""Attacks by a pull request, by what lies beside it, and by what was sent before."""

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import target
from lab import NEXT, TEAM, Lab, commit_tree, found_lab, git
from page_checks import check_page

from heldout.envelope.bundle import file_names
from heldout.ids import SubmissionId

checked, lab = target.all_played, target.shared_target


def tree_with(lab: Lab, *lines: str) -> str:
    """A commit whose tree has more entries, as raw objects: git's porcelain would refuse them."""
    clone = lab.clone
    listing = git(clone, "ls-tree", "HEAD") + "\n" + "\n".join(lines) + "\n"
    tree = git(clone, "mktree", data=listing.encode())
    return git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "raw")


def blob(lab: Lab, data: bytes) -> str:
    return git(lab.clone, "hash-object", "-w", "--stdin", data=data)


def git_folder(lab: Lab) -> str:
    config = b"[core]\n\tfsmonitor = touch canary\n"
    inner = git(lab.clone, "mktree", data=f"100644 blob {blob(lab, config)}\tconfig\n".encode())
    return tree_with(lab, f"040000 tree {inner}\t.git")


def twice(lab: Lab) -> str:
    """One name twice in a folder: a sealed file, and a link to the labels."""
    names = [name.removeprefix("submissions/") for name in target.sealed_names(target.MINE)]
    lines = [f"100644 blob {blob(lab, b'x')}\t{name}" for name in names]
    lines.append(f"120000 blob {blob(lab, b'../../vault/labels/eval.qrels')}\t{names[0]}")
    inner = git(lab.clone, "mktree", data=("\n".join(lines) + "\n").encode())
    clone = lab.clone
    left = [
        line for line in git(clone, "ls-tree", "HEAD").splitlines() if "submissions" not in line
    ]
    listing = "\n".join([*left, f"040000 tree {inner}\tsubmissions"]) + "\n"
    tree = git(clone, "mktree", data=listing.encode())
    return git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "raw")


def strangers_metadata(lab: Lab) -> target.Files:
    """New metadata for somebody's entry, sealed under a key of one's own."""
    files = target.sealed(lab, target.PUBLISHED, json.dumps({**TEAM, "revision": 9}).encode())
    name = file_names("age", SubmissionId(target.PUBLISHED)).metadata
    return {f"submissions/{name}": ("100644", files[name])}


def beside(name: str) -> "Request":
    """A file beside those of a submission."""
    return lambda _: {**target.three(target.MINE), name: ("100644", b"x")}


Request = Callable[[Lab], target.Files | str]
REQUESTS: Mapping[str, tuple[Request, str]] = {
    "the id of another team's entry": (lambda _: target.three(target.PUBLISHED), "id-taken"),
    "the id of a submission that waits": (lambda _: target.three(target.WAITING), "id-taken"),
    "one sealed file of another team's entry": (
        lambda _: {target.sealed_names(target.PUBLISHED)[0]: ("100644", b"mine now")},
        "missing-file",
    ),
    "another team's entry deleted": (
        lambda _: dict.fromkeys(target.sealed_names(target.PUBLISHED)),
        "foreign-change",
    ),
    "new metadata for another team's entry": (strangers_metadata, "untrusted"),
    "ids that differ in case alone": (
        lambda _: {**target.three(target.MINE), **target.three(target.MINE.upper())},
        "foreign-change",
    ),
    "a symlink to the held-out labels": (
        lambda s: {
            **target.three(target.MINE),
            target.sealed_names(target.MINE)[0]: (
                "120000",
                f"{s.vault}/labels/eval.qrels".encode(),
            ),
        },
        "foreign-change",
    ),
    "a submodule whose address is a command": (
        lambda _: {
            **target.three(target.MINE),
            ".gitmodules": ("100644", b'[submodule "x"]\n\tpath = x\n\turl = ext::touch canary\n'),
            "x": ("160000", b"1" * 40),
        },
        "foreign-change",
    ),
    "a folder named as git's own": (git_folder, "foreign-change"),
    "one name twice in a folder": (twice, "foreign-change"),
    "a folder spelled with a look-alike letter": (
        lambda _: {
            name.replace("i", "\u0456", 1): c for name, c in target.three(target.MINE).items()
        },
        "foreign-change",
    ),
    "a name with backslashes": (beside("submissions\\..\\board.toml"), "foreign-change"),
    "a name that is no UTF-8": (beside("submissions/\udcff\udcfe.tar.age"), "foreign-change"),
    "folders 500 deep": (beside("d/" * 500 + "x"), "foreign-change"),
    "a name that is a command": (
        beside("submissions/$(touch canary);`touch canary`"),
        "foreign-change",
    ),
}


@pytest.fixture(scope="module")
def asked(lab: Lab) -> Mapping[str, Any]:
    """All of them at once: source -> what the inbox said of it, and nothing changed."""
    clone = lab.clone
    with target.unchanged(lab):
        for number, (make, _) in enumerate(REQUESTS.values(), 10):
            made = make(lab)
            commit = made if isinstance(made, str) else commit_tree(clone, made, parent="HEAD")
            git(clone, "push", "-q", "origin", f"+{commit}:refs/pull/{number}/head")
        found = lab.take_in(now=NEXT)["received"]
        assert target.is_calm(lab.organiser("inbox", "--all", now=NEXT))
    return {receipt["source"]: receipt for receipt in found}


@pytest.mark.parametrize("attack", REQUESTS)
def test_pull_request(asked: Mapping[str, Any], attack: str) -> None:
    receipt = asked[f"pull request {list(REQUESTS).index(attack) + 10}"]
    assert receipt["kind"] == "refused"
    assert {problem["code"] for problem in receipt["problems"]} == {REQUESTS[attack][1]}
    target.contained.add(attack)


# what lies beside the requests on the forge


def shell_branch(lab: Lab) -> str:
    """A branch whose name is a command, with a title and an author who are commands, too."""
    clone = lab.clone
    tree = git(
        clone,
        "rev-parse",
        f"{commit_tree(clone, target.three(target.MINE), parent='HEAD')}^{{tree}}",
    )
    who = ["-c", "user.name=$(touch canary)", "-c", "user.email=`touch canary`"]
    title = "'; touch canary; $(touch canary) <script>alert(1)</script>"
    commit = git(clone, *who, "commit-tree", tree, "-p", "HEAD", "-m", title)
    return f"{commit}:refs/heads/submission/$(touch${{IFS}}canary);touch${{IFS}}canary"


def test_a_title_an_author_and_a_branch_that_are_commands(tmp_path: Path) -> None:
    """The files are in order, so that they are taken in: as data, under the id of their names."""
    lab = found_lab(tmp_path)
    git(lab.clone, "push", "-q", "origin", shell_branch(lab))
    with contextlib.chdir(lab.root):
        (receipt,) = lab.take_in(now=NEXT)["received"]
        assert (receipt["kind"], receipt["id"]) == ("received", target.MINE)
        assert lab.organiser("review", target.MINE, now=NEXT).code == 1
        assert lab.publish(target.MINE, now=NEXT).code == 1
    assert lab.nothing_ran()
    assert lab.audit()["ok"]
    target.contained.add("a title, an author and a branch that are commands")


def test_a_branch_name_that_turns_around(tmp_path: Path) -> None:
    lab = found_lab(tmp_path)
    commit = commit_tree(lab.clone, target.three(target.MINE), parent="HEAD")
    ref = "refs/heads/submission/\u202egnp.\u200b<b>"
    git(lab.clone, "push", "-q", "origin", f"{commit}:{ref}")
    assert target.is_calm(lab.organiser("inbox", now=NEXT))
    assert target.is_calm(lab.organiser("review", target.MINE, now=NEXT))
    assert lab.organiser("reject", target.MINE, "--why", "it cannot be opened", now=NEXT).code == 0
    for page in (lab.board / "leaderboard").rglob("*.html"):
        check_page(page)
        assert "\u202e" not in page.read_text("utf-8")
    assert not set((lab.board / "log.jsonl").read_text("utf-8")) & set("\u202e\u200b")
    assert lab.audit()["ok"]
    target.contained.add("a branch name that turns around")


def test_tags_and_replacements_that_shadow_the_board(lab: Lab) -> None:
    """`main` as a tag, a replacement of the head and notes on it: none of them is fetched."""
    clone = lab.clone
    evil = commit_tree(clone, {"log.jsonl": ("100644", b"{}\n")}, parent="HEAD")
    head = git(clone, "rev-parse", "HEAD")
    refs = ["tags/main", "tags/HEAD", f"replace/{head}", "notes/commits", "heads/refs/heads/main"]
    for ref in refs:
        git(clone, "push", "-q", "origin", f"+{evil}:refs/{ref}")
    with target.unchanged(lab):
        assert lab.organiser("inbox", "--json", now=NEXT).code == 0
        here = git(lab.board, "for-each-ref", "--format=%(refname)").splitlines()
        assert not [ref for ref in here if ref.startswith(("refs/tags", "refs/replace"))]
    for ref in refs:
        git(lab.forge, "update-ref", "-d", f"refs/{ref}")
    target.contained.add("tags and replacements that shadow the board")


# replayed


def test_the_same_files_under_another_number(lab: Lab) -> None:
    forge = lab.forge
    for number, name in ((90, target.PUBLISHED), (91, target.WAITING)):
        commit = git(forge, "rev-parse", f"refs/heads/submission/{name}")
        git(forge, "update-ref", f"refs/pull/{number}/head", commit)
    with target.unchanged(lab):
        found = lab.take_in(now=NEXT)["received"]
        mine = {r["source"]: r["kind"] for r in found}
        assert "received" not in mine.values()
        assert mine.get("pull request 91", "known") == "known"
    target.contained.add("the same files under another number")


def test_a_forge_whose_main_line_goes_back(lab: Lab) -> None:
    """The board on the forge is set to its first commit: what is here stays, and can be pushed."""
    forge = lab.forge
    head = git(forge, "rev-parse", "main")
    first = git(forge, "rev-list", "--max-parents=0", "main")
    git(forge, "update-ref", "refs/heads/main", first)
    with target.unchanged(lab):
        lab.organiser("inbox", now=NEXT).done()
    git(forge, "update-ref", "refs/heads/main", head)
    target.contained.add("a forge whose main line goes back")
