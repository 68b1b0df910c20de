"""The vault: private, apart from the board, with a log that only grows."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from heldout.board.log.events import Draft
from heldout.board.store.git import Git
from heldout.board.store.vault import Vault
from heldout.envelope.keys import public_key
from heldout.errors import StoreError

NOW = datetime(2026, 11, 2, 10, tzinfo=UTC)
LABELS = {"labels": {"eval": "0" * 64}}


def opened(vault: Vault) -> Draft:
    public = {"board.toml": "x", "signers": {"me": public_key(vault.own_signing_key())}}
    return Draft(kind="opened-board", by="me", public=public, sealed=LABELS)


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault.create(tmp_path / "vault", board=tmp_path / "board")
    made.append(opened(made), now=NOW)
    made.finish()
    return made


def test_all_of_it_is_for_its_owner_alone(vault: Vault) -> None:
    vault.add_identity("organiser", "secret")
    vault.store_sealed(b"sealed")
    paths = [vault.root, *vault.root.rglob("*")]
    assert [path.name for path in paths if path.stat().st_mode & 0o077] == []


def test_a_sealed_file_comes_back_or_is_damaged(vault: Vault) -> None:
    digest = vault.store_sealed(b"sealed")
    assert vault.sealed(digest).read_bytes() == b"sealed"
    vault.sealed(digest).write_whole(b"other")
    with pytest.raises(StoreError, match="missing or damaged"):
        vault.sealed(digest)


def test_events_are_never_dated_before_others(vault: Vault) -> None:
    with pytest.raises(StoreError, match="the clock says"):
        vault.append(opened(vault), now=NOW - timedelta(seconds=1))
    assert len(vault.entries()) == 1


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


def test_a_vault_that_came_to_lie_there_is_not_opened(
    project: Path, vault: Vault, tmp_path: Path
) -> None:
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


def test_a_shared_vault_may_lie_in_another_repository(
    project: Path, vault: Vault, tmp_path: Path
) -> None:
    moved = vault.root.rename(project / "vault")
    Git(moved).init()
    assert Vault.open(moved, board=tmp_path / "board") == Vault(moved)
