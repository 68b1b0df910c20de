"""A disk dies: the board goes on from a backup, and from what its public log knows since."""

import shutil
from pathlib import Path

from lab import OTHER_TEAM, Answer, Lab, found_lab, git, named, prepared

from heldout.envelope.age import new_identity


def day(number: int, month: int = 11) -> str:
    return f"2026-{month}-{number:02}T10:00:00Z"


@prepared
def lab(lab: Lab) -> None:
    """A board with a published entry; `spare.key` is a key that lies elsewhere."""
    lab.enter("one", now=day(2), decided=day(3))
    lab.share()
    keys = new_identity()
    (lab.root / "spare.key").write_text(f"# public key: {keys.recipient}\n{keys.private}")


def back_up(lab: Lab, *options: str | Path) -> Answer:
    where = ("--board", lab.board, "--vault", lab.vault, "--now", day(4))
    return lab.call("backup", lab.root / "monday.backup", *where, *options)


def spare(lab: Lab) -> str:
    return (lab.root / "spare.key").read_text().split("\n")[0].removeprefix("# public key: ")


def restore(lab: Lab, *options: str | Path) -> Answer:
    key = ("--identity", lab.root / "spare.key")
    return lab.call("restore", lab.root / "monday.backup", *key, *options)


def test_the_vaults_own_key_alone_is_refused_since_it_is_lost_with_the_vault(lab: Lab) -> None:
    back_up(lab).refused("backup-own-key")
    assert not (lab.root / "monday.backup").exists()


def test_board_and_vault_come_back_as_they_were(lab: Lab) -> None:
    (lab.board / "notes.txt").write_text("not committed\n")
    (lab.board / "README.md").unlink()
    assert back_up(lab, "--recipient", spare(lab)).code == 0
    restore(lab, "--to", lab.root / "restored").done()
    for folder in ("board", "vault"):
        before, after = lab.root / folder, lab.root / "restored" / folder
        assert _files(before) == _files(after)
    board, restored = lab.board, lab.root / "restored" / "board"
    for asked in (["rev-parse", "HEAD"], ["remote", "-v"], ["status", "--short"], ["branch", "-r"]):
        assert git(board, *asked) == git(restored, *asked)
    vault = lab.root / "restored" / "vault"
    assert {path.stat().st_mode & 0o077 for path in (vault, *vault.rglob("*"))} == {0}
    git(restored, "checkout", "README.md")
    args = ("--board", restored, "--vault", vault, "--now", day(5))
    assert lab.call("inbox", *args).code == 0
    assert lab.call("audit", *args).code == 0


def _files(folder: Path) -> dict[str, bytes]:
    """Path -> bytes, without git's own files and the locks."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts and path.name != "lock"
    }


def test_a_drill_says_whether_it_could_be_restored_and_what_came_since(lab: Lab) -> None:
    assert back_up(lab, "--recipient", spare(lab)).code == 0
    lab.enter("two", now=day(5), seed=2, clone=lab.new_clone("c2"), team=OTHER_TEAM, decided=day(6))
    drill = restore(lab, "--check", "--board", lab.board, "--json").done()
    found = drill.json
    assert (found["events"], found["behind"]) == (4, 3)
    assert found["audit"]["faults"] == []
    assert found["lost"] == [
        '20261105-two: its scores by query: heldout correct 20261105-two --why "restored"'
    ]
    assert found["seconds"].keys() == {"restore", "audit"}
    (lab.vault / "labels" / "eval.qrels").write_text("")  # a backup of what is damaged is told
    (lab.root / "monday.backup").unlink()
    assert back_up(lab, "--recipient", spare(lab)).code == 0
    restore(lab, "--check").declined("fault")


def test_the_log_goes_on_where_the_public_one_stands(lab: Lab) -> None:
    """Published, embargoed and waiting since the backup: each comes back by what the list says."""
    assert back_up(lab, "--recipient", spare(lab)).code == 0
    clones = [lab.new_clone(name) for name in ("c2", "c3", "c4")]
    said = [
        lab.send("two", now=day(5), seed=2, clone=clones[0], team=OTHER_TEAM),
        lab.send(
            "three", now=day(5), seed=3, clone=clones[1], team=named("Third"), embargo="2026-12-20"
        ),
        lab.send("four", now=day(5), seed=4, clone=clones[2], team=named("Fourth")),
    ]
    published, hidden, waiting = said
    lab.take_in(now=day(5))
    assert lab.publish(published, hidden, now=day(6)).code == 0
    assert lab.organiser("review", waiting, now=day(6)).code == 0
    assert lab.organiser("rebuild", now=day(6)).code == 0
    lab.push()
    released = {row["id"]: row["scores"] for row in lab.rows()}

    shutil.rmtree(lab.vault)
    answer = restore(lab, "--to", lab.root / "restored", "--board", lab.board).done()
    (lab.root / "restored" / "vault").rename(lab.vault)
    for name in said:
        assert name in answer.out
    assert f"heldout amend {hidden}" in " ".join(answer.out.split())

    assert lab.audit()["ok"] is False
    for name in (published, hidden):
        lab.organiser("correct", name, "--why", "restored", now=day(7)).done()
    assert lab.audit()["ok"] is True
    assert lab.publish(waiting, now=day(8)).code == 0
    lab.push()
    git(clones[1], "pull", "-q", "--ff-only", "origin", "main")
    lab.fill(hidden, clone=clones[1], model_description="the same, sent again")
    assert lab.participant("amend", hidden, now=day(9), clone=clones[1]).code == 0
    lab.take_in(now=day(9))
    assert lab.organiser("rebuild", now=day(21, 12)).code == 0
    rows = {row["id"]: row for row in lab.rows()}
    assert {name: rows[name]["scores"] for name in released} == released
    assert rows[hidden]["team"] == "Third Team"
    assert lab.audit()["ok"] is True


def test_a_shared_vault_takes_later_events_over_from_its_remote(lab: Lab) -> None:
    git(lab.root, "init", "-q", "--bare", "-b", "main", "vault.git")
    git(lab.vault, "init", "-q", "-b", "main")
    git(lab.vault, "remote", "add", "origin", str(lab.root / "vault.git"))
    assert lab.organiser("rebuild", now=day(3)).code == 0
    assert back_up(lab, "--recipient", spare(lab)).code == 0
    lab.enter("two", now=day(5), seed=2, clone=lab.new_clone("c2"), team=OTHER_TEAM, decided=day(6))
    shutil.rmtree(lab.vault)
    assert restore(lab, "--to", lab.root / "restored").code == 0
    (lab.root / "restored" / "vault").rename(lab.vault)
    answer = lab.organiser("rebuild", now=day(7)).done()
    assert "taken over from origin: 3 events" in answer.err
    assert lab.audit() == {"ok": True, "events": 7, "faults": [], "notes": []}


def test_a_log_of_another_history_is_refused(lab: Lab, tmp_path: Path) -> None:
    assert back_up(lab, "--recipient", spare(lab)).code == 0
    other = found_lab(tmp_path / "other")
    earlier = restore(
        lab, "--to", lab.root / "restored", "--board", other.clone
    ).done()  # the same board before its first submission: nothing to add
    assert "added" not in earlier.out
    submission = other.receive("other", now=day(4), seed=5)
    assert other.organiser("reject", submission, "--why", "a test", now=day(5)).code == 0
    restore(lab, "--to", lab.root / "again", "--board", other.board).refused("restore-log")
    assert not (lab.root / "again").exists()
