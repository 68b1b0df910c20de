"""What a branch or a request brings, and why it is refused: by its paths, modes and sizes alone."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from certain import sure

from heldout.board.store import arrivals
from heldout.errors import StoreError
from memory_git import MemoryGit

ID = "20261102-honest"
ENDINGS = (".tar.age", "-metadata.json.age", ".key.age")
FILES = tuple(f"submissions/{ID}{ending}" for ending in ENDINGS)
Change = tuple[str, bytes] | None
SEALED: dict[str, Change] = {name: ("100644", name.encode()) for name in FILES}
BOARD: Mapping[str, Change] = dict.fromkeys(
    (
        *("README.md", "board.toml", "log.jsonl", "leaderboard/leaderboard.json"),
        *(".gitattributes", "submissions/20261101-old.tar.age"),
    ),
    ("100644", b"x"),
)


@pytest.fixture
def git() -> MemoryGit:
    git = MemoryGit(Path("/nowhere"))
    git.set_refs({"refs/heads/main": git.commit_tree(BOARD, parent=None)})
    return git


def push(
    git: MemoryGit, changes: Mapping[str, Change], ref: str = f"refs/remotes/origin/submission/{ID}"
) -> str:
    commit = git.commit_tree(changes, parent=git.head())
    git.set_refs({ref: commit})
    return commit


def found(git: MemoryGit, **options: object) -> list[arrivals.Arrival]:
    return list(arrivals.find_in_git(git, "age", main=git.head() or "", **options))  # type: ignore[arg-type]  # as named there


def codes(git: MemoryGit) -> list[str]:
    (arrival,) = found(git)
    return [problem.code for problem in arrival.problems]


@pytest.mark.parametrize(
    ("ref", "source"),
    [
        (f"refs/heads/submission/{ID}", f"branch submission/{ID}"),
        (f"refs/remotes/elsewhere/submission/{ID}", f"branch submission/{ID}"),
        ("refs/remotes/origin/submission/-rf", "branch submission/…"),
        ("refs/pull/7/head", "pull request 7"),
        ("refs/merge-requests/7/head", "pull request 7"),
    ],
)
def test_sealed_files_arrive(git: MemoryGit, ref: str, source: str) -> None:
    push(git, SEALED, ref)
    (arrival,) = found(git)
    assert (arrival.id, arrival.source, arrival.problems) == (ID, source, ())
    assert arrival.read() == {Path(name).name: name.encode() for name in FILES}


@pytest.mark.parametrize(
    "ref", ["refs/heads/other", "refs/pull/7/merge", "refs/tags/submission/x", "refs/pull/x/head"]
)
def test_nothing_arrives_on_other_refs(git: MemoryGit, ref: str) -> None:
    push(git, SEALED, ref)
    assert found(git) == []


FOREIGN: Mapping[str, Mapping[str, Change]] = {
    "an extra file": {"submissions/readme.txt": ("100644", b"x")},
    "an extra file at the top": {"evil.py": ("100644", b"import os")},
    "a deleted file": {"README.md": None},
    "a deleted log": {"log.jsonl": None},
    "a deleted submission": {"submissions/20261101-old.tar.age": None},
    "a changed board.toml": {"board.toml": ("100644", b"schema = 1")},
    "a changed log": {"log.jsonl": ("100644", b"{}\n")},
    "a file of earlier events": {"log/00000000.jsonl": ("100644", b"{}\n")},
    "a changed leaderboard": {"leaderboard/leaderboard.json": ("100644", b"{}")},
    "a workflow": {".github/workflows/run.yml": ("100644", b"on: push")},
    "attributes with a filter": {".gitattributes": ("100644", b"* filter=evil\n")},
    "attributes beside the files": {"submissions/.gitattributes": ("100644", b"* filter=evil\n")},
    "gitmodules": {".gitmodules": ("100644", b'[submodule "x"]\n\tpath = x\n\turl = /etc\n')},
    "a symlink": {FILES[0]: ("120000", b"/etc/passwd")},
    "a symlink for the folder": {"submissions-link": ("120000", b"submissions")},
    "a submodule": {"submissions/module": ("160000", b"1" * 40)},
    "a submodule for a file": {FILES[2]: ("160000", b"1" * 40)},
    "an executable": {FILES[0]: ("100755", b"#!/bin/sh\n")},
    "files of two submissions": {
        name.replace(ID, "20261102-two"): ("100644", b"x") for name in FILES
    },
    "control characters in a name": {"submissions/\x1b[31mred\x07": ("100644", b"x")},
    "a newline in a name": {f"submissions/{ID}\n.tar.age": ("100644", b"x")},
    "an id with shell characters": {"submissions/20261102-$(id).tar.age": ("100644", b"x")},
    "an id with dots": {"submissions/20261102-a..b.tar.age": ("100644", b"x")},
    "a path with dots": {"../board.toml": ("100644", b"owned")},
    "a folder deeper": {f"submissions/deep/{ID}.tar.age": ("100644", b"x")},
    "upper-case folder": {f"Submissions/{ID}.tar.age": ("100644", b"x")},
    "a file of the other form": {f"submissions/{ID}.tar.enc": ("100644", b"x")},
    "a right-to-left override": {"submissions/20261102-\u202egnp.tar.age": ("100644", b"x")},
    "ids that differ in case alone": {
        n.replace("honest", "Honest"): ("100644", b"x") for n in FILES
    },
    "a folder named as git's own": {".git/config": ("100644", b"[core]\n\tfsmonitor = x\n")},
    "a folder spelled with a look-alike letter": {
        name.replace("i", "\u0456", 1): ("100644", b"x") for name in FILES
    },
    "a name with backslashes": {"submissions\\..\\board.toml": ("100644", b"x")},
    "a name that is no UTF-8": {"submissions/\udcff\udcfe.tar.age": ("100644", b"x")},
    "folders 200 deep": {"d/" * 200 + "x": ("100644", b"x")},
}


@pytest.mark.parametrize("attack", FOREIGN)
def test_foreign_change(git: MemoryGit, attack: str) -> None:
    push(git, {**SEALED, **FOREIGN[attack]})
    (arrival,) = found(git)
    assert {problem.code for problem in arrival.problems} == {"foreign-change"}
    assert all(problem.path.isprintable() for problem in arrival.problems)


@pytest.mark.parametrize(
    "names", [FILES[:2], (FILES[0], FILES[2]), FILES[1:], FILES[:1], FILES[2:]]
)
def test_missing_file(git: MemoryGit, names: tuple[str, ...]) -> None:
    push(git, {name: SEALED[name] for name in names})
    assert codes(git) == ["missing-file"]


def test_metadata_alone_are_an_update(git: MemoryGit) -> None:
    push(git, {FILES[1]: SEALED[FILES[1]]})
    (arrival,) = found(git)
    assert (arrival.problems, arrival.core) == ((), "")


def test_a_file_that_is_too_large(git: MemoryGit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_MOST_BYTES", 1000)
    push(git, {**SEALED, FILES[0]: ("100644", b"x" * 1001)})
    assert codes(git) == ["too-large"]


def test_a_file_in_a_folder_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "_MOST_BYTES", 1000)
    for name in FILES:
        (tmp_path / Path(name).name).write_bytes(b"x" * 1001)
    (arrival,) = arrivals.find_in_folder(tmp_path, "age")
    assert [problem.code for problem in arrival.problems] == ["too-large"] * 3


def test_a_file_that_git_does_not_have(git: MemoryGit) -> None:
    push(git, SEALED)
    blob = next(b for b, (_, data) in git.objects.items() if data == FILES[0].encode())
    del git.objects[blob]
    assert codes(git) == ["missing-file"]


def test_many_files_are_reported_in_ten_problems(git: MemoryGit) -> None:
    push(git, {**SEALED, **{f"junk{i}": ("100644", b"x") for i in range(300)}})
    assert len(codes(git)) == 10


def test_a_folder_is_reported_by_its_name(git: MemoryGit) -> None:
    many: dict[str, Change] = {f"junk/{i}": ("100644", b"x") for i in range(300)}
    push(git, {**SEALED, **many, "submissions/deep/x": ("100644", b"x")})
    (arrival,) = found(git)
    named = {problem.path: problem.found for problem in arrival.problems}
    assert named == {'"junk"': "a folder", '"submissions/deep"': "a folder"}


def test_a_branch_that_does_not_descend_from_main(git: MemoryGit) -> None:
    git.set_refs({"refs/pull/1/head": git.commit_tree(SEALED, parent=None)})
    assert codes(git) == ["foreign-history"]


def test_a_branch_that_git_cannot_look_at_stops_no_other(git: MemoryGit) -> None:
    broken = push(git, {"x": ("100644", b"x")}, "refs/pull/1/head")
    push(git, SEALED, "refs/pull/2/head")
    tree = git.objects[broken][1][5:45].decode()
    del git.objects[tree]
    first, second = found(git)
    assert [problem.code for problem in first.problems] == ["not-fetched"]
    assert (second.id, second.problems) == (ID, ())


def test_a_ref_that_was_not_fetched_is_refused(git: MemoryGit) -> None:
    (arrival,) = found(git, unread={"refs/pull/1/head": "too large", "refs/heads/x": "no"})
    assert arrival.source == "pull request 1"
    assert [(p.code, p.found) for p in arrival.problems] == [("not-fetched", "too large")]


def test_a_copy_is_made_later_than_what_it_is_a_copy_of(git: MemoryGit) -> None:
    for ref in ("refs/pull/10/head", "refs/pull/9/head", "refs/remotes/a/submission/x"):
        push(git, SEALED, ref)
    (arrival,) = found(git)
    assert arrival.source == "branch submission/…"
    git.set_refs({"refs/remotes/a/submission/x": None})
    (arrival,) = found(git)
    assert arrival.source == "pull request 9"


def _as_one_name() -> Mapping[str, Change]:
    """One file whose name holds the names and blobs of the others, line by line."""
    *first, last = sorted(FILES)
    blobs = {
        name: hashlib.sha1(
            b"blob %d\0" % len(name) + name.encode(), usedforsecurity=False
        ).hexdigest()
        for name in FILES
    }
    return {"\n".join([*(f"{n} {blobs[n]}" for n in first), last]): ("100644", last.encode())}


def _as_programs() -> Mapping[str, Change]:
    return {name: ("100755", name.encode()) for name in FILES}


@pytest.mark.parametrize("attack", [_as_one_name, _as_programs])
def test_a_twin_hides_nobody(git: MemoryGit, attack: Callable[[], Mapping[str, Change]]) -> None:
    """Everybody can read the blobs on another team's branch, and name a branch that sorts first."""
    push(git, SEALED)
    push(git, attack(), "refs/remotes/origin/submission/20261101-first")
    assert sorted(bool(arrival.problems) for arrival in found(git)) == [False, True]


