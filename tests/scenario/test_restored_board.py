"""A disk dies: the board goes on from a backup, and from what its public log knows since."""

import shutil
from pathlib import Path

import pytest
from town import OTHER_TEAM, Answer, Town, call, copy_of, found_town, git, named

from heldout.envelope.age import new_identity


def day(number: int, month: int = 11) -> str:
    return f"2026-{month}-{number:02}T10:00:00Z"


town = copy_of("told")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A board with a published entry; `spare.key` is a key that lies elsewhere."""
    town = found_town(tmp_path_factory.mktemp("told"))
    submission = town.send("one", now=day(2))
    town.take_in(now=day(2))
    assert town.publish(submission, now=day(3)).code == 0
    town.share()
    keys = new_identity()
    (town.root / "spare.key").write_text(f"# public key: {keys.recipient}\n{keys.private}")
    return town


def back_up(town: Town, *options: str | Path) -> Answer:
    where = ("--board", town.board, "--vault", town.vault, "--now", day(4))
    return call(town.root, "backup", town.root / "monday.backup", *where, *options)


def spare(town: Town) -> str:
    return (town.root / "spare.key").read_text().split("\n")[0].removeprefix("# public key: ")


def restore(town: Town, *options: str | Path) -> Answer:
    key = ("--identity", town.root / "spare.key")
    return call(town.root, "restore", town.root / "monday.backup", *key, *options)


def test_the_vaults_own_key_alone_is_refused_since_it_is_lost_with_the_vault(town: Town) -> None:
    answer = back_up(town)
    assert answer.code == 2
    assert "backup-own-key" in answer.err
    assert not (town.root / "monday.backup").exists()


def test_board_and_vault_come_back_as_they_were(town: Town) -> None:
    (town.board / "notes.txt").write_text("not committed\n")
    (town.board / "README.md").unlink()
    assert back_up(town, "--recipient", spare(town)).code == 0
    restore(town, "--to", town.root / "restored").done()
    for folder in ("board", "vault"):
        before, after = town.root / folder, town.root / "restored" / folder
        assert _files(before) == _files(after)
    board, restored = town.board, town.root / "restored" / "board"
    for asked in (["rev-parse", "HEAD"], ["remote", "-v"], ["status", "--short"], ["branch", "-r"]):
        assert git(board, *asked) == git(restored, *asked)
    vault = town.root / "restored" / "vault"
    assert {path.stat().st_mode & 0o077 for path in (vault, *vault.rglob("*"))} == {0}
    git(restored, "checkout", "README.md")
    told = ("--board", restored, "--vault", vault, "--now", day(5))
    assert call(town.root, "inbox", *told).code == 0
    assert call(town.root, "audit", *told).code == 0


def _files(folder: Path) -> dict[str, bytes]:
    """Path -> bytes, without git's own files and the locks."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.parts and path.name != "lock"
    }


def test_a_drill_says_whether_it_could_be_restored_and_what_came_since(town: Town) -> None:
    assert back_up(town, "--recipient", spare(town)).code == 0
    late = town.send("two", now=day(5), seed=2, clone=town.new_clone("c2"), team=OTHER_TEAM)
    town.take_in(now=day(5))
    assert town.publish(late, now=day(6)).code == 0
    drill = restore(town, "--check", "--board", town.board, "--json").done()
    found = drill.json
    assert (found["events"], found["behind"]) == (4, 3)
    assert found["audit"]["faults"] == []
    assert found["lost"] == [
        f'{late}: its scores by query: heldout correct {late} --why "restored"'
    ]
    assert found["seconds"].keys() == {"restore", "audit"}
    (town.vault / "labels" / "eval.qrels").write_text("")  # a backup of what is damaged is told
    (town.root / "monday.backup").unlink()
    assert back_up(town, "--recipient", spare(town)).code == 0
    damaged = restore(town, "--check")
    assert damaged.code == 1
    assert "fault" in damaged.out


