"""What a participant may push: data, whatever it is. Every case is named after the attack.

A hostile branch is made with plumbing and pushed to the forge; the organiser's inbox has to
refuse it with a reason and go on, and nothing of it may be checked out or run.
"""

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hostile_packs import delta_bomb, tree_bomb, wide_tree
from lab import DAY, OTHER_TEAM, Lab, Patch, commit_tree, fresh_lab, git
from team_server import answering

from heldout.board.store import arrivals, fetching, vault
from heldout.board.store.git import Bounds, Git
from heldout.errors import StoreError

ID = "20261102-one"
Change = tuple[str, bytes] | None
NAMES = [
    f"submissions/{ID}.tar.age",
    f"submissions/{ID}-metadata.json.age",
    f"submissions/{ID}.key.age",
]
SEALED: dict[str, Change] = {name: ("100644", name.encode()) for name in NAMES}


lab = fresh_lab


def push(
    lab: Lab, changes: Mapping[str, Change], *, ref: str = f"refs/heads/submission/{ID}"
) -> None:
    commit = commit_tree(lab.clone, changes, parent="HEAD")
    git(lab.clone, "push", "-q", "origin", f"+{commit}:{ref}")


def refusals(lab: Lab) -> list[str]:
    """Codes of what the inbox refused; nothing may have been received."""
    found = lab.take_in()["received"]
    assert {receipt["kind"] for receipt in found} <= {"refused"}
    assert "received" not in lab.kinds()
    assert lab.audit()["ok"]
    return [problem["code"] for receipt in found for problem in receipt["problems"]]


@pytest.mark.parametrize("theirs", [ID, pytest.param(ID.upper(), marks=pytest.mark.night)])
def test_an_id_that_was_read_on_somebody_s_branch(lab: Lab, theirs: str) -> None:
    """Refs of pull requests sort before branches: the order of names must decide nothing."""
    push(lab, SEALED)
    squatted = {name.replace(ID, theirs): ("100644", b"mine") for name in NAMES}
    push(lab, squatted, ref="refs/pull/7/head")
    assert refusals(lab) == ["id-conflict", "id-conflict"]
    said = lab.organiser("inbox")
    assert f"from branch submission/{ID}" in said.out + said.err
    lab.organiser("inbox", "--accept", "pull request 9").refused("pull request 7")
    source = f"branch submission/{ID}"
    answer = lab.organiser("inbox", "--accept", source, "--json")
    kinds = {r["source"]: r["kind"] for r in answer.json["received"]}
    assert kinds == {source: "received", "pull request 7": "refused"}
    files = next(e for e in lab.events() if e["kind"] == "received")["public"]["files"]
    assert files == {
        name.rpartition("/")[2]: hashlib.sha256(data).hexdigest()
        for name, (_, data) in ((n, c) for n, c in SEALED.items() if c is not None)
    }
    (late,) = [r for r in lab.take_in()["received"] if r["kind"] == "refused"]
    assert [problem["code"] for problem in late["problems"]] == ["id-taken"]


def test_a_broken_request_under_somebody_s_id_contests_nothing(lab: Lab) -> None:
    push(lab, SEALED)
    push(lab, {NAMES[0]: ("100644", b"mine")}, ref="refs/pull/7/head")
    found = {r["source"]: r["kind"] for r in lab.take_in()["received"]}
    assert found == {f"branch submission/{ID}": "received", "pull request 7": "refused"}


def test_metadata_alone_of_an_id_that_nobody_sent(lab: Lab) -> None:
    push(lab, {NAMES[1]: SEALED[NAMES[1]]})
    assert refusals(lab) == ["nothing-to-update"]


