"""Attacks by symlinks in the tree of a board, a vault or a clone: none of them is followed."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest
from stage import LATER, MINE, Stage, check_all_played, is_calm, sealed, set_stage
from town import Answer, Town, commit_tree, git, named

from heldout.board.store.arrivals import Seen
from heldout.files.durable import File

pytestmark = [pytest.mark.slow, pytest.mark.night]
contained: set[str] = set()

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


@pytest.fixture
def stage(tmp_path: Path) -> "contextlib.AbstractContextManager[Stage]":
    return set_stage(tmp_path)


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


def _organise(town: Town) -> list[Answer]:
    calls: tuple[tuple[str | Path, ...], ...] = (
        ("inbox",),
        ("publish", ID, "--yes"),
        ("rebuild",),
        ("audit",),
        ("archive", town.root / "board.zip", "--why", "it is over", "--yes"),
    )
    return [town.organiser(*words, now=LATER) for words in calls]


def _take_part(town: Town) -> list[Answer]:
    calls: tuple[tuple[str | Path, ...], ...] = (
        ("check", ID),
        ("submit", ID),
        ("status",),
        ("draft", "third", "--dev", town.root / "dev.run", "--eval", town.root / "eval.run"),
        ("rebuild",),
        ("audit",),
    )
    return [town.participant(*words, now=LATER) for words in calls]


def _play(
    stage: Stage, root: Path, name: str, kind: Kind, act: Callable[[Town], list[Answer]]
) -> None:
    town, outside = stage.town, stage.town.root / "outside"
    _lay(root, name, kind, outside=outside, vault=town.vault)
    link = os.readlink(root / name)  # noqa: PTH115 - as it is
    before, vault = _snapshot(outside), _snapshot(town.vault)
    answers = act(town)
    assert all(map(is_calm, answers))
    told = [answer for answer in answers if answer.code]
    assert any(f"{name} is a symlink" in one.out + one.err for one in told), answers
    assert _snapshot(outside) == before
    assert os.readlink(root / name) == link  # noqa: PTH115 - as it is
    after = _snapshot(town.vault)
    made = ("comparisons/", "remembered/", "sketches/")  # of the rest, and made again in this copy
    assert all(
        after[path].startswith(data) if path == "events.jsonl" else after[path] == data
        for path, data in vault.items()
        if not path.startswith(made)
    )
    assert stage.nothing_ran()


@pytest.mark.parametrize(("name", "kind"), BOARD)
def test_a_symlink_in_the_organisers_board(
    stage: "contextlib.AbstractContextManager[Stage]", name: str, kind: Kind
) -> None:
    with stage as here:
        _play(here, here.town.board, name, kind, _organise)
    contained.add(f"a board in which {name} is a symlink to {kind}")


@pytest.mark.parametrize(("name", "kind"), CLONE)
def test_a_symlink_in_a_clone(
    stage: "contextlib.AbstractContextManager[Stage]", name: str, kind: Kind
) -> None:
    with stage as here:
        _play(here, here.town.clone, name, kind, _take_part)
    contained.add(f"a clone in which {name} is a symlink to {kind}")


@pytest.mark.parametrize(("name", "kind"), VAULT)
def test_a_symlink_in_the_vault(
    stage: "contextlib.AbstractContextManager[Stage]", name: str, kind: Kind
) -> None:
    with stage as here:
        _play(here, here.town.vault, name, kind, _organise)
    contained.add(f"a vault in which {name} is a symlink to {kind}")


def _push_link(town: Town, target: str) -> None:
    """Replace `leaderboard` on the forge's main branch by a symlink, as git stores one."""
    head = git(town.clone, "rev-parse", "origin/main")
    pages = git(town.clone, "ls-tree", "-r", "--name-only", head, "leaderboard/").split()
    changes: dict[str, tuple[str, bytes] | None] = dict.fromkeys(pages)
    changes["leaderboard"] = ("120000", target.encode())
    commit = commit_tree(town.clone, changes, parent=head)
    git(town.clone, "push", "-q", "origin", f"{commit}:refs/heads/main")