@pytest.mark.slow
def test_the_log_goes_on_where_the_public_one_stands(town: Town) -> None:
    """Published, embargoed and waiting since the backup: each comes back by what the list says."""
    assert back_up(town, "--recipient", spare(town)).code == 0
    clones = [town.new_clone(name) for name in ("c2", "c3", "c4")]
    told = [
        town.send("two", now=day(5), seed=2, clone=clones[0], team=OTHER_TEAM),
        town.send(
            "three", now=day(5), seed=3, clone=clones[1], team=named("Third"), embargo="2026-12-20"
        ),
        town.send("four", now=day(5), seed=4, clone=clones[2], team=named("Fourth")),
    ]
    published, hidden, waiting = told
    town.take_in(now=day(5))
    assert town.publish(published, hidden, now=day(6)).code == 0
    assert town.organiser("review", waiting, now=day(6)).code == 0
    assert town.organiser("rebuild", now=day(6)).code == 0
    town.push()
    released = {row["id"]: row["scores"] for row in town.rows()}

    shutil.rmtree(town.vault)
    answer = restore(town, "--to", town.root / "restored", "--board", town.board).done()
    (town.root / "restored" / "vault").rename(town.vault)
    for name in told:
        assert name in answer.out
    assert f"heldout amend {hidden}" in " ".join(answer.out.split())

    assert town.audit()["ok"] is False
    for name in (published, hidden):
        town.organiser("correct", name, "--why", "restored", now=day(7)).done()
    assert town.audit()["ok"] is True
    assert town.publish(waiting, now=day(8)).code == 0
    town.push()
    git(clones[1], "pull", "-q", "--ff-only", "origin", "main")
    town.fill(hidden, clone=clones[1], model_description="the same, sent again")
    assert town.participant("amend", hidden, now=day(9), clone=clones[1]).code == 0
    town.take_in(now=day(9))
    assert town.organiser("rebuild", now=day(21, 12)).code == 0
    rows = {row["id"]: row for row in town.rows()}
    assert {name: rows[name]["scores"] for name in released} == released
    assert rows[hidden]["team"] == "Third Team"
    assert town.audit()["ok"] is True


@pytest.mark.slow
def test_a_shared_vault_takes_later_events_over_from_its_remote(town: Town) -> None:
    git(town.root, "init", "-q", "--bare", "-b", "main", "vault.git")
    git(town.vault, "init", "-q", "-b", "main")
    git(town.vault, "remote", "add", "origin", str(town.root / "vault.git"))
    assert town.organiser("rebuild", now=day(3)).code == 0
    assert back_up(town, "--recipient", spare(town)).code == 0
    late = town.send("two", now=day(5), seed=2, clone=town.new_clone("c2"), team=OTHER_TEAM)
    town.take_in(now=day(5))
    assert town.publish(late, now=day(6)).code == 0
    shutil.rmtree(town.vault)
    assert restore(town, "--to", town.root / "restored").code == 0
    (town.root / "restored" / "vault").rename(town.vault)
    answer = town.organiser("rebuild", now=day(7)).done()
    assert "taken over from origin: 3 events" in answer.err
    assert town.audit() == {"ok": True, "events": 7, "faults": [], "notes": []}


def test_a_log_of_another_history_is_refused(town: Town, tmp_path: Path) -> None:
    assert back_up(town, "--recipient", spare(town)).code == 0
    other = found_town(tmp_path / "other")
    earlier = restore(
        town, "--to", town.root / "restored", "--board", other.clone
    ).done()  # the same board before its first submission: nothing to add
    assert "added" not in earlier.out
    submission = other.send("other", now=day(4), seed=5)
    other.take_in(now=day(4))
    assert other.organiser("reject", submission, "--why", "a test", now=day(5)).code == 0
    refused = restore(town, "--to", town.root / "again", "--board", other.board)
    assert refused.code == 2
    assert "restore-log" in refused.err
    assert not (town.root / "again").exists()