def test_path_with_dot_dot(lab: Lab) -> None:
    """git's own porcelain refuses such a tree, so it is written as raw objects."""
    blob = git(lab.clone, "hash-object", "-w", "--stdin", data=b"owned")
    inner = git(lab.clone, "mktree", data=f"100644 blob {blob}\tboard.toml\n".encode())
    old = git(lab.clone, "ls-tree", "HEAD").encode()
    tree = git(lab.clone, "mktree", data=old + f"\n040000 tree {inner}\t..\n".encode())
    commit = git(lab.clone, "commit-tree", tree, "-p", "HEAD", "-m", "up")
    git(lab.clone, "push", "-q", "origin", f"{commit}:refs/heads/submission/{ID}")
    assert refusals(lab) == ["foreign-change"]
    assert not (lab.root / "board.toml").exists()


# small on its way, huge where somebody looks


def take_in_beside(lab: Lab, bomb: str) -> str:
    """Code of a hostile request's refusal; the submission beside it must be received."""
    git(lab.forge, "update-ref", "refs/pull/9/head", bomb)
    good = lab.send("good", team=OTHER_TEAM)
    found = {r["source"]: r for r in lab.take_in()["received"]}
    assert found[f"branch submission/{good}"]["kind"] == "received"
    assert found["pull request 9"]["kind"] == "refused"
    (code,) = {problem["code"] for problem in found["pull request 9"]["problems"]}
    return str(code)


@pytest.mark.night
@pytest.mark.parametrize(
    ("partial", "code"), [("false", "foreign-change"), ("true", "not-fetched")]
)
def test_a_pack_that_names_a_thousand_million_paths(lab: Lab, partial: str, code: str) -> None:
    """Whether or not the remote can leave files out."""
    git(lab.forge, "config", "uploadpack.allowFilter", partial)
    bomb = tree_bomb(lab.forge, levels=9, parent="main")
    assert take_in_beside(lab, bomb) == code
    git(lab.clone, "fetch", "-q", "origin", "refs/pull/9/head:refs/pull/9/head")
    base = git(lab.clone, "rev-parse", "HEAD")
    said = lab.participant("check", "--form", base, "refs/pull/9/head", "--json").declined()
    assert [problem["path"] for problem in said.json["problems"]] == ['"bomb"']


FOREIGN_PATHS: Mapping[str, dict[str, Change]] = {
    "another file": {**SEALED, "README.md": ("100644", b"no README")},
    "a file in a folder of its own": {**SEALED, "x/y": ("100644", b"deep")},
    "a symlink": {**SEALED, NAMES[0]: ("120000", b"elsewhere")},
    "files of two submissions": SEALED
    | {name.replace(ID, f"{ID}-b"): ("100644", f"b {name}".encode()) for name in NAMES},
    "a registration and something else": {
        "registrations/team-0123456789abcdef.json": ("100644", b"{}"),
        "keys/x": ("100644", b"key"),
    },
}


@pytest.mark.parametrize(
    ("case", "ref"),
    [
        ("a symlink", f"refs/heads/submission/{ID}"),
        ("another file", "refs/pull/9/head"),
        *(
            pytest.param(case, f"refs/heads/submission/{ID}", marks=pytest.mark.night)
            for case in FOREIGN_PATHS
            if case != "a symlink"
        ),
    ],
)
def test_no_file_of_a_branch_with_a_foreign_path_is_fetched(
    lab: Lab, monkeypatch: Patch, case: str, ref: str
) -> None:
    """Where the remote can leave files out; once refused, nothing of it is fetched again."""
    git(lab.forge, "config", "uploadpack.allowFilter", "true")
    push(lab, FOREIGN_PATHS[case], ref=ref)
    good = lab.send("good", team=OTHER_TEAM)
    data = [change[1] for change in FOREIGN_PATHS[case].values() if change is not None]
    blobs = [git(lab.forge, "hash-object", "--stdin", data=one) for one in data]
    there: list[str] = []
    real = Git.fetch_objects

    def fetch(aside: Git, *arguments: Any, **options: Any) -> None:
        real(aside, *arguments, **options)
        there.extend(arrivals.sizes_of(aside, blobs))

    monkeypatch.setattr(Git, "fetch_objects", fetch)
    found = {one["source"]: one for one in lab.take_in()["received"]}
    assert found.pop(f"branch submission/{good}")["kind"] == "received"
    (refused,) = found.values()
    assert [problem["code"] for problem in refused["problems"]] == ["not-fetched"]
    assert there == []
    monkeypatch.setattr(Git, "fetch_objects", lambda *_, **__: pytest.fail("fetched again"))
    assert [one["kind"] for one in lab.take_in()["received"]] == ["refused"]