def test_a_reader_rebuilds_in_a_hostile_clone(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town, home = here.town, here.town.root / "home"
        (home / "letters").mkdir(parents=True)
        (home / "letters" / "one.txt").write_bytes(b"precious\n")
        _push_link(town, "../home")
        before = _snapshot(home)
        reader = town.new_clone("reader")
        assert (reader / "leaderboard").is_symlink()
        answer = town.participant("rebuild", now=LATER, clone=reader)
        assert (answer.code, is_calm(answer)) == (2, True)
        assert f"{reader / 'leaderboard'} is a symlink" in answer.err
        assert "remove it" in answer.err
        assert _snapshot(home) == before
    contained.add("a clone whose leaderboard leads into the reader's home")


@pytest.mark.parametrize("command", ["rebuild", "inbox", "publish"])
def test_an_organiser_pulls_a_leaderboard_that_leads_into_the_vault(
    stage: "contextlib.AbstractContextManager[Stage]", command: str
) -> None:
    with stage as here:
        town = here.town
        _push_link(town, "../vault")
        town.pull(town.board)
        before = _snapshot(town.vault)
        words = ("publish", ID, "--yes") if command == "publish" else (command,)
        answer = town.organiser(*words, now=LATER)
        assert (answer.code, is_calm(answer)) == (2, True)
        assert "leaderboard is a symlink" in answer.err
        assert _snapshot(town.vault) == before
        # What the message says is enough.
        git(town.board, "rm", "-q", "leaderboard")
        git(town.board, "commit", "-q", "-m", "The page again")
        assert town.organiser("rebuild", now=LATER).code == 0
        assert town.audit()["ok"]
    contained.add(f"a leaderboard that leads into the vault, pulled before {command}")


def test_only_pages_that_heldout_wrote_are_removed(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    with stage as here:
        town = here.town
        folder = town.board / "leaderboard"
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
        before = _snapshot(town.vault)
        answer = town.organiser("rebuild", "--json", now=LATER).done()
        assert answer.json["unknown"] == [
            "leaderboard/notes/draft.md",
            "leaderboard/out.html",
            "leaderboard/static/old.css",
        ]
        assert not (folder / "entries" / "old.html").exists()
        assert notes.read_bytes() == b"mine\n"
        assert (folder / "out.html").is_symlink()
        assert (folder / "static" / "old.css").read_bytes() == b"mine too\n"
        assert (town.board / "board.toml").is_file()
        assert (town.board / "log.jsonl").is_file()
        assert _snapshot(town.vault).keys() == before.keys()
        tracked = git(town.board, "ls-tree", "-r", "--name-only", "HEAD").split()
        assert "leaderboard/manifest.json" in tracked
        assert not {"leaderboard/notes/draft.md", "leaderboard/out.html"} & set(tracked)
        told = town.organiser("rebuild", now=LATER).out
        assert told.count('heldout did not write "leaderboard/notes/draft.md"') == 1
    contained.add("a manifest that names files outside the page")


@pytest.mark.parametrize("moment", ["it was listed", "its digest was taken"])
def test_an_upload_that_is_swapped_for_the_labels(
    stage: "contextlib.AbstractContextManager[Stage]", monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    with stage as here:
        town = here.town
        labels = town.vault / "labels" / "eval.qrels"
        folder = town.root / "uploads"
        folder.mkdir()
        for name, data in sealed(here, MINE, b"{}").items():
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
        answer = town.organiser("inbox", "--from", folder, "--json", now=LATER)
        assert swapped.is_symlink()
        (told,) = (one for one in answer.json["received"] if one["id"] == MINE)
        code = "missing-file" if moment == "it was listed" else "changed-file"
        assert [problem["code"] for problem in told["problems"]] == [code]
        digest = hashlib.sha256(labels.read_bytes()).hexdigest()
        assert digest not in (town.board / "log.jsonl").read_text()
    contained.add(f"an upload swapped for a symlink to the labels after {moment}")


def test_no_public_file_has_the_digest_of_a_file_that_is_secret(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    """What the vault keeps to itself is committed to with a salt, or not at all."""
    with stage as here:
        town = here.town
        assert town.publish(ID, now=LATER).code == 0
        public = [town.board / "log.jsonl", *(town.board / "leaderboard").rglob("*.*")]
        text = "".join(file.read_text("utf-8") for file in public)
        received = {
            digest
            for event in town.events()
            for digest in event["public"].get("files", {}).values()
        }
        secret = {
            hashlib.sha256(data).hexdigest(): path
            for path, data in _snapshot(town.vault).items()
            if path not in (".gitignore", ".gitattributes")
        }
        assert len(received & secret.keys()) == 6  # of both submissions, sealed: they are public
        assert [path for digest, path in secret.items() if digest in text] == [
            path for digest, path in secret.items() if digest in received
        ]


def test_a_rebuild_finds_its_own_pages_done(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    """The manifest is of no time or machine: a clone's rebuild gives the same bytes."""
    with stage as here:
        town = here.town
        assert town.organiser("rebuild", now=LATER).code == 0
        town.share()
        first = _snapshot(town.board / "leaderboard")
        answer = town.participant("rebuild", "--json", now=LATER)
        assert (answer.code, answer.json["changed"]) == (0, 0)
        assert _snapshot(town.clone / "leaderboard") == first


def test_a_submission_is_published_where_the_roots_are_reached_by_symlinks(
    stage: "contextlib.AbstractContextManager[Stage]",
) -> None:
    """A user may well name a board or a vault by a symlink: that is no attack."""
    with stage as here:
        town = here.town
        for name in ("board", "vault", "clone"):
            (town.root / name).rename(town.root / f"real-{name}")
            (town.root / name).symlink_to(f"real-{name}")
        assert all(one.code == 0 for one in _take_part(town))
        town.enter("late", now=LATER, seed=4, team=named("Late"))
        shutil.rmtree(town.root / "real-board" / "leaderboard")
        assert town.organiser("rebuild", now=LATER).code == 0


def test_all_attacks_are_contained(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last: all that the table says of this module was played."""
    check_all_played(contained, request, capsys)
