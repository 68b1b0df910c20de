"""Attacks by a pull request, by what lies beside it, and by what was sent before."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from page_checks import check_page
from stage import (
    LATER,
    MINE,
    Files,
    Stage,
    check_all_played,
    is_calm,
    sealed,
    sealed_names,
    set_stage,
    three,
    unchanged,
)
from town import TEAM, commit_tree, found_town, git

from heldout.envelope.bundle import file_names
from heldout.ids import SubmissionId

pytestmark = pytest.mark.slow
contained: set[str] = set()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with set_stage(tmp_path_factory.mktemp("attacks")) as made:
        yield made


def tree_with(stage: Stage, *lines: str) -> str:
    """A commit whose tree has more entries, as raw objects: git's porcelain would refuse them."""
    clone = stage.town.clone
    listing = git(clone, "ls-tree", "HEAD") + "\n" + "\n".join(lines) + "\n"
    tree = git(clone, "mktree", data=listing.encode())
    return git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "raw")


def blob(stage: Stage, data: bytes) -> str:
    return git(stage.town.clone, "hash-object", "-w", "--stdin", data=data)


def git_folder(stage: Stage) -> str:
    config = b"[core]\n\tfsmonitor = touch canary\n"
    inner = git(
        stage.town.clone,
        "mktree",
        data=f"100644 blob {blob(stage, config)}\tconfig\n".encode(),
    )
    return tree_with(stage, f"040000 tree {inner}\t.git")


def twice(stage: Stage) -> str:
    """One name twice in a folder: a sealed file, and a link to the labels."""
    names = [name.removeprefix("submissions/") for name in sealed_names(MINE)]
    lines = [f"100644 blob {blob(stage, b'x')}\t{name}" for name in names]
    lines.append(f"120000 blob {blob(stage, b'../../vault/labels/eval.qrels')}\t{names[0]}")
    inner = git(stage.town.clone, "mktree", data=("\n".join(lines) + "\n").encode())
    clone = stage.town.clone
    kept = [
        line for line in git(clone, "ls-tree", "HEAD").splitlines() if "submissions" not in line
    ]
    listing = "\n".join([*kept, f"040000 tree {inner}\tsubmissions"]) + "\n"
    tree = git(clone, "mktree", data=listing.encode())
    return git(clone, "commit-tree", tree, "-p", "HEAD", "-m", "raw")


def strangers_metadata(stage: Stage) -> Files:
    """New metadata for somebody's entry, sealed under a key of one's own."""
    files = sealed(stage, stage.published, json.dumps({**TEAM, "revision": 9}).encode())
    name = file_names("age", SubmissionId(stage.published)).metadata
    return {f"submissions/{name}": ("100644", files[name])}


Request = Callable[[Stage], Files | str]
REQUESTS: Mapping[str, tuple[Request, str]] = {
    "the id of another team's entry": (lambda s: three(s.published), "id-taken"),
    "the id of a submission that waits": (lambda s: three(s.waiting), "id-taken"),
    "one sealed file of another team's entry": (
        lambda s: {sealed_names(s.published)[0]: ("100644", b"mine now")},
        "missing-file",
    ),
    "another team's entry deleted": (
        lambda s: dict.fromkeys(sealed_names(s.published)),
        "foreign-change",
    ),
    "new metadata for another team's entry": (strangers_metadata, "untrusted"),
    "ids that differ in case alone": (
        lambda _: {**three(MINE), **three(MINE.upper())},
        "foreign-change",
    ),
    "a symlink to the held-out labels": (
        lambda s: {
            **three(MINE),
            sealed_names(MINE)[0]: ("120000", f"{s.town.vault}/labels/eval.qrels".encode()),
        },
        "foreign-change",
    ),
    "a submodule whose address is a command": (
        lambda _: {
            **three(MINE),
            ".gitmodules": ("100644", b'[submodule "x"]\n\tpath = x\n\turl = ext::touch canary\n'),
            "x": ("160000", b"1" * 40),
        },
        "foreign-change",
    ),
    "a folder named as git's own": (git_folder, "foreign-change"),
    "one name twice in a folder": (twice, "foreign-change"),
    "a folder spelled with a look-alike letter": (
        lambda _: {name.replace("i", "\u0456", 1): c for name, c in three(MINE).items()},
        "foreign-change",
    ),
    "a name with backslashes": (
        lambda _: {**three(MINE), "submissions\\..\\board.toml": ("100644", b"x")},
        "foreign-change",
    ),
    "a name that is no UTF-8": (
        lambda _: {**three(MINE), "submissions/\udcff\udcfe.tar.age": ("100644", b"x")},
        "foreign-change",
    ),
    "folders 500 deep": (
        lambda _: {**three(MINE), "d/" * 500 + "x": ("100644", b"x")},
        "foreign-change",
    ),
    "a name that is a command": (
        lambda _: {**three(MINE), "submissions/$(touch canary);`touch canary`": ("100644", b"x")},
        "foreign-change",
    ),
}


@pytest.fixture(scope="module")
def asked(stage: Stage) -> Mapping[str, Any]:
    """All of them at once: source -> what the inbox said of it, and nothing changed."""
    clone = stage.town.clone
    with unchanged(stage):
        for number, (make, _) in enumerate(REQUESTS.values(), 10):
            made = make(stage)
            commit = made if isinstance(made, str) else commit_tree(clone, made, parent="HEAD")
            git(clone, "push", "-q", "origin", f"+{commit}:refs/pull/{number}/head")
        found = stage.town.take_in(now=LATER)["received"]
        told = stage.town.organiser("inbox", "--all", now=LATER)
        assert is_calm(told)
    return {receipt["source"]: receipt for receipt in found}