@pytest.mark.night
def test_a_folder_of_very_many_names(lab: Lab) -> None:
    wide = wide_tree(lab.forge, names=200_000, parent="main")
    assert take_in_beside(lab, wide) == "not-fetched"


def test_a_request_that_the_forge_removed_goes_here_too(lab: Lab) -> None:
    push(lab, SEALED, ref="refs/pull/9/head")
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]
    git(lab.forge, "update-ref", "-d", "refs/pull/9/head")
    lab.take_in()
    assert git(lab.board, "for-each-ref", "refs/pull") == ""


@pytest.mark.night
@pytest.mark.skipif(sys.platform != "linux", reason="bounds of a process are Linux's")
@pytest.mark.parametrize(
    ("bound", "deltas"), [({"memory": 56 << 20}, 8), ({"cpu": 1}, 60)], ids=["memory", "cpu"]
)
def test_deltas_that_need_more_than_git_may_have(
    lab: Lab, monkeypatch: Patch, bound: Mapping[str, int], deltas: int
) -> None:
    """What is true of 300 MiB and the real bounds is true of 40 MiB and lower ones."""
    bomb = delta_bomb(lab.forge, size=40 << 20, deltas=deltas, parent="main", id_=ID)
    shares = tuple(replace(share, **bound) for share in fetching._SHARES[1:])
    monkeypatch.setattr(fetching, "_SHARES", (fetching._SHARES[0], *shares))
    assert take_in_beside(lab, bomb) == "not-fetched"
    sizes = git(lab.board, "count-objects", "-v").splitlines()
    assert int(next(line for line in sizes if "size-pack" in line).split()[1]) < 1000
    assert not list((lab.board / ".git" / "objects").glob("tmp_*"))


@pytest.mark.parametrize("partial", [False, pytest.param(True, marks=pytest.mark.night)])
def test_more_bytes_than_a_submission_may_bring(
    lab: Lab, monkeypatch: Patch, *, partial: bool
) -> None:
    git(lab.forge, "config", "uploadpack.allowFilter", str(partial).lower())
    bomb = delta_bomb(lab.forge, size=1 << 20, deltas=2, parent="main", id_=ID)
    monkeypatch.setattr(fetching, "_MOST_BYTES", 1 << 21)
    assert take_in_beside(lab, bomb) == "not-fetched"


def test_a_push_that_unpacks_in_the_vault(lab: Lab) -> None:
    """A few bytes on the wire, 40 MiB where they are stored; real sealed files are as they come."""
    before = sum(file.stat().st_size for file in (lab.vault / "sealed").iterdir())
    head = b"age-encryption.org/v1\n"
    huge = head + bytes(40 << 20)
    push(lab, {**SEALED, NAMES[0]: ("100644", huge)})
    assert refusals(lab) == ["not-sealed"]
    push(lab, {**SEALED, NAMES[0]: ("100644", os.urandom(1 << 18))})
    assert refusals(lab) == ["not-sealed"]
    push(lab, {**SEALED, NAMES[1]: ("100644", head + bytes(4 << 20))})
    assert refusals(lab) == ["too-large"]
    assert sum(file.stat().st_size for file in (lab.vault / "sealed").iterdir()) == before
    push(lab, {**SEALED, NAMES[0]: ("100644", head + os.urandom(1 << 18))})
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]


def test_a_full_vault_takes_nothing_and_says_so(lab: Lab, monkeypatch: Patch) -> None:
    push(lab, SEALED)
    with monkeypatch.context() as patch:
        patch.setattr(vault, "_MOST_SEALED", 10)
        assert refusals(lab) == ["vault-full"]
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]


