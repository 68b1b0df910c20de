"""What somebody merged on the forge before `heldout inbox` had seen it is taken in all the same."""

from pathlib import Path

import pytest
from registering_town import asking_town, own_file, register
from town import Town, commit_tree, fresh_town, git

from heldout.board.store.arrivals import blob_id, find_merged
from heldout.board.store.git import Git

pytestmark = [pytest.mark.slow, pytest.mark.night]
DAY = "2026-11-02T12:00:00Z"
NEXT = "2026-11-03T12:00:00Z"
LAST = "2026-11-10T12:00:00Z"


town = fresh_town


def merge(town: Town, branch: str, how: str, *, gone: bool = True) -> None:
    """The forge's button for merging, by somebody who may push; the organiser pulls."""
    folder = town.new_clone(f"merging-{len(list(town.root.iterdir()))}")
    ways = {
        "a merge commit": ("merge", "-q", "--no-ff", "--no-edit", f"origin/{branch}"),
        "a fast forward": ("merge", "-q", "--ff-only", f"origin/{branch}"),
        "a squash": ("merge", "-q", "--squash", f"origin/{branch}"),
    }
    git(folder, *ways[how])
    if how == "a squash":
        git(folder, "commit", "-q", "-m", "squashed")
    git(folder, "push", "-q", "origin", "HEAD:main", *[f":refs/heads/{branch}"] * gone)
    git(town.board, "pull", "-q", "--ff-only", "origin", "main")


def taken(town: Town, *, now: str = DAY) -> list[tuple[str, str]]:
    return [(r["kind"], r["source"]) for r in town.take_in(now=now)["received"]]


def faults(town: Town) -> list[str]:
    found: list[str] = town.audit()["faults"]
    return found


@pytest.mark.parametrize(
    ("how", "gone"), [("a merge commit", True), ("a fast forward", False), ("a squash", False)]
)
def test_a_submission_that_was_merged_before_it_was_taken_in(
    town: Town, how: str, *, gone: bool
) -> None:
    one = town.send("one", now=DAY)
    merge(town, f"submission/{one}", how, gone=gone)
    assert [f"submissions/{one}" in fault for fault in faults(town)] == [True] * 3
    left = how == "a squash" and not gone
    source = f"branch submission/{one}" if left else "the main branch"
    assert taken(town) == [("received", source)]
    assert faults(town) == []
    assert taken(town) == []
    assert town.publish(one, now=NEXT).code == 0
    assert taken(town, now=NEXT) == []
    town.share()
    assert "published" in town.participant("status", one, now=NEXT).out
    assert faults(town) == []


@pytest.mark.parametrize(
    ("how", "gone", "published"),
    [("a merge commit", False, True), ("a merge commit", True, False), ("a squash", True, True)],
)
def test_new_metadata_that_were_merged_before_they_were_taken_in(
    town: Town, how: str, *, gone: bool, published: bool
) -> None:
    one = town.send("one", now=DAY)
    assert taken(town) == [("received", f"branch submission/{one}")]
    if published:
        assert town.publish(one, now=NEXT).code == 0
    town.share()
    town.fill(one, model_description="a better description")
    assert town.participant("amend", one, now=LAST).code == 0
    merge(town, f"submission/{one}", how, gone=gone)
    assert any("metadata.json.age" in fault for fault in faults(town))
    assert [kind for kind, _ in taken(town, now=LAST)] == ["updated"]
    assert town.events()[-1]["submission"] == one
    assert faults(town) == []
    assert taken(town, now=LAST) == []


def test_a_merged_submission_and_somebody_else_s_of_the_same_id_are_for_an_organiser(
    town: Town,
) -> None:
    one = town.send("one", now=DAY)
    merge(town, f"submission/{one}", "a merge commit")
    other = {
        f"submissions/{one}{end}": ("100644", b"mine")
        for end in (".tar.age", ".key.age", "-metadata.json.age")
    }
    old = git(town.forge, "rev-list", "--max-parents=0", "main")
    squatted = commit_tree(town.clone, other, parent=old)
    git(town.clone, "push", "-q", "origin", f"{squatted}:refs/pull/7/head")
    found = town.take_in(now=DAY)["received"]
    assert [p["code"] for r in found for p in r["problems"]] == ["id-conflict", "id-conflict"]
    chosen = town.organiser("inbox", "--accept", "the main branch", "--json", now=DAY)
    assert {r["source"]: r["kind"] for r in chosen.json["received"]} == {
        "the main branch": "received",
        "pull request 7": "refused",
    }


def test_a_file_that_nobody_sealed_is_refused_and_told_until_it_is_removed(town: Town) -> None:
    ghost = town.board / "submissions" / "20261102-ghost.tar.age"
    ghost.parent.mkdir(exist_ok=True)
    ghost.write_bytes(b"junk")
    git(town.board, "add", "--force", "--", "submissions")
    git(town.board, "commit", "-q", "-m", "junk")
    (told,) = town.take_in(now=DAY)["received"]
    assert (told["kind"], [p["code"] for p in told["problems"]]) == ("refused", ["missing-file"])
    assert ["submissions/20261102-ghost.tar.age is in no event" in f for f in faults(town)] == [
        True
    ]
    git(town.board, "rm", "-q", "--", "submissions/20261102-ghost.tar.age")
    git(town.board, "commit", "-q", "-m", "no junk")
    assert (taken(town), faults(town)) == ([], [])


def test_sealed_files_that_are_not_those_of_an_event(town: Town) -> None:
    """A waiting submission's name with other bytes, a link and a folder; a note is left alone."""
    one = town.send("one", now=DAY)
    town.take_in(now=DAY)
    folder = town.board / "submissions"
    folder.mkdir(exist_ok=True)
    (folder / f"{one}.tar.age").write_bytes(b"other bytes")
    (folder / "20261102-link.key.age").symlink_to(town.vault / "labels" / "eval.qrels")
    (folder / "20261102-folder.tar.age").mkdir()
    (folder / "README.md").write_text("what lies here")
    assert [fault.partition(" is in no event")[0] for fault in faults(town)] == [
        "submissions/20261102-folder.tar.age",
        "submissions/20261102-link.key.age",
        f"submissions/{one}.tar.age",
    ]


def test_a_registration_that_was_merged_before_it_was_taken_in(tmp_path: Path) -> None:
    town = asking_town(tmp_path)
    handle = str(register(town, now=DAY))
    merge(town, f"registration/{handle}", "a merge commit")
    found = town.take_in(now=DAY)["received"]
    assert [(r["kind"], r["team"], r["source"]) for r in found] == [
        ("registered", handle, "the main branch")
    ]
    assert taken(town) == []
    assert own_file(town)


def test_git_s_ids_are_known_in_a_repository_of_sha256(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", "board")
    board = tmp_path / "board"
    sealed = board / "submissions"
    sealed.mkdir()
    for end in (".tar.age", ".key.age", "-metadata.json.age"):
        (sealed / f"20261102-one{end}").write_bytes(end.encode())
    git(board, "add", ".")
    git(board, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "-m", "x")
    main = git(board, "rev-parse", "HEAD")
    merged = Git(board).files(main, "submissions")
    new = [*find_merged(Git(board), "age", merged, known=(), published=())]
    assert [(arrival.id, arrival.problems) for arrival in new] == [("20261102-one", ())]
    known = {blob_id(b"-metadata.json.age", like=main)}
    assert not [*find_merged(Git(board), "age", merged, known=known, published=())]
