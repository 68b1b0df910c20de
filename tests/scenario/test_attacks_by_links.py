"""Attacks by symlinks in the tree of a board, a vault or a clone: none of them is followed."""

import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest
from lab import NEXT, Answer, Lab, Patch, commit_tree, git, named
from target import MINE, all_played, contained, is_calm, own_target, sealed

from heldout.board.store.arrivals import Seen
from heldout.files.durable import File

pytestmark = pytest.mark.night
checked, lab = all_played, own_target

Kind = Literal["elsewhere", "the vault", "nothing", "itself"]
ID = "20261102-second"  # of the submission that waits; its draft lies in the clone
_KINDS = ("elsewhere", "the vault", "nothing", "itself")


def _in_turn(*names: str, kinds: tuple[str, ...] = _KINDS) -> tuple[tuple[str, str], ...]:
    return tuple((name, kinds[number % len(kinds)]) for number, name in enumerate(names))


_OWN = ".git/heldout"
# Every placement with one kind of target, and `leaderboard`, whose old pages go, with all.
BOARD = (
    *_in_turn(
        *("leaderboard", "submissions", "keys", "queries", "qrels", ".git/heldout"),
        *("board.toml", "log.jsonl", ".gitattributes", "keys/organisers.txt", "queries/dev.tsv"),
        *("qrels/dev.qrels", ".git/heldout/lock", "leaderboard/entries", "leaderboard/static"),
        *("leaderboard/index.html", "leaderboard/manifest.json", "leaderboard/leaderboard.json"),
    ),
    *(("leaderboard", kind) for kind in _KINDS[1:]),
)
CLONE = _in_turn(
    *("leaderboard", "leaderboard/entries", "leaderboard/index.html", _OWN, f"{_OWN}/drafts"),
    *(f"{_OWN}/drafts/{ID}{below}" for below in ("", "/dev.run", "/metadata.json")),
    "queries",
    *(f"{_OWN}/{name}" for name in ("keys", "sealed", "packed", "receipts")),
    *(f"{_OWN}/{name}" for name in (f"keys/{ID}", f"packed/{ID}.json", f"receipts/{ID}.json")),
)
VAULT = _in_turn(
    *("identities", "labels", "sealed", "scores", "signatures", "events.jsonl", "lock"),
    *("identities/organiser.txt", "labels/eval.qrels"),
    kinds=("nothing", "elsewhere"),
)