def test_what_was_too_large_is_not_fetched_again(lab: Lab, monkeypatch: Patch) -> None:
    bomb = delta_bomb(lab.forge, size=1 << 20, deltas=8, parent="main", id_=ID)
    monkeypatch.setattr(fetching, "_MOST_BYTES", 1 << 22)
    take_in_beside(lab, bomb)
    monkeypatch.setattr(Git, "fetch_objects", lambda *_, **__: pytest.fail("fetched again"))
    (receipt,) = lab.take_in()["received"]
    assert (receipt["source"], receipt["kind"]) == ("pull request 9", "refused")


@pytest.mark.night
@pytest.mark.skipif(sys.platform != "linux", reason="bounds of a process are Linux's")
@pytest.mark.parametrize("partial", [False, True])
def test_many_hostile_branches_delay_the_honest_one_by_seconds(
    lab: Lab, monkeypatch: Patch, *, partial: bool
) -> None:
    """All come first by name. What is true of 100 is true of 20 and a quarter of the time."""
    git(lab.forge, "config", "uploadpack.allowFilter", str(partial).lower())
    deltas = 2 if partial else 8  # more have names that are refused before they are fetched
    bomb = delta_bomb(lab.forge, size=40 << 20, deltas=deltas, parent="main", id_=ID)
    names = [f"submission/20251102-a{number}" for number in range(20)]
    for name in names:
        tip = git(lab.forge, "commit-tree", f"{bomb}^{{tree}}", "-p", "main", "-m", name)
        git(lab.forge, "update-ref", f"refs/heads/{name}", tip)
    good = lab.send("good", team=OTHER_TEAM)
    low = tuple(replace(share, memory=48 << 20) for share in fetching._SHARES)
    monkeypatch.setattr(fetching, "_SHARES", low)
    monkeypatch.setattr(fetching, "_MOST_LOST", 6.0)
    before = fetching._used()
    done = lab.organiser("inbox", "--json")
    assert fetching._used() - before < 15
    received = [one["source"] for one in done.json["received"]]
    assert received == [f"branch submission/{good}"]
    assert sorted(done.json["unfetched"]) == sorted(f"branch {name}" for name in names)
    assert done.code == 0, "a stranger's branches must not make a cron job fail"
    monkeypatch.setattr(fetching, "_MOST_LOST", 0.0)
    said = lab.organiser("inbox")
    assert "15 more: take long" in " ".join(said.out.split()), said.out