@pytest.mark.parametrize("attack", REQUESTS)
def test_pull_request(asked: Mapping[str, Any], attack: str) -> None:
    receipt = asked[f"pull request {list(REQUESTS).index(attack) + 10}"]
    assert receipt["kind"] == "refused"
    assert {problem["code"] for problem in receipt["problems"]} == {REQUESTS[attack][1]}
    contained.add(attack)


# what lies beside the requests on the forge


def shell_branch(stage: Stage) -> str:
    """A branch whose name is a command, with a title and an author who are commands, too."""
    clone = stage.town.clone
    tree = git(clone, "rev-parse", f"{commit_tree(clone, three(MINE), parent='HEAD')}^{{tree}}")
    who = ["-c", "user.name=$(touch canary)", "-c", "user.email=`touch canary`"]
    title = "'; touch canary; $(touch canary) <script>alert(1)</script>"
    commit = git(clone, *who, "commit-tree", tree, "-p", "HEAD", "-m", title)
    return f"{commit}:refs/heads/submission/$(touch${{IFS}}canary);touch${{IFS}}canary"


def test_a_title_an_author_and_a_branch_that_are_commands(tmp_path: Path) -> None:
    """The files are in order, so that they are taken in: as data, under the id of their names."""
    town = found_town(tmp_path)
    stage = Stage(town=town, published="", waiting="")
    git(town.clone, "push", "-q", "origin", shell_branch(stage))
    with contextlib.chdir(town.root):
        (receipt,) = town.take_in(now=LATER)["received"]
        assert (receipt["kind"], receipt["id"]) == ("received", MINE)
        assert town.organiser("review", MINE, now=LATER).code == 1
        assert town.publish(MINE, now=LATER).code == 1
    assert stage.nothing_ran()
    assert town.audit()["ok"]
    contained.add("a title, an author and a branch that are commands")


def test_a_branch_name_that_turns_around(tmp_path: Path) -> None:
    town = found_town(tmp_path)
    commit = commit_tree(town.clone, three(MINE), parent="HEAD")
    ref = "refs/heads/submission/\u202egnp.\u200b<b>"
    git(town.clone, "push", "-q", "origin", f"{commit}:{ref}")
    assert is_calm(town.organiser("inbox", now=LATER))
    assert is_calm(town.organiser("review", MINE, now=LATER))
    assert town.organiser("reject", MINE, "--why", "it cannot be opened", now=LATER).code == 0
    for page in (town.board / "leaderboard").rglob("*.html"):
        check_page(page)
        assert "\u202e" not in page.read_text("utf-8")
    assert not set((town.board / "log.jsonl").read_text("utf-8")) & set("\u202e\u200b")
    assert town.audit()["ok"]
    contained.add("a branch name that turns around")


def test_tags_and_replacements_that_shadow_the_board(stage: Stage) -> None:
    """`main` as a tag, a replacement of the head and notes on it: none of them is fetched."""
    clone = stage.town.clone
    evil = commit_tree(clone, {"log.jsonl": ("100644", b"{}\n")}, parent="HEAD")
    head = git(clone, "rev-parse", "HEAD")
    refs = ["tags/main", "tags/HEAD", f"replace/{head}", "notes/commits", "heads/refs/heads/main"]
    for ref in refs:
        git(clone, "push", "-q", "origin", f"+{evil}:refs/{ref}")
    with unchanged(stage):
        assert stage.town.organiser("inbox", "--json", now=LATER).code == 0
        here = git(stage.town.board, "for-each-ref", "--format=%(refname)").splitlines()
        assert not [ref for ref in here if ref.startswith(("refs/tags", "refs/replace"))]
    for ref in refs:
        git(stage.town.forge, "update-ref", "-d", f"refs/{ref}")
    contained.add("tags and replacements that shadow the board")


# replayed


def test_the_same_files_under_another_number(stage: Stage) -> None:
    forge = stage.town.forge
    for number, name in ((90, stage.published), (91, stage.waiting)):
        commit = git(forge, "rev-parse", f"refs/heads/submission/{name}")
        git(forge, "update-ref", f"refs/pull/{number}/head", commit)
    with unchanged(stage):
        found = stage.town.take_in(now=LATER)["received"]
        mine = {r["source"]: r["kind"] for r in found}
        assert "received" not in mine.values()
        assert mine.get("pull request 91", "known") == "known"
    contained.add("the same files under another number")


def test_a_forge_whose_main_line_goes_back(stage: Stage) -> None:
    """The board on the forge is set to its first commit: what is here stays, and can be pushed."""
    forge = stage.town.forge
    head = git(forge, "rev-parse", "main")
    first = git(forge, "rev-list", "--max-parents=0", "main")
    git(forge, "update-ref", "refs/heads/main", first)
    with unchanged(stage):
        stage.town.organiser("inbox", now=LATER).done()
    git(forge, "update-ref", "refs/heads/main", head)
    contained.add("a forge whose main line goes back")


def test_all_attacks_are_contained(
    stage: Stage, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last: all that the table says of this module was played."""
    assert stage.town.audit()["ok"]
    check_all_played(contained, request, capsys)