def test_what_was_taken_in_is_not_looked_at_again(git: MemoryGit) -> None:
    tip = push(git, SEALED)
    (arrival,) = found(git, taken=frozenset())
    taken = {(str(arrival.id), arrival.fingerprint)}
    assert [one.id for one in found(git, taken=frozenset())] == [ID]  # not in the log: again
    del git.objects[tip]  # nothing is asked of it
    git.objects[tip] = "commit", b""
    assert found(git, taken=taken) == []
    git.beside.clear()
    assert [problem.code for problem in found(git, taken=taken)[0].problems] == ["foreign-history"]


def test_what_is_remembered_goes_with_its_branch(git: MemoryGit) -> None:
    push(git, SEALED)
    push(git, {"evil": ("100644", b"x")}, "refs/pull/1/head")
    found(git, taken=frozenset())
    (remembered,) = git.beside.values()
    assert remembered.count(ID.encode()) == 1  # of what is refused nothing is remembered
    git.set_refs({f"refs/remotes/origin/submission/{ID}": None})
    found(git, taken=frozenset())
    (remembered,) = git.beside.values()
    assert remembered == b"{}"


def test_one_request_by_its_ref(git: MemoryGit) -> None:
    push(git, SEALED)
    push(git, SEALED, "refs/pull/7/head")
    push(git, {}, "refs/pull/8/head")
    main = git.head() or ""
    arrival = sure(arrivals.find_request(git, "age", base=main, head="refs/pull/7/head"))
    assert arrival.source == "pull request 7"
    assert arrivals.find_request(git, "age", base=main, head="refs/pull/8/head") is None
    branch = f"refs/remotes/origin/submission/{ID}"
    for head in ("refs/pull/9/head", "refs/pull/*/head", branch, "main", "--all", ""):
        with pytest.raises(StoreError, match="no pull request"):
            arrivals.find_request(git, "age", base=main, head=head)