@pytest.mark.night
@pytest.mark.skipif(sys.platform != "linux", reason="signals to a process")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_an_inbox_that_is_ended_ends_what_it_started(lab: Lab, name: str) -> None:
    """A remote that sends nothing: git waits for it, and must not outlive the call."""
    script = lab.root / "silent.sh"
    script.write_text(f"#!/bin/sh\necho $$ > {lab.root}/child\nexec sleep 300\n")
    script.chmod(0o755)
    git(lab.board, "remote", "add", "other", "ssh://localhost/x")
    place = ["--board", str(lab.board), "--vault", str(lab.vault), "--now", DAY]
    program = Path(sys.executable).with_name("heldout")
    env = {**os.environ, "GIT_SSH_COMMAND": str(script), "HOME": str(lab.root)}
    with subprocess.Popen([program, "inbox", *place], env=env, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not (lab.root / "child").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)  # until the script is the sleep
        process.send_signal(signal.Signals[name])
        assert process.wait(timeout=60) == 1
    child = int((lab.root / "child").read_text())
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def test_git_is_ended_with_all_that_it_started(lab: Lab) -> None:
    """A time-out leaves no process behind, be it git's or one that git started."""
    script = lab.root / "slow.sh"
    script.write_text(f"#!/bin/sh\nsleep 300 &\necho $! > {lab.root}/child\nwait\n")
    script.chmod(0o755)
    slow = Git(lab.board, environment={"GIT_SSH_COMMAND": str(script)})
    with pytest.raises(StoreError, match="took over 2 s"):
        slow.fetch_objects("ssh://localhost/x", ["1" * 40], bounds=Bounds(seconds=2))
    child = int((lab.root / "child").read_text())
    deadline = time.monotonic() + 5
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(process: int) -> bool:
    """Whether a process is there and no mere entry that nobody has waited for."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    return False


def test_pull_request_ref_that_names_no_commit(lab: Lab) -> None:
    blob = git(lab.forge, "hash-object", "-w", "--stdin", data=b"no commit")
    git(lab.forge, "update-ref", "refs/pull/6/head", blob)
    push(lab, SEALED, ref="refs/pull/7/head")
    found = lab.take_in()["received"]
    assert [(r["kind"], r["source"]) for r in found] == [("received", "pull request 7")]


HOSTILE_NAMES = (
    b"submission/caf\xe9",
    *(
        f"submission/{name}".encode()
        for name in ("a\u2028b", f"{ID}\x85b", f"{ID}\u3000b\u00a0c", "20261102-\u202egnp", "-rf")
    ),
    b"main\xe9",
)
"""No UTF-8, line ends, spaces and a change of direction of other scripts, no id, a main line."""


def test_a_branch_of_a_hostile_name_stops_neither_inbox_nor_submit(lab: Lab) -> None:
    """Not even when a clone has pulled it, nor when the branch is gone again on the forge."""
    names = [b"refs/heads/" + name for name in HOSTILE_NAMES]
    for number, name in enumerate(names):
        evil = {**SEALED, "evil": ("100644", b"%d" % number)}
        commit = commit_tree(lab.clone, evil, parent="HEAD")
        spec = commit.encode() + b":" + name
        subprocess.run([b"git", b"push", b"-q", b"origin", spec], cwd=lab.clone, check=True)
    git(lab.clone, "fetch", "-q", "origin")
    good = lab.send("good")
    assert {r["id"]: r["kind"] for r in lab.take_in()["received"]}[good] == "received"
    said = lab.organiser("inbox", "--all").done()
    assert (said.out + said.err).replace("\n", "").isprintable()
    gone = [b":" + name for name in names]
    subprocess.run([b"git", b"push", b"-q", b"origin", *gone], cwd=lab.clone, check=True)
    assert lab.take_in()["received"] == []
    lab.participant("submit", good).done()


def test_a_branch_below_somebody_s_id_that_was_removed_again(lab: Lab) -> None:
    """git cannot keep `submission/ID` beside `submission/ID/x`: the second would never arrive."""
    push(lab, {"evil": ("100644", b"x")}, ref=f"refs/heads/submission/{ID}/x")
    assert refusals(lab) == ["foreign-change"]
    git(lab.clone, "push", "-q", "origin", f":refs/heads/submission/{ID}/x")
    push(lab, SEALED)
    assert [r["kind"] for r in lab.take_in()["received"]] == ["received"]


def test_hostile_file_names_in_a_folder_are_no_submissions(lab: Lab) -> None:
    folder = lab.root / "uploads"
    folder.mkdir()
    for name in [
        "20261102-$(touch pwned).tar.age",
        "20261102-a;b.tar.age",
        "../20261102-up.tar.age".replace("/", "_"),
        "20261399-one.tar.age",
        "-rf.tar.age",
        f"20261102-{'x' * 65}.tar.age",
        "20261102-ünïcode.tar.age",
    ]:
        (folder / name).write_bytes(b"x")
    answer = lab.organiser("inbox", "--from", folder, "--json")
    assert (answer.code, answer.json["received"]) == (0, [])


def test_uploads_go_when_the_inbox_is_done_with_them(lab: Lab) -> None:
    """Junk under the id of a submission keeps nothing out, and does not pile up."""
    uploads = lab.root / "uploads"
    own, junk = uploads / f"delivery-{'a' * 16}", uploads / f"delivery-{'b' * 16}"
    for folder, names in ((own, NAMES), (junk, NAMES[1:2])):
        folder.mkdir(parents=True)
        for name in names:
            (folder / Path(name).name).write_bytes(folder.name.encode())
    said = lab.organiser("inbox", "--from", uploads).done()
    assert lab.kinds().count("received") == 1
    assert f"from upload {'a' * 16}" in said.out
    assert f"from upload {'b' * 16}" in said.out
    assert [path.name for path in uploads.iterdir()] == [junk.name]
    assert lab.organiser("inbox", "--from", uploads).code == 0
    assert list(uploads.iterdir()) == []


def test_symlink_in_a_folder_is_not_followed(lab: Lab) -> None:
    folder = lab.root / "uploads"
    folder.mkdir()
    for name in NAMES:
        (folder / Path(name).name).symlink_to(lab.vault / "labels" / "eval.qrels")
    assert lab.organiser("inbox", "--from", folder, "--json").json["received"] == []


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


TRAPS = {
    "clean and smudge filters": ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process"),
    "programs of settings": ("core.fsmonitor", "diff.external", "diff.evil.textconv"),
    "programs of a terminal": ("gpg.program", "core.editor", "core.pager"),
}


@pytest.mark.parametrize("hooks", ["hooks", pytest.param("hooks path", marks=pytest.mark.night)])
def test_nothing_is_run_in_the_organisers_clone(lab: Lab, hooks: str) -> None:
    """A program that would leave a trace waits wherever git could be made to start one."""
    trap = lab.root / "traps" / "pre-commit"
    trap.parent.mkdir()
    trap.write_text(f"#!/bin/sh\ntouch {lab.root}/pwned\ncat\n")
    trap.chmod(0o755)
    if hooks == "hooks":
        _hooks(lab.board, str(trap))
    else:
        _config(lab.board, "core.hooksPath", str(trap.parent))
    for key in (key for keys in TRAPS.values() for key in keys):
        _config(lab.board, key, str(trap))
    _config(lab.board, "commit.gpgSign", "true")
    _config(lab.board, "log.showSignature", "true")
    attack = {".gitattributes": ("100644", b"* filter=evil diff=evil\n")}
    push(lab, {**SEALED, **attack}, ref="refs/pull/3/head")
    good = lab.receive("good", now=DAY)
    assert lab.organiser("review", good).code == 0
    assert lab.publish(good).code == 0
    assert not (lab.root / "pwned").exists()
    assert (lab.board / ".gitattributes").read_text() == "* -text\n"
    assert git(lab.board, "log", "-1", "--format=%s").startswith("published")


@pytest.fixture(scope="module")
def asking() -> Iterator[str]:
    """A server that asks git for a password."""
    with answering(401, WWW_Authenticate='Basic realm="x"') as url:
        yield f"{url}/x.git"


def _alternates(board: Path, trap: str) -> None:
    _config(board, "core.alternateRefsCommand", trap)
    other = board / ".git/objects/info/alternates"
    other.write_text(f"{board.parent}/forge.git/objects\n")


def _included(board: Path, trap: str) -> None:
    included = board.parent / "included"
    included.write_text(f'[remote "origin"]\n\tuploadpack = {trap}\n')
    _config(board, "include.path", str(included))


def _option(board: Path, trap: str) -> None:
    with (board / ".git" / "config").open("a") as config:
        config.write(f'[remote "--upload-pack={trap}"]\n\turl = {board.parent}\n')


def _filtered(board: Path, trap: str) -> None:
    (board / ".git" / "info").mkdir(exist_ok=True)
    (board / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil\n")
    _filters(board, trap)


OWN_PROGRAMS: Mapping[str, tuple[str, str, str]] = {
    "an upload-pack program": ("remote.origin.uploadpack", "", ""),
    "an ssh command": ("core.sshCommand", "", "ssh://127.0.0.1:9/x"),
    "a credential helper": ("credential.helper", "!", "HTTP"),
    "a credential helper for one address": ("credential.HTTP.helper", "!", "HTTP"),
    "a program that asks for passwords": ("core.askPass", "", "HTTP"),
    "a proxy for git's own protocol": ("core.gitProxy", "", "git://127.0.0.1:9/x"),
}
OWN_TRAPS: Mapping[str, Callable[[Path, str], None]] = {
    "a program for alternate refs": _alternates,
    "a file that is included": _included,
    "a remote whose name is an option": _option,
    "filters that the clone's own attributes name": _filtered,
}


def set_trap(lab: Lab, name: str, asking: str) -> None:
    """Have the organisers' clone name a program, and give it an occasion to be run."""
    trap = lab.root / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {lab.root}/pwned\n")
    trap.chmod(0o755)
    if name in OWN_TRAPS:
        OWN_TRAPS[name](lab.board, str(trap))
        return
    key, before, url = OWN_PROGRAMS[name]
    _config(lab.board, key.replace("HTTP", asking), before + str(trap))
    if url:
        other = f"other-{len(git(lab.board, 'remote').splitlines())}"
        git(lab.board, "remote", "add", other, asking if url == "HTTP" else url)