def _snapshot(folder: Path) -> Mapping[str, bytes]:
    """Every file and link below a folder; links are not followed."""
    return {
        path.relative_to(folder).as_posix(): (
            os.readlink(path).encode() if path.is_symlink() else path.read_bytes()  # noqa: PTH115 - as it is
        )
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def _lay(root: Path, name: str, kind: Kind, *, outside: Path, vault: Path) -> None:
    """Lay a symlink where heldout has a file or a folder of its own."""
    place, there = root / name, outside / "there"
    is_folder = place.is_dir() or ("." not in place.name[1:] and not place.exists())
    outside.mkdir()
    (outside / "precious.html").write_bytes(b"precious\n")
    if place.exists():
        place.rename(there)
    elif is_folder:
        there.mkdir()
    else:
        there.write_bytes(b"precious\n")
    if is_folder:
        for stray in ("precious.html", ".writing-precious", "entries/precious.html"):
            (there / stray).parent.mkdir(exist_ok=True)
            (there / stray).write_bytes(b"precious\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    secret = vault if is_folder else vault / "labels" / "eval.qrels"
    target = {"elsewhere": there, "the vault": secret, "nothing": outside / "new"}
    place.symlink_to(target.get(kind, place))


def _organise(lab: Lab) -> list[Answer]:
    calls: tuple[tuple[str | Path, ...], ...] = (
        ("inbox",),
        ("publish", ID, "--yes"),
        ("rebuild",),
        ("audit",),
        ("archive", lab.root / "board.zip", "--why", "it is over", "--yes"),
    )
    return [lab.organiser(*words, now=NEXT) for words in calls]


def _take_part(lab: Lab) -> list[Answer]:
    calls: tuple[tuple[str | Path, ...], ...] = (
        ("check", ID),
        ("submit", ID),
        ("status",),
        ("draft", "third", "--dev", lab.root / "dev.run", "--eval", lab.root / "eval.run"),
        ("rebuild",),
        ("audit",),
    )
    return [lab.participant(*words, now=NEXT) for words in calls]


def _play(lab: Lab, root: Path, name: str, kind: Kind, act: Callable[[Lab], list[Answer]]) -> None:
    outside = lab.root / "outside"
    _lay(root, name, kind, outside=outside, vault=lab.vault)
    link = os.readlink(root / name)  # noqa: PTH115 - as it is
    before, vault = _snapshot(outside), _snapshot(lab.vault)
    answers = act(lab)
    assert all(map(is_calm, answers))
    said = [answer for answer in answers if answer.code]
    assert any(f"{name} is a symlink" in one.out + one.err for one in said), answers
    assert _snapshot(outside) == before
    assert os.readlink(root / name) == link  # noqa: PTH115 - as it is
    after = _snapshot(lab.vault)
    made = ("comparisons/", "remembered/", "sketches/")  # of the rest, and made again in this copy
    assert all(
        after[path].startswith(data) if path == "events.jsonl" else after[path] == data
        for path, data in vault.items()
        if not path.startswith(made)
    )
    assert lab.nothing_ran()


@pytest.mark.parametrize(("name", "kind"), BOARD)
def test_a_symlink_in_the_organisers_board(lab: Lab, name: str, kind: Kind) -> None:
    _play(lab, lab.board, name, kind, _organise)
    contained.add(f"a board in which {name} is a symlink to {kind}")


@pytest.mark.parametrize(("name", "kind"), CLONE)
def test_a_symlink_in_a_clone(lab: Lab, name: str, kind: Kind) -> None:
    _play(lab, lab.clone, name, kind, _take_part)
    contained.add(f"a clone in which {name} is a symlink to {kind}")


@pytest.mark.parametrize(("name", "kind"), VAULT)
def test_a_symlink_in_the_vault(lab: Lab, name: str, kind: Kind) -> None:
    _play(lab, lab.vault, name, kind, _organise)
    contained.add(f"a vault in which {name} is a symlink to {kind}")


def _push_link(lab: Lab, target: str) -> None:
    """Replace `leaderboard` on the forge's main branch by a symlink, as git stores one."""
    head = git(lab.clone, "rev-parse", "origin/main")
    pages = git(lab.clone, "ls-tree", "-r", "--name-only", head, "leaderboard/").split()
    changes: dict[str, tuple[str, bytes] | None] = dict.fromkeys(pages)
    changes["leaderboard"] = ("120000", target.encode())
    commit = commit_tree(lab.clone, changes, parent=head)
    git(lab.clone, "push", "-q", "origin", f"{commit}:refs/heads/main")


def test_a_reader_rebuilds_in_a_hostile_clone(lab: Lab) -> None:
    home = lab.root / "home"
    (home / "letters").mkdir(parents=True)
    (home / "letters" / "one.txt").write_bytes(b"precious\n")
    _push_link(lab, "../home")
    before = _snapshot(home)
    reader = lab.new_clone("reader")
    assert (reader / "leaderboard").is_symlink()
    answer = lab.participant("rebuild", now=NEXT, clone=reader)
    assert (answer.code, is_calm(answer)) == (2, True)
    assert f"{reader / 'leaderboard'} is a symlink" in answer.err
    assert "remove it" in answer.err
    assert _snapshot(home) == before
    contained.add("a clone whose leaderboard leads into the reader's home")


@pytest.mark.parametrize("command", ["rebuild", "inbox", "publish"])
def test_an_organiser_pulls_a_leaderboard_that_leads_into_the_vault(lab: Lab, command: str) -> None:
    _push_link(lab, "../vault")
    lab.pull(lab.board)
    before = _snapshot(lab.vault)
    words = ("publish", ID, "--yes") if command == "publish" else (command,)
    answer = lab.organiser(*words, now=NEXT)
    assert (answer.code, is_calm(answer)) == (2, True)
    assert "leaderboard is a symlink" in answer.err
    assert _snapshot(lab.vault) == before
    # What the message says is enough.
    git(lab.board, "rm", "-q", "leaderboard")
    git(lab.board, "commit", "-q", "-m", "The page again")
    assert lab.organiser("rebuild", now=NEXT).code == 0
    assert lab.audit()["ok"]
    contained.add(f"a leaderboard that leads into the vault, pulled before {command}")


def test_only_pages_that_heldout_wrote_are_removed(lab: Lab) -> None:
    folder = lab.board / "leaderboard"
    notes = folder / "notes" / "draft.md"
    notes.parent.mkdir()
    notes.write_bytes(b"mine\n")
    (folder / "out.html").symlink_to("../../vault/labels/eval.qrels")
    (folder / "entries" / "old.html").write_bytes(b"an old page\n")
    (folder / "static" / "old.css").write_bytes(b"mine too\n")
    listed = folder / "manifest.json"
    listed.write_text(
        '{"files": ["leaderboard/entries/old.html", "board.toml", "../vault/events.jsonl", '
        '"leaderboard/../log.jsonl", "leaderboard/out.html"]}'
    )
    before = _snapshot(lab.vault)
    answer = lab.organiser("rebuild", "--json", now=NEXT).done()
    assert answer.json["unknown"] == [
        "leaderboard/notes/draft.md",
        "leaderboard/out.html",
        "leaderboard/static/old.css",
    ]
    assert not (folder / "entries" / "old.html").exists()
    assert notes.read_bytes() == b"mine\n"
    assert (folder / "out.html").is_symlink()
    assert (folder / "static" / "old.css").read_bytes() == b"mine too\n"
    assert (lab.board / "board.toml").is_file()
    assert (lab.board / "log.jsonl").is_file()
    assert _snapshot(lab.vault).keys() == before.keys()
    tracked = git(lab.board, "ls-tree", "-r", "--name-only", "HEAD").split()
    assert "leaderboard/manifest.json" in tracked
    assert not {"leaderboard/notes/draft.md", "leaderboard/out.html"} & set(tracked)
    said = lab.organiser("rebuild", now=NEXT).out
    assert said.count('heldout did not write "leaderboard/notes/draft.md"') == 1
    contained.add("a manifest that names files outside the page")


@pytest.mark.parametrize("moment", ["it was listed", "its digest was taken"])
def test_an_upload_that_is_swapped_for_the_labels(
    lab: Lab, monkeypatch: Patch, moment: str
) -> None:
    labels = lab.vault / "labels" / "eval.qrels"
    folder = lab.root / "uploads"
    folder.mkdir()
    for name, data in sealed(lab, MINE, b"{}").items():
        (folder / name.rpartition("/")[2]).write_bytes(data)
    swapped = next(path for path in folder.iterdir() if "-metadata" not in path.name)

    def swap() -> None:
        swapped.unlink()
        swapped.symlink_to(labels)

    look = Seen.look

    def look_and_swap(file: File, *, most: int) -> Seen | None:
        if file.name != swapped.name:
            return look(file, most=most)
        if moment == "it was listed":
            swap()
            return look(file, most=most)
        seen = look(file, most=most)
        swap()
        return seen

    monkeypatch.setattr(Seen, "look", look_and_swap)
    answer = lab.organiser("inbox", "--from", folder, "--json", now=NEXT)
    assert swapped.is_symlink()
    (said,) = (one for one in answer.json["received"] if one["id"] == MINE)
    code = "missing-file" if moment == "it was listed" else "changed-file"
    assert [problem["code"] for problem in said["problems"]] == [code]
    digest = hashlib.sha256(labels.read_bytes()).hexdigest()
    assert digest not in (lab.board / "log.jsonl").read_text()
    contained.add(f"an upload swapped for a symlink to the labels after {moment}")


def test_no_public_file_has_the_digest_of_a_file_that_is_secret(lab: Lab) -> None:
    """What the vault keeps to itself is committed to with a salt, or not at all."""
    assert lab.publish(ID, now=NEXT).code == 0
    public = [lab.board / "log.jsonl", *(lab.board / "leaderboard").rglob("*.*")]
    text = "".join(file.read_text("utf-8") for file in public)
    received = {
        digest for event in lab.events() for digest in event["public"].get("files", {}).values()
    }
    secret = {
        hashlib.sha256(data).hexdigest(): path
        for path, data in _snapshot(lab.vault).items()
        if path not in (".gitignore", ".gitattributes")
    }
    assert len(received & secret.keys()) == 6  # of both submissions, sealed: they are public
    assert [path for digest, path in secret.items() if digest in text] == [
        path for digest, path in secret.items() if digest in received
    ]


def test_a_rebuild_finds_its_own_pages_done(lab: Lab) -> None:
    """The manifest is of no time or machine: a clone's rebuild gives the same bytes."""
    assert lab.organiser("rebuild", now=NEXT).code == 0
    lab.share()
    first = _snapshot(lab.board / "leaderboard")
    answer = lab.participant("rebuild", "--json", now=NEXT)
    assert (answer.code, answer.json["changed"]) == (0, 0)
    assert _snapshot(lab.clone / "leaderboard") == first


def test_a_submission_is_published_where_the_roots_are_reached_by_symlinks(lab: Lab) -> None:
    """A user may well name a board or a vault by a symlink: that is no attack."""
    for name in ("board", "vault", "clone"):
        (lab.root / name).rename(lab.root / f"real-{name}")
        (lab.root / name).symlink_to(f"real-{name}")
    assert all(one.code == 0 for one in _take_part(lab))
    lab.enter("late", now=NEXT, seed=4, team=named("Late"))
    shutil.rmtree(lab.root / "real-board" / "leaderboard")
    assert lab.organiser("rebuild", now=NEXT).code == 0