def test_copies_have_one_fingerprint(git: MemoryGit) -> None:
    heads = [f"refs/pull/{number}/head" for number in (1, 2, 3)]
    for head, changes in zip(heads, (SEALED, SEALED, {FILES[1]: SEALED[FILES[1]]}), strict=True):
        push(git, changes, head)
    marks = arrivals.fingerprints(git, "age", base=git.head() or "", heads=heads)
    assert marks[heads[0]] == marks[heads[1]] != marks[heads[2]]


def test_what_was_merged_before_it_was_taken_in(git: MemoryGit) -> None:
    git.set_refs({"refs/heads/main": push(git, SEALED)})
    main = git.head() or ""
    merged = git.files(main, "submissions")
    found = list(arrivals.find_merged(git, "age", merged, known=(), published=()))
    assert {arrival.id for arrival in found} == {ID, "20261101-old"}
    known = {arrivals.blob_id(FILES[1].encode(), like=main)}
    assert ID not in {
        a.id for a in arrivals.find_merged(git, "age", merged, known=known, published=())
    }
    (ours,) = (
        a for a in arrivals.find_merged(git, "age", merged, known=(), published={ID}) if a.id == ID
    )
    assert set(ours.read()) == {Path(FILES[1]).name}  # of what the board put there, metadata alone