def test_a_program_that_a_clone_s_own_settings_name(lab: Lab, asking: str) -> None:
    """The folder may have come from somebody: what its .git/config would run is not run."""
    for kind in (*OWN_PROGRAMS, *OWN_TRAPS):
        set_trap(lab, kind, asking)
    good = lab.send("good")
    found = lab.organiser("inbox", "--json")
    assert [r["kind"] for r in found.json["received"]] == ["received"]
    assert lab.organiser("review", good).code == 0
    assert lab.publish(good).code == 0
    assert not (lab.root / "pwned").exists()


@pytest.mark.night
@pytest.mark.parametrize("kind", [*OWN_PROGRAMS, "a file that is included"])
def test_it_would_run_without_our_settings(
    lab: Lab, kind: str, asking: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("heldout.board.store.git._own_settings", lambda *_: ((), {}))
    monkeypatch.setattr("heldout.board.store.git._UPLOAD", "-q")
    set_trap(lab, kind, asking)
    lab.organiser("inbox", "--json")
    assert (lab.root / "pwned").exists()


@pytest.mark.parametrize(
    "kind", ["an ssh command", pytest.param("a credential helper", marks=pytest.mark.night)]
)
def test_what_the_user_s_global_settings_name_is_run(lab: Lab, kind: str, asking: str) -> None:
    """Private remotes need it; and a clone's own setting beside it does not replace it."""
    set_trap(lab, kind, asking)
    own = lab.root / "own.sh"
    own.write_text(f"#!/bin/sh\ntouch {lab.root}/asked\n")
    own.chmod(0o755)
    key, before, _ = OWN_PROGRAMS[kind]
    git(lab.board, "config", "--global", key, before + str(own))
    assert lab.organiser("inbox").code == 1
    assert (lab.root / "asked").exists()
    assert not (lab.root / "pwned").exists()


def test_an_ext_remote_is_not_obeyed(lab: Lab) -> None:
    git(lab.board, "remote", "add", "evil", f"ext::sh -c touch% {lab.root}/pwned")
    lab.organiser("inbox").declined("remote evil was not asked")
    assert not (lab.root / "pwned").exists()


def test_git_settings_of_the_environment_do_not_lead_astray(lab: Lab) -> None:
    """GIT_DIR of another repository, as inside a hook, is not followed."""
    env = {**os.environ, "GIT_DIR": str(lab.forge), "HOME": str(lab.root)}
    place = ["--board", str(lab.board), "--vault", str(lab.vault), "--now", DAY]
    program = Path(sys.executable).with_name("heldout")
    done = subprocess.run([program, "inbox", *place], env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert git(lab.forge, "log", "-1", "--format=%s", "main").startswith("opened-board")
