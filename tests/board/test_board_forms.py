"""One suite that both forms of a board and its vault pass: on disk, and in memory."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scored_board import FOUNDED, ScoredBoard, make_board

from heldout.board.log.events import Draft
from heldout.board.scores.session import begin_session
from heldout.board.store.git import Git
from heldout.board.store.repository import SPEC, Repository
from heldout.board.store.vault import Vault
from heldout.envelope.keys import new_signing_key, public_key
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
    draft = Draft(kind="received", by="me", submission="20261102-x", public=public, sealed={})
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
    assert "leaderboard/mine" in repository.write_leaderboard({"leaderboard/a.html": b"2"}).unknown
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
        assert begin_session(repository, vault, now=LATER).by
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


def opened(vault: Vault) -> Draft:
    public = {"board.toml": "x", "signers": {"me": public_key(vault.own_signing_key())}}
    return Draft(kind="opened-board", by="me", public=public, sealed={"labels": {"eval": "0" * 64}})


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault.create(tmp_path / "vault", board=tmp_path / "board")
    made.append(opened(made), now=datetime(2026, 11, 2, 10, tzinfo=UTC))
    made.finish()
    return made


def test_all_of_it_is_for_its_owner_alone(vault: Vault) -> None:
    vault.add_identity("organiser", "secret")
    vault.store_sealed(b"sealed")
    paths = [vault.root, *vault.root.rglob("*")]
    assert [path.name for path in paths if path.stat().st_mode & 0o077] == []


def test_open_refuses_what_is_no_vault(vault: Vault, tmp_path: Path) -> None:
    board = tmp_path / "board"
    assert Vault.open(vault.root, board=board) == vault
    with pytest.raises(StoreError, match="is not a vault"):
        Vault.open(tmp_path, board=board)
    with pytest.raises(StoreError, match="inside the board"):
        Vault.open(vault.root, board=tmp_path)
    (vault.root / "founding").write_text(str(board))
    with pytest.raises(StoreError, match="is not a vault"):
        Vault.open(vault.root, board=board)


def test_a_clone_on_a_branch_that_nobody_has_is_told_by_that_branch(tmp_path: Path) -> None:
    """As of a bare repository made without `-b main`, where the vault was pushed as main."""
    root = tmp_path / "vault"
    (root / "identities").mkdir(parents=True)
    root.chmod(0o700)
    Git(root).init("trunk")
    with pytest.raises(StoreError, match="whose branch trunk has no commit") as caught:
        Vault.open(root, board=tmp_path / "board")
    assert "switch NAME" in str(caught.value)
    assert "backup" not in str(caught.value)


def test_create_refuses_a_folder_that_holds_something(vault: Vault, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not empty"):
        Vault.create(vault.root, board=tmp_path / "board")
    other = tmp_path / "other"
    other.mkdir()
    (other / ".writing-x").touch()
    assert Vault.create(other, board=tmp_path / "board").is_unfinished(tmp_path / "board")
    assert not Vault(other).is_unfinished(tmp_path / "board-2")
    with pytest.raises(StoreError, match="is not empty"):
        Vault.create(other, board=tmp_path / "board-2")


def test_labels_that_are_gone_are_asked_for(vault: Vault) -> None:
    with pytest.raises(StoreError, match="restore it from the backup"):
        vault.labels("eval")
    with pytest.raises(StoreError, match="restore it from the backup"):
        vault.labels_digest("eval")
    with pytest.raises(StoreError, match="held-out labels 'next'; put them there"):
        vault.labels("next")
    vault.labels_file("eval").write_whole(b"q1 0 d 1\n")
    assert vault.labels("eval").judgments == {"q1": {"d": 1}}
    assert vault.excluded("eval") == frozenset()


def test_marks_of_told_refusals_stay(vault: Vault) -> None:
    assert vault.printed_refusals() == frozenset()
    vault.store_printed(frozenset(("b", "a")))
    assert vault.printed_refusals() == {"a", "b"}


def test_a_folder_that_holds_something_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "letter.txt").write_text("mine")
    with pytest.raises(StoreError, match="not empty"):
        Vault(tmp_path / "vault").check_new(board=tmp_path / "board")
    with pytest.raises(StoreError, match="inside the board"):
        Vault(tmp_path / "board" / "vault").check_new(board=tmp_path / "board")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Another repository, below which somebody wants a board and its vault."""
    root = tmp_path / "project"
    root.mkdir()
    Git(root).init()
    return root


def test_a_vault_that_another_repository_would_publish_is_refused(project: Path) -> None:
    root, board = project / "deep" / "vault", project / "deep" / "board"
    for call in (
        lambda: Vault(root).check_new(board=board),
        lambda: Vault.create(root, board=board),
    ):
        with pytest.raises(StoreError, match="lies in the working tree of") as caught:
            call()
        assert "put /deep/vault/ into" in str(caught.value)
    assert not root.exists()


def test_a_vault_that_came_there_is_not_opened(project: Path, vault: Vault, tmp_path: Path) -> None:
    (vault.root / "identities").mkdir(exist_ok=True)
    moved = vault.root.rename(project / "vault")
    with pytest.raises(StoreError, match="lies in the working tree of"):
        Vault.open(moved, board=tmp_path / "board")
    (project / ".gitignore").write_text("*.jsonl\n")
    with pytest.raises(StoreError, match="lies in the working tree of"):
        Vault.open(moved, board=tmp_path / "board")  # the labels are not ignored
    (project / ".gitignore").write_text("/vault/\n")
    assert Vault.open(moved, board=tmp_path / "board") == Vault(moved)
    staged = Git(project)
    (project / ".gitignore").unlink()
    staged._run(["add", "vault/events.jsonl"])
    (project / ".gitignore").write_text("/vault/\n")
    with pytest.raises(StoreError, match="lies in the working tree of"):
        Vault.open(moved, board=tmp_path / "board")  # ignored too late


def test_a_shared_vault_may_lie_in_another(project: Path, vault: Vault, tmp_path: Path) -> None:
    moved = vault.root.rename(project / "vault")
    Git(moved).init()
    assert Vault.open(moved, board=tmp_path / "board") == Vault(moved)
