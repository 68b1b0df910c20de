"""What somebody merged on the forge before `heldout inbox` had seen it is taken in all the same."""

from pathlib import Path

import pytest
from lab import DAY, NEXT, Lab, commit_tree, fresh_lab, git
from registering import asking_lab, own_file, register

from heldout.board.store.arrivals import blob_id, find_merged
from heldout.board.store.git import Git

pytestmark = pytest.mark.night
LAST = "2026-11-10T12:00:00Z"


lab = fresh_lab


def merge(lab: Lab, branch: str, how: str, *, gone: bool = True) -> None:
    """The forge's button for merging, by somebody who may push; the organiser pulls."""
    folder = lab.new_clone(f"merging-{len(list(lab.root.iterdir()))}")
    ways = {
        "a merge commit": ("merge", "-q", "--no-ff", "--no-edit", f"origin/{branch}"),
        "a fast forward": ("merge", "-q", "--ff-only", f"origin/{branch}"),
        "a squash": ("merge", "-q", "--squash", f"origin/{branch}"),
    }
    git(folder, *ways[how])
    if how == "a squash":
        git(folder, "commit", "-q", "-m", "squashed")
    git(folder, "push", "-q", "origin", "HEAD:main", *[f":refs/heads/{branch}"] * gone)
    git(lab.board, "pull", "-q", "--ff-only", "origin", "main")


def taken(lab: Lab, *, now: str = DAY) -> list[tuple[str, str]]:
    return [(r["kind"], r["source"]) for r in lab.take_in(now=now)["received"]]


def faults(lab: Lab) -> list[str]:
    found: list[str] = lab.audit()["faults"]
    return found


@pytest.mark.parametrize(
    ("how", "gone"), [("a merge commit", True), ("a fast forward", False), ("a squash", False)]
)
def test_a_submission_that_was_merged_before_it_was_taken_in(
    lab: Lab, how: str, *, gone: bool
) -> None:
    one = lab.send("one")
    merge(lab, f"submission/{one}", how, gone=gone)
    assert [f"submissions/{one}" in fault for fault in faults(lab)] == [True] * 3
    left = how == "a squash" and not gone
    source = f"branch submission/{one}" if left else "the main branch"
    assert taken(lab) == [("received", source)]
    assert faults(lab) == []
    assert taken(lab) == []
    assert lab.publish(one, now=NEXT).code == 0
    assert taken(lab, now=NEXT) == []
    lab.share()
    assert "published" in lab.participant("status", one, now=NEXT).out
    assert faults(lab) == []


@pytest.mark.parametrize(
    ("how", "gone", "published"),
    [("a merge commit", False, True), ("a merge commit", True, False), ("a squash", True, True)],
)
def test_new_metadata_that_were_merged_before_they_were_taken_in(
    lab: Lab, how: str, *, gone: bool, published: bool
) -> None:
    one = lab.send("one")
    assert taken(lab) == [("received", f"branch submission/{one}")]
    if published:
        assert lab.publish(one, now=NEXT).code == 0
    lab.share()
    lab.fill(one, model_description="a better description")
    assert lab.participant("amend", one, now=LAST).code == 0
    merge(lab, f"submission/{one}", how, gone=gone)
    assert any("metadata.json.age" in fault for fault in faults(lab))
    assert [kind for kind, _ in taken(lab, now=LAST)] == ["updated"]
    assert lab.events()[-1]["submission"] == one
    assert faults(lab) == []
    assert taken(lab, now=LAST) == []


def test_a_merged_submission_and_somebody_else_s_of_the_same_id_are_for_an_organiser(
    lab: Lab,
) -> None:
    one = lab.send("one")
    merge(lab, f"submission/{one}", "a merge commit")
    other = {
        f"submissions/{one}{end}": ("100644", b"mine")
        for end in (".tar.age", ".key.age", "-metadata.json.age")
    }
    old = git(lab.forge, "rev-list", "--max-parents=0", "main")
    squatted = commit_tree(lab.clone, other, parent=old)
    git(lab.clone, "push", "-q", "origin", f"{squatted}:refs/pull/7/head")
    found = lab.take_in()["received"]
    assert [p["code"] for r in found for p in r["problems"]] == ["id-conflict", "id-conflict"]
    chosen = lab.organiser("inbox", "--accept", "the main branch", "--json")
    assert {r["source"]: r["kind"] for r in chosen.json["received"]} == {
        "the main branch": "received",
        "pull request 7": "refused",
    }


def test_a_file_that_nobody_sealed_is_refused_and_told_until_it_is_removed(lab: Lab) -> None:
    ghost = lab.board / "submissions" / "20261102-ghost.tar.age"
    ghost.parent.mkdir(exist_ok=True)
    ghost.write_bytes(b"junk")
    git(lab.board, "add", "--force", "--", "submissions")
    git(lab.board, "commit", "-q", "-m", "junk")
    (said,) = lab.take_in()["received"]
    assert (said["kind"], [p["code"] for p in said["problems"]]) == ("refused", ["missing-file"])
    assert ["submissions/20261102-ghost.tar.age is in no event" in f for f in faults(lab)] == [True]
    git(lab.board, "rm", "-q", "--", "submissions/20261102-ghost.tar.age")
    git(lab.board, "commit", "-q", "-m", "no junk")
    assert (taken(lab), faults(lab)) == ([], [])


def test_sealed_files_that_are_not_those_of_an_event(lab: Lab) -> None:
    """A waiting submission's name with other bytes, a link and a folder; a note is left alone."""
    one = lab.receive("one", now=DAY)
    folder = lab.board / "submissions"
    folder.mkdir(exist_ok=True)
    (folder / f"{one}.tar.age").write_bytes(b"other bytes")
    (folder / "20261102-link.key.age").symlink_to(lab.vault / "labels" / "eval.qrels")
    (folder / "20261102-folder.tar.age").mkdir()
    (folder / "README.md").write_text("what lies here")
    assert [fault.partition(" is in no event")[0] for fault in faults(lab)] == [
        "submissions/20261102-folder.tar.age",
        "submissions/20261102-link.key.age",
        f"submissions/{one}.tar.age",
    ]


def test_a_registration_that_was_merged_before_it_was_taken_in(tmp_path: Path) -> None:
    lab = asking_lab(tmp_path)
    handle = str(register(lab, now=DAY))
    merge(lab, f"registration/{handle}", "a merge commit")
    found = lab.take_in()["received"]
    assert [(r["kind"], r["team"], r["source"]) for r in found] == [
        ("registered", handle, "the main branch")
    ]
    assert taken(lab) == []
    assert own_file(lab)


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
