"""One suite that both forms of a board and its vault pass: on disk, and in memory."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from scored_board import FOUNDED, ScoredBoard, make_board

from heldout.board.log.events import Draft
from heldout.board.scores.session import begin_session
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.envelope.keys import new_signing_key
from heldout.errors import StoreError
from memory_board import copy_board, memory_board

LATER = FOUNDED + timedelta(hours=1)
Board = tuple[Repository, Vault]


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> ScoredBoard:
    return make_board(tmp_path_factory.mktemp("founded") / "town")


@pytest.fixture(params=["disk", "memory"])
def board(request: pytest.FixtureRequest, founded: ScoredBoard, tmp_path: Path) -> Board:
    if request.param == "memory":
        return copy_board(*memory_board(founded.root / "board", founded.root / "vault"))
    session = founded.copy(tmp_path / "town").session
    return session.repository, session.vault


def note(vault: Vault, *, now: datetime = LATER) -> str:
    public = {"files": {"x.tar.age": "0" * 64}, "fingerprint": "0" * 64, "source": "a folder"}
    draft = Draft(
        kind="received", by="organiser", submission="20261102-x", public=public, sealed={}
    )
    return vault.append(draft, now=now).hash


def test_what_the_board_says(board: Board) -> None:
    repository, _ = board
    assert repository.spec() == repository.tree_spec()
    assert repository.rules() == repository.tree_rules()
    assert len(repository.queries("queries/dev.tsv").texts) == 40
    assert len(repository.qrels("qrels/dev.qrels").judgments) == 40
    assert [entry.event.kind for entry in repository.log()] == ["opened-board"]
    assert repository.remote_logs() == {}
    assert repository.newest_log() == repository.log()
    with pytest.raises(StoreError, match="no such file"):
        repository.file("queries/none.tsv")


def test_rules_that_were_edited_are_not_in_force(board: Board) -> None:
    repository, _ = board
    before = repository.rules()
    assert repository.write_file(SPEC, b'title = "another"\n')
    assert not repository.write_file(SPEC, b'title = "another"\n')
    assert (repository.tree_rules(), repository.rules()) == ('title = "another"\n', before)


def test_pages_that_are_no_more_go_and_others_stay(board: Board) -> None:
    repository, _ = board
    repository.write_leaderboard({"leaderboard/a.html": b"1", "leaderboard/b.html": b"1"})
    repository.files.write_whole("leaderboard/mine", b"1")
    written = repository.write_leaderboard({"leaderboard/a.html": b"2"})
    assert "leaderboard/mine" in written.unknown
    assert not repository.files.exists("leaderboard/b.html")
    assert repository.files.read("leaderboard/a.html") == b"2"


def test_a_clone_remembers_which_board_it_is_of(board: Board) -> None:
    repository, _ = board
    repository.pin(repository.log())
    pinned = repository.state.read("pinned.json")
    known = str(repository.log()[0].hash).encode()
    assert known in pinned
    repository.state.write_whole("pinned.json", pinned.replace(known, b"0" * 64))
    with pytest.raises(StoreError, match="of another board"):
        repository.log()
    repository.state.write_whole("pinned.json", b"{")
    with pytest.raises(StoreError, match="damaged"):
        repository.log()


def test_an_event_is_appended_signed_and_read_again(board: Board) -> None:
    repository, vault = board
    before = vault.entries()
    digest = note(vault)
    assert [entry.hash for entry in vault.entries()] == [*(e.hash for e in before), digest]
    assert vault.entries()[-1].signature is not None
    assert len(repository.log()) == len(before)  # until the next rebuild
    with pytest.raises(StoreError, match="clock"):
        note(vault, now=FOUNDED)
    assert list(vault.history().submissions) == ["20261102-x"]


def test_a_session_sits_down_at_either(board: Board) -> None:
    repository, vault = board
    with vault.locked() as news, repository.locked():
        assert news == ()
        session = begin_session(repository, vault, now=LATER)
        assert session.by
        with pytest.raises(StoreError, match="another heldout"), vault.locked():
            pass
    assert not vault.is_shared()


def test_sealed_files_lie_by_their_digests(board: Board) -> None:
    _, vault = board
    digest = vault.store_sealed(b"sealed")
    assert vault.has_sealed(digest)
    assert vault.sealed(digest).read_bytes() == b"sealed"
    vault.check_room(1)
    vault.files.write_whole(f"sealed/{digest}", b"other")
    with pytest.raises(StoreError, match="missing or damaged"):
        vault.sealed(digest)


def test_labels_keys_and_notes_of_the_vault(board: Board) -> None:
    _, vault = board
    assert len(vault.labels("eval").judgments) == 40
    assert list(vault.held_out({"eval"})) == ["eval"]
    with pytest.raises(StoreError, match="missing"):
        vault.labels("none")
    assert vault.make_set_key("eval")
    assert not vault.make_set_key("eval")
    assert len(vault.set_key("eval")) == 32
    vault.drop_set_key("eval")
    assert not vault.has_set_key("eval")
    assert vault.printed_refusals() == frozenset()
    vault.store_printed(frozenset(["b", "a"]))
    assert vault.printed_refusals() == {"a", "b"}
    vault.store_token_host("https://forge.example")
    assert vault.token_host() == "https://forge.example"
    assert len(vault.identities()) == 1
    vault.add_signing_key(new_signing_key("ORGANISER"))
    assert len(vault.signing_keys()) == 2


def test_a_vault_that_is_only_read_is_not_written(board: Board) -> None:
    vault = Vault(board[1].root, read_only=True, stored=board[1].stored)
    assert vault.entries() == board[1].entries()
    for write in (
        lambda: note(vault),
        lambda: vault.store_sealed(b"1"),
        lambda: vault.store_printed(frozenset(["a"])),
        lambda: vault.locked().__enter__(),
        lambda: vault.make_set_key("eval"),
    ):
        with pytest.raises(RuntimeError, match="read alone"):
            write()
